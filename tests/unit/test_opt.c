/*
 * tests/unit/test_opt.c - reading a command line by its table
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"
#include "cli/opt.h"

enum colour { RED, GREEN, BLUE };

struct args {
	bool dry, yes;
	const char *name;
	enum colour colour;
	VEC(const char *) items;
};

static int add_item(void *args, const char *text, struct fault *f)
{
	struct args *a = args;

	if (!strcmp(text, "bad")) {
		fault_set(f, 0, "expected something good");
		return fault_fix(f, "Try again.");
	}
	vec_push(&a->items, text);
	return 0;
}

static const struct opt opts[] = {
	OPT_FLAG('n', "dry-run", struct args, dry, "print and stop"),
	OPT_FLAG('y', "yes", struct args, yes, "do not ask"),
	OPT_STR('o', "name", struct args, name, "NAME", "a name"),
	OPT_CHOICE(0, "colour", struct args, colour, "red|green|blue", "a colour"),
	OPT_CALL('i', "item", add_item, "ITEM", "an item"),
	OPT_END,
};

/* The result of one command line. */
struct outcome {
	struct args args;
	struct opt_rest rest;
	struct fault fault;
	int rc;
};

static struct outcome parse_in_order(enum opt_order order, const char *const *words)
{
	struct outcome o = { .rest = { .argc = -1 } };
	VEC(char *) argv = { 0 };

	vec_push(&argv, mem_strdup("carrel"));
	for (; *words; words++)
		vec_push(&argv, mem_strdup(*words));
	vec_push(&argv, NULL);
	o.rc = opt_parse(opts, order, &o.args, (int)argv.n - 1, argv.v, &o.rest, &o.fault);
	return o;
}

#define WORDS(...)       ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define PARSE(...)       parse_in_order(OPT_ANYWHERE, WORDS(__VA_ARGS__))
#define PARSE_LINE(...)  parse_in_order(OPT_BEFORE_WORDS, WORDS(__VA_ARGS__))
#define REST(rest, ...)  assert_rest(rest, WORDS(__VA_ARGS__))
#define REFUSED(o, text) assert_refused(o, text)

static void assert_rest(struct opt_rest rest, const char *const *words)
{
	int n = 0;

	for (; words[n]; n++) {
		assert_true(n < rest.argc);
		assert_string_equal(rest.argv[n], words[n]);
	}
	assert_int_equal(rest.argc, n);
	assert_null(rest.argv[n]);
}

/* Refused in these words, and the result was not touched. */
static void assert_refused(struct outcome o, const char *text)
{
	assert_int_equal(o.rc, -EINVAL);
	assert_string_equal(o.fault.text, text);
	assert_int_equal(o.fault.err, 0);
	assert_int_equal(o.rest.argc, -1);
}

static void test_nothing(void **state)
{
	struct outcome o = PARSE();

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_false(o.args.dry || o.args.yes || o.rest.dashes || o.rest.help);
	assert_null(o.args.name);
	REST(o.rest);
}

static void test_flags_bundle(void **state)
{
	struct outcome o = PARSE("-ny"), apart = PARSE("--yes", "-n", "-n");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_true(o.args.dry && o.args.yes);
	assert_int_equal(apart.rc, 0);
	assert_true(apart.args.dry && apart.args.yes);
}

static void test_values_in_all_forms(void **state)
{
	static const char *const forms[][3] = {
		{ "--name", "x=1" },
		{ "--name=x=1" },
		{ "-o", "x=1" },
		{ "-ox=1" },
		{ "-nox=1" },
		{ "-no", "x=1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct outcome o = parse_in_order(OPT_ANYWHERE, forms[i]);

		assert_int_equal(o.rc, 0);
		assert_string_equal(o.args.name, "x=1");
		REST(o.rest);
	}
}

static void test_a_value_may_look_like_an_option(void **state)
{
	struct outcome o = PARSE("--name", "--yes", "--item", "--", "word");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_string_equal(o.args.name, "--yes");
	assert_string_equal(o.args.items.v[0], "--");
	assert_false(o.args.yes || o.rest.dashes);
	REST(o.rest, "word");
}

static void test_repeated(void **state)
{
	struct outcome o = PARSE("-ia", "--item=b", "--name", "1", "--item", "c", "--name", "2",
		"--colour=green", "--colour", "blue");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_int_equal(o.args.items.n, 3);
	assert_string_equal(o.args.items.v[0], "a");
	assert_string_equal(o.args.items.v[2], "c");
	assert_string_equal(o.args.name, "2");
	assert_int_equal(o.args.colour, BLUE);
}

static void test_unknown_with_suggestion(void **state)
{
	(void)state;
	REFUSED(PARSE("--nmae", "x"), "unknown option '--nmae' (did you mean '--name'?)");
	REFUSED(PARSE("--colr=red"), "unknown option '--colr' (did you mean '--colour'?)");
	REFUSED(PARSE("--hlep"), "unknown option '--hlep' (did you mean '--help'?)");
	REFUSED(PARSE("--quite-another"), "unknown option '--quite-another'");
	REFUSED(PARSE("-nz"), "unknown option '-z'");
	REFUSED(PARSE("-n\xc3\xa9"), "unknown option '-\xc3\xa9'");
	REFUSED(PARSE("-\xff\x1b"), "unknown option '-\\xff'");
	REFUSED(PARSE("--\x1b[31m"), "unknown option '--\\x1b[31m'");
	/* No abbreviations: a new option must not change what an old script means. */
	REFUSED(PARSE("--dry"), "unknown option '--dry' (did you mean '--dry-run'?)");
}

static void test_missing_and_empty_values(void **state)
{
	(void)state;
	REFUSED(PARSE("--name"), "--name needs a value: --name NAME");
	REFUSED(PARSE("-no"), "--name needs a value: --name NAME");
	REFUSED(PARSE("--name="), "--name '': the value is empty, expected NAME");
	REFUSED(PARSE("--item", ""), "--item '': the value is empty, expected ITEM");
	REFUSED(PARSE("--yes=1"), "--yes takes no value");
	REFUSED(PARSE("--help="), "--help takes no value");
}

static void test_choices(void **state)
{
	struct outcome o = PARSE("--colour", "green");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_int_equal(o.args.colour, GREEN);
	REFUSED(PARSE("--colour", "gren"),
		"--colour 'gren': expected red, green or blue (did you mean 'green'?)");
	REFUSED(PARSE("--colour=ultraviolet"),
		"--colour 'ultraviolet': expected red, green or blue");
	REFUSED(PARSE("--colour=red|green"),
		"--colour 'red|green': expected red, green or blue (did you mean 'green'?)");
}

static void test_a_call_that_refuses(void **state)
{
	struct outcome o = PARSE("-i", "good", "-i", "bad");

	(void)state;
	assert_int_equal(o.args.items.n, 1);
	assert_refused(o, "--item 'bad': expected something good");
	assert_string_equal(o.fault.fix, "Try again.");
}

static void test_long_values_are_cut(void **state)
{
	char value[4000] = { 0 };
	struct outcome o;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(value); i += 2)
		memcpy(value + i, "\xc3\xa9", 2);
	o = PARSE("--colour", value);
	assert_int_equal(o.rc, -EINVAL);
	assert_true(strlen(o.fault.text) < 200);
	assert_non_null(strstr(o.fault.text, "\xc3\xa9...': expected red, green or blue"));
}

static void test_dashes_end_the_options(void **state)
{
	struct outcome o = PARSE("-n", "--", "-y", "--", "--name");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_true(o.args.dry && o.rest.dashes);
	assert_false(o.args.yes);
	REST(o.rest, "-y", "--", "--name");
}

static void test_words(void **state)
{
	struct outcome o = PARSE("a", "-n", "-", "", "--name", "x", "b", "--", "-c");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_true(o.args.dry);
	assert_string_equal(o.args.name, "x");
	REST(o.rest, "a", "-", "", "b", "-c");
}

static void test_the_first_word_may_end_the_options(void **state)
{
	struct outcome o = PARSE_LINE("-n", "ls", "-y", "--", "--bogus");

	(void)state;
	assert_int_equal(o.rc, 0);
	assert_true(o.args.dry);
	assert_false(o.args.yes || o.rest.dashes);
	REST(o.rest, "ls", "-y", "--", "--bogus");
}

static void test_help_wins_over_what_follows(void **state)
{
	(void)state;
	assert_true(PARSE("--help", "--bogus").rest.help);
	assert_true(PARSE("-nhz").rest.help);
	assert_true(PARSE("word", "-h").rest.help);
	assert_false(PARSE("--", "--help").rest.help);
	assert_false(PARSE_LINE("word", "--help").rest.help);
	REFUSED(PARSE("--bogus", "--help"), "unknown option '--bogus'");
}

static void test_no_table_has_help_only(void **state)
{
	char *argv[] = { "carrel", "-h", NULL };
	struct opt_rest rest;
	struct fault f;

	(void)state;
	assert_int_equal(opt_parse(NULL, OPT_ANYWHERE, NULL, 2, argv, &rest, &f), 0);
	assert_true(rest.help);
	assert_string_equal(opt_next(NULL, NULL)->name, "help");
	assert_null(opt_next(NULL, opt_next(NULL, NULL)));
}

static void test_no_arguments_at_all(void **state)
{
	char *argv[] = { NULL };
	struct opt_rest rest;
	struct fault f;

	(void)state;
	assert_int_equal(opt_parse(opts, OPT_ANYWHERE, NULL, 0, argv, &rest, &f), 0);
	assert_int_equal(rest.argc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_flags_bundle),
		cmocka_unit_test(test_values_in_all_forms),
		cmocka_unit_test(test_a_value_may_look_like_an_option),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_unknown_with_suggestion),
		cmocka_unit_test(test_missing_and_empty_values),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_a_call_that_refuses),
		cmocka_unit_test(test_long_values_are_cut),
		cmocka_unit_test(test_dashes_end_the_options),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_the_first_word_may_end_the_options),
		cmocka_unit_test(test_help_wins_over_what_follows),
		cmocka_unit_test(test_no_table_has_help_only),
		cmocka_unit_test(test_no_arguments_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
