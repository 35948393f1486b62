/* Expected numbers were computed with numpy.quantile. */
#include "stats/quantile.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdlib.h>

START_TEST(quantiles_are_numpys)
{
    static const double q[] = {0, .1, .25, .5, .77, .9, 1};
    static const double expected[] = {-4.5, -1.35, 0.5, 2.75, 5.965, 7.625, 11};
    for (int i = 0; i < 7; i++) {
        double values[] = {3.5, -1, 2, 2, 7.25, 0, 11, -4.5, 6, 5.5};
        ck_assert_double_eq_tol(weir_quantile(values, 10, q[i]), expected[i], 1e-12);
    }
}

END_TEST

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

START_TEST(selection_agrees_with_sorting_on_random_arrays_with_ties)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 11, 0);
    for (int trial = 0; trial < 3000; trial++) {
        size_t n = 1 + weir_rng_below(&rng, 40);
        double values[40], sorted[40];
        for (size_t i = 0; i < n; i++) {
            values[i] = sorted[i] = (double)weir_rng_below(&rng, 1 + (uint64_t)trial % 50);
        }
        qsort(sorted, n, sizeof *sorted, compare_doubles);
        size_t k = weir_rng_below(&rng, n);
        double q = n == 1 ? 0.5 : (double)k / (double)(n - 1);
        double rank = q * (double)(n - 1);
        size_t below = (size_t)rank;
        double expected = sorted[below];
        if (below + 1 < n) {
            expected += (rank - (double)below) * (sorted[below + 1] - sorted[below]);
        }
        ck_assert_double_eq_tol(weir_quantile(values, n, q), expected, 1e-9);
    }
}

END_TEST

START_TEST(no_values_or_nan_have_no_quantile)
{
    double values[] = {1, NAN, 2};
    ck_assert_double_nan(weir_quantile(values, 0, 0.5));
    ck_assert_double_nan(weir_quantile(values, 3, 0.5));
}

END_TEST

WEIR_TEST_MAIN("quantile", quantiles_are_numpys,
               selection_agrees_with_sorting_on_random_arrays_with_ties,
               no_values_or_nan_have_no_quantile)
