#include "stats/above.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

#define N 5000

START_TEST(what_is_kept_is_what_lies_above_the_cut)
{
    static double values[N];
    struct weir_rng rng;
    struct weir_histogram all, kept;
    double cut;
    weir_rng_init(&rng, 5, 0);
    for (size_t i = 0; i < N; i++) {
        values[i] = 0.7 + 0.1 * weir_rng_normal(&rng);
    }
    ck_assert_int_eq(weir_histogram_from_values(&all, values, N), WEIR_OK);
    for (double threshold = 0.3; threshold < 0.75; threshold += 0.03) {
        double n = 0, sum = 0, squares = 0;
        ck_assert(weir_histogram_above(&all, threshold, 20, &kept, &cut));
        ck_assert_double_ge(cut, fmin(threshold, all.edges[0]));
        for (size_t i = 0; i < N; i++) {
            n += values[i] > cut;
            sum += values[i] > cut ? values[i] : 0;
            squares += values[i] > cut ? values[i] * values[i] : 0;
        }
        ck_assert_double_eq((double)kept.n, n);
        for (uint32_t i = 0; i < kept.n_bins; i++) {
            ck_assert(kept.counts[i] == 0 || kept.counts[i] == all.counts[i]);
        }
        /* The values' own moments, as far as bins of 0.036 know them. */
        ck_assert_double_eq_tol(kept.mean, sum / n, 0.004);
        ck_assert_double_eq_tol(weir_histogram_stddev(&kept), sqrt(squares / n - sum / n * sum / n),
                                0.006);
        ck_assert_double_ge(kept.min, cut);
    }
    /* Nothing, or too little, above. */
    ck_assert(!weir_histogram_above(&all, 0.99, 20, &kept, &cut));
    ck_assert(!weir_histogram_above(&all, 0.7, N, &kept, &cut));
}

END_TEST

WEIR_TEST_MAIN("above", what_is_kept_is_what_lies_above_the_cut)
