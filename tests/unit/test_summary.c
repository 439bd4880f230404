/*
 * tests/unit/test_summary.c - run directories, made here, read back and summed up
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/path.h"
#include "base/str.h"
#include "eval/summary.h"

static const char *top;

static void make_dirs(const char *path)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return;
	make_dirs(path_parent(path));
	assert_int_equal(mkdir(path, 0700), 0);
}

static void put(const char *name, const char *text)
{
	const char *path = path_join(top, name);
	FILE *f;

	make_dirs(path_parent(path));
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	char *dir = mem_strdup("/tmp/carrel-summary-XXXXXX");

	top = mkdtemp(dir);
	return top ? 0 : -1;
}

static int teardown(void **state)
{
	return system(mem_printf("rm -rf %s", top));
}

#define RUN(extra)                                                                          \
	"{\"version\":1,\"id\":\"r1\",\"suite\":{\"skill\":\"review\"},\"agent\":{"         \
	"\"harness\":"                                                                      \
	"\"claude\",\"model\":\"sonnet\"},\"options\":{\"repeat\":3,\"threshold\":0.5,"     \
	"\"min_n\":2},\"configurations\":[\"with_skill\",\"without_skill\"],\"planned\":9," \
	"\"kept\":[1.50,null,true,\"\\udcff\"]" extra "}"

static void artifact(const char *id, const char *configuration, int run, const char *outcome)
{
	put(mem_printf("eval-%s/%s/run-%d/attempt.json", id, configuration, run),
		mem_printf("{\"version\":1,\"kind\":\"artifact\",\"case\":\"%s\","
			   "\"configuration\":"
			   "\"%s\",\"run\":%d,\"outcome\":\"%s\",\"usd\":0.5,\"seconds\":2,"
			   "\"tokens\":{\"input\":10,\"output\":5},\"expectations\":[{\"text\":"
			   "\"a\","
			   "\"passed\":true},{\"text\":\"b\",\"passed\":null}]}",
			id, configuration, run, outcome));
}

static void trigger(int query, int run, bool should, const char *outcome, const char *verdict)
{
	put(mem_printf("queries/q%03d-r%d/attempt.json", query, run),
		mem_printf("{\"version\":1,\"kind\":\"trigger\",\"case\":\"q%03d\",\"query\":"
			   "\"do\","
			   "\"should_trigger\":%s,\"run\":%d,\"outcome\":\"%s\",\"verdict\":\"%"
			   "s\"}",
			query, should ? "true" : "false", run, outcome, verdict));
}

static void control(int number, const char *verdict)
{
	put(mem_printf("controls/c%d/attempt.json", number),
		mem_printf("{\"kind\":\"control\",\"outcome\":\"%s\",\"verdict\":\"%s\"}",
			strcmp(verdict, "fired") == 0 ? "pass" : "fail", verdict));
}

static const char *read_run(struct run_dir *run, struct summary *s)
{
	struct fault f = { 0 };
	struct str text = { 0 };

	if (run_dir_read(top, run, &f) < 0)
		fail_msg("%s", f.text);
	summary_make(run, s);
	summary_lines(run, s, &text);
	return text.p;
}

static void test_cases(void **state)
{
	struct summary s;
	struct run_dir run;
	const char *lines;

	put("run.json", RUN(""));
	for (int i = 1; i <= 3; i++) {
		artifact("A1", "with_skill", i, "pass");
		artifact("A1", "without_skill", i, i == 1 ? "pass" : "fail");
		artifact("A2", "with_skill", i, i == 3 ? "error" : "pass");
		artifact("A2", "without_skill", i, i == 3 ? "limit" : "fail");
	}
	lines = read_run(&run, &s);
	assert_int_equal(s.attempts, 12);
	assert_int_equal(s.configurations[0].rate.n, 5);
	assert_int_equal(s.configurations[0].rate.passed, 5);
	assert_int_equal(s.configurations[1].rate.n, 5);
	assert_int_equal(s.configurations[1].rate.passed, 1);
	assert_int_equal(s.configurations[0].outcomes[OUTCOME_ERROR], 1);
	assert_int_equal(s.configurations[1].outcomes[OUTCOME_LIMIT], 1);
	assert_int_equal(s.configurations[0].expectations, 5);
	assert_int_equal(s.configurations[0].met, 5);
	assert_int_equal(s.configurations[0].k, 2);
	assert_true(s.compared && s.difference.cases == 2);
	assert_true(fabs(s.difference.difference - (2.0 / 3 + 1) / 2) < 1e-12);
	assert_true(fabs(s.usd - 6) < 1e-9 && fabs(s.seconds - 24) < 1e-9);
	assert_int_equal(s.verdict, SUMMARY_PASS);
	assert_non_null(strstr(lines, "review    with 100 % ["));
	assert_non_null(strstr(lines, "   without 20 % ["));
	assert_non_null(strstr(lines, "   difference +83 ["));
	assert_non_null(strstr(lines, ", 2 cases; 1 could not run, 1 stopped at a limit\n"));
}

/* Ten cases of one attempt: natural order, no repeat, a failure. */
static void test_order_and_failure(void **state)
{
	struct summary s;
	struct run_dir run;

	put("run.json", RUN(""));
	for (int i = 1; i <= 10; i++)
		artifact(mem_printf("c%d", i), "with_skill", 1, i == 4 ? "fail" : "pass");
	artifact("c10", "with_skill", 2, "ungraded");
	read_run(&run, &s);
	assert_string_equal(run.attempts.v[1].path, "eval-c2/with_skill/run-1");
	assert_string_equal(run.attempts.v[10].path, "eval-c10/with_skill/run-2");
	assert_int_equal(s.verdict, SUMMARY_FAIL);
	assert_non_null(strstr(s.why, "1 of 10 cases"));
}

static void test_triggers_leave_errors_out(void **state)
{
	struct summary s;
	struct run_dir run;
	const char *lines;

	put("run.json", RUN(""));
	control(1, "fired");
	for (int i = 1; i <= 3; i++) {
		trigger(1, i, true, "pass", "fired");
		trigger(2, i, true, i == 1 ? "pass" : "fail", i == 1 ? "fired" : "other_skill");
		trigger(3, i, false, "pass", "not_fired");
		trigger(4, i, false, i == 2 ? "error" : "pass",
			i == 2 ? "error" : "other_skill");
	}
	trigger(5, 1, false, "pass", "error"); /* contradicts itself: it is an error */
	lines = read_run(&run, &s);
	assert_int_equal(s.recall.n, 6);
	assert_int_equal(s.recall.passed, 4);
	assert_int_equal(s.specificity.n, 5);
	assert_int_equal(s.specificity.passed, 5);
	assert_int_equal(s.matrix[1][FIRED_OTHER], 2);
	assert_int_equal(s.matrix[0][FIRED_OTHER], 2);
	assert_int_equal(s.matrix[0][FIRED_ERROR], 2);
	assert_int_equal(s.queries_passed, 3);
	assert_int_equal(s.queries_failed, 1);
	assert_int_equal(s.verdict, SUMMARY_FAIL);
	assert_non_null(strstr(lines, "triggers  recall 67 % ["));
	assert_non_null(strstr(lines, ", specificity 100 % ["));
	assert_non_null(strstr(lines, "]; 2 could not run\n"));
}

/* A harness that is dead scores nothing: neither a negative nor a case passes. */
static void test_a_dead_harness_has_no_rate(void **state)
{
	struct summary s;
	struct run_dir run;
	const char *lines;

	put("run.json", RUN(""));
	control(1, "not_fired");
	for (int i = 1; i <= 3; i++) {
		trigger(1, i, true, "error", "error");
		trigger(2, i, false, "error", "error");
		artifact("A1", "with_skill", i, "error");
	}
	lines = read_run(&run, &s);
	assert_int_equal(s.verdict, SUMMARY_UNDECIDED);
	assert_true(isnan(s.specificity.rate) && isnan(s.configurations[0].rate.rate));
	assert_non_null(strstr(lines, "no rate: 1 of 1 positive controls did not fire"));
	assert_non_null(strstr(lines, "with no verdict"));
	assert_null(strstr(lines, " 0 %"));
}

static void test_too_few(void **state)
{
	struct summary s;
	struct run_dir run;

	put("run.json", RUN(""));
	artifact("A1", "with_skill", 1, "pass");
	assert_non_null(strstr(read_run(&run, &s),
		"with 1 of 1, too few for a rate (at least 2)"));
	assert_int_equal(s.verdict, SUMMARY_UNDECIDED);
}

/* The summary replaces an older one, and every other key stays. */
static void test_written(void **state)
{
	struct summary s;
	struct run_dir run, again;
	struct fault f = { 0 };
	const struct json_value *kept;

	put("run.json", RUN(",\"summary\":{\"old\":1}"));
	artifact("A1", "with_skill", 1, "pass");
	artifact("A1", "without_skill", 1, "fail");
	read_run(&run, &s);
	assert_int_equal(summary_write(&run, &s, &f), 0);
	assert_int_equal(run_dir_read(top, &again, &f), 0);
	kept = json_member(json_member(again.json, "summary"), "verdict");
	assert_string_equal(kept->text, "undecided");
	assert_null(json_member(json_member(again.json, "summary"), "old"));
	kept = json_member(again.json, "kept")->first;
	assert_string_equal(kept->text, "1.50");
	assert_int_equal(kept->next->type, JSON_NULL);
	assert_string_equal(kept->next->next->next->text, "\xff");
}

/* Links lead nowhere, files that are none are errors, and wrong types are missing values. */
static void test_hostile(void **state)
{
	struct summary s;
	struct run_dir run;

	put("run.json", RUN(""));
	put("secret", "{\"outcome\":\"pass\",\"case\":\"stolen\"}");
	artifact("A1", "with_skill", 1, "pass");
	put("eval-A2/with_skill/run-1/x", "");
	assert_int_equal(symlink("../../../secret",
				 path_join(top, "eval-A2/with_skill/run-1/attempt.json")),
		0);
	put("eval-A3/with_skill/run-1/x", "");
	assert_int_equal(mkfifo(path_join(top, "eval-A3/with_skill/run-1/attempt.json"), 0600),
		0);
	put("eval-A4/with_skill/run-1/attempt.json", "{\"outcome\":[\"pass\"],\"usd\":\"1\"}");
	put("eval-A5/with_skill/run-1/attempt.json", "not JSON");
	assert_int_equal(symlink("eval-A1", path_join(top, "eval-A6")), 0);
	put("eval-A7/with_skill/run-x/attempt.json", "{}");
	put("queries/q001-r1/attempt.json",
		"{\"outcome\":\"pass\",\"should_trigger\":\"yes\"}");
	read_run(&run, &s);
	assert_int_equal(run.attempts.n, 7);
	assert_int_equal(s.outcomes[OUTCOME_PASS], 1);
	assert_int_equal(s.outcomes[OUTCOME_ERROR], 6);
	assert_string_equal(run.attempts.v[1].id, "A2");
	assert_true(isnan(run.attempts.v[3].usd));
}

static void test_no_run(void **state)
{
	struct run_dir run;
	struct fault f = { 0 };

	assert_true(run_dir_read(top, &run, &f) < 0);
	assert_non_null(strstr(f.text, "is no run"));
	assert_true(run_dir_read(path_join(top, "gone"), &run, &f) < 0);
	assert_int_equal(f.err, ENOENT);
	put("run.json", "[");
	assert_true(run_dir_read(top, &run, &f) < 0);
	assert_non_null(strstr(f.text, "run.json: line 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cases, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_and_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_triggers_leave_errors_out, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_dead_harness_has_no_rate, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_too_few, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_run, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
