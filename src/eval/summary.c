/*
 * eval/summary.c - what a run says, in figures
 *
 * Theory of operation. One pass over the attempts fills a row for each case and each query;
 * eval/stats.c then makes rates of the rows. Cases are found by a hash of their id, because a
 * run may have ten thousand. Attempts without a verdict are counted beside the rates.
 */
#include "eval/summary.h"
#include "base/json-read.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- rows ---- */

/* Open addressing over the rows' indices, as large as twice the attempts. */
struct rows {
	unsigned int *slots; /* index + 1; 0: free */
	size_t room;
};

static size_t hash_text(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return (size_t)(h ^ h >> 29);
}

static struct rows rows_for(size_t attempts)
{
	struct rows r = { .room = 16 };

	while (r.room < 2 * attempts)
		r.room *= 2;
	r.slots = mem_alloc(r.room * sizeof(*r.slots));
	return r;
}

static struct summary_case *row_of(struct rows *r, summary_cases *list, const struct attempt *a)
{
	size_t i = hash_text(a->id) & (r->room - 1);
	struct summary_case row = {
		.id = a->id,
		.query = a->query,
		.should_trigger = a->should_trigger,
	};

	for (; r->slots[i]; i = (i + 1) & (r->room - 1))
		if (strcmp(list->v[r->slots[i] - 1].id, a->id) == 0)
			return &list->v[r->slots[i] - 1];
	vec_push(list, row);
	r->slots[i] = (unsigned int)list->n;
	return &list->v[list->n - 1];
}

static size_t configuration_index(const struct summary *s, const char *name)
{
	size_t i = 0;

	while (i < s->configuration_count && strcmp(s->configurations[i].name, name) != 0)
		i++;
	return i;
}

static void add_amount(double *sum, double more)
{
	if (isfinite(more))
		*sum += more;
}

static void add_expectations(struct summary_configuration *c, const struct attempt *a)
{
	const struct json_value *list = json_member(a->json, "expectations");

	if (a->outcome > OUTCOME_FAIL || !list || list->type != JSON_LIST)
		return;
	json_each(it, list) {
		const struct json_value *passed = json_member(it, "passed");

		if (!passed || passed->type != JSON_BOOL)
			continue; /* its grader failed */
		c->expectations++;
		c->met += passed->boolean;
	}
}

static void add_artifact(struct summary *s, struct rows *rows, const struct attempt *a)
{
	size_t at = configuration_index(s, a->configuration);
	struct summary_case *row;
	struct summary_configuration *c;

	if (at == s->configuration_count)
		return; /* more configurations than are shown: the total counts it */
	row = row_of(rows, &s->cases, a);
	c = &s->configurations[at];
	c->outcomes[a->outcome]++;
	add_amount(&c->usd, a->usd);
	add_amount(&c->seconds, a->seconds);
	for (int i = 0; i < TOKEN_KINDS; i++)
		add_amount(&c->tokens[i], a->tokens[i]);
	add_expectations(c, a);
	if (a->outcome > OUTCOME_FAIL) {
		row->lost[at]++;
		return;
	}
	row->v[at].n++;
	row->v[at].passed += a->outcome == OUTCOME_PASS;
}

static void add_trigger(struct summary *s, struct rows *rows, const struct attempt *a)
{
	struct summary_case *row = row_of(rows, &s->queries, a);

	s->matrix[a->should_trigger][a->fired]++;
	if (a->outcome > OUTCOME_FAIL) {
		row->lost[0]++;
		return;
	}
	row->v[0].n++;
	row->v[0].passed += a->fired == FIRED;
}

static void add_attempt(struct summary *s, struct rows *cases, struct rows *queries,
	const struct attempt *a)
{
	add_amount(&s->usd, a->usd);
	add_amount(&s->seconds, a->seconds);
	for (int i = 0; i < TOKEN_KINDS; i++)
		add_amount(&s->tokens[i], a->tokens[i]);
	if (a->kind == ATTEMPT_CONTROL) {
		s->controls++;
		s->controls_fired += a->fired == FIRED;
		return;
	}
	s->attempts++;
	s->outcomes[a->outcome]++;
	if (a->kind == ATTEMPT_ARTIFACT)
		add_artifact(s, cases, a);
	else
		add_trigger(s, queries, a);
}

/* ---- rates ---- */

/* One configuration's column of the rows. */
static struct stats_case *column(const struct summary *s, size_t at)
{
	struct stats_case *v = mem_alloc((s->cases.n + 1) * sizeof(*v));

	for (size_t i = 0; i < s->cases.n; i++)
		v[i] = s->cases.v[i].v[at];
	return v;
}

static void add_pass_k(struct summary_configuration *c, const struct stats_case *v, size_t n)
{
	unsigned int least = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].n && (!least || v[i].n < least))
			least = v[i].n;
	c->k = least < SUMMARY_K ? least : SUMMARY_K;
	for (unsigned int k = 1; k <= c->k; k++) {
		c->pass_at[k - 1] = stats_mean_pass_at_k(v, n, k);
		c->pass_hat[k - 1] = stats_mean_pass_hat_k(v, n, k);
	}
}

static void add_rates(const struct run_dir *run, struct summary *s)
{
	struct stats_case *columns[SUMMARY_CONFIGURATIONS];

	for (size_t i = 0; i < s->configuration_count; i++) {
		columns[i] = column(s, i);
		stats_rate(columns[i], s->cases.n, run->min_n, &s->configurations[i].rate);
		add_pass_k(&s->configurations[i], columns[i], s->cases.n);
	}
	s->compared = s->configuration_count == 2;
	if (s->compared)
		stats_difference(columns[0], columns[1], s->cases.n, run->min_n,
			&s->difference);
}

bool summary_case_passes(const struct run_dir *run, const struct summary_case *c,
	enum attempt_kind kind)
{
	double rate = c->v[0].n ? (double)c->v[0].passed / c->v[0].n : NAN;

	if (kind == ATTEMPT_TRIGGER && !c->should_trigger)
		return rate < run->threshold;
	return rate >= run->threshold;
}

/* Recall over the queries that should fire; specificity over the others. */
static void add_trigger_rates(const struct run_dir *run, struct summary *s)
{
	struct stats_case *v[2];
	size_t n[2] = { 0, 0 };

	for (int i = 0; i < 2; i++)
		v[i] = mem_alloc((s->queries.n + 1) * sizeof(*v[i]));
	vec_each(q, &s->queries) {
		struct stats_case c = q->v[0];
		bool passes = summary_case_passes(run, q, ATTEMPT_TRIGGER);

		s->queries_passed += c.n && passes;
		s->queries_failed += c.n && !passes;
		if (!q->should_trigger)
			c.passed = c.n - c.passed;
		v[q->should_trigger][n[q->should_trigger]++] = c;
	}
	stats_rate(v[1], n[1], run->min_n, &s->recall);
	stats_rate(v[0], n[0], run->min_n, &s->specificity);
	if (s->controls_fired < s->controls) /* a client that loads no skills: no rate at all */
		s->recall.enough = s->specificity.enough = false;
}

/* ---- the verdict ---- */

static void decide(struct summary *s, enum summary_verdict verdict, const char *why)
{
	static const int weight[] = {
		[SUMMARY_PASS] = 0, [SUMMARY_UNDECIDED] = 1, [SUMMARY_FAIL] = 2
	};

	if (s->why && weight[verdict] <= weight[s->verdict])
		return;
	s->verdict = verdict;
	s->why = why;
}

static void judge_cases(const struct run_dir *run, struct summary *s)
{
	unsigned int failed = 0, without = 0;

	vec_each(c, &s->cases) {
		without += c->v[0].n == 0;
		failed += c->v[0].n && !summary_case_passes(run, c, ATTEMPT_ARTIFACT);
	}
	if (failed)
		decide(s, SUMMARY_FAIL,
			mem_printf(
				"%u of %zu cases pass in less than %.0f %% of their attempts",
				failed, s->cases.n, 100 * run->threshold));
	if (without)
		decide(s, SUMMARY_UNDECIDED,
			mem_printf("%u of %zu cases have no verdict", without, s->cases.n));
	if (s->cases.n && !s->configurations[0].rate.enough)
		decide(s, SUMMARY_UNDECIDED,
			mem_printf("%u verdicts are too few, %u are the minimum",
				s->configurations[0].rate.n, run->min_n));
}

static void judge_triggers(const struct run_dir *run, struct summary *s)
{
	size_t without = s->queries.n - s->queries_passed - s->queries_failed;

	if (s->controls_fired < s->controls) { /* then a trigger rate means nothing */
		decide(s, SUMMARY_UNDECIDED,
			mem_printf(
				"%u of %u positive controls did not fire: the client does not "
				"load skills, or cannot reach its model",
				s->controls - s->controls_fired, s->controls));
		return;
	}
	if (s->queries_failed)
		decide(s, SUMMARY_FAIL,
			mem_printf("%u of %zu queries trigger wrongly", s->queries_failed,
				s->queries.n));
	if (without)
		decide(s, SUMMARY_UNDECIDED,
			mem_printf("%zu of %zu queries have no verdict", without,
				s->queries.n));
	if ((s->recall.cases && !s->recall.enough) ||
		(s->specificity.cases && !s->specificity.enough))
		decide(s, SUMMARY_UNDECIDED,
			mem_printf("too few trigger verdicts, %u of each kind are the minimum",
				run->min_n));
}

static void judge_run(const struct run_dir *run, struct summary *s)
{
	judge_cases(run, s);
	judge_triggers(run, s);
	if (!s->cases.n && !s->queries.n)
		decide(s, SUMMARY_UNDECIDED, "no attempt has ended");
	decide(s, SUMMARY_PASS, "every case and every query passes");
}

void summary_make(const struct run_dir *run, struct summary *ret)
{
	struct rows cases = rows_for(run->attempts.n), queries = rows_for(run->attempts.n);
	struct summary s = { .planned = run->planned };

	s.configuration_count = run->configuration_count < SUMMARY_CONFIGURATIONS
		? run->configuration_count
		: SUMMARY_CONFIGURATIONS;
	for (size_t i = 0; i < s.configuration_count; i++)
		s.configurations[i].name = run->configurations[i];
	vec_each(a, &run->attempts)
		add_attempt(&s, &cases, &queries, a);
	add_rates(run, &s);
	add_trigger_rates(run, &s);
	judge_run(run, &s);
	*ret = s;
}
