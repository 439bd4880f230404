/*
 * supervise/asciicast.c - record a terminal's output as an asciicast v2 file
 *
 * Theory of operation. The file is lines of JSON: a header, then events [time, type, text],
 * where "o" is output and "r" a new size. Events are collected in one buffer. It is written
 * when it is full, a second after its first event, or at the end. So a SIGKILL loses one
 * second, and a busy screen costs one write per 64 KB.
 *
 * The buffer holds whole lines only: the bytes of one event are so few that they fit even if
 * all of them are escaped. So each write ends at the end of a line. If a write fails half way,
 * the file is cut back to the last whole line and can still be played.
 *
 * JSON is Unicode, a pty has bytes, and a read may end in the middle of a character. A small
 * decoder takes one byte at a time and keeps an incomplete character until the rest arrives.
 * Bytes that are not UTF-8 become U+FFFD, once for each maximal part, as the Unicode standard
 * advises and most decoders do. All control characters, also DEL and U+0080-U+009F, are written
 * as escapes, so showing the file itself with `cat` drives no terminal.
 *
 * An existing file is refused, not overwritten: a typing error after `--record` must not
 * destroy a source file, and an earlier box may have put a link or a FIFO under the expected
 * name. An empty regular file is accepted if it is ours and has no other name, because nothing
 * is lost. A new file has mode 0600, because a session may show secrets.
 *
 * Times are from CLOCK_MONOTONIC: a corrected wall clock does not disturb the replay.
 * Nothing here allocates after record_open().
 */
#include "supervise/asciicast.h"
#include "base/fault.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	RECORD_BUFFER = 64 * 1024,
	RECORD_PAGE = 4096,
	/*
	 * Bytes of output in one event: each becomes at most 6 ("\u001b"); the rest of the line
	 * is short.
	 */
	RECORD_SLICE = 8 * 1024,
	RECORD_EVENT = 6 * RECORD_SLICE + 128,
	/* Bytes of each text in the header. */
	RECORD_NAME = 2 * 1024,
};

#define SECOND 1000000000ull

_Static_assert((int)RECORD_EVENT <= (int)RECORD_BUFFER, "an event fits into the buffer");
_Static_assert(3 * 6 * RECORD_NAME + 512 <= (int)RECORD_BUFFER, "so does the header");

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * SECOND + (unsigned long long)ts.tv_nsec;
}

static bool is_live(const struct record *r)
{
	return r->buf && !r->error;
}

/* The caller that begins an event or the header has checked that there is room. */
static void put_bytes(struct record *r, const char *bytes, size_t n)
{
	memcpy(r->buf + r->len, bytes, n);
	r->len += n;
}

static void put_text(struct record *r, const char *text)
{
	put_bytes(r, text, strlen(text));
}

static void put_escaped(struct record *r, unsigned int c)
{
	char text[8];

	snprintf(text, sizeof(text), "\\u%04x", c & 0xffff);
	put_bytes(r, text, 6);
}

static void put_ascii(struct record *r, unsigned char c)
{
	if (c == '\n')
		put_bytes(r, r->lines ? "\\r\\n" : "\\n", r->lines ? 4 : 2);
	else if (c == '\r')
		put_bytes(r, "\\r", 2);
	else if (c == '"' || c == '\\')
		put_bytes(r, (const char[]){ '\\', (char)c }, 2);
	else if (c < 0x20 || c == 0x7f)
		put_escaped(r, c);
	else
		r->buf[r->len++] = (char)c;
}

static void put_unknown(struct record *r)
{
	put_bytes(r, "\xef\xbf\xbd", 3);
}

/* The length of a character that begins with c; 0: no character does. */
static unsigned int utf8_size(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/*
 * May c come next? The second byte decides whether the form is overlong, a surrogate or above
 * U+10FFFF.
 */
static bool continues(const struct record_stream *s, unsigned char c)
{
	unsigned char first = s->part[0], low = 0x80, high = 0xbf;

	if (s->have == 1) {
		if (first == 0xe0)
			low = 0xa0;
		else if (first == 0xed)
			high = 0x9f;
		else if (first == 0xf0)
			low = 0x90;
		else if (first == 0xf4)
			high = 0x8f;
	}
	return c >= low && c <= high;
}

static void put_character(struct record_stream *s)
{
	if (s->have == 2 && s->part[0] == 0xc2 && s->part[1] < 0xa0)
		put_escaped(s->record, s->part[1]); /* C1 controls */
	else
		put_bytes(s->record, (const char *)s->part, s->have);
	s->have = 0;
}

static void put_byte(struct record_stream *s, unsigned char c)
{
	unsigned int size;

	if (s->have && !continues(s, c)) {
		put_unknown(s->record);
		s->have = 0;
	}
	size = utf8_size(s->have ? s->part[0] : c);
	if (size == 1) {
		put_ascii(s->record, c);
	} else if (size == 0) {
		put_unknown(s->record);
	} else {
		s->part[s->have++] = c;
		if (s->have == size)
			put_character(s);
	}
}

/* The unfinished character will never be complete. */
static void put_unfinished(struct record_stream *s)
{
	if (s->have)
		put_unknown(s->record);
	s->have = 0;
}

/* Write the buffer. If that fails, the file still has whole lines only. */
static void flush(struct record *r)
{
	size_t done = 0;
	const char *last;

	while (is_live(r) && done < r->len) {
		ssize_t n = write(r->fd, r->buf + done, r->len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			r->error = n == 0 ? EIO : errno;
	}
	last = memrchr(r->buf, '\n', done);
	if (last)
		r->good += (size_t)(last + 1 - r->buf);
	r->len = 0;
	if (r->error && ftruncate(r->fd, (off_t)r->good) < 0)
		return; /* nobody reads this result; the error is reported already */
}

/* Begin an event. Returns its position, so that an event without text can be removed. */
static size_t begin_event(struct record *r, char type)
{
	unsigned long long t = now(), us = (t - r->began) / 1000;
	size_t mark;
	char text[64];

	if (r->len + RECORD_EVENT > RECORD_BUFFER)
		flush(r);
	if (!r->len)
		r->due = t + SECOND;
	mark = r->len;
	snprintf(text, sizeof(text), "[%llu.%06llu, \"%c\", \"", us / 1000000, us % 1000000,
		type);
	put_text(r, text);
	return mark;
}

static void end_event(struct record *r)
{
	put_text(r, "\"]\n");
}

/*
 * The number of bytes at p that need no escape. These are most of a screen, and quick to copy.
 */
static size_t plain_run(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
		i++;
	return i;
}

static void put_slice(struct record_stream *s, const char *bytes, size_t n)
{
	struct record *r = s->record;
	size_t mark = begin_event(r, 'o'), text = r->len;

	for (size_t i = 0, run; i < n; i += run) {
		run = s->have ? 0 : plain_run(bytes + i, n - i);
		put_bytes(r, bytes + i, run);
		if (!run) {
			put_byte(s, (unsigned char)bytes[i]);
			run = 1;
		}
	}
	if (r->len == text)
		r->len = mark;
	else
		end_event(r);
}

void record_output(struct record_stream *s, const char *bytes, size_t n)
{
	while (n && is_live(s->record)) {
		size_t slice = n < RECORD_SLICE ? n : RECORD_SLICE;

		put_slice(s, bytes, slice);
		bytes += slice;
		n -= slice;
	}
}

void record_tap(void *ctx, const char *bytes, size_t n)
{
	record_output(ctx, bytes, n);
}

void record_resize(struct record *r, unsigned int cols, unsigned int rows)
{
	char text[32];

	if (!is_live(r))
		return;
	begin_event(r, 'r');
	snprintf(text, sizeof(text), "%ux%u", cols, rows);
	put_text(r, text);
	end_event(r);
}

int record_timeout(const struct record *r)
{
	unsigned long long t;

	if (!is_live(r) || !r->len)
		return -1;
	t = now();
	return t >= r->due ? 0 : (int)((r->due - t) / 1000000) + 1;
}

void record_tick(struct record *r)
{
	if (record_timeout(r) != 0)
		return;
	flush(r);
	/* An idle box should use little memory; the next event usually needs one page. */
	madvise(r->buf + RECORD_PAGE, RECORD_BUFFER - RECORD_PAGE, MADV_DONTNEED);
}

static void put_name(struct record *r, const char *key, const char *text)
{
	size_t n = strlen(text);

	put_text(r, "\"");
	put_text(r, key);
	put_text(r, "\": \"");
	for (size_t i = 0; i < n && i < RECORD_NAME; i++)
		put_byte(&r->out, (unsigned char)text[i]);
	put_unfinished(&r->out);
	put_text(r, "\"");
}

static void put_header(struct record *r, const struct record_head *head)
{
	char text[160];

	snprintf(text, sizeof(text),
		"{\"version\": 2, \"width\": %u, \"height\": %u, \"timestamp\": %lld",
		head->cols, head->rows, (long long)time(NULL));
	put_text(r, text);
	if (head->title) {
		put_text(r, ", ");
		put_name(r, "title", head->title);
	}
	put_text(r, ", \"env\": {");
	if (head->term)
		put_name(r, "TERM", head->term);
	if (head->term && head->shell)
		put_text(r, ", ");
	if (head->shell)
		put_name(r, "SHELL", head->shell);
	put_text(r, "}}\n");
}

/* Open an empty file that may be overwritten; -1: it may not. O_NONBLOCK: it may be a FIFO. */
static int open_empty(const char *path)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		st.st_nlink == 1 && st.st_size == 0)
		return fd;
	close(fd);
	return -1;
}

static int open_file(struct record *r, struct fault *f)
{
	r->fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r->created = r->fd >= 0;
	if (r->fd < 0 && errno == EEXIST) {
		r->fd = open_empty(r->path);
		errno = EEXIST;
	}
	if (r->fd >= 0)
		return 0;
	fault_set(f, errno, "record to '%s'", str_visible(r->path));
	if (errno == EEXIST)
		fault_fix(f, "Name another file, or remove this one.");
	return -f->err;
}

int record_open(struct record *r, const char *path, const struct record_head *head,
	struct fault *f)
{
	void *p;
	int err;

	*r = (struct record){ .path = path, .lines = head->lines, .began = now() };
	r->out.record = r->err.record = r;
	p = mmap(NULL, RECORD_BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	if (p == MAP_FAILED)
		return fault_set(f, errno, "get memory for a recording");
	r->buf = p;
	err = open_file(r, f);
	if (err < 0) {
		munmap(p, RECORD_BUFFER);
		r->buf = NULL;
		return err;
	}
	put_header(r, head);
	flush(r);
	if (!r->error)
		return 0;
	err = fault_set(f, r->error, "record to '%s'", str_visible(path));
	record_discard(r);
	return err;
}

static void release(struct record *r)
{
	if (close(r->fd) < 0 && !r->error && errno != EINTR)
		r->error = errno;
	munmap(r->buf, RECORD_BUFFER);
	r->fd = -1;
	r->buf = NULL;
}

/* Characters whose last bytes never arrived. */
static void put_rest(struct record *r)
{
	if (!is_live(r) || (!r->out.have && !r->err.have))
		return;
	begin_event(r, 'o');
	put_unfinished(&r->out);
	put_unfinished(&r->err);
	end_event(r);
}

int record_close(struct record *r, struct fault *f)
{
	if (!r->buf)
		return 0;
	put_rest(r);
	flush(r);
	release(r);
	if (!r->error)
		return 0;
	return fault_set(f, r->error, "record the whole session to '%s'", str_visible(r->path));
}

/* Does path still name the file that we have open? */
static bool is_still_there(const struct record *r)
{
	struct stat ours, theirs;

	return fstat(r->fd, &ours) == 0 && lstat(r->path, &theirs) == 0 &&
		ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

void record_discard(struct record *r)
{
	if (!r->buf)
		return;
	if (r->created && is_still_there(r))
		unlink(r->path);
	else if (ftruncate(r->fd, 0) < 0)
		r->error = errno;
	release(r);
}
