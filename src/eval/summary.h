/*
 * eval/summary.h - what a run says, in figures
 *
 * For the engine, at the end of a run (or at any moment: it reads what is there):
 *
 *	struct run_dir run;
 *	struct summary s;
 *
 *	rc = run_dir_read(path, &run, f);
 *	summary_make(&run, &s);
 *	rc = summary_write(&run, &s, f);	puts "summary" into run.json
 *	summary_lines(&run, &s, &text);		the closing lines, for the terminal
 *	... exit code from s.verdict
 *
 * Errors, limits, skipped and ungraded attempts are counted and named; no rate contains them.
 */
#ifndef EVAL_SUMMARY_H
#define EVAL_SUMMARY_H

#include "eval/attempts.h"
#include "eval/stats.h"

struct json;
struct str;

enum { SUMMARY_CONFIGURATIONS = 8, SUMMARY_K = 10 };

/*
 * PASS and FAIL are verdicts. UNDECIDED means that the run cannot tell: too few verdicts, a
 * case with none, or a positive control that did not fire.
 */
enum summary_verdict { SUMMARY_PASS, SUMMARY_FAIL, SUMMARY_UNDECIDED };

struct summary_case {
	const char *id, *query; /* query: of a trigger, or NULL */
	bool should_trigger;
	/* Artifacts: of each configuration; triggers: [0], and passed counts those fired. */
	struct stats_case v[SUMMARY_CONFIGURATIONS];
	unsigned int lost[SUMMARY_CONFIGURATIONS]; /* attempts that gave no verdict */
};

typedef VEC(struct summary_case) summary_cases;

struct summary_configuration {
	const char *name;
	struct stats_rate rate;
	unsigned int outcomes[OUTCOMES];
	unsigned int expectations, met; /* of the attempts with a verdict */
	double usd, seconds, tokens[TOKEN_KINDS];
	unsigned int k; /* the largest k that every case with verdicts has, at most SUMMARY_K */
	double pass_at[SUMMARY_K], pass_hat[SUMMARY_K]; /* [k - 1] */
};

struct summary {
	enum summary_verdict verdict;
	const char *why; /* one sentence: "3 of 12 cases pass less often than 50 %" */
	unsigned int attempts, planned;
	unsigned int outcomes[OUTCOMES];          /* of artifacts and triggers */
	double usd, seconds, tokens[TOKEN_KINDS]; /* controls included */

	struct summary_configuration configurations[SUMMARY_CONFIGURATIONS];
	size_t configuration_count;
	summary_cases cases;
	bool compared; /* two configurations: the first less the second */
	struct stats_difference difference;

	summary_cases queries;
	struct stats_rate recall, specificity; /* specificity counts those that did not fire */
	unsigned int matrix[2][FIRED_ERROR + 1];     /* [should_trigger][enum attempt_fired] */
	unsigned int queries_passed, queries_failed; /* at the threshold */
	unsigned int controls, controls_fired;
};

void summary_make(const struct run_dir *run, struct summary *ret);

/* Does a case pass at the threshold? False also where it has no verdict. */
bool summary_case_passes(const struct run_dir *run, const struct summary_case *c,
	enum attempt_kind kind);

/* The "summary" of run.json. */
void summary_add_json(struct json *j, const char *key, const struct run_dir *run,
	const struct summary *s);

/* All of run.json with its "summary", for `carrel report --json` and for the file. */
void summary_document(const struct run_dir *run, const struct summary *s, bool indent,
	struct str *out);

/* Write run.json anew with its "summary"; all other keys stay as they are. */
int summary_write(const struct run_dir *run, const struct summary *s, struct fault *f);

/*
 * The closing lines, each with a newline:
 *
 * review    with 91 % [80, 96]   without 58 % [45, 70]   difference +33 [+17, +49], 12 cases
 * triggers  recall 94 % [81, 98], specificity 97 % [86, 99]; 1 could not run
 */
void summary_lines(const struct run_dir *run, const struct summary *s, struct str *out);

/* "with" for with_skill, "without" for without_skill, else the name. */
const char *summary_short_name(const char *configuration);
const char *summary_verdict_name(enum summary_verdict verdict); /* "undecided" */

#endif
