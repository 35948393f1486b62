#include "ion/feedback.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <math.h>

/* What stores and counts is tested through the API (api/ion/feedback_test.c); here the interval. */

START_TEST(nothing_known_is_no_accuracy)
{
    struct weir_accuracy none = weir_accuracy_of(0, 0);
    ck_assert(isnan(none.accuracy));
    ck_assert_double_eq(none.low, 0);
    ck_assert_double_eq(none.high, 1);
}

END_TEST

/* Values of R: prop.test(x, n, correct = FALSE)$conf.int */
START_TEST(the_interval_is_wilsons)
{
    struct weir_accuracy half = weir_accuracy_of(10, 5);
    ck_assert_double_eq_tol(half.low, 0.2365931, 1e-6);
    ck_assert_double_eq_tol(half.high, 0.7634069, 1e-6);
    struct weir_accuracy all = weir_accuracy_of(10, 10);
    ck_assert_double_eq_tol(all.low, 0.7224672, 1e-6);
    ck_assert_double_eq_tol(all.high, 1, 1e-12);
}

END_TEST

/* Of many draws about 95 % have the true share in their interval. */
START_TEST(the_interval_covers_the_truth_as_often_as_it_says)
{
    uint64_t seed = 5;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    int n_covered = 0;
    const int n_trials = 4000;
    for (int i = 0; i < n_trials; i++) {
        int64_t n_right = 0;
        for (int k = 0; k < 200; k++) {
            n_right += weir_rng_f64(&rng) < 0.9;
        }
        struct weir_accuracy one = weir_accuracy_of(200, n_right);
        n_covered += one.low <= 0.9 && 0.9 <= one.high;
    }
    ck_assert_double_ge((double)n_covered / n_trials, 0.93);
    ck_assert_double_le((double)n_covered / n_trials, 0.97);
}

END_TEST

WEIR_TEST_MAIN("feedback", nothing_known_is_no_accuracy, the_interval_is_wilsons,
               the_interval_covers_the_truth_as_often_as_it_says)
