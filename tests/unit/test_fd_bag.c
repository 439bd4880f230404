/*
 * tests/unit/test_fd_bag.c - a bag of descriptors closes those that are in it, and no others
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/fd.h"

static int open_null(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void test_all_are_closed(void **state)
{
	struct fd_bag bag = { .n = 0 };
	int first = open_null(), fds[5];

	(void)state;
	close(first);
	for (size_t i = 0; i < 5; i++)
		fds[i] = fd_later(&bag, open_null());
	assert_int_equal(fds[0], first);
	for (size_t i = 0; i < 5; i++)
		assert_true(is_open(fds[i]));
	fd_bag_empty(&bag);
	for (size_t i = 0; i < 5; i++)
		assert_false(is_open(fds[i]));
	fd_bag_empty(&bag);
	assert_int_equal(open_null(), first);
	close(first);
}

/* Between two of the bag is one that is not in it. */
static void test_others_stay(void **state)
{
	struct fd_bag bag = { .n = 0 };
	int a = fd_later(&bag, open_null()), b = fd_later(&bag, open_null());
	int mine = open_null(), c = fd_later(&bag, open_null());

	(void)state;
	fd_bag_empty(&bag);
	assert_false(is_open(a) || is_open(b) || is_open(c));
	assert_true(is_open(mine));
	close(mine);
}

/* However many: the newest can be used, the oldest are gone, no more than so many are open. */
static void test_the_newest_stay(void **state)
{
	struct fd_bag bag = { .n = 0 };
	int first = open_null(), last[FD_BAG_KEPT] = { 0 };

	(void)state;
	close(first);
	for (int i = 0; i < 300; i++) {
		last[i % FD_BAG_KEPT] = fd_later(&bag, open_null());
		assert_true(last[i % FD_BAG_KEPT] <= first + FD_BAG_SIZE);
		for (int k = 0; k < FD_BAG_KEPT && k <= i; k++)
			assert_true(is_open(last[k]));
	}
	fd_bag_empty(&bag);
	for (int fd = first; fd <= first + FD_BAG_SIZE; fd++)
		assert_false(is_open(fd));
}

static void test_failures_pass_through(void **state)
{
	struct fd_bag bag = { .n = 0 };

	(void)state;
	assert_int_equal(fd_later(&bag, open("/nonexistent", O_RDONLY)), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(bag.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_closed),
		cmocka_unit_test(test_others_stay),
		cmocka_unit_test(test_the_newest_stay),
		cmocka_unit_test(test_failures_pass_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
