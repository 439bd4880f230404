/*
 * box/native/init.c - pid 1 of the box
 *
 * It reaps orphans, forwards the supervisor's signals to the command, and reports when the
 * command stopped or ended. It lives in the box's namespaces under the same Landlock domain,
 * seccomp program and empty capability sets as the command, so controlling it gains nothing.
 *
 * When the command has ended, init kills and reaps everything else in the box before it tells
 * the supervisor. So what carrel does on the host afterwards (removing stubs, looking for
 * planted files) cannot race with anything in the box.
 */
#include "box/native/native.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUIET_MS = 500 };

/*
 * kill(-1) visits every process of the machine, so first check whether there is anything to
 * kill. A process in a pid namespace has a living parent there: its own or, when that has
 * ended, an ancestor, in the end pid 1. So every living process descends from a child of ours;
 * without children the box is empty and nothing can start in it. (A process put in here from
 * outside by setns(2) has its parent outside. It belongs to the host, and dies with us in a
 * moment.)
 */
static void end_box(const struct native *n, int status)
{
	pid_t pid = waitpid(-1, NULL, WNOHANG | __WALL);

	while (pid >= 0 || errno != ECHILD) {
		kill(-1, SIGKILL);
		pid = waitpid(-1, NULL, __WALL);
	}
	wire_send(n->control, &(struct wire){ .type = WIRE_EXITED, .value = status });
	_exit(0);
}

static void reap(const struct native *n)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != n->command) {
			exec_more_ended(n, pid, status);
			continue;
		}
		if (!WIFSTOPPED(status))
			end_box(n, status);
		/*
		 * Nothing may run while the supervisor is stopped, because it cannot enforce
		 * the time limit then.
		 */
		if (n->terminal >= 0)
			kill(-1, SIGSTOP);
		wire_send(n->control,
			&(struct wire){ .type = WIRE_STOPPED, .value = WSTOPSIG(status) });
	}
}

static void pass_signal(const struct native *n, const struct wire *w)
{
	/*
	 * A resumed job must be in the foreground again: whoever stopped it may have taken the
	 * terminal.
	 */
	if (w->value == SIGCONT && n->terminal >= 0)
		tcsetpgrp(n->terminal, n->command);
	if (w->value == SIGSTOP || w->value == SIGCONT)
		kill(-1, w->value);
	else
		kill(w->group ? -n->command : n->command, w->value);
}

/* A socket to dial a server in the box: only a socket of the box's network reaches it. */
static void give_socket(const struct native *n)
{
	int s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (s < 0)
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	wire_send_fd(n->control, &(struct wire){ .type = WIRE_SOCKET }, s);
	if (s >= 0)
		close(s);
}

static void hear_supervisor(const struct native *n)
{
	struct wire w;
	auto_close int fd = -1;
	ssize_t got = wire_receive(n->control, &w, NULL, &fd, MSG_DONTWAIT);

	if (got == 0)
		_exit(0); /* the supervisor is gone, and the box goes with its init */
	if (got == sizeof(w) && w.type == WIRE_SIGNAL)
		pass_signal(n, &w);
	if (got == sizeof(w) && w.type == WIRE_SOCKET)
		give_socket(n);
	if (got == sizeof(w))
		exec_more_hear(n, &w, &fd);
}

void init_loop(struct native *n)
{
	struct pollfd poll_fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo info;
	int patience = QUIET_MS;
	sigset_t child;

	/* Unmap the memory shared with the supervisor as soon as nothing in it is needed. */
	mem_release(n->shared);
	n->plan = NULL;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	poll_fds[0].fd = n->control;
	poll_fds[1].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	for (int fd = 0; fd <= 2; fd++)
		close(fd); /* otherwise the streams' readers would never see their end */
	reap(n);           /* children that ended before the signalfd existed */
	for (;;) {
		int ready = poll(poll_fds, 2, patience);

		if (ready == 0) {
			exec_trim(); /* a box may idle for days */
			patience = -1;
			ready = mem_rest(poll_fds, 2, patience);
		}
		if (ready <= 0)
			continue;
		if (poll_fds[1].revents && read(poll_fds[1].fd, &info, sizeof(info)) > 0)
			reap(n);
		if (poll_fds[0].revents)
			hear_supervisor(n);
	}
}
