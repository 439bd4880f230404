/*
 * box/native/init.c - pid 1 of the box
 *
 * Reaps what nobody waits for, passes on the signals the supervisor sends, and says when
 * the command stopped or ended. It lives in the box's namespaces under the same Landlock
 * domain, seccomp program and empty capability sets as the command, so there is
 * nothing to gain from it.
 *
 * When the command has ended everything else in the box is killed and reaped before the
 * supervisor hears of it: what is done on the host afterwards (removing stubs, looking for
 * planted files) then cannot race with anything in the box.
 */
#include "box/native/native.h"
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
 * To kill all is to look at every process of the machine, so first we ask whether there is
 * anything to kill. Whatever lives in a pid namespace has a parent that lives: its own or,
 * when that has ended, one further up, at last pid 1. So at the top of every living process's
 * line is a child of ours; without any there is nobody, and nobody to start another. (What
 * somebody put in here from outside, by setns(2), has its parent there. It is the
 * host's own, and goes with us in a moment.)
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
		if (pid != n->command)
			continue;
		if (!WIFSTOPPED(status))
			end_box(n, status);
		/* Nothing goes on behind a stopped supervisor, whose clock stands still. */
		if (n->terminal >= 0)
			kill(-1, SIGSTOP);
		wire_send(n->control,
			&(struct wire){ .type = WIRE_STOPPED, .value = WSTOPSIG(status) });
	}
}

static void pass_signal(const struct native *n, const struct wire *w)
{
	/* A job that goes on must be in front again: whoever stopped it may have taken over. */
	if (w->value == SIGCONT && n->terminal >= 0)
		tcsetpgrp(n->terminal, n->command);
	if (w->value == SIGSTOP || w->value == SIGCONT)
		kill(-1, w->value);
	else
		kill(w->group ? -n->command : n->command, w->value);
}

/* To dial a server in the box with: only from in here is there a way to it. */
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
	ssize_t got = recv(n->control, &w, sizeof(w), MSG_DONTWAIT);

	if (got == 0)
		_exit(0); /* the supervisor is gone, and the box goes with its init */
	if (got == sizeof(w) && w.type == WIRE_SIGNAL)
		pass_signal(n, &w);
	if (got == sizeof(w) && w.type == WIRE_SOCKET)
		give_socket(n);
}

void init_loop(struct native *n)
{
	struct pollfd poll_fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo info;
	int patience = QUIET_MS;
	sigset_t child;

	/* The memory that is the supervisor's too, as soon as nothing in it is needed here. */
	mem_release(n->shared);
	n->plan = NULL;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	poll_fds[0].fd = n->control;
	poll_fds[1].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	for (int fd = 0; fd <= 2; fd++)
		close(fd); /* or the streams' readers would never see their end */
	reap(n);           /* what ended before the signalfd was there */
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
