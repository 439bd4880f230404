/*
 * eval/out-inspect.c - a run as a log of Inspect
 *
 * Version 2 of the log of the UK AI Security Institute's Inspect, in its JSON form: each
 * attempt is a sample, its repeat the epoch. An attempt that gave no verdict has no score;
 * its "error" or "limit" says why. The order of the top-level keys is that of Inspect, whose
 * readers take the head of a log without its samples.
 */
#include "eval/outputs.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"
#include "eval/conversation.h"
#include "eval/summary.h"

#include <math.h>
#include <string.h>

enum {
	TRANSCRIPT_MOST = 64 * 1024 * 1024,
	PROMPT_MOST = 1024 * 1024,
};

static const char *const scorer = "carrel";

static void empty(struct json *j, const char *key, char open)
{
	json_open(j, key, open);
	json_close(j, open == '{' ? '}' : ']');
}

static double or_zero(double x)
{
	return isfinite(x) && x < 1e15 ? x : 0;
}

static const char *model_of(const struct run_dir *run)
{
	const char *name = *run->model ? run->model : *run->harness ? run->harness : "unknown";

	return utf8_clean(name);
}

static void add_usage(struct json *j, const char *key, const char *model, const double *t)
{
	double in = or_zero(t[TOKENS_INPUT]), out = or_zero(t[TOKENS_OUTPUT]);
	double read = or_zero(t[TOKENS_CACHE_READ]), made = or_zero(t[TOKENS_CACHE_CREATION]);

	json_open(j, key, '{');
	json_open(j, model, '{');
	json_number(j, "input_tokens", (long long)in);
	json_number(j, "output_tokens", (long long)out);
	json_number(j, "total_tokens", (long long)(in + out + read + made));
	json_number(j, "input_tokens_cache_read", (long long)read);
	json_number(j, "input_tokens_cache_write", (long long)made);
	json_close(j, '}');
	json_close(j, '}');
}

/* ---- messages ---- */

static void add_calls(struct json *j, const struct said *step)
{
	if (!step->calls.n)
		return;
	json_open(j, "tool_calls", '[');
	vec_each(c, &step->calls) {
		json_open(j, NULL, '{');
		json_string(j, "id", c->id);
		json_string(j, "function", c->name);
		if (c->arguments)
			json_copy(j, "arguments", c->arguments);
		else
			empty(j, "arguments", '{');
		json_string(j, "type", "function");
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_results(struct json *j, const struct said *step)
{
	vec_each(c, &step->calls) {
		if (!c->result)
			continue;
		json_open(j, NULL, '{');
		json_string(j, "role", "tool");
		json_string(j, "content", c->result);
		json_string(j, "tool_call_id", c->id);
		json_string(j, "function", c->name);
		json_close(j, '}');
	}
}

static const char *add_messages(struct json *j, const conversation *list)
{
	static const char *const roles[] = { "system", "user", "assistant" };
	const char *last = "";

	json_open(j, "messages", '[');
	vec_each(step, list) {
		json_open(j, NULL, '{');
		json_string(j, "role", roles[step->source]);
		json_string(j, "content", step->message);
		if (step->source == STEP_AGENT) {
			add_calls(j, step);
			last = *step->message ? step->message : last;
		}
		json_close(j, '}');
		add_results(j, step);
	}
	json_close(j, ']');
	return last;
}

static void add_output(struct json *j, const struct run_dir *run, const char *last)
{
	json_open(j, "output", '{');
	json_string(j, "model", model_of(run));
	json_open(j, "choices", '[');
	json_open(j, NULL, '{');
	json_open(j, "message", '{');
	json_string(j, "role", "assistant");
	json_string(j, "content", last);
	json_close(j, '}');
	json_string(j, "stop_reason", "stop");
	json_close(j, '}');
	json_close(j, ']');
	json_close(j, '}');
}

/* ---- samples ---- */

static void add_score(struct json *j, const struct attempt *a)
{
	json_open(j, "scores", '{');
	if (a->outcome <= OUTCOME_FAIL) {
		json_open(j, scorer, '{');
		json_string(j, "value", a->outcome == OUTCOME_PASS ? "C" : "I");
		json_string(j, "answer", attempt_fired_name(a->fired));
		json_string(j, "explanation", utf8_clean(a->reason));
		json_open(j, "metadata", '{');
		outputs_add_expectations(j, a);
		json_close(j, '}');
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void add_why_none(struct json *j, const struct attempt *a)
{
	const char *reason = utf8_clean(*a->reason ? a->reason : "no reason was recorded");

	if (a->outcome == OUTCOME_ERROR) {
		json_open(j, "error", '{');
		json_string(j, "message", reason);
		json_string(j, "traceback", reason);
		json_string(j, "traceback_ansi", reason);
		json_close(j, '}');
	} else if (a->outcome == OUTCOME_LIMIT) {
		json_open(j, "limit", '{');
		json_string(j, "type", "custom");
		json_real(j, "limit", or_zero(a->seconds));
		json_close(j, '}');
	}
}

static void add_metadata(struct json *j, const struct attempt *a)
{
	json_open(j, "metadata", '{');
	json_string(j, "case", utf8_clean(a->id));
	json_string(j, "configuration", utf8_clean(a->configuration));
	json_string(j, "outcome", attempt_outcome_name(a->outcome));
	json_string(j, "reason", utf8_clean(a->reason));
	json_string(j, "directory", utf8_clean(a->path));
	if (isfinite(a->usd))
		json_real(j, "usd", a->usd);
	json_close(j, '}');
}

static void add_target(struct json *j, const struct attempt *a)
{
	if (a->kind == ATTEMPT_TRIGGER) {
		json_string(j, "target", a->should_trigger ? "fired" : "not_fired");
		return;
	}
	json_open(j, "target", '[');
	for (const struct json_value *list = json_member(a->json, "expectations"),
				     *it = list && list->type == JSON_LIST ? list->first : NULL;
		it; it = it->next)
		if (member_text(it, "text"))
			json_string(j, NULL, utf8_clean(member_text(it, "text")));
	json_close(j, ']');
}

static void add_sample(struct json *j, const struct run_dir *run, const struct attempt *a)
{
	size_t n = 0, size = 0;
	const char *prompt = run_dir_file(run, a->path, "prompt.txt", PROMPT_MOST, &n, &size);
	const char *bytes =
		run_dir_file(run, a->path, "transcript.jsonl", TRANSCRIPT_MOST, &n, &size);
	conversation list = { 0 };
	const char *input = prompt ? prompt : a->query ? a->query : "";

	conversation_read(bytes ? bytes : "", bytes ? n : 0, prompt, &list);
	json_open(j, NULL, '{');
	json_string(j, "id",
		utf8_clean(*a->configuration ? mem_printf("%s/%s", a->id, a->configuration)
					     : a->id));
	json_count(j, "epoch", a->run);
	json_string(j, "input", utf8_clean(input));
	add_target(j, a);
	add_output(j, run, add_messages(j, &list));
	add_score(j, a);
	add_metadata(j, a);
	empty(j, "store", '{');
	empty(j, "events", '[');
	add_usage(j, "model_usage", model_of(run), a->tokens);
	if (a->started)
		json_string(j, "started_at", utf8_clean(a->started));
	if (a->ended)
		json_string(j, "completed_at", utf8_clean(a->ended));
	if (isfinite(a->seconds))
		json_real(j, "total_time", a->seconds);
	json_string(j, "uuid", utf8_clean(mem_printf("%s/%s", run->id, a->path)));
	add_why_none(j, a);
	empty(j, "attachments", '{');
	json_close(j, '}');
}

/* ---- the head ---- */

static void add_ids(struct json *j, const struct summary *s)
{
	json_open(j, "sample_ids", '[');
	vec_each(c, &s->cases)
		for (size_t i = 0; i < s->configuration_count; i++)
			json_string(j, NULL,
				utf8_clean(mem_printf("%s/%s", c->id,
					s->configurations[i].name)));
	vec_each(q, &s->queries)
		json_string(j, NULL, utf8_clean(q->id));
	json_close(j, ']');
}

static void add_eval(struct json *j, const struct run_dir *run, const struct summary *s)
{
	const char *path = member_text(json_member(run->json, "suite"), "path");
	const char *id = utf8_clean(run->id);

	json_open(j, "eval", '{');
	json_string(j, "eval_id", id);
	json_string(j, "run_id", id);
	json_string(j, "created",
		utf8_clean(run->started ? run->started : "1970-01-01T00:00:00Z"));
	json_string(j, "task", utf8_clean(run->skill));
	json_string(j, "task_id", id);
	json_number(j, "task_version", 0);
	json_string(j, "task_file", path ? utf8_clean(path) : NULL);
	empty(j, "task_attribs", '{');
	empty(j, "task_args", '{');
	json_string(j, "solver", utf8_clean(*run->harness ? run->harness : "unknown"));
	json_open(j, "dataset", '{');
	json_string(j, "name", utf8_clean(run->skill));
	json_string(j, "location", path ? utf8_clean(path) : NULL);
	json_count(j, "samples", s->cases.n * s->configuration_count + s->queries.n);
	add_ids(j, s);
	json_bool(j, "shuffled", false);
	json_close(j, '}');
	json_string(j, "model", model_of(run));
	empty(j, "model_args", '{');
	json_open(j, "config", '{');
	json_count(j, "epochs", run->repeat);
	json_close(j, '}');
	json_open(j, "packages", '{');
	json_string(j, utf8_clean(*run->harness ? run->harness : "client"),
		utf8_clean(run->version));
	json_close(j, '}');
	json_close(j, '}');
}

static void add_metric(struct json *j, const char *name, double value)
{
	json_open(j, name, '{');
	json_string(j, "name", name);
	json_real(j, "value", value);
	empty(j, "params", '{');
	json_close(j, '}');
}

static void add_rate(struct json *j, const char *name, const struct stats_rate *r)
{
	if (!r->n)
		return;
	json_open(j, NULL, '{');
	json_string(j, "name", utf8_clean(name));
	json_string(j, "scorer", scorer);
	json_count(j, "scored_samples", r->n);
	empty(j, "params", '{');
	json_open(j, "metrics", '{');
	add_metric(j, "accuracy", r->rate);
	add_metric(j, "interval_low", r->interval.low);
	add_metric(j, "interval_high", r->interval.high);
	json_close(j, '}');
	json_close(j, '}');
}

static void add_results_head(struct json *j, const struct summary *s)
{
	unsigned int done = s->outcomes[OUTCOME_PASS] + s->outcomes[OUTCOME_FAIL] +
		s->outcomes[OUTCOME_UNGRADED];

	json_open(j, "results", '{');
	json_count(j, "total_samples", s->attempts);
	json_count(j, "completed_samples", done);
	json_open(j, "scores", '[');
	for (size_t i = 0; i < s->configuration_count; i++)
		add_rate(j, s->configurations[i].name, &s->configurations[i].rate);
	if (s->controls_fired == s->controls) {
		add_rate(j, "recall", &s->recall);
		add_rate(j, "specificity", &s->specificity);
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void add_plan(struct json *j, const struct run_dir *run)
{
	json_open(j, "plan", '{');
	json_string(j, "name", "plan");
	json_open(j, "steps", '[');
	json_open(j, NULL, '{');
	json_string(j, "solver", utf8_clean(*run->harness ? run->harness : "unknown"));
	empty(j, "params", '{');
	json_close(j, '}');
	json_close(j, ']');
	empty(j, "config", '{');
	json_close(j, '}');
}

static int flush(int fd, struct json *j, struct fault *f)
{
	int rc = fd_write_all(fd, j->out->p, j->out->len);

	return rc < 0 ? fault_set(f, -rc, "write the log") : 0;
}

static int write_samples(const struct run_dir *run, struct json *j, int fd, struct fault *f)
{
	int rc = 0;

	vec_each(a, &run->attempts) {
		void *mark = mem_mark();
		struct str piece = { 0 };

		if (a->kind == ATTEMPT_CONTROL)
			continue;
		j->out = &piece;
		add_sample(j, run, a);
		rc = flush(fd, j, f);
		mem_reset(mark);
		if (rc < 0)
			break;
	}
	return rc;
}

int inspect_write(const struct run_dir *run, const struct summary *s, int fd, struct fault *f)
{
	struct str head = { 0 }, tail = { 0 };
	struct json j = { .out = &head };
	int rc;

	json_open(&j, NULL, '{');
	json_number(&j, "version", 2);
	json_string(&j, "status", run->ended ? "success" : "cancelled");
	add_eval(&j, run, s);
	add_plan(&j, run);
	add_results_head(&j, s);
	json_open(&j, "stats", '{');
	json_string(&j, "started_at", utf8_clean(run->started ? run->started : ""));
	json_string(&j, "completed_at", utf8_clean(run->ended ? run->ended : ""));
	add_usage(&j, "model_usage", model_of(run), s->tokens);
	json_close(&j, '}');
	json_open(&j, "samples", '[');
	rc = flush(fd, &j, f);
	if (rc == 0)
		rc = write_samples(run, &j, fd, f);
	j.out = &tail;
	json_close(&j, ']');
	json_close(&j, '}');
	str_addc(&tail, '\n');
	return rc < 0 ? rc : flush(fd, &j, f);
}
