/*
 * supervise/exec-client.c - run a further command in a box, on our own streams
 *
 * The streams are those of `carrel run` (streams-own.h): the box gets the ends of pipes that
 * are made for it, or makes a terminal, and we move the bytes.
 */
#include "supervise/exec-client.h"
#include "supervise/control.h"
#include "supervise/execs.h"
#include "supervise/streams-own.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/sock.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 5000, AT_BOX = STREAMS_FDS, AT_SIGNALS, FDS };

struct exec_client {
	struct streams_own streams;
	int fd, signals;
	bool over;
	int code;
};

static int open_signals(void)
{
	static const int all[] = { SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
		SIGCONT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		sigaddset(&set, all[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int ask_exec(struct exec_client *c, const char *name, const char *const *argv,
	struct box_io *io, struct fault *f)
{
	const int ends[3] = { io->in, io->out, io->err };
	int fds[3], rc;
	size_t n = 0;

	for (int i = 0; i < 3; i++)
		if (ends[i] >= 0)
			fds[n++] = ends[i];
	rc = control_keep(name, control_ask_exec(argv, io, getenv("TERM")), WAIT_MS, fds, n,
		&c->fd, f);
	fd_close(&io->in);
	fd_close(&io->out);
	fd_close(&io->err);
	return rc;
}

/* Read one packet; -1: there will be no more. */
static int receive(const struct exec_client *c, char *ret_letter, int32_t *ret_value,
	int *ret_fd)
{
	char packet[1 + sizeof(*ret_value)];
	int fds[SOCK_FDS];
	size_t n;

	if (sock_receive(c->fd, packet, sizeof(packet), fds, &n, 0) != sizeof(packet))
		return -1;
	*ret_letter = packet[0];
	memcpy(ret_value, packet + 1, sizeof(*ret_value));
	*ret_fd = n ? fds[0] : -1;
	return 0;
}

static int await_start(const struct exec_client *c, const char *program, int *ret_terminal,
	struct fault *f)
{
	int32_t value = 0;
	char letter = 0;
	int fd = -1;

	if (receive(c, &letter, &value, &fd) < 0 || letter == EXEC_ENDED)
		return fault_set(f, 0, "the box ended before the command began");
	if (letter == EXEC_STARTED) {
		*ret_terminal = fd;
		return 0;
	}
	strcpy(f->step, "exec");
	fault_set(f, value, "run '%s' in the box", str_visible(program));
	if (value == ENOENT)
		return fault_fix(f, "There is no such program in the box.");
	return -value;
}

static void hear_box(struct exec_client *c)
{
	int32_t value = 0;
	char letter = 0;
	int fd = -1;

	if (receive(c, &letter, &value, &fd) < 0) {
		letter = EXEC_ENDED;
		value = 128 + SIGKILL;
	}
	fd_close(&fd);
	if (letter == EXEC_ENDED) {
		c->over = true;
		c->code = value;
	}
}

static void hear_signal(struct exec_client *c)
{
	struct signalfd_siginfo info;
	char packet[1 + sizeof(int32_t)] = { EXEC_SIGNAL };

	if (read(c->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH || info.ssi_signo == SIGCONT) {
		c->streams.base.ops->refresh(&c->streams.base);
		return;
	}
	memcpy(packet + 1, &(int32_t){ (int32_t)info.ssi_signo }, sizeof(int32_t));
	send(c->fd, packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void client_loop(struct exec_client *c)
{
	struct streams *s = &c->streams.base;
	struct pollfd fds[FDS];

	while (!c->over || !s->ops->done(s)) {
		int timeout = s->ops->timeout(s);

		s->ops->poll(s, fds, c->over);
		fds[AT_BOX] = (struct pollfd){ .fd = c->over ? -1 : c->fd, .events = POLLIN };
		fds[AT_SIGNALS] = (struct pollfd){ .fd = c->signals, .events = POLLIN };
		if (poll(fds, FDS, timeout) < 0)
			continue;
		s->ops->serve(s, fds, c->over);
		if (fds[AT_BOX].revents)
			hear_box(c);
		if (fds[AT_SIGNALS].revents)
			hear_signal(c);
	}
	s->ops->close(s, c->code);
}

int exec_in_box(const char *name, const char *const *argv, int *ret_code, struct fault *f)
{
	struct exec_client *c = mem_alloc(sizeof(*c));
	struct box_io io = { .in = -1, .out = -1, .err = -1 };
	int terminal = -1, rc;

	c->fd = -1;
	streams_own_init(&c->streams, NULL);
	rc = c->streams.base.ops->open(&c->streams.base, &io, f);
	if (rc == 0)
		rc = ask_exec(c, name, argv, &io, f);
	if (rc == 0)
		rc = await_start(c, argv[0], &terminal, f);
	if (rc < 0)
		return rc;
	c->signals = open_signals();
	c->streams.base.ops->start(&c->streams.base, terminal);
	client_loop(c);
	*ret_code = c->code;
	return 0;
}
