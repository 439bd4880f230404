/*
 * tests/unit/test_plan_shown.c - the hash of a plan, and what a person sees of it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "base/fault.h"
#include "box/engine.h"
#include "manifest/keys.h"
#include "plan/plan.h"
#include "host.h"

static const char *const command[] = { "make", "test", NULL };

static struct plan resolve(const struct request *r, struct host *h)
{
	struct fault f = { 0 };
	struct plan p = { 0 };

	if (!h->mounts)
		host_fill_mounts(h, r);
	if (plan_resolve(r, h, &p, &f) != 0)
		fail_msg("refused: %s", f.text);
	return p;
}

static struct plan resolve_default(struct host *h)
{
	return resolve(&(struct request){ .argv = command }, h);
}

/* ---- what is shown ---- */

static void test_hash_is_stable(void **state)
{
	struct host one = host_make(), two = host_make();
	struct plan p = resolve_default(&one), q = resolve_default(&two);

	assert_int_equal(strlen(plan_hash(&p)), 64);
	assert_string_equal(plan_hash(&p), plan_hash(&p));
	assert_string_equal(plan_hash(&p), plan_hash(&q));
}

static void test_hash_without_name_and_values(void **state)
{
	struct host h = host_make();
	struct request a = { .argv = command }, b = { .argv = command, .name = "other" };
	struct plan p, q;

	ADD_ENV(&a, "X", "1");
	ADD_ENV(&b, "X", "2");
	p = resolve(&a, &h);
	q = resolve(&b, &h);
	assert_string_equal(plan_hash(&p), plan_hash(&q));
}

static void test_hash_of_everything_else(void **state)
{
	static const char *const other[] = { "make", "tes", "t", NULL };
	struct request rows[7] = { 0 };
	struct host h = host_make();
	struct plan p = resolve_default(&h);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i].argv = command;
	rows[0].argv = other;
	rows[1].network = NETWORK_HOST;
	rows[2].nest = true;
	rows[3].limits.time = 1;
	ADD_ENV(&rows[4], "X", "1");
	ADD_MOUNT(&rows[5], .source = "/data");
	ADD_MOUNT(&rows[6], .source = "/data", .rw = true);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct plan q;

		h.mounts = NULL;
		q = resolve(&rows[i], &h);
		assert_string_not_equal(plan_hash(&p), plan_hash(&q));
		p = q;
	}
}

static void test_no_value_is_shown(void **state)
{
	struct host h = host_make();
	struct request r = { .argv = command };
	struct str text = { 0 }, json = { 0 };
	struct plan p;

	ADD_ENV(&r, "SECRET_TOKEN", NULL);
	ADD_ENV(&r, "OTHER", "hunter2-too");
	p = resolve(&r, &h);
	plan_print(&p, false, &text);
	plan_json(&p, &json);
	assert_non_null(strstr(text.p, "SECRET_TOKEN"));
	assert_non_null(strstr(json.p, "SECRET_TOKEN"));
	assert_null(strstr(text.p, "hunter2"));
	assert_null(strstr(json.p, "hunter2"));
	assert_null(strchr(text.p, '\033'));
	text = (struct str){ 0 };
	plan_print(&p, true, &text);
	assert_non_null(strchr(text.p, '\033'));
}

/* A project's name cannot drive the terminal of who looks at its plan. */
static void test_hostile_names_are_shown_harmless(void **state)
{
	static const char *const argv[] = { "sh", "-c", "\033]0;x\a\n", NULL };
	struct host h = host_make();
	struct request r = { .argv = argv };
	struct str text = { 0 };
	struct plan p;

	h.workspace = host_dir("/srv/\033[2J\nbox  evil\xff");
	ADD_RULE(&h, RULE_HIDE, "x", host_file("/srv/\033[2J\nbox  evil\xff/\r.env"));
	ADD_MOUNT(&r, .source = "/m\x9b\n", .target = "/n\x7f");
	p = resolve(&r, &h);
	plan_print(&p, false, &text);
	for (const char *s = text.p; *s; s++)
		assert_true(*s == '\n' || ((unsigned char)*s >= 0x20 && *s != 0x7f));
	assert_null(strstr(text.p, "\nbox  evil"));
	assert_non_null(strstr(text.p, "evil\\xff"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_is_stable),
		cmocka_unit_test(test_hash_without_name_and_values),
		cmocka_unit_test(test_hash_of_everything_else),
		cmocka_unit_test(test_no_value_is_shown),
		cmocka_unit_test(test_hostile_names_are_shown_harmless),
	};

	return cmocka_run_group_tests_name("plan_shown", tests, NULL, NULL);
}
