/*
 * Relays between all kinds of descriptors, with readers that are slow or leave.
 *
 * The relay runs in this process under an alarm: a relay that blocks, or that
 * waits for something that cannot come, ends the test. A writer and a reader are
 * children; the reader's verdict is a checksum of all bytes.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "supervise/relay.h"

enum { PLENTY = 3 * 1024 * 1024 + 17 };

struct sum {
	unsigned long long n, hash;
};

static unsigned long long seed = 1;

static unsigned char next_byte(unsigned long long *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned char)(*state >> 56);
}

static void sum_add(struct sum *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->hash = (s->hash ^ (unsigned char)p[i]) * 1099511628211ull;
	s->n += n;
}

/* What write_random(fd, total) writes. */
static struct sum sum_of_random(size_t total)
{
	unsigned long long state = seed;
	struct sum s = { 0 };

	for (size_t i = 0; i < total; i++) {
		char c = (char)next_byte(&state);

		sum_add(&s, &c, 1);
	}
	return s;
}

static void write_random(int fd, size_t total)
{
	unsigned long long state = seed, sizes = seed + 7;
	char buf[20000];

	while (total) {
		size_t n = 1 + next_byte(&sizes) * 73u, done = 0;

		n = n < total ? n : total;
		for (size_t i = 0; i < n; i++)
			buf[i] = (char)next_byte(&state);
		while (done < n) {
			ssize_t k = write(fd, buf + done, n - done);

			if (k < 0)
				_exit(1);
			done += (size_t)k;
		}
		total -= n;
	}
}

static struct sum read_all(int fd, unsigned int delay_us)
{
	struct sum s = { 0 };
	char buf[50000];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		sum_add(&s, buf, (size_t)n);
		usleep(delay_us);
	}
	return s;
}

static void close_all_but(int keep, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0 && fds[i] != keep)
			close(fds[i]);
}

static pid_t start_writer(int fd, const int *fds, size_t n, size_t total)
{
	pid_t pid = fork();

	if (pid == 0) {
		close_all_but(fd, fds, n);
		signal(SIGPIPE, SIG_DFL);
		write_random(fd, total);
		_exit(0);
	}
	return pid;
}

/* Exits with 0 when it has read exactly what write_random writes. */
static pid_t start_reader(int fd, const int *fds, size_t n, size_t total, unsigned int delay_us)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct sum want = sum_of_random(total), got;

		close_all_but(fd, fds, n);
		got = read_all(fd, delay_us);
		_exit(got.n == want.n && got.hash == want.hash ? 0 : 1);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static long pump(struct relay *r)
{
	struct pollfd pfd[2];
	long rounds = 0;

	while (r->state == RELAY_OPEN) {
		relay_poll(r, pfd);
		assert_true(poll(pfd, 2, -1) > 0);
		relay_pump(r, pfd);
		rounds++;
	}
	return rounds;
}

static void count_tap(void *ctx, const char *bytes, size_t n)
{
	sum_add(ctx, bytes, n);
}

static void make_pipe(int p[2])
{
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
}

/* A child writes into in[1], we move in[0] to out[1], a child reads out[0]. */
static void through(int in[2], int out[2], bool tap, unsigned int delay_us)
{
	int all[] = { in[0], in[1], out[0], out[1] };
	struct sum want = sum_of_random(PLENTY), seen = { 0 };
	pid_t writer = start_writer(in[1], all, 4, PLENTY);
	pid_t reader = start_reader(out[0], all, 4, PLENTY, delay_us);
	struct relay r;
	long rounds;

	close(in[1]);
	close(out[0]);
	relay_init(&r, in[0], out[1]);
	if (tap)
		relay_tap(&r, count_tap, &seen);
	rounds = pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	assert_int_equal(r.err, 0);
	assert_int_equal(r.moved, PLENTY);
	if (tap)
		assert_true(seen.n == want.n && seen.hash == want.hash);
	/* No spinning: a round is worth some bytes, also with a reader that is slow. */
	assert_true(rounds < PLENTY / 200);
	close(out[1]);
	close(in[0]);
	assert_int_equal(wait_for(writer), 0);
	assert_int_equal(wait_for(reader), 0);
}

static void test_pipe_to_pipe(void **state)
{
	int in[2], out[2];

	(void)state;
	make_pipe(in);
	make_pipe(out);
	through(in, out, false, 0);
}

static void test_slow_reader(void **state)
{
	int in[2], out[2];

	(void)state;
	make_pipe(in);
	make_pipe(out);
	through(in, out, false, 3000);
}

static void test_tap_and_slow_reader(void **state)
{
	int in[2], out[2];

	(void)state;
	make_pipe(in);
	make_pipe(out);
	through(in, out, true, 2000);
}

static void test_reopened_ends(void **state)
{
	int in[2], out[2], from, to;

	(void)state;
	make_pipe(in);
	make_pipe(out);
	from = relay_reopen(in[0], O_RDONLY);
	to = relay_reopen(out[1], O_WRONLY);
	assert_true(from >= 0 && to >= 0);
	assert_true(fcntl(from, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(to, F_GETFL) & O_NONBLOCK);
	/* The point of it all: those that we were given are as they were. */
	assert_false(fcntl(in[0], F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(out[1], F_GETFL) & O_NONBLOCK);
	close(in[0]);
	close(out[1]);
	in[0] = from;
	out[1] = to;
	through(in, out, true, 500);
}

static void test_sockets(void **state)
{
	int in[2], out[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	through(in, out, false, 500);
}

static void test_pipe_to_socket(void **state)
{
	int in[2], out[2];

	(void)state;
	make_pipe(in);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	through(in, out, false, 500);
}

static int temporary_file(int more_flags)
{
	char path[] = "/tmp/carrel-relay-XXXXXX";
	int fd = mkstemp(path), again;

	assert_true(fd >= 0);
	again = open(path, O_RDWR | O_CLOEXEC | more_flags);
	unlink(path);
	close(fd);
	return again;
}

static void pipe_to_file(int flags)
{
	int file = temporary_file(flags), in[2];
	struct sum want = sum_of_random(PLENTY), got;
	struct relay r;
	pid_t writer;

	make_pipe(in);
	writer = start_writer(in[1], in, 2, PLENTY);
	close(in[1]);
	relay_init(&r, in[0], file);
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	if (!(flags & O_APPEND)) /* which shows itself only when there is much at once */
		assert_true(r.splice);
	assert_int_equal(wait_for(writer), 0);
	lseek(file, 0, SEEK_SET);
	got = read_all(file, 0);
	assert_true(got.n == want.n && got.hash == want.hash);
	close(in[0]);
	close(file);
}

static void test_pipe_to_file(void **state)
{
	(void)state;
	pipe_to_file(0);
}

static void test_pipe_to_append_file(void **state)
{
	(void)state;
	pipe_to_file(O_APPEND);
}

static void test_file_to_pipe(void **state)
{
	int in[2] = { temporary_file(0), -1 }, out[2], all[3];
	struct relay r;
	pid_t reader;

	(void)state;
	write_random(in[0], PLENTY);
	lseek(in[0], 0, SEEK_SET);
	make_pipe(out);
	memcpy(all, (int[]){ in[0], out[0], out[1] }, sizeof(all));
	reader = start_reader(out[0], all, 3, PLENTY, 200);
	close(out[0]);
	relay_init(&r, in[0], out[1]);
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	close(out[1]);
	close(in[0]);
	assert_int_equal(wait_for(reader), 0);
}

static void test_null(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), in[2];
	struct relay r;
	pid_t writer;

	(void)state;
	make_pipe(in);
	relay_init(&r, null, in[1]);
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	writer = start_writer(in[1], in, 2, PLENTY);
	close(in[1]);
	relay_init(&r, in[0], null);
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	assert_int_equal(r.moved, PLENTY);
	assert_int_equal(wait_for(writer), 0);
	close(in[0]);
	close(null);
}

static void test_closed_ends(void **state)
{
	int p[2], null;
	struct relay r;

	(void)state;
	make_pipe(p);
	relay_init(&r, -1, p[1]);
	assert_int_equal(r.state, RELAY_EOF);
	relay_init(&r, p[0], -1);
	assert_int_equal(r.state, RELAY_BROKEN);
	assert_int_equal(relay_reopen(-1, O_RDONLY), -1);
	/* Not open for reading: at its end as well. */
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	relay_init(&r, null, p[1]);
	relay_tap(&r, count_tap, &(struct sum){ 0 });
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	close_all_but(-1, (int[]){ null, p[0], p[1] }, 3);
}

/* The reader leaves; the writer must learn it as if we were not there. */
static void reader_leaves(bool tap)
{
	int in[2], out[2], all[4];
	struct sum seen = { 0 };
	struct relay r;
	pid_t writer;
	int status;

	make_pipe(in);
	make_pipe(out);
	memcpy(all, (int[]){ in[0], in[1], out[0], out[1] }, sizeof(all));
	writer = start_writer(in[1], all, 4, 1u << 30);
	close(in[1]);
	close(out[0]);
	relay_init(&r, in[0], out[1]);
	if (tap)
		relay_tap(&r, count_tap, &seen);
	pump(&r);
	assert_int_equal(r.state, RELAY_BROKEN);
	assert_int_equal(r.err, EPIPE);
	close(in[0]);
	status = wait_for(writer);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	close(out[1]);
}

static void test_reader_leaves(void **state)
{
	(void)state;
	reader_leaves(false);
	reader_leaves(true);
}

/* Nothing flows, and still a lost reader is noticed. */
static void test_reader_leaves_while_idle(void **state)
{
	int in[2], out[2];
	struct pollfd pfd[2];
	struct relay r;

	(void)state;
	make_pipe(in);
	make_pipe(out);
	relay_init(&r, in[0], out[1]);
	relay_poll(&r, pfd);
	assert_int_equal(poll(pfd, 2, 0), 0);
	close(out[0]);
	relay_poll(&r, pfd);
	assert_int_equal(poll(pfd, 2, 1000), 1);
	relay_pump(&r, pfd);
	assert_int_equal(r.state, RELAY_BROKEN);
	close(in[0]);
	close(in[1]);
	close(out[1]);
}

static void test_socket_peer_leaves(void **state)
{
	int in[2], out[2];
	struct relay r;

	(void)state;
	make_pipe(in);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	assert_int_equal(write(in[1], "x", 1), 1);
	close(out[0]);
	relay_init(&r, in[0], out[1]);
	pump(&r);
	assert_int_equal(r.state, RELAY_BROKEN);
	assert_int_equal(r.err, EPIPE);
	close(in[0]);
	close(in[1]);
	close(out[1]);
}

static void test_hold(void **state)
{
	int in[2], out[2];
	struct pollfd pfd[2];
	struct relay r;
	char c;

	(void)state;
	make_pipe(in);
	make_pipe(out);
	assert_int_equal(write(in[1], "x", 1), 1);
	relay_init(&r, in[0], out[1]);
	r.hold = true;
	relay_poll(&r, pfd);
	assert_int_equal(poll(pfd, 2, 0), 0);
	relay_pump(&r, pfd);
	assert_int_equal(r.moved, 0);
	r.hold = false;
	relay_poll(&r, pfd);
	assert_int_equal(poll(pfd, 2, 1000), 1);
	relay_pump(&r, pfd);
	assert_int_equal(read(out[0], &c, 1), 1);
	close_all_but(-1, (int[]){ in[0], in[1], out[0], out[1] }, 4);
}

/* A destination that takes nothing, ever: the relay must say so by returning. */
static void full_destination(int to, bool tap)
{
	char block[4096] = { 0 };
	struct sum seen = { 0 };
	struct pollfd pfd[2];
	struct relay r;
	int in[2];

	make_pipe(in);
	assert_int_equal(fcntl(in[1], F_SETFL, O_NONBLOCK), 0);
	relay_init(&r, in[0], to);
	if (tap)
		relay_tap(&r, count_tap, &seen);
	for (int i = 0, idle = 0; idle < 3 && i < 100000; i++) {
		while (write(in[1], block, sizeof(block)) > 0)
			;
		relay_poll(&r, pfd);
		if (poll(pfd, 2, 50) == 0)
			idle++;
		relay_pump(&r, pfd);
	}
	assert_int_equal(r.state, RELAY_OPEN);
	relay_poll(&r, pfd);
	assert_int_equal(poll(pfd, 2, 0), 0);
	close(in[0]);
	close(in[1]);
}

static void test_full_pipe(void **state)
{
	static const char odd[5000];
	int out[2];

	(void)state;
	for (int tap = 0; tap <= 1; tap++) {
		make_pipe(out);
		/* Not a multiple of anything, so that the last write would not fit. */
		assert_int_equal(write(out[1], odd, sizeof(odd)), (ssize_t)sizeof(odd));
		full_destination(out[1], tap);
		close(out[0]);
		close(out[1]);
	}
}

static void test_full_terminal(void **state)
{
	int master, slave, own;
	struct termios raw;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
	own = relay_reopen(slave, O_WRONLY);
	assert_true(own >= 0);
	assert_true(fcntl(own, F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(slave, F_GETFL) & O_NONBLOCK);
	full_destination(own, false);
	/* A second open of a master would be another terminal: it must be a duplicate. */
	close(own);
	own = relay_reopen(master, O_RDONLY);
	assert_int_equal(read(own, &(char){ 0 }, 1), 1);
	close(own);
	close(master);
	close(slave);
}

static void test_terminal_ends(void **state)
{
	int master, slave, out[2];
	struct relay r;
	char text[16] = "";

	(void)state;
	make_pipe(out);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(write(slave, "bye", 3), 3);
	close(slave);
	relay_init(&r, master, out[1]);
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	assert_int_equal(r.err, 0);
	assert_int_equal(read(out[0], text, sizeof(text)), 3);
	assert_string_equal(text, "bye");
	close_all_but(-1, (int[]){ master, out[0], out[1] }, 3);
}

/* What poll(2) says when the last bytes and the end come while it looks. */
static void test_last_bytes(void **state)
{
	struct pollfd pfd[2];
	int in[2], out[2];
	char text[16] = "";
	struct relay r;

	(void)state;
	make_pipe(in);
	make_pipe(out);
	relay_init(&r, in[0], out[1]);
	relay_poll(&r, pfd);
	assert_int_equal(write(in[1], "bye", 3), 3);
	close(in[1]);
	pfd[0].revents = POLLHUP;
	relay_pump(&r, pfd);
	assert_int_equal(r.moved, 3);
	pump(&r);
	assert_int_equal(r.state, RELAY_EOF);
	assert_int_equal(r.err, 0);
	assert_int_equal(read(out[0], text, sizeof(text)), 3);
	assert_string_equal(text, "bye");
	close_all_but(-1, (int[]){ in[0], out[0], out[1] }, 3);
}

/* A named pipe, to be read, whose only writer has written this and left. */
static int left_by_its_writer(const char *text)
{
	char dir[] = "/tmp/relay-XXXXXX", path[32];
	int from, writer;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	from = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(from >= 0 && writer >= 0);
	assert_int_equal(fcntl(from, F_SETFL, 0), 0);
	assert_int_equal(write(writer, text, strlen(text)), strlen(text));
	close(writer);
	unlink(path);
	rmdir(dir);
	return from;
}

static void test_writer_left_before_us(void **state)
{
	static const char *const texts[] = { "", "bye" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int from = left_by_its_writer(texts[i]), own, out[2];
		char text[16] = "";
		struct relay r;

		make_pipe(out);
		own = relay_reopen(from, O_RDONLY);
		relay_init(&r, own, out[1]);
		pump(&r);
		assert_int_equal(r.state, RELAY_EOF);
		assert_int_equal(r.err, 0);
		close(out[1]);
		assert_int_equal(read(out[0], text, sizeof(text)), strlen(texts[i]));
		assert_string_equal(text, texts[i]);
		close_all_but(-1, (int[]){ from, own, out[0] }, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipe_to_pipe),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_tap_and_slow_reader),
		cmocka_unit_test(test_reopened_ends),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_pipe_to_socket),
		cmocka_unit_test(test_pipe_to_file),
		cmocka_unit_test(test_pipe_to_append_file),
		cmocka_unit_test(test_file_to_pipe),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_closed_ends),
		cmocka_unit_test(test_reader_leaves),
		cmocka_unit_test(test_reader_leaves_while_idle),
		cmocka_unit_test(test_socket_peer_leaves),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_full_pipe),
		cmocka_unit_test(test_full_terminal),
		cmocka_unit_test(test_terminal_ends),
		cmocka_unit_test(test_last_bytes),
		cmocka_unit_test(test_writer_left_before_us),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
