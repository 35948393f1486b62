/* The formula against the integral that it is, numbers of SciPy, and what it promises by simulation. */
#include "stats/ab.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static struct weir_ab_arm rate(int64_t n, int64_t k)
{
    double p = (double)k / (double)n;
    return (struct weir_ab_arm){n, p, (double)n * p * (1 - p)};
}

/* scipy.stats.norm.sf of the z of a difference of 30 of 100 and 45 of 250, whose larger variance is that
 * of each arm's own: 0.3 0.7 / 99 + 0.18 0.82 / 249. */
START_TEST(a_single_look_is_the_z_test)
{
    struct weir_ab_arm first = rate(100, 30), second = rate(250, 45);
    struct weir_ab found = weir_ab_compare(&first, &second, 100, 0.95);
    ck_assert_double_eq_tol(found.difference, 0.12, 1e-12);
    ck_assert_double_eq_tol(found.uplift, 2.0 / 3, 1e-12);
    ck_assert_double_eq_tol(found.z, 2.3034440515222694, 1e-9);
    ck_assert_double_eq_tol(found.p, 0.010626935818729099, 1e-9);
}

END_TEST

/** exp(theta d / V - theta^2 / 2V) over theta > 0, weighed by a normal density of variance rho V, by
 *  Simpson's rule; in units of sqrt(V), with d = z. */
static double integrated(double z, double rho)
{
    enum { N = 40000 };

    double tau = sqrt(rho), end = 14 * tau, h = end / N, sum = 0;
    for (int i = 0; i <= N; i++) {
        double t = i * h;
        double value = 2 * exp(t * z - t * t / 2 - t * t / (2 * rho)) / (tau * sqrt(2 * M_PI));
        sum += value * (i == 0 || i == N ? 1 : i % 2 == 1 ? 4 : 2);
    }
    return sum * h / 3;
}

START_TEST(evidence_is_the_integral_over_likelihood_ratios)
{
    uint64_t seed = 23;
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 300; i++) {
        int64_t n1 = 20 + (int64_t)weir_rng_below(&rng, 2000),
                n2 = 20 + (int64_t)weir_rng_below(&rng, 2000);
        struct weir_ab_arm first = {n1, weir_rng_normal(&rng) / 10, (double)n1 * 1.5},
                           second = {n2, weir_rng_normal(&rng) / 10, (double)n2};
        double scale = 10 + 400 * weir_rng_f64(&rng);
        struct weir_ab found = weir_ab_compare(&first, &second, scale, 0.9);
        double rho = (double)n1 * (double)n2 / (double)(n1 + n2) / (scale / 2);
        double better = fmin(1, 1 / integrated(found.z, rho)),
               worse = fmin(1, 1 / integrated(-found.z, rho));
        ck_assert_double_le(fabs(found.p_better / better - 1), 1e-6);
        ck_assert_double_le(fabs(found.p_worse / worse - 1), 1e-6);
    }
}

END_TEST

START_TEST(of_the_arms_changed_about_all_is_the_other_way_round)
{
    struct weir_ab_arm first = rate(400, 90), second = rate(300, 50);
    struct weir_ab one = weir_ab_compare(&first, &second, 50, 0.95),
                   other = weir_ab_compare(&second, &first, 50, 0.95);
    ck_assert_double_eq_tol(one.z, -other.z, 1e-12);
    ck_assert_double_eq_tol(one.p_better, other.p_worse, 1e-12);
    ck_assert_double_eq_tol(one.low, -other.high, 1e-12);
}

END_TEST

START_TEST(where_nothing_can_be_said_nothing_is)
{
    const struct weir_ab_arm arms[] = {{0, 0, 0}, {1, 3, 0}, {50, 1, 0}, {50, 0, 0}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(arms); i++) {
        struct weir_ab found = weir_ab_compare(&arms[i], &arms[i], 10, 0.95);
        ck_assert_double_eq(found.z, 0);
        ck_assert_double_eq(found.p_better, 1);
        ck_assert_double_eq(found.p_worse, 1);
        ck_assert(isinf(found.low) && isinf(found.high));
    }
    struct weir_ab_arm far = {1000, 1e6, 10}, near = {1000, 0, 10}; /* nothing overflows */
    ck_assert_double_lt(weir_ab_compare(&far, &near, 10, 0.95).p_better, 1e-100);
    ck_assert_double_eq(weir_ab_compare(&near, &far, 10, 0.95).p_better, 1);
}

END_TEST

/* ---- by simulation ---------------------------------------------------------------------------- */

#define LOOKS_UP_TO 20 /* times min_samples, in the smaller arm */

struct setup {
    double first, second; /**< True rates; or means of numbers, if is_normal. */
    double share;         /**< Of the first. */
    int64_t min_samples;
    bool is_normal;
    double spread; /**< Of the first's numbers; the second's is 1. */
};

static double draw(struct weir_rng *rng, const struct setup *setup, bool is_first)
{
    double mean = is_first ? setup->first : setup->second;
    return setup->is_normal ? mean + (is_first ? setup->spread : 1) * weir_rng_normal(rng)
                            : (double)(weir_rng_f64(rng) < mean);
}

/** Look at each sample. *out_fixed: the plain z-test would have promoted at some look. */
static bool is_promoted(struct weir_rng *rng, const struct setup *setup, double alpha,
                        bool *out_fixed, bool *out_covers)
{
    struct weir_ab_arm arms[2] = {{0, 0, 0}, {0, 0, 0}};
    bool promoted = false;
    double truth = setup->first - setup->second;
    while (WEIR_MIN(arms[0].n, arms[1].n) < LOOKS_UP_TO * setup->min_samples) {
        bool is_first = weir_rng_f64(rng) < setup->share;
        struct weir_ab_arm *arm = &arms[!is_first];
        double x = draw(rng, setup, is_first), from = x - arm->mean;
        arm->n++;
        arm->mean += from / (double)arm->n;
        arm->m2 += from * (x - arm->mean);
        if (WEIR_MIN(arms[0].n, arms[1].n) >= setup->min_samples) {
            struct weir_ab found =
                weir_ab_compare(&arms[0], &arms[1], (double)setup->min_samples, 1 - alpha);
            promoted = promoted || found.p_better <= alpha;
            *out_fixed = *out_fixed || found.p <= alpha;
            *out_covers = *out_covers && found.low <= truth && truth <= found.high;
        }
    }
    return promoted;
}

START_TEST(a_candidate_that_is_no_better_is_seldom_promoted_though_each_sample_is_looked_at)
{
    static const struct setup setups[] = {
        {0.5, 0.5, 0.5, 100, false, 0},  {0.05, 0.05, 0.5, 100, false, 0},
        {0.95, 0.95, 0.2, 50, false, 0}, {0.02, 0.02, 0.1, 100, false, 0},
        {0.3, 0.3, 0.9, 50, false, 0},   {0.25, 0.3, 0.5, 100, false, 0},
        {0, 0, 0.5, 50, true, 1},        {0, 0, 0.2, 50, true, 3},
        {0, 0, 0.8, 50, true, 0.3},
    };

    enum { N = 400 };

    const double alpha = 0.1;
    uint64_t seed = 2026;
    int n_fixed_all = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(setups); i++) {
        struct weir_rng rng;
        weir_rng_init(&rng, seed, i);
        int n = 0, n_fixed = 0, n_covers = 0;
        for (int k = 0; k < N; k++) {
            bool fixed = false, covers = true;
            n += is_promoted(&rng, &setups[i], alpha, &fixed, &covers);
            n_fixed += fixed;
            n_covers += covers;
        }
        printf("seed %llu, setup %zu: promoted %.3f, by the z-test %.3f, interval holds %.3f\n",
               (unsigned long long)seed, i, (double)n / N, (double)n_fixed / N,
               (double)n_covers / N);
        ck_assert_int_le(n, (int)(alpha * N));
        ck_assert_int_ge(n_covers, (int)((1 - alpha) * N));
        n_fixed_all += n_fixed;
    }
    /* Why it is not the z-test that decides. */
    ck_assert_int_gt(n_fixed_all, (int)(2 * alpha * N) * (int)WEIR_ARRAY_LEN(setups));
}

END_TEST

START_TEST(a_candidate_that_is_better_is_promoted)
{
    static const struct setup setups[] = {{0.4, 0.25, 0.5, 100, false, 0},
                                          {0.12, 0.04, 0.5, 100, false, 0},
                                          {0.3, 0, 0.5, 100, true, 1}};

    enum { N = 200 };

    uint64_t seed = 7;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(setups); i++) {
        struct weir_rng rng;
        weir_rng_init(&rng, seed, i);
        int n = 0;
        for (int k = 0; k < N; k++) {
            bool fixed = false, covers = true;
            n += is_promoted(&rng, &setups[i], 0.05, &fixed, &covers);
        }
        printf("seed %llu, setup %zu: promoted %.3f\n", (unsigned long long)seed, i, (double)n / N);
        ck_assert_int_ge(100 * n, 95 * N);
    }
}

END_TEST

WEIR_TEST_MAIN("ab", a_single_look_is_the_z_test, evidence_is_the_integral_over_likelihood_ratios,
               of_the_arms_changed_about_all_is_the_other_way_round,
               where_nothing_can_be_said_nothing_is,
               a_candidate_that_is_no_better_is_seldom_promoted_though_each_sample_is_looked_at,
               a_candidate_that_is_better_is_promoted)
