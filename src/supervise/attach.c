/*
 * supervise/attach.c - the client's side of a detached box's terminal
 *
 * Theory of operation. There are two processes: one moves the bytes, the other only waits for
 * it. They share the record of the modes that the box has set on the terminal (term-modes.h).
 * If one of them is killed, the other one restores the terminal.
 */
#include "supervise/attach.h"
#include "supervise/control.h"
#include "supervise/streams-detached.h"
#include "supervise/tty.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 5000 };

/* Shared by both processes. */
struct view {
	struct tty tty;
	struct term term;
	enum attach_end end;
	int code;
	bool done; /* the terminal was restored */
};

struct client {
	const struct attach_options *o;
	struct view *view;
	int fd, signals, guard;
	size_t matched; /* how many of the keys that detach were typed so far */
};

int attach_parse_keys(const char *text, struct attach_options *o, struct fault *f)
{
	o->n_keys = 0;
	while (*text) {
		const size_t n = strcspn(text, ",");
		const bool ctrl = n == 6 && !strncmp(text, "ctrl-", 5);
		const char c = text[n - 1];

		if (o->n_keys == ATTACH_KEYS || n == 0 || (n != 1 && !ctrl) ||
			(ctrl && !strchr("abcdefghijklmnopqrstuvwxyz@[\\]^_", c)))
			return fault_set(f, 0,
				"expected keys such as ctrl-p,ctrl-q or ctrl-], at most %d",
				ATTACH_KEYS);
		o->keys[o->n_keys++] = (unsigned char)(ctrl ? c & 0x1f : c);
		text += n + (text[n] == ',');
	}
	return 0;
}

/* ---- the terminal ---- */

static void print_text(const struct view *v, const char *text)
{
	tty_say(&v->tty, text, strlen(text));
}

/* Undo the modes that the box has set, and restore the title. */
static void undo(struct view *v, bool last)
{
	char text[TERM_RESET];
	const bool reports = term_reports(&v->term);
	size_t n;

	v->term.titled = false;
	n = term_reset(&v->term, text);
	tty_say(&v->tty, text, n);
	if (last && reports)
		tty_swallow(&v->tty);
	v->term = (struct term){ 0 };
}

static void put_back(struct view *v)
{
	if (v->done)
		return;
	v->done = true;
	undo(v, true);
	/* What the box painted below its cursor must not stand beside what the shell prints. */
	print_text(v, "\033[0m\033[23;0t\r\n\033[J");
	tty_restore(&v->tty);
}

/* ---- input ---- */

/* Copy what goes to the box; false: the keys that detach are complete. */
static bool scan_keys(struct client *c, const char *bytes, size_t n, char *out, size_t *ret_n)
{
	size_t made = 0;

	for (size_t i = 0; i < n; i++) {
		const unsigned char key = (unsigned char)bytes[i];

		if (c->o->n_keys && key == c->o->keys[c->matched]) {
			if (++c->matched == c->o->n_keys)
				return false;
			continue;
		}
		/* The user did not mean to detach: send the keys that were held back first. */
		memcpy(out + made, c->o->keys, c->matched);
		made += c->matched;
		c->matched = 0;
		if (c->o->n_keys && key == c->o->keys[0])
			c->matched = 1;
		else
			out[made++] = (char)key;
	}
	*ret_n = made;
	return true;
}

static void send_size(const struct client *c)
{
	struct winsize w;
	char packet[1 + sizeof(struct screen_size)] = { VIEWER_SIZE };
	struct screen_size size;

	tty_size(&c->view->tty, &w);
	size = (struct screen_size){ w.ws_row, w.ws_col };
	memcpy(packet + 1, &size, sizeof(size));
	send(c->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool read_keys(struct client *c)
{
	char bytes[1024], packet[1 + sizeof(bytes) + ATTACH_KEYS];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
	size_t made = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0 || !scan_keys(c, bytes, (size_t)n, packet + 1, &made))
		return false;
	packet[0] = VIEWER_INPUT;
	/* If a box does not read, the socket is full in the end, and this message is lost. */
	if (made && !c->o->read_only)
		send(c->fd, packet, 1 + made, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

/* ---- output ---- */

static bool hear_box(struct client *c)
{
	static char packet[1 + VIEWER_PACKET];
	struct view *v = c->view;
	ssize_t n = recv(c->fd, packet, sizeof(packet), 0);
	int32_t code;

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0) {
		v->end = ATTACH_LOST;
		return false;
	}
	if (packet[0] == VIEWER_OUTPUT) {
		term_follow(&v->term, packet + 1, (size_t)n - 1);
		return fd_write_all(STDOUT_FILENO, packet + 1, (size_t)n - 1) == 0;
	}
	if (packet[0] == VIEWER_ANEW)
		undo(v, false);
	if (packet[0] == VIEWER_END && n == 1 + sizeof(code)) {
		memcpy(&code, packet + 1, sizeof(code));
		v->end = ATTACH_ENDED;
		v->code = code;
		return false;
	}
	return true;
}

static bool hear_signal(struct client *c)
{
	struct signalfd_siginfo info;

	if (read(c->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT)
		return false;
	tty_raw(&c->view->tty);
	send_size(c);
	return true;
}

static void move(struct client *c)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = c->fd, .events = POLLIN }, { .fd = c->signals, .events = POLLIN },
		{ .fd = c->guard } };

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[3].revents || (fds[2].revents && !hear_signal(c)) ||
			(fds[1].revents && !hear_box(c)) || (fds[0].revents && !read_keys(c)))
			return;
	}
}

/* ---- the two ---- */

static const int ends[] = { SIGTERM, SIGHUP, SIGINT };

static void block(int extra, int more, sigset_t *ret)
{
	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		sigaddset(ret, ends[i]);
	sigaddset(ret, extra);
	sigaddset(ret, more);
	sigprocmask(SIG_BLOCK, ret, NULL);
}

static _Noreturn void mover(struct client *c)
{
	sigset_t set;

	block(SIGWINCH, SIGCONT, &set);
	signal(SIGPIPE, SIG_IGN);
	c->signals = signalfd(-1, &set, SFD_CLOEXEC);
	c->view->tty.owner = 0;
	tty_raw(&c->view->tty);
	print_text(c->view, "\033[22;0t");
	move(c);
	put_back(c->view);
	_exit(0);
}

/* A signal that ends us is meant for the other process too. */
static void guard(struct view *v, pid_t pid)
{
	sigset_t set;
	int sig;

	block(SIGCHLD, SIGCHLD, &set);
	while (waitpid(pid, NULL, WNOHANG) != pid)
		if (sigwait(&set, &sig) == 0 && sig != SIGCHLD)
			kill(pid, sig);
	v->tty.owner = getpid(); /* the process that made it raw is gone */
	put_back(v);
}

int attach_box(const char *name, const struct attach_options *o, enum attach_end *ret,
	int *ret_code, struct fault *f)
{
	struct view *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	auto_close int fd = -1;
	struct winsize size;
	int pipe_ends[2], rc;
	pid_t pid;

	if (v == MAP_FAILED || pipe2(pipe_ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "prepare to attach");
	if (!tty_open(&v->tty, STDIN_FILENO, STDOUT_FILENO)) {
		fault_set(f, 0, "there is no terminal here to show the box on");
		return fault_fix(f, "`carrel logs` and `carrel send` need none.");
	}
	tty_size(&v->tty, &size);
	rc = control_keep(name,
		control_ask_attach(&(struct streams_client){
			.rows = size.ws_row, .cols = size.ws_col, .read_only = o->read_only }),
		WAIT_MS, NULL, 0, &fd, f);
	if (rc < 0)
		return rc;
	pid = fork();
	if (pid == 0) {
		close(pipe_ends[1]);
		mover(&(struct client){ .o = o, .view = v, .fd = fd, .guard = pipe_ends[0] });
	}
	close(pipe_ends[0]);
	fd_close(&fd);
	if (pid < 0)
		return fault_set(f, errno, "start a process");
	guard(v, pid);
	*ret = v->end;
	*ret_code = v->code;
	return 0;
}
