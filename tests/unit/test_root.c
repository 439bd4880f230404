/*
 * tests/unit/test_root.c - which project a directory belongs to, when somebody lies about it
 *
 * Repositories are made by hand here, as little of them as git asks for, and in places where git
 * would never make one. tests/cli/test_root.py compares with git itself. An alarm ends a test
 * that waits for something.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "git/git-files.h"
#include "state/root.h"

/* In place of the library's: what a test makes, it makes in one moment. */
static long long born_ms;

long long fd_born_ms(const char *path)
{
	return born_ms;
}

enum { NORMAL_USER = 12345, STRANGER = 54321, PATIENCE = 20, DEEP = 17 };

static char top[64];

static const char *in_top(const char *name)
{
	return path_join(top, name);
}

static void clear_environment(void)
{
	static const char *const names[] = { "GIT_DIR", "GIT_COMMON_DIR",
		"GIT_OBJECT_DIRECTORY", "GIT_CEILING_DIRECTORIES",
		"GIT_DISCOVERY_ACROSS_FILESYSTEM" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

static int set_up(void **state)
{
	clear_environment();
	born_ms = 1000; /* long ago */
	alarm(PATIENCE);
	strcpy(top, "/tmp/carrel-root-XXXXXX");
	return mkdtemp(top) && chmod(top, 0755) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	alarm(0);
	if (chdir("/") < 0)
		return -1;
	return system(mem_printf("chmod -R u+rwx '%s' && rm -rf '%s'", top, top));
}

/* ---- making things ---- */

static void make_dirs(const char *name)
{
	char *path = mem_strdup(in_top(name));

	for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void make_file(const char *name, const char *text)
{
	int fd;

	if (strchr(name, '/'))
		make_dirs(path_parent(name));
	fd = open(in_top(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void make_link(const char *name, const char *text)
{
	assert_int_equal(symlink(text, in_top(name)), 0);
}

/* As much of a git directory as git wants to see. */
static void make_git(const char *name)
{
	make_file(mem_printf("%s/HEAD", name), "ref: refs/heads/main\n");
	make_dirs(mem_printf("%s/objects", name));
	make_dirs(mem_printf("%s/refs", name));
}

/* The admin directory of a linked worktree at tree, and the tree's .git. */
static void make_worktree(const char *git, const char *id, const char *tree)
{
	const char *admin = mem_printf("%s/worktrees/%s", git, id);

	make_file(mem_printf("%s/HEAD", admin), "ref: refs/heads/other\n");
	make_file(mem_printf("%s/commondir", admin), "../..\n");
	make_file(mem_printf("%s/.git", tree), mem_printf("gitdir: %s\n", in_top(admin)));
	make_file(mem_printf("%s/gitdir", admin), mem_printf("%s/.git\n", in_top(tree)));
}

/* ---- looking ---- */

static struct project find(const char *name)
{
	struct fault f = { 0 };
	struct project p;

	assert_int_equal(project_find(in_top(name), &p, &f), 0);
	assert_int_equal(strlen(p.id), 16);
	assert_memory_equal(p.id, hash_hex(p.root, strlen(p.root)), 16);
	assert_true(!p.note || strlen(p.note) < 2000);
	return p;
}

/* dir belongs to root, with nothing to tell. common: NULL for none. */
static void assert_belongs(const char *dir, const char *root, const char *common)
{
	struct project p = find(dir);

	assert_string_equal(p.root, in_top(root));
	if (common)
		assert_string_equal(p.common, in_top(common));
	else
		assert_null(p.common);
	if (p.note)
		fail_msg("a note: %s", p.note);
}

/* The root is another, for a reason that the note gives. */
static void assert_noted(const char *dir, const char *root, const char *why)
{
	struct project p = find(dir);

	assert_string_equal(p.root, in_top(root));
	assert_null(p.common);
	assert_non_null(p.note);
	if (!strstr(p.note, why))
		fail_msg("no '%s' in: %s", why, p.note);
}

#define BROKEN "is no repository that git accepts: "
#define LONELY "does not point back: this directory has an instance of its own"

static void wait_a_moment(void)
{
	usleep(1200 * 1000);
}

/* ---- honest ones ---- */

static void outside_git_it_is_the_directory(void **state)
{
	make_dirs("a/b");
	assert_belongs("a/b", "a/b", NULL);
	assert_belongs("a", "a", NULL);
	make_link("to-b", "a/b");
	assert_belongs("to-b", "a/b", NULL);
	assert_belongs("to-b/..", "a", NULL);
}

static void the_id_is_of_the_path(void **state)
{
	struct fault f = { 0 };
	struct project p;

	assert_int_equal(project_find("/", &p, &f), 0);
	assert_string_equal(p.root, "/");
	assert_string_equal(p.id, "8a5edab282632443"); /* printf / | sha256sum */
}

static void everything_in_a_repository_is_one_project(void **state)
{
	make_git("r/.git");
	make_dirs("r/a/b");
	make_dirs("r/.git/hooks");
	assert_belongs("r", "r", "r/.git");
	assert_belongs("r/a/b", "r", "r/.git");
	assert_belongs("r/.git", "r", "r/.git");
	assert_belongs("r/.git/hooks", "r", "r/.git");
	make_link("to-r", "r/a");
	assert_belongs("to-r", "r", "r/.git");
}

static void the_innermost_repository_wins(void **state)
{
	make_git("r/.git");
	make_git("r/in/.git");
	make_git("r/in/bare");
	make_dirs("r/in/d");
	make_dirs("r/e");
	assert_belongs("r/in/d", "r/in", "r/in/.git");
	assert_belongs("r/in/bare/refs", "r/in/bare", "r/in/bare");
	assert_belongs("r/e", "r", "r/.git");
}

static void a_broken_git_directory_ends_the_search(void **state)
{
	static const char *const heads[] = { "", "main\n", "ref: heads/main\n",
		"0123456789\n" };

	make_git("r/.git");
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		make_git("r/in/.git");
		make_file("r/in/.git/HEAD", heads[i]);
		assert_noted("r/in", "r/in", BROKEN);
	}
	make_file("r/in/.git/HEAD", "0123456789012345678901234567890123456789\n");
	assert_belongs("r/in", "r/in", "r/in/.git");
	assert_int_equal(rmdir(in_top("r/in/.git/refs")), 0);
	assert_noted("r/in", "r/in", BROKEN);
	/* What is in it belongs to it still; nor is it taken for a bare repository itself. */
	make_dirs("r/in/deeper");
	assert_noted("r/in/deeper", "r/in", BROKEN);
	make_git("r/in");
	assert_noted("r/in", "r/in", BROKEN);
}

static void what_never_was_a_repository_binds_nobody(void **state)
{
	make_git("r/.git");
	make_dirs("r/in/.git/other");
	make_dirs("r/in/one");
	make_dirs("r/in/two");
	assert_noted("r/in", "r/in", BROKEN);
	assert_noted("r/in/one", "r/in/one", BROKEN);
	assert_noted("r/in/two", "r/in/two", BROKEN);
	assert_int_equal(rmdir(in_top("r/in/.git/other")), 0);
	assert_int_equal(rmdir(in_top("r/in/.git")), 0);
	assert_belongs("r/in/one", "r", "r/.git");
}

static void worktrees_share_the_repository(void **state)
{
	make_git("r/.git");
	make_worktree("r/.git", "w", "else/where");
	make_dirs("else/where/deep");
	make_worktree("r/.git", "v", "r/v");
	assert_belongs("else/where", "r", "r/.git");
	assert_belongs("else/where/deep", "r", "r/.git");
	assert_belongs("r/v", "r", "r/.git");
	assert_belongs("r/.git/worktrees/w", "r", "r/.git");
}

static void a_repository_that_is_not_named_git_is_its_own_root(void **state)
{
	make_git("many/one.git");
	make_git("many/two.git");
	make_worktree("many/one.git", "w", "many/w");
	assert_belongs("many/one.git", "many/one.git", "many/one.git");
	assert_belongs("many/two.git/refs", "many/two.git", "many/two.git");
	assert_belongs("many/w", "many/one.git", "many/one.git");
	assert_belongs("many", "many", NULL);
}

static void a_submodule_is_a_project(void **state)
{
	make_git("r/.git");
	make_git("r/.git/modules/sub");
	make_file("r/sub/.git", "gitdir: ../.git/modules/sub\n");
	make_file("r/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
	assert_belongs("r/sub", "r/.git/modules/sub", "r/.git/modules/sub");
	assert_belongs("r/.git/modules/sub", "r/.git/modules/sub", "r/.git/modules/sub");
	assert_belongs("r", "r", "r/.git");
	make_file("r/.git/modules/sub/config", "[core]\n\tbare = false\n");
	assert_noted("r/sub", "r/sub", LONELY);
	/* Where a sparse checkout keeps it, which counts only if git is told to look there. */
	make_file("r/.git/modules/sub/config.worktree", "[core]\n\tworktree = ../../../sub\n");
	assert_noted("r/sub", "r/sub", LONELY);
	make_file("r/.git/modules/sub/config", "[extensions]\n\tworktreeConfig = true\n");
	assert_belongs("r/sub", "r/.git/modules/sub", "r/.git/modules/sub");
}

static void a_repository_inside_is_believed(void **state)
{
	make_git("p/.bare");
	make_file("p/.git", "gitdir: ./.bare\n");
	make_worktree("p/.bare", "main", "p/main");
	assert_belongs("p", "p/.bare", "p/.bare");
	assert_belongs("p/main", "p/.bare", "p/.bare");
	make_git("q/x/.git"); /* but this one is somebody's already */
	make_file("q/.git", "gitdir: x/.git\n");
	assert_noted("q", "q", LONELY);
	assert_belongs("q/x", "q/x", "q/x/.git");
}

/* ---- lies ---- */

static void a_file_may_name_anybody(void **state)
{
	make_git("victim/.git");
	make_git("victim.git");
	make_file("liar/.git", "gitdir: ../victim/.git\n");
	make_dirs("liar/sub");
	make_file("other/.git", mem_printf("gitdir: %s\n", in_top("victim.git")));
	assert_noted("liar", "liar", "the .git file names ../victim/.git, which " LONELY);
	assert_noted("liar/sub", "liar", "that directory has an instance of its own");
	assert_noted("other", "other", LONELY);
	assert_noted("other", "other", "and boxes there do not see that repository");
	/* It has a working tree, which is there: another one. */
	make_dirs("else");
	make_file("victim.git/config", "[core]\nworktree = ../else\n");
	assert_noted("other", "other", LONELY);
	/* Had the victim said so itself: */
	make_file("victim/.git/config", "[core]\nworktree = ../../liar # mine\n");
	assert_belongs("liar", "victim", "victim/.git");
}

#define REMEDY "`git config core.worktree \"$PWD\"` in "

static void a_separate_repository_can_be_told(void **state)
{
	static const char *const others[] = { "[core]\nbare = true\n",
		"[core]\nworktree = ../else\n" };

	make_git("a b-git");
	make_file("a b/.git", "gitdir: ../a b-git\n");
	make_dirs("a b/sub");
	assert_noted("a b", "a b", REMEDY "this directory makes it point back");
	assert_noted("a b/sub", "a b", REMEDY "that directory makes it point back");
	/* What is somebody's already is not offered. */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		make_file("a b-git/config", others[i]);
		assert_null(strstr(find("a b").note, "git config"));
	}
	make_file("a b-git/config", mem_printf("[core]\nworktree = %s\n", in_top("a b")));
	assert_belongs("a b", "a b-git", "a b-git");
	make_git("victim/.git");
	make_file("liar/.git", "gitdir: ../victim/.git\n");
	assert_null(strstr(find("liar").note, "git config"));
}

static long long changed_ms(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in_top(name), &st), 0);
	return st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
}

static void assert_separate(const char *dir, const char *git, const char *why)
{
	struct project p = find(dir);

	assert_string_equal(p.root, in_top(git));
	assert_string_equal(p.common, in_top(git));
	assert_non_null(p.note);
	assert_non_null(strstr(p.note, why));
}

static void a_separate_repository_is_as_old_as_its_file(void **state)
{
	static const long long others[] = { 1000, -1000, -1 };

	make_git("a-git");
	make_file("a/.git", "gitdir: ../a-git\n");
	make_dirs("a/sub");
	assert_noted("a", "a", LONELY);
	for (int apart = -999; apart <= 999; apart += 999) {
		born_ms = changed_ms("a/.git") + apart;
		assert_separate("a", "a-git", "this directory is taken for the working tree");
		assert_separate("a/sub", "a-git", "in that directory makes it point back");
	}
	/* The last is of a file system that does not say. */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		born_ms = others[i] == -1 ? -1 : changed_ms("a/.git") + others[i];
		assert_noted("a", "a", LONELY);
	}
}

/* As old as it is, and something else. */
static void what_is_as_old_and_no_separate_repository(void **state)
{
	static const char *const others[] = { "[core]\nbare = true\n",
		"[core]\nworktree = ../else\n" };

	make_git("a-git");
	make_file("a/.git", "gitdir: ../a-git\n");
	make_git("victim/.git");
	make_file("liar/.git", "gitdir: ../victim/.git\n");
	born_ms = changed_ms("liar/.git");
	assert_noted("liar", "liar", LONELY);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		make_file("a-git/config", others[i]);
		assert_noted("a", "a", LONELY);
	}
	make_file("a-git/config", "");
	born_ms = changed_ms("a/.git");
	assert_separate("a", "a-git", "");
	make_dirs("link");
	make_link("link/.git", "../a/.git");
	assert_noted("link", "link", LONELY);
	make_dirs("same");
	assert_int_equal(link(in_top("a/.git"), in_top("same/.git")), 0);
	born_ms = changed_ms("a/.git");
	assert_noted("same", "same", LONELY);
	assert_noted("a", "a", LONELY);
}

/* By the environment, which may name a file of any name: that one counts. */
static void a_separate_file_of_the_environment(void **state)
{
	make_git("a-git");
	make_file("a/.git", "gitdir: ../a-git\n");
	make_file("a/file", "gitdir: ../a-git\n");
	born_ms = changed_ms("a/.git");
	setenv("GIT_DIR", in_top("a/file"), 1);
	assert_separate("a", "a-git", "");
	wait_a_moment();
	assert_int_equal(chmod(in_top("a/file"), 0600), 0);
	assert_noted("a", "a", LONELY);
	unsetenv("GIT_DIR");
	assert_separate("a", "a-git", "");
}

static void a_file_may_name_another_worktree(void **state)
{
	make_git("victim/.git");
	make_worktree("victim/.git", "w", "w");
	make_file("liar/.git", mem_printf("gitdir: %s\n", in_top("victim/.git/worktrees/w")));
	assert_noted("liar", "liar", LONELY);
	assert_belongs("w", "victim", "victim/.git");
	/* A copy of the tree is no worktree either. */
	make_file("copy/.git", mem_printf("gitdir: %s\n", in_top("victim/.git/worktrees/w")));
	assert_noted("copy", "copy", LONELY);
	/* Not everything that it names is a .git. */
	make_file("victim/.git/worktrees/w/gitdir", mem_printf("%s/w\n", in_top("w")));
	make_file("w/w", "");
	assert_noted("w", "w", LONELY);
}

static void a_link_may_lead_anywhere(void **state)
{
	make_git("victim/.git");
	make_worktree("victim/.git", "w", "w");
	make_dirs("liar");
	make_link("liar/.git", "../victim/.git");
	assert_noted("liar", "liar", "the .git link names");
	make_dirs("second");
	make_link("second/.git", "../w/.git");
	assert_noted("second", "second", LONELY);
	make_git("honest/.real");
	make_link("honest/.git", ".real");
	assert_belongs("honest", "honest/.real", "honest/.real");
}

static void a_commondir_may_name_anybody(void **state)
{
	make_git("victim/.git");
	make_git("liar/.git");
	make_file("liar/.git/commondir", "../../victim/.git\n");
	assert_noted("liar", "liar", "the commondir file names");
	assert_noted("liar/.git", "liar", "the commondir file names");
	make_file("bare/HEAD", "ref: refs/heads/main\n");
	make_file("bare/commondir", in_top("victim/.git"));
	assert_noted("bare", "bare", "the commondir file names");
	make_file("third/.git", "gitdir: admin\n");
	make_file("third/admin/HEAD", "ref: refs/heads/main\n");
	make_file("third/admin/commondir", "../../victim/.git\n");
	make_file("third/admin/gitdir", mem_printf("%s/.git\n", in_top("third")));
	assert_noted("third", "third", LONELY);
	make_file("liar/.git/commondir", ".\n");
	assert_belongs("liar", "liar", "liar/.git");
}

static void a_project_dressed_up_as_a_git_directory(void **state)
{
	make_git("victim/.git");
	make_git("victim");
	make_worktree("victim", "w", "liar");
	assert_noted("liar", "liar", LONELY);
	make_file("victim/config", "[core]\n\tworktree = ../second\n");
	make_file("second/.git", "gitdir: ../victim\n");
	assert_noted("second", "second", LONELY);
	assert_belongs("victim", "victim", "victim/.git");
	make_git("fair"); /* without the .git it is what it says */
	make_worktree("fair", "w", "tree");
	assert_belongs("tree", "fair", "fair");
}

static void a_moved_worktree_is_taken_with_a_note(void **state)
{
	struct project p;

	make_git("r/.git");
	make_worktree("r/.git", "w", "w");
	assert_belongs("w", "r", "r/.git");
	wait_a_moment();
	assert_int_equal(rename(in_top("w"), in_top("moved")), 0);
	p = find("moved");
	assert_string_equal(p.root, in_top("r"));
	assert_string_equal(p.common, in_top("r/.git"));
	assert_non_null(p.note);
	assert_non_null(strstr(p.note, "git worktree repair"));
	/* Others that name the same: written later, or a link to the right one. */
	make_file("liar/.git", mem_printf("gitdir: %s\n", in_top("r/.git/worktrees/w")));
	assert_noted("liar", "liar", LONELY);
	make_dirs("second");
	make_link("second/.git", "../moved/.git");
	assert_noted("second", "second", LONELY);
	/* Repaired. */
	make_file("r/.git/worktrees/w/gitdir", mem_printf("%s/.git\n", in_top("moved")));
	assert_belongs("moved", "r", "r/.git");
}

static void what_is_gone_leaves_the_directory_alone(void **state)
{
	make_git("r/.git");
	make_worktree("r/.git", "w", "w");
	assert_int_equal(rename(in_top("r"), in_top("elsewhere")), 0);
	assert_noted("w", "w", "is no git repository, or not any more");
	make_git("q/.git");
	make_file("q/.git/commondir", "/none/here\n");
	assert_noted("q", "q", "the commondir file names no git");
	make_file("q/.git/commondir", "");
	assert_noted("q", "q", "the commondir file names no git");
}

static void repositories_of_strangers(void **state)
{
	if (getuid() != 0)
		return; /* who cannot give a directory away cannot set the trap */
	make_git("tmp/.git");
	make_dirs("tmp/mine");
	assert_belongs("tmp/mine", "tmp", "tmp/.git");
	assert_int_equal(chown(in_top("tmp/.git"), STRANGER, STRANGER), 0);
	assert_noted("tmp/mine", "tmp/mine", "is another user's");
	/* Root could have it all the same. */
	assert_int_equal(chown(in_top("tmp/.git"), 0, 0), 0);
	assert_int_equal(chown(in_top("tmp/mine"), STRANGER, STRANGER), 0);
	assert_int_equal(seteuid(STRANGER + 1), 0);
	assert_belongs("tmp/mine", "tmp", "tmp/.git");
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chown(in_top("tmp/.git"), STRANGER, STRANGER), 0);
	/* All is his: then root is a guest, not a victim. */
	assert_int_equal(chown(in_top("tmp/mine"), STRANGER, STRANGER), 0);
	assert_belongs("tmp/mine", "tmp", "tmp/.git");
}

/* ---- odd files ---- */

static void make_fifo(const char *name)
{
	make_dirs(path_parent(name));
	unlink(in_top(name));
	assert_int_equal(mkfifo(in_top(name), 0644), 0);
}

static void nothing_waits_for_a_fifo(void **state)
{
	make_git("r/.git");
	make_fifo("r/a/.git");
	assert_noted("r/a", "r/a", BROKEN);
	make_fifo("r/b/.git/HEAD");
	assert_noted("r/b", "r/b", BROKEN);
	make_git("r/c/.git");
	make_fifo("r/c/.git/commondir");
	assert_noted("r/c", "r/c", "the commondir file names no git");
	make_git("r/d.git");
	make_fifo("r/d.git/config");
	make_file("r/d/.git", "gitdir: ../d.git");
	assert_noted("r/d", "r/d", LONELY);
	make_worktree("r/.git", "w", "r/w");
	assert_belongs("r/w", "r", "r/.git");
	make_fifo("r/.git/worktrees/w/gitdir");
	assert_noted("r/w", "r/w", LONELY);
}

static void devices_are_not_read(void **state)
{
	make_git("r/.git");
	make_dirs("r/zero");
	make_link("r/zero/.git", "/dev/zero");
	make_dirs("r/tty");
	make_link("r/tty/.git", "/dev/tty");
	make_dirs("r/loop");
	make_link("r/loop/.git", ".git");
	make_dirs("r/nowhere");
	make_link("r/nowhere/.git", "/none/here");
	assert_noted("r/zero", "r/zero", BROKEN);
	assert_noted("r/tty", "r/tty", BROKEN);
	assert_noted("r/loop", "r/loop", BROKEN);
	assert_noted("r/nowhere", "r/nowhere", BROKEN);
	make_dirs("r/head/.git/objects");
	make_dirs("r/head/.git/refs");
	make_link("r/head/.git/HEAD", "/dev/zero");
	assert_noted("r/head", "r/head", BROKEN);
	assert_int_equal(unlink(in_top("r/head/.git/HEAD")), 0);
	make_link("r/head/.git/HEAD", "refs/heads/main"); /* as old gits had it */
	assert_belongs("r/head", "r/head", "r/head/.git");
}

static void a_file_that_is_none_of_gits(void **state)
{
	static const char *const texts[] = { "", "\n", "gitdir:", "gitdir: ", "gitdir: \n\n",
		"gitdir:x", "x", "\xff\xfe\x1b[2J" };

	make_git("r/.git");
	make_git("r/good.git");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		make_file("r/in/.git", texts[i]);
		assert_noted("r/in", "r/in", "is none that git can read");
	}
	make_file("secret", "the key\n");
	make_dirs("r/link");
	make_link("r/link/.git", in_top("secret"));
	assert_noted("r/link", "r/link", "is none that git can read");
	assert_null(strstr(find("r/link").note, "key"));
	make_file("r/in/.git", "gitdir: ../good.git\r\n\n");
	make_file("r/good.git/config", "[core]\nworktree=\"../in\"");
	assert_belongs("r/in", "r/good.git", "r/good.git");
}

static void a_huge_file(void **state)
{
	char *text = mem_alloc(200000);

	make_file("r/.git", "gitdir: ");
	assert_int_equal(truncate(in_top("r/.git"), 1LL << 40), 0);
	assert_noted("r", "r", "is none that git can read");
	memset(text, 'a', 199999);
	make_file("r/.git", mem_printf("gitdir: /%s", text));
	assert_noted("r", "r", "aaa..., which is no git repository");
	make_git("q/.git"); /* the rest of a long HEAD does not matter, as for git */
	assert_int_equal(truncate(in_top("q/.git/HEAD"), 1LL << 40), 0);
	assert_belongs("q", "q", "q/.git");
	make_git("s/.real");
	make_file("s/.git", "gitdir: .real");
	make_file("s/.real/config", "");
	assert_int_equal(truncate(in_top("s/.real/config"), 1LL << 40), 0);
	assert_belongs("s", "s/.real", "s/.real");
}

static void names_that_are_hard_to_write(void **state)
{
	static const char *const names[] = { "a\nb", "a\n", "\xff\xfe", "\x1b[31m", "a b ",
		"a\"b", "a\\b", "a#b;c", "gitdir: x", "a\tb", "...", "-n", "\xc3\xa9" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *root = mem_printf("n%zu/%s", i, names[i]);
		const char *tree = mem_printf("n%zu/w %s", i, names[i]);
		const char *liar = mem_printf("n%zu/l %s", i, names[i]);

		make_git(mem_printf("%s/.git", root));
		assert_belongs(root, root, mem_printf("%s/.git", root));
		make_worktree(mem_printf("%s/.git", root), "w", tree);
		assert_belongs(tree, root, mem_printf("%s/.git", root));
		make_file(mem_printf("%s/.git", liar),
			mem_printf("gitdir: %s/.git", in_top(root)));
		assert_noted(liar, liar, LONELY);
		assert_null(strpbrk(find(liar).note, "\n\x1b\xff"));
	}
}

static void values_as_git_writes_them(void **state)
{
	static const struct {
		const char *name, *value;
	} cases[] = {
		{ "a b", "../a b" },
		{ "a b ", "\"../a b \"" },
		{ "a\"b", "../a\\\"b" },
		{ "a\\b", "../a\\\\b" },
		{ "a\nb", "../a\\nb" },
		{ "a\tb", "../a\\tb" },
		{ "a#b", "\"../a#b\"" },
		{ "a;b", "\"../a;b\"   ; said so" },
		{ "plain", "../plain   # \"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *git = mem_printf("v%zu/g", i), *name = cases[i].name;
		const char *tree = mem_printf("v%zu/%s", i, name);

		make_git(git);
		make_file(mem_printf("%s/.git", tree), "gitdir: ../g\n");
		assert_noted(tree, tree, LONELY);
		make_file(mem_printf("%s/config", git),
			mem_printf("[core]\n\tworktree = %s\n", cases[i].value));
		assert_belongs(tree, git, git);
	}
}

/* ---- permissions and lengths ---- */

/* In a process of a normal user; says whether it went well. */
static int as_normal_user(void (*check)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		mem_own();
		alarm(PATIENCE);
		if (getuid() == 0 && (setgid(NORMAL_USER) < 0 || setuid(NORMAL_USER) < 0))
			_exit(99);
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(bool good, int code)
{
	if (!good)
		_exit(code);
}

static void look_past_the_closed_door(void)
{
	struct fault f = { 0 };
	struct project p = { .root = "untouched" };

	expect(project_find(in_top("r/closed/in"), &p, &f) == -EACCES, 1);
	expect(!strcmp(p.root, "untouched") && f.text[0], 2);
	/* Being in it already, there is no way up. */
	expect(project_find(".", &p, &f) == 0, 3);
	expect(!strcmp(p.root, in_top("r/closed/in")) && !p.common && !p.note, 4);
}

static void look_through_the_open_door(void)
{
	struct fault f = { 0 };
	struct project p;

	expect(project_find(".", &p, &f) == 0 && !strcmp(p.root, in_top("r")) && !p.note, 5);
}

static void parents_that_may_not_be_entered(void **state)
{
	make_git("r/.git");
	make_dirs("r/closed/in");
	if (getuid() == 0)
		assert_int_equal(chown(in_top("r/closed"), NORMAL_USER, NORMAL_USER), 0);
	assert_int_equal(chdir(in_top("r/closed/in")), 0);
	assert_int_equal(as_normal_user(look_through_the_open_door), 0);
	assert_int_equal(chmod(in_top("r/closed"), 0), 0);
	assert_int_equal(as_normal_user(look_past_the_closed_door), 0);
	assert_int_equal(chmod(in_top("r/closed"), 0755), 0);
}

static void look_at_unreadable_files(void)
{
	struct fault f = { 0 };
	struct project p;

	expect(project_find(in_top("r/in"), &p, &f) == 0, 1);
	expect(!strcmp(p.root, in_top("r/in")) && p.note, 2);
	expect(strstr(p.note, "is none that git can read") != NULL, 3);
	expect(project_find(in_top("r/other"), &p, &f) == 0, 4);
	expect(!strcmp(p.root, in_top("r/other")) && p.note, 5);
	/* What cannot be seen is not known to be gone. */
	expect(project_find(in_top("thief"), &p, &f) == 0, 6);
	expect(!strcmp(p.root, in_top("thief")) && p.note, 7);
}

static void files_that_may_not_be_read(void **state)
{
	make_git("r/.git");
	make_file("r/in/.git", "gitdir: ../.git\n");
	make_git("r/other/.git");
	assert_int_equal(chmod(in_top("r/in/.git"), 0), 0);
	assert_int_equal(chmod(in_top("r/other/.git/objects"), 0), 0);
	make_worktree("r/.git", "w", "shut/w");
	make_file("thief/.git", mem_printf("gitdir: %s\n", in_top("r/.git/worktrees/w")));
	assert_int_equal(chmod(in_top("shut"), 0), 0);
	assert_int_equal(as_normal_user(look_at_unreadable_files), 0);
}

static void paths_as_long_as_they_can_be(void **state)
{
	char part[251];
	struct fault f = { 0 };
	struct project p = { .root = "untouched" };
	int found = 0;

	memset(part, 'd', sizeof(part) - 1);
	part[sizeof(part) - 1] = '\0';
	make_git("r/.git");
	assert_int_equal(chdir(in_top("r")), 0);
	for (int i = 0; i < DEEP; i++) {
		assert_int_equal(mkdir(part, 0755), 0);
		assert_int_equal(chdir(part), 0);
		if (project_find(".", &p, &f) < 0)
			break;
		assert_string_equal(p.root, in_top("r"));
		found++;
	}
	/* Beyond PATH_MAX a directory has no name that could be told. */
	assert_true(found >= 14 && found < DEEP);
	assert_string_equal(p.root, in_top("r"));
	assert_int_equal(project_find(".", &p, &f), -ENAMETOOLONG);
}

static void deep_trees_are_climbed(void **state)
{
	struct fault f = { 0 };
	struct project p;

	make_git("r/.git");
	assert_int_equal(chdir(in_top("r")), 0);
	for (int i = 0; i < 1900; i++)
		assert_true(mkdir("d", 0755) == 0 && chdir("d") == 0);
	assert_int_equal(project_find(".", &p, &f), 0);
	assert_string_equal(p.root, in_top("r"));
}

static void only_a_directory_can_be_asked_about(void **state)
{
	struct project p = { .root = "untouched" };
	struct fault f = { 0 };

	make_file("file", "");
	make_link("loop", "loop");
	make_dirs("dir");
	assert_int_equal(project_find(in_top("none\x1b"), &p, &f), -ENOENT);
	assert_null(strchr(f.text, '\x1b'));
	assert_int_equal(project_find(in_top("file"), &p, &f), -ENOTDIR);
	assert_int_equal(project_find(in_top("loop"), &p, &f), -ELOOP);
	assert_int_equal(project_find("", &p, &f), -ENOENT);
	assert_string_equal(p.root, "untouched");
	assert_int_equal(project_find(in_top("dir"), &p, &f), 0);
}

/* ---- the environment ---- */

static void git_dir_of_the_environment(void **state)
{
	make_git("r/.git");
	make_git("q/.git");
	make_worktree("q/.git", "w", "w");
	make_dirs("out");
	setenv("GIT_DIR", "../q/.git", 1);
	assert_belongs("out", "q", "q/.git");
	assert_belongs("r", "q", "q/.git");
	setenv("GIT_DIR", in_top("w/.git"), 1);
	assert_belongs("out", "q", "q/.git");
	setenv("GIT_DIR", in_top("q/.git/worktrees/w"), 1);
	assert_belongs("out", "q", "q/.git");
	make_file("liar/.git", "gitdir: ../q/.git\n");
	setenv("GIT_DIR", in_top("liar/.git"), 1);
	assert_noted("out", "liar", "does not point back");
	make_git("evil/.git");
	make_file("evil/.git/commondir", in_top("q/.git"));
	setenv("GIT_DIR", in_top("evil/.git"), 1);
	assert_noted("out", "evil", "the commondir file in ");
	setenv("GIT_DIR", in_top("none"), 1);
	assert_noted("r", "r", "GIT_DIR names");
	setenv("GIT_DIR", "", 1);
	assert_noted("out", "out", "GIT_DIR names nothing");
	make_fifo("out/fifo");
	setenv("GIT_DIR", "fifo", 1);
	assert_noted("out", "out", "GIT_DIR names");
}

static void common_dir_of_the_environment(void **state)
{
	make_git("r/.git");
	make_git("q/.git");
	setenv("GIT_COMMON_DIR", in_top("q/.git"), 1);
	assert_belongs("r", "q", "q/.git");
	setenv("GIT_COMMON_DIR", "../q/.git", 1);
	assert_belongs("r", "q", "q/.git");
	setenv("GIT_COMMON_DIR", in_top("none"), 1);
	assert_noted("r", "r", BROKEN);
}

static void ceilings(void **state)
{
	make_git("a/.git");
	make_dirs("a/b/c");
	make_link("to-a", "a");
	setenv("GIT_CEILING_DIRECTORIES", in_top("a"), 1);
	assert_belongs("a/b/c", "a/b/c", NULL);
	assert_belongs("a", "a", "a/.git");
	setenv("GIT_CEILING_DIRECTORIES", top, 1);
	assert_belongs("a/b/c", "a", "a/.git");
	setenv("GIT_CEILING_DIRECTORIES", mem_printf("rel:%s:/none", in_top("to-a")), 1);
	assert_belongs("a/b", "a/b", NULL);
	setenv("GIT_CEILING_DIRECTORIES", mem_printf(":%s", in_top("to-a")), 1);
	assert_belongs("a/b", "a", "a/.git");
	setenv("GIT_CEILING_DIRECTORIES", mem_printf("::%s:", in_top("a/b")), 1);
	assert_belongs("a/b/c", "a/b/c", NULL);
	assert_belongs("a/b", "a", "a/.git");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(outside_git_it_is_the_directory),
		TEST(the_id_is_of_the_path),
		TEST(everything_in_a_repository_is_one_project),
		TEST(the_innermost_repository_wins),
		TEST(a_broken_git_directory_ends_the_search),
		TEST(what_never_was_a_repository_binds_nobody),
		TEST(worktrees_share_the_repository),
		TEST(a_repository_that_is_not_named_git_is_its_own_root),
		TEST(a_submodule_is_a_project),
		TEST(a_repository_inside_is_believed),
		TEST(a_file_may_name_anybody),
		TEST(a_separate_repository_can_be_told),
		TEST(a_separate_repository_is_as_old_as_its_file),
		TEST(what_is_as_old_and_no_separate_repository),
		TEST(a_separate_file_of_the_environment),
		TEST(a_file_may_name_another_worktree),
		TEST(a_link_may_lead_anywhere),
		TEST(a_commondir_may_name_anybody),
		TEST(a_project_dressed_up_as_a_git_directory),
		TEST(a_moved_worktree_is_taken_with_a_note),
		TEST(what_is_gone_leaves_the_directory_alone),
		TEST(repositories_of_strangers),
		TEST(nothing_waits_for_a_fifo),
		TEST(devices_are_not_read),
		TEST(a_file_that_is_none_of_gits),
		TEST(a_huge_file),
		TEST(names_that_are_hard_to_write),
		TEST(values_as_git_writes_them),
		TEST(parents_that_may_not_be_entered),
		TEST(files_that_may_not_be_read),
		TEST(paths_as_long_as_they_can_be),
		TEST(deep_trees_are_climbed),
		TEST(only_a_directory_can_be_asked_about),
		TEST(git_dir_of_the_environment),
		TEST(common_dir_of_the_environment),
		TEST(ceilings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
