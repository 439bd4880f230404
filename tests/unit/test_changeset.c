/*
 * tests/unit/test_changeset.c - upper layers made by hand, compared with what they lie on
 *
 * Layers that a real overlay has made are compared with rsync and git in tests/cli; here are
 * those that no overlay would make, and those that are hard to make with one.
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
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "overlay/changeset.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC, DEPTH = 2000 };

static const char *top;
static struct changeset set;

static const char *at(const char *path)
{
	return path_join(top, path);
}

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(at(path), 0755), 0);
}

static int setup(void **state)
{
	char made[] = "/var/tmp/carrel-changeset-XXXXXX";

	if (!mkdtemp(made))
		return -1;
	top = mem_strdup(made);
	make_dir("upper");
	make_dir("lower");
	set = (struct changeset){ .kept = -1, .since = { .tv_sec = 1L << 40 } };
	set.upper = open(at("upper"), DIR_FLAGS);
	set.lower = open(at("lower"), DIR_FLAGS);
	return 0;
}

static int teardown(void **state)
{
	close(set.upper);
	close(set.lower);
	return system(mem_printf("chmod -R u+rwx %s; rm -rf %s", top, top));
}

static void make_file(const char *path, const char *text)
{
	auto_close int fd = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void make_whiteout(const char *path)
{
	assert_int_equal(mknod(at(path), S_IFCHR, makedev(0, 0)), 0);
}

static void set_attr(const char *path, const char *name, const char *value)
{
	assert_int_equal(setxattr(at(path), name, value, strlen(value), 0), 0);
}

static void find(void)
{
	struct fault f = { 0 };

	assert_int_equal(changeset_find(&set, &f), 0);
}

/* "A a, M b:mode content, D c" */
static const char *found(void)
{
	struct str out = { 0 };

	str_add(&out, "");
	find();
	vec_each(c, &set.all)
		str_addf(&out, "%s%c %s%s%s%s%s%s", out.len ? ", " : "", "AMD"[c->kind],
			c -> path, c -> what &WHAT_CONTENT ? ":content" : "",
			c->what &WHAT_MODE ? ":mode" : "", c->what &WHAT_TYPE ? ":type" : "",
			c->what &WHAT_XATTRS ? ":xattrs" : "", c->unlisted ? ":unlisted" : "");
	return out.p ? out.p : "";
}

static void test_files(void **state)
{
	make_file("lower/same", "1");
	make_file("upper/same", "1"); /* copied up and not changed: no change */
	make_file("lower/new-text", "1");
	make_file("upper/new-text", "2");
	make_file("lower/mode", "1");
	make_file("upper/mode", "1");
	assert_int_equal(chmod(at("upper/mode"), 0755), 0);
	make_file("lower/gone", "1");
	make_whiteout("upper/gone");
	make_file("lower/stays", "1");
	make_file("upper/added\n\x1b[2J", "1");
	make_file("lower/attr", "1");
	make_file("upper/attr", "1");
	set_attr("upper/attr", "user.mine", "x");
	make_file("lower/marked", "1");
	make_file("upper/marked", "1");
	set_attr("upper/marked", "user.overlay.origin", "x");
	assert_string_equal(found(),
		"A added\n\x1b[2J, M attr:xattrs, D gone, M mode:mode, M new-text:content");
	assert_int_equal(set.added, 1);
	assert_int_equal(set.changed, 3);
	assert_int_equal(set.deleted, 1);
	assert_false(set.partial);
}

static void test_directories(void **state)
{
	make_dir("lower/merged");
	make_file("lower/merged/stays", "1");
	make_dir("upper/merged");
	make_file("upper/merged/new", "1");
	make_dir("lower/again"); /* removed, and made anew with one of two files alike */
	make_file("lower/again/same", "1");
	make_file("lower/again/lost", "1");
	make_dir("lower/again/sub");
	make_file("lower/again/sub/lost", "1");
	make_dir("upper/again");
	set_attr("upper/again", "user.overlay.opaque", "y");
	make_file("upper/again/same", "1");
	make_dir("upper/again/sub"); /* below an opaque one: it hides what is lower, too */
	make_dir("upper/empty");
	make_dir("lower/gone");
	make_file("lower/gone/deep", "1");
	make_whiteout("upper/gone");
	assert_string_equal(found(),
		"D again/lost, D again/sub/lost, A empty, D gone, D gone/deep, A merged/new");
}

static void test_types(void **state)
{
	make_dir("lower/dir-file");
	make_file("lower/dir-file/x", "1");
	make_file("upper/dir-file", "1");
	make_file("lower/file-dir", "1");
	make_dir("upper/file-dir");
	make_file("upper/file-dir/x", "1");
	make_file("lower/file-link", "1");
	assert_int_equal(symlink("/etc/passwd", at("upper/file-link")), 0);
	assert_int_equal(symlink("a", at("lower/link")), 0);
	assert_int_equal(symlink("b", at("upper/link")), 0);
	assert_int_equal(mkfifo(at("upper/fifo"), 0644), 0);
	assert_string_equal(found(),
		"M dir-file:type, D dir-file/x, A fifo, M file-dir:type, A file-dir/x, "
		"M file-link:type, M link:content");
}

/* A link in the lower tree where the upper layer has a directory must not be followed. */
static void test_no_link_is_followed(void **state)
{
	make_dir("elsewhere");
	make_file("elsewhere/secret", "1");
	assert_int_equal(symlink("../elsewhere", at("lower/way")), 0);
	make_dir("upper/way");
	make_file("upper/way/secret", "1");
	assert_string_equal(found(), "M way:type, A way/secret");
	set.all.n = 0;
	assert_int_equal(unlink(at("lower/way")), 0);
	assert_int_equal(symlink("../elsewhere", at("upper/up")), 0);
	assert_string_equal(found(), "A up, A way, A way/secret");
	assert_true(changeset_open_box(&set, &set.all.v[0]) < 0);
}

/* Marks that would send the kernel elsewhere are nothing here. */
static void test_crafted_marks(void **state)
{
	make_dir("lower/a");
	make_file("lower/a/secret", "1");
	make_dir("upper/b");
	set_attr("upper/b", "user.overlay.redirect", "/a");
	make_file("upper/c", "");
	set_attr("upper/c", "user.overlay.metacopy", "");
	set_attr("upper/c", "user.overlay.redirect", "/a/secret");
	assert_string_equal(found(), "A b, A c");
	assert_int_equal(set.all.v[1].box.size, 0);
}

/* Root reads every file by these capabilities; take them away for a moment, or give them back. */
static void let_root_read_all(bool on)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	const unsigned int bits = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;

	assert_int_equal(syscall(SYS_capget, &head, caps), 0);
	caps[0].effective =
		on ? caps[0].effective | (caps[0].permitted & bits) : caps[0].effective & ~bits;
	assert_int_equal(syscall(SYS_capset, &head, caps), 0);
}

static void test_unreadable(void **state)
{
	make_dir("upper/closed");
	make_file("upper/closed/x", "1");
	make_file("lower/f", "1");
	make_file("upper/f", "2");
	assert_int_equal(chmod(at("upper/closed"), 0), 0);
	assert_int_equal(chmod(at("upper/f"), 0), 0);
	let_root_read_all(false);
	assert_string_equal(found(), "A closed:unlisted, M f:content:mode");
	let_root_read_all(true);
	assert_true(set.partial);
	assert_true(set.all.v[1].unreadable);
}

static void test_sparse(void **state)
{
	make_file("lower/big", "");
	make_file("upper/big", "");
	assert_int_equal(truncate(at("lower/big"), 1LL << 42), 0);
	assert_int_equal(truncate(at("upper/big"), 1LL << 42), 0);
	alarm(20);
	assert_string_equal(found(), "");
	alarm(0);
}

/* No recursion and no descriptor for each level; what has no path any more is said. */
static void test_depth(void **state)
{
	int fd = openat(set.upper, ".", DIR_FLAGS);

	for (int i = 0; i < DEPTH; i++) {
		int up = fd;

		assert_int_equal(mkdirat(up, "dddd", 0755), 0);
		fd = openat(up, "dddd", DIR_FLAGS);
		close(up);
	}
	close(fd);
	find();
	assert_true(set.all.n > 700);
	assert_true(set.all.v[set.all.n - 1].unlisted);
	assert_true(set.partial);
}

/* What changed on the host since the start is told from what did not, and the copy is used. */
static void test_base(void **state)
{
	struct fault f = { 0 };
	auto_close int kept = -1;

	make_file("lower/f", "old");
	make_file("upper/f", "box");
	make_file("lower/g", "old");
	make_file("upper/g", "box");
	make_dir("kept");
	kept = open(at("kept"), DIR_FLAGS);
	find();
	assert_int_equal(set.all.v[0].base_is, BASE_SAME);
	assert_int_equal(changeset_keep(&set, kept, &f), 0);
	unlink(at("kept/g"));
	make_file("lower/f", "host");
	make_file("lower/g", "host");
	set.since = (struct timespec){ 0 };
	set.kept = kept;
	set.all.n = 0;
	find();
	assert_int_equal(set.all.v[0].base_is, BASE_KEPT);
	assert_int_equal(set.all.v[0].base.size, 3);
	assert_int_equal(set.all.v[1].base_is, BASE_UNSURE);
	set.now = true;
	set.all.n = 0;
	find();
	assert_int_equal(set.all.v[0].base_is, BASE_SAME);
	assert_int_equal(set.all.v[0].base.size, 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_files),
		TEST(test_directories),
		TEST(test_types),
		TEST(test_no_link_is_followed),
		TEST(test_crafted_marks),
		TEST(test_unreadable),
		TEST(test_sparse),
		TEST(test_depth),
		TEST(test_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
