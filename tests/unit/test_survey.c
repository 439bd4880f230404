/*
 * tests/unit/test_survey.c - one listing of a directory instead of many looks
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "host/survey.h"
#include "plan/host.h"
#include "plan/obeyed.h"

static char top[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(top, "/tmp/carrel-survey-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return system(mem_printf("rm -rf '%s'", top));
}

static struct survey_names list(void)
{
	struct survey_names names;
	struct host h = { .workspace.real = top };

	survey_list(&h, top, NULL, NULL, &names);
	assert_null(h.failed);
	return names;
}

/* Every name of the table, alone and in another case; most others are known to be absent. */
static void test_names_that_are_there(void **state)
{
	size_t absent = 0;

	(void)state;
	for (size_t i = 0; i < obeyed_n; i++) {
		const char *path = obeyed_all[i].path;
		char *name = mem_strndup(path, strcspn(path, "/"));
		struct survey_names names;

		if (strchr(name, '*'))
			continue;
		assert_int_equal(mkdir(path_join(top, name), 0700), 0);
		names = list();
		assert_false(names.any);
		assert_true(survey_may_have(&names, path));
		assert_true(survey_may_have(&names, name));
		absent += !survey_may_have(&names, "package.json");
		assert_int_equal(rmdir(path_join(top, name)), 0);
		for (char *c = name; *c; c++)
			*c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
		assert_int_equal(mkdir(path_join(top, name), 0700), 0);
		names = list();
		assert_true(survey_may_have(&names, path));
		assert_int_equal(rmdir(path_join(top, name)), 0);
	}
	assert_true(absent > 40);
}

/* U+017F, U+212A: letters that a directory which folds case takes for s and k. */
static void test_letters_that_fold_tell_nothing(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path_join(top,
				       ".v\xc5\xbf"
				       "code"),
				 0700),
		0);
	assert_true(list().any);
}

static void test_what_cannot_be_listed_tells_nothing(void **state)
{
	struct survey_names names;
	struct host h = { .workspace.real = top };

	(void)state;
	survey_list(&h, path_join(top, "gone"), NULL, NULL, &names);
	assert_true(names.any);
	survey_list(&h, "/proc/self", NULL, NULL,
		&names); /* it has names that it does not list */
	assert_true(names.any);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_names_that_are_there),
		TEST(test_letters_that_fold_tell_nothing),
		TEST(test_what_cannot_be_listed_tells_nothing),
	};

	alarm(100);
	return cmocka_run_group_tests_name("survey", tests, NULL, NULL);
}
