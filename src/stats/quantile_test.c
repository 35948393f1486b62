/* Expected numbers were computed with numpy.quantile; the sketch is compared with a sorted copy. */
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

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(the_sketch_is_within_its_stated_error_at_every_scale)
{
    enum { N = 20000 };

    static uint64_t values[N];
    static struct weir_sketch sketch;
    for (int scale = 0; scale < 60; scale += 4) {
        struct weir_rng rng;
        weir_rng_init(&rng, 5, (uint64_t)scale);
        weir_sketch_init(&sketch);
        for (int i = 0; i < N; i++) {
            double factor = exp(weir_rng_normal(&rng));
            values[i] = (uint64_t)(factor > 8 ? 8 : factor) << scale;
            values[i] += weir_rng_below(&rng, 1ull << scale);
            weir_sketch_add(&sketch, values[i]);
        }
        qsort(values, N, sizeof *values, compare_u64);
        static const double q[] = {0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
        for (size_t i = 0; i < sizeof q / sizeof q[0]; i++) {
            size_t rank = q[i] == 0 ? 1 : (size_t)ceil(q[i] * N);
            double exact = (double)values[rank - 1];
            double got = (double)weir_sketch_quantile(&sketch, q[i]);
            ck_assert_msg(fabs(got - exact) <= exact / 64, "scale %d q %g: %g, exact %g", scale,
                          q[i], got, exact);
        }
        ck_assert_uint_eq(weir_sketch_quantile(&sketch, 0), values[0]);
        ck_assert_uint_eq(weir_sketch_quantile(&sketch, 1), values[N - 1]);
    }
}

END_TEST

START_TEST(merged_sketches_equal_one_sketch)
{
    static struct weir_sketch whole, a, b;
    weir_sketch_init(&whole);
    weir_sketch_init(&a);
    weir_sketch_init(&b);
    struct weir_rng rng;
    weir_rng_init(&rng, 6, 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t value = weir_rng_u64(&rng) >> weir_rng_below(&rng, 60);
        weir_sketch_add(&whole, value);
        weir_sketch_add(i % 3 == 0 ? &a : &b, value);
    }
    weir_sketch_merge(&a, &b);
    ck_assert_int_eq(memcmp(a.counts, whole.counts, sizeof a.counts), 0);
    ck_assert_uint_eq(a.min, whole.min);
    ck_assert_uint_eq(a.max, whole.max);
    ck_assert_uint_eq(a.n, whole.n);
    ck_assert_double_eq_tol(weir_sketch_mean(&a) / weir_sketch_mean(&whole), 1, 1e-9);
}

END_TEST

START_TEST(the_ends_of_the_range_have_their_buckets)
{
    static struct weir_sketch sketch;
    weir_sketch_init(&sketch);
    ck_assert_uint_eq(weir_sketch_quantile(&sketch, 0.5), 0);
    weir_sketch_add(&sketch, 0);
    weir_sketch_add(&sketch, UINT64_MAX);
    weir_sketch_add(&sketch, UINT64_MAX);
    ck_assert_uint_eq(weir_sketch_quantile(&sketch, 0.1), 0);
    double middle = (double)weir_sketch_quantile(&sketch, 0.5);
    ck_assert_double_ge(middle, 0.984 * (double)UINT64_MAX);
}

END_TEST

WEIR_TEST_MAIN("quantile", quantiles_are_numpys,
               selection_agrees_with_sorting_on_random_arrays_with_ties,
               no_values_or_nan_have_no_quantile,
               the_sketch_is_within_its_stated_error_at_every_scale,
               merged_sketches_equal_one_sketch, the_ends_of_the_range_have_their_buckets)
