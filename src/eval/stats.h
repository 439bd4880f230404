/*
 * eval/stats.h - the statistics of an evaluation
 *
 * Pure functions of counts: no files, no allocation, no clock. docs/statistics.md has each
 * formula, its source, and when to use it. All rates are from 0 to 1, all intervals are 95 %
 * intervals. Only verdicts are counted: the caller leaves out attempts that ended as an error
 * or at a limit, because those say nothing about the skill.
 */
#ifndef EVAL_STATS_H
#define EVAL_STATS_H

#include <stdbool.h>
#include <stddef.h>

#define STATS_CONFIDENCE 0.95
#define STATS_POWER      0.80

struct stats_range {
	double low, high;
};

/* The verdicts of one case (or one trigger query) in one configuration. */
struct stats_case {
	unsigned int passed, n;
};

/* Quantiles: z of the normal distribution, and Student's t with df degrees of freedom. */
double stats_normal_quantile(double p);
double stats_t_quantile(double p, double df);

/* Wilson's score interval of passed in n; n and passed need not be whole. n 0: [0, 1]. */
struct stats_range stats_wilson(double passed, double n);

/* The chance that at least one of k attempts passes, or that all k do; NAN where k > n. */
double stats_pass_at_k(unsigned int n, unsigned int passed, unsigned int k);
double stats_pass_hat_k(unsigned int n, unsigned int passed, unsigned int k);

/* Both, averaged over the cases that have at least k verdicts; NAN where none has. */
double stats_mean_pass_at_k(const struct stats_case *v, size_t cases, unsigned int k);
double stats_mean_pass_hat_k(const struct stats_case *v, size_t cases, unsigned int k);

/*
 * One rate with its interval. Repeats of a case resemble each other, so they count for less
 * than as many cases: `effective` is the number of independent attempts they are worth, and
 * the interval is Wilson's at that number. It is n where there is one case, or no repeat.
 */
struct stats_rate {
	unsigned int cases, n, passed; /* cases: those with a verdict */
	double rate;                   /* NAN where n is 0 */
	double effective;
	struct stats_range interval;
	bool enough; /* n is at least the minimum: a verdict may be given */
};

void stats_rate(const struct stats_case *v, size_t cases, unsigned int min_n,
	struct stats_rate *ret);

/*
 * The difference of two configurations over the cases that have a verdict in both. The unit is
 * the case: each gives one difference, and the error is that of their mean, clustered by case.
 */
struct stats_difference {
	unsigned int cases;
	double difference; /* first less second; NAN where no case has both */
	double error;      /* standard error; NAN where it cannot be estimated */
	struct stats_range interval;
	bool by_scores;    /* all cases differ alike: Newcombe's interval of the two rates */
	double detectable; /* found in 4 of 5 runs of this size; NAN like error */
	double gain;       /* share of what was left to gain; NAN where nothing was */
	bool enough;
};

void stats_difference(const struct stats_case *first, const struct stats_case *second,
	size_t cases, unsigned int min_n, struct stats_difference *ret);

/* Newcombe's interval (1998, method 10) of the difference of two independent rates. */
struct stats_range stats_newcombe(const struct stats_rate *first,
	const struct stats_rate *second);

/* Hake's normalised gain from before to after; NAN where before is 1. */
double stats_gain(double before, double after);

/*
 * Wald's sequential test: may a series of attempts stop early? It decides between a rate of at
 * most `low` and one of at least `high`, and is wrong at most with chance alpha (says above,
 * is below) or beta (says below, is above).
 */
enum stats_decision { STATS_CONTINUE, STATS_ABOVE, STATS_BELOW };

struct stats_lines {
	double below, above,
		slope; /* stop where passed <= below + slope n or >= above + slope n */
};

struct stats_lines stats_sequential_lines(double low, double high, double alpha, double beta);
enum stats_decision stats_sequential(unsigned int passed, unsigned int n, double low,
	double high, double alpha, double beta);

#endif
