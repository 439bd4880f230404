/*
 * tests/unit/test_json_read.c - JSON with comments: what is taken, what is refused, and where
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json-read.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* ---- a tree in one line, so that a row of a table can say what is expected ---- */

static void add_tree(struct str *s, const struct json_value *v)
{
	const char *brackets = v->type == JSON_OBJECT ? "{}" : "[]";

	if (v->type == JSON_NULL) {
		str_add(s, "null");
	} else if (v->type == JSON_BOOL) {
		str_add(s, v->boolean ? "true" : "false");
	} else if (v->type == JSON_NUMBER) {
		str_add(s, v->text);
	} else if (v->type == JSON_STRING) {
		json_add_quoted(s, v->text, strlen(v->text));
	} else {
		str_addc(s, brackets[0]);
		json_each(i, v) {
			if (i->key)
				str_addf(s, "%s:", i->key);
			add_tree(s, i);
			if (i->next)
				str_addc(s, ' ');
		}
		str_addc(s, brackets[1]);
	}
}

/*
 * In memory that ends where the text ends, so that a sanitizer sees a byte too many. What
 * was read is the tree; else every error, "1:2 text; 3:4 text".
 */
static const char *read_bytes(const char *bytes, size_t n)
{
	static const char origin[] = "where from";
	const struct json_value untouched, *v = &untouched;
	json_errors errors = { 0 };
	struct str s = { 0 };
	char *exact = malloc(n);
	int err;

	if (n)
		memcpy(exact, bytes, n);
	err = json_read(exact, n, origin, &v, &errors);
	free(exact);
	str_add(&s, "");
	if (!err) {
		assert_int_equal(errors.n, 0);
		assert_ptr_equal(v->origin, origin);
		add_tree(&s, v);
		return s.p;
	}
	assert_int_equal(err, -EINVAL);
	assert_ptr_equal(v, &untouched);
	assert_true(errors.n > 0);
	vec_each(e, &errors)
		str_addf(&s, "%s%u:%u %s", s.len ? "; " : "", e->at.line, e->at.column,
			e->text);
	return s.p;
}

static const char *reading(const char *text)
{
	return read_bytes(text, strlen(text));
}

static const struct json_value *tree(const char *text)
{
	const struct json_value *v = NULL;
	json_errors errors = { 0 };

	assert_int_equal(json_read(text, strlen(text), NULL, &v, &errors), 0);
	return v;
}

struct row {
	const char *text, *result;
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *result = reading(rows[i].text);

		if (strcmp(result, rows[i].result) != 0)
			fail_msg("%s\nread as  %s\nexpected %s", str_visible(rows[i].text),
				result, rows[i].result);
	}
}

/* ---- one table for each kind of thing: what is taken stands before what is refused ---- */

static void test_values(void **state)
{
	static const struct row rows[] = {
		{ "null", "null" },
		{ "true", "true" },
		{ " \t\r\n false \n", "false" },
		{ "\"\"", "\"\"" },
		{ "[]", "[]" },
		{ "{}", "{}" },
		{ "[ ]", "[]" },
		{ "{\n}", "{}" },
		{ "[1,\"a\",[true],{\"k\":null}]", "[1 \"a\" [true] {k:null}]" },
		{ "{\"a\" : {\"b\":[]}, \"\":0}", "{a:{b:[]} :0}" },
		{ "", "1:1 nothing but white space" },
		{ " \n\t\r\n ", "1:1 nothing but white space" },
		{ "// only\n/* this */", "1:1 nothing but comments" },
		{ "True", "1:1 expected a value, not \"True\"" },
		{ "nul", "1:1 expected a value, not \"nul\"" },
		{ "nullx", "1:1 expected a value, not \"nullx\"" },
		{ "[NaN]", "1:2 expected a value, not \"NaN\"" },
		{ "{\"memory\": 2G}", "1:12 expected a value, not \"2G\"" },
		{ "[\n  ]\n]", "3:1 unexpected ']' after the value" },
		{ "1 x", "1:3 unexpected 'x' after the value" },
		{ "{} {}", "1:4 unexpected '{' after the value" },
		{ "1 \x01", "1:3 unexpected '\\x01' after the value" },
		{ "1 \xc2\xa0", "1:3 unexpected U+00A0 after the value" },
		{ "}", "1:1 expected a value, not \"}\"" },
		{ ":", "1:1 expected a value, not \":\"" },
		{ "/", "1:1 expected a value, not \"/\"" },
		{ "\x1b[1m", "1:1 expected a value, not \"\\x1b\"" },
		{ "[\xe2\x80\x9cx\xe2\x80\x9d]", "1:2 expected a value, not U+201C" },
		{ "[\xf0\x9f\x98\x80]", "1:2 expected a value, not U+1F600" },
		{ "'a'", "1:1 a string that is not in double quotes" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static void test_lists_and_objects(void **state)
{
	static const struct row rows[] = {
		{ "[1,]", "[1]" },
		{ "[1 , // last\n]", "[1]" },
		{ "{\"a\":1,}", "{a:1}" },
		{ "{\"a\":[1,],}", "{a:[1]}" },
		{ "[,]", "1:2 expected a value, not \",\"" },
		{ "[1,,]", "1:4 expected a value, not \",\"" },
		{ "[1,,2]", "1:4 expected a value, not \",\"" },
		{ "{,}", "1:2 expected a key or \"}\"" },
		{ "{\"a\":1,,}", "1:8 expected a key or \"}\"" },
		{ "1,", "1:2 unexpected ',' after the value" },
		{ "[1 2]", "1:4 expected a comma or \"]\"" },
		{ "[1}", "1:3 expected a comma or \"]\"" },
		{ "[1:2]", "1:3 expected a comma or \"]\"" },
		{ "[true\xc2\xa0]", "1:6 expected a comma or \"]\", not U+00A0" },
		{ "[1\xc2\xa0]", "1:3 expected a comma or \"]\", not U+00A0" },
		{ "{\"a\":1 \"b\":2}", "1:8 expected a comma or \"}\"" },
		{ "{\n\t\"a\": 1\n\t\"b\": 2\n}", "3:2 expected a comma or \"}\"" },
		{ "{\"a\":1]", "1:7 expected a comma or \"}\"" },
		{ "{\"a\"}", "1:5 expected a colon after the key" },
		{ "{\"a\" 1}", "1:6 expected a colon after the key" },
		{ "{\"a\",1}", "1:5 expected a colon after the key" },
		{ "{\"a\":}", "1:6 expected a value, not \"}\"" },
		{ "{\"a\"::1}", "1:6 expected a value, not \":\"" },
		{ "{a:1}", "1:2 a key that is not in double quotes" },
		{ "{'a':1}", "1:2 a key that is not in double quotes" },
		{ "{1:1}", "1:2 a key that is not in double quotes" },
		{ "{[]:1}", "1:2 expected a key or \"}\"" },
		{ "{]", "1:2 expected a key or \"}\"" },
		{ "{\xe2\x80\x8b}", "1:2 expected a key or \"}\", not U+200B" },
		/* Where it begins: the end is at the end. */
		{ "[", "1:1 the text ends inside a list" },
		{ "{\n \"a\": [1,\n", "2:7 the text ends inside a list" },
		{ "[1", "1:1 the text ends inside a list" },
		{ "[{}, {", "1:6 the text ends inside an object" },
		{ "[{\"a\"", "1:2 the text ends inside an object" },
		{ "[{\"a\":", "1:2 the text ends inside an object" },
		{ "[{\"a\":1", "1:2 the text ends inside an object" },
		{ "[{\"a\":1,", "1:2 the text ends inside an object" },
		{ "[{\"a\":1}", "1:1 the text ends inside a list" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static void test_strings(void **state)
{
	static const struct row rows[] = {
		{ "\"a b\"", "\"a b\"" },
		{ "\"\\\"\\\\\\/\"", "\"\\\"\\\\/\"" },
		{ "\"\\b\\f\\n\\r\\t\"", "\"\\u0008\\u000c\\n\\u000d\\t\"" },
		{ "\"x\\ny\\nz\"", "\"x\\ny\\nz\"" },
		{ "\"\x7f\"", "\"\\u007f\"" },
		{ "\"gr\xc3\xbc\xc3\x9f\"", "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\"//no /*comment*/\"", "\"//no /*comment*/\"" },
		{ "\"a", "1:1 the text ends inside a string" },
		{ "\"", "1:1 the text ends inside a string" },
		{ "[\"\\", "1:2 the text ends inside a string" },
		{ "[\"\\\"", "1:2 the text ends inside a string" },
		{ "{\"a", "1:2 the text ends inside a string" },
		{ "[\"abc\n\"]", "1:2 the line ends inside a string" },
		{ "[\"abc\r\n\"]", "1:2 the line ends inside a string" },
		{ "[\"abc\\\n\"]", "1:2 the line ends inside a string" },
		{ "[\"a\tb\"]", "1:4 an unescaped control character in a string" },
		{ "[\"a\x1f\"]", "1:4 an unescaped control character in a string" },
		{ "[\"a\\\t\"]", "1:5 an unescaped control character in a string" },
		{ "\"\\x41\"", "1:2 unknown escape, a backslash before 'x'" },
		{ "\"C:\\dir\\\"", "1:4 unknown escape, a backslash before 'd'" },
		{ "\"\\N\"", "1:2 unknown escape, a backslash before 'N'" },
		{ "\"\\\xc3\xbc\"", "1:2 unknown escape, a backslash before '\xc3\xbc'" },
		{ "\"\\\xc2\x9b\"", "1:2 unknown escape, a backslash before '\\xc2\\x9b'" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static void test_unicode_escapes(void **state)
{
	static const struct row rows[] = {
		{ "\"\\u0041\\u00fc\\u20AC\\uFFFF\"", "\"A\xc3\xbc\xe2\x82\xac\xef\xbf\xbf\"" },
		{ "\"\\u0001\\u007f\\u0080\\u07ff\\u0800\"",
			"\"\\u0001\\u007f\\u0080\xdf\xbf\xe0\xa0\x80\"" },
		{ "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
		{ "\"\\uD800\\uDC00\"", "\"\xf0\x90\x80\x80\"" },
		{ "\"\\uDBFF\\uDFFF\"", "\"\xf4\x8f\xbf\xbf\"" },
		{ "\"\\ud7ff\\ue000\"", "\"\xed\x9f\xbf\xee\x80\x80\"" },
		{ "\"\\u005c\\u0022\"", "\"\\\\\\\"\"" },
		{ "\"x\\ud83d\"", "1:3 half of a surrogate pair" },
		{ "\"x\\ude00\"", "1:3 half of a surrogate pair" },
		{ "\"\\ude00\\ud83d\"", "1:2 half of a surrogate pair" },
		{ "\"\\ud83d\\ud83d\\ude00\"", "1:2 half of a surrogate pair" },
		{ "\"\\ud83d\\u0041\"", "1:2 half of a surrogate pair" },
		{ "\"\\ud83dxude00\"", "1:2 half of a surrogate pair" },
		{ "\"\\ud83d\\n\"", "1:2 half of a surrogate pair" },
		{ "\"\\ud83d\\ude0", "1:2 half of a surrogate pair" },
		{ "\"\\u0000\"", "1:2 \\u0000, a NUL character" },
		{ "\"\\u12\"", "1:2 \\u without four hexadecimal digits" },
		{ "\"\\u12g4\"", "1:2 \\u without four hexadecimal digits" },
		{ "\"\\u+123\"", "1:2 \\u without four hexadecimal digits" },
		{ "\"\\u\"", "1:2 \\u without four hexadecimal digits" },
		{ "\"\\u123", "1:2 \\u without four hexadecimal digits" },
		{ "\"\\U0041\"", "1:2 unknown escape, a backslash before 'U'" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static void test_numbers(void **state)
{
	static const struct row rows[] = {
		{ "[0,-0,7,-12,0.5,1e5,1E+2,2.5e-3,0e0]",
			"[0 -0 7 -12 0.5 1e5 1E+2 2.5e-3 0e0]" },
		{ "1e308", "1e308" },
		{ "1e-999", "1e-999" },
		{ "123456789012345678901234567890", "123456789012345678901234567890" },
		{ "[ 1e999]", "1:3 a number that is too large" },
		{ "-1e999", "1:1 a number that is too large" },
		{ "01", "1:1 a number with a leading zero" },
		{ "-01", "1:1 a number with a leading zero" },
		{ "[00]", "1:2 a number with a leading zero" },
		{ "[.5]", "1:2 a number without a digit before the point" },
		{ "-.5", "1:1 a number without a digit before the point" },
		{ "1.", "1:1 a number without a digit after the point" },
		{ "[1.]", "1:2 a number without a digit after the point" },
		{ "1.e5", "1:1 a number without a digit after the point" },
		{ "1e", "1:1 a number without a digit in its exponent" },
		{ "1e+", "1:1 a number without a digit in its exponent" },
		{ "1e+-5", "1:1 a number without a digit in its exponent" },
		{ "-", "1:1 expected a value, not \"-\"" },
		{ "[-]", "1:2 expected a value, not \"-\"" },
		{ "+1", "1:1 expected a value, not \"+1\"" },
		{ "0x10", "1:1 expected a value, not \"0x10\"" },
		{ "1.2.3", "1:1 expected a value, not \"1.2.3\"" },
		{ "1_000", "1:1 expected a value, not \"1_000\"" },
		{ "-Infinity", "1:1 expected a value, not \"-Infinity\"" },
		{ "[5m,1]", "1:2 expected a value, not \"5m\"" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static void test_what_numbers_are(void **state)
{
	static const struct {
		const char *text;
		double value;
	} rows[] = {
		{ "0", 0 },
		{ "-7", -7 },
		{ "999999999999999", 999999999999999 },
		{ "-99999999999999", -99999999999999 },
		{ "9007199254740993", 9007199254740992 },
		{ "123456789012345678901234567890", 123456789012345678901234567890.0 },
		{ "0.1", 0.1 },
		{ "1e5", 100000 },
		{ "-2.5E-3", -0.0025 },
		{ "1.7976931348623157e308", 1.7976931348623157e308 },
		{ "1e-999", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_true(tree(rows[i].text)->number == rows[i].value);
	assert_true(signbit(tree("-0")->number));
	assert_false(signbit(tree("0")->number));
}

static void test_comments(void **state)
{
	static const struct row rows[] = {
		{ "// first\n1 // last", "1" },
		{ "//\n1//", "1" },
		{ "/**/1/***/", "1" },
		{ "/* a * / // */ 1", "1" },
		{ "[/*a*/1/*b*/,/*c*/2/*d*/,/*e*/]", "[1 2]" },
		{ "{/*a*/\"k\"/*b*/:/*c*/1/*d*/,//e\n}", "{k:1}" },
		{ "[1, // \"\xc3\xbc\" /*\n2]", "[1 2]" },
		{ "// windows\r\n1", "1" },
		{ "1 /*", "1:3 the text ends inside a comment" },
		{ "1 /*/", "1:3 the text ends inside a comment" },
		{ "/*/ 1", "1:1 the text ends inside a comment" },
		{ "[\n /* x *", "2:2 the text ends inside a comment" },
		{ "{\"a\" /*", "1:6 the text ends inside a comment" },
		{ "{\"a\": /*", "1:7 the text ends inside a comment" },
		{ "{\"a\": 1 /*", "1:9 the text ends inside a comment" },
		{ "1 /", "1:3 unexpected '/' after the value" },
		{ "1 /x", "1:3 unexpected '/' after the value" },
		{ "/* */ */ 1", "1:7 expected a value, not \"*\"" },
		{ "[1, # no\n2]", "1:5 expected a value, not \"#\"" },
		{ "1 // x\n\n y", "3:2 unexpected 'y' after the value" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static void test_bytes(void **state)
{
	static const struct row rows[] = {
		{ "\xef\xbb\xbf[1]", "[1]" },
		{ "\xef\xbb\xbf[x]", "1:2 expected a value, not \"x\"" },
		{ "\xef\xbb\xbf", "1:1 nothing but white space" },
		{ " \xef\xbb\xbf[1]", "1:2 expected a value, not U+FEFF" },
		{ "\xef\xbb\xbf\xef\xbb\xbf[1]", "1:1 expected a value, not U+FEFF" },
		{ "\xef\xbb", "1:1 bytes that are not UTF-8" },
		{ "\xff\xfe[", "1:1 bytes that are not UTF-8" },
		{ "[\"\xc3\xbc\xff\"]", "1:4 bytes that are not UTF-8" },
		{ "[1]\n// caf\xe9\n", "2:7 bytes that are not UTF-8" },
		{ "[\"\xc3", "1:3 bytes that are not UTF-8" },
		{ "\"\xc0\x80\"", "1:2 bytes that are not UTF-8" },
		{ "\"\xed\xa0\x80\"", "1:2 bytes that are not UTF-8" },
		{ "\"\xf4\x90\x80\x80\"", "1:2 bytes that are not UTF-8" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
	assert_string_equal(read_bytes("[1]\0", 4), "1:4 a NUL byte");
	assert_string_equal(read_bytes("[1]\0", 3), "[1]");
	assert_string_equal(read_bytes("\"a\0b\"", 5), "1:3 a NUL byte");
	assert_string_equal(read_bytes("[\0\n\0]\0\0\0", 8), "1:2 a NUL byte");
	assert_string_equal(read_bytes(NULL, 0), "1:1 nothing but white space");
}

/* The same at every place of the words in which bytes are looked through. */
static void test_bad_byte_anywhere(void **state)
{
	char text[41];

	for (size_t i = 1; i < 39; i++) {
		memset(text, ' ', 40);
		text[0] = '[';
		text[39] = ']';
		assert_string_equal(read_bytes(text, 40), "[]");
		text[i] = '\0';
		assert_string_equal(read_bytes(text, 40),
			mem_printf("1:%zu a NUL byte", i + 1));
		text[i] = (char)0x80;
		assert_string_equal(read_bytes(text, 40),
			mem_printf("1:%zu bytes that are not UTF-8", i + 1));
	}
}

/* ---- keys that stand twice ---- */

static void test_twins(void **state)
{
	static const struct row rows[] = {
		{ "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":1}],\"A\":1}",
			"{a:{a:1} b:[{a:1} {a:1}] A:1}" },
		{ "{\n  \"model\": 1,\n  \"model\": 2\n}",
			"3:3 the key \"model\" stands twice (first at 2:3)" },
		{ "{\"a\":1,\"a\":2,\"a\":3}",
			"1:8 the key \"a\" stands twice (first at 1:2); "
			"1:14 the key \"a\" stands twice (first at 1:2)" },
		{ "{\"a\":1,\"\\u0061\":2}", "1:8 the key \"a\" stands twice (first at 1:2)" },
		{ "{\"\":1,\"\":2}", "1:7 the key \"\" stands twice (first at 1:2)" },
		{ "{\"\\u001b\":1,\"\\u001b\":2}",
			"1:13 the key \"\\x1b\" stands twice (first at 1:2)" },
		/* Found from the inside out, told in their order. */
		{ "{\"a\":1,\"a\":{\"b\":[{\"c\":1,\"c\":2}],\"b\":3},\"a\":4}",
			"1:8 the key \"a\" stands twice (first at 1:2); "
			"1:25 the key \"c\" stands twice (first at 1:19); "
			"1:33 the key \"b\" stands twice (first at 1:13); "
			"1:40 the key \"a\" stands twice (first at 1:2)" },
		/* Together with what ended the reading. */
		{ "{\"a\":1,\"a\":2,x",
			"1:8 the key \"a\" stands twice (first at 1:2); "
			"1:14 a key that is not in double quotes" },
		{ "{\"a\":1,\"a\":{\"b\":1,\"b\":2",
			"1:12 the text ends inside an object; "
			"1:19 the key \"b\" stands twice "
			"(first at 1:13)" },
		{ "{\"a\":1,\"a\":2} x",
			"1:8 the key \"a\" stands twice (first at 1:2); "
			"1:15 unexpected 'x' after the value" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

static const char *object_of(size_t n, size_t twin, size_t of)
{
	struct str s = { 0 };

	str_add(&s, "{\n");
	for (size_t i = 0; i < n; i++)
		str_addf(&s, "\"a rather long key %zu\": %zu,\n", i == twin ? of : i, i);
	str_add(&s, "}");
	return s.p;
}

/* Few keys are compared with each other, many are looked up: the same must come out. */
static void test_twins_among_many(void **state)
{
	static const size_t counts[] = { 2, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 64, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		size_t n = counts[i];

		assert_string_not_equal(reading(object_of(n, n, 0)), "");
		assert_non_null(json_member(tree(object_of(n, n, 0)), "a rather long key 1"));
		assert_string_equal(reading(object_of(n, n - 1, 0)),
			mem_printf("%zu:1 the key \"a rather long key 0\" stands twice "
				   "(first at 2:1)",
				n + 1));
		assert_string_equal(reading(object_of(n, n - 1, n / 2 - 1)),
			mem_printf("%zu:1 the key \"a rather long key %zu\" stands twice "
				   "(first at %zu:1)",
				n + 1, n / 2 - 1, n / 2 + 1));
	}
}

/* A table is used again: nothing of the last object may be left in it. */
static void test_large_objects_side_by_side(void **state)
{
	const char *many = object_of(100, 100, 0), *fewer = object_of(20, 20, 0);
	const char *both = mem_printf("[%s,%s,%s]", many, fewer, many);

	assert_int_equal(*reading(both), '[');
	both = mem_printf("[%s,%s,%s]", many, object_of(20, 19, 3), many);
	assert_string_equal(reading(both),
		"122:1 the key \"a rather long key 3\" stands twice (first at 106:1)");
}

static void test_every_twin_of_many(void **state)
{
	enum { MANY = 5000 };
	struct str s = { 0 };
	const struct json_value *v;
	json_errors errors = { 0 };

	str_addc(&s, '{');
	for (int i = 0; i < MANY; i++)
		str_add(&s, "\"a\":1,\n");
	str_addc(&s, '}');
	assert_int_equal(json_read(s.p, s.len, NULL, &v, &errors), -EINVAL);
	assert_int_equal(errors.n, MANY - 1);
	for (size_t i = 0; i < errors.n; i++)
		assert_int_equal(errors.v[i].at.line, i + 2);
}

/* Comparing each with each would take minutes. */
static void test_many_keys_take_no_time(void **state)
{
	const char *text = object_of(200000, 200000, 0);
	clock_t start = clock();

	assert_non_null(tree(text));
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
}

/* ---- depth, length, position ---- */

static const char *nested(int depth, const char *open, const char *inner, const char *close)
{
	struct str s = { 0 };

	for (int i = 0; i < depth; i++)
		str_add(&s, open);
	str_add(&s, inner);
	for (int i = 0; i < depth; i++)
		str_add(&s, close);
	return s.p;
}

static void test_depth(void **state)
{
	assert_string_equal(reading(nested(JSON_DEPTH, "[", "", "]")),
		nested(JSON_DEPTH, "[", "", "]"));
	assert_string_equal(reading(nested(JSON_DEPTH, "[", "1", "]")),
		nested(JSON_DEPTH, "[", "1", "]"));
	assert_string_equal(reading(nested(JSON_DEPTH, "{\"a\":", "1", "}")),
		nested(JSON_DEPTH, "{a:", "1", "}"));
	assert_string_equal(reading(nested(JSON_DEPTH + 1, "[", "", "]")),
		"1:33 nested more than 32 deep");
	assert_string_equal(reading(nested(JSON_DEPTH + 1, "{\"a\":\n", "1", "}")),
		"33:1 nested more than 32 deep");
	assert_string_equal(reading(nested(100000, "[", "", "")),
		"1:33 nested more than 32 deep");
	/* Depth is what is open, not what was. */
	assert_string_equal(reading(nested(JSON_DEPTH - 1, "[", "[],[],{}", "]")),
		nested(JSON_DEPTH - 1, "[", "[] [] {}", "]"));
}

static void test_long_strings(void **state)
{
	enum { LONG = 3000000 };
	char *text = mem_alloc(LONG + 1);
	const struct json_value *v;

	memset(text, 'x', LONG);
	text[0] = text[LONG - 1] = '"';
	v = tree(text);
	assert_int_equal(strlen(v->text), LONG - 2);
	assert_int_equal(strspn(v->text, "x"), LONG - 2);
	for (size_t i = 1; i < LONG - 1; i += 2)
		memcpy(text + i, "\\n", 2);
	v = tree(text);
	assert_int_equal(strspn(v->text, "\n"), LONG / 2 - 1);
	assert_int_equal(strlen(v->text), LONG / 2 - 1);
	text[LONG - 1] = ' ';
	assert_string_equal(reading(text), "1:1 the text ends inside a string");
}

/* What is quoted is cut, between characters, and never within what makes it visible. */
static void test_long_quotes(void **state)
{
	const char *sixty = nested(60, "x", "", "");

	assert_string_equal(reading(sixty),
		mem_printf("1:1 expected a value, not \"%s\"", sixty));
	assert_string_equal(reading(nested(61, "x", "", "")),
		mem_printf("1:1 expected a value, not \"%s...\"", sixty));
	assert_string_equal(reading(nested(1000000, "x", "", "")),
		mem_printf("1:1 expected a value, not \"%s...\"", sixty));
	sixty = nested(61, "\xc3\xbc", "", "");
	assert_string_equal(reading(mem_printf("{\"%s\":1,\n\"%s\":1}", sixty, sixty)),
		mem_printf("2:1 the key \"%s...\" stands twice (first at 1:2)",
			nested(60, "\xc3\xbc", "", "")));
	sixty = nested(100, "\\u0001", "", "");
	assert_string_equal(reading(mem_printf("{\"%s\":1,\n\"%s\":1}", sixty, sixty)),
		mem_printf("2:1 the key \"%s...\" stands twice (first at 1:2)",
			nested(15, "\\x01", "", "")));
}

static void check_at(struct json_at at, unsigned int line, unsigned int column)
{
	assert_int_equal(at.line, line);
	assert_int_equal(at.column, column);
}

static void test_positions(void **state)
{
	const struct json_value *v = tree("\xef\xbb\xbf // \xe2\x82\xac\r\n"
					  "{\t\"gr\xc3\xbc\xc3\x9f\" :\r\n"
					  "\t\t[ \"\xf0\x9f\x98\x80\\n\", -1.5,/* \xc3\xbc\n"
					  "\xc3\xbc*/ true ] , \"b\": null, \r\"c\"\n\n:{} }");
	const struct json_value *list = json_member(v, "gr\xc3\xbc\xc3\x9f");

	check_at(v->at, 2, 1);
	assert_null(v->key);
	check_at(list->key_at, 2, 3);
	check_at(list->at, 3, 3);
	check_at(list->first->at, 3, 5);
	check_at(list->first->next->at, 3, 12);
	check_at(list->first->next->next->at, 4, 5);
	assert_null(list->first->next->next->next);
	assert_null(list->first->key);
	check_at(json_member(v, "b")->key_at, 4, 14);
	check_at(json_member(v, "b")->at, 4, 19);
	check_at(json_member(v, "c")->key_at, 4, 26);
	check_at(json_member(v, "c")->at, 6, 2);
}

static void test_line_ends(void **state)
{
	static const struct row rows[] = {
		{ "[\r\n1,\r\nx]", "3:1 expected a value, not \"x\"" },
		{ "[\n1,\nx]", "3:1 expected a value, not \"x\"" },
		{ "[\n\r\n\n\r\n  x]", "5:3 expected a value, not \"x\"" },
		{ "[\rx]", "1:3 expected a value, not \"x\"" },
		{ "[\t\tx]", "1:4 expected a value, not \"x\"" },
		{ "[\"\xf0\x9f\x98\x80\xc3\xbc\", x]", "1:8 expected a value, not \"x\"" },
		{ "[ /* \n\n \xc3\xbc */ x]", "3:7 expected a value, not \"x\"" },
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

/* ---- the rest of the interface ---- */

static void test_member(void **state)
{
	const struct json_value *v = tree("{\"a\":1,\"ab\":[{\"x\":1}],\"\":2}");

	assert_string_equal(json_member(v, "a")->text, "1");
	assert_string_equal(json_member(v, "")->text, "2");
	assert_int_equal(json_member(v, "ab")->type, JSON_LIST);
	assert_null(json_member(v, "b"));
	assert_null(json_member(v, "x"));
	assert_null(json_member(json_member(v, "ab"), "x"));
	assert_null(json_member(json_member(v, "a"), "a"));
	assert_null(json_member(NULL, "a"));
	assert_null(json_member(tree("{}"), "a"));
}

static void test_type_names(void **state)
{
	static const char *const rows[][2] = {
		{ "null", "null" },
		{ "false", "true or false" },
		{ "1", "a number" },
		{ "\"\"", "a string" },
		{ "[]", "a list" },
		{ "{}", "an object" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(json_type_name(tree(rows[i][0])->type), rows[i][1]);
}

/* Errors of several files may be gathered; those that are there stay, and stay first. */
static void test_errors_are_added(void **state)
{
	json_errors errors = { 0 };
	const struct json_value *v = NULL;

	assert_int_equal(json_read("\n\n x", 4, NULL, &v, &errors), -EINVAL);
	assert_int_equal(json_read("[1]", 3, NULL, &v, &errors), 0);
	assert_int_equal(v->type, JSON_LIST);
	assert_int_equal(json_read("y", 1, NULL, &v, &errors), -EINVAL);
	assert_int_equal(errors.n, 2);
	check_at(errors.v[0].at, 3, 2);
	check_at(errors.v[1].at, 1, 1);
	assert_int_equal(v->type, JSON_LIST);
}

/* Bytes that are no UTF-8, as base/json.c writes them: only where it is said to have done so. */
static void test_what_we_wrote(void **state)
{
	static const char *const bad[] = { "\"\\udc7f\"", "\"\\udd00\"", "\"\\ud8e9\"",
		"\"\\udc00\"", "\"\\udc0a\"", "\"\xe9\"", "{\"\\udce9\":1,\"\\udce9\":2}" };
	const char bytes[] = "/caf\xe9 \xff\x80\xc3 \xc3\xa9\n\xf0\x9f\x98\x80\x7f";
	const struct json_value *v = NULL;
	json_errors errors = { 0 };
	struct str s = { 0 };

	json_add_quoted(&s, bytes, strlen(bytes));
	assert_int_equal(json_read(s.p, s.len, NULL, &v, &errors), -EINVAL);
	assert_int_equal(json_read_ours(s.p, s.len, &v, &errors), 0);
	assert_string_equal(v->text, bytes);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(json_read_ours(bad[i], strlen(bad[i]), &v, &errors), -EINVAL);
	assert_string_equal(errors.v[errors.n - 1].text,
		"the key \"\\xe9\" stands twice (first at 1:2)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_lists_and_objects),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_unicode_escapes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_what_numbers_are),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_bad_byte_anywhere),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_twins_among_many),
		cmocka_unit_test(test_large_objects_side_by_side),
		cmocka_unit_test(test_every_twin_of_many),
		cmocka_unit_test(test_many_keys_take_no_time),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_long_strings),
		cmocka_unit_test(test_long_quotes),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_member),
		cmocka_unit_test(test_type_names),
		cmocka_unit_test(test_errors_are_added),
		cmocka_unit_test(test_what_we_wrote),
	};

	return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
