/*
 * eval/out-benchmark.c - skill-creator's benchmark.json and benchmark.md
 *
 * Its viewer reads exact names and types: figures of a configuration are numbers, those of
 * "delta" are strings, "evals_run" is a list, and ids are all numbers or all strings. It knows
 * no error and no limit, and would show either as a pass rate of 0; so such attempts are not
 * among its runs, and "notes" names them.
 */
#include "eval/outputs.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "eval/conversation.h"
#include "eval/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METADATA_MOST = 1024 * 1024 };

struct tally {
	unsigned int n;
	double sum, squares, least, most;
};

/* pass rate, seconds, tokens: what "run_summary" has of each configuration. */
static const char *const figures[] = { "pass_rate", "time_seconds", "tokens" };
enum { FIGURES = 3 };

struct graded {
	unsigned int passed, total;
	double rate;
};

static void tally_add(struct tally *t, double x)
{
	if (!isfinite(x))
		return;
	t->least = t->n ? fmin(t->least, x) : x;
	t->most = t->n ? fmax(t->most, x) : x;
	t->n++;
	t->sum += x;
	t->squares += x * x;
}

static double tally_mean(const struct tally *t)
{
	return t->n ? t->sum / t->n : 0;
}

static double tally_deviation(const struct tally *t)
{
	double mean = tally_mean(t);

	return t->n > 1 ? sqrt(fmax(0, (t->squares - t->n * mean * mean) / (t->n - 1))) : 0;
}

static bool counts(const struct attempt *a)
{
	return a->kind == ATTEMPT_ARTIFACT && a->outcome <= OUTCOME_FAIL;
}

static struct graded graded_of(const struct attempt *a)
{
	const struct json_value *list = json_member(a->json, "expectations");
	struct graded g = { 0 };

	if (list && list->type == JSON_LIST)
		json_each(it, list) {
			const struct json_value *passed = json_member(it, "passed");

			g.total += passed && passed->type == JSON_BOOL;
			g.passed += passed && passed->type == JSON_BOOL && passed->boolean;
		}
	g.rate = g.total ? (double)g.passed / g.total : a->outcome == OUTCOME_PASS;
	return g;
}

/* All tokens that were paid for. */
static double tokens_of(const struct attempt *a)
{
	double sum = 0;

	for (int i = 0; i < TOKEN_KINDS; i++)
		sum += isfinite(a->tokens[i]) ? a->tokens[i] : 0;
	return sum;
}

static double calls_of(const struct attempt *a)
{
	const struct json_value *calls = json_member(a->json, "tool_calls");
	double sum = 0;

	if (calls && calls->type == JSON_OBJECT)
		json_each(it, calls)
			sum += it->type == JSON_NUMBER ? it->number : 0;
	return sum;
}

static bool is_integer(const char *id)
{
	size_t n = strlen(id);

	return n > 0 && n < 10 && strspn(id, "0123456789") == n && (id[0] != '0' || n == 1);
}

static bool all_integers(const struct summary *s)
{
	vec_each(c, &s->cases)
		if (!is_integer(c->id))
			return false;
	return true;
}

static void add_id(struct json *j, const char *key, const char *id, bool numbers)
{
	if (numbers)
		json_raw(j, key, id);
	else
		json_string(j, key, utf8_clean(id));
}

static const char *eval_name(const struct run_dir *run, const struct attempt *a)
{
	const char *dir = mem_strndup(a->path, strcspn(a->path, "/"));
	const struct json_value *v = NULL;
	json_errors errors = { 0 };
	size_t n, size;
	const char *bytes =
		run_dir_file(run, dir, "eval_metadata.json", METADATA_MOST, &n, &size);
	const char *name = bytes && json_read_ours(bytes, n, &v, &errors) == 0
		? member_text(v, "eval_name")
		: NULL;

	return name ? name : a->id;
}

void outputs_add_expectations(struct json *j, const struct attempt *a)
{
	const struct json_value *list = json_member(a->json, "expectations");

	json_open(j, "expectations", '[');
	if (list && list->type == JSON_LIST)
		json_each(it, list) {
			const char *text = member_text(it, "text");
			const char *evidence = member_text(it, "evidence");
			const struct json_value *passed = json_member(it, "passed");

			if (!passed || passed->type != JSON_BOOL)
				continue;
			json_open(j, NULL, '{');
			json_string(j, "text", utf8_clean(text ? text : ""));
			json_bool(j, "passed", passed->boolean);
			json_string(j, "evidence", utf8_clean(evidence ? evidence : ""));
			json_close(j, '}');
		}
	json_close(j, ']');
}

static void add_run(struct json *j, const struct run_dir *run, const struct attempt *a,
	bool numbers)
{
	struct graded g = graded_of(a);

	json_open(j, NULL, '{');
	add_id(j, "eval_id", a->id, numbers);
	json_string(j, "eval_name", utf8_clean(eval_name(run, a)));
	json_string(j, "configuration", utf8_clean(a->configuration));
	json_count(j, "run_number", a->run);
	json_open(j, "result", '{');
	json_real(j, "pass_rate", g.rate);
	json_count(j, "passed", g.passed);
	json_count(j, "failed", g.total - g.passed);
	json_count(j, "total", g.total);
	json_real(j, "time_seconds", a->seconds);
	json_real(j, "tokens", tokens_of(a));
	json_real(j, "tool_calls", calls_of(a));
	json_count(j, "errors", 0);
	json_close(j, '}');
	outputs_add_expectations(j, a);
	json_open(j, "notes", '[');
	json_close(j, ']');
	json_close(j, '}');
}

static void tally_all(const struct run_dir *run, const struct summary *s,
	struct tally (*t)[FIGURES])
{
	vec_each(a, &run->attempts) {
		size_t i = 0;

		while (i < s->configuration_count &&
			strcmp(s->configurations[i].name, a->configuration) != 0)
			i++;
		if (!counts(a) || i == s->configuration_count)
			continue;
		tally_add(&t[i][0], graded_of(a).rate);
		tally_add(&t[i][1], a->seconds);
		tally_add(&t[i][2], tokens_of(a));
	}
}

static void add_run_summary(struct json *j, const struct summary *s, struct tally (*t)[FIGURES])
{
	json_open(j, "run_summary", '{');
	for (size_t i = 0; i < s->configuration_count; i++) {
		json_open(j, utf8_clean(s->configurations[i].name), '{');
		for (int k = 0; k < FIGURES; k++) {
			json_open(j, figures[k], '{');
			json_real(j, "mean", tally_mean(&t[i][k]));
			json_real(j, "stddev", tally_deviation(&t[i][k]));
			json_real(j, "min", t[i][k].least);
			json_real(j, "max", t[i][k].most);
			json_close(j, '}');
		}
		json_close(j, '}');
	}
	if (s->configuration_count >= 2) {
		double d[FIGURES];

		for (int k = 0; k < FIGURES; k++)
			d[k] = tally_mean(&t[0][k]) - tally_mean(&t[1][k]);
		json_open(j, "delta", '{');
		json_string(j, figures[0], mem_printf("%+.2f", d[0]));
		json_string(j, figures[1], mem_printf("%+.1f", d[1]));
		json_string(j, figures[2], mem_printf("%+.0f", d[2]));
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void add_notes(struct json *j, const struct run_dir *run, const struct summary *s)
{
	struct str lines = { 0 };

	json_open(j, "notes", '[');
	summary_lines(run, s, &lines);
	for (char *line = strtok(lines.p, "\n"); line; line = strtok(NULL, "\n"))
		json_string(j, NULL, utf8_clean(line));
	vec_each(a, &run->attempts)
		if (a->kind == ATTEMPT_ARTIFACT && !counts(a))
			json_string(j, NULL,
				utf8_clean(mem_printf("%s %s run %u gave no verdict (%s): %s",
					a->id, a->configuration, a->run,
					attempt_outcome_name(a->outcome), a->reason)));
	json_close(j, ']');
}

static void add_metadata(struct json *j, const struct run_dir *run, const struct summary *s,
	bool numbers)
{
	const struct json_value *suite = json_member(run->json, "suite");
	const char *path = member_text(suite, "path");

	json_open(j, "metadata", '{');
	json_string(j, "skill_name", utf8_clean(run->skill));
	json_string(j, "skill_path", utf8_clean(path ? path : ""));
	json_string(j, "executor_model", utf8_clean(run->model));
	json_string(j, "analyzer_model", "");
	json_string(j, "timestamp", utf8_clean(run->started ? run->started : ""));
	json_open(j, "evals_run", '[');
	vec_each(c, &s->cases)
		add_id(j, NULL, c->id, numbers);
	json_close(j, ']');
	json_count(j, "runs_per_configuration", run->repeat);
	json_close(j, '}');
}

void benchmark_json(const struct run_dir *run, const struct summary *s, struct str *out)
{
	struct tally t[SUMMARY_CONFIGURATIONS][FIGURES] = { 0 };
	struct json j = { .out = out, .indent = true };
	bool numbers = all_integers(s);

	tally_all(run, s, t);
	json_open(&j, NULL, '{');
	add_metadata(&j, run, s, numbers);
	json_open(&j, "runs", '[');
	vec_each(a, &run->attempts)
		if (counts(a))
			add_run(&j, run, a, numbers);
	json_close(&j, ']');
	add_run_summary(&j, s, t);
	add_notes(&j, run, s);
	json_close(&j, '}');
	str_addc(out, '\n');
}

/* ---- Markdown ---- */

void markdown_add(struct str *out, const char *text)
{
	for (text = utf8_clean(text); *text; text++)
		if (strchr("\n\r\t", *text))
			str_addc(out, ' ');
		else if ((unsigned char)*text < ' ' || *text == 0x7f)
			str_add(out, "\xef\xbf\xbd");
		else if (strchr("\\`*_{}[]()<>#+!|&~$", *text))
			str_addf(out, "\\%c", *text);
		else
			str_addc(out, *text);
}

static void add_rate_row(struct str *out, const char *what, const struct stats_rate *r,
	unsigned int min_n)
{
	str_add(out, "| ");
	markdown_add(out, what);
	if (!r->enough && r->n >= min_n)
		str_addf(out, " | no rate: a positive control did not fire | |");
	else if (!r->enough)
		str_addf(out, " | %u of %u; %u are needed | |", r->passed, r->n, min_n);
	else
		str_addf(out, " | %.0f %% | %.0f to %.0f %% |", 100 * r->rate,
			100 * r->interval.low, 100 * r->interval.high);
	str_addf(out, " %u | %u |\n", r->cases, r->n);
}

static void add_case_rows(struct str *out, const struct summary *s)
{
	str_add(out, "\n| case |");
	for (size_t i = 0; i < s->configuration_count; i++) {
		str_addc(out, ' ');
		markdown_add(out, s->configurations[i].name);
		str_add(out, " |");
	}
	str_add(out, "\n|---|");
	for (size_t i = 0; i < s->configuration_count; i++)
		str_add(out, "---|");
	str_addc(out, '\n');
	vec_each(c, &s->cases) {
		str_add(out, "| ");
		markdown_add(out, c->id);
		str_add(out, " |");
		for (size_t i = 0; i < s->configuration_count; i++)
			str_addf(out,
				c->lost[i] ? " %u of %u (+%u without verdict) |"
					   : " %u of %u |",
				c->v[i].passed, c->v[i].n, c->lost[i]);
		str_addc(out, '\n');
	}
}

static void add_query_rows(struct str *out, const struct run_dir *run, const struct summary *s)
{
	str_add(out, "\n| query | should trigger | fired | verdict |\n|---|---|---|---|\n");
	vec_each(q, &s->queries) {
		str_add(out, "| ");
		markdown_add(out, q->query ? q->query : q->id);
		str_addf(out, " | %s | %u of %u | %s |\n", q->should_trigger ? "yes" : "no",
			q->v[0].passed, q->v[0].n,
			!q->v[0].n                                             ? "none"
				: summary_case_passes(run, q, ATTEMPT_TRIGGER) ? "pass"
									       : "fail");
	}
}

void benchmark_markdown(const struct run_dir *run, const struct summary *s, struct str *out)
{
	struct str lines = { 0 };

	str_add(out, "# ");
	markdown_add(out, run->skill);
	str_addf(out, ": %s\n\n", summary_verdict_name(s->verdict));
	markdown_add(out,
		mem_printf("%s. Run %s, %s %s, model %s.", s->why, run->id, run->harness,
			run->version, run->model));
	summary_lines(run, s, &lines);
	str_add(out, "\n\n");
	for (char *line = strtok(lines.p, "\n"); line; line = strtok(NULL, "\n"))
		str_addf(out, "    %s\n", utf8_clean(line));
	str_add(out,
		"\n| | rate | 95 % interval | cases | verdicts |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < s->configuration_count; i++)
		add_rate_row(out, s->configurations[i].name, &s->configurations[i].rate,
			run->min_n);
	if (s->queries.n) {
		add_rate_row(out, "recall", &s->recall, run->min_n);
		add_rate_row(out, "specificity", &s->specificity, run->min_n);
	}
	if (s->cases.n)
		add_case_rows(out, s);
	if (s->queries.n)
		add_query_rows(out, run, s);
	str_addf(out, "\n%.2f dollars, %.0f seconds of attempts.\n", s->usd, s->seconds);
}
