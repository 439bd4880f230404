/*
 * tests/fuzz/fuzz_record.c - what a terminal showed, as a recording
 *
 * The input's first byte says how, the rest is output, cut into reads of all lengths. Each
 * line of the file must be JSON, and harmless to `cat`.
 */
#include "fuzz.h"
#include "base/fault.h"
#include "supervise/asciicast.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[256];

static void remove_file(void)
{
	unlink(path);
}

static void set_up(void)
{
	const char *tmp = getenv("TMPDIR");

	CHECK(snprintf(path, sizeof(path), "%s/carrel-fuzz-%d.cast", tmp ? tmp : "/tmp",
		      getpid()) < (int)sizeof(path));
	atexit(remove_file);
}

static void feed(struct record *r, const uint8_t *data, size_t size, unsigned int seed)
{
	while (size) {
		size_t n = 1 + seed % 17 * (seed % 5);

		n = n < size ? n : size;
		record_output(seed & 64 ? &r->err : &r->out, (const char *)data, n);
		if (seed % 11 == 0)
			record_resize(r, seed % 300, seed % 200);
		if (seed % 13 == 0)
			record_tick(r);
		data += n;
		size -= n;
		seed = seed * 1103515245 + 12345;
	}
}

static void check_file(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
	text = calloc(1, (size_t)st.st_size + 1);
	CHECK(read(fd, text, (size_t)st.st_size) == st.st_size);
	close(fd);
	CHECK(valid_output(text));
	CHECK(text[st.st_size - 1] == '\n');
	for (char *line = text, *next; *line; line = next) {
		next = strchr(line, '\n');
		CHECK(next);
		*next++ = '\0';
		CHECK(valid_json(line, strlen(line)));
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_head head = { .cols = 80, .rows = 24 };
	struct record record = { 0 };
	struct fault f = { 0 };
	char *title;

	if (!*path)
		set_up();
	if (!size)
		return 0;
	title = strndup((const char *)data, size);
	head.title = data[0] & 1 ? title : NULL;
	head.term = data[0] & 2 ? title : NULL;
	head.lines = data[0] & 4;
	unlink(path);
	CHECK(record_open(&record, path, &head, &f) == 0);
	feed(&record, data + 1, size - 1, data[0]);
	CHECK(record_close(&record, &f) == 0);
	check_file();
	free(title);
	memory_reset();
	return 0;
}
