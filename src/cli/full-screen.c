/*
 * cli/full-screen.c - a program of ours that has the whole terminal
 *
 * Only sequences that every terminal of the last decades knows: the alternate screen, a hidden
 * cursor, no wrapping at the right edge (so that a wide character cannot break a row).
 */
#include "cli/full-screen.h"
#include "cli/cmd.h"
#include "supervise/tty.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

enum { SUSPEND = 26, INTERRUPT = 3, ESCAPE_MS = 50 };

/* Shared by the two processes. */
struct full_screen {
	struct tty tty;
	bool shown; /* the terminal is not as it was found */
	bool gone;  /* a signal has told us to end */
	int signals;
	pid_t guard;
	int result;
};

static const int ends[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };

/* ---- the terminal ---- */

static void say(const struct full_screen *s, const char *text)
{
	tty_say(&s->tty, text, strlen(text));
}

void full_screen_enter(struct full_screen *s)
{
	/* From the background nothing is changed: SIGCONT brings us back here. */
	if (s->shown || !tty_raw(&s->tty))
		return;
	s->shown = true;
	say(s, ENTER);
}

void full_screen_leave(struct full_screen *s)
{
	if (!s->shown)
		return;
	s->shown = false;
	say(s, LEAVE);
	tty_restore(&s->tty);
}

void full_screen_size(const struct full_screen *s, unsigned int *rows, unsigned int *cols)
{
	struct winsize size;

	tty_size(&s->tty, &size);
	*rows = size.ws_row;
	*cols = size.ws_col;
}

bool full_screen_colour(const struct full_screen *s)
{
	return cmd_colour(s->tty.out);
}

void full_screen_show(struct full_screen *s, const struct str *frame)
{
	struct str out = { 0 };
	unsigned int rows, cols, row = 0;

	if (!s->shown)
		return;
	full_screen_size(s, &rows, &cols);
	str_add(&out, "\033[H");
	for (const char *at = frame->p; at && *at && row < rows; row++) {
		const size_t n = strcspn(at, "\n");

		str_add(&out, row ? "\r\n" : "");
		str_addn(&out, at, n);
		str_add(&out, "\033[0m\033[K");
		at += n + (at[n] == '\n');
	}
	str_add(&out, row < rows ? "\033[J" : "");
	tty_say(&s->tty, out.p, out.len);
}

/* ---- keys ---- */

static void suspend(struct full_screen *s)
{
	full_screen_leave(s);
	tty_suspend(&s->tty, true);
	full_screen_enter(s);
}

static int signal_key(struct full_screen *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGWINCH)
		return KEY_NONE;
	if (info.ssi_signo != SIGCONT)
		return KEY_GONE;
	/* Whoever had the terminal meanwhile may have left anything. */
	s->shown = false;
	full_screen_enter(s);
	return KEY_NONE;
}

static int after_escape(const char *text)
{
	static const struct {
		const char *text;
		int key;
	} keys[] = {
		{ "A", KEY_UP },
		{ "B", KEY_DOWN },
		{ "H", KEY_HOME },
		{ "F", KEY_END },
		{ "1~", KEY_HOME },
		{ "4~", KEY_END },
		{ "5~", KEY_PAGE_UP },
		{ "6~", KEY_PAGE_DOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].text, text))
			return keys[i].key;
	return KEY_NONE;
}

/* The rest of a sequence, up to its last letter; a lone ESC has none. */
static int escape_key(struct full_screen *s)
{
	struct pollfd in = { .fd = s->tty.in, .events = POLLIN };
	char text[16] = "";
	size_t n = 0;

	while (n < sizeof(text) - 1 && poll(&in, 1, ESCAPE_MS) > 0 &&
		read(s->tty.in, text + n, 1) == 1) {
		const char c = text[n++];

		if (n > 1 && c >= '@')
			break;
	}
	if (!n)
		return KEY_ESCAPE;
	text[n] = '\0';
	return text[0] == '[' || text[0] == 'O' ? after_escape(text + 1) : KEY_NONE;
}

static int typed_key(struct full_screen *s)
{
	unsigned char c;
	ssize_t n = read(s->tty.in, &c, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return KEY_NONE;
	if (n <= 0 || c == INTERRUPT)
		return KEY_GONE;
	if (c == SUSPEND) {
		suspend(s);
		return KEY_NONE;
	}
	return c == KEY_ESCAPE ? escape_key(s) : c == '\n' ? KEY_RETURN : c;
}

int full_screen_key(struct full_screen *s, int ms)
{
	/* In the background to read would stop us. */
	struct pollfd fds[] = { { .fd = s->shown ? s->tty.in : -1, .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN } };

	if (s->gone || getppid() != s->guard)
		return KEY_GONE;
	if (!s->shown && tty_foreground(&s->tty))
		full_screen_enter(s);
	if (poll(fds, ARRAY_SIZE(fds), ms) <= 0)
		return KEY_NONE;
	if (fds[1].revents)
		return signal_key(s);
	return fds[0].revents & POLLIN ? typed_key(s) : KEY_GONE;
}

int full_screen_wait(struct full_screen *s, int pid)
{
	struct pollfd fds[] = { { .fd = (int)syscall(SYS_pidfd_open, pid, 0),
					.events = POLLIN },
		{ .fd = s->signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	int status = 0;

	while (fds[0].fd >= 0 && !fds[0].revents) {
		if (poll(fds, ARRAY_SIZE(fds), -1) <= 0 || !fds[1].revents ||
			read(s->signals, &info, sizeof(info)) != sizeof(info) ||
			info.ssi_signo == SIGWINCH || info.ssi_signo == SIGCONT)
			continue;
		s->gone = true;
		kill(pid, SIGTERM);
	}
	fd_close(&fds[0].fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* ---- the two ---- */

static void block(int extra, int more, sigset_t *ret, sigset_t *old)
{
	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		sigaddset(ret, ends[i]);
	sigaddset(ret, extra);
	sigaddset(ret, more);
	sigprocmask(SIG_BLOCK, ret, old);
}

static _Noreturn void run(struct full_screen *s,
	int (*program)(struct full_screen *s, void *ctx), void *ctx)
{
	sigset_t set;

	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	block(SIGWINCH, SIGCONT, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
	full_screen_enter(s);
	s->result = program(s, ctx);
	full_screen_leave(s);
	_exit(0);
}

/* Whoever wants us to end means the other one too. */
static void guard(struct full_screen *s, pid_t pid)
{
	sigset_t set, old;
	int sig;

	block(SIGCHLD, SIGCHLD, &set, &old);
	while (waitpid(pid, NULL, WNOHANG) != pid)
		if (sigwait(&set, &sig) == 0 && sig != SIGCHLD)
			kill(pid, sig);
	s->tty.owner = getpid(); /* who made it raw is gone */
	full_screen_leave(s);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

int full_screen_run(int (*program)(struct full_screen *s, void *ctx), void *ctx, int *ret,
	struct fault *f)
{
	struct full_screen *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (s == MAP_FAILED)
		return fault_set(f, errno, "get memory");
	if (!tty_open(&s->tty, STDIN_FILENO, STDOUT_FILENO))
		return fault_set(f, 0, "there is no terminal here");
	s->guard = getpid();
	s->result = EXIT_CARREL;
	pid = fork();
	if (pid == 0)
		run(s, program, ctx);
	if (pid < 0)
		return fault_set(f, errno, "start a process");
	guard(s, pid);
	*ret = s->result;
	return 0;
}
