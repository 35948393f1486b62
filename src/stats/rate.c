#include "stats/rate.h"

#include "stats/permutation.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

static double log_choose(uint64_t n, uint64_t k)
{
    return permutation_log_factorial(n) - permutation_log_factorial(k) -
           permutation_log_factorial(n - k);
}

/* A distribution of a count: P(i), and P(i + 1) / P(i). */
struct law {
    double n, marked, all, chance;
    double (*log_p)(const struct law *law, double i);
    double (*ratio)(const struct law *law, double i);
    double least, most, mode;
};

/* The sum of P from i on, away from the mode, so that terms fall: what is left out is below a
 * rounding of the sum. A first term too small for a number makes the sum 0. */
static double sum_away(const struct law *law, double i, bool is_up)
{
    double term = exp(law->log_p(law, i)), sum = 0;
    while (term > sum * 1e-17 && i >= law->least && i <= law->most) {
        sum += term;
        term = is_up ? term * law->ratio(law, i) : term / law->ratio(law, i - 1);
        i += is_up ? 1 : -1;
    }
    return sum;
}

/* P(at least k). Below the mode the other tail is the smaller one, and the better known. */
static double upper_tail(const struct law *law, double k)
{
    if (k <= law->least) {
        return 1;
    }
    double sum = k > law->mode ? sum_away(law, k, true) : 1 - sum_away(law, k - 1, false);
    return fmin(fmax(sum, DBL_MIN), 1);
}

static double log_divided(const struct law *law, double i)
{
    uint64_t k = (uint64_t)i, n = (uint64_t)law->n, all = (uint64_t)law->all,
             marked = (uint64_t)law->marked;
    return log_choose(marked, k) + log_choose(all - marked, n - k) - log_choose(all, n);
}

static double ratio_divided(const struct law *law, double i)
{
    return (law->marked - i) * (law->n - i) / ((i + 1) * (law->all - law->marked - law->n + i + 1));
}

double weir_rate_p(uint64_t k, uint64_t n, uint64_t k_baseline, uint64_t m)
{
    double marked = (double)k + (double)k_baseline, all = (double)n + (double)m;
    const struct law law = {.n = (double)n,
                            .marked = marked,
                            .all = all,
                            .log_p = log_divided,
                            .ratio = ratio_divided,
                            .least = fmax(0, marked - (double)m),
                            .most = fmin(marked, (double)n),
                            .mode = floor(((double)n + 1) * (marked + 1) / (all + 2))};
    return upper_tail(&law, (double)k);
}

double weir_beyond_p(uint64_t k, uint64_t n, uint64_t m)
{
    double log_p = permutation_log_factorial(n) - permutation_log_factorial(n - k) +
                   permutation_log_factorial(n + m - k) - permutation_log_factorial(n + m);
    return k == 0 ? 1 : fmax(exp(log_p), DBL_MIN);
}

static double log_binomial(const struct law *law, double i)
{
    return log_choose((uint64_t)law->n, (uint64_t)i) + i * log(law->chance) +
           (law->n - i) * log1p(-law->chance);
}

static double ratio_binomial(const struct law *law, double i)
{
    return law->chance / (1 - law->chance) * (law->n - i) / (i + 1);
}

double weir_binomial_p(uint64_t k, uint64_t n, double chance)
{
    const struct law law = {.n = (double)n,
                            .chance = chance,
                            .log_p = log_binomial,
                            .ratio = ratio_binomial,
                            .most = (double)n,
                            .mode = floor(((double)n + 1) * chance)};
    return upper_tail(&law, (double)k);
}

double weir_normal_cdf(double z)
{
    return erfc(-z / M_SQRT2) / 2;
}

/* Newton's steps on the distribution function, from Tukey's lambda. In a tail this starts too near to
 * the middle (by 1.2 at 1e-9), and a step gains a fifth of a deviation at first: twelve are enough. */
double weir_normal_quantile(double p)
{
    double z = (pow(p, 0.135) - pow(1 - p, 0.135)) / 0.1975;
    for (int i = 0; i < 12; i++) {
        double density = exp(-z * z / 2) / sqrt(2 * M_PI);
        z -= (weir_normal_cdf(z) - p) / fmax(density, 1e-300);
    }
    return z;
}
