/* Expected numbers were computed with numpy 2.4 and scipy 1.17 (jensenshannon, norm). */
#include "stats/distance.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

static struct weir_histogram with_counts(const uint64_t *counts)
{
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_init_linear(&hist, 0, 7, 9), WEIR_OK);
    for (int i = 0; i < 9; i++) {
        hist.counts[i] = counts[i];
        hist.n += counts[i];
    }
    return hist;
}

static const uint64_t p_counts[] = {5, 12, 30, 80, 120, 90, 40, 13, 6};
static const uint64_t q_counts[] = {1, 3, 10, 20, 25, 40, 30, 22, 0};

START_TEST(each_distance_is_what_scipy_says)
{
    struct weir_histogram p = with_counts(p_counts), q = with_counts(q_counts);
    ck_assert_double_eq_tol(weir_distance_psi(&p, &q), 0.43762498379055653, 1e-12);
    ck_assert_double_eq_tol(weir_distance_js(&p, &q), 0.26426476928046844, 1e-12);
    ck_assert_double_eq_tol(weir_distance_ks(&p, &q), 0.23300889691618165, 1e-12);
    ck_assert_double_eq_tol(weir_distance_hellinger(&p, &q), 0.22745284499585022, 1e-12);
    ck_assert_double_eq_tol(weir_distance_mcenter(&p, &q), 0.8275940552002824, 1e-12);
    /* By hand in Python: the sum over occupied bins, and over the steps between their centres. */
    p.mean = 3, p.m2 = 4 * (double)(p.n - 1); /* a deviation of 2 */
    ck_assert_double_eq_tol(weir_distance_chi2(&p, &q), 44.46747651332032, 1e-9);
    ck_assert_double_eq_tol(weir_distance_wasserstein(&p, &q), 0.6957906883403572 / 2, 1e-12);
}

END_TEST

START_TEST(a_histogram_is_at_no_distance_from_itself)
{
    struct weir_histogram p = with_counts(p_counts);
    ck_assert_double_eq(weir_distance_psi(&p, &p), 0);
    ck_assert_double_eq(weir_distance_js(&p, &p), 0);
    ck_assert_double_eq(weir_distance_ks(&p, &p), 0);
    ck_assert_double_eq(weir_distance_hellinger(&p, &p), 0);
    ck_assert_double_eq(weir_distance_mcenter(&p, &p), 1);
}

END_TEST

/* What fixed limits get wrong: at 50 values most windows without any drift have a PSI above 0.1. */
START_TEST(a_limit_from_the_null_distribution_is_passed_as_often_as_asked)
{
    enum { TRIALS = 150 };

    int n_fixed = 0, n_passed[16] = {0};
    double values[1000];
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct weir_rng rng;
        struct weir_histogram p, q;
        weir_rng_init(&rng, 17, trial);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
            values[i] = weir_rng_normal(&rng);
        }
        ck_assert_int_eq(weir_histogram_from_values(&p, values, WEIR_ARRAY_LEN(values)), WEIR_OK);
        weir_histogram_init_like(&q, &p);
        for (int i = 0; i < 50; i++) {
            weir_histogram_add(&q, weir_rng_normal(&rng));
        }
        n_fixed += weir_distance_psi(&p, &q) > 0.1;
        for (size_t k = 0; k < weir_n_distances; k++) {
            double value = weir_distances[k].of(&p, &q);
            double limit = weir_distance_limit(&weir_distances[k], &p, &q, 0.05, trial);
            n_passed[k] += weir_distances[k].is_similarity ? value < limit : value > limit;
        }
    }
    ck_assert_int_gt(n_fixed, TRIALS / 2);
    for (size_t k = 0; k < weir_n_distances; k++) {
        printf("%s: %d of %d\n", weir_distances[k].name, n_passed[k], TRIALS);
        ck_assert_msg(n_passed[k] <= 20, "%s: %d of %d at 0.05", weir_distances[k].name,
                      n_passed[k], TRIALS); /* 7.5 and four deviations */
        ck_assert_msg(n_passed[k] >= 2, "%s: %d of %d at 0.05", weir_distances[k].name, n_passed[k],
                      TRIALS); /* 7.5 and two, and there are ties */
    }
}

END_TEST

START_TEST(nothing_can_be_said_about_other_edges_or_no_values)
{
    struct weir_histogram p = with_counts(p_counts), other = p, empty = p;
    other.edges[0] -= 1;
    weir_histogram_init_like(&empty, &p);
    ck_assert_double_nan(weir_distance_psi(&p, &other));
    ck_assert_double_nan(weir_distance_ks(&p, &empty));
    ck_assert_double_nan(weir_distance_mcenter(&empty, &p));
    ck_assert_double_nan(weir_distance_js(&p, &empty));
    ck_assert_double_nan(weir_distance_hellinger(&p, &other));
}

END_TEST

WEIR_TEST_MAIN("distance", each_distance_is_what_scipy_says,
               a_histogram_is_at_no_distance_from_itself,
               a_limit_from_the_null_distribution_is_passed_as_often_as_asked,
               nothing_can_be_said_about_other_edges_or_no_values)
