/*
 * tests/unit/test_tree.c - trees that a box has written: merged, removed, copied
 *
 * Merging is compared with a second, simple reading of overlayfs's rules: what the layers show
 * together must be the same before and after, for many random trees, and at whatever moment
 * the merging was killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "overlay/tree.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, ROUNDS = 300 };

static const char *base_dir;

static int setup(void **state)
{
	char made[] = "/tmp/carrel-tree-XXXXXX";

	if (!mkdtemp(made))
		return -1;
	base_dir = mem_strdup(made);
	alarm(100);
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	return system(mem_printf("chmod -R u+rwx %s; rm -rf %s", base_dir, base_dir));
}

/* ---- making trees ---- */

static const char *at(const char *path)
{
	return path_join(base_dir, path);
}

static void dir(const char *path)
{
	assert_int_equal(mkdir(at(path), 0755), 0);
}

static void file(const char *path, const char *text)
{
	auto_close int fd = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void whiteout(const char *path)
{
	assert_int_equal(mknod(at(path), S_IFCHR, makedev(0, 0)), 0);
}

static void opaque(const char *path)
{
	assert_int_equal(setxattr(at(path), "user.overlay.opaque", "y", 1, 0), 0);
}

static int opened(const char *path)
{
	int fd = open(at(path), DIR_FLAGS);

	assert_true(fd >= 0);
	return fd;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(at(path), &st) == 0;
}

static const char *text_of(const char *path)
{
	return fd_read_file(AT_FDCWD, at(path), 1 << 16);
}

static int remove_tree(const char *name)
{
	auto_close int top = open(base_dir, DIR_FLAGS);
	struct fault f = { 0 };

	return tree_remove(top, name, &f);
}

static int merge(const char *newer, const char *older, const char *below)
{
	auto_close int n = opened(newer), b = opened(older);
	auto_close int under = below ? opened(below) : TREE_NOTHING;
	struct fault f = { 0 };

	return tree_merge(n, b, under, &f);
}

/* ---- what layers show together ---- */

static enum { ABSENT, WHITEOUT, FILE_, DIR_ } kind(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return ABSENT;
	if (S_ISCHR(st.st_mode))
		return WHITEOUT;
	return S_ISDIR(st.st_mode) ? DIR_ : FILE_;
}

static bool is_opaque(const char *path)
{
	auto_close int fd = open(path, DIR_FLAGS);

	return fd >= 0 && tree_is_opaque(fd);
}

static const char *const names[] = { "a", "b", "c" };

/* layers: the uppermost first. */
static void view(const char *const *layers, size_t n, const char *rel, struct str *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *path = *rel ? path_join(rel, names[i]) : names[i];
		const char *under[8];
		size_t found = 0;

		for (size_t l = 0; l < n; l++) {
			const char *full = path_join(layers[l], path);

			if (kind(full) == ABSENT)
				continue;
			if (kind(full) != DIR_) {
				if (!found && kind(full) == FILE_)
					str_addf(out, "%s=%s\n", path,
						fd_read_file(AT_FDCWD, full, 100));
				break;
			}
			under[found++] = layers[l];
			if (is_opaque(full))
				break;
		}
		if (found) {
			str_addf(out, "%s/\n", path);
			view(under, found, path, out);
		}
	}
}

static const char *seen(const char *const *layers, size_t n)
{
	const char *full[8];
	struct str out = { 0 };

	for (size_t i = 0; i < n; i++)
		full[i] = at(layers[i]);
	str_add(&out, "");
	view(full, n, "", &out);
	return out.len ? out.p : "";
}

/* A random tree, as boxes leave them: white-outs only over something that is there. */
static void grow(const char *top, const char *rel, const char *const *lower, size_t n,
	int depth)
{
	static unsigned int number;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *path = *rel ? path_join(rel, names[i]) : names[i];
		const char *full = path_join(top, path);
		bool below = false;
		int what = rand() % 8;

		for (size_t l = 0; l < n; l++)
			below |= exists(path_join(lower[l], path));
		if (what < 2 && depth < 3) {
			dir(full);
			if (n && rand() % 3 == 0)
				opaque(full);
			grow(top, path, lower, is_opaque(at(full)) ? 0 : n, depth + 1);
		} else if (what == 2 && below) {
			whiteout(full);
		} else if (what < 5) {
			file(full, mem_printf("%u", number++));
		}
	}
}

/* overlayfs would list those as names that are not there. */
static void assert_no_useless_whiteouts(const char *layer, const char *below)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *path = path_join(layer, names[i]);
		bool nothing = !below || is_opaque(layer) || kind(below) != DIR_;

		if (kind(path) == WHITEOUT)
			assert_false(nothing);
		if (kind(path) == DIR_)
			assert_no_useless_whiteouts(path,
				nothing ? NULL : path_join(below, names[i]));
	}
}

static const char *const three[] = { "newer", "older", "users" };

static void random_layers(unsigned int seed)
{
	srand(seed);
	dir("newer"), dir("older"), dir("users");
	grow("users", "", NULL, 0, 0);
	grow("older", "", three + 2, 1, 0);
	grow("newer", "", three + 1, 2, 0);
}

static void forget(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(three); i++)
		assert_int_equal(remove_tree(three[i]), 0);
}

static void test_merged_shows_the_same(void **state)
{
	unsigned int changed = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		const char *before, *without;

		random_layers(i);
		before = seen(three, 3);
		without = seen(three + 1, 2);
		changed += strcmp(before, without) != 0;
		assert_int_equal(merge("newer", "older", "users"), 0);
		assert_string_equal(seen(three + 1, 2), before);
		assert_string_equal(seen(three, 3), before);
		assert_int_equal(rmdir(at("newer")), 0); /* it is empty */
		forget();
	}
	assert_true(changed > ROUNDS / 2); /* or there was nothing to lose */
}

static void test_killed_merge_shows_the_same(void **state)
{
	unsigned int halfway = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		const char *before;
		pid_t pid;
		int status;

		random_layers(i);
		before = seen(three, 3);
		pid = fork();
		if (pid == 0) {
			mem_own();
			_exit(merge("newer", "older", "users") == 0 ? 0 : 1);
		}
		usleep((unsigned int)rand() % 600);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		halfway += WIFSIGNALED(status) != 0;
		assert_string_equal(seen(three, 3), before);
		assert_int_equal(merge("newer", "older", "users"), 0);
		assert_string_equal(seen(three + 1, 2), before);
		forget();
	}
	assert_true(halfway > 10);
}

/* ---- single cases ---- */

static void test_directory_over_a_whiteout_hides_what_that_hid(void **state)
{
	dir("users"), dir("users/d"), file("users/d/old", "1");
	dir("older"), whiteout("older/d");
	dir("newer"), dir("newer/d"), file("newer/d/new", "2");
	assert_int_equal(merge("newer", "older", "users"), 0);
	assert_true(is_opaque(at("older/d")));
	assert_string_equal(text_of("older/d/new"), "2");
	forget();
	/* Where the user has no such directory there is nothing to hide. */
	dir("users"), dir("older"), file("older/d", "");
	dir("newer"), dir("newer/d");
	assert_int_equal(merge("newer", "older", "users"), 0);
	assert_false(is_opaque(at("older/d")));
	forget();
}

static void test_whiteouts_that_hide_nothing_go(void **state)
{
	dir("users"), dir("users/shared"), file("users/shared/f", "");
	dir("older"), dir("older/own"), file("older/own/f", "1"), dir("older/shared");
	dir("older/hiding"), opaque("older/hiding"), file("older/hiding/f", "2");
	dir("newer"), dir("newer/own"), whiteout("newer/own/f"), dir("newer/shared");
	dir("newer/hiding"), whiteout("newer/hiding/f"), whiteout("newer/shared/f");
	assert_int_equal(merge("newer", "older", "users"), 0);
	assert_false(exists("older/own/f"));
	assert_false(exists("older/hiding/f"));
	assert_true(exists("older/shared/f")); /* this one is needed */
	assert_no_useless_whiteouts(at("older"), at("users"));
	forget();
}

static void test_unknown_below_keeps_whiteouts(void **state)
{
	auto_close int n = -1, b = -1;
	struct fault f = { 0 };

	dir("older"), dir("older/d"), dir("newer"), dir("newer/d"), whiteout("newer/d/f");
	n = opened("newer"), b = opened("older");
	assert_int_equal(tree_merge(n, b, TREE_UNKNOWN, &f), 0);
	assert_true(exists("older/d/f"));
	assert_int_equal(remove_tree("older") | remove_tree("newer"), 0);
}

static void test_closed_directories(void **state)
{
	static const mode_t modes[] = { 0, 0100, 0300, 0400, 0500 };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		dir("users"), dir("older"), dir("older/d"), file("older/d/1", "1");
		dir("newer"), dir("newer/d"), file("newer/d/2", "2");
		dir("newer/alone"), file("newer/alone/3", "3");
		assert_int_equal(chmod(at("newer/d"), modes[i]), 0);
		assert_int_equal(chmod(at("newer/alone"), modes[i]), 0);
		assert_int_equal(chmod(at("older/d"), modes[i]), 0);
		assert_int_equal(merge("newer", "older", "users"), 0);
		assert_int_equal(chmod(at("older/d"), 0700) | chmod(at("older/alone"), 0700),
			0);
		assert_string_equal(text_of("older/d/2"), "2");
		assert_string_equal(text_of("older/d/1"), "1");
		assert_string_equal(text_of("older/alone/3"), "3");
		assert_int_equal(chmod(at("older/d"), modes[i]), 0);
		forget();
		assert_false(exists("older"));
	}
}

/* Links that lead out: whatever happens to them, nothing happens where they lead. */
static void test_links_are_bait(void **state)
{
	dir("bait"), dir("bait/d"), file("bait/f", "mine"), file("bait/d/f", "mine");
	dir("users"), dir("older"), dir("newer"), dir("newer/into");
	file("newer/into/f", "stolen"), dir("newer/over"), file("newer/over/g", "");
	file("newer/file", "stolen");
	assert_int_equal(symlink(at("bait"), at("older/into")), 0);
	assert_int_equal(symlink(at("bait"), at("older/over")), 0);
	assert_int_equal(symlink(at("bait/f"), at("older/file")), 0);
	assert_int_equal(symlink(at("bait"), at("newer/link")), 0);
	assert_int_equal(merge("newer", "older", "users"), 0);
	assert_string_equal(text_of("older/into/f"), "stolen"); /* the control: it did happen */
	assert_string_equal(text_of("older/file"), "stolen");
	assert_string_equal(text_of("bait/f"), "mine");
	forget();
	assert_string_equal(text_of("bait/f"), "mine");
	assert_string_equal(text_of("bait/d/f"), "mine");
	assert_false(exists("bait/g"));
	assert_int_equal(remove_tree("bait"), 0);
	assert_false(exists("bait"));
}

/* What has taken the place of a directory since it was looked at is not entered. */
static void test_links_are_not_entered(void **state)
{
	int top, fd;

	dir("in"), dir("in/bait");
	assert_int_equal(symlink(at("in/bait"), at("in/link")), 0);
	top = opened("in");
	assert_int_equal(tree_open(top, "link"), -1);
	assert_true(errno == ENOTDIR || errno == ELOOP);
	fd = tree_open(top, "bait");
	assert_true(fd >= 0);
	close(fd);
	close(top);
}

/* Deeper than a process has descriptors, and than a path may be long. */
static void make_deep(const char *top, int depth)
{
	int fd;

	dir(top);
	fd = opened(top);
	for (int i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "a-directory", 0700), 0);
		next = openat(fd, "a-directory", DIR_FLAGS);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void test_deep_trees(void **state)
{
	make_deep("deep", 3000);
	assert_int_equal(remove_tree("deep"), 0);
	assert_false(exists("deep"));
	dir("users");
	make_deep("older", 500), make_deep("newer", 700);
	assert_int_equal(merge("newer", "older", "users"), 0);
	assert_int_equal(rmdir(at("newer")), 0);
	assert_int_equal(remove_tree("older") | remove_tree("users"), 0);
}

static void test_two_remove_at_once(void **state)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid;
		int status;

		dir("newer"), dir("older"), dir("users");
		grow("newer", "", NULL, 0, 0);
		pid = fork();
		if (pid == 0) {
			mem_own();
			_exit(remove_tree("newer") == 0 ? 0 : 1);
		}
		assert_int_equal(remove_tree("newer"), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_false(exists("newer"));
		forget();
	}
}

static int hide_journals(void)
{
	auto_close int layer = opened("newer");
	auto_close int lower = opened("users");
	struct fault f = { 0 };

	return tree_hide_journals(layer, &lower, 1, &f);
}

static void test_journals(void **state)
{
	char longest[256];

	memset(longest, 'x', 255);
	memcpy(longest + 252, ".db", 4);
	dir("users"), dir("users/shared"), dir("newer"), dir("newer/shared"), dir("newer/own");
	file("newer/x.db", ""), file("newer/y.sqlite", ""), file("newer/y.sqlite-wal", "log");
	file("newer/plain", ""), file("newer/shared/z.db", ""), file("newer/own/z.db", "");
	file(mem_printf("newer/%s", longest), "");
	dir("newer/dir.db");
	assert_int_equal(hide_journals(), 0);
	assert_int_equal(kind(at("newer/x.db-wal")), WHITEOUT);
	assert_int_equal(kind(at("newer/x.db-shm")), WHITEOUT);
	assert_int_equal(kind(at("newer/shared/z.db-journal")), WHITEOUT);
	assert_string_equal(text_of("newer/y.sqlite-wal"), "log");
	assert_int_equal(kind(at("newer/y.sqlite-shm")), WHITEOUT);
	assert_false(exists("newer/y.sqlite-wal-shm"));
	assert_false(exists("newer/plain-wal"));
	assert_false(exists("newer/dir.db-wal"));
	assert_false(exists("newer/own/z.db-wal")); /* nothing is below it */
	assert_int_equal(hide_journals(), 0);
	assert_int_equal(remove_tree("newer") | remove_tree("users"), 0);
}

static void test_copy(void **state)
{
	auto_close int top = open(base_dir, DIR_FLAGS);
	unsigned int left_out = 0;
	struct fault f = { 0 };
	struct stat st;

	dir("from"), dir("from/d"), file("from/d/f", "text"), file("bait", "secret");
	assert_int_equal(chmod(at("from/d/f"), 06755), 0);
	assert_int_equal(symlink(at("bait"), at("from/d/link")), 0);
	assert_int_equal(mkfifo(at("from/fifo"), 0600), 0);
	assert_int_equal(tree_copy(top, "from", top, "to", &left_out, &f), 0);
	assert_string_equal(text_of("to/d/f"), "text");
	assert_int_equal(stat(at("to/d/f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_false(exists("to/d/link"));
	assert_int_equal(left_out, 2);
	/* Nothing is overwritten. */
	assert_int_equal(tree_copy(top, "from", top, "to", &left_out, &f), -EEXIST);
	assert_int_equal(remove_tree("from") | remove_tree("to") | remove_tree("bait"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_merged_shows_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_merge_shows_the_same, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_directory_over_a_whiteout_hides_what_that_hid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whiteouts_that_hide_nothing_go, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_unknown_below_keeps_whiteouts, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_closed_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_are_bait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_are_not_entered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deep_trees, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_remove_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_journals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
