/*
 * supervise/streams-own.c - the streams of this process: its terminal, or pipes and files
 *
 * On a terminal the box has a pty of its own, else three pipes; a relay for each direction
 * moves the bytes. The box never gets a descriptor of the host's.
 */
#include "supervise/streams-own.h"
#include "supervise/asciicast.h"
#include "box/engine.h"
#include "base/fault.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	BACKGROUND_MS = 250, /* how often to check whether we are in the foreground */
	IN = 0,
	OUT,
	ERR,
	STREAMS,
};

static struct streams_own *own(struct streams *s)
{
	return (struct streams_own *)s;
}

static const struct streams_own *own_const(const struct streams *s)
{
	return (const struct streams_own *)s;
}

/* --- beginning ------------------------------------------------------------------- */

/* Is the stream closed, or /dev/null? Then the box gets its own, and nothing needs relaying. */
static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

/* Make a pipe: our end is s->ends[i], the box's *ret_box_end. An absent stream needs none. */
static int open_stream(struct streams_own *s, int i, int *ret_box_end, struct fault *f)
{
	int ends[2], ours = i == IN ? 1 : 0;

	if (is_null(i))
		return 0;
	s->host[i] = relay_reopen(i, i == IN ? O_RDONLY : O_WRONLY);
	if (s->host[i] < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "make a pipe for the box");
	fcntl(ends[ours], F_SETFL, O_NONBLOCK);
	s->ends[i] = ends[ours];
	*ret_box_end = ends[!ours];
	return 0;
}

static int own_open(struct streams *base, struct box_io *io, struct fault *f)
{
	int *const box_ends[STREAMS] = { &io->in, &io->out, &io->err };
	struct streams_own *s = own(base);
	struct winsize size;
	int rc = 0;

	tty_size(&s->tty, &size);
	io->rows = size.ws_row;
	io->cols = size.ws_col;
	io->terminal = s->tty.is_tty;
	if (io->terminal) {
		io->termios = tty_cooked(&s->tty);
		s->host[IN] = relay_reopen(0, O_RDONLY);
		s->host[OUT] = relay_reopen(1, O_WRONLY);
		io->err_apart = !isatty(STDERR_FILENO);
		return io->err_apart ? open_stream(s, ERR, &io->err, f) : 0;
	}
	for (int i = 0; rc == 0 && i < STREAMS; i++)
		rc = open_stream(s, i, box_ends[i], f);
	return rc;
}

static int own_prepare(struct streams *base, const char *name, struct fault *f)
{
	(void)base, (void)name, (void)f;
	return 0;
}

/* Sees all output of the box's terminal before the user's terminal gets it. */
static void follow_output(void *ctx, const char *bytes, size_t n)
{
	struct streams_own *s = ctx;

	term_follow(&s->term, bytes, n);
	if (s->base.record && s->base.record->buf)
		record_tap(&s->base.record->out, bytes, n);
}

static void own_start(struct streams *base, int terminal)
{
	struct streams_own *s = own(base);

	s->terminal = terminal;
	if (terminal >= 0) {
		fcntl(terminal, F_SETFL, O_NONBLOCK);
		relay_init(&s->relay[IN], s->host[IN], terminal);
		relay_init(&s->relay[OUT], terminal, s->host[OUT]);
		relay_tap(&s->relay[OUT], follow_output, s);
	} else {
		relay_init(&s->relay[IN], s->host[IN], s->ends[IN]);
		relay_init(&s->relay[OUT], s->ends[OUT], s->host[OUT]);
	}
	relay_init(&s->relay[ERR], s->ends[ERR], s->host[ERR]);
	if (base->record && base->record->buf) {
		if (terminal < 0)
			relay_tap(&s->relay[OUT], record_tap, &base->record->out);
		relay_tap(&s->relay[ERR], record_tap, &base->record->err);
	}
}

/* --- while the box runs ---------------------------------------------------------- */

/*
 * Reading the terminal from the background would stop us: wait until we are in the foreground.
 */
static int own_timeout(struct streams *base)
{
	struct streams_own *s = own(base);

	s->relay[IN].hold = !tty_foreground(&s->tty);
	if (s->relay[IN].hold && s->relay[IN].state == RELAY_OPEN)
		return BACKGROUND_MS;
	if (s->terminal >= 0 && !s->tty.raw)
		tty_raw(&s->tty);
	return -1;
}

static void own_poll(const struct streams *base, struct pollfd *fds, bool over)
{
	const struct streams_own *s = own_const(base);

	for (int i = 0; i < STREAMS; i++)
		relay_poll(&s->relay[i], &fds[2 * i]);
	for (int i = 2 * STREAMS; i < STREAMS_FDS; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	/* After the end nobody reads input. */
	if (over)
		fds[0].fd = fds[1].fd = -1;
}

/*
 * A relay that is done closes the end that tells the box: the end of its input, or
 * that nobody reads its output any more (SIGPIPE). The pty closes with the box.
 */
static void own_serve(struct streams *base, const struct pollfd *fds, bool over)
{
	struct streams_own *s = own(base);

	base->raw = s->tty.raw;
	for (int i = over ? OUT : IN; i < STREAMS; i++) {
		relay_pump(&s->relay[i], &fds[2 * i]);
		if (s->relay[i].state != RELAY_OPEN)
			fd_close(&s->ends[i]);
	}
}

static bool own_done(const struct streams *base)
{
	const struct streams_own *s = own_const(base);

	return s->relay[OUT].state != RELAY_OPEN && s->relay[ERR].state != RELAY_OPEN;
}

static void pass_size(struct streams_own *s)
{
	struct winsize size;

	if (s->terminal < 0)
		return;
	tty_size(&s->tty, &size);
	ioctl(s->terminal, TIOCSWINSZ, &size);
	if (s->base.record)
		record_resize(s->base.record, size.ws_col, size.ws_row);
}

static void own_refresh(struct streams *base)
{
	struct streams_own *s = own(base);

	if (s->terminal >= 0)
		tty_raw(&s->tty);
	pass_size(s);
}

static void own_suspend(struct streams *base, bool group)
{
	struct streams_own *s = own(base);

	tty_suspend(&s->tty, group);
	pass_size(s);
}

static void own_rest(struct streams *base)
{
	for (int i = 0; i < STREAMS; i++)
		relay_idle(&own(base)->relay[i]);
}

/*
 * Undo the modes that the box has set, and drop what the terminal still sends (a late answer,
 * the mouse): it would be typed into the user's shell.
 */
static void own_close(struct streams *base, int code)
{
	struct streams_own *s = own(base);
	char text[TERM_RESET];
	size_t n;

	(void)code;
	if (s->terminal >= 0 && s->tty.raw && tty_foreground(&s->tty)) {
		/*
		 * How long ago a question was asked says nothing about the answer: the line may
		 * be slow, or we may have had no processor.
		 */
		n = term_reset(&s->term, text);
		tty_say(&s->tty, text, n);
		if (term_reports(&s->term))
			tty_swallow(&s->tty);
	}
	tty_restore(&s->tty);
}

static const struct streams_ops ops = {
	.open = own_open,
	.prepare = own_prepare,
	.start = own_start,
	.timeout = own_timeout,
	.poll = own_poll,
	.serve = own_serve,
	.done = own_done,
	.refresh = own_refresh,
	.suspend = own_suspend,
	.rest = own_rest,
	.close = own_close,
};

void streams_own_init(struct streams_own *s, struct record *record)
{
	*s = (struct streams_own){ .base = { .ops = &ops, .record = record }, .terminal = -1 };
	for (int i = 0; i < STREAMS; i++)
		s->host[i] = s->ends[i] = -1;
	tty_open(&s->tty, 0, 1);
}
