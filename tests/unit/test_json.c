/*
 * tests/unit/test_json.c - writing JSON that every reader takes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static const char *quoted(const char *bytes, size_t n)
{
	struct str s = { 0 };

	json_add_quoted(&s, bytes, n);
	return s.p;
}

static void test_escapes(void **state)
{
	static const char *const rows[][2] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "\"", "\"\\\"\"" },
		{ "\\", "\"\\\\\"" },
		{ "/", "\"/\"" },
		{ "a\nb\tc", "\"a\\nb\\tc\"" },
		{ "\r\b\f", "\"\\u000d\\u0008\\u000c\"" },
		{ "\033[1m", "\"\\u001b[1m\"" },
		{ "\x7f", "\"\\u007f\"" },
		{ "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80",
			"\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(quoted(rows[i][0], strlen(rows[i][0])), rows[i][1]);
	assert_string_equal(quoted("a\0b", 3), "\"a\\u0000b\"");
}

/* A file name need not be UTF-8; Python's surrogateescape reads these back. */
static void test_bytes_that_are_no_text(void **state)
{
	static const char *const rows[][2] = {
		{ "\xff", "\"\\udcff\"" },
		{ "a\x80z", "\"a\\udc80z\"" },
		{ "\xc3", "\"\\udcc3\"" },
		{ "\xc3(", "\"\\udcc3(\"" },
		{ "\xe2\x82", "\"\\udce2\\udc82\"" },
		{ "\xc0\x80", "\"\\udcc0\\udc80\"" },
		{ "\xed\xb2\x80", "\"\\udced\\udcb2\\udc80\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(quoted(rows[i][0], strlen(rows[i][0])), rows[i][1]);
}

static void write_sample(struct json *j)
{
	json_open(j, NULL, '{');
	json_string(j, "a", "x");
	json_open(j, "empty list", '[');
	json_close(j, ']');
	json_open(j, "empty", '{');
	json_close(j, '}');
	json_open(j, "list", '[');
	json_number(j, NULL, -1);
	json_open(j, NULL, '{');
	json_bool(j, "yes", true);
	json_bool(j, "no", false);
	json_close(j, '}');
	json_string(j, NULL, NULL);
	json_close(j, ']');
	json_number(j, "n", LLONG_MAX);
	json_close(j, '}');
}

static void test_one_line(void **state)
{
	struct str s = { 0 };
	struct json j = { .out = &s };

	write_sample(&j);
	assert_string_equal(s.p,
		"{\"a\":\"x\",\"empty list\":[],\"empty\":{},"
		"\"list\":[-1,{\"yes\":true,\"no\":false},null],\"n\":9223372036854775807}");
	assert_int_equal(j.depth, 0);
}

static void test_indented(void **state)
{
	struct str s = { 0 };
	struct json j = { .out = &s, .indent = true };

	write_sample(&j);
	assert_string_equal(s.p,
		"{\n"
		"  \"a\": \"x\",\n"
		"  \"empty list\": [],\n"
		"  \"empty\": {},\n"
		"  \"list\": [\n"
		"    -1,\n"
		"    {\n"
		"      \"yes\": true,\n"
		"      \"no\": false\n"
		"    },\n"
		"    null\n"
		"  ],\n"
		"  \"n\": 9223372036854775807\n"
		"}");
}

static void test_deep(void **state)
{
	enum { DEPTH = 500 };
	struct str s = { 0 };
	struct json j = { .out = &s };

	for (int i = 0; i < DEPTH; i++)
		json_open(&j, NULL, '[');
	for (int i = 0; i < DEPTH; i++)
		json_close(&j, ']');
	assert_int_equal(s.len, 2 * DEPTH);
	assert_int_equal(strspn(s.p, "["), DEPTH);
}

static void test_lone_values(void **state)
{
	struct str s = { 0 };
	struct json j = { .out = &s };

	json_string(&j, NULL, "");
	assert_string_equal(s.p, "\"\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_indented),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_lone_values),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
