/*
 * run/secrets.c - ask a person, or run a program
 *
 * Theory of operation, asking. The terminal is opened again, so that O_NONBLOCK affects nobody
 * else's descriptor. Echo is off, and so is the kernel's line editing, which silently cuts a
 * line at 4095 bytes; tokens may be longer. So this file handles the editing keys; keys that
 * send signals still do.
 *
 * Signals that would end or stop us are blocked except during ppoll(2), so none is lost between
 * a check and the wait. All real work is done outside of handlers: restore the terminal,
 * restore the handlers, and let the signal take its effect. Ignored signals stay ignored. After
 * a stop, even by SIGSTOP from outside, the question starts again, because the shell may have
 * changed the modes meanwhile.
 *
 * In the background, changing modes stops us with SIGTTOU, as it should. The original modes are
 * read after that point: before it they may belong to the foreground program.
 *
 * Input that was typed before the question, and the rest of a paste after the first line, is
 * dropped: the first was echoed, the second would go to the shell or into the box.
 */
#include "run/secrets.h"
#include "supervise/tty.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { LONGEST = 64 * 1024 };

static const int watched[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT };
static volatile sig_atomic_t caught;

struct question {
	const char *prompt;
	struct tty tty;
	char *value; /* room for LONGEST and a NUL */
	size_t n;
	/* an errno: read on to the end of the line, or the rest would be echoed */
	int refused;
	bool literal; /* the next byte is not an editing key */
	struct sigaction actions[ARRAY_SIZE(watched)], ttou; /* as found */
	sigset_t mask;                                       /* as found */
	sigset_t waiting;                                    /* while we wait */
};

/* --- signals --------------------------------------------------------------------- */

/* Handle SIGCONT last: `kill %1` sends SIGTERM and SIGCONT at once. */
static void on_signal(int sig)
{
	if (!caught || caught == SIGCONT)
		caught = sig;
}

static void catch_signals(struct question *q)
{
	struct sigaction ours = { .sa_handler = on_signal }, plain = { .sa_handler = SIG_DFL };
	sigset_t block;

	sigemptyset(&block);
	sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
		sigaction(watched[i], NULL, &q->actions[i]);
		if (q->actions[i].sa_handler == SIG_IGN && watched[i] != SIGCONT)
			continue;
		sigaddset(&block, watched[i]);
		sigaction(watched[i], &ours, NULL);
	}
	/*
	 * If SIGTTOU could not stop us, we would change the modes under the foreground program.
	 */
	sigaction(SIGTTOU, &plain, &q->ttou);
	sigprocmask(SIG_BLOCK, &block, &q->mask);
	q->waiting = q->mask;
	sigdelset(&q->waiting, SIGTTOU);
}

static void release_signals(const struct question *q)
{
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		sigaction(watched[i], &q->actions[i], NULL);
	sigaction(SIGTTOU, &q->ttou, NULL);
	sigprocmask(SIG_SETMASK, &q->mask, NULL);
}

/* 0 when the terminal is ready, -EINTR when a signal was caught. */
static int await(const struct question *q, short events)
{
	struct pollfd p = { .fd = q->tty.in, .events = events };

	caught = 0;
	while (ppoll(&p, 1, NULL, &q->waiting) < 0)
		if (errno != EINTR || caught)
			return -errno;
	return 0;
}

/* --- the terminal ---------------------------------------------------------------- */

static int set_modes(int fd, const struct termios *modes)
{
	while (tcsetattr(fd, TCSANOW, modes) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/*
 * In the background this stops us until we are in the foreground, with signals as in await(): a
 * job that waits for the terminal can be killed.
 */
static int come_to_front(const struct question *q)
{
	sigset_t blocked;
	int rc;

	caught = 0;
	sigprocmask(SIG_SETMASK, &q->waiting, &blocked);
	do
		rc = tcflush(q->tty.in, TCIFLUSH) < 0 ? -errno : 0;
	while (rc == -EINTR && (!caught || caught == SIGCONT));
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	return rc == 0 && caught && caught != SIGCONT ? -EINTR : rc;
}

static int hide(struct question *q)
{
	int rc = come_to_front(q);
	struct tty *t = &q->tty;
	struct termios modes;

	if (rc < 0)
		return rc;
	if (!t->raw && tcgetattr(t->in, &t->saved) < 0)
		return -errno;
	modes = t->saved;
	modes.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL | ICANON);
	modes.c_lflag |= ISIG;
	modes.c_cc[VMIN] = 1;
	modes.c_cc[VTIME] = 0;
	t->owner = getpid();
	t->raw = true;
	rc = set_modes(t->in, &modes);
	if (rc == 0)
		tcflush(t->in, TCIFLUSH);
	return rc;
}

/* Do not wait to write the newline: a terminal that takes no output just lacks it. */
static void show_prompt(struct question *q)
{
	if (q->tty.raw && tty_foreground(&q->tty)) {
		tcflush(q->tty.in, TCIFLUSH);
		(void)!write(q->tty.out, "\n", 1);
	}
	tty_restore(&q->tty);
}

/* The other processes of the job got the signal as well. */
static void suspend(struct question *q)
{
	struct sigaction ours, plain = { .sa_handler = SIG_DFL };
	sigset_t stop, mask;

	show_prompt(q);
	sigaction(SIGTSTP, &plain, &ours);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	kill(getpid(), SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, &mask); /* here */
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGTSTP, &ours, NULL);
}

static int put_text(const struct question *q, const char *text)
{
	for (size_t left = strlen(text); left;) {
		ssize_t n = write(q->tty.out, text, left);
		int rc = 0;

		if (n < 0)
			rc = errno == EAGAIN || errno == EINTR ? await(q, POLLOUT) : -errno;
		if (rc < 0)
			return rc;
		text += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* --- the line -------------------------------------------------------------------- */

static bool is_key(const struct question *q, int key, char c)
{
	cc_t set = q->tty.saved.c_cc[key];

	if ((key == VLNEXT || key == VWERASE) && !(q->tty.saved.c_lflag & IEXTEN))
		return false;
	return set != _POSIX_VDISABLE && set == (cc_t)c;
}

static void add_char(struct question *q, char c)
{
	if (!c)
		q->refused = EILSEQ;
	else if (q->n == LONGEST)
		q->refused = EFBIG;
	else
		q->value[q->n++] = c;
}

/* A character, which may be several bytes. */
static void erase(struct question *q)
{
	bool utf8 = q->tty.saved.c_iflag & IUTF8;

	while (utf8 && q->n > 1 && (q->value[q->n - 1] & 0xc0) == 0x80)
		q->n--;
	q->n -= q->n > 0;
}

static void erase_word(struct question *q)
{
	while (q->n && strchr(" \t", q->value[q->n - 1]))
		q->n--;
	while (q->n && !strchr(" \t", q->value[q->n - 1]))
		q->n--;
}

/* True at the end of the line. Backspace erases whichever of its two codes the terminal has. */
static bool take_key(struct question *q, char c)
{
	if (q->literal) {
		q->literal = false;
		add_char(q, c);
	} else if (c == '\n' || c == '\r') {
		return true;
	} else if (is_key(q, VEOF, c)) {
		q->refused = ENODATA;
		return true;
	} else if (is_key(q, VLNEXT, c)) {
		q->literal = true;
	} else if (is_key(q, VKILL, c)) {
		q->n = 0;
		q->refused = 0;
	} else if (is_key(q, VWERASE, c)) {
		erase_word(q);
	} else if (is_key(q, VERASE, c) || c == '\b' || c == '\177') {
		erase(q);
	} else {
		add_char(q, c);
	}
	return false;
}

static int get(struct question *q)
{
	ssize_t n;
	char c;
	int rc;

	q->n = 0;
	q->refused = 0;
	q->literal = false;
	for (;;) {
		n = read(q->tty.in, &c, 1);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n == 0) /* hung up */
			return -ENODATA;
		if (n > 0 && take_key(q, c))
			return -q->refused;
		rc = n < 0 ? await(q, POLLIN) : 0;
		if (rc < 0)
			return rc;
	}
}

static int ask_question(struct question *q)
{
	int rc;

	for (;;) {
		rc = hide(q);
		if (rc == 0)
			rc = put_text(q, q->prompt);
		if (rc == 0)
			rc = get(q);
		if (rc != -EINTR || (caught != SIGTSTP && caught != SIGCONT))
			return rc;
		if (caught == SIGTSTP)
			suspend(q);
	}
}

static int explain(int err, const char *name, struct fault *f)
{
	switch (err) {
	case ENODATA:
		return fault_set(f, 0, "no value for %s: the input ended", name);
	case EILSEQ:
		return fault_set(f, 0, "the value for %s has a NUL byte in it", name);
	case EFBIG:
		return fault_set(f, 0, "the value for %s is longer than 64 KiB", name);
	default:
		return fault_set(f, err, "ask for the value of %s", name);
	}
}

static int no_terminal(const char *name, struct fault *f)
{
	fault_set(f, 0, "no terminal: cannot ask for the value of %s", name);
	return fault_fix(f,
		"Start carrel on a terminal, or have the value taken from a variable "
		"(\"${NAME}\") or from a program (\"!program\").");
}

int secret_ask(const char *name, const char *message, const char **ret, struct fault *f)
{
	auto_close int fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct question q = { 0 };
	int rc;

	name = str_visible(name);
	if (fd < 0 || !tty_open(&q.tty, fd, fd))
		return no_terminal(name, f);
	/*
	 * Allocate everything now: running out of memory later would leave the terminal without
	 * echo.
	 */
	/*
	 * Say who asks and what for: a manifest could word the question as if another program
	 * asked.
	 */
	q.prompt = message && message[0]
		? mem_printf("carrel: %s: %s (input hidden): ", name, str_visible(message))
		: mem_printf("carrel: value for %s (input hidden): ", name);
	q.value = mem_alloc(LONGEST + 1);
	catch_signals(&q);
	rc = ask_question(&q);
	show_prompt(&q);
	release_signals(&q);
	if (rc == 0) {
		q.value[q.n] = '\0';
		*ret = q.value;
		return 0;
	}
	explicit_bzero(q.value, LONGEST);
	if (rc == -EINTR)
		kill(getpid(), caught); /* returns only if there was a handler */
	return explain(-rc, name, f);
}

/* --- a program ------------------------------------------------------------------- */

/* Without attributes: the program has our environment, signals and terminal. */
static int spawn_program(const char *const *argv, int out, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
			O_RDONLY, 0);
	/*
	 * Not in the workspace: an agent may have written a file there that an argument names.
	 */
	if (!err)
		err = posix_spawn_file_actions_addchdir_np(&files, "/");
	if (!err)
		err = posix_spawnp(ret, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

/* Read everything, up to one byte too many; the number of bytes, or -errno. */
static ssize_t read_output(int fd, char *value)
{
	size_t len = 0;

	while (len <= LONGEST) {
		ssize_t n = read(fd, value + len, LONGEST + 1 - len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)len;
}

static int check_value(const char *what, int status, const char *value, ssize_t n,
	struct fault *f)
{
	if (n < 0)
		return fault_set(f, (int)-n, "%s: reading its output", what);
	if (n > LONGEST)
		return fault_set(f, 0, "%s printed more than 64 KiB", what);
	if (status) {
		fault_set(f, 0, "%s ended with %s %d", what,
			WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		return fault_fix(f,
			"It must print the value and end with status 0; "
			"run it by itself to see what is wrong.");
	}
	if (memchr(value, '\0', (size_t)n))
		return fault_set(f, 0, "%s printed a NUL byte", what);
	return 0;
}

static int run_program(const char *const *argv, const char *what, char *value, size_t *ret_n,
	struct fault *f)
{
	auto_close int in = -1, out = -1;
	int ends[2], status = 0, rc;
	pid_t pid, got;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, errno, "%s: making a pipe", what);
	in = ends[0];
	out = ends[1];
	rc = spawn_program(argv, out, &pid);
	/* Not allowed; or not found, if we may not search a directory of PATH. */
	if (rc == -ENOENT || rc == -EACCES) {
		fault_set(f, -rc, "%s cannot be run", what);
		return fault_fix(f,
			"Give the program's whole path, or its name if it is in a directory "
			"of PATH.");
	}
	if (rc < 0)
		return fault_set(f, -rc, "%s cannot be run", what);
	fd_close(&out);
	n = read_output(in, value);
	fd_close(&in);
	if (n < 0 || n > LONGEST)
		kill(pid, SIGTERM); /* nobody will read the rest */
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return fault_set(f, errno, "%s: waiting for its end", what);
	rc = check_value(what, status, value, n, f);
	if (rc == 0)
		*ret_n = (size_t)n;
	return rc;
}

int secret_run(const char *name, const char *const *argv, const char **ret, struct fault *f)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, old;
	char *value = mem_alloc(LONGEST + 2);
	const char *what =
		mem_printf("value of %s: '%s'", str_visible(name), str_visible(argv[0]));
	size_t n = 0;
	int rc;

	/* If our parent ignored SIGCHLD, we do too, and the exit status would be lost. */
	sigaction(SIGCHLD, &plain, &old);
	rc = run_program(argv, what, value, &n, f);
	sigaction(SIGCHLD, &old, NULL);
	if (rc < 0) {
		explicit_bzero(value, LONGEST + 1);
		return rc;
	}
	n -= n && value[n - 1] == '\n';
	value[n] = '\0';
	*ret = value;
	return 0;
}
