/*
 * eval/summary-text.c - a summary as JSON and as the closing lines of a run
 */
#include "eval/summary.h"
#include "base/fault.h"
#include "base/json-read.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum { LABEL = 10 };

const char *summary_short_name(const char *configuration)
{
	if (strcmp(configuration, "with_skill") == 0)
		return "with";
	return strcmp(configuration, "without_skill") == 0 ? "without" : configuration;
}

const char *summary_verdict_name(enum summary_verdict verdict)
{
	static const char *const names[] = { "pass", "fail", "undecided" };

	return names[verdict];
}

/* ---- JSON ---- */

static void add_range(struct json *j, struct stats_range r)
{
	json_real(j, "low", r.low);
	json_real(j, "high", r.high);
}

static void add_rate_members(struct json *j, const struct stats_rate *r)
{
	json_count(j, "cases", r->cases);
	json_count(j, "n", r->n);
	json_count(j, "passed", r->passed);
	json_real(j, "rate", r->rate);
	add_range(j, r->interval);
	json_real(j, "effective_n", r->effective);
	json_bool(j, "enough", r->enough);
}

static void add_rate(struct json *j, const char *key, const struct stats_rate *r)
{
	json_open(j, key, '{');
	add_rate_members(j, r);
	json_close(j, '}');
}

static void add_outcomes(struct json *j, const unsigned int *counts)
{
	for (int i = 0; i < OUTCOMES; i++)
		json_count(j, attempt_outcome_name((enum attempt_outcome)i), counts[i]);
}

static void add_tokens(struct json *j, const double *tokens)
{
	json_open(j, "tokens", '{');
	json_real(j, "input", tokens[TOKENS_INPUT]);
	json_real(j, "output", tokens[TOKENS_OUTPUT]);
	json_real(j, "cache_read", tokens[TOKENS_CACHE_READ]);
	json_real(j, "cache_creation", tokens[TOKENS_CACHE_CREATION]);
	json_close(j, '}');
}

static void add_by_k(struct json *j, const char *key, const double *v, unsigned int k)
{
	json_open(j, key, '{');
	for (unsigned int i = 0; i < k; i++)
		json_real(j, mem_printf("%u", i + 1), v[i]);
	json_close(j, '}');
}

static void add_configuration(struct json *j, const struct summary_configuration *c)
{
	json_open(j, c->name, '{');
	add_rate_members(j, &c->rate);
	json_open(j, "outcomes", '{');
	add_outcomes(j, c->outcomes);
	json_close(j, '}');
	json_count(j, "expectations", c->expectations);
	json_count(j, "expectations_met", c->met);
	add_by_k(j, "pass_at_k", c->pass_at, c->k);
	add_by_k(j, "pass_hat_k", c->pass_hat, c->k);
	json_real(j, "seconds", c->seconds);
	json_real(j, "usd", c->usd);
	add_tokens(j, c->tokens);
	json_close(j, '}');
}

static void add_difference(struct json *j, const struct stats_difference *d)
{
	json_open(j, "difference", '{');
	json_count(j, "cases", d->cases);
	json_real(j, "difference", d->difference);
	add_range(j, d->interval);
	json_string(j, "interval", d->by_scores ? "newcombe" : "paired, clustered by case");
	json_real(j, "standard_error", d->error);
	json_real(j, "detectable", d->detectable);
	json_real(j, "normalised_gain", d->gain);
	json_bool(j, "enough", d->enough);
	json_close(j, '}');
}

static void add_matrix(struct json *j, const char *key, const unsigned int *row)
{
	json_open(j, key, '{');
	for (int i = FIRED; i <= FIRED_ERROR; i++)
		json_count(j, attempt_fired_name((enum attempt_fired)i), row[i]);
	json_close(j, '}');
}

static void add_triggers(struct json *j, const struct summary *s)
{
	json_open(j, "triggers", '{');
	add_rate(j, "recall", &s->recall);
	add_rate(j, "specificity", &s->specificity);
	json_open(j, "matrix", '{');
	add_matrix(j, "should_trigger", s->matrix[1]);
	add_matrix(j, "should_not_trigger", s->matrix[0]);
	json_close(j, '}');
	json_count(j, "queries", s->queries.n);
	json_count(j, "queries_passed", s->queries_passed);
	json_count(j, "queries_failed", s->queries_failed);
	json_close(j, '}');
}

void summary_add_json(struct json *j, const char *key, const struct run_dir *run,
	const struct summary *s)
{
	(void)run;
	json_open(j, key, '{');
	json_string(j, "verdict", summary_verdict_name(s->verdict));
	json_string(j, "why", s->why);
	json_open(j, "attempts", '{');
	json_count(j, "planned", s->planned);
	json_count(j, "done", s->attempts);
	add_outcomes(j, s->outcomes);
	json_close(j, '}');
	json_open(j, "configurations", '{');
	for (size_t i = 0; i < s->configuration_count; i++)
		add_configuration(j, &s->configurations[i]);
	json_close(j, '}');
	if (s->compared)
		add_difference(j, &s->difference);
	if (s->queries.n)
		add_triggers(j, s);
	json_open(j, "controls", '{');
	json_count(j, "fired", s->controls_fired);
	json_count(j, "of", s->controls);
	json_close(j, '}');
	json_real(j, "seconds", s->seconds);
	json_real(j, "usd", s->usd);
	add_tokens(j, s->tokens);
	json_close(j, '}');
}

void summary_document(const struct run_dir *run, const struct summary *s, bool indent,
	struct str *out)
{
	struct json j = { .out = out, .indent = indent };

	json_open(&j, NULL, '{');
	if (run->json)
		json_each(it, run->json)
			if (strcmp(it->key, "summary") != 0)
				json_copy(&j, it->key, it);
	summary_add_json(&j, "summary", run, s);
	json_close(&j, '}');
}

int summary_write(const struct run_dir *run, const struct summary *s, struct fault *f)
{
	struct str out = { 0 };

	summary_document(run, s, true, &out);
	str_addc(&out, '\n');
	return run_dir_write(run, ".", "run.json", out.p, out.len, f);
}

/* ---- lines ---- */

static void add_label(struct str *out, const char *label)
{
	size_t before = out->len;

	str_add_visible(out, label);
	do
		str_addc(out, ' ');
	while (out->len - before < LABEL);
}

static void add_percent(struct str *out, const struct run_dir *run, const struct stats_rate *r)
{
	if (!r->n)
		str_add(out, "no verdict");
	else if (!r->enough)
		str_addf(out, "%u of %u, too few for a rate (at least %u)", r->passed, r->n,
			run->min_n);
	else
		str_addf(out, "%.0f %% [%.0f, %.0f]", 100 * r->rate, 100 * r->interval.low,
			100 * r->interval.high);
}

static void add_count(struct str *out, const char **separator, unsigned int n, const char *what)
{
	if (!n)
		return;
	str_addf(out, "%s%u %s", *separator, n, what);
	*separator = ", ";
}

/* What no rate counts: "; 1 could not run, 2 stopped at a limit". */
static void add_lost(struct str *out, const unsigned int *outcomes)
{
	const char *separator = "; ";

	add_count(out, &separator, outcomes[OUTCOME_ERROR], "could not run");
	add_count(out, &separator, outcomes[OUTCOME_LIMIT], "stopped at a limit");
	add_count(out, &separator, outcomes[OUTCOME_SKIPPED], "skipped");
	add_count(out, &separator, outcomes[OUTCOME_UNGRADED], "ungraded");
	str_addc(out, '\n');
}

static void add_difference_text(struct str *out, const struct summary *s)
{
	const struct stats_difference *d = &s->difference;

	if (!s->compared || !d->enough) {
		str_addf(out, "%s%zu %s", s->compared ? "   " : ", ", s->cases.n,
			s->cases.n == 1 ? "case" : "cases");
		return;
	}
	str_addf(out, "   difference %+.0f [%+.0f, %+.0f], %u %s", 100 * d->difference,
		100 * d->interval.low, 100 * d->interval.high, d->cases,
		d->cases == 1 ? "case" : "cases");
}

/* What a run of this size could not have seen. */
static void add_detectable(struct str *out, const struct summary *s)
{
	const struct stats_difference *d = &s->difference;

	if (!s->compared || !d->enough || !isfinite(d->detectable) || d->interval.low > 0 ||
		d->interval.high < 0)
		return;
	add_label(out, "");
	str_addf(out, "this may be chance: a run of this size finds a difference of %.0f\n",
		fmin(100, ceil(100 * d->detectable)));
}

static void artifact_lines(const struct run_dir *run, const struct summary *s, struct str *out)
{
	unsigned int lost[OUTCOMES] = { 0 };

	add_label(out, run->skill);
	for (size_t i = 0; i < s->configuration_count; i++) {
		const struct summary_configuration *c = &s->configurations[i];

		str_add(out, i ? "   " : "");
		str_add_visible(out, summary_short_name(c->name));
		str_addc(out, ' ');
		add_percent(out, run, &c->rate);
		for (int o = 0; o < OUTCOMES; o++)
			lost[o] += c->outcomes[o];
	}
	add_difference_text(out, s);
	add_lost(out, lost);
	add_detectable(out, s);
}

static void trigger_lines(const struct run_dir *run, const struct summary *s, struct str *out)
{
	unsigned int lost[OUTCOMES] = { 0 };

	vec_each(a, &run->attempts)
		if (a->kind == ATTEMPT_TRIGGER)
			lost[a->outcome]++;
	add_label(out, "triggers");
	if (s->controls_fired < s->controls) {
		str_addf(out, "no rate: %u of %u positive controls did not fire",
			s->controls - s->controls_fired, s->controls);
	} else {
		str_add(out, "recall ");
		add_percent(out, run, &s->recall);
		str_add(out, ", specificity ");
		add_percent(out, run, &s->specificity);
	}
	add_lost(out, lost);
}

void summary_lines(const struct run_dir *run, const struct summary *s, struct str *out)
{
	if (s->cases.n)
		artifact_lines(run, s, out);
	if (s->queries.n)
		trigger_lines(run, s, out);
	if (!s->cases.n && !s->queries.n) {
		add_label(out, run->skill);
		str_add(out, "no attempt has ended\n");
	}
	if (s->verdict == SUMMARY_UNDECIDED) {
		add_label(out, "undecided");
		str_addf(out, "%s\n", s->why);
	}
}
