/*
 * eval/out-atif.c - an attempt as an ATIF trajectory
 *
 * The Agent Trajectory Interchange Format of the Harbor project, version 1.4: an agent, its
 * steps, and the sums of the whole. Sums of each step are left out, because clients do not
 * report them truly: Claude Code repeats the first usage of a message in each block.
 */
#include "eval/outputs.h"
#include "base/json.h"
#include "base/str.h"
#include "eval/attempts.h"
#include "eval/conversation.h"

#include <math.h>

enum {
	TRANSCRIPT_MOST = 64 * 1024 * 1024,
	PROMPT_MOST = 1024 * 1024,
	TEXT_MOST = 1024 * 1024,
};

static void add_whole(struct json *j, const char *key, double value)
{
	if (isfinite(value) && fabs(value) < 1e15)
		json_number(j, key, (long long)value);
}

static double sum_of(double a, double b, double c)
{
	return (isfinite(a) ? a : 0) + (isfinite(b) ? b : 0) + (isfinite(c) ? c : 0);
}

static void add_metrics(struct json *j, const struct attempt *a, const conversation *list)
{
	const double *t = a->tokens;

	json_open(j, "final_metrics", '{');
	if (isfinite(t[TOKENS_INPUT]))
		add_whole(j, "total_prompt_tokens",
			sum_of(t[TOKENS_INPUT], t[TOKENS_CACHE_READ],
				t[TOKENS_CACHE_CREATION]));
	add_whole(j, "total_completion_tokens", t[TOKENS_OUTPUT]);
	add_whole(j, "total_cached_tokens", t[TOKENS_CACHE_READ]);
	if (isfinite(a->usd))
		json_real(j, "total_cost_usd", a->usd);
	json_count(j, "total_steps", list->n);
	json_close(j, '}');
}

static void add_agent(struct json *j, const struct run_dir *run)
{
	json_open(j, "agent", '{');
	json_string(j, "name", *run->harness ? utf8_clean(run->harness) : "unknown");
	json_string(j, "version", *run->version ? utf8_clean(run->version) : "unknown");
	if (*run->model)
		json_string(j, "model_name", utf8_clean(run->model));
	json_close(j, '}');
}

void atif_trajectory(const struct run_dir *run, const struct attempt *a, struct str *out)
{
	struct json j = { .out = out };
	size_t n = 0, size = 0;
	const char *prompt = run_dir_file(run, a->path, "prompt.txt", PROMPT_MOST, &n, &size);
	const char *bytes =
		run_dir_file(run, a->path, "transcript.jsonl", TRANSCRIPT_MOST, &n, &size);
	conversation list = { 0 };

	conversation_read(bytes ? bytes : "", bytes ? n : 0, prompt, &list);
	json_open(&j, NULL, '{');
	json_string(&j, "schema_version", "ATIF-v1.4");
	json_string(&j, "session_id", utf8_clean(mem_printf("%s/%s", run->id, a->path)));
	add_agent(&j, run);
	conversation_add_json(&j, "steps", &list, TEXT_MOST);
	add_metrics(&j, a, &list);
	json_open(&j, "extra", '{');
	json_string(&j, "case", utf8_clean(a->id));
	json_string(&j, "configuration", utf8_clean(a->configuration));
	json_count(&j, "run", a->run);
	json_string(&j, "outcome", attempt_outcome_name(a->outcome));
	json_string(&j, "verdict", attempt_fired_name(a->fired));
	json_string(&j, "reason", utf8_clean(a->reason));
	json_close(&j, '}');
	json_close(&j, '}');
	str_addc(out, '\n');
}
