/*
 * tests/unit/test_fd.c - canonical paths, as realpath(3) has them, and whole files
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

static char top[64];

static const char *in_top(const char *name)
{
	return path_join(top, name);
}

static void make_file(const char *name, const char *text)
{
	int fd = open(in_top(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static int set_up(void **state)
{
	strcpy(top, "/tmp/carrel-fd-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	return system(mem_printf("rm -rf '%s'", top));
}

/* The same answer as realpath(3), and the same reason for none. */
static void same_as_realpath(const char *path)
{
	char buf[PATH_MAX];
	const char *expected = realpath(path, buf);
	int err = errno;
	const char *got = fd_real_path(path);

	if (expected) {
		assert_non_null(got);
		assert_string_equal(got, expected);
	} else {
		assert_int_equal(errno, err);
		assert_null(got);
	}
}

static void real_paths(void **state)
{
	static const char *const names[] = { "", "d", "d/e", "d/e/f", "d/e/", "d//e", "./d",
		"d/./e", "d/..", "d/../d/e", "d/e/../..", ".hidden", "..d", "to-d", "to-d/e",
		"to-d/../d", "to-up", "to-file", "to-nothing", "to-itself", "to-d/nothing",
		"nothing", "nothing/..", "d/e/f/g", "d/e/f/", "d/nothing/e" };

	assert_int_equal(mkdir(in_top("d"), 0755), 0);
	assert_int_equal(mkdir(in_top("d/e"), 0755), 0);
	assert_int_equal(mkdir(in_top(".hidden"), 0755), 0);
	assert_int_equal(mkdir(in_top("..d"), 0755), 0);
	make_file("d/e/f", "");
	assert_int_equal(symlink("d", in_top("to-d")), 0);
	assert_int_equal(symlink("d/e/../..", in_top("to-up")), 0);
	assert_int_equal(symlink(in_top("d/e/f"), in_top("to-file")), 0);
	assert_int_equal(symlink("nothing", in_top("to-nothing")), 0);
	assert_int_equal(symlink("to-itself", in_top("to-itself")), 0);
	assert_int_equal(chdir(top), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		same_as_realpath(mem_printf("%s/%s", top, names[i]));
		same_as_realpath(names[i]);
	}
	same_as_realpath("/");
	same_as_realpath("//");
	same_as_realpath("/proc/self");
	same_as_realpath("/proc/self/cwd");
	assert_int_equal(chdir("/"), 0);
}

/* Neither the answer nor its memory is the caller's. */
static void real_path_is_a_copy(void **state)
{
	char path[sizeof(top)];
	const char *real;

	strcpy(path, top);
	real = fd_real_path(path);
	path[1] = 'x';
	assert_string_equal(real, top);
}

static void whole_files(void **state)
{
	char *text;

	make_file("empty", "");
	make_file("three", "abc");
	assert_string_equal(fd_read_file(AT_FDCWD, in_top("empty"), 10), "");
	assert_string_equal(fd_read_file(AT_FDCWD, in_top("three"), 10), "abc");
	assert_string_equal(fd_read_file(AT_FDCWD, in_top("three"), 3), "abc");
	assert_null(fd_read_file(AT_FDCWD, in_top("three"), 2));
	assert_int_equal(errno, EFBIG);
	/* These say that they are empty, and sysfs that they have a page. */
	text = fd_read_file(AT_FDCWD, "/proc/self/status", 1 << 20);
	assert_true(text && strstr(text, "Pid:"));
	text = fd_read_file(AT_FDCWD, "/sys/kernel/mm/transparent_hugepage/enabled", 1 << 20);
	assert_true(!text || strchr(text, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(real_paths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(real_path_is_a_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whole_files, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
