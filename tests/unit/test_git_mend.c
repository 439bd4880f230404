/*
 * tests/unit/test_git_mend.c - a HEAD that git would not accept is put back, and no other
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "git/git-mend.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567\n"
#define BRANCH "ref: refs/heads/main\n"

static char top[64];

static const char *in_top(const char *name)
{
	return path_join(top, name);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(top, "/tmp/carrel-git-mend-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return system(mem_printf("chmod -R u+rwx '%s'; rm -rf '%s'", top, top));
}

static void write_head(const char *text)
{
	auto_close int fd = open(in_top("HEAD"), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static const char *text_of_head(void)
{
	return fd_read_file(AT_FDCWD, in_top("HEAD"), 4096);
}

/* ---- reading ---- */

static const struct {
	const char *text;
	bool valid;
} texts[] = {
	{ BRANCH, true },
	{ COMMIT, true },
	{ "ref:refs/heads/x", true },
	{ "ref: \t refs/heads/x", true },
	{ COMMIT COMMIT, true }, /* git reads the beginning */
	{ "", false },
	{ "\n", false },
	{ "ref: heads/main\n", false },
	{ "ref: ../refs/heads/main\n", false },
	{ "refs/heads/main\n", false },
	{ "0123456789abcdef0123456789abcdef0123456\n", false },
};

static void test_read(void **state)
{
	auto_close int dir = open(top, O_RDONLY | O_DIRECTORY);
	struct git_head head = { 0 };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(git_head_read(dir, &head, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_head(texts[i].text);
		assert_int_equal(git_head_read(dir, &head, &f), 1);
		assert_int_equal(head.valid, texts[i].valid);
		assert_false(head.link);
		assert_string_equal(head.text, texts[i].text);
	}
}

static void test_read_other_kinds(void **state)
{
	auto_close int dir = open(top, O_RDONLY | O_DIRECTORY);
	struct git_head head = { 0 };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(symlink("refs/heads/main", in_top("HEAD")), 0);
	assert_int_equal(git_head_read(dir, &head, &f), 1);
	assert_true(head.link && head.valid);
	assert_int_equal(unlink(in_top("HEAD")), 0);
	assert_int_equal(symlink("/etc/hostname", in_top("HEAD")), 0);
	assert_int_equal(git_head_read(dir, &head, &f), 1);
	assert_true(head.link && !head.valid);
	assert_int_equal(unlink(in_top("HEAD")), 0);
	assert_int_equal(mkfifo(in_top("HEAD"), 0600), 0); /* nobody waits for it */
	assert_int_equal(git_head_read(dir, &head, &f), 1);
	assert_false(head.valid || head.text);
	assert_int_equal(unlink(in_top("HEAD")), 0);
	write_head(BRANCH);
	assert_int_equal(truncate(in_top("HEAD"), 1 << 20), 0);
	assert_int_equal(git_head_read(dir, &head, &f), 1);
	assert_false(head.valid || head.text);
}

/* ---- mending ---- */

static const struct git_head *was(const char *text, bool link)
{
	static struct git_head head;

	head = (struct git_head){ .dir = top, .text = text, .link = link, .valid = true };
	return &head;
}

static void test_an_acceptable_one_stays(void **state)
{
	struct fault f = { 0 };

	(void)state;
	write_head(COMMIT);
	assert_int_equal(git_head_mend(was(BRANCH, false), &f), 0);
	assert_string_equal(text_of_head(), COMMIT);
}

static const char *const breaks[] = { "rm HEAD", ": >HEAD", "echo x >HEAD",
	"rm HEAD; mkfifo HEAD", "ln -sf /etc/hostname HEAD", "ln -sf . HEAD",
	"rm HEAD; mkdir HEAD", "rm HEAD; mkdir -p HEAD/x/y",
	"rm HEAD; ln -s /etc/passwd HEAD.put-back", "rm HEAD; echo x >HEAD.put-back" };

static void test_put_back(void **state)
{
	struct fault f = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(breaks); i++) {
		write_head(BRANCH);
		assert_int_equal(system(mem_printf("cd %s; %s", top, breaks[i])), 0);
		assert_int_equal(git_head_mend(was(BRANCH, false), &f), 1);
		assert_string_equal(text_of_head(), BRANCH);
		assert_int_equal(access(in_top("HEAD.put-back"), F_OK), -1);
		assert_int_equal(git_head_mend(was(BRANCH, false), &f), 0);
	}
	/* What stood in a directory in its place is kept. */
	assert_int_equal(system(mem_printf("test -d %s/HEAD.put-aside-%d", top, getpid())), 0);
}

static void test_put_back_as_a_link(void **state)
{
	char text[64] = "";
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(git_head_mend(was("refs/heads/main", true), &f), 1);
	assert_true(readlink(in_top("HEAD"), text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "refs/heads/main");
}

/* What is no directory any more is not written to, wherever a link there leads. */
static void test_directory_is_gone(void **state)
{
	struct git_head head = { .dir = in_top("r"), .text = BRANCH, .valid = true };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(git_head_mend(&head, &f), 0);
	assert_int_equal(mkdir(in_top("elsewhere"), 0700), 0);
	assert_int_equal(symlink("elsewhere", in_top("r")), 0);
	assert_int_equal(git_head_mend(&head, &f), 0);
	assert_int_equal(access(in_top("elsewhere/HEAD"), F_OK), -1);
}

static void test_modes(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(in_top("d"), 0750), 0);
	assert_false(git_mend_mode(AT_FDCWD, in_top("d")));
	assert_int_equal(chmod(in_top("d"), 0050), 0);
	assert_true(git_mend_mode(AT_FDCWD, in_top("d")));
	assert_int_equal(stat(in_top("d"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(chmod(in_top("d"), 0), 0);
	assert_int_equal(symlink("d", in_top("l")), 0);
	assert_false(git_mend_mode(AT_FDCWD, in_top("l")));
	assert_false(git_mend_mode(AT_FDCWD, in_top("gone")));
	write_head(BRANCH);
	assert_false(git_mend_mode(AT_FDCWD, in_top("HEAD")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_read),
		TEST(test_read_other_kinds),
		TEST(test_an_acceptable_one_stays),
		TEST(test_put_back),
		TEST(test_put_back_as_a_link),
		TEST(test_directory_is_gone),
		TEST(test_modes),
	};

	alarm(100);
	return cmocka_run_group_tests_name("git_mend", tests, NULL, NULL);
}
