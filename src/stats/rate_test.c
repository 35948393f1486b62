/* Expected numbers were computed with exact fractions (Python's fractions and math.comb). */
#include "stats/rate.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <math.h>

#define CLOSE(value, expected) ck_assert_double_le(fabs((value) / (expected)-1), 1e-9)

START_TEST(fishers_test_is_exact)
{
    CLOSE(weir_rate_p(3, 20, 1, 40), 0.10344827586206896);
    CLOSE(weir_rate_p(10, 50, 2, 1000), 1.4683404880076347e-12);
    CLOSE(weir_rate_p(1, 200, 0, 5000), 0.038461538461538464);
    CLOSE(weir_rate_p(200, 200, 10, 300), 7.314995961571818e-129);
    CLOSE(weir_rate_p(5, 5, 0, 5), 0.003968253968253968);
    ck_assert_double_eq(weir_rate_p(0, 5, 0, 5), 1);
    ck_assert_double_eq_tol(weir_rate_p(5, 5, 5, 5), 1, 1e-9);
}

END_TEST

START_TEST(values_beyond_all_of_training_are_as_rare_as_ranks_say)
{
    CLOSE(weir_beyond_p(1, 50, 1000), 0.047619047619047616);
    CLOSE(weir_beyond_p(5, 50, 1000), 2.0112153511983025e-07);
    CLOSE(weir_beyond_p(50, 50, 50), 9.911653021418339e-30);
    ck_assert_double_eq(weir_beyond_p(0, 50, 50), 1);
}

END_TEST

START_TEST(the_binomial_tail_is_exact)
{
    CLOSE(weir_binomial_p(3, 20, 0.01), 0.0010035761681001169);
    CLOSE(weir_binomial_p(9, 200, 0.01), 0.00021253677246794634);
    CLOSE(weir_binomial_p(150, 200, 0.5), 4.1965104378023807e-13);
    CLOSE(weir_binomial_p(1, 10, 0.25), 0.9436864852905273);
    ck_assert_double_eq(weir_binomial_p(0, 10, 0.25), 1);
}

END_TEST

/* Far below the mean a single term is smaller than any number, and their sum is nearly 1. The sum over
 * all terms, by the library's lgamma, is what to compare with. */
static double log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

static double summed_rate(int k, int n, int k_baseline, int m)
{
    double sum = 0;
    int marked = k + k_baseline;
    for (int i = k; i <= n && i <= marked; i++) {
        if (n - i <= n + m - marked) {
            sum += exp(log_choose(marked, i) + log_choose(n + m - marked, n - i) -
                       log_choose(n + m, n));
        }
    }
    return sum;
}

static double summed_binomial(int k, int n, double chance)
{
    double sum = 0;
    for (int i = k; i <= n; i++) {
        sum += exp(log_choose(n, i) + i * log(chance) + (n - i) * log1p(-chance));
    }
    return sum;
}

START_TEST(a_rate_far_below_the_baselines_is_no_evidence)
{
    static const int cases[][4] = {{1000, 10000, 5000, 10000}, {1, 10000, 9999, 10000},
                                   {9000, 10000, 9999, 10000}, {300, 1000, 700, 2000},
                                   {340, 1000, 660, 2000},     {3, 10, 7, 12},
                                   {400, 1000, 600, 2000},     {1, 10, 0, 10}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        const int *c = cases[i];
        double p = weir_rate_p((uint64_t)c[0], (uint64_t)c[1], (uint64_t)c[2], (uint64_t)c[3]);
        ck_assert_double_eq_tol(p / summed_rate(c[0], c[1], c[2], c[3]), 1, 1e-8);
    }
    for (int k = 1; k < 20000; k += 317) {
        double p = weir_binomial_p((uint64_t)k, 20000, 0.3), sum = summed_binomial(k, 20000, 0.3);
        ck_assert_msg(fabs(p - sum) <= 1e-7 * sum + 1e-300, "k %d: %g, not %g", k, p, sum);
    }
    ck_assert_double_eq(weir_rate_p(1000, 10000, 5000, 10000), 1);
    ck_assert_double_gt(weir_rate_p(10000, 10000, 0, 10000), 0);
    ck_assert_double_gt(weir_binomial_p(20000, 20000, 0.01), 0);
    ck_assert_double_gt(weir_beyond_p(10000, 10000, 1000000), 0);
}

END_TEST

START_TEST(the_normal_quantile_undoes_the_distribution)
{
    for (double p = 1e-6; p < 1; p += 0.01) {
        ck_assert_double_eq_tol(weir_normal_cdf(weir_normal_quantile(p)), p, 1e-10);
    }
    ck_assert_double_eq_tol(weir_normal_quantile(0.975), 1.959963984540054, 1e-9);
}

END_TEST

WEIR_TEST_MAIN("rate", fishers_test_is_exact,
               values_beyond_all_of_training_are_as_rare_as_ranks_say, the_binomial_tail_is_exact,
               a_rate_far_below_the_baselines_is_no_evidence,
               the_normal_quantile_undoes_the_distribution)
