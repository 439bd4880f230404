/*
 * supervise/tty.c - the host's terminal
 *
 * Theory of operation. The box has a pty of its own; the host's terminal becomes
 * a wire to it. Raw mode makes it so: no echo, no line editing, no signals from
 * keys, no newline translation - the box's line discipline does all that, inside.
 *
 * Whose terminal is it? A terminal has one foreground process group. Only a process of that
 * group may read (else SIGTTIN stops it) or change modes (else SIGTTOU does). Not being stopped
 * would be worse: modes that are changed from the background change under the shell's line
 * editor. So modes are changed only in the foreground, with SIGTTOU blocked between the check
 * and the change. A terminal that is not our controlling one (setsid), or no terminal at all,
 * has no such rules: tcgetpgrp() fails and we count as in the foreground.
 *
 * Which modes are "as found"? Those at the moment raw mode begins, not those at
 * the start: started with `&`, we would remember the modes of an editor that runs
 * in front. But a repeated tty_raw() - SIGCONT after a SIGSTOP from outside, when
 * the shell may have changed the modes or may have kept our raw ones - keeps the
 * first memory. TCSANOW throughout: draining could wait for a stuck terminal, and
 * flushing would eat what the user typed ahead.
 *
 * Suspending. Ctrl-Z is a byte; the box's terminal stops the command with SIGTSTP,
 * init reports it, and now the host's shell must see its job stopped. What the
 * shell waits for is the whole job, which may be more than us: `sh -c 'carrel ...'`,
 * make, the other half of a pipeline. A stop of carrel alone would leave these
 * running and the shell waiting, with no prompt. So the signal goes to the process
 * group, as the kernel does for a real Ctrl-Z. And it is SIGTSTP rather than
 * SIGSTOP: a process group that no shell looks after (a terminal window that runs
 * carrel as its only command) is orphaned, and there the kernel drops SIGTSTP,
 * where SIGSTOP would stop us for good. A SIGTSTP that was ignored when we were
 * started stays ignored: that is how a parent without job control says so.
 * SIGTSTP must be unblocked with its default action to work; both are put back.
 * The box is not in our process group (init has its own session), so what
 * continues its command is the caller, after tty_suspend() returned.
 */
#include "supervise/tty.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	SAY_MS = 100,
	SWALLOW_MS = 1000, /* a slow line; after so long a silence nothing more will come */
	SWALLOWS = 64,
};

bool tty_open(struct tty *t, int in, int out)
{
	*t = (struct tty){ .in = in, .out = out };
	t->is_tty = isatty(in) && isatty(out) && tcgetattr(in, &t->saved) == 0;
	return t->is_tty;
}

bool tty_foreground(const struct tty *t)
{
	pid_t front = tcgetpgrp(t->in);

	return front < 0 || front == getpgrp();
}

/* tcsetattr(3) that cannot stop us if we lose the foreground at this moment. */
static int set_modes(int fd, const struct termios *modes)
{
	sigset_t block, old;
	int ret;

	sigemptyset(&block);
	sigaddset(&block, SIGTTOU);
	sigprocmask(SIG_BLOCK, &block, &old);
	do {
		ret = tcsetattr(fd, TCSANOW, modes);
	} while (ret < 0 && errno == EINTR);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}

bool tty_raw(struct tty *t)
{
	struct termios modes;

	if (!t->is_tty || !tty_foreground(t))
		return false;
	if (!t->raw && tcgetattr(t->in, &t->saved) < 0)
		return false;
	modes = t->saved;
	cfmakeraw(&modes);
	modes.c_cc[VMIN] = 1;
	modes.c_cc[VTIME] = 0;
	/* Set the mark first: if we exit in between, the modes must be restored. */
	t->owner = getpid();
	t->raw = true;
	return set_modes(t->in, &modes) == 0;
}

void tty_restore(struct tty *t)
{
	int saved = errno;

	if (t->raw && t->owner == getpid()) {
		/*
		 * In the background the terminal belongs to the shell, which has set its own
		 * modes.
		 */
		if (tty_foreground(t))
			set_modes(t->in, &t->saved);
		t->raw = false;
	}
	errno = saved;
}

/* Stop here, if the signal's default action and the process group allow it. */
static void stop_self(bool group)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, old;
	sigset_t allow, mask;

	sigaction(SIGTSTP, NULL, &old);
	if (old.sa_handler == SIG_IGN)
		return;
	sigaction(SIGTSTP, &plain, NULL);
	sigemptyset(&allow);
	sigaddset(&allow, SIGTSTP);
	/* Sent while blocked, so that it takes effect at one place: the next line. */
	sigprocmask(SIG_BLOCK, &allow, &mask);
	kill(group ? 0 : getpid(), SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &allow, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGTSTP, &old, NULL);
}

bool tty_suspend(struct tty *t, bool group)
{
	tty_restore(t);
	stop_self(group);
	tty_raw(t);
	return tty_foreground(t);
}

void tty_say(const struct tty *t, const char *bytes, size_t n)
{
	struct pollfd out = { .fd = t->out, .events = POLLOUT };

	while (n && poll(&out, 1, SAY_MS) > 0 && out.revents & POLLOUT) {
		ssize_t done = write(t->out, bytes, n);

		if (done <= 0)
			return;
		bytes += done;
		n -= (size_t)done;
	}
}

void tty_swallow(const struct tty *t)
{
	static const char question[] = "\033[c";
	struct pollfd in = { .fd = t->in, .events = POLLIN };
	const long long until = clock_ms() + 2LL * SWALLOW_MS; /* somebody may go on typing */
	bool escaped = false;
	char bytes[256];

	tty_say(t, question, sizeof(question) - 1);
	/* The answer is ESC [ ? ... c; at most so many other bytes come before it. */
	for (int i = 0; i < SWALLOWS && clock_ms() < until && poll(&in, 1, SWALLOW_MS) > 0;
		i++) {
		ssize_t n = read(t->in, bytes, sizeof(bytes));

		if (n <= 0)
			return;
		for (ssize_t k = 0; k < n; k++) {
			if (bytes[k] == '?')
				escaped = true;
			else if (bytes[k] == 'c' && escaped)
				return;
			else if (bytes[k] >= 0x40)
				escaped = false;
		}
	}
}

void tty_size(const struct tty *t, struct winsize *ret)
{
	struct winsize ws = { 0 };

	if (ioctl(t->out, TIOCGWINSZ, &ws) < 0 || !ws.ws_row || !ws.ws_col) {
		ws.ws_row = 24;
		ws.ws_col = 80;
	}
	*ret = ws;
}

/* Line and screen editors leave these off; a new pty without them is unusable. */
static bool is_cooked(const struct termios *modes)
{
	return (modes->c_lflag & ICANON) && (modes->c_lflag & ISIG) && (modes->c_oflag & OPOST);
}

const struct termios *tty_cooked(const struct tty *t)
{
	/*
	 * In the background these may be the modes of another foreground program: do not copy
	 * them.
	 */
	return t->is_tty && is_cooked(&t->saved) ? &t->saved : NULL;
}
