/*
 * A box's control socket: a child serves as a supervisor would, the test asks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "supervise/control.h"
#include "state/registry.h"

static char *base;
static const char *dir;
static pid_t server;

static int set_up(void **state)
{
	char made[] = "/tmp/carrel-control-XXXXXX";

	(void)state;
	if (!mkdtemp(made))
		return -1;
	base = mem_strdup(made);
	dir = path_join(base, "carrel");
	setenv("XDG_RUNTIME_DIR", base, 1);
	alarm(60);
	return 0;
}

static void stop(int sig)
{
	if (server) {
		kill(server, sig);
		waitpid(server, NULL, 0);
	}
	server = 0;
}

static int tear_down(void **state)
{
	(void)state;
	stop(SIGKILL);
	return system(mem_printf("rm -rf %s", base));
}

static const char *sock(void)
{
	return path_join(dir, "x.sock");
}

/* ---- what a supervisor would do ---- */

static void status(void *ctx, struct json *j)
{
	json_string(j, "agent", ctx);
	json_number(j, "pid", getpid());
}

static int decide(void *ctx, const char *entry, bool deny, struct fault *f)
{
	(void)ctx;
	if (!strcmp(entry, "good") && deny)
		return 0;
	fault_set(f, 0, "'%s' is no entry", str_visible(entry));
	return fault_fix(f, "Write another.");
}

static const struct control_ops ops = { .status = status, .decide = decide };

static void serve(const char *agent, int ready)
{
	struct pollfd fds[CONTROL_FDS];
	struct fault f = { 0 };
	struct control c;
	struct claim held;
	void *mark;

	mem_own();
	if (registry_claim("x", CLAIM_STRICT, &held, &f) < 0 ||
		control_open(&c, "x", &ops, (void *)agent, &f) < 0)
		_exit(1);
	mark = mem_mark();
	(void)!write(ready, "x", 1);
	for (;;) {
		control_poll(&c, fds);
		if (poll(fds, CONTROL_FDS, -1) > 0)
			control_serve(&c, fds);
		if (mem_mark() != mark)
			_exit(2); /* nothing may be left of a request */
	}
}

static void start(const char *agent)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	server = fork();
	if (server == 0)
		serve(agent, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static bool is_alive(void)
{
	return waitpid(server, NULL, WNOHANG) == 0;
}

static int connect_raw(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const struct timeval wait = { 5, 0 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock());
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static const char *ask_agent(void)
{
	const struct json_value *reply = NULL, *agent;
	struct fault f = { 0 };

	if (control_ask("x", control_ask_status(), 5000, &reply, &f) < 0)
		fail_msg("%s", fault_line(&f));
	agent = json_member(json_member(reply, "status"), "agent");
	assert_non_null(agent);
	return agent->text;
}

/* ---- tests ---- */

static void test_status(void **state)
{
	struct stat st;

	(void)state;
	start("one \x1b[31m two");
	assert_int_equal(lstat(sock(), &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	for (int i = 0; i < 1000; i++)
		assert_string_equal(ask_agent(), "one \x1b[31m two");
	assert_true(is_alive());
}

static void test_decide(void **state)
{
	const struct json_value *reply;
	struct fault f = { 0 };

	(void)state;
	start("a");
	assert_int_equal(control_ask("x", control_ask_decide("good", true), 5000, &reply, &f),
		0);
	assert_true(control_ask("x", control_ask_decide("ba\"d", false), 5000, &reply, &f) < 0);
	assert_string_equal(f.text, "'ba\"d' is no entry");
	assert_string_equal(f.fix, "Write another.");
	assert_true(control_ask("x", control_ask_port("80", false), 5000, &reply, &f) < 0);
	assert_non_null(strstr(f.text, "ports"));
	assert_true(is_alive());
}

/* What is not a request is answered so, or ends the conversation; the next is served. */
static void test_nonsense(void **state)
{
	static const char *const bad[] = { "{", "[]", "{}", "{\"ask\":1}", "{\"ask\":\"x\"}",
		"\xff", "{\"ask\":\"decide\"}", "{\"ask\":\"decide\",\"entry\":{}}", " " };
	char big[CONTROL_REQUEST + 1], reply[1000];
	int fd;

	(void)state;
	start("a");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ssize_t n;

		fd = connect_raw();
		assert_true(send(fd, bad[i], strlen(bad[i]), MSG_NOSIGNAL) > 0);
		n = recv(fd, reply, sizeof(reply) - 1, 0);
		assert_true(n > 0);
		reply[n] = '\0';
		assert_true(str_starts(reply, "{\"ok\":false,"));
		close(fd);
	}
	memset(big, ' ', sizeof(big));
	memcpy(big, "{\"ask\":\"status\"}", 16);
	fd = connect_raw();
	assert_true(send(fd, big, CONTROL_REQUEST, MSG_NOSIGNAL) > 0);
	assert_true(recv(fd, reply, sizeof(reply), 0) > 0);
	assert_true(send(fd, big, sizeof(big), MSG_NOSIGNAL) > 0);
	assert_int_equal(recv(fd, reply, sizeof(reply), 0), 0);
	close(fd);
	assert_string_equal(ask_agent(), "a");
	assert_true(is_alive());
}

/* Many who say nothing, or never read: the next is served nevertheless. */
static void test_stalled(void **state)
{
	int fds[20];

	(void)state;
	start("a");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_raw();
	assert_string_equal(ask_agent(), "a");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	fds[0] = connect_raw();
	/* Until it hangs up on us. */
	while (send(fds[0], "{\"ask\":\"status\"}", 16, MSG_NOSIGNAL) > 0)
		;
	assert_true(errno == EPIPE || errno == ECONNRESET);
	close(fds[0]);
	assert_string_equal(ask_agent(), "a");
	assert_true(is_alive());
}

/* One whom the socket was handed somehow, in a user namespace of his own. */
static void test_other_namespace(void **state)
{
	int status_;
	pid_t pid;

	(void)state;
	start("a");
	assert_string_equal(ask_agent(), "a"); /* and without one it is answered */
	pid = fork();
	if (pid == 0) {
		char byte;
		int fd;

		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		fd = connect_raw();
		(void)!send(fd, "{\"ask\":\"status\"}", 16, MSG_NOSIGNAL);
		_exit(recv(fd, &byte, 1, 0) > 0 ? 1 : 0);
	}
	waitpid(pid, &status_, 0);
	if (WEXITSTATUS(status_) == 77)
		skip();
	assert_int_equal(status_, 0);
}

static void test_nobody_there(void **state)
{
	const struct json_value *reply;
	struct fault f = { 0 };
	struct claim held;

	(void)state;
	assert_true(control_ask("x", control_ask_status(), 500, &reply, &f) < 0);
	assert_non_null(strstr(f.text, "no box named 'x'"));
	assert_true(control_ask("../x", control_ask_status(), 500, &reply, &f) < 0);
	assert_non_null(strstr(f.text, "cannot be named"));
	assert_int_equal(registry_claim("x", CLAIM_STRICT, &held, &f), 0);
	assert_true(control_ask("x", control_ask_status(), 500, &reply, &f) < 0);
	assert_non_null(strstr(f.text, "no control socket"));
	registry_release(&held);
}

/* A socket of one that was killed is in nobody's way. */
static void test_left_over(void **state)
{
	const struct json_value *reply;
	registry_boxes all = { 0 };
	struct fault f = { 0 };

	(void)state;
	start("a");
	assert_int_equal(registry_list(&all, &f), 0);
	assert_int_equal(all.n, 1);
	assert_string_equal(all.v[0].name, "x");
	assert_true(all.v[0].pid == server || !all.v[0].pid);
	stop(SIGKILL);
	assert_int_equal(access(sock(), F_OK), 0);
	assert_true(control_ask("x", control_ask_status(), 500, &reply, &f) < 0);
	assert_non_null(strstr(f.text, "no box named 'x'"));
	all.n = 0;
	assert_int_equal(registry_list(&all, &f), 0);
	assert_int_equal(all.n, 0);
	start("b");
	assert_string_equal(ask_agent(), "b");
}

static void test_stopped(void **state)
{
	const struct json_value *reply;
	struct fault f = { 0 };

	(void)state;
	start("a");
	kill(server, SIGSTOP);
	assert_true(control_ask("x", control_ask_status(), 200, &reply, &f) < 0);
	assert_int_equal(f.err, ETIMEDOUT);
	kill(server, SIGCONT);
	assert_string_equal(ask_agent(), "a");
}

static void test_open_and_close(void **state)
{
	struct pollfd fds[CONTROL_FDS];
	struct control c = { 0 };
	struct fault f = { 0 };

	(void)state;
	/* There is no directory. */
	assert_int_equal(control_open(&c, "x", &ops, NULL, &f), -ENOENT);
	control_poll(&c, fds);
	for (int i = 0; i < CONTROL_FDS; i++)
		assert_int_equal(fds[i].fd, -1);
	control_serve(&c, fds);
	control_close(&c);
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_true(control_open(&c, "x", &ops, NULL, &f) < 0);
	assert_int_equal(chmod(dir, 0700), 0);
	/* What lies there is removed, never followed. */
	assert_int_equal(symlink("/etc/passwd", sock()), 0);
	assert_int_equal(control_open(&c, "x", &ops, NULL, &f), 0);
	control_close(&c);
	assert_int_equal(access(sock(), F_OK), -1);
	control_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
		TEST(test_status),
		TEST(test_decide),
		TEST(test_nonsense),
		TEST(test_stalled),
		TEST(test_other_namespace),
		TEST(test_nobody_there),
		TEST(test_left_over),
		TEST(test_stopped),
		TEST(test_open_and_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
