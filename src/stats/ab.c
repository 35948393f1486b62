#include "stats/ab.h"

#include "base/macros.h"

#include <math.h>

/** Of the standard normal distribution, below x. */
static double phi(double x)
{
    return erfc(-x * M_SQRT1_2) / 2;
}

/** 1 / evidence, at most 1; by logarithms, which do not overflow. */
static double always_p(double z, double rho)
{
    double shrink = rho / (1 + rho);
    double below = phi(z * sqrt(shrink));
    double log_evidence = log(2 * below) - log1p(rho) / 2 + z * z * shrink / 2;
    return below > 0 && log_evidence > 0 ? exp(-log_evidence) : 1;
}

static double variance_of(const struct weir_ab_arm *first, const struct weir_ab_arm *second,
                          double difference)
{
    double n1 = (double)first->n, n2 = (double)second->n, n = n1 + n2;
    double about_all = first->m2 + second->m2 + n1 * n2 / n * difference * difference;
    double pooled = about_all / (n - 1) * (n / (n1 * n2));
    double own = first->m2 / (n1 - 1) / n1 + second->m2 / (n2 - 1) / n2;
    return WEIR_MAX(pooled, own);
}

struct weir_ab weir_ab_compare(const struct weir_ab_arm *first, const struct weir_ab_arm *second,
                               double scale, double confidence)
{
    struct weir_ab out = {.difference = first->mean - second->mean,
                          .uplift = NAN,
                          .p = 0.5,
                          .p_better = 1,
                          .p_worse = 1,
                          .low = -INFINITY,
                          .high = INFINITY};
    if (second->n > 0 && second->mean != 0) {
        out.uplift = out.difference / fabs(second->mean);
    }
    if (first->n < 2 || second->n < 2) {
        return out;
    }
    double n1 = (double)first->n, n2 = (double)second->n;
    double variance = variance_of(first, second, out.difference);
    if (!(variance > 0) || !isfinite(variance)) {
        return out;
    }
    double rho = n1 * n2 / (n1 + n2) / (scale / 2);
    double radius = sqrt(variance * (1 + rho) / rho * (log1p(rho) - 2 * log1p(-confidence)));
    out.z = out.difference / sqrt(variance);
    out.p = phi(-out.z);
    out.p_better = always_p(out.z, rho);
    out.p_worse = always_p(-out.z, rho);
    out.low = out.difference - radius;
    out.high = out.difference + radius;
    return out;
}
