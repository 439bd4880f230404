/*
 * eval/stats.c - the statistics of an evaluation
 *
 * Theory of operation. Quantiles come from bisection on the distribution function, which is
 * slow and plain; a run needs a few dozen. Student's t comes from the incomplete beta function
 * by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method.
 *
 * Must not: count what is no verdict. A case with n 0 has no rate and is left out.
 */
#include "eval/stats.h"

#include <math.h>

enum { HALVINGS = 200, FRACTIONS = 1000 };

/* ---- distributions ---- */

static double normal_below(double z)
{
	return 0.5 * erfc(-z / sqrt(2));
}

/* The i-th coefficient of the continued fraction, from 1. */
static double beta_term(double a, double b, double x, int i)
{
	double m = i / 2; /* whole */

	if (i % 2)
		return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
	return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
}

static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double f = 1, c = 1, d = 0;

	for (int i = 1; i < FRACTIONS; i++) {
		double term = beta_term(a, b, x, i);

		d = 1 + term * d;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = 1 + term / c;
		c = fabs(c) < tiny ? tiny : c;
		f *= c * d;
		if (fabs(c * d - 1) < 1e-15)
			break;
	}
	return 1 / f;
}

/* The regularised incomplete beta function. */
static double beta_below(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	if (x > (a + 1) / (a + b + 2)) /* there the fraction converges slowly */
		return 1 - beta_below(b, a, 1 - x);
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x));
	return front * beta_fraction(a, b, x) / a;
}

static double t_below(double t, double df)
{
	double tail = 0.5 * beta_below(df / 2, 0.5, df / (df + t * t));

	return t > 0 ? 1 - tail : tail;
}

/* Where a distribution that is symmetric about 0 reaches p; df 0 is the normal one. */
static double quantile(double p, double df)
{
	double low = -1, high = 1;

	if (!(p > 0 && p < 1))
		return NAN;
	while ((df > 0 ? t_below(high, df) : normal_below(high)) < p && high < 1e12)
		high *= 2;
	while ((df > 0 ? t_below(low, df) : normal_below(low)) > p && low > -1e12)
		low *= 2;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if ((df > 0 ? t_below(middle, df) : normal_below(middle)) < p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double stats_normal_quantile(double p)
{
	return quantile(p, 0);
}

double stats_t_quantile(double p, double df)
{
	return df > 0 ? quantile(p, df) : NAN;
}

/* ---- one rate ---- */

struct stats_range stats_wilson(double passed, double n)
{
	double z = stats_normal_quantile((1 + STATS_CONFIDENCE) / 2);
	double p, middle, half;
	struct stats_range r = { 0, 1 };

	if (!(n > 0))
		return r;
	p = passed / n;
	middle = (p + z * z / (2 * n)) / (1 + z * z / n);
	half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
	/* Exact at the ends: rounding must not leave 1e-17 where none passed. */
	r.low = passed <= 0 ? 0 : fmax(0, middle - half);
	r.high = passed >= n ? 1 : fmin(1, middle + half);
	return r;
}

double stats_pass_hat_k(unsigned int n, unsigned int passed, unsigned int k)
{
	double all = 1;

	if (k == 0 || k > n)
		return NAN;
	for (unsigned int i = 0; i < k; i++) /* C(passed, k) / C(n, k), factor by factor */
		all *= i < passed ? (double)(passed - i) / (n - i) : 0;
	return all;
}

double stats_pass_at_k(unsigned int n, unsigned int passed, unsigned int k)
{
	return k == 0 || k > n ? NAN : 1 - stats_pass_hat_k(n, n - passed, k);
}

static double mean_of(const struct stats_case *v, size_t cases, unsigned int k,
	double (*of)(unsigned int, unsigned int, unsigned int))
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < cases; i++) {
		if (k == 0 || v[i].n < k)
			continue;
		sum += of(v[i].n, v[i].passed, k);
		n++;
	}
	return n ? sum / (double)n : NAN;
}

double stats_mean_pass_at_k(const struct stats_case *v, size_t cases, unsigned int k)
{
	return mean_of(v, cases, k, stats_pass_at_k);
}

double stats_mean_pass_hat_k(const struct stats_case *v, size_t cases, unsigned int k)
{
	return mean_of(v, cases, k, stats_pass_hat_k);
}

/* The sum over all cases of the squared distance of each one's passes from what p expects. */
static double spread(const struct stats_case *v, size_t cases, double p)
{
	double sum = 0;

	for (size_t i = 0; i < cases; i++) {
		double d = v[i].passed - p * v[i].n;

		sum += d * d;
	}
	return sum;
}

/*
 * How many times more an attempt at a new case is worth than a repeat: the variance clustered
 * by case (Miller 2024, equation 4, with the usual factor c / (c - 1)) over that of independent
 * attempts. One imagined case is added that goes against the majority. Without it a suite
 * whose attempts all agree would make repeats look as good as new cases.
 */
static double design_effect(const struct stats_case *v, size_t cases,
	const struct stats_rate *r)
{
	double size = (double)r->n / r->cases, n = r->n + size, count = r->cases + 1;
	double against = r->rate < 0.5 ? size : 0;
	double p = (r->passed + against) / n, d = against - p * size;
	double clustered = (spread(v, cases, p) + d * d) * count / (count - 1);

	return fmin(fmax(clustered / (n * p * (1 - p)), 1), size);
}

void stats_rate(const struct stats_case *v, size_t cases, unsigned int min_n,
	struct stats_rate *ret)
{
	struct stats_rate r = { .rate = NAN };

	for (size_t i = 0; i < cases; i++) {
		r.cases += v[i].n > 0;
		r.n += v[i].n;
		r.passed += v[i].passed;
	}
	if (r.n) {
		r.rate = (double)r.passed / r.n;
		r.effective = r.n;
		if (r.cases > 1 && r.n > r.cases)
			r.effective = r.n / design_effect(v, cases, &r);
	}
	r.interval = stats_wilson(r.rate * r.effective, r.effective);
	r.enough = r.n > 0 && r.n >= min_n;
	*ret = r;
}

/* ---- two rates ---- */

double stats_gain(double before, double after)
{
	return before < 1 ? (after - before) / (1 - before) : NAN;
}

struct stats_range stats_newcombe(const struct stats_rate *first,
	const struct stats_rate *second)
{
	double d = first->rate - second->rate;
	const struct stats_range *a = &first->interval, *b = &second->interval;
	struct stats_range r = {
		d - hypot(first->rate - a->low, b->high - second->rate),
		d + hypot(a->high - first->rate, second->rate - b->low),
	};

	return r;
}

static double case_difference(const struct stats_case *a, const struct stats_case *b)
{
	return (double)a->passed / a->n - (double)b->passed / b->n;
}

/* The standard error of the mean of the cases' differences. */
static double paired_error(const struct stats_case *first, const struct stats_case *second,
	size_t cases, const struct stats_difference *r)
{
	double sum = 0;

	if (r->cases < 2)
		return NAN;
	for (size_t i = 0; i < cases; i++) {
		double d;

		if (!first[i].n || !second[i].n)
			continue;
		d = case_difference(&first[i], &second[i]) - r->difference;
		sum += d * d;
	}
	return sqrt(sum / (r->cases - 1) / r->cases);
}

/* Where the cases do not tell a spread, the two rates of the same cases do. */
static void unpaired(const struct stats_case *first, const struct stats_case *second,
	size_t cases, struct stats_difference *r)
{
	struct stats_rate a, b;

	stats_rate(first, cases, 0, &a);
	stats_rate(second, cases, 0, &b);
	r->interval = stats_newcombe(&a, &b);
	r->by_scores = true;
}

static void add_error(const struct stats_case *first, const struct stats_case *second,
	size_t cases, struct stats_difference *r)
{
	double df = r->cases - 1.0, error = paired_error(first, second, cases, r), t;

	if (!(error > 1e-12)) {
		unpaired(first, second, cases, r);
		return;
	}
	t = stats_t_quantile((1 + STATS_CONFIDENCE) / 2, df);
	r->error = error;
	r->interval.low = fmax(-1, r->difference - t * error);
	r->interval.high = fmin(1, r->difference + t * error);
	r->detectable = (t + stats_t_quantile(STATS_POWER, df)) * error;
}

void stats_difference(const struct stats_case *first, const struct stats_case *second,
	size_t cases, unsigned int min_n, struct stats_difference *ret)
{
	struct stats_difference r = { .difference = NAN,
		.error = NAN,
		.detectable = NAN,
		.gain = NAN,
		.interval = { -1, 1 } };
	double before = 0, after = 0;
	unsigned int n[2] = { 0, 0 };

	for (size_t i = 0; i < cases; i++) {
		if (!first[i].n || !second[i].n)
			continue;
		after += (double)first[i].passed / first[i].n;
		before += (double)second[i].passed / second[i].n;
		n[0] += first[i].n;
		n[1] += second[i].n;
		r.cases++;
	}
	if (r.cases) {
		r.difference = (after - before) / r.cases;
		r.gain = stats_gain(before / r.cases, after / r.cases);
		add_error(first, second, cases, &r);
	}
	r.enough = r.cases > 0 && n[0] >= min_n && n[1] >= min_n;
	*ret = r;
}

/* ---- stopping early ---- */

struct stats_lines stats_sequential_lines(double low, double high, double alpha, double beta)
{
	double k = log(high * (1 - low) / (low * (1 - high)));
	struct stats_lines lines = {
		.below = -log((1 - alpha) / beta) / k,
		.above = log((1 - beta) / alpha) / k,
		.slope = log((1 - low) / (1 - high)) / k,
	};

	return lines;
}

enum stats_decision stats_sequential(unsigned int passed, unsigned int n, double low,
	double high, double alpha, double beta)
{
	struct stats_lines l = stats_sequential_lines(low, high, alpha, beta);

	if (passed >= l.above + l.slope * n)
		return STATS_ABOVE;
	return passed <= l.below + l.slope * n ? STATS_BELOW : STATS_CONTINUE;
}
