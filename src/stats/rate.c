#include "stats/rate.h"

#include "base/macros.h"
#include "stats/permutation.h"

#include <math.h>

static double log_choose(uint64_t n, uint64_t k)
{
    return permutation_log_factorial(n) - permutation_log_factorial(k) -
           permutation_log_factorial(n - k);
}

double weir_rate_p(uint64_t k, uint64_t n, uint64_t k_baseline, uint64_t m)
{
    uint64_t marked = k + k_baseline, most = WEIR_MIN(marked, n);
    if (k == 0) {
        return 1;
    }
    /* Terms from i = k on, each from the one before. */
    double term =
        exp(log_choose(marked, k) + log_choose(n + m - marked, n - k) - log_choose(n + m, n));
    double sum = 0;
    for (uint64_t i = k; i <= most; i++) {
        sum += term;
        double left = (double)(m + n - marked) - (double)(n - i) + 1;
        term *= (double)(marked - i) * (double)(n - i) / ((double)(i + 1) * left);
        if (term < sum * 1e-17) {
            break;
        }
    }
    return fmin(sum, 1);
}

double weir_beyond_p(uint64_t k, uint64_t n, uint64_t m)
{
    return k == 0 ? 1
                  : exp(permutation_log_factorial(n) - permutation_log_factorial(n - k) +
                        permutation_log_factorial(n + m - k) - permutation_log_factorial(n + m));
}

double weir_binomial_p(uint64_t k, uint64_t n, double chance)
{
    if (k == 0) {
        return 1;
    }
    double term =
        exp(log_choose(n, k) + (double)k * log(chance) + (double)(n - k) * log1p(-chance));
    double sum = 0, odds = chance / (1 - chance);
    for (uint64_t i = k; i <= n; i++) {
        sum += term;
        term *= odds * (double)(n - i) / (double)(i + 1);
        /* Terms grow up to the mean: only behind it may they be left out. */
        if (term < sum * 1e-17 && (double)i > chance * (double)n) {
            break;
        }
    }
    return fmin(sum, 1);
}

double weir_normal_cdf(double z)
{
    return erfc(-z / M_SQRT2) / 2;
}

/* By Newton's steps on the distribution function, from Tukey's lambda: a tail's start is far off, and each step there gains about one deviation. */
double weir_normal_quantile(double p)
{
    double z = (pow(p, 0.135) - pow(1 - p, 0.135)) / 0.1975;
    for (int i = 0; i < 12; i++) {
        double density = exp(-z * z / 2) / sqrt(2 * M_PI);
        z -= (weir_normal_cdf(z) - p) / fmax(density, 1e-300);
    }
    return z;
}
