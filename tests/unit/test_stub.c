/*
 * tests/unit/test_stub.c - what stands for absent names, and goes away again
 *
 * A box is a child that only waits; its end is what a janitor waits for. Its supervisor is
 * another, as there is one in each carrel. Verdicts are what is on the disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "box/stubs.h"
#include "box/stub.h"
#include "plan/plan.h"

static char dir[64], states[64];

static const char *in_dir(const char *name)
{
	return path_join(dir, name);
}

static int set_up(void **state)
{
	strcpy(dir, "/tmp/carrel-stub-XXXXXX");
	strcpy(states, "/tmp/carrel-state-XXXXXX");
	if (!mkdtemp(states))
		return -1;
	setenv("XDG_RUNTIME_DIR", states, 1);
	unsetenv("HOME");
	return mkdtemp(dir) && mkdir(in_dir("sub"), 0700) == 0 ? 0 : -1;
}

/* ---- boxes ---- */

enum { TOLD = 3 }; /* how a supervisor ends that was told of a name that was replaced */

struct answer {
	int rc;
	bool none; /* there was nothing to make */
	struct fault fault;
};

/* When a supervisor removed its stubs. Shared with it. */
struct removal {
	struct timespec began, ended;
};

struct box {
	pid_t pid, supervisor;
	int pidfd;
	int order; /* our end of the supervisor's pipe: closed, it removes the stubs */
	struct plan plan;
	struct answer answer;
	struct removal *removal; /* NULL: nobody asks */
};

static pid_t children[16]; /* that still run, for when a test has failed */
static size_t children_n;

static int child_end(pid_t pid, bool by_force)
{
	int status = 0;

	if (by_force)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	for (size_t i = 0; i < children_n; i++)
		if (children[i] == pid)
			children[i] = children[--children_n];
	return status;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "a", "b", "text", "sub/a" };

	while (children_n)
		child_end(children[children_n - 1], true);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(in_dir(names[i]));
	rmdir(in_dir("sub"));
	unlink(path_join(states, "carrel/stubs.seats"));
	rmdir(path_join(states, "carrel"));
	unlink(path_join(states, "other/carrel/stubs.seats"));
	rmdir(path_join(states, "other/carrel"));
	rmdir(path_join(states, "other"));
	rmdir(states);
	return rmdir(dir);
}

static struct box box_start(void)
{
	struct box box = { .pid = fork() };

	if (box.pid == 0)
		for (;;)
			pause();
	children[children_n++] = box.pid;
	box.pidfd = (int)syscall(SYS_pidfd_open, box.pid, 0);
	assert_true(box.pidfd >= 0);
	return box;
}

static void box_protect(struct box *box, const char *name, const char *text)
{
	vec_push(&box->plan.places,
		((struct place){ .kind = PLACE_STUB, .source = in_dir(name), .text = text }));
}

static void supervise(const struct box *box, int order, int answer)
{
	struct answer a = { 0 };
	struct removal removal;
	struct stubs *stubs = NULL;
	char byte;
	bool told;

	mem_own();
	prctl(PR_SET_NAME, "carrel", 0, 0, 0);
	a.rc = stubs_make(&box->plan, box->pidfd, &stubs, &a.fault);
	a.none = !stubs;
	(void)!write(answer, &a, sizeof(a));
	(void)!read(order, &byte, 1);
	clock_gettime(CLOCK_MONOTONIC, &removal.began);
	told = *stubs_remove(stubs);
	clock_gettime(CLOCK_MONOTONIC, &removal.ended);
	if (box->removal)
		*box->removal = removal;
	_exit(told ? TOLD : 0);
}

/* Start the supervisor and let it make the stubs; what stubs_make() returned. */
static int box_make(struct box *box)
{
	int order[2], answer[2];

	assert_int_equal(pipe2(order, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	box->supervisor = fork();
	if (box->supervisor == 0) {
		/* Else a supervisor would hold the other's pipe open. */
		for (int fd = 3; fd < 64; fd++)
			if (fd != order[0] && fd != answer[1] && fd != box->pidfd)
				close(fd);
		supervise(box, order[0], answer[1]);
	}
	children[children_n++] = box->supervisor;
	close(order[0]);
	close(answer[1]);
	box->order = order[1];
	assert_int_equal(read(answer[0], &box->answer, sizeof(box->answer)),
		sizeof(box->answer));
	close(answer[0]);
	return box->answer.rc;
}

/*
 * The box dies, and its supervisor cleans up; or the supervisor died before. Was it told that
 * a name was replaced?
 */
static bool box_end(struct box *box)
{
	int status;

	child_end(box->pid, true);
	close(box->pidfd);
	if (!box->supervisor)
		return false;
	close(box->order);
	status = child_end(box->supervisor, false);
	return WIFEXITED(status) && WEXITSTATUS(status) == TOLD;
}

static void kill_supervisor(struct box *box)
{
	child_end(box->supervisor, true);
	close(box->order);
	box->supervisor = 0;
}

/* ---- what is on the disk ---- */

static bool present(const char *name)
{
	struct stat st;

	return lstat(in_dir(name), &st) == 0;
}

static bool is_stub(const char *name)
{
	return stub_at(AT_FDCWD, in_dir(name));
}

static ino_t inode(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in_dir(name), &st), 0);
	return st.st_ino;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	FILE *file = fopen(in_dir(name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(in_dir(name), mode), 0);
}

static void check_file(const char *name, const char *text)
{
	char got[64] = "";
	FILE *file = fopen(in_dir(name), "r");

	assert_non_null(file);
	assert_int_equal(fread(got, 1, sizeof(got) - 1, file), strlen(text));
	fclose(file);
	assert_string_equal(got, text);
}

/* Wait for what another process does; five seconds are for ever. */
static void wait_gone(const char *name)
{
	for (int i = 0; present(name); i++) {
		if (i == 500)
			fail_msg("%s is still there", name);
		nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
	}
}

/* ---- tests ---- */

static void test_make_and_remove(void **state)
{
	struct box box = box_start();
	struct stat st;

	box_protect(&box, "a", NULL);
	box_protect(&box, "sub/a", NULL);
	box_protect(&box, "text", ".\n");
	assert_int_equal(box_make(&box), 0);
	assert_true(is_stub("a") && is_stub("sub/a") && is_stub("text"));
	assert_int_equal(inode("a"), inode("sub/a"));
	check_file("text", ".\n");
	assert_int_equal(lstat(in_dir("a"), &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	box_end(&box);
	assert_false(present("a") || present("sub/a") || present("text"));
}

static void box_protect_dir(struct box *box, const char *name, bool inner)
{
	vec_push(&box->plan.places,
		((struct place){ .kind = inner ? PLACE_PIN : PLACE_STUB,
			.source = in_dir(name),
			.dir = true,
			.stub = inner }));
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in_dir(name), &st), 0);
	return st.st_mode;
}

/* A directory, with one in it that the box may write to. */
static void test_directories(void **state)
{
	struct box box = box_start();

	box_protect_dir(&box, "a", false);
	box_protect_dir(&box, "a/inner", true);
	assert_int_equal(box_make(&box), 0);
	assert_true(is_stub("a") && is_stub("a/inner"));
	assert_true(S_ISDIR(mode_of("a")) && S_ISDIR(mode_of("a/inner")));
	box_end(&box);
	assert_false(present("a"));
}

/* Somebody puts something into it: theirs from then on, and no surprise. */
static void test_directory_that_was_used(void **state)
{
	struct box box = box_start();

	box_protect_dir(&box, "a", false);
	box_protect_dir(&box, "a/inner", true);
	assert_int_equal(box_make(&box), 0);
	write_file("a/file", "mine", 0644);
	assert_false(is_stub("a"));
	assert_false(box_end(&box));
	check_file("a/file", "mine");
	assert_false(present("a/inner"));
	assert_int_equal(mode_of("a") & 07777, 0755);
	unlink(in_dir("a/file"));
	rmdir(in_dir("a"));
}

/* Somebody of this name has locked the directory itself, as a box can too. */
static pid_t lock_dir(const char *name, int how)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		prctl(PR_SET_NAME, name, 0, 0, 0);
		if (fd >= 0 && flock(fd, how | LOCK_NB) == 0)
			(void)!write(ready[1], "", 1);
		close(ready[1]);
		for (;;)
			pause();
	}
	children[children_n++] = pid;
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void test_a_lock_on_the_directory_is_in_nobodys_way(void **state)
{
	pid_t locker = lock_dir("other", LOCK_EX);
	struct box box = box_start();

	box_protect(&box, "a", NULL);
	assert_int_equal(box_make(&box), 0);
	assert_true(is_stub("a"));
	box_end(&box);
	assert_false(present("a"));
	child_end(locker, true);
}

/* Where there is no such directory, it is all there is; and other carrels go by it. */
static void test_a_lock_on_the_directory_alone(void **state)
{
	pid_t locker = lock_dir("other", LOCK_EX);
	struct box box = box_start(), other = box_start();

	unsetenv("XDG_RUNTIME_DIR");
	box_protect(&box, "a", NULL);
	assert_int_equal(box_make(&box), -EWOULDBLOCK);
	assert_false(present("a"));
	box_end(&box);
	child_end(locker, true);

	box = box_start();
	box_protect(&box, "a", NULL);
	box_protect(&other, "a", NULL);
	assert_int_equal(box_make(&box), 0);
	setenv("XDG_RUNTIME_DIR", states, 1);
	assert_int_equal(box_make(&other), 0);
	box_end(&other);
	assert_true(is_stub("a"));
	box_end(&box);
	assert_false(present("a"));
}

/* Two that do not see each other's seats. */
static void test_two_runtime_directories(void **state)
{
	struct box first = box_start(), second = box_start();

	box_protect(&first, "a", NULL);
	box_protect(&second, "a", NULL);
	assert_int_equal(box_make(&first), 0);
	setenv("XDG_RUNTIME_DIR", path_join(states, "other"), 1);
	assert_int_equal(box_make(&second), 0);
	box_end(&second);
	assert_true(is_stub("a"));
	box_end(&first);
	assert_false(present("a"));
}

/* A box that has their directory read-only cannot open them. */
static void test_the_seats_cannot_be_read(void **state)
{
	struct box box = box_start();
	struct stat st;

	box_protect(&box, "a", NULL);
	assert_int_equal(box_make(&box), 0);
	assert_int_equal(stat(path_join(states, "carrel/stubs.seats"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0200);
	box_end(&box);
}

/* As a power cut leaves them; and such as people make. */
static void test_leftover_directories(void **state)
{
	static const mode_t theirs[] = { 0755, 0700, 01777, 01775, 0 };
	struct box box = box_start();

	assert_int_equal(mkdir(in_dir("a"), 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++) {
		assert_int_equal(chmod(in_dir("a"), theirs[i]), 0);
		assert_false(is_stub("a"));
	}
	assert_int_equal(chmod(in_dir("a"), 01755), 0);
	assert_true(is_stub("a"));
	box_protect_dir(&box, "a", false);
	assert_int_equal(box_make(&box), 0);
	box_end(&box);
	assert_false(present("a"));
}

/* Other directories of the same look are nobody's business. */
static void test_directory_of_another_name_stays(void **state)
{
	struct box box = box_start();

	assert_int_equal(mkdir(in_dir("b"), 0700), 0);
	assert_int_equal(chmod(in_dir("b"), 01755), 0);
	box_protect_dir(&box, "a", false);
	assert_int_equal(box_make(&box), 0);
	box_end(&box);
	assert_true(present("b") && !present("a"));
	rmdir(in_dir("b"));
}

static void test_directory_and_a_killed_supervisor(void **state)
{
	struct box box = box_start();

	box_protect_dir(&box, "a", false);
	box_protect_dir(&box, "a/inner", true);
	assert_int_equal(box_make(&box), 0);
	kill_supervisor(&box);
	assert_true(is_stub("a"));
	box_end(&box);
	wait_gone("a");
}

static void test_nothing_to_do(void **state)
{
	struct box box = box_start();

	vec_push(&box.plan.places,
		((struct place){ .kind = PLACE_PROTECT, .source = in_dir("a") }));
	assert_int_equal(box_make(&box), 0);
	assert_true(box.answer.none);
	assert_false(present("a"));
	box_end(&box);
}

/*
 * The last one out removes them, whoever came first. Perhaps not at once: the janitor of the
 * one before may be still about to leave.
 */
static void check_two_boxes(bool first_leaves_first)
{
	struct box one = box_start(), two = box_start();
	struct box *first = first_leaves_first ? &one : &two;
	struct box *last = first_leaves_first ? &two : &one;

	box_protect(&one, "a", NULL);
	box_protect(&one, "text", "");
	box_protect(&two, "a", NULL);
	box_protect(&two, "text", "");
	assert_int_equal(box_make(&one), 0);
	assert_int_equal(box_make(&two), 0);
	box_end(first);
	assert_true(is_stub("a") && is_stub("text"));
	box_end(last);
	wait_gone("a");
	wait_gone("text");
}

static void test_two_boxes(void **state)
{
	check_two_boxes(true);
	check_two_boxes(false);
}

/* They share the directory but not the name. */
static void test_two_boxes_with_other_names(void **state)
{
	struct box one = box_start(), two = box_start();

	box_protect(&one, "a", NULL);
	box_protect(&two, "b", NULL);
	assert_int_equal(box_make(&one), 0);
	assert_int_equal(box_make(&two), 0);
	box_end(&one);
	assert_true(is_stub("b"));
	box_end(&two);
	wait_gone("b");
	wait_gone("a");
}

/* A power cut left it: the next box takes it over, and takes it away. */
static void test_leftover_is_recognised(void **state)
{
	struct box box = box_start();

	assert_int_equal(mknod(in_dir("a"), S_IFSOCK, 0), 0);
	write_file("text", ".\n", 01444);
	assert_true(is_stub("a") && is_stub("text"));
	box_protect(&box, "a", NULL);
	box_protect(&box, "text", ".\n");
	assert_int_equal(box_make(&box), 0);
	box_end(&box);
	assert_false(present("a") || present("text"));
}

/* Only root can make such a file here; whoever has made it, no box of ours has. */
static void test_another_users_is_no_stub(void **state)
{
	if (geteuid() != 0)
		return;
	assert_int_equal(mknod(in_dir("socket"), S_IFSOCK, 0), 0);
	write_file("text", ".\n", 01444);
	assert_true(is_stub("socket") && is_stub("text"));
	assert_int_equal(chown(in_dir("socket"), 54321, 54321), 0);
	assert_int_equal(chown(in_dir("text"), 54321, 54321), 0);
	assert_int_equal(chmod(in_dir("text"), 01444), 0);
	assert_false(is_stub("socket") || is_stub("text"));
	assert_int_equal(unlink(in_dir("socket")), 0);
	assert_int_equal(unlink(in_dir("text")), 0);
}

/* Another box ended between two looks: what was seen was a stub all the same. */
static void test_gone_since_it_was_seen(void **state)
{
	static const char *const names[] = { "socket", "text", "real" };
	struct stat st;

	assert_int_equal(mknod(in_dir("socket"), S_IFSOCK, 0), 0);
	write_file("text", ".\n", 01444);
	write_file("real", "x", 0644);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(lstat(in_dir(names[i]), &st), 0);
		assert_int_equal(unlink(in_dir(names[i])), 0);
		assert_int_equal(stub_seen(&st, AT_FDCWD, in_dir(names[i])), i < 2);
		assert_false(is_stub(names[i]));
	}
}

static void check_foreign(const char *name)
{
	struct box box = box_start();

	box_protect(&box, "b", NULL);
	box_protect(&box, name, NULL);
	assert_int_equal(box_make(&box), -EEXIST);
	assert_non_null(strstr(box.answer.fault.text, "appeared"));
	assert_true(box.answer.none);
	assert_true(present(name));
	assert_false(present("b")); /* what was made is removed */
	box_end(&box);
}

/* A file that appeared between the plan and the start is the user's. */
static void test_foreign_files_stay(void **state)
{
	static const mode_t modes[] = { 0644, 0444, 0, 01644, 01666 };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		write_file("a", "mine", modes[i]);
		assert_false(is_stub("a"));
		check_foreign("a");
		assert_int_equal(chmod(in_dir("a"), 0600), 0);
		check_file("a", "mine");
		unlink(in_dir("a"));
	}
	/* A box could give this mode to a file of the user's; what it says is not ours. */
	write_file("a", "mine", 01444);
	assert_false(is_stub("a"));
	check_foreign("a");
	check_file("a", "mine");
	unlink(in_dir("a"));
	assert_int_equal(symlink("nowhere", in_dir("a")), 0);
	check_foreign("a");
	unlink(in_dir("a"));
	assert_int_equal(mkdir(in_dir("a"), 0), 0);
	check_foreign("a");
	rmdir(in_dir("a"));
}

/* A program's own socket has permissions. */
static void test_real_sockets_are_no_stubs(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, in_dir("a"));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_false(is_stub("a"));
	check_foreign("a");
}

/* Replaced from outside while the box ran: what stands there is not ours any more. */
static void test_replaced_meanwhile(void **state)
{
	struct box box = box_start();

	box_protect(&box, "a", NULL);
	assert_int_equal(box_make(&box), 0);
	unlink(in_dir("a"));
	write_file("a", "mine", 0644);
	assert_true(box_end(&box));
	check_file("a", "mine");
}

static void test_missing_directory(void **state)
{
	struct box box = box_start();

	box_protect(&box, "a", NULL);
	box_protect(&box, "gone/a", NULL);
	assert_int_equal(box_make(&box), -ENOENT);
	assert_true(box.answer.none);
	assert_false(present("a"));
	box_end(&box);
}

/* The directory was swapped for a link to another place: nothing is made there. */
static void test_directory_became_a_link(void **state)
{
	struct box box = box_start();

	assert_int_equal(rmdir(in_dir("sub")), 0);
	assert_int_equal(symlink("/tmp", in_dir("sub")), 0);
	box_protect(&box, "sub/carrel-stub-test", NULL);
	assert_true(box_make(&box) < 0);
	assert_int_not_equal(access("/tmp/carrel-stub-test", F_OK), 0);
	box_end(&box);
	assert_int_equal(unlink(in_dir("sub")), 0);
	assert_int_equal(mkdir(in_dir("sub"), 0700), 0);
}

/* Killed: the stubs stay for as long as the box lives, and no longer. */
static void test_supervisor_killed(void **state)
{
	struct box box = box_start();

	box_protect(&box, "a", NULL);
	box_protect(&box, "text", "");
	assert_int_equal(box_make(&box), 0);
	kill_supervisor(&box);
	nanosleep(&(struct timespec){ .tv_nsec = 200 * 1000 * 1000 }, NULL);
	assert_true(is_stub("a") && is_stub("text"));
	box_end(&box);
	wait_gone("a");
	wait_gone("text");
}

/* One of two supervisors is killed; the other's box still needs them. */
static void test_one_of_two_supervisors_killed(void **state)
{
	struct box killed = box_start(), other = box_start();

	box_protect(&killed, "a", NULL);
	box_protect(&other, "a", NULL);
	assert_int_equal(box_make(&killed), 0);
	assert_int_equal(box_make(&other), 0);
	kill_supervisor(&killed);
	box_end(&killed);
	nanosleep(&(struct timespec){ .tv_nsec = 200 * 1000 * 1000 }, NULL);
	assert_true(is_stub("a"));
	box_end(&other);
	wait_gone("a");
}

/* Both at once, many times: one of them must feel responsible. */
static void test_two_boxes_end_together(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct box one = box_start(), two = box_start();

		box_protect(&one, "a", NULL);
		box_protect(&two, "a", NULL);
		assert_int_equal(box_make(&one), 0);
		assert_int_equal(box_make(&two), 0);
		kill(one.pid, SIGKILL);
		kill(two.pid, SIGKILL);
		close(one.order);
		close(two.order);
		one.order = two.order = -1;
		assert_false(box_end(&one));
		assert_false(box_end(&two));
		wait_gone("a");
	}
}

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/*
 * What the other one removes while we look was not replaced. We look for long: at many files,
 * each of which could be one of many stubs by its name. It counts when the other one began
 * after us and had ended before us.
 */
static void test_removed_beside_us(void **state)
{
	enum { FILES = 100, NAMES = 2000, TIMES = 10, TRIES = 200 };
	struct removal *both = mmap(NULL, 2 * sizeof(*both), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool told = false;
	int met = 0;

	assert_true(both != MAP_FAILED);
	for (int i = 0; i < FILES; i++)
		write_file(mem_printf("file-%d", i), "", 0644);
	for (int i = 0; i < TRIES && met < TIMES; i++) {
		struct box slow = box_start(), quick = box_start();

		slow.removal = &both[0];
		quick.removal = &both[1];
		box_protect(&slow, "a", NULL);
		box_protect(&quick, "a", NULL);
		for (int k = 0; k < NAMES; k++) /* one file: many would take long to remove */
			box_protect(&slow, "sub/file-x", "");
		assert_int_equal(box_make(&slow), 0);
		assert_int_equal(box_make(&quick), 0);
		close(slow.order);
		nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 }, NULL);
		close(quick.order);
		slow.order = quick.order = -1;
		told |= box_end(&quick);
		told |= box_end(&slow);
		wait_gone("a");
		met += before(&both[0].began, &both[1].began) &&
			before(&both[1].ended, &both[0].ended);
	}
	for (int i = 0; i < FILES; i++)
		unlink(in_dir(mem_printf("file-%d", i)));
	munmap(both, 2 * sizeof(*both));
	assert_false(told);
	assert_true(met > 0);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_make_and_remove),
		TEST(test_directories),
		TEST(test_directory_that_was_used),
		TEST(test_a_lock_on_the_directory_is_in_nobodys_way),
		TEST(test_a_lock_on_the_directory_alone),
		TEST(test_two_runtime_directories),
		TEST(test_the_seats_cannot_be_read),
		TEST(test_leftover_directories),
		TEST(test_directory_of_another_name_stays),
		TEST(test_directory_and_a_killed_supervisor),
		TEST(test_nothing_to_do),
		TEST(test_two_boxes),
		TEST(test_two_boxes_with_other_names),
		TEST(test_leftover_is_recognised),
		TEST(test_another_users_is_no_stub),
		TEST(test_gone_since_it_was_seen),
		TEST(test_foreign_files_stay),
		TEST(test_real_sockets_are_no_stubs),
		TEST(test_replaced_meanwhile),
		TEST(test_missing_directory),
		TEST(test_directory_became_a_link),
		TEST(test_supervisor_killed),
		TEST(test_one_of_two_supervisors_killed),
		TEST(test_two_boxes_end_together),
		TEST(test_removed_beside_us),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	alarm(100);
	return cmocka_run_group_tests_name("stub", tests, NULL, NULL);
}
