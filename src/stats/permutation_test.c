/* Oracles: the C library's lgamma; the mass function multiplied out; plain drawing of balls. */
#include "stats/permutation.h"

#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

START_TEST(log_factorial_agrees_with_lgamma)
{
    for (uint64_t n = 0; n < 100000; n = n < 200 ? n + 1 : n * 2) {
        double expected = lgamma((double)n + 1);
        ck_assert_double_eq_tol(permutation_log_factorial(n), expected, 1e-11 * (1 + expected));
    }
}

END_TEST

/** C(K,k)·C(N−K,n−k)/C(N,n) by multiplication only. */
static double mass(unsigned total, unsigned marked, unsigned draws, unsigned k)
{
    if (k > marked || k > draws || draws - k > total - marked) {
        return 0;
    }
    double p = 1;
    for (unsigned i = 0; i < k; i++) { // first k marked, then the rest plain, times orderings
        p *= (double)(marked - i) / (total - i) * (draws - i) / (i + 1);
    }
    for (unsigned i = 0; i < draws - k; i++) {
        p *= (double)(total - marked - i) / (total - k - i);
    }
    return p;
}

START_TEST(hypergeometric_numbers_follow_their_mass_function)
{
    static const unsigned cases[][3] = {{10, 4, 3},   {50, 25, 20},   {200, 3, 100},
                                        {60, 55, 30}, {1000, 90, 40}, {2, 1, 1},
                                        {30, 30, 7},  {30, 0, 7},     {400, 200, 390}};

    enum { N = 40000 };

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        unsigned total = cases[c][0], marked = cases[c][1], draws = cases[c][2];
        static unsigned seen[1001];
        memset(seen, 0, sizeof seen);
        struct weir_rng rng;
        weir_rng_init(&rng, 3, c);
        for (int i = 0; i < N; i++) {
            seen[permutation_hypergeometric(&rng, total, marked, draws)]++;
        }
        double chi2 = 0, degrees = -1, rest_seen = 0, rest_expected = 0;
        for (unsigned k = 0; k <= draws; k++) {
            double expected = N * mass(total, marked, draws, k);
            if (expected < 10) {
                rest_seen += seen[k];
                rest_expected += expected;
            } else {
                chi2 += (seen[k] - expected) * (seen[k] - expected) / expected;
                degrees++;
            }
        }
        if (rest_expected > 5) {
            chi2 += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
            degrees++;
        } else {
            ck_assert_double_le(rest_seen, 20);
        }
        ck_assert_msg(chi2 <= degrees + 5 * sqrt(2 * degrees) + 5, "case %zu: chi2 %g, %g degrees",
                      c, chi2, degrees);
    }
}

END_TEST

START_TEST(a_draw_never_takes_what_is_not_there_and_takes_all_it_should)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 4, 0);
    for (int trial = 0; trial < 20000; trial++) {
        uint64_t pooled[8], out[8], total = 0, sum = 0;
        for (int i = 0; i < 8; i++) {
            pooled[i] = weir_rng_below(&rng, 1ull << weir_rng_below(&rng, 20));
            total += pooled[i];
        }
        uint64_t n_draws = weir_rng_below(&rng, total + 1);
        permutation_draw(&rng, pooled, 8, n_draws, out);
        for (int i = 0; i < 8; i++) {
            ck_assert_uint_le(out[i], pooled[i]);
            sum += out[i];
        }
        ck_assert_uint_eq(sum, n_draws);
    }
}

END_TEST

START_TEST(large_draws_have_the_right_mean_and_variance)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 9, 0);
    double total = 1e6, marked = 2.5e5, draws = 1e5, mean = 0, m2 = 0;

    enum { N = 4000 };

    for (int i = 1; i <= N; i++) {
        double x = (double)permutation_hypergeometric(&rng, 1000000, 250000, 100000);
        double delta = x - mean;
        mean += delta / i;
        m2 += delta * (x - mean);
    }
    double p = marked / total, variance = draws * p * (1 - p) * (total - draws) / (total - 1);
    ck_assert_double_eq_tol(mean, draws * p, 5 * sqrt(variance / N));
    ck_assert_double_eq_tol(m2 / (N - 1) / variance, 1, 5 * sqrt(2.0 / N));
}

END_TEST

WEIR_TEST_MAIN("permutation", log_factorial_agrees_with_lgamma,
               hypergeometric_numbers_follow_their_mass_function,
               a_draw_never_takes_what_is_not_there_and_takes_all_it_should,
               large_draws_have_the_right_mean_and_variance)
