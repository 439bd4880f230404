/*
 * supervise/relay.c - copy bytes from one descriptor to another, in an event loop
 *
 * Theory of operation. The supervisor is one thread in one poll(2): a relay must
 * never sleep in a read or a write, or Ctrl-C, the time limit and the other
 * streams sleep with it. But the streams we are given at the start are shared
 * descriptions - with the user's shell, with the next command of the pipeline -
 * and O_NONBLOCK is a property of the description, so setting it would break
 * them (a shell that reads EAGAIN exits). Hence, in this order:
 *
 *  1. Get a description of our own. Opening /proc/self/fd/N makes one for pipes
 *     and terminals; for the controlling terminal /dev/tty works even when its
 *     device belongs to somebody else (su). relay_reopen() does that.
 *  2. Ask for no waiting per call: splice has SPLICE_F_NONBLOCK, which covers
 *     both pipes whatever their flags, sockets have MSG_DONTWAIT.
 *  3. Else poll right before the call, and write no more than PIPE_BUF: a pipe
 *     that polls writable has room for one page. Others who use the same pipe may
 *     come between; so may a terminal that is nearly full. That remains, only
 *     where 1 and 2 fail.
 *
 * Regular files count as always ready, as they do for poll.
 *
 * Two ways to move. Much at once from pipe to pipe or file, and files to pipes, go by
 * splice: no copy through here, no memory. All others, and whatever is recorded, go
 * through a buffer that is filled only when empty. A splice that the kernel refuses
 * (O_APPEND, some file systems) becomes the buffered way on the spot; nothing has
 * moved by then.
 *
 * What to wait for. With a buffer it is plain: the destination when there are
 * bytes, else the source. splice only says EAGAIN, not which side it means, and
 * waiting for both would spin when one is ready and the other is not. So we wait
 * for one side at a time and change sides when a wake-up moved nothing: at worst
 * one wasted round, never a spin.
 *
 * Memory. A struct relay is small; the buffer is mapped at the first byte that
 * needs it and costs what was touched: a page for typing. relay_idle() returns
 * the rest after a burst. Nothing here allocates from mem.h.
 */
#include "supervise/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	RELAY_BUFFER = 64 * 1024,
	RELAY_PAGE = 4096,
	/* Bytes in one pump: the loop must come round to signals and other streams. */
	RELAY_TURN = 1024 * 1024,
	/*
	 * A stream that is this long deserves larger pipes: fewer wake-ups. Four times
	 * the usual size gives all of the gain (1 MiB measured no faster), and a user
	 * has 64 MiB for all pipes before new ones shrink to two pages.
	 */
	RELAY_GROW_AFTER = 64 * 1024,
	RELAY_PIPE_SIZE = 256 * 1024,
	RELAY_BULK = 32 * 1024, /* so much at once is worth a splice */
};

static bool is_device(const struct stat *st, unsigned int major_nr, unsigned int minor_nr)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(major_nr, minor_nr);
}

static enum relay_kind kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return RELAY_OTHER;
	if (S_ISFIFO(st.st_mode))
		return RELAY_PIPE;
	if (S_ISSOCK(st.st_mode))
		return RELAY_SOCKET;
	/* /dev/null is always ready and takes a splice: all that we ask of a file. */
	if (S_ISREG(st.st_mode) || is_device(&st, 1, 3))
		return RELAY_FILE;
	return isatty(fd) ? RELAY_TTY : RELAY_OTHER;
}

/* Is it open? */
static bool end_init(struct relay_end *e, int fd)
{
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

	e->fd = fd;
	e->kind = flags < 0 ? RELAY_OTHER : kind_of(fd);
	e->blocks = flags >= 0 && !(flags & O_NONBLOCK) && e->kind != RELAY_FILE &&
		e->kind != RELAY_SOCKET;
	return flags >= 0;
}

/* A pipe that has no name: once its reader is gone, no other will come. */
static bool is_anonymous(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

static bool can_splice(const struct relay *r)
{
	if (r->from.kind == RELAY_PIPE)
		return r->to.kind == RELAY_PIPE || r->to.kind == RELAY_FILE;
	return r->from.kind == RELAY_FILE && r->to.kind == RELAY_PIPE;
}

static void finish_relay(struct relay *r, enum relay_state state, int err)
{
	r->state = state;
	r->err = err;
}

void relay_init(struct relay *r, int from, int to)
{
	bool has_from, has_to;

	*r = (struct relay){ .state = RELAY_OPEN };
	has_from = end_init(&r->from, from);
	has_to = end_init(&r->to, to);
	r->splice = can_splice(r);
	r->watch = r->to.kind == RELAY_PIPE && is_anonymous(r->to.fd);
	if (!has_to)
		finish_relay(r, RELAY_BROKEN, EBADF);
	else if (!has_from)
		finish_relay(r, RELAY_EOF, 0);
}

void relay_tap(struct relay *r, relay_tap_fn *tap, void *ctx)
{
	r->tap = tap;
	r->tap_ctx = ctx;
	r->splice = false;
}

static bool waits_for_destination(const struct relay *r)
{
	return r->len > 0 || (r->splice && r->full && !r->hold);
}

void relay_poll(const struct relay *r, struct pollfd *pfd)
{
	pfd[0] = pfd[1] = (struct pollfd){ .fd = -1 };
	if (r->state != RELAY_OPEN)
		return;
	if (waits_for_destination(r)) {
		pfd[1] = (struct pollfd){ .fd = r->to.fd, .events = POLLOUT };
		return;
	}
	if (!r->hold)
		pfd[0] = (struct pollfd){ .fd = r->from.fd, .events = POLLIN };
	/*
	 * Without us, the first write after the reader left would fail. Noticing
	 * it now, not at our own next write, keeps it so.
	 */
	if (r->watch)
		pfd[1] = (struct pollfd){ .fd = r->to.fd, .events = 0 };
}

static bool ready(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, 0) > 0;
}

static bool try_again(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

static bool map_buffer(struct relay *r)
{
	void *p;

	if (r->buf)
		return true;
	p = mmap(NULL, RELAY_BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	if (p == MAP_FAILED) {
		finish_relay(r, RELAY_BROKEN, errno);
		return false;
	}
	r->buf = p;
	return true;
}

/*
 * A read error ends the source like an end of file does. Two of them are the end:
 * EIO from a terminal that was hung up or whose other side is closed, and EBADF
 * from a stream that is not open for reading.
 */
static void source_ended(struct relay *r, int err)
{
	bool plain = err == EBADF || (err == EIO && r->from.kind == RELAY_TTY);

	finish_relay(r, RELAY_EOF, plain ? 0 : err);
}

/* Read into the empty buffer; true when there are bytes now. */
static bool fill_buffer(struct relay *r)
{
	ssize_t n;

	if (r->hold || !map_buffer(r))
		return false;
	if (r->from.blocks && !ready(r->from.fd, POLLIN))
		return false;
	if (r->from.kind == RELAY_SOCKET)
		n = recv(r->from.fd, r->buf, RELAY_BUFFER, MSG_DONTWAIT);
	else
		n = read(r->from.fd, r->buf, RELAY_BUFFER);
	if (n < 0 && try_again(errno))
		return false;
	if (n <= 0) {
		source_ended(r, n < 0 ? errno : 0);
		return false;
	}
	r->start = 0;
	r->len = (size_t)n;
	if (r->tap)
		r->tap(r->tap_ctx, r->buf, r->len);
	return true;
}

static ssize_t write_some(const struct relay_end *to, const char *bytes, size_t n)
{
	if (to->kind == RELAY_SOCKET)
		return send(to->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (to->blocks && n > PIPE_BUF)
		n = PIPE_BUF;
	return write(to->fd, bytes, n);
}

/* Write what the buffer holds; true when all of it went. */
static bool drain(struct relay *r)
{
	while (r->len) {
		ssize_t n;

		if (r->to.blocks && !ready(r->to.fd, POLLOUT))
			return false;
		n = write_some(&r->to, r->buf + r->start, r->len);
		if (n < 0) {
			if (!try_again(errno))
				finish_relay(r, RELAY_BROKEN, errno);
			return false;
		}
		r->start += (size_t)n;
		r->len -= (size_t)n;
		r->moved += (size_t)n;
	}
	return true;
}

static void pump_buffer(struct relay *r)
{
	unsigned long long enough = r->moved + RELAY_TURN;

	while (r->moved < enough) {
		if (!r->len && !fill_buffer(r))
			return;
		if (!drain(r))
			return;
	}
}

/* What is there now, which may be the beginning of more than belongs through the buffer. */
static void pump_some(struct relay *r)
{
	r->full = false;
	pump_buffer(r);
}

/* Best effort: the user's quota of pipe memory may say no, and then it stays as it is. */
static void grow_pipe(const struct relay_end *e)
{
	if (e->kind == RELAY_PIPE && fcntl(e->fd, F_GETPIPE_SZ) < RELAY_PIPE_SIZE)
		fcntl(e->fd, F_SETPIPE_SZ, RELAY_PIPE_SIZE);
}

static void grow_pipes(struct relay *r)
{
	if (r->grown || r->moved <= RELAY_GROW_AFTER)
		return;
	r->grown = true;
	grow_pipe(&r->from);
	grow_pipe(&r->to);
}

/*
 * splice has failed. The error does not say which side it is from; a pipe cannot
 * fail to be read, and a file that cannot be read (EIO, EISDIR) is an end.
 */
static void splice_failed(struct relay *r, int err, bool moved)
{
	if (try_again(err)) {
		r->full = !moved && !r->full;
	} else if (err == EINVAL) {
		r->splice = false;
		pump_buffer(r);
	} else if (r->from.kind == RELAY_FILE && err != EPIPE) {
		source_ended(r, err);
	} else {
		finish_relay(r, RELAY_BROKEN, err);
	}
}

static void pump_splice(struct relay *r)
{
	unsigned long long begin = r->moved;

	while (r->moved - begin < RELAY_TURN) {
		ssize_t n = splice(r->from.fd, NULL, r->to.fd, NULL, RELAY_TURN,
			SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

		if (n < 0) {
			splice_failed(r, errno, r->moved != begin);
			return;
		}
		if (n == 0) {
			finish_relay(r, RELAY_EOF, 0);
			return;
		}
		r->moved += (unsigned long long)n;
		grow_pipes(r);
	}
}

/*
 * Spliced, each write of the box takes a whole slot of the reader's pipe, and sixteen short
 * lines would fill it: one who waits for our end before reading would wait for ever. So by
 * splice only what fills pages.
 */
static bool is_bulk(const struct relay *r)
{
	int n;

	if (!r->splice || r->len)
		return false;
	return r->from.kind != RELAY_PIPE ||
		(ioctl(r->from.fd, FIONREAD, &n) == 0 && n >= RELAY_BULK);
}

/*
 * Nothing in it, and nobody to write: a read would say the same, into a buffer of its own. That
 * poll(2) says POLLHUP alone is not enough. It looks for bytes first and for writers then,
 * without a lock (fs/pipe.c, pipe_poll), and the last ones may come in between.
 */
static bool is_empty_pipe(const struct relay *r, short revents)
{
	int n;

	return revents == POLLHUP && r->from.kind == RELAY_PIPE && !r->len &&
		ioctl(r->from.fd, FIONREAD, &n) == 0 && n == 0;
}

void relay_pump(struct relay *r, const struct pollfd *pfd)
{
	if (r->state != RELAY_OPEN || !(pfd[0].revents | pfd[1].revents))
		return;
	if (!pfd[1].events && (pfd[1].revents & (POLLERR | POLLNVAL)))
		finish_relay(r, RELAY_BROKEN, EPIPE);
	else if (is_empty_pipe(r, pfd[0].revents))
		finish_relay(r, RELAY_EOF, 0);
	else if (is_bulk(r) && !r->hold)
		pump_splice(r);
	else
		pump_some(r);
}

void relay_idle(struct relay *r)
{
	/* The first page stays: a prompt and a keystroke should not fault each time. */
	if (r->buf && !r->len)
		madvise(r->buf + RELAY_PAGE, RELAY_BUFFER - RELAY_PAGE, MADV_DONTNEED);
}

/* The terminal that fd is, by its device number, whatever name it was opened by; or -1. */
static int64_t terminal_number(int fd)
{
	unsigned int dev;

	/* The C libraries do not agree on the type of ioctl()'s second argument. */
	return syscall(SYS_ioctl, fd, TIOCGDEV, &dev) < 0 ? -1 : (int64_t)dev;
}

static int reopen_controlling(int fd, int flags)
{
	int own = open("/dev/tty", flags);

	if (own >= 0 && terminal_number(own) != terminal_number(fd)) {
		close(own);
		return -1;
	}
	return own;
}

/* Could fd be opened once more and be the same stream? Opening ptmx makes a new terminal. */
static bool is_reopenable(int fd, int mode, const struct stat *st)
{
	int access;

	if (!S_ISFIFO(st->st_mode) && !S_ISCHR(st->st_mode))
		return false;
	access = fcntl(fd, F_GETFL) & O_ACCMODE;
	if (access != mode && access != O_RDWR)
		return false;
	return S_ISFIFO(st->st_mode) || (isatty(fd) && !is_device(st, 5, 2));
}

/*
 * A named pipe that is opened when its last writer has left waits for the next one, and there
 * may be none: its end only those see who had it open before.
 */
static bool has_ended(int fd, const struct stat *st)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return S_ISFIFO(st->st_mode) && poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLHUP) &&
		!is_anonymous(fd);
}

int relay_reopen(int fd, int mode)
{
	int flags = mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	char path[40];
	struct stat st;
	int own = -1;

	if (fstat(fd, &st) < 0)
		return -1;
	if (is_reopenable(fd, mode, &st)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		own = open(path, flags);
		if (own < 0 && S_ISCHR(st.st_mode))
			own = reopen_controlling(fd, flags);
		if (own >= 0 && mode == O_RDONLY && has_ended(fd, &st)) {
			close(own);
			own = -1;
		}
	}
	return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}
