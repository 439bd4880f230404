/*
 * tests/unit/test_registry.c - two boxes never have one name, and a dead one has none
 *
 * Claims are made by children, as starts are; each has a pipe to tell its name and lives until
 * it is killed. Everything is in a directory of its own, sockets have our pid in their name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "state/registry.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"

enum { MANY = 200, NOBODY = 54321 };

static char *base;       /* of this test, removed afterwards */
static const char *dir;  /* where the locks are */
static const char *name; /* nobody else's, also as a socket */

/* The arena is shared with children until they take their own. */
static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		mem_own();
	return pid;
}

static int setup(void **state)
{
	char made[] = "/tmp/carrel-registry-XXXXXX";

	if (!mkdtemp(made))
		return -1;
	base = mem_strdup(made);
	dir = path_join(base, "carrel");
	name = mem_printf("t%d", (int)getpid());
	setenv("XDG_RUNTIME_DIR", base, 1);
	unsetenv("HOME");
	unsetenv("XDG_STATE_HOME");
	alarm(100);
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	return system(mem_printf("chmod -R u+rwx %s; rm -rf %s", base, base));
}

static void without_directory(void)
{
	unsetenv("XDG_RUNTIME_DIR");
}

static const char *lock_of(const char *box)
{
	return mem_printf("%s/%s.lock", dir, box);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The name that is got, or NULL for a fault; checks that a fault touches nothing. */
static const char *claim_as(const char *wanted, enum claim_how how, struct claim *ret)
{
	struct claim c = { .name = "untouched", .lock = -7 };
	struct fault f = { 0 };

	if (registry_claim(wanted, how, &c, &f) < 0) {
		assert_string_equal(c.name, "untouched");
		assert_int_equal(c.lock, -7);
		return NULL;
	}
	assert_true(c.lock >= 0);
	assert_true(fcntl(c.lock, F_GETFD) & FD_CLOEXEC);
	*ret = c;
	return c.name;
}

static const char *peek_as(const char *wanted, enum claim_how how)
{
	struct claim c = { .name = NULL, .lock = -7 };
	struct fault f = { 0 };

	if (registry_peek(wanted, how, &c, &f) < 0)
		return NULL;
	assert_int_equal(c.lock, -1);
	registry_release(&c); /* nothing */
	return c.name;
}

/* --- one after the other --------------------------------------------------------- */

static void test_take_and_release(void **state)
{
	struct claim c;

	assert_string_equal(claim_as("box", CLAIM_STRICT, &c), "box");
	assert_true(exists(lock_of("box")));
	registry_release(&c);
	assert_int_equal(c.lock, -1);
	assert_false(exists(lock_of("box")));
	registry_release(&c); /* twice does no harm */
	assert_string_equal(claim_as("box", CLAIM_STRICT, &c), "box");
	registry_release(&c);
}

static void test_next(void **state)
{
	struct claim a, b, c, d;

	assert_string_equal(claim_as("box", CLAIM_NEXT, &a), "box");
	assert_string_equal(claim_as("box", CLAIM_NEXT, &b), "box-2");
	assert_string_equal(claim_as("box", CLAIM_NEXT, &c), "box-3");
	registry_release(&b);
	assert_string_equal(claim_as("box", CLAIM_NEXT, &b), "box-2");
	assert_string_equal(claim_as("box-3", CLAIM_NEXT, &d), "box-3-2");
	registry_release(&a);
	registry_release(&b);
	registry_release(&c);
	registry_release(&d);
}

static void test_strict(void **state)
{
	struct claim a, b;
	struct fault f = { 0 };

	assert_string_equal(claim_as("x", CLAIM_NEXT, &a), "x");
	assert_null(claim_as("x", CLAIM_STRICT, &b));
	assert_true(registry_claim("x", CLAIM_STRICT, &b, &f) < 0);
	assert_string_equal(f.text, "a box named 'x' is running already");
	assert_string_equal(f.fix,
		"Choose another --name, or leave it out and carrel will find a free one.");
	assert_int_equal(f.err, 0);
	assert_string_equal(claim_as("y", CLAIM_STRICT, &b), "y");
	registry_release(&a);
	assert_string_equal(claim_as("x", CLAIM_STRICT, &a), "x");
	registry_release(&a);
	registry_release(&b);
}

/* Somebody cleans up the directory, and another box takes the name: it stays his. */
static void test_release_of_a_name_that_is_anothers(void **state)
{
	struct claim a, b, c;

	assert_string_equal(claim_as("x", CLAIM_STRICT, &a), "x");
	assert_int_equal(unlink(lock_of("x")), 0);
	assert_string_equal(claim_as("x", CLAIM_STRICT, &b), "x");
	registry_release(&a);
	assert_true(exists(lock_of("x")));
	assert_null(claim_as("x", CLAIM_STRICT, &c));
	registry_release(&b);
	assert_false(exists(lock_of("x")));
}

static void test_names_that_are_paths(void **state)
{
	static const char *const bad[] = { "", ".", "..", "../x", "a/b", ".hidden" };
	struct claim c;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_null(claim_as(bad[i], CLAIM_NEXT, &c));
		assert_null(peek_as(bad[i], CLAIM_NEXT));
	}
	assert_non_null(claim_as("a.b", CLAIM_NEXT, &c));
	registry_release(&c);
}

static void test_long_names(void **state)
{
	char longest[64], longer[81], want[64];
	struct claim c[12];

	memset(longest, 'a', 63);
	memset(longer, 'b', 80);
	longest[63] = longer[80] = '\0';
	for (int i = 0; i < 12; i++)
		assert_non_null(claim_as(longest, CLAIM_NEXT, &c[i]));
	assert_string_equal(c[0].name, longest);
	snprintf(want, sizeof(want), "%.61s-2", longest);
	assert_string_equal(c[1].name, want);
	snprintf(want, sizeof(want), "%.60s-12", longest);
	assert_string_equal(c[11].name, want);
	for (int i = 0; i < 12; i++)
		registry_release(&c[i]);
	assert_null(claim_as(longer, CLAIM_STRICT, &c[0]));
	assert_non_null(claim_as(longer, CLAIM_NEXT, &c[0]));
	assert_int_equal(strlen(c[0].name), 63);
	registry_release(&c[0]);
}

/* One locked inode under all names. */
static void test_all_taken(void **state)
{
	struct claim first, c;
	struct fault f = { 0 };

	assert_non_null(claim_as("x", CLAIM_STRICT, &first));
	for (int i = 2; i <= 9999; i++)
		assert_int_equal(link(lock_of("x"), lock_of(mem_printf("x-%d", i))), 0);
	assert_null(claim_as("x", CLAIM_NEXT, &c));
	assert_null(peek_as("x", CLAIM_NEXT));
	assert_true(registry_claim("x", CLAIM_NEXT, &c, &f) < 0);
	assert_non_null(strstr(f.text, "x-9999"));
	unlink(lock_of("x-9999"));
	assert_string_equal(claim_as("x", CLAIM_NEXT, &c), "x-9999");
	registry_release(&c);
	registry_release(&first);
}

/* Dense up to some number, a few dozen looks find it; a gap below is found when all else is. */
static void test_next_of_many(void **state)
{
	struct claim first, c;

	assert_non_null(claim_as("x", CLAIM_STRICT, &first));
	for (int i = 2; i <= 1000; i++)
		assert_int_equal(link(lock_of("x"), lock_of(mem_printf("x-%d", i))), 0);
	assert_string_equal(peek_as("x", CLAIM_NEXT), "x-1001");
	assert_string_equal(claim_as("x", CLAIM_NEXT, &c), "x-1001");
	registry_release(&c);
	unlink(lock_of("x-5"));
	assert_string_equal(claim_as("x", CLAIM_NEXT, &c), "x-5");
	registry_release(&c);
	assert_int_equal(link(lock_of("x"), lock_of("x-5")), 0);
	for (int i = 1001; i <= 9999; i++)
		assert_int_equal(link(lock_of("x"), lock_of(mem_printf("x-%d", i))), 0);
	unlink(lock_of("x-77"));
	assert_string_equal(claim_as("x", CLAIM_NEXT, &c), "x-77");
	registry_release(&c);
	registry_release(&first);
}

/* What somebody put there is neither followed nor waited for. */
static void test_no_plain_files(void **state)
{
	struct claim c;

	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(symlink("elsewhere", lock_of(name)), 0);
	assert_non_null(claim_as(name, CLAIM_STRICT, &c));
	assert_true(is_socket(c.lock));
	assert_false(exists(path_join(dir, "elsewhere")));
	registry_release(&c);
	unlink(lock_of(name));
	assert_int_equal(mkfifo(lock_of(name), 0600), 0);
	assert_non_null(claim_as(name, CLAIM_STRICT, &c));
	assert_null(peek_as(name, CLAIM_STRICT));
	registry_release(&c);
}

/* --- many at once ---------------------------------------------------------------- */

struct start {
	pid_t pid;
	int pipe;
	char name[80]; /* "" when it got none */
};

/* Begins to claim when all have been forked and the gate is closed. */
static void start_one(struct start *s, const char *wanted, enum claim_how how, const int *gate)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	s->pid = fork_child();
	if (s->pid == 0) {
		struct claim c = { .name = "" };
		struct fault f = { 0 };
		char byte;

		close(gate[1]);
		(void)!read(gate[0], &byte, 1);
		registry_claim(wanted, how, &c, &f);
		(void)!write(ends[1], c.name, strlen(c.name));
		close(ends[1]);
		for (;;)
			pause();
	}
	close(ends[1]);
	s->pipe = ends[0];
}

static void read_name(struct start *s)
{
	ssize_t n = read(s->pipe, s->name, sizeof(s->name) - 1);

	s->name[n > 0 ? n : 0] = '\0';
	close(s->pipe);
}

static void start_many(struct start *all, int n, const char *wanted, enum claim_how how)
{
	int gate[2];

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	for (int i = 0; i < n; i++)
		start_one(&all[i], wanted, how, gate);
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < n; i++)
		read_name(&all[i]);
}

static void kill_all(const struct start *all, int n)
{
	for (int i = 0; i < n; i++)
		kill(all[i].pid, SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(all[i].pid, NULL, 0);
}

static void check_many(const char *wanted)
{
	static struct start all[MANY];
	bool seen[MANY + 1] = { false };
	size_t len = strlen(wanted);
	int with = 0;

	start_many(all, MANY, wanted, CLAIM_NEXT);
	kill_all(all, MANY);
	for (int i = 0; i < MANY; i++) {
		int number = all[i].name[len] ? atoi(all[i].name + len + 1) : 1;

		assert_int_equal(strncmp(all[i].name, wanted, len), 0);
		assert_in_range(number, 1, MANY);
		assert_false(seen[number]);
		seen[number] = true;
	}
	start_many(all, MANY, wanted, CLAIM_STRICT);
	kill_all(all, MANY);
	for (int i = 0; i < MANY; i++)
		with += all[i].name[0] != '\0';
	assert_int_equal(with, 1);
}

static void test_many(void **state)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	check_many("box");
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_in_range(to.tv_sec - from.tv_sec, 0, 20);
	assert_true(exists(lock_of("box")));
}

static void test_many_without_directory(void **state)
{
	without_directory();
	check_many(name);
	assert_false(exists(dir));
}

/* Take and give back as fast as possible; a mark that is there already is somebody else's. */
static int churn(enum claim_how how, int ms)
{
	struct timespec from, now;
	int held = 0;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		struct claim c;
		struct fault f = { 0 };
		char mark[200];
		int fd;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (registry_claim("box", how, &c, &f) < 0)
			continue;
		snprintf(mark, sizeof(mark), "%s/%s.mark", base, c.name);
		fd = open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			return -1;
		close(fd);
		usleep((useconds_t)(getpid() + held) % 200);
		unlink(mark);
		registry_release(&c);
		held++;
	} while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 <
		ms);
	return held;
}

static void check_churn(enum claim_how how)
{
	pid_t pids[12];
	int done = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork_child();
		if (pids[i] == 0) {
			int held = churn(how, 1500);

			_exit(held < 0 ? 1 : held > 0 ? 0 : 2);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), 1);
		done += WEXITSTATUS(status) == 0;
	}
	assert_true(done > 0);
}

static void test_churn(void **state)
{
	DIR *d;
	int left = 0;

	check_churn(CLAIM_STRICT);
	check_churn(CLAIM_NEXT);
	d = opendir(dir);
	for (struct dirent *e; (e = readdir(d));)
		left += e->d_name[0] != '.';
	closedir(d);
	assert_int_equal(left, 0);
}

/* --- who dies -------------------------------------------------------------------- */

static void check_crash(bool file)
{
	struct start one;
	struct claim c;

	start_many(&one, 1, name, CLAIM_STRICT);
	assert_string_equal(one.name, name);
	assert_null(claim_as(name, CLAIM_STRICT, &c));
	assert_null(peek_as(name, CLAIM_STRICT));
	kill_all(&one, 1);
	assert_int_equal(exists(lock_of(name)), file);
	assert_string_equal(peek_as(name, CLAIM_STRICT), name);
	assert_string_equal(claim_as(name, CLAIM_STRICT, &c), name);
	assert_int_equal(is_socket(c.lock), !file);
	registry_release(&c);
	assert_false(exists(lock_of(name)));
}

static void test_crash(void **state)
{
	check_crash(true);
}

static void test_crash_without_directory(void **state)
{
	without_directory();
	check_crash(false);
}

/*
 * Who is made without exec has a copy of the descriptor, and keeps the name until he closes
 * it; so whoever is to outlive the supervisor has to.
 */
static void check_inherited(bool closes)
{
	int ready[2], more[2];
	pid_t holder;
	struct claim c;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(more, O_CLOEXEC), 0);
	holder = fork_child();
	if (holder == 0) {
		struct claim held;

		if (!claim_as(name, CLAIM_STRICT, &held))
			_exit(1);
		if (fork_child() == 0) {
			if (closes)
				close(held.lock);
			(void)!write(ready[1], "x", 1);
			close(more[1]);
			(void)!read(more[0], &byte, 1);
			_exit(0);
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	if (closes)
		assert_non_null(peek_as(name, CLAIM_STRICT));
	else
		assert_null(peek_as(name, CLAIM_STRICT));
	close(ready[0]);
	close(ready[1]);
	close(more[0]);
	close(more[1]);
	while (!claim_as(name, CLAIM_STRICT, &c))
		usleep(1000); /* the orphan ends by itself */
	registry_release(&c);
}

static void test_inherited(void **state)
{
	check_inherited(false);
	check_inherited(true);
	without_directory();
	check_inherited(false);
	check_inherited(true);
}

/* --- looking --------------------------------------------------------------------- */

static void test_peek_creates_nothing(void **state)
{
	struct stat before, after;
	struct claim c, d;

	assert_string_equal(peek_as("box", CLAIM_NEXT), "box");
	assert_string_equal(peek_as("box", CLAIM_STRICT), "box");
	assert_false(exists(dir));
	assert_non_null(claim_as("box", CLAIM_STRICT, &c)); /* but a claim does */
	assert_true(exists(dir));
	assert_non_null(claim_as("box", CLAIM_NEXT, &d));
	usleep(20000);
	stat(dir, &before);
	assert_string_equal(peek_as("box", CLAIM_NEXT), "box-3");
	assert_null(peek_as("box", CLAIM_STRICT));
	stat(dir, &after);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_false(exists(lock_of("box-3")));
	registry_release(&c);
	assert_string_equal(peek_as("box", CLAIM_NEXT), "box");
	registry_release(&d);
}

static void test_peek_without_directory(void **state)
{
	struct claim c;

	without_directory();
	assert_string_equal(peek_as(name, CLAIM_NEXT), name);
	assert_non_null(claim_as(name, CLAIM_STRICT, &c));
	assert_string_equal(peek_as(name, CLAIM_NEXT), mem_printf("%s-2", name));
	assert_null(peek_as(name, CLAIM_STRICT));
	registry_release(&c);
	assert_string_equal(peek_as(name, CLAIM_STRICT), name);
}

/* Those who look are many, and nobody who claims may notice. */
static void test_peek_is_not_noticed(void **state)
{
	static const int rounds = 5000;
	pid_t lookers[4];
	struct claim c;
	int fd;

	assert_non_null(claim_as("box", CLAIM_STRICT, &c));
	registry_release(&c);
	fd = open(lock_of("box"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd); /* a file to look at also between two claims */
	for (size_t i = 0; i < ARRAY_SIZE(lookers); i++) {
		lookers[i] = fork_child();
		while (lookers[i] == 0) {
			struct fault f = { 0 };

			registry_peek("box", CLAIM_STRICT, &c, &f);
			usleep(20);
		}
	}
	for (int i = 0; i < rounds; i++) {
		assert_non_null(claim_as("box", CLAIM_STRICT, &c));
		close(c.lock); /* as in a crash: the file stays */
	}
	for (size_t i = 0; i < ARRAY_SIZE(lookers); i++) {
		kill(lookers[i], SIGKILL);
		waitpid(lookers[i], NULL, 0);
	}
}

/* --- no directory to be had ------------------------------------------------------ */

static void check_socket(void)
{
	struct claim a, b;

	assert_string_equal(claim_as(name, CLAIM_STRICT, &a), name);
	assert_true(is_socket(a.lock));
	assert_null(claim_as(name, CLAIM_STRICT, &b));
	assert_string_equal(claim_as(name, CLAIM_NEXT, &b), mem_printf("%s-2", name));
	registry_release(&a);
	registry_release(&b);
	assert_string_equal(claim_as(name, CLAIM_STRICT, &a), name);
	registry_release(&a);
}

static void test_unusable_directories(void **state)
{
	const char *file = path_join(base, "file");
	struct claim c;
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	close(fd);
	assert_non_null(claim_as(name, CLAIM_STRICT, &c)); /* the control */
	assert_false(is_socket(c.lock));
	registry_release(&c);
	without_directory();
	check_socket();
	setenv("HOME", "relative", 1);
	check_socket();
	unsetenv("HOME");
	setenv("XDG_RUNTIME_DIR", file, 1);
	check_socket();
	setenv("XDG_RUNTIME_DIR", "/proc/there/is/no/such", 1);
	check_socket();
	/* Neither what a session should have made, nor anything at home. */
	setenv("XDG_RUNTIME_DIR", path_join(base, "gone"), 1);
	check_socket();
	assert_false(exists(path_join(base, "gone")));
	setenv("HOME", base, 1);
	unsetenv("XDG_RUNTIME_DIR");
	check_socket();
	assert_false(exists(path_join(base, ".local")));
}

/* Run as a normal user, whom the modes of files concern. */
static void as_user(void (*check)(void))
{
	pid_t pid;
	int status;

	if (getuid() == 0)
		assert_int_equal(chown(base, NOBODY, NOBODY), 0);
	pid = fork_child();
	if (pid == 0) {
		if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(1);
		check();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* In the child a failed assertion cannot jump to cmocka. */
#define need(what)                                                                 \
	do {                                                                       \
		if (!(what)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
			_exit(1);                                                  \
		}                                                                  \
	} while (0)

/* A file's lock counts where no file can be made any more: the disk has become full. */
static void read_only(void)
{
	struct claim held, c = { .lock = -1 };
	struct fault f = { 0 };

	need(registry_claim(name, CLAIM_STRICT, &held, &f) == 0 && !is_socket(held.lock));
	need(chmod(dir, 0500) == 0);
	need(registry_peek(name, CLAIM_NEXT, &c, &f) == 0);
	need(!strcmp(c.name, mem_printf("%s-2", name)));
	need(registry_claim(name, CLAIM_NEXT, &c, &f) == 0);
	need(!strcmp(c.name, mem_printf("%s-2", name)) && is_socket(c.lock));
	registry_release(&c);
	need(registry_claim(name, CLAIM_STRICT, &c, &f) < 0);
	need(chmod(dir, 0700) == 0);
	registry_release(&held);
	need(registry_claim(name, CLAIM_STRICT, &c, &f) == 0 && !is_socket(c.lock));
	registry_release(&c);
}

static void test_read_only(void **state)
{
	as_user(read_only);
}

static void foreign(void)
{
	struct claim c;
	struct fault f = { 0 };

	need(registry_claim(name, CLAIM_STRICT, &c, &f) == 0 && is_socket(c.lock));
	need(registry_peek(name, CLAIM_STRICT, &(struct claim){ 0 }, &f) < 0);
	registry_release(&c);
	need(registry_peek(name, CLAIM_STRICT, &c, &f) == 0);
}

static void test_somebody_elses(void **state)
{
	if (getuid() != 0)
		skip(); /* nobody else to own it */
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(chmod(dir, 0777), 0); /* writable it would be */
	as_user(foreign);
	assert_false(exists(lock_of(name)));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_take_and_release),
		TEST(test_next),
		TEST(test_strict),
		TEST(test_release_of_a_name_that_is_anothers),
		TEST(test_names_that_are_paths),
		TEST(test_long_names),
		TEST(test_all_taken),
		TEST(test_next_of_many),
		TEST(test_no_plain_files),
		TEST(test_many),
		TEST(test_many_without_directory),
		TEST(test_churn),
		TEST(test_crash),
		TEST(test_crash_without_directory),
		TEST(test_inherited),
		TEST(test_peek_creates_nothing),
		TEST(test_peek_without_directory),
		TEST(test_peek_is_not_noticed),
		TEST(test_unusable_directories),
		TEST(test_read_only),
		TEST(test_somebody_elses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
