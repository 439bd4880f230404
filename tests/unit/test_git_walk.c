/*
 * tests/unit/test_git_walk.c - what a walk of a git directory visits, and what it passes over
 *
 * Walks happen in a child that is a normal user: what may not be read is part of it. The child
 * writes down what it saw, a line for each visit: what it is, "!" if git writes there, the path.
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
#include "git/git-walk.h"

enum { NORMAL_USER = 12345 };

static char top[64];

static const char *in_top(const char *name)
{
	return path_join(top, name);
}

static void own(const char *path)
{
	if (getuid() == 0)
		assert_int_equal(lchown(path, NORMAL_USER, NORMAL_USER), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(top, "/tmp/carrel-git-walk-XXXXXX");
	if (!mkdtemp(top) || chmod(top, 0755) < 0)
		return -1;
	own(top);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return system(mem_printf("chmod -R u+rwx '%s'; rm -rf '%s'", top, top));
}

/* "a/b/" is a directory, "a/b@" a link, "a/b|" a FIFO, "a/b" a file; with all above it. */
static void make(const char *name)
{
	char *path = mem_strdup(in_top(name)), last = path[strlen(path) - 1];

	for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(path, 0755) == 0)
			own(path);
		*slash = '/';
	}
	if (last == '/')
		return;
	if (strchr("@|", last))
		path[strlen(path) - 1] = '\0';
	if (last == '@')
		assert_int_equal(symlink("/etc/hostname", path), 0);
	else if (last == '|')
		assert_int_equal(mkfifo(path, 0600), 0);
	else
		close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
	own(path);
}

/* ---- walking ---- */

struct seen {
	int rc, visits, entered, unseen, err;
	size_t len;
	char text[16 * 1024], unseen_path[1024];
};

struct walker {
	struct seen *seen;
	int end_after; /* so many visits; 0: never */
	int answer;    /* of unseen(); 1 makes the directory accessible before */
};

static void entered(void *ctx, int dir, const char *path)
{
	struct walker *w = ctx;
	struct stat st, there;

	w->seen->entered +=
		fstat(dir, &st) == 0 && lstat(path, &there) == 0 && st.st_ino == there.st_ino;
}

static int visit(void *ctx, const struct git_entry *e, struct fault *f)
{
	static const char *const names[] = { "odd", "head", "config", "leads", "hook", "todo",
		"remote", "alternate" };
	struct walker *w = ctx;
	struct stat st;

	(void)f;
	if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != e->inode)
		return -ESTALE;
	w->seen->len += (size_t)snprintf(w->seen->text + w->seen->len,
		sizeof(w->seen->text) - w->seen->len, "%s%s %s\n", names[e->what],
		e->written ? "!" : "", path_below(path_join(e->dir_path, e->name), top));
	return ++w->seen->visits == w->end_after ? -ECANCELED : 0;
}

static int unseen(void *ctx, int dir, const char *name, const char *path, int err,
	struct fault *f)
{
	struct walker *w = ctx;

	(void)f;
	w->seen->unseen++;
	w->seen->err = err;
	snprintf(w->seen->unseen_path, sizeof(w->seen->unseen_path), "%s",
		path_below(path, top));
	if (w->answer == 1)
		w->seen->err = fchmodat(dir, name, 0700, 0) < 0 ? errno : err;
	return w->answer;
}

static struct seen *walk(const char *name, int end_after, int answer)
{
	struct seen *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct walker w = { s, end_after, answer };
	const struct git_visitor v = { &w, entered, visit, unseen };
	struct fault f = { 0 };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		mem_own();
		if (getuid() == 0 &&
			(setresgid(NORMAL_USER, NORMAL_USER, NORMAL_USER) < 0 ||
				setresuid(NORMAL_USER, NORMAL_USER, NORMAL_USER) < 0))
			_exit(2);
		s->rc = git_walk(in_top(name), &v, &f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return s;
}

static void expect(const struct seen *s, const char *const *lines, size_t n)
{
	const char *text = mem_printf("\n%s", s->text);

	for (size_t i = 0; i < n; i++)
		if (!strstr(text, mem_printf("\n%s\n", lines[i])))
			fail_msg("'%s' is not in:%s", lines[i], text);
	assert_int_equal(s->visits, n);
}

/* ---- tests ---- */

static void test_what_matters(void **state)
{
	static const char *const made[] = { "r/.git/HEAD", "r/.git/config",
		"r/.git/config.worktree", "r/.git/commondir", "r/.git/description",
		"r/.git/BISECT_NAMES", "r/.git/index", "r/.git/hooks/pre-commit",
		"r/.git/hooks/deep/er", "r/.git/objects/aa/link@", "r/.git/objects/pack/link@",
		"r/.git/objects/info/alternates", "r/.git/refs/heads/main",
		"r/.git/refs/heads/x@", "r/.git/logs/HEAD@", "r/.git/logs/refs/heads/main",
		"r/.git/COMMIT_EDITMSG@", "r/.git/MERGE_MSG|", "r/.git/rr-cache@",
		"r/.git/rebase-merge/git-rebase-todo", "r/.git/sequencer/todo",
		"r/.git/remotes/origin", "r/.git/branches/old", "r/.git/lfs/objects/aa/bb/x@",
		"r/.git/lfs/tmp/y@", "r/.git/somebody/else/z@", "r/.git/somebody/config",
		"r/.git/worktrees/w/HEAD", "r/.git/worktrees/w/gitdir",
		"r/.git/worktrees/w/ORIG_HEAD@", "r/.git/modules/a/b/config",
		"r/.git/modules/a/b/hooks/x", "r/.git/modules/a/b/modules/c/HEAD" };
	static const char *const lines[] = { "head! r/.git/HEAD", "config r/.git/config",
		"config r/.git/config.worktree", "leads r/.git/commondir",
		"hook r/.git/hooks/pre-commit", "hook r/.git/hooks/deep/er",
		"odd r/.git/objects/pack/link", "alternate r/.git/objects/info/alternates",
		"odd! r/.git/refs/heads/x", "odd! r/.git/logs/HEAD",
		"odd! r/.git/COMMIT_EDITMSG", "odd! r/.git/MERGE_MSG", "odd r/.git/rr-cache",
		"todo! r/.git/rebase-merge/git-rebase-todo", "todo! r/.git/sequencer/todo",
		"todo! r/.git/BISECT_NAMES", "remote r/.git/remotes/origin",
		"remote r/.git/branches/old", "odd r/.git/lfs/tmp/y",
		"odd r/.git/somebody/else/z", "head! r/.git/worktrees/w/HEAD",
		"leads r/.git/worktrees/w/gitdir", "odd! r/.git/worktrees/w/ORIG_HEAD",
		"config r/.git/modules/a/b/config", "hook r/.git/modules/a/b/hooks/x",
		"head! r/.git/modules/a/b/modules/c/HEAD" };
	struct seen *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		make(made[i]);
	s = walk("r/.git", 0, -EIO);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->unseen, 0);
	expect(s, lines, ARRAY_SIZE(lines));
}

/* In a bare repository only git's own names count: the rest may be a project. */
static void test_bare(void **state)
{
	static const char *const lines[] = { "head! r/HEAD", "config r/config",
		"odd! r/logs/HEAD", "odd! r/FETCH_HEAD", "odd! r/gc.pid",
		"odd! r/index.stash.77", "odd! r/rebased-patches", "odd! r/lost-found",
		"odd r/svn" };
	struct seen *s;

	(void)state;
	make("r/HEAD");
	make("r/config");
	make("r/logs/HEAD@");
	make("r/FETCH_HEAD@");
	make("r/gc.pid@");
	make("r/index.stash.77@");
	make("r/rebased-patches@");
	make("r/lost-found@");
	make("r/svn@");
	make("r/src/link@");
	make("r/link@");
	make("r/gc@");
	s = walk("r", 0, -EIO);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->entered, 2);
	expect(s, lines, ARRAY_SIZE(lines));
}

static void test_links_are_not_entered(void **state)
{
	static const char *const lines[] = { "odd! r/.git/refs", "head! r/.git/HEAD" };
	struct seen *s;

	(void)state;
	make("r/.git/HEAD");
	make("other/refs/config");
	assert_int_equal(symlink("../../other/refs", in_top("r/.git/refs")), 0);
	assert_int_equal(symlink("r/.git", in_top("to-it")), 0);
	expect(walk("r/.git", 0, -EIO), lines, ARRAY_SIZE(lines));
	s = walk("to-it", 0, -EIO);
	assert_int_equal(s->rc + s->visits + s->unseen, 0);
	s = walk("gone", 0, -EIO);
	assert_int_equal(s->rc + s->visits + s->unseen, 0);
}

static void test_visitor_ends_the_walk(void **state)
{
	struct seen *s;

	(void)state;
	make("r/.git/HEAD");
	make("r/.git/config");
	make("r/.git/logs/HEAD@");
	s = walk("r/.git", 2, -EIO);
	assert_int_equal(s->rc, -ECANCELED);
	assert_int_equal(s->visits, 2);
}

/* Closed, or open for reading alone: both times nothing in it can be looked at. */
static void test_closed_directories(void **state)
{
	static const mode_t modes[] = { 0, 0444, 0311 };

	(void)state;
	make("r/.git/refs/heads/x@");
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct seen *s;

		assert_int_equal(chmod(in_top("r/.git/refs/heads"), modes[i]), 0);
		s = walk("r/.git", 0, -EIO);
		assert_int_equal(s->rc, -EIO);
		assert_int_equal(s->err, EACCES);
		assert_string_equal(s->unseen_path, "r/.git/refs/heads");
		s = walk("r/.git", 0, 0);
		assert_int_equal(s->rc, 0);
		assert_int_equal(s->visits, 0);
		s = walk("r/.git", 0, 1);
		assert_int_equal(s->rc, 0);
		assert_int_equal(s->visits, 1);
	}
	assert_int_equal(chmod(in_top("r/.git"), 0), 0);
	assert_string_equal(walk("r/.git", 0, -EIO)->unseen_path, "r/.git");
}

static void test_too_deep(void **state)
{
	char name[512] = "r/.git/refs/";
	struct seen *s;

	(void)state;
	for (int i = 0; i < 99; i++)
		strcat(name, "d/");
	make(mem_printf("%sx@", name));
	s = walk("r/.git", 0, -EIO);
	assert_int_equal(s->rc, 0);
	assert_int_equal(s->visits, 1);
	make(mem_printf("%sd/x@", name));
	s = walk("r/.git", 0, -EIO);
	assert_int_equal(s->err, ENAMETOOLONG);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_what_matters),
		TEST(test_bare),
		TEST(test_links_are_not_entered),
		TEST(test_visitor_ends_the_walk),
		TEST(test_closed_directories),
		TEST(test_too_deep),
	};

	alarm(100);
	return cmocka_run_group_tests_name("git_walk", tests, NULL, NULL);
}
