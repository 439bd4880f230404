/*
 * tests/unit/test_secrets.c - values from a terminal and from programs
 *
 * We hold the master of a pty. A "shell" leads the session on the other side and does what
 * shells do with a job: puts it in front, waits, says when it stopped, puts it in front again.
 * The job asks. What is typed and shown, and the modes, are looked at from the master's side.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "run/secrets.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

enum { PATIENCE_MS = 10000, LIMIT = 64 * 1024 };
enum { IGNORES_TERM = 1, HANDLES_TERM = 2, IN_BACKGROUND = 4 };

struct term {
	int master;
	pid_t shell, job;
	int events;   /* from the shell: struct event */
	int commands; /* to the shell: 'f' in front, 'c' only continue */
	int result;   /* from the job: "=VALUE" or "!FAULT" */
	struct termios before;
	char shown[200000];
	size_t n;
};

struct event {
	pid_t pid;
	int status; /* of waitpid(2); -1 for a job that was started */
};

/* --- the other side -------------------------------------------------------------- */

static int handled;

static void count(int sig)
{
	handled += sig == SIGTERM;
}

static bool same_signals(const struct sigaction *before)
{
	struct sigaction now;

	for (int i = 1; i < 32; i++) {
		sigaction(i, NULL, &now);
		if (i != SIGKILL && i != SIGSTOP && now.sa_handler != before[i].sa_handler)
			return false;
	}
	return true;
}

/* What happened goes to the pipe; how it left the process to the exit code. */
static void job_main(const char *message, int flags, int result)
{
	struct sigaction before[32] = { 0 };
	sigset_t mask, after;
	const char *value = "untouched";
	struct fault f = { 0 };
	struct str told = { 0 };
	struct pollfd tty = { .events = POLLIN };
	int rc;

	if (flags & IGNORES_TERM)
		signal(SIGTERM, SIG_IGN);
	if (flags & HANDLES_TERM)
		signal(SIGTERM, count);
	for (int i = 1; i < 32; i++)
		sigaction(i, NULL, &before[i]);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	rc = secret_ask("TOKEN", message, &value, &f);
	sigprocmask(SIG_SETMASK, NULL, &after);
	str_addf(&told, "%c%s", rc == 0 ? '=' : '!', rc == 0 ? value : f.text);
	for (size_t at = 0; at < told.len;) {
		ssize_t n = write(result, told.p + at, told.len - at);

		at += n > 0 ? (size_t)n : 0;
	}
	if (rc < 0 && strcmp(value, "untouched") != 0)
		_exit(2);
	if (!same_signals(before) || memcmp(&mask, &after, sizeof(mask)) != 0)
		_exit(3);
	tty.fd = open("/dev/tty", O_RDONLY | O_CLOEXEC);
	if (tty.fd >= 0 && poll(&tty, 1, 50) != 0)
		_exit(4); /* something is left to read */
	_exit(handled ? 40 + handled : 0);
}

static void tell(int fd, pid_t pid, int status)
{
	const struct event e = { pid, status };

	(void)!write(fd, &e, sizeof(e));
}

static void in_front(int tty, pid_t group, int flags)
{
	if (!(flags & IN_BACKGROUND))
		tcsetpgrp(tty, group);
}

static void shell_main(int tty, const char *message, int flags, const int *events,
	const int *commands, const int *result)
{
	int status;
	char word;
	pid_t job;

	mem_own();
	setsid();
	ioctl(tty, TIOCSCTTY, 0);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	job = fork();
	if (job == 0) {
		mem_own();
		setpgid(0, 0);
		in_front(tty, getpid(), flags);
		close(tty);
		signal(SIGTTOU, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		job_main(message, flags, result[1]);
	}
	setpgid(job, job);
	in_front(tty, job, flags);
	close(result[1]);
	tell(events[1], job, -1);
	while (waitpid(job, &status, WUNTRACED) == job) {
		if (!WIFSTOPPED(status))
			break;
		tcsetpgrp(tty, getpid());
		tell(events[1], job, status);
		if (read(commands[0], &word, 1) != 1)
			_exit(1);
		if (word == 'f')
			tcsetpgrp(tty, job);
		kill(-job, SIGCONT);
	}
	tell(events[1], job, status);
	(void)!read(commands[0], &word, 1); /* the terminal lives as long as we do */
	_exit(0);
}

/* --- our side -------------------------------------------------------------------- */

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, PATIENCE_MS) == 1;
}

static int next_event(struct term *t)
{
	struct event e;

	assert_true(readable(t->events));
	assert_int_equal(read(t->events, &e, sizeof(e)), sizeof(e));
	t->job = e.pid;
	return e.status;
}

static void start(struct term *t, const char *message, int flags)
{
	const struct rlimit none = { 0 };
	int slave, events[2], commands[2], result[2];

	memset(t, 0, sizeof(*t));
	alarm(60);
	setrlimit(RLIMIT_CORE, &none);
	assert_int_equal(openpty(&t->master, &slave, NULL, NULL, NULL), 0);
	fcntl(t->master, F_SETFD, FD_CLOEXEC);
	tcgetattr(slave, &t->before);
	t->before.c_iflag |= IUTF8;
	tcsetattr(slave, TCSANOW, &t->before);
	assert_int_equal(pipe2(events, O_CLOEXEC), 0);
	assert_int_equal(pipe2(commands, O_CLOEXEC), 0);
	assert_int_equal(pipe2(result, O_CLOEXEC), 0);
	t->shell = fork();
	if (t->shell == 0) {
		close(t->master);
		close(commands[1]);
		shell_main(slave, message, flags, events, commands, result);
	}
	close(slave);
	close(events[1]);
	close(commands[0]);
	close(result[1]);
	t->events = events[0];
	t->commands = commands[1];
	t->result = result[0];
	assert_int_equal(next_event(t), -1);
}

static void finish(struct term *t)
{
	close(t->commands);
	waitpid(t->shell, NULL, 0);
	close(t->events);
	close(t->result);
	if (t->master >= 0)
		close(t->master);
	alarm(0);
}

/* Read what is shown until text is there. */
static void expect(struct term *t, const char *text)
{
	char *at;

	while (!(at = strstr(t->shown, text))) {
		ssize_t n;

		assert_true(readable(t->master));
		n = read(t->master, t->shown + t->n, sizeof(t->shown) - 1 - t->n);
		assert_true(n > 0);
		t->n += (size_t)n;
	}
	memset(at, '_', strlen(text)); /* so that it is found once */
}

static void type(struct term *t, const char *keys, size_t n)
{
	while (n) {
		ssize_t done = write(t->master, keys, n);

		assert_true(done > 0);
		keys += done;
		n -= (size_t)done;
	}
}

static struct termios modes(const struct term *t)
{
	struct termios now;

	assert_int_equal(tcgetattr(t->master, &now), 0);
	return now;
}

static bool is_hidden(const struct term *t)
{
	return !(modes(t).c_lflag & ECHO);
}

static void assert_restored(const struct term *t)
{
	const struct termios now = modes(t);

	assert_true(t->before.c_lflag & ECHO);
	assert_int_equal(now.c_lflag, t->before.c_lflag);
	assert_int_equal(now.c_iflag, t->before.c_iflag);
	assert_int_equal(now.c_oflag, t->before.c_oflag);
	assert_memory_equal(now.c_cc, t->before.c_cc, sizeof(now.c_cc));
}

static void assert_never_shown(struct term *t, const char *text)
{
	struct pollfd p = { .fd = t->master, .events = POLLIN };

	while (poll(&p, 1, 50) == 1 && (p.revents & POLLIN)) {
		ssize_t n = read(t->master, t->shown + t->n, sizeof(t->shown) - 1 - t->n);

		if (n <= 0)
			break;
		t->n += (size_t)n;
	}
	t->shown[t->n] = '\0';
	assert_null(strstr(t->shown, text));
}

/* "=VALUE" or "!FAULT". */
static const char *told(struct term *t)
{
	char *text = mem_alloc(2 * LIMIT);
	size_t n = 0;
	ssize_t got;

	while (readable(t->result) && (got = read(t->result, text + n, 2 * LIMIT - 1 - n)) > 0)
		n += (size_t)got;
	return text;
}

/* Ask, type, and be told. */
static const char *answer_n(const char *keys, size_t n)
{
	static struct term t;
	const char *text;

	start(&t, "Token", 0);
	expect(&t, "Token (input hidden): ");
	assert_true(is_hidden(&t));
	type(&t, keys, n);
	text = told(&t);
	assert_int_equal(next_event(&t), 0);
	assert_restored(&t);
	finish(&t);
	return text;
}

static const char *answer(const char *keys)
{
	return answer_n(keys, strlen(keys));
}

/* --- asking ---------------------------------------------------------------------- */

static void test_value(void **state)
{
	static struct term t;

	start(&t, "Token", 0);
	expect(&t, "Token (input hidden): ");
	assert_true(is_hidden(&t));
	type(&t, "s3cret va", 9);
	usleep(20000);
	assert_never_shown(&t, "s3cret");
	type(&t, "lue\r", 4);
	assert_string_equal(told(&t), "=s3cret value");
	assert_int_equal(next_event(&t), 0);
	assert_never_shown(&t, "s3cret");
	assert_restored(&t);
	type(&t, "now shown", 9); /* the control: this terminal echoes */
	expect(&t, "now shown");
	finish(&t);
}

static void test_default_message(void **state)
{
	static const char *const none[] = { NULL, "" };
	static struct term t;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		start(&t, none[i], 0);
		expect(&t, "carrel: value for TOKEN (input hidden): ");
		type(&t, "x\r", 2);
		assert_string_equal(told(&t), "=x");
		assert_int_equal(next_event(&t), 0);
		finish(&t);
	}
}

static void test_hostile_message(void **state)
{
	static struct term t;

	start(&t, "\033[2Jevil\a\r\xc2\x9b", 0);
	expect(&t, "\\x1b[2Jevil\\x07\\x0d\\xc2\\x9b (input hidden): ");
	assert_never_shown(&t, "\033");
	assert_never_shown(&t, "\a");
	type(&t, "x\n", 2);
	assert_string_equal(told(&t), "=x");
	finish(&t);
}

static void test_keys(void **state)
{
	static const char *const rows[][2] = {
		{ "\r", "=" },
		{ "a b\n", "=a b" },
		{ "\tx\t\r", "=\tx\t" },
		{ "ab\177c\r", "=ac" },
		{ "ab\bc\r", "=ac" },
		{ "\177\177ab\r", "=ab" },
		{ "a\xc3\xbc\177x\r", "=ax" },
		{ "\xe2\x82\xac\177\xc3\xbc\r", "=\xc3\xbc" },
		{ "wrong\025right\r", "=right" },
		{ "one two  \027x\r", "=one x" },
		{ "\027\027one\027\r", "=" },
		{ "a\026\025b\026\004\026\177\r", "=a\025b\004\177" },
		{ "a\001\033[Ab\r", "=a\001\033[Ab" },
		{ "\xff\xfe\r", "=\xff\xfe" },
		{ "\004", "!no value for TOKEN: the input ended" },
		{ "half\004", "!no value for TOKEN: the input ended" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(answer(rows[i][0]), rows[i][1]);
	assert_string_equal(answer_n("a\0b\r", 4), "!the value for TOKEN has a NUL byte in it");
	assert_string_equal(answer_n("a\0b\025ok\r", 7), "=ok");
}

static void test_long(void **state)
{
	static const size_t sizes[] = { 4094, 4095, 4096, 20000, LIMIT, LIMIT + 1,
		LIMIT + 9000 };
	static char keys[LIMIT + 10000];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t n = sizes[i];
		const char *text;

		for (size_t k = 0; k < n; k++)
			keys[k] = (char)('a' + k * 7 % 26);
		keys[n] = '\r';
		text = answer_n(keys, n + 1);
		if (n > LIMIT) {
			assert_string_equal(text, "!the value for TOKEN is longer than 64 KiB");
			continue;
		}
		assert_int_equal(strlen(text), n + 1);
		assert_memory_equal(text + 1, keys, n);
	}
}

/* The job says with its exit code when something is left to read. */
static void test_rest_of_a_paste(void **state)
{
	assert_string_equal(answer("first\rsecond\rthird"), "=first");
}

static void test_typed_before(void **state)
{
	static struct term t;

	start(&t, "Token", IN_BACKGROUND);
	assert_true(WIFSTOPPED(next_event(&t)));
	type(&t, "early\r", 6);
	expect(&t, "early");
	type(&t, "more", 4);
	expect(&t, "more");
	assert_int_equal(write(t.commands, "f", 1), 1);
	expect(&t, "Token (input hidden): ");
	type(&t, "late\r", 5);
	assert_string_equal(told(&t), "=late");
	assert_int_equal(next_event(&t), 0);
	finish(&t);
}

/* --- signals --------------------------------------------------------------------- */

static void check_dies(int sig, const char *key)
{
	static struct term t;
	int status;

	start(&t, "Token", 0);
	expect(&t, "Token (input hidden): ");
	type(&t, "s3cret", 6);
	usleep(20000);
	assert_true(is_hidden(&t));
	if (key)
		type(&t, key, 1);
	else
		kill(t.job, sig);
	status = next_event(&t);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
	assert_restored(&t);
	assert_string_equal(told(&t), "");
	assert_never_shown(&t, "s3cret");
	finish(&t);
}

static void test_deadly_signals(void **state)
{
	check_dies(SIGINT, "\003");
	check_dies(SIGQUIT, "\034");
	check_dies(SIGINT, NULL);
	check_dies(SIGQUIT, NULL);
	check_dies(SIGTERM, NULL);
	check_dies(SIGHUP, NULL);
}

static void test_ignored_signal(void **state)
{
	static struct term t;

	start(&t, "Token", IGNORES_TERM);
	expect(&t, "Token (input hidden): ");
	type(&t, "on", 2);
	kill(t.job, SIGTERM);
	usleep(50000);
	type(&t, "e\r", 2);
	assert_string_equal(told(&t), "=one");
	assert_int_equal(next_event(&t), 0);
	finish(&t);
}

static void test_handled_signal(void **state)
{
	static struct term t;
	int status;

	start(&t, "Token", HANDLES_TERM);
	expect(&t, "Token (input hidden): ");
	kill(t.job, SIGTERM);
	assert_string_equal(told(&t), "!ask for the value of TOKEN");
	status = next_event(&t);
	assert_int_equal(WEXITSTATUS(status), 41); /* called once, after ours */
	assert_restored(&t);
	finish(&t);
}

static void check_stop(const char *key)
{
	static struct term t;
	int status;

	start(&t, "Token", 0);
	for (int i = 0; i < 3; i++) {
		expect(&t, "Token (input hidden): ");
		assert_true(is_hidden(&t));
		type(&t, "s3cret", 6);
		usleep(20000);
		if (key)
			type(&t, key, 1);
		else
			kill(t.job, SIGTSTP);
		status = next_event(&t);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(WSTOPSIG(status), SIGTSTP);
		assert_restored(&t);
		assert_int_equal(write(t.commands, "f", 1), 1);
	}
	expect(&t, "Token (input hidden): ");
	assert_true(is_hidden(&t));
	type(&t, "new\r", 4);
	assert_string_equal(told(&t), "=new");
	assert_int_equal(next_event(&t), 0);
	assert_restored(&t);
	assert_never_shown(&t, "s3cret");
	assert_never_shown(&t, "Token"); /* asked four times, not more */
	finish(&t);
}

static void test_stop(void **state)
{
	check_stop("\032");
	check_stop(NULL);
}

/* Nothing can be done before it; but afterwards a shell may have turned the echo on. */
static void test_stop_from_outside(void **state)
{
	static struct term t;

	start(&t, "Token", 0);
	expect(&t, "Token (input hidden): ");
	kill(t.job, SIGSTOP);
	assert_true(WIFSTOPPED(next_event(&t)));
	tcsetattr(t.master, TCSANOW, &t.before);
	assert_int_equal(write(t.commands, "f", 1), 1);
	expect(&t, "Token (input hidden): ");
	assert_true(is_hidden(&t));
	type(&t, "s3cret\r", 7);
	assert_string_equal(told(&t), "=s3cret");
	assert_int_equal(next_event(&t), 0);
	assert_never_shown(&t, "s3cret");
	assert_restored(&t);
	finish(&t);
}

static void test_background(void **state)
{
	static struct term t;
	int status;

	start(&t, "Token", IN_BACKGROUND);
	for (int i = 0; i < 2; i++) {
		status = next_event(&t);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(WSTOPSIG(status), SIGTTOU);
		assert_restored(&t);
		assert_never_shown(&t, "Token");
		assert_int_equal(write(t.commands, i ? "f" : "c", 1), 1);
	}
	expect(&t, "Token (input hidden): ");
	assert_true(is_hidden(&t));
	type(&t, "x\r", 2);
	assert_string_equal(told(&t), "=x");
	assert_int_equal(next_event(&t), 0);
	assert_restored(&t);
	finish(&t);
}

static void test_background_is_killed(void **state)
{
	static struct term t;
	int status;

	start(&t, "Token", IN_BACKGROUND);
	assert_true(WIFSTOPPED(next_event(&t)));
	kill(t.job, SIGTERM);
	assert_int_equal(write(t.commands, "c", 1), 1);
	status = next_event(&t);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_restored(&t);
	finish(&t);
}

/* A terminal that takes no output (Ctrl-S) does not make us deaf. */
static void test_stuck_terminal(void **state)
{
	static struct term t;
	int status;

	start(&t, "Token", IN_BACKGROUND);
	assert_true(WIFSTOPPED(next_event(&t)));
	type(&t, "\023", 1);
	usleep(20000);
	assert_int_equal(write(t.commands, "f", 1), 1);
	while (!is_hidden(&t))
		usleep(1000);
	usleep(20000);
	type(&t, "\003", 1);
	status = next_event(&t);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
	assert_restored(&t);
	finish(&t);
}

/* Only the shell gets a SIGHUP from the kernel; some pass it on, ours does not. */
static void test_hangup(void **state)
{
	static struct term t;

	start(&t, "Token", 0);
	expect(&t, "Token (input hidden): ");
	close(t.master);
	t.master = -1;
	assert_int_equal(told(&t)[0], '!');
	assert_int_equal(next_event(&t), 0);
	finish(&t);
}

static void test_no_terminal(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const char *value = NULL;
		struct fault f = { 0 };

		mem_own();
		setsid();
		if (secret_ask("API_KEY", "Key", &value, &f) == 0 || value)
			_exit(1);
		if (strcmp(f.text, "no terminal: cannot ask for the value of API_KEY") != 0)
			_exit(2);
		_exit(f.fix[0] ? 0 : 3);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* --- programs -------------------------------------------------------------------- */

static struct fault fault;

/* The value, or NULL and the fault. */
#define run_program(...) run_argv((const char *const[]){ __VA_ARGS__, NULL })
static const char *run_argv(const char *const *argv)
{
	const char *value = NULL;

	fault = (struct fault){ 0 };
	alarm(60);
	if (secret_run("TOKEN", argv, &value, &fault) < 0)
		assert_null(value);
	else
		assert_non_null(value);
	alarm(0);
	return value;
}

static void test_program(void **state)
{
	assert_string_equal(run_program("printf", "%s", "value"), "value");
	assert_string_equal(run_program("printf", "v\\n"), "v");
	assert_string_equal(run_program("printf", "v\\n\\n"), "v\n");
	assert_string_equal(run_program("printf", "\\nv\\r\\n"), "\nv\r");
	assert_string_equal(run_program("echo"), "");
	assert_string_equal(run_program("true"), "");
	assert_string_equal(run_program("/bin/sh", "-c", "echo a; sleep 0.1; echo b"), "a\nb");
}

static void test_program_without_shell(void **state)
{
	static const char odd[] = "a  b $(id) `id` $HOME \"q\" 'r' * ; | > x \\ \t\n&";

	assert_string_equal(run_program("printf", "%s", odd), odd);
	assert_string_equal(run_program("printf", "%s.%s.", "", " "), ". .");
	/* The control: a shell would. */
	assert_string_equal(run_program("sh", "-c", "printf %s $(echo changed)"), "changed");
	assert_null(run_program("printf x"));
	assert_int_equal(fault.err, ENOENT);
}

static void test_program_fails(void **state)
{
	assert_null(run_program("sh", "-c", "echo value; exit 3"));
	assert_string_equal(fault.text, "value of TOKEN: 'sh' ended with status 3");
	assert_true(fault.fix[0]);
	assert_null(run_program("sh", "-c", "echo value; kill -9 $$"));
	assert_string_equal(fault.text, "value of TOKEN: 'sh' ended with signal 9");
	assert_null(run_program("carrel-no-such-program", "x"));
	assert_string_equal(fault.text,
		"value of TOKEN: 'carrel-no-such-program' cannot be run");
	assert_int_equal(fault.err, ENOENT);
	assert_null(run_program("/no/such\033[2J"));
	assert_string_equal(fault.text, "value of TOKEN: '/no/such\\x1b[2J' cannot be run");
	assert_null(run_program("/etc/passwd"));
	assert_int_equal(fault.err, EACCES);
}

static void test_program_output(void **state)
{
	const char *value;

	assert_null(run_program("printf", "a\\000b"));
	assert_string_equal(fault.text, "value of TOKEN: 'printf' printed a NUL byte");
	value = run_program("sh", "-c", "yes | head -c 65536");
	assert_int_equal(strlen(value), LIMIT - 1);
	value = run_program("sh", "-c", "head -c 65536 /dev/zero | tr '\\0' x");
	assert_int_equal(strlen(value), LIMIT);
	assert_null(run_program("sh", "-c", "head -c 65537 /dev/zero | tr '\\0' x"));
	assert_string_equal(fault.text, "value of TOKEN: 'sh' printed more than 64 KiB");
	assert_null(run_program("yes"));
	assert_string_equal(fault.text, "value of TOKEN: 'yes' printed more than 64 KiB");
	/* Nor do we wait for one that does not mind. */
	assert_null(run_program("sh", "-c", "yes | head -c 70000; exec sleep 100"));
	assert_string_equal(fault.text, "value of TOKEN: 'sh' printed more than 64 KiB");
}

/* Ours would be a terminal, or what the box is to read. */
static void test_program_streams(void **state)
{
	int in[2], err[2], saved_in = dup(0), saved_err = dup(2);
	char text[32] = "";

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(err), 0);
	assert_int_equal(write(in[1], "input", 5), 5);
	dup2(in[0], 0);
	dup2(err[1], 2);
	assert_string_equal(run_program("sh", "-c", "cat; echo told >&2"), "");
	dup2(saved_in, 0);
	dup2(saved_err, 2);
	assert_int_equal(read(in[0], text, sizeof(text)), 5); /* nobody has read it */
	memset(text, 0, sizeof(text));
	assert_int_equal(read(err[0], text, sizeof(text)), 5);
	assert_string_equal(text, "told\n");
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(err[i]);
	}
	close(saved_in);
	close(saved_err);
}

static void test_program_by_path(void **state)
{
	char dir[] = "/tmp/carrel-secrets-XXXXXX", file[80];
	const char *path = mem_strdup(getenv("PATH"));
	FILE *script;

	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/carrel-own", dir);
	script = fopen(file, "we");
	fputs("#!/bin/sh\necho \"from $0 with $TOKEN_ID\"\n", script);
	fclose(script);
	chmod(file, 0700);
	assert_null(run_program("carrel-own"));
	setenv("PATH", mem_printf("/nowhere:%s:%s", dir, path), 1);
	setenv("TOKEN_ID", "7", 1);
	assert_string_equal(run_program("carrel-own"), mem_printf("from %s with 7", file));
	setenv("PATH", path, 1);
	unlink(file);
	rmdir(dir);
}

static void test_program_when_children_are_ignored(void **state)
{
	struct sigaction after;

	signal(SIGCHLD, SIG_IGN);
	assert_string_equal(run_program("echo", "x"), "x");
	assert_null(run_program("false"));
	assert_string_equal(fault.text, "value of TOKEN: 'false' ended with status 1");
	sigaction(SIGCHLD, NULL, &after);
	assert_true(after.sa_handler == SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	const int deadly[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_default_message),
		cmocka_unit_test(test_hostile_message),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_rest_of_a_paste),
		cmocka_unit_test(test_typed_before),
		cmocka_unit_test(test_deadly_signals),
		cmocka_unit_test(test_ignored_signal),
		cmocka_unit_test(test_handled_signal),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stop_from_outside),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_background_is_killed),
		cmocka_unit_test(test_stuck_terminal),
		cmocka_unit_test(test_hangup),
		cmocka_unit_test(test_no_terminal),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_program_without_shell),
		cmocka_unit_test(test_program_fails),
		cmocka_unit_test(test_program_output),
		cmocka_unit_test(test_program_streams),
		cmocka_unit_test(test_program_by_path),
		cmocka_unit_test(test_program_when_children_are_ignored),
	};

	/* nohup and a shell's `&` ignore some for all their children. */
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		signal(deadly[i], SIG_DFL);
	/* A directory that may not be searched would make "not there" a "not allowed". */
	setenv("PATH", "/usr/bin:/bin", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
