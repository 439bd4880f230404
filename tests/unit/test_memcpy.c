/*
 * tests/unit/test_memcpy.c - our memcpy(3): every byte, and not one more
 *
 * Source and target end at pages that may not be touched, and begin after others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__wrap_memcpy(void *restrict to, const void *restrict from, size_t n);

enum { LONGEST = 700 };

/* A page that can be written to between two that cannot. */
static unsigned char *guarded_page(size_t page)
{
	unsigned char *p = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_READ | PROT_WRITE), 0);
	return p + page;
}

static void check_copy(unsigned char *to, const unsigned char *from, size_t n)
{
	assert_ptr_equal(__wrap_memcpy(to, from, n), to);
	for (size_t i = 0; i < n; i++)
		if (to[i] != from[i])
			fail_msg("byte %zu of %zu", i, n);
}

static void test_every_length(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *from = guarded_page(page), *to = guarded_page(page);

	for (size_t i = 0; i < page; i++)
		from[i] = (unsigned char)(i * 31 + i / 7 + 1);
	for (size_t n = 0; n <= LONGEST; n++) {
		memset(to, 0, page);
		check_copy(to, from, n);
		assert_int_equal(to[n], 0);
		memset(to, 0, page);
		check_copy(to + page - n, from + page - n, n);
		if (n)
			assert_int_equal(to[page - n - 1], 0);
	}
}

static void test_every_alignment(void **state)
{
	unsigned char from[LONGEST], to[LONGEST];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 17 + 3);
	for (size_t a = 0; a < 16; a++)
		for (size_t b = 0; b < 16; b++)
			for (size_t n = 0; n < 100; n++) {
				memset(to, 0, sizeof(to));
				check_copy(to + a, from + b, n);
				assert_int_equal(to[a + n], 0);
				assert_true(a == 0 || to[a - 1] == 0);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_every_alignment),
	};

	return cmocka_run_group_tests_name("memcpy", tests, NULL, NULL);
}
