/*
 * screen/screen.c - the screen of a detached box
 *
 * Theory of operation. The bytes of a box are hostile, and the library that reads them is
 * large; so this is a program of its own, with no environment, three descriptors, and a jail
 * that allows a dozen system calls. It receives the output of the box and sends what a terminal
 * would answer; the supervisor limits how much of that it passes on.
 *
 * The text goes to two files: a line that scrolls off the screen is added to the log, and the
 * contents of the screen are written to a second file when the box pauses. Both together are
 * what a person would have seen.
 *
 * It allocates with malloc(3), from the heap alone, because the library frees what it no longer
 * needs.
 */
#include "screen/screen.h"
#include "helper/jail.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vterm.h>

enum {
	PAUSE_MS = 60,
	LATE_MS = 400, /* a program that is never silent has its text written so often */
	MOST_HEAP = 128 << 20, /* the largest screen takes a third */
	LINE = SCREEN_COLS * VTERM_MAX_CHARS_PER_CELL * 4 + 1,
};

static struct {
	VTerm *vt;
	VTermScreen *screen;
	int rows, cols;
	bool full;       /* the alternate screen */
	bool dirty;      /* the text file is not what is shown, */
	long long since; /* since then (ms) */
	off_t log;       /* bytes in the log */
	char line[LINE]; /* of text */
	size_t n_pending;
	char pending[2 * LINE]; /* lines for the log */
} s;

static const uint16_t calls[] = {
	SYS_recvfrom,
	SYS_sendto,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_ftruncate,
	SYS_brk,
#ifdef SYS_poll
	SYS_poll,
#endif
	SYS_ppoll,
	SYS_madvise,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_clock_gettime, /* where the kernel's page of it has no clock */
	SYS_exit_group,
#ifdef __SANITIZE_ADDRESS__
	SYS_mmap,
	SYS_munmap,
	SYS_futex,
	SYS_getpid,
	SYS_gettid,
	SYS_sigaltstack,
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
#endif
};

static void send_message(char letter, const void *bytes, size_t n)
{
	char packet[1 + SCREEN_PACKET];

	if (n > SCREEN_PACKET)
		n = SCREEN_PACKET;
	packet[0] = letter;
	if (n)
		memcpy(packet + 1, bytes, n);
	/* If the supervisor is gone, nobody needs the screen. */
	if (send(SCREEN_SOCKET, packet, 1 + n, MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* ---- text ---- */

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0))
		c = ' ';
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The second half of a wide character. */
static bool is_half(const VTermScreenCell *cell)
{
	return cell->chars[0] == (uint32_t)-1;
}

static size_t put_cell(char *out, const VTermScreenCell *cell)
{
	size_t n = 0;

	if (is_half(cell))
		return 0;
	if (!cell->chars[0]) {
		out[0] = ' ';
		return 1;
	}
	for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i]; i++)
		n += put_utf8(out + n, cell->chars[i]);
	return n;
}

/* Add s.line without blanks at its end, and a line feed. */
static size_t end_line(size_t n)
{
	while (n && s.line[n - 1] == ' ')
		n--;
	s.line[n++] = '\n';
	return n;
}

static size_t row_text(int row)
{
	VTermScreenCell cell;
	size_t n = 0;

	for (int col = 0; col < s.cols; col++) {
		vterm_screen_get_cell(s.screen, (VTermPos){ .row = row, .col = col }, &cell);
		n += put_cell(s.line + n, &cell);
	}
	return end_line(n);
}

/* Keep the newer half, from the beginning of a line. */
static void cut_log(void)
{
	off_t from = s.log / 2, to = 0;
	char bytes[4096], *line;
	ssize_t n = pread(SCREEN_LOG, bytes, sizeof(bytes), from);

	line = n > 0 ? memchr(bytes, '\n', (size_t)n) : NULL;
	if (line)
		from += line + 1 - bytes;
	while ((n = pread(SCREEN_LOG, bytes, sizeof(bytes), from)) > 0 &&
		pwrite(SCREEN_LOG, bytes, (size_t)n, to) == n) {
		from += n;
		to += n;
	}
	if (ftruncate(SCREEN_LOG, to) == 0)
		s.log = to;
}

static void flush_log(void)
{
	ssize_t done;

	if (s.log + (off_t)s.n_pending > SCREEN_LOG_SIZE)
		cut_log();
	done = pwrite(SCREEN_LOG, s.pending, s.n_pending, s.log);
	if (done > 0)
		s.log += done;
	s.n_pending = 0;
}

static void add_log(size_t n)
{
	if (s.n_pending + n > sizeof(s.pending))
		flush_log();
	memcpy(s.pending + s.n_pending, s.line, n);
	s.n_pending += n;
	s.dirty = true;
}

static int on_pushline(int cols, const VTermScreenCell *cells, void *user)
{
	size_t n = 0;

	(void)user;
	for (int col = 0; col < cols && col < SCREEN_COLS; col++)
		n += put_cell(s.line + n, &cells[col]);
	add_log(end_line(n));
	return 1;
}

/* Up to the last row that is not empty. */
static void write_text(void)
{
	char head[2] = { s.full ? SCREEN_FULL : SCREEN_PLAIN, '\n' };
	off_t at = pwrite(SCREEN_TEXT, head, sizeof(head), 0), end = at;

	flush_log();
	for (int row = 0; row < s.rows && at > 0; row++) {
		size_t n = row_text(row);

		if (pwrite(SCREEN_TEXT, s.line, n, at) != (ssize_t)n)
			break;
		at += (off_t)n;
		if (n > 1)
			end = at;
	}
	if (end > 0 && ftruncate(SCREEN_TEXT, end) == 0)
		s.dirty = false;
}

/* ---- the picture ---- */

static struct {
	char bytes[SCREEN_PACKET];
	size_t n;
} picture;

static void draw(const char *bytes, size_t n)
{
	if (picture.n + n > sizeof(picture.bytes)) {
		send_message(SCREEN_PICTURE, picture.bytes, picture.n);
		picture.n = 0;
	}
	memcpy(picture.bytes + picture.n, bytes, n);
	picture.n += n;
}

static void draw_text(const char *text)
{
	draw(text, strlen(text));
}

static void draw_colour(const VTermColor *c, bool is_default, int base)
{
	char text[32] = "";

	if (is_default)
		return;
	if (VTERM_COLOR_IS_RGB(c))
		snprintf(text, sizeof(text), ";%d;2;%u;%u;%u", base + 8, c->rgb.red,
			c->rgb.green, c->rgb.blue);
	else
		snprintf(text, sizeof(text), ";%d;5;%u", base + 8, c->indexed.idx);
	draw_text(text);
}

static void draw_pen(const VTermScreenCell *cell)
{
	const VTermScreenCellAttrs *a = &cell->attrs;

	draw_text("\033[0");
	if (a->bold)
		draw_text(";1");
	if (a->italic)
		draw_text(";3");
	if (a->underline)
		draw_text(";4");
	if (a->blink)
		draw_text(";5");
	if (a->reverse)
		draw_text(";7");
	if (a->strike)
		draw_text(";9");
	draw_colour(&cell->fg, VTERM_COLOR_IS_DEFAULT_FG(&cell->fg), 30);
	draw_colour(&cell->bg, VTERM_COLOR_IS_DEFAULT_BG(&cell->bg), 40);
	draw_text("m");
}

static bool same_pen(const VTermScreenCell *a, const VTermScreenCell *b)
{
	return !memcmp(&a->attrs, &b->attrs, sizeof(a->attrs)) &&
		!memcmp(&a->fg, &b->fg, sizeof(a->fg)) &&
		!memcmp(&a->bg, &b->bg, sizeof(a->bg));
}

static void draw_row(int row)
{
	VTermScreenCell cell, before;
	char text[VTERM_MAX_CHARS_PER_CELL * 4 + 32];

	snprintf(text, sizeof(text), "\033[%d;1H", row + 1);
	draw_text(text);
	for (int col = 0; col < s.cols; col++) {
		vterm_screen_get_cell(s.screen, (VTermPos){ .row = row, .col = col }, &cell);
		if (!col || !same_pen(&cell, &before))
			draw_pen(&cell);
		before = cell;
		draw(text, put_cell(text, &cell));
	}
}

static void draw_all(void)
{
	VTermPos cursor;
	char text[32];

	draw_text("\033[0m\033[H\033[2J");
	for (int row = 0; row < s.rows; row++)
		draw_row(row);
	vterm_state_get_cursorpos(vterm_obtain_state(s.vt), &cursor);
	snprintf(text, sizeof(text), "\033[0m\033[%d;%dH", cursor.row + 1, cursor.col + 1);
	draw_text(text);
	send_message(SCREEN_PICTURE, picture.bytes, picture.n);
	picture.n = 0;
	send_message(SCREEN_DRAWN, NULL, 0);
}

/* ---- what the box asks ---- */

static void on_output(const char *bytes, size_t n, void *user)
{
	(void)user;
	send_message(SCREEN_ANSWER, bytes, n);
}

/* The colours of text and background: white on black, as the library draws them. */
static int on_osc(const char *command, size_t n, void *user)
{
	char text[64];
	int what = 0;

	(void)user;
	for (size_t i = 0; i < n && command[i] >= '0' && command[i] <= '9' && what < 100; i++)
		what = 10 * what + (command[i] - '0');
	if (n != 4 || (what != 10 && what != 11 && what != 12) || command[3] != '?')
		return 0;
	snprintf(text, sizeof(text), "\033]%d;%s\033\\", what,
		what == 11 ? "rgb:0000/0000/0000" : "rgb:ffff/ffff/ffff");
	send_message(SCREEN_ANSWER, text, strlen(text));
	return 1;
}

static int on_property(VTermProp property, VTermValue *value, void *user)
{
	(void)user;
	if (property == VTERM_PROP_ALTSCREEN)
		s.full = value->boolean;
	return 1;
}

static void set_size(const char *bytes, size_t n)
{
	struct screen_size size;
	int rows, cols;

	if (n != sizeof(size))
		return;
	memcpy(&size, bytes, sizeof(size));
	s.rows = size.rows < 1 ? 1 : size.rows > SCREEN_ROWS ? SCREEN_ROWS : size.rows;
	s.cols = size.cols < 1 ? 1 : size.cols > SCREEN_COLS ? SCREEN_COLS : size.cols;
	/* To set the size that it has makes the library copy all cells. */
	vterm_get_size(s.vt, &rows, &cols);
	if (rows != s.rows || cols != s.cols)
		vterm_set_size(s.vt, s.rows, s.cols);
	malloc_trim(0);
	s.dirty = true;
}

static void end_screen(void)
{
	write_text();
	_exit(0);
}

/*
 * The library keeps cells for the alternate screen from the moment that it is allowed to have
 * one: as much memory again, which most boxes never need. So it is allowed when a sequence
 * ESC [ ? ... h names one. That is a hint: what it means is for the library to say.
 */
static void expect_full_screen(const char *bytes, size_t n)
{
	static enum { GROUND, AFTER_ESCAPE, AFTER_BRACKET, NUMBERS } state;
	static unsigned int number;
	static bool allowed;

	for (size_t i = 0; i < n && !allowed; i++) {
		const char c = bytes[i];

		if (c == '\033') {
			state = AFTER_ESCAPE;
		} else if (state == NUMBERS && c >= '0' && c <= '9') {
			number = number % 1000 * 10 + (unsigned int)(c - '0');
		} else if (state == NUMBERS && (c == ';' || c == 'h')) {
			allowed = number == 47 || number == 1047 || number == 1049;
			number = 0;
			state = c == ';' ? NUMBERS : GROUND;
		} else if (state == AFTER_BRACKET && c == '?') {
			number = 0;
			state = NUMBERS;
		} else {
			state = state == AFTER_ESCAPE && c == '[' ? AFTER_BRACKET : GROUND;
		}
		if (allowed)
			vterm_screen_enable_altscreen(s.screen, 1);
	}
}

static void obey(const char *packet, size_t n)
{
	switch (packet[0]) {
	case SCREEN_OUTPUT:
		expect_full_screen(packet + 1, n - 1);
		vterm_input_write(s.vt, packet + 1, n - 1);
		s.dirty = true;
		break;
	case SCREEN_SIZE:
		set_size(packet + 1, n - 1);
		break;
	case SCREEN_PICTURE:
		draw_all();
		break;
	case SCREEN_END:
		end_screen();
		break;
	}
}

/* ---- life ---- */

/* Until the text is to be written; -1: it need not be. */
static int text_timeout(void)
{
	const long long now = clock_ms();

	if (!s.dirty) {
		s.since = now;
		return -1;
	}
	return now - s.since >= LATE_MS ? 0 : PAUSE_MS;
}

static void start_screen(void)
{
	static const VTermScreenCallbacks callbacks = { .sb_pushline = on_pushline,
		.settermprop = on_property };
	static const VTermParserCallbacks fallbacks = { .osc = on_osc };

	s.rows = 24;
	s.cols = 80;
	s.vt = vterm_new(s.rows, s.cols);
	vterm_set_utf8(s.vt, 1);
	s.screen = vterm_obtain_screen(s.vt);
	vterm_screen_set_callbacks(s.screen, &callbacks, NULL);
	vterm_screen_set_unrecognised_fallbacks(s.screen, &fallbacks, NULL);
	vterm_output_set_callback(s.vt, on_output, NULL);
	vterm_screen_reset(s.screen, 1);
}

static int shut_in(struct fault *f)
{
	static const struct jail jail = { .calls = calls, .n = ARRAY_SIZE(calls) };
	const struct rlimit file = { 2 * SCREEN_LOG_SIZE, 2 * SCREEN_LOG_SIZE };

#ifndef __SANITIZE_ADDRESS__
	const struct rlimit heap = { MOST_HEAP, MOST_HEAP };

	if (setrlimit(RLIMIT_DATA, &heap) < 0)
		return fault_set(f, errno, "limit the screen's memory");
#endif
	if (setrlimit(RLIMIT_FSIZE, &file) < 0)
		return fault_set(f, errno, "limit the screen's files");
	return jail_enter(&jail, f);
}

int main(void)
{
	struct pollfd in = { .fd = SCREEN_SOCKET, .events = POLLIN };
	static char packet[1 + SCREEN_PACKET];
	struct fault f = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 64 * 1024);
	signal(SIGXFSZ, SIG_IGN);
	if (shut_in(&f) < 0) {
		send_message(SCREEN_FAULT, f.text, strlen(f.text));
		return 1;
	}
	start_screen();
	send_message(SCREEN_READY, NULL, 0);
	for (;;) {
		const int timeout = text_timeout(), ready = poll(&in, 1, timeout);
		ssize_t n;

		if (ready == 0 || timeout == 0) {
			write_text();
			s.since = clock_ms();
		}
		if (ready <= 0)
			continue;
		n = recv(SCREEN_SOCKET, packet, sizeof(packet), 0);
		if (n == 0)
			end_screen();
		if (n > 0)
			obey(packet, (size_t)n);
	}
}
