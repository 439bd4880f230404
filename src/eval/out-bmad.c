/*
 * eval/out-bmad.c - BMAD's execution-summary.json and triggers-result.json
 *
 * The keys are BMAD's; what carrel adds beside them is what BMAD cannot say: how an attempt
 * that gave no verdict ended. A query without a verdict has a null rate and a null pass, and
 * is in neither "passed" nor "failed".
 */
#include "eval/outputs.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"
#include "eval/conversation.h"
#include "eval/summary.h"

#include <math.h>
#include <string.h>

static void add_result(struct json *j, const struct attempt *a)
{
	json_open(j, NULL, '{');
	json_string(j, "eval_id", utf8_clean(a->id));
	json_string(j, "configuration", utf8_clean(a->configuration));
	json_count(j, "run", a->run);
	json_string(j, "status", attempt_outcome_name(a->outcome));
	json_string(j, "reason", utf8_clean(a->reason));
	json_real(j, "elapsed_s", a->seconds);
	json_real(j, "return_code", a->exit);
	json_string(j, "output_dir", utf8_clean(a->path));
	json_close(j, '}');
}

void bmad_execution(const struct run_dir *run, const struct summary *s, struct str *out)
{
	struct json j = { .out = out, .indent = true };
	unsigned int failures = 0, total = 0, executed = 0;

	(void)s;
	vec_each(a, &run->attempts) {
		if (a->kind != ATTEMPT_ARTIFACT)
			continue;
		total++;
		executed += a->outcome != OUTCOME_SKIPPED;
		failures += a->outcome == OUTCOME_ERROR || a->outcome == OUTCOME_LIMIT;
	}
	json_open(&j, NULL, '{');
	json_count(&j, "total", total);
	json_count(&j, "executed", executed);
	json_count(&j, "exec_failures", failures);
	json_open(&j, "results", '[');
	vec_each(a, &run->attempts)
		if (a->kind == ATTEMPT_ARTIFACT)
			add_result(&j, a);
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(out, '\n');
}

static void add_query(struct json *j, const struct run_dir *run, const struct summary_case *q)
{
	const struct stats_case *v = &q->v[0];

	json_open(j, NULL, '{');
	json_string(j, "query", utf8_clean(q->query ? q->query : q->id));
	json_bool(j, "should_trigger", q->should_trigger);
	json_real(j, "trigger_rate", v->n ? (double)v->passed / v->n : NAN);
	json_count(j, "triggers", v->passed);
	json_count(j, "runs", v->n);
	if (v->n)
		json_bool(j, "pass", summary_case_passes(run, q, ATTEMPT_TRIGGER));
	else
		json_raw(j, "pass", "null");
	json_count(j, "errors", q->lost[0]);
	json_close(j, '}');
}

void bmad_triggers(const struct run_dir *run, const struct summary *s, struct str *out)
{
	struct json j = { .out = out, .indent = true };
	const struct json_value *suite = json_member(run->json, "suite");
	const char *description = member_text(suite, "description");

	json_open(&j, NULL, '{');
	json_string(&j, "run_id", utf8_clean(run->id));
	json_string(&j, "completed_at", run->ended ? utf8_clean(run->ended) : NULL);
	json_string(&j, "skill_name", utf8_clean(run->skill));
	json_string(&j, "description", description ? utf8_clean(description) : "");
	json_string(&j, "isolation", "carrel");
	json_open(&j, "results", '[');
	vec_each(q, &s->queries)
		add_query(&j, run, q);
	json_close(&j, ']');
	json_open(&j, "summary", '{');
	json_count(&j, "total", s->queries.n);
	json_count(&j, "passed", s->queries_passed);
	json_count(&j, "failed", s->queries_failed);
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(out, '\n');
}
