/*
 * supervise/streams-detached.c - the terminal of a detached box, and its clients
 *
 * Theory of operation. The output of the box goes to its screen (screen/screen.h) and to all
 * attached clients. The screen answers the questions that programs ask a terminal, whether or
 * not a client is attached. So clients get the output without the questions, and a user's
 * terminal never answers the box.
 *
 * A client that attaches gets the modes that the box has set, and a picture. While a picture is
 * being drawn, nothing is read from the box, so that the output after it fits. If the screen
 * takes too long, reading goes on. A client that is slower than the box misses output, and gets
 * a new picture when it has room. So it delays nobody, and no output is queued for it.
 *
 * The terminal has the size of the client that attached or typed last.
 */
#include "supervise/streams-detached.h"
#include "supervise/asciicast.h"
#include "box/engine.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

enum {
	NOBODY = -1,
	DRAW_MS = 2000,
	SILENT_MS = 5000, /* a full-screen program that is silent for so long waits for input */
	PICTURES = 8,     /* pictures that a client may fail to take */
	AT_TERMINAL = 0,
	AT_SCREEN,
	AT_VIEWERS,
};

static struct streams_detached *detached(struct streams *s)
{
	return (struct streams_detached *)s;
}

static const struct streams_detached *detached_const(const struct streams *s)
{
	return (const struct streams_detached *)s;
}

/* --- beginning ------------------------------------------------------------------- */

static int detached_open(struct streams *base, struct box_io *io, struct fault *f)
{
	const struct streams_detached *s = detached(base);

	(void)f;
	io->terminal = true;
	io->rows = s->size.rows;
	io->cols = s->size.cols;
	return 0;
}

static int detached_prepare(struct streams *base, const char *name, struct fault *f)
{
	struct streams_detached *s = detached(base);

	return screen_start(&s->screen, name, s->size, f);
}

static void detached_start(struct streams *base, int terminal)
{
	struct streams_detached *s = detached(base);

	fcntl(terminal, F_SETFL, O_NONBLOCK);
	s->terminal = terminal;
	s->silent_since = clock_ms();
}

/* --- clients --------------------------------------------------------------------- */

static void drop_viewer(struct streams_detached *s, int i)
{
	fd_close(&s->viewer[i].fd);
	if (s->drawing == i)
		s->drawing = NOBODY;
}

static bool send_packet(struct viewer *v, char letter, const void *bytes, size_t n)
{
	char packet[1 + VIEWER_PACKET];

	packet[0] = letter;
	if (n)
		memcpy(packet + 1, bytes, n);
	return send(v->fd, packet, 1 + n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void resize(struct streams_detached *s, struct screen_size size)
{
	const struct winsize to = { .ws_row = size.rows, .ws_col = size.cols };

	if (!size.rows || !size.cols ||
		(size.rows == s->size.rows && size.cols == s->size.cols))
		return;
	s->size = size;
	if (s->terminal >= 0)
		ioctl(s->terminal, TIOCSWINSZ, &to);
	screen_resize(&s->screen, size);
	if (s->base.record)
		record_resize(s->base.record, size.cols, size.rows);
}

static int detached_attach(struct streams *base, int *fd, const struct streams_client *c,
	struct fault *f)
{
	struct streams_detached *s = detached(base);

	for (int i = 0; i < STREAMS_VIEWERS; i++) {
		if (s->viewer[i].fd >= 0)
			continue;
		s->viewer[i] = (struct viewer){ .fd = take_fd(fd),
			.read_only = c->read_only,
			.stale = true,
			.size = { c->rows, c->cols } };
		if (!c->read_only)
			resize(s, s->viewer[i].size);
		return 0;
	}
	return fault_set(f, 0, "%d are attached to it already", STREAMS_VIEWERS);
}

/* --- input ----------------------------------------------------------------------- */

static void pass_input(struct streams_detached *s)
{
	ssize_t n = s->n_input ? write(s->terminal, s->input, s->n_input) : 0;

	if (n <= 0)
		return;
	s->n_input -= (size_t)n;
	memmove(s->input, s->input + n, s->n_input);
}

static bool type(struct streams_detached *s, const char *bytes, size_t n)
{
	if (n > sizeof(s->input) - s->n_input)
		return false;
	memcpy(s->input + s->n_input, bytes, n);
	s->n_input += n;
	pass_input(s);
	return true;
}

static int detached_type(struct streams *base, const char *bytes, size_t n, struct fault *f)
{
	struct streams_detached *s = detached(base);

	s->rang = false;
	if (!type(s, bytes, n))
		return fault_set(f, 0, "it does not read what was typed before");
	return 0;
}

static void hear_viewer(struct streams_detached *s, int i)
{
	struct viewer *v = &s->viewer[i];
	char packet[1 + VIEWER_PACKET];
	ssize_t n = recv(v->fd, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_viewer(s, i);
		return;
	}
	if (packet[0] == VIEWER_SIZE && n == 1 + sizeof(v->size))
		memcpy(&v->size, packet + 1, sizeof(v->size));
	if (v->read_only)
		return;
	resize(s, v->size);
	if (packet[0] != VIEWER_INPUT)
		return;
	s->rang = false;
	type(s, packet + 1, (size_t)n - 1);
}

/* --- output ---------------------------------------------------------------------- */

static void show_output(struct streams_detached *s, const char *bytes, size_t n)
{
	for (int i = 0; i < STREAMS_VIEWERS; i++) {
		struct viewer *v = &s->viewer[i];

		if (v->fd >= 0 && !v->stale && n && !send_packet(v, VIEWER_OUTPUT, bytes, n))
			v->stale = true;
	}
}

static void read_box(struct streams_detached *s)
{
	static char shown[VIEWER_PACKET];
	ssize_t n = read(s->terminal, s->unsent, sizeof(s->unsent));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->ended = true; /* EIO: nobody has the other side */
		return;
	}
	s->silent_since = clock_ms();
	if (s->base.record && s->base.record->buf)
		record_tap(&s->base.record->out, s->unsent, (size_t)n);
	show_output(s, shown, term_filter(&s->term, s->unsent, (size_t)n, shown));
	/* Who goes on by itself does not wait any more. */
	s->rang = (s->rang && !s->term.spins && !s->term.progress) || s->term.bell;
	s->term.bell = s->term.asked = false;
	if (!screen_output(&s->screen, s->unsent, (size_t)n))
		s->n_unsent = (size_t)n;
}

/* --- pictures -------------------------------------------------------------------- */

static bool may_draw(const struct streams_detached *s)
{
	return s->drawing == NOBODY && !s->n_unsent;
}

/* Without a screen there is no picture; the client sees the output from now on. */
static void begin_picture(struct streams_detached *s, int i)
{
	struct viewer *v = &s->viewer[i];
	char modes[TERM_RESET];
	size_t n = term_set(&s->term, modes);

	if (!send_packet(v, VIEWER_ANEW, NULL, 0) ||
		(n && !send_packet(v, VIEWER_OUTPUT, modes, n)))
		return;
	v->stale = false;
	if (!screen_draw(&s->screen))
		return;
	s->drawing = i;
	s->draw_until = clock_ms() + DRAW_MS;
}

static void take_picture(struct streams_detached *s, const char *bytes, size_t n)
{
	struct viewer *v = s->drawing == NOBODY ? NULL : &s->viewer[s->drawing];

	if (!v || v->stale || send_packet(v, VIEWER_OUTPUT, bytes, n))
		return;
	/* It will get another one, a limited number of times. */
	v->stale = true;
	if (++v->failed == PICTURES)
		drop_viewer(s, s->drawing);
}

static void hear_screen(struct streams_detached *s)
{
	static struct screen_event e;

	screen_hear(&s->screen, &e);
	switch (e.what) {
	case SCREEN_ANSWER:
		type(s, e.bytes + 1, e.n); /* a box that does not read them needs none */
		break;
	case SCREEN_PICTURE:
		take_picture(s, e.bytes + 1, e.n);
		break;
	case SCREEN_DRAWN:
		if (s->drawing != NOBODY && !s->viewer[s->drawing].stale)
			s->viewer[s->drawing].failed = 0;
		s->drawing = NOBODY;
		break;
	default:
		break;
	}
	if (!s->screen.on)
		s->drawing = NOBODY;
}

/* --- the loop -------------------------------------------------------------------- */

static int detached_timeout(struct streams *base)
{
	const struct streams_detached *s = detached(base);
	long long left = s->draw_until - clock_ms();

	if (s->drawing == NOBODY)
		return -1;
	return left > 0 ? (int)left : 0;
}

static void detached_poll(const struct streams *base, struct pollfd *fds, bool over)
{
	const struct streams_detached *s = detached_const(base);
	const bool reads = !s->ended && may_draw(s), types = s->n_input && !over && !s->ended;

	fds[AT_TERMINAL] = (struct pollfd){ .fd = reads || types ? s->terminal : -1,
		.events = (short)((reads ? POLLIN : 0) | (types ? POLLOUT : 0)) };
	fds[AT_SCREEN] = (struct pollfd){ .fd = s->screen.on ? s->screen.socket : -1,
		.events = (short)(POLLIN | (s->n_unsent ? POLLOUT : 0)) };
	for (int i = 0; i < STREAMS_VIEWERS; i++) {
		const struct viewer *v = &s->viewer[i];
		const bool draws = v->stale && may_draw(s);

		fds[AT_VIEWERS + i] = (struct pollfd){ .fd = v->fd,
			.events = (short)((s->n_input ? 0 : POLLIN) | (draws ? POLLOUT : 0)) };
	}
}

static void serve_screen(struct streams_detached *s, short revents)
{
	if (revents & (POLLIN | POLLHUP | POLLERR))
		hear_screen(s);
	if (s->n_unsent && (!s->screen.on || screen_output(&s->screen, s->unsent, s->n_unsent)))
		s->n_unsent = 0;
	if (s->drawing != NOBODY && clock_ms() >= s->draw_until) {
		s->viewer[s->drawing].stale = true;
		s->drawing = NOBODY;
	}
}

static void detached_serve(struct streams *base, const struct pollfd *fds, bool over)
{
	struct streams_detached *s = detached(base);

	serve_screen(s, fds[AT_SCREEN].revents);
	if (fds[AT_TERMINAL].revents & POLLOUT && !over)
		pass_input(s);
	/* Keep the order: the picture must contain what the screen received before. */
	for (int i = 0; i < STREAMS_VIEWERS; i++) {
		const short revents = fds[AT_VIEWERS + i].revents;

		if (s->viewer[i].fd < 0 || fds[AT_VIEWERS + i].fd != s->viewer[i].fd)
			continue;
		if (revents & POLLOUT && s->viewer[i].stale && may_draw(s))
			begin_picture(s, i);
		if (revents & (POLLIN | POLLHUP | POLLERR))
			hear_viewer(s, i);
	}
	if (fds[AT_TERMINAL].revents & (POLLIN | POLLHUP | POLLERR) && may_draw(s))
		read_box(s);
}

static bool detached_done(const struct streams *base)
{
	const struct streams_detached *s = detached_const(base);

	return s->ended && may_draw(s);
}

static void detached_refresh(struct streams *base)
{
	(void)base;
}

/* No shell has stopped us, so none would continue us: a detached box goes on. */
static void detached_suspend(struct streams *base, bool group)
{
	(void)base, (void)group;
}

static void detached_rest(struct streams *base)
{
	struct streams_detached *s = detached(base);

	if (!s->n_unsent)
		mem_drop(s->unsent, sizeof(s->unsent));
	if (!s->n_input)
		mem_drop(s->input, sizeof(s->input));
}

static void detached_close(struct streams *base, int code)
{
	struct streams_detached *s = detached(base);
	const int32_t exit_code = code;

	for (int i = 0; i < STREAMS_VIEWERS; i++) {
		if (s->viewer[i].fd < 0)
			continue;
		send_packet(&s->viewer[i], VIEWER_END, &exit_code, sizeof(exit_code));
		drop_viewer(s, i);
	}
	screen_end(&s->screen);
}

/* --- who asks -------------------------------------------------------------------- */

/*
 * The bell rang since the last key; or the box reads single keys and has been silent for a
 * while.
 */
static bool detached_waits(const struct streams *base)
{
	const struct streams_detached *s = detached_const(base);
	struct termios modes;

	if (s->rang)
		return true;
	return s->terminal >= 0 && clock_ms() - s->silent_since >= SILENT_MS &&
		tcgetattr(s->terminal, &modes) == 0 && !(modes.c_lflag & ICANON);
}

static unsigned int detached_viewers(const struct streams *base)
{
	const struct streams_detached *s = detached_const(base);
	unsigned int n = 0;

	for (int i = 0; i < STREAMS_VIEWERS; i++)
		n += s->viewer[i].fd >= 0;
	return n;
}

static const struct streams_ops ops = {
	.open = detached_open,
	.prepare = detached_prepare,
	.start = detached_start,
	.timeout = detached_timeout,
	.poll = detached_poll,
	.serve = detached_serve,
	.done = detached_done,
	.refresh = detached_refresh,
	.suspend = detached_suspend,
	.rest = detached_rest,
	.close = detached_close,
	.attach = detached_attach,
	.type = detached_type,
	.waits = detached_waits,
	.viewers = detached_viewers,
};

void streams_detached_init(struct streams_detached *s, struct record *record,
	struct screen_size size)
{
	*s = (struct streams_detached){ .base = { .ops = &ops, .record = record },
		.terminal = -1,
		.drawing = NOBODY,
		.screen = { .socket = -1 },
		.size = size };
	for (int i = 0; i < STREAMS_VIEWERS; i++)
		s->viewer[i].fd = -1;
}
