/*
 * Recordings, read back by a JSON parser that is not ours.
 *
 * A test writes its recording and hands it to Python, which checks each line as
 * JSON, the header, and that times never go back, and prints all output text; the
 * expectation is text too, or Python's own decoder of the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "supervise/asciicast.h"

static const char checker[] =
	"import json, sys\n"
	"lines = open(sys.argv[1], encoding='utf-8', newline='\\n').read().split('\\n')\n"
	"assert lines.pop() == ''\n"
	"head = json.loads(lines[0])\n"
	"assert head['version'] == 2 and head['width'] == 80 and head['height'] == 24, head\n"
	"assert head['timestamp'] > 1600000000\n"
	"events = [json.loads(l) for l in lines[1:]]\n"
	"assert all(len(e) == 3 and e[1] in 'or' and e[2] for e in events)\n"
	"assert all(a[0] <= b[0] for a, b in zip(events, events[1:]))\n"
	"assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for l in lines for c in l)\n"
	"text = ''.join(e[2] for e in events if e[1] == 'o')\n"
	"sizes = [e[2] for e in events if e[1] == 'r']\n"
	"exec(sys.argv[2])\n";

static char dir[64], cast[96], raw[96];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/carrel-record-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(cast, sizeof(cast), "%s/x.cast", dir);
	snprintf(raw, sizeof(raw), "%s/raw", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(cast);
	unlink(raw);
	return rmdir(dir);
}

static const struct record_head plain_head = { .cols = 80, .rows = 24 };

static void open_record(struct record *r, const struct record_head *head)
{
	struct fault f = { 0 };

	assert_int_equal(record_open(r, cast, head, &f), 0);
}

static void close_record(struct record *r)
{
	struct fault f = { 0 };

	assert_int_equal(record_close(r, &f), 0);
}

/* Run the checker over the recording, and then the statement. */
static void check(const char *statement)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-c", checker, cast, statement, raw, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_header(void **state)
{
	struct record_head head = plain_head;
	struct record r;
	struct stat st;

	(void)state;
	head.title = "say \"hi\" \\ \x1b[31m \xff";
	head.term = "xterm-256color";
	head.shell = "/bin/sh";
	open_record(&r, &head);
	close_record(&r);
	assert_int_equal(stat(cast, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	check("assert head['env'] == {'TERM': 'xterm-256color', 'SHELL': '/bin/sh'}\n"
	      "assert head['title'] == 'say \"hi\" \\\\ \\x1b[31m \\ufffd', head\n"
	      "assert events == []");
}

static void test_output(void **state)
{
	static const char text[] = "a\tb\"c\\d\r\n\x1b[1m\x7f\xc2\x9b"
				   "0m \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\0z";
	struct record r;

	(void)state;
	open_record(&r, &plain_head);
	record_output(&r.out, text, sizeof(text) - 1);
	record_resize(&r, 132, 43);
	record_output(&r.out, "end", 3);
	close_record(&r);
	check("assert text == ('a\\tb\"c\\\\d\\r\\n\\x1b[1m'\n"
	      "    '\\x7f\\x9b0m \\xe9 \\u20ac \\U0001f600\\0zend'), text\n"
	      "assert sizes == ['132x43']\n"
	      "assert [e[1] for e in events] == ['o', 'r', 'o']");
}

/* Each way to cut the text into two reads gives the same text. */
static void test_split(void **state)
{
	static const char text[] = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!";
	size_t n = sizeof(text) - 1;
	struct record r;

	(void)state;
	open_record(&r, &plain_head);
	for (size_t cut = 0; cut <= n; cut++) {
		record_output(&r.out, text, cut);
		record_output(&r.out, text + cut, n - cut);
	}
	for (size_t i = 0; i < n; i++)
		record_output(&r.out, text + i, 1);
	close_record(&r);
	check("assert text == '\\xe9\\u20ac\\U0001f600!' * 12, text");
}

/* Two streams do not mix the halves of their characters. */
static void test_two_streams(void **state)
{
	struct record r;

	(void)state;
	open_record(&r, &plain_head);
	record_tap(&r.out, "\xe2\x82", 2);
	record_tap(&r.err, "\xc3", 1);
	record_tap(&r.out, "\xac", 1);
	record_tap(&r.err, "\xa9", 1);
	record_tap(&r.err, "\xf0\x9f", 2);
	close_record(&r);
	check("assert text == '\\u20ac\\xe9\\ufffd', text");
}

static void test_lines(void **state)
{
	struct record_head head = plain_head;
	struct record r;

	(void)state;
	head.lines = true;
	open_record(&r, &head);
	record_output(&r.out, "a\nb\n", 4);
	close_record(&r);
	check("assert text == 'a\\r\\nb\\r\\n', text");
}

/* Bytes of all kinds, mostly of the kind that makes trouble. */
static void make_noise(char *p, size_t n)
{
	static const char hard[] =
		"\xc2\xe0\xed\xef\xf0\xf4\xf5\x80\x8f\x90\x9f\xa0\xbf\xc0\xff";

	srand(42);
	for (size_t i = 0; i < n; i++)
		p[i] = rand() % 3 ? hard[(size_t)rand() % (sizeof(hard) - 1)] : (char)rand();
}

static void write_raw(const char *p, size_t n)
{
	int fd = open(raw, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, p, n), (ssize_t)n);
	close(fd);
}

/* Invalid bytes, in reads of all sizes: the same as Python's decoder makes of them. */
static void test_noise(void **state)
{
	static char noise[400000];
	struct record r;
	size_t step;

	(void)state;
	make_noise(noise, sizeof(noise));
	write_raw(noise, sizeof(noise));
	open_record(&r, &plain_head);
	for (size_t i = 0; i < sizeof(noise); i += step) {
		step = (size_t)rand() % (rand() % 8 ? 7 : 70000) + 1;
		step = step < sizeof(noise) - i ? step : sizeof(noise) - i;
		record_output(&r.out, noise + i, step);
	}
	close_record(&r);
	check("assert text == open(sys.argv[3], 'rb').read().decode('utf-8', 'replace')");
}

/* The longest form of every byte, far beyond the buffer. */
static void test_all_escapes(void **state)
{
	static char text[300000];
	struct record r;

	(void)state;
	memset(text, 1, sizeof(text));
	open_record(&r, &plain_head);
	record_output(&r.out, text, sizeof(text));
	close_record(&r);
	check("assert text == '\\1' * 300000");
}

static off_t size_now(void)
{
	struct stat st;

	assert_int_equal(stat(cast, &st), 0);
	return st.st_size;
}

static void test_tick(void **state)
{
	struct record r;
	off_t before;

	(void)state;
	open_record(&r, &plain_head);
	assert_int_equal(record_timeout(&r), -1);
	before = size_now();
	record_output(&r.out, "x", 1);
	assert_in_range(record_timeout(&r), 1, 1001);
	record_tick(&r);
	assert_int_equal(size_now(), before);
	usleep((useconds_t)record_timeout(&r) * 1000);
	assert_int_equal(record_timeout(&r), 0);
	record_tick(&r);
	assert_true(size_now() > before);
	assert_int_equal(record_timeout(&r), -1);
	close_record(&r);
	check("assert text == 'x'");
}

/* A limit on the file's size stands for a full disk. */
static void test_full_disk(void **state)
{
	static char text[200000];
	struct rlimit old, few = { 0 };
	struct fault f = { 0 };
	struct record r;

	(void)state;
	memset(text, 'x', sizeof(text));
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	few.rlim_max = old.rlim_max;
	few.rlim_cur = 100000;
	open_record(&r, &plain_head);
	setrlimit(RLIMIT_FSIZE, &few);
	record_output(&r.out, text, sizeof(text));
	record_resize(&r, 1, 2);
	assert_int_equal(record_timeout(&r), -1);
	assert_int_equal(record_close(&r, &f), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(f.text, cast));
	assert_true(size_now() > 50000);
	check("assert len(text) > 50000 and set(text) == {'x'}");
}

static void refuse(void)
{
	struct fault f = { 0 };
	struct record r;

	assert_int_equal(record_open(&r, cast, &plain_head, &f), -EEXIST);
	assert_true(f.fix[0]);
	/* What failed to open records nothing, and may be used as if it did. */
	record_output(&r.out, "x", 1);
	assert_int_equal(record_close(&r, &f), 0);
}

static void test_existing(void **state)
{
	struct record r;

	(void)state;
	write_raw("precious", 8);
	assert_int_equal(symlink(raw, cast), 0);
	refuse();
	unlink(cast);
	assert_int_equal(link(raw, cast), 0);
	refuse();
	assert_int_equal(truncate(raw, 0), 0);
	refuse(); /* empty, but with a second name */
	unlink(cast);
	assert_int_equal(mkfifo(cast, 0600), 0);
	refuse();
	unlink(cast);
	assert_int_equal(mkdir(cast, 0700), 0);
	refuse();
	rmdir(cast);
	/* The control: an empty file of our own is taken. */
	close(open(cast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	open_record(&r, &plain_head);
	record_output(&r.out, "x", 1);
	close_record(&r);
	check("assert text == 'x'");
}

static void test_discard(void **state)
{
	struct record none = { 0 }, r;

	(void)state;
	open_record(&r, &plain_head);
	record_discard(&r);
	assert_int_equal(access(cast, F_OK), -1);
	/* Not ours to remove, but left as it was. */
	close(open(cast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	open_record(&r, &plain_head);
	record_discard(&r);
	assert_int_equal(size_now(), 0);
	record_discard(&none);
	record_tick(&none);
	assert_int_equal(record_timeout(&none), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_header),
		TEST(test_output),
		TEST(test_split),
		TEST(test_two_streams),
		TEST(test_lines),
		TEST(test_noise),
		TEST(test_all_escapes),
		TEST(test_tick),
		TEST(test_full_disk),
		TEST(test_existing),
		TEST(test_discard),
	};

	alarm(60);
	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
