/*
 * tests/unit/test_stats.c - the statistics of evaluations, against published values
 *
 * Each test names where its figures were printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"
#include "eval/stats.h"

#define near(value, expected, within)                                     \
	do {                                                              \
		double v_ = (value), e_ = (expected);                     \
		if (!(fabs(v_ - e_) <= (within)))                         \
			fail_msg("%s is %.6f, not %.6f", #value, v_, e_); \
	} while (0)

/* NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.1 (normal) and 1.3.6.7.2 (t). */
static void test_quantiles(void **state)
{
	near(stats_normal_quantile(0.975), 1.959964, 5e-7);
	near(stats_normal_quantile(0.8), 0.841621, 5e-7);
	near(stats_normal_quantile(0.5), 0, 1e-12);
	near(stats_normal_quantile(0.025), -1.959964, 5e-7);
	near(stats_t_quantile(0.975, 1), 12.706, 5e-4);
	near(stats_t_quantile(0.975, 9), 2.262, 5e-4);
	near(stats_t_quantile(0.975, 30), 2.042, 5e-4);
	near(stats_t_quantile(0.90, 5), 1.476, 5e-4);
	near(stats_t_quantile(0.999, 2), 22.327, 2e-3);
	near(stats_t_quantile(0.95, 100), 1.660, 5e-4);
	near(stats_t_quantile(0.975, 1e6), 1.959964, 5e-6);
	assert_true(isnan(stats_normal_quantile(0)));
	assert_true(isnan(stats_normal_quantile(1)));
	assert_true(isnan(stats_t_quantile(0.9, 0)));
}

/* Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3. */
static void test_wilson(void **state)
{
	static const struct {
		double passed, n, low, high;
	} table[] = {
		{ 81, 263, 0.2553, 0.3662 },
		{ 15, 148, 0.0624, 0.1605 },
		{ 0, 20, 0.0000, 0.1611 },
		{ 1, 29, 0.0061, 0.1718 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct stats_range r = stats_wilson(table[i].passed, table[i].n);
		struct stats_range other =
			stats_wilson(table[i].n - table[i].passed, table[i].n);

		near(r.low, table[i].low, 5e-5);
		near(r.high, table[i].high, 5e-5);
		near(other.low, 1 - r.high, 1e-12);
		near(other.high, 1 - r.low, 1e-12);
	}
	near(stats_wilson(0, 0).low, 0, 0);
	near(stats_wilson(0, 0).high, 1, 0);
	near(stats_wilson(20, 20).high, 1, 0);
	near(stats_wilson(0, 20).low, 0, 0);
}

/*
 * Chen et al., "Evaluating Large Language Models Trained on Code" (2021), equation 1, and Yao
 * et al., "tau-bench" (2024), section 5: both are chances over the draws of k from n without
 * putting back, so the draws themselves are counted here.
 */
static void test_pass_k_counts_draws(void **state)
{
	for (unsigned int n = 1; n <= 8; n++)
		for (unsigned int passed = 0; passed <= n; passed++)
			for (unsigned int k = 1; k <= n; k++) {
				unsigned int draws = 0, any = 0, all = 0;

				for (unsigned int set = 0; set < 1u << n; set++) {
					unsigned int good = set & ((1u << passed) - 1);

					if (__builtin_popcount(set) != (int)k)
						continue;
					draws++;
					any += good != 0;
					all += good == set;
				}
				near(stats_pass_at_k(n, passed, k), (double)any / draws, 1e-12);
				near(stats_pass_hat_k(n, passed, k), (double)all / draws,
					1e-12);
			}
	assert_true(isnan(stats_pass_at_k(3, 1, 4)));
	assert_true(isnan(stats_pass_hat_k(3, 3, 0)));
}

/* Large n must not overflow: 200 samples as in Chen et al.; the figure is 1 - C(150,100)/C(200,100). */
static void test_pass_at_k_of_many(void **state)
{
	near(stats_pass_at_k(200, 50, 1), 0.25, 1e-12);
	near(stats_pass_at_k(200, 50, 100), 1, 1e-12);
	near(stats_pass_at_k(200, 1, 100), 0.5, 1e-12);
	near(stats_pass_hat_k(4, 3, 2), 0.5, 1e-12);
}

static void test_pass_k_averages_cases_that_have_k(void **state)
{
	const struct stats_case v[] = { { 2, 2 }, { 0, 2 }, { 1, 1 } };

	near(stats_mean_pass_at_k(v, 3, 1), 2.0 / 3, 1e-12);
	near(stats_mean_pass_at_k(v, 3, 2), 0.5, 1e-12);
	assert_true(isnan(stats_mean_pass_hat_k(v, 3, 3)));
}

/*
 * Student, Biometrika 6 (1908): ten patients' extra hours of sleep with two drugs. Mean 1.58,
 * t = 4.0621 with 9 degrees of freedom, 95 % interval 0.7001142 to 2.4598858 (as R's manual
 * page of t.test prints them). Hours are put on the scale of rates, 1000 attempts each.
 */
static void test_paired_difference(void **state)
{
	static const double first[] = { 1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4 };
	static const double second[] = { 0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0 };
	struct stats_case a[10], b[10];
	struct stats_difference d;

	for (int i = 0; i < 10; i++) {
		a[i] = (struct stats_case){ (unsigned int)lround(200 + 100 * first[i]), 1000 };
		b[i] = (struct stats_case){ (unsigned int)lround(200 + 100 * second[i]), 1000 };
	}
	stats_difference(a, b, 10, 0, &d);
	assert_int_equal(d.cases, 10);
	near(10 * d.difference, 1.58, 1e-9);
	near(d.difference / d.error, 4.0621, 5e-5);
	near(10 * d.interval.low, 0.7001142, 5e-8);
	near(10 * d.interval.high, 2.4598858, 5e-8);
	assert_false(d.by_scores);
	assert_true(d.enough);
}

/* Bloom, Evaluation Review 19 (1995): at 80 % power and 5 % (two-sided) 2.80 standard errors. */
static void test_detectable_difference(void **state)
{
	struct stats_case a[2000], b[2000];
	struct stats_difference d;

	for (unsigned int i = 0; i < 2000; i++) {
		a[i] = (struct stats_case){ i % 2, 1 };
		b[i] = (struct stats_case){ i % 3 == 0, 1 };
	}
	stats_difference(a, b, 2000, 0, &d);
	near(d.detectable / d.error, 2.80, 5e-3);
	stats_difference(a, b, 5, 0, &d);
	near(d.detectable / d.error, 2.776 + 0.941, 1e-3); /* t tables, 4 degrees of freedom */
}

/* Newcombe, Statistics in Medicine 17 (1998) 873-890, table II, method 10. */
static void test_newcombe(void **state)
{
	static const struct {
		struct stats_case a, b;
		double low, high;
	} table[] = {
		{ { 56, 70 }, { 48, 80 }, 0.0524, 0.3339 },
		{ { 9, 10 }, { 3, 10 }, 0.1705, 0.8090 },
		{ { 10, 10 }, { 0, 10 }, 0.6075, 1.0000 },
		{ { 5, 56 }, { 0, 29 }, -0.0381, 0.1926 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct stats_rate a, b;
		struct stats_range r;

		stats_rate(&table[i].a, 1, 0, &a);
		stats_rate(&table[i].b, 1, 0, &b);
		r = stats_newcombe(&a, &b);
		near(r.low, table[i].low, 5e-5);
		near(r.high, table[i].high, 5e-5);
	}
}

/* Cases that all differ alike have no spread; that must not make the interval a point. */
static void test_no_spread_is_no_certainty(void **state)
{
	const struct stats_case a[] = { { 3, 3 }, { 3, 3 }, { 3, 3 } };
	const struct stats_case b[] = { { 0, 3 }, { 0, 3 }, { 0, 3 } };
	struct stats_difference d;

	stats_difference(a, b, 3, 0, &d);
	near(d.difference, 1, 0);
	assert_true(d.by_scores && isnan(d.error) && isnan(d.detectable));
	assert_true(d.interval.low < 0.6 && d.interval.high == 1);
	stats_difference(a, b, 1, 0, &d);
	assert_true(d.by_scores && d.cases == 1 && d.interval.low < 0.6);
	stats_difference(a, b, 0, 0, &d);
	assert_true(isnan(d.difference) && !d.enough && d.cases == 0);
}

static void test_a_case_without_verdict_is_left_out(void **state)
{
	const struct stats_case a[] = { { 2, 2 }, { 0, 0 }, { 1, 2 } };
	const struct stats_case b[] = { { 1, 2 }, { 2, 2 }, { 0, 0 } };
	struct stats_difference d;
	struct stats_rate r;

	stats_difference(a, b, 3, 3, &d);
	assert_int_equal(d.cases, 1);
	near(d.difference, 0.5, 1e-12);
	assert_false(d.enough); /* two verdicts of each where three are needed */
	stats_rate(a, 3, 4, &r);
	assert_true(r.cases == 2 && r.n == 4 && r.passed == 3 && r.enough);
	stats_rate(a, 3, 5, &r);
	assert_false(r.enough);
	stats_rate(&a[1], 1, 0, &r);
	assert_true(isnan(r.rate) && !r.enough && r.interval.low == 0 && r.interval.high == 1);
}

/* Hake, American Journal of Physics 66 (1998), equation 1: <g> = (post - pre) / (1 - pre). */
static void test_gain(void **state)
{
	near(stats_gain(0.44, 0.63), 0.34, 5e-3);
	near(stats_gain(0.5, 0.5), 0, 0);
	near(stats_gain(0.5, 1), 1, 1e-12);
	near(stats_gain(0.5, 0), -1, 1e-12);
	assert_true(isnan(stats_gain(1, 0.5)));
}

/*
 * Kish, Survey Sampling (1965): with clusters of size m whose members are alike the design
 * effect is m, so n attempts are worth their number of cases; alone, or without repeats, an
 * attempt is worth one.
 */
static void test_repeats_count_for_less(void **state)
{
	struct stats_case v[40];
	struct stats_rate r, plain;

	for (unsigned int i = 0; i < 40; i++) /* always, or never */
		v[i] = (struct stats_case){ i % 2 ? 5 : 0, 5 };
	stats_rate(v, 40, 0, &r);
	near(r.effective, 40, 1e-9);
	near(r.rate, 0.5, 0);
	near(r.interval.low, stats_wilson(20, 40).low, 1e-12);
	for (unsigned int i = 0; i < 40; i++) /* every case is a coin: no case differs */
		v[i] = (struct stats_case){ i % 4 == 0 ? 1 : i % 4 == 1 ? 3 : 2, 4 };
	stats_rate(v, 40, 0, &r);
	near(r.effective, 160, 1e-9);
	stats_rate(v, 1, 0, &r);
	near(r.effective, 4, 0);
	for (unsigned int i = 0; i < 40; i++)
		v[i] = (struct stats_case){ i < 30, 1 };
	stats_rate(v, 40, 0, &r);
	plain.interval = stats_wilson(30, 40);
	near(r.effective, 40, 0);
	near(r.interval.high, plain.interval.high, 1e-12);
}

/* One failure less must not make the lower end of the interval worse. */
static void test_more_passes_never_lower_the_interval(void **state)
{
	double last = -1;

	for (unsigned int passes = 0; passes <= 60; passes++) {
		struct stats_case v[20];
		struct stats_rate r;

		for (unsigned int i = 0; i < 20; i++) {
			unsigned int left = passes > 3 * i ? passes - 3 * i : 0;

			v[i] = (struct stats_case){ left > 3 ? 3 : left, 3 };
		}
		stats_rate(v, 20, 0, &r);
		assert_true(r.effective >= 20 - 1e-9 && r.effective <= 60 + 1e-9);
		if (r.interval.low < last - 1e-9)
			fail_msg("%u passes: %.4f after %.4f", passes, r.interval.low, last);
		last = r.interval.low;
	}
}

/*
 * NIST/SEMATECH e-Handbook, 6.2.6: p1 0.01, p2 0.10, alpha 0.05, beta 0.10 give the lines
 * -0.939 + 0.0397 n and 1.205 + 0.0397 n; and, from its table, nothing is accepted before the
 * 24th item, and the first two items are enough to reject.
 */
static void test_sequential(void **state)
{
	struct stats_lines l = stats_sequential_lines(0.01, 0.10, 0.05, 0.10);

	near(l.below, -0.939, 5e-4);
	near(l.above, 1.205, 5e-4);
	near(l.slope, 0.0397, 5e-5);
	assert_int_equal(stats_sequential(0, 23, 0.01, 0.10, 0.05, 0.10), STATS_CONTINUE);
	assert_int_equal(stats_sequential(0, 24, 0.01, 0.10, 0.05, 0.10), STATS_BELOW);
	assert_int_equal(stats_sequential(1, 2, 0.01, 0.10, 0.05, 0.10), STATS_CONTINUE);
	assert_int_equal(stats_sequential(2, 2, 0.01, 0.10, 0.05, 0.10), STATS_ABOVE);
	assert_int_equal(stats_sequential(2, 19, 0.01, 0.10, 0.05, 0.10), STATS_ABOVE);
	assert_int_equal(stats_sequential(2, 21, 0.01, 0.10, 0.05, 0.10), STATS_CONTINUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_wilson),
		cmocka_unit_test(test_pass_k_counts_draws),
		cmocka_unit_test(test_pass_at_k_of_many),
		cmocka_unit_test(test_pass_k_averages_cases_that_have_k),
		cmocka_unit_test(test_paired_difference),
		cmocka_unit_test(test_detectable_difference),
		cmocka_unit_test(test_newcombe),
		cmocka_unit_test(test_no_spread_is_no_certainty),
		cmocka_unit_test(test_a_case_without_verdict_is_left_out),
		cmocka_unit_test(test_gain),
		cmocka_unit_test(test_repeats_count_for_less),
		cmocka_unit_test(test_more_passes_never_lower_the_interval),
		cmocka_unit_test(test_sequential),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
