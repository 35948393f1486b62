/**
 * Exact tests of rates: is something more frequent among live values than chance allows? All are
 * one-sided, hold for any sample size, and return a p-value in (0, 1]. Pure.
 */
#ifndef WEIR_STATS_RATE_H
#define WEIR_STATS_RATE_H

#include <stdint.h>

/**
 * Fisher's exact test: P(at least k of the n live values are marked), if the k + k_baseline marked
 * ones of all n + m were divided by chance. For missing values and new categories.
 * Requires k <= n and k_baseline <= m. Cost: n multiplications at most.
 */
double weir_rate_p(uint64_t k, uint64_t n, uint64_t k_baseline, uint64_t m);

/** P(at least k of n live values lie above all m of the baseline), if both have one continuous
 *  distribution: n!/(n-k)! · (n+m-k)!/(n+m)!. For values out of range, one side. */
double weir_beyond_p(uint64_t k, uint64_t n, uint64_t m);

/** P(at least k of n), each with this chance: the upper tail of the binomial. */
double weir_binomial_p(uint64_t k, uint64_t n, double chance);

/** The standard normal's distribution function, and its inverse (0 < p < 1). */
double weir_normal_cdf(double z);
double weir_normal_quantile(double p);

#endif
