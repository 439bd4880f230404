/*
 * tests/unit/test_diff.c - texts compared: applied to the old one the result is the new one
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diff.h"
#include "base/mem.h"
#include "base/str.h"

static const char *diff(const char *old, const char *new)
{
	struct str out = { 0 };

	diff_add(&out, old, old ? strlen(old) : 0, new, new ? strlen(new) : 0, "");
	return out.len ? out.p : "";
}

static void test_examples(void **state)
{
	assert_string_equal(diff("a\nb\nc\n", "a\nb\nc\n"), "");
	assert_string_equal(diff(NULL, NULL), "");
	assert_string_equal(diff("", "x\n"), "@@ -0,0 +1,1 @@\n+x\n");
	assert_string_equal(diff("x\n", NULL), "@@ -1,1 +0,0 @@\n-x\n");
	assert_string_equal(diff("a\nb\nc\n", "a\nB\nc\n"),
		"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
	assert_string_equal(diff("a", "a\n"),
		"@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n");
	/* Two places far from each other are two hunks. */
	assert_string_equal(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "X\n2\n3\n4\n5\n6\n7\n8\nY\n"),
		"@@ -1,4 +1,4 @@\n-1\n+X\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+Y\n");
}

static void test_hostile_text(void **state)
{
	char line[3000];
	const char *out = diff("", "\033[2Jx\ty\n");

	assert_null(strchr(out, '\033'));
	assert_non_null(strstr(out, "\\x1b[2Jx\ty"));
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	out = diff("", line);
	assert_true(strlen(out) < 700);
	assert_non_null(strstr(out, "bytes more"));
}

static void test_is_text(void **state)
{
	assert_true(diff_is_text("a\tb\r\n\xc3\xa4", 7));
	assert_true(diff_is_text("", 0));
	assert_false(diff_is_text("a\0b", 3));
	assert_false(diff_is_text("\xff", 1));
	assert_false(diff_is_text("\033[1m", 4));
}

/* Without hunks' heads and context limits: what both sides of all hunks say. */
static void apply(const char *patch, const char *old, struct str *ret)
{
	const char *line = patch, *at = old;
	unsigned long number = 1;

	while (*line) {
		size_t n = strcspn(line, "\n") + 1;

		if (*line == '@') {
			unsigned long from, count;

			assert_int_equal(sscanf(line, "@@ -%lu,%lu", &from, &count), 2);
			for (from += !count; number < from; number++) {
				size_t len = strcspn(at, "\n") + 1;

				str_addn(ret, at, len);
				at += len;
			}
		} else if (*line == '+') {
			str_addn(ret, line + 1, n - 1);
		} else {
			size_t len = strcspn(at, "\n") + 1;

			assert_int_equal(len, n - 1);
			assert_memory_equal(at, line + 1, len);
			if (*line == ' ')
				str_addn(ret, at, len);
			at += len;
			number++;
		}
		line += n;
	}
	str_add(ret, at);
}

static const char *random_text(int lines, int kinds)
{
	struct str out = { 0 };

	str_add(&out, "");
	for (int i = 0; i < lines; i++)
		str_addf(&out, "%d\n", rand() % kinds);
	return out.len ? out.p : "";
}

static void test_applied_it_is_the_new_text(void **state)
{
	for (unsigned int i = 0; i < 2000; i++) {
		struct str result = { 0 };
		const char *old, *new;

		srand(i);
		old = random_text(rand() % 30, 1 + rand() % 20);
		new = random_text(rand() % 30, 1 + rand() % 20);
		str_add(&result, "");
		apply(diff(old, new), old, &result);
		assert_string_equal(result.len ? result.p : "", new);
	}
}

/* More differences than are searched for. */
static void test_quite_different(void **state)
{
	struct str result = { 0 };
	const char *old = random_text(3000, 100000), *new = random_text(3000, 100000);

	apply(diff(old, new), old, &result);
	assert_string_equal(result.p, new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_is_text),
		cmocka_unit_test(test_applied_it_is_the_new_text),
		cmocka_unit_test(test_quite_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
