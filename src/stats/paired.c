#include "stats/paired.h"

#include "base/macros.h"
#include "stats/rate.h"

#include <float.h>
#include <math.h>

#define FRACTION_STEPS 10000

/** Keeps a factor of the continued fraction from 0. */
static double off_zero(double x)
{
    return fabs(x) < DBL_MIN ? DBL_MIN : x;
}

/** The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double x, double a, double b)
{
    double c = 1, d = 1 / off_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= FRACTION_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / off_zero(1 + even * d);
        c = off_zero(1 + even / c);
        value *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / off_zero(1 + odd * d);
        c = off_zero(1 + odd / c);
        value *= d * c;
        if (fabs(d * c - 1) < DBL_EPSILON) {
            break;
        }
    }
    return value;
}

/** The regularised incomplete beta function of x, given with y = 1 - x, which rounding may lose. */
static double beta_part(double x, double y, double a, double b)
{
    if (x <= 0) {
        return 0;
    }
    if (y <= 0) {
        return 1;
    }
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                     : 1 - front * beta_fraction(y, b, a) / b;
}

double weir_student_p(double t, double degrees)
{
    double square = t * t, sum = degrees + square;
    double tail = beta_part(degrees / sum, square / sum, degrees / 2, 0.5) / 2;
    double p = t > 0 ? tail : 1 - tail;
    return WEIR_MIN(WEIR_MAX(p, DBL_MIN), 1.0);
}

double weir_paired_p(uint64_t n, double mean, double m2, double margin)
{
    if (n < 2) {
        return 1;
    }
    double degrees = (double)n - 1, error = sqrt(m2 / degrees / (double)n);
    if (!(error > 0)) {
        return mean > margin ? DBL_MIN : 1;
    }
    return weir_student_p((mean - margin) / error, degrees);
}

double weir_mcnemar_p(uint64_t only_first, uint64_t only_second)
{
    uint64_t n = only_first + only_second;
    return n == 0 ? 1 : weir_binomial_p(only_first, n, 0.5);
}
