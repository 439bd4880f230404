/*
 * tests/unit/test_walk.c - the walk through a tree that may be hostile
 *
 * Walks happen in a child that is a normal user, whoever runs the tests: root may read
 * everything, and the interesting cases are about what may not be read. The child writes
 * down what it saw.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "host/walk-cache.h"
#include "host/walk.h"

enum { NORMAL_USER = 12345 };

static char top[64];

static const char *in_top(const char *name)
{
	return path_join(top, name);
}

static int set_up(void **state)
{
	strcpy(top, "/tmp/carrel-walk-XXXXXX");
	return mkdtemp(top) && chmod(top, 0755) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	return system(mem_printf("chmod -R u+rwx '%s' && rm -rf '%s'", top, top));
}

static void own(const char *path)
{
	if (getuid() == 0)
		assert_int_equal(lchown(path, NORMAL_USER, NORMAL_USER), 0);
}

static void make_dir(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(in_top(name), mode), 0);
	own(in_top(name));
}

static void make_file(const char *name)
{
	int fd = open(in_top(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
	own(in_top(name));
}

static void make_link(const char *name, const char *text)
{
	assert_int_equal(symlink(text, in_top(name)), 0);
}

/* ---- walking ---- */

/* Shared with the child. Entries are kept as "rel\n", directories as "rel/\n". */
struct seen {
	int rc;
	unsigned long n;
	bool orderly; /* directories came before what is in them */
	struct fault fault;
	size_t len;
	char text[64 * 1024];
};

struct visitor {
	struct seen *seen;
	const char *skip;
};

static enum walk_next note(void *ctx, const struct walk_entry *entry)
{
	struct visitor *v = ctx;
	struct seen *s = v->seen;
	const char *slash = strrchr(entry->rel, '/');
	struct stat st;

	s->n++;
	if (strcmp(path_base(entry->rel), entry->name) ||
		fstatat(walk_dir(entry), entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		S_ISDIR(st.st_mode) != entry->is_dir)
		s->orderly = false;
	if (s->len + strlen(entry->rel) + 3 > sizeof(s->text))
		return WALK_ON;
	if (slash &&
		!memmem(s->text, s->len,
			mem_strndup(entry->rel, (size_t)(slash - entry->rel + 1)),
			(size_t)(slash - entry->rel + 1)))
		s->orderly = false;
	s->len += (size_t)sprintf(s->text + s->len, "%s%s\n", entry->rel,
		entry->is_dir ? "/" : "");
	return v->skip && !strcmp(entry->name, v->skip) ? WALK_SKIP : WALK_ON;
}

static struct seen *seen_make(void)
{
	struct seen *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(s != MAP_FAILED);
	s->orderly = true;
	return s;
}

/* What a child allocates must be its own, too. */
static void as_normal_user(void)
{
	mem_own();
	if (getuid() == 0 &&
		(setresgid(NORMAL_USER, NORMAL_USER, NORMAL_USER) < 0 ||
			setresuid(NORMAL_USER, NORMAL_USER, NORMAL_USER) < 0))
		_exit(2);
}

static struct seen *walk(const char *root, walk_visit *visit, const char *skip)
{
	struct seen *s = seen_make();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct visitor v = { .seen = s, .skip = skip };

		as_normal_user();
		s->rc = walk_tree(&(struct walk_how){ .root = root, .visit = visit, .ctx = &v },
			&s->fault);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return s;
}

static bool saw(const struct seen *s, const char *entry)
{
	const char *line = mem_printf("\n%s\n", entry);
	const char *text = mem_printf("\n%s", s->text);

	return strstr(text, line) != NULL;
}

/* ---- tests ---- */

static void test_everything_once(void **state)
{
	struct seen *s;

	make_dir("a", 0755);
	make_dir("a/b", 0755);
	make_dir("empty", 0755);
	make_file("f");
	make_file("a/.hidden");
	make_file("a/b/...");
	make_file("a/new\nline");
	make_file("\xff\xfe");
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->n, 8);
	assert_true(s->orderly);
	assert_true(saw(s, "a/") && saw(s, "a/b/") && saw(s, "empty/") && saw(s, "f"));
	assert_true(saw(s, "a/.hidden") && saw(s, "a/b/...") && saw(s, "\xff\xfe"));
}

static void test_empty(void **state)
{
	struct seen *s = walk(top, note, NULL);

	assert_int_equal(s->rc, 0);
	assert_int_equal(s->n, 0);
}

static void test_skip(void **state)
{
	struct seen *s;

	make_dir("node_modules", 0755);
	make_file("node_modules/x");
	make_dir("src", 0755);
	make_file("src/x");
	s = walk(top, note, "node_modules");
	assert_int_equal(s->n, 3);
	assert_true(saw(s, "node_modules/") && saw(s, "src/x"));
}

/* Links are entries and never ways: not out, not up, not in circles. */
static void test_links_are_not_followed(void **state)
{
	struct seen *s;

	make_dir("real", 0755);
	make_file("real/x");
	make_link("inside", "real");
	make_link("outside", "/etc");
	make_link("up", "..");
	make_link("self", "self");
	make_link("real/loop", "../real");
	make_link("dangling", "nowhere");
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->n, 8);
	assert_true(saw(s, "inside") && saw(s, "outside") && saw(s, "up"));
	assert_true(saw(s, "real/loop"));
}

static void test_other_kinds_of_files(void **state)
{
	struct seen *s;

	assert_int_equal(mkfifo(in_top("fifo"), 0600), 0);
	assert_int_equal(mknod(in_top("socket"), S_IFSOCK, 0), 0);
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, 0);
	assert_true(saw(s, "fifo") && saw(s, "socket"));
}

/*
 * A directory of one's own without permissions: the box could give them back, so it is not
 * passed over, and what to do is said.
 */
static void test_own_unreadable(void **state)
{
	struct seen *s;

	make_dir("closed", 0755);
	make_file("closed/.env");
	make_dir("open", 0755);
	make_file("open/x");
	assert_int_equal(chmod(in_top("closed"), 0), 0);
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, -EACCES);
	assert_non_null(strstr(s->fault.text, "closed"));
	assert_non_null(strstr(s->fault.fix, "--hide 'closed'"));
	assert_true(saw(s, "open/x")); /* the rest is looked at all the same */
	s = walk(top, note, "closed");
	assert_int_equal(s->rc, 0);
}

static enum walk_next only_root_home(void *ctx, const struct walk_entry *entry)
{
	((struct visitor *)ctx)->seen->n++;
	return !strcmp(entry->rel, "root") ? WALK_ON : WALK_SKIP;
}

/* Somebody else's: the box cannot open it either. */
static void test_foreign_unreadable(void **state)
{
	struct seen *s = walk("/", only_root_home, NULL);

	assert_int_equal(s->rc, 0);
	if (getuid() != 0)
		return;
	assert_int_equal(mkdir(in_top("theirs"), 0700), 0);
	make_file("theirs/x");
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->n, 1);
}

static void test_no_such_root(void **state)
{
	struct seen *s = walk(in_top("gone"), note, NULL);

	assert_int_equal(s->rc, -ENOENT);
	make_file("file");
	s = walk(in_top("file"), note, NULL);
	assert_int_equal(s->rc, -ENOTDIR);
}

static void make_deep(int depth)
{
	int at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		if (getuid() == 0)
			assert_int_equal(fchown(next, NORMAL_USER, NORMAL_USER), 0);
		close(at);
		at = next;
	}
	close(at);
}

static void test_deep(void **state)
{
	struct seen *s;

	make_deep(1500);
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->n, 1500);
}

/* Deeper than any path that could be named: refused, not half looked at. */
static void test_too_deep(void **state)
{
	struct seen *s;

	make_deep(2200);
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, -ENAMETOOLONG);
	assert_non_null(strstr(s->fault.text, "d/d/d"));
}

/* More entries than one getdents64(2) returns. */
static void test_wide(void **state)
{
	enum { MANY = 3000 };
	struct seen *s;

	for (int i = 0; i < MANY; i++)
		make_file(mem_printf("a-rather-long-name-of-a-file-%d", i));
	s = walk(top, note, NULL);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->n, MANY);
}

struct swap {
	struct seen *seen;
	bool done;
};

/* The moment after a directory was listed, it becomes a link to somewhere else. */
static enum walk_next swap_for_link(void *ctx, const struct walk_entry *entry)
{
	struct swap *s = ctx;

	s->seen->n++;
	if (!s->done && !strcmp(entry->rel, "a")) {
		s->done = true;
		if (renameat(walk_dir(entry), "a", walk_dir(entry), "b") < 0 ||
			symlinkat("/etc", walk_dir(entry), "a") < 0)
			_exit(3);
	}
	return WALK_ON;
}

static void test_directory_swapped_for_link(void **state)
{
	struct seen *s = seen_make();
	int status;
	pid_t pid;

	make_dir("a", 0755);
	own(top);
	pid = fork();
	if (pid == 0) {
		struct swap swap = { .seen = s };

		as_normal_user();
		s->rc = walk_tree(&(struct walk_how){ .root = top,
					  .visit = swap_for_link,
					  .ctx = &swap },
			&s->fault);
		_exit(swap.done ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(s->rc, -ELOOP); /* what was in it may be anywhere: no absence */
	assert_true(s->n <= 3);          /* nothing of /etc */
}

/* A clock that counts in seconds may hide what changed in the second of the walk, or before. */
static void test_what_was_just_changed_is_not_trusted(void **state)
{
	struct walk_cache c = { .usable = true, .dev = 7, .begun = { 1000, 500 } };
	struct stat st = { .st_dev = 7, .st_ctim = { 997, 999999999 } };

	(void)state;
	assert_true(walk_cache_trusts(&c, &st));
	for (int late = 998; late <= 1003; late++) {
		st.st_ctim = (struct timespec){ late, 0 };
		assert_false(walk_cache_trusts(&c, &st));
	}
	st = (struct stat){ .st_dev = 8, .st_ctim = { 1, 0 } };
	assert_false(walk_cache_trusts(&c, &st));
	st.st_dev = 7;
	assert_true(walk_cache_trusts(&c, &st));
	c.usable = false;
	assert_false(walk_cache_trusts(&c, &st));
}

/* Each of the numbers by which a directory is known. */
static void test_a_directory_is_known_by_all_of_it(void **state)
{
	const struct walk_cache c = { .usable = true, .dev = 7 };
	const struct walk_known_dir d = {
		.inode = 5, .ctime = 100, .ctime_ns = 1, .mtime = 200, .mtime_ns = 2
	};
	const struct stat same = { .st_mode = S_IFDIR | 0755,
		.st_dev = 7,
		.st_ino = 5,
		.st_ctim = { 100, 1 },
		.st_mtim = { 200, 2 } };
	struct stat st[7];

	(void)state;
	assert_true(walk_cache_holds(&c, &d, &same));
	for (size_t i = 0; i < ARRAY_SIZE(st); i++)
		st[i] = same;
	st[0].st_mode = S_IFREG | 0755;
	st[1].st_dev++;
	st[2].st_ino++;
	st[3].st_ctim.tv_sec++;
	st[4].st_ctim.tv_nsec++;
	st[5].st_mtim.tv_sec++;
	st[6].st_mtim.tv_nsec++;
	for (size_t i = 0; i < ARRAY_SIZE(st); i++)
		assert_false(walk_cache_holds(&c, &d, &st[i]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_everything_once),
		TEST(test_empty),
		TEST(test_skip),
		TEST(test_links_are_not_followed),
		TEST(test_other_kinds_of_files),
		TEST(test_own_unreadable),
		TEST(test_foreign_unreadable),
		TEST(test_no_such_root),
		TEST(test_deep),
		TEST(test_too_deep),
		TEST(test_wide),
		TEST(test_directory_swapped_for_link),
		cmocka_unit_test(test_what_was_just_changed_is_not_trusted),
		cmocka_unit_test(test_a_directory_is_known_by_all_of_it),
	};

	alarm(100);
	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
