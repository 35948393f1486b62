/**
 * Exact tests of rates: is something more frequent among live values than chance allows? All are
 * one-sided, hold for any sample size, and return a p-value in (0, 1], DBL_MIN for anything smaller.
 * Pure.
 */
#ifndef WEIR_STATS_RATE_H
#define WEIR_STATS_RATE_H

#include <stdint.h>

/**
 * Fisher's exact test: P(at least k of the n live values are marked), if the k + k_baseline marked
 * ones of all n + m were divided by chance. For missing values and new categories.
 * Requires k <= n and k_baseline <= m, n + m below 2^53. Cost: a few steps for each of the values in
 * the count's standard deviation, sqrt(n) / 2 at most.
 */
double weir_rate_p(uint64_t k, uint64_t n, uint64_t k_baseline, uint64_t m);

/** P(at least k of n live values lie above all m of the baseline), if both have one continuous
 *  distribution: n!/(n-k)! · (n+m-k)!/(n+m)!. For values out of range, one side. */
double weir_beyond_p(uint64_t k, uint64_t n, uint64_t m);

/** P(at least k of n), each with this chance, 0 < chance < 1: the upper tail of the binomial. */
double weir_binomial_p(uint64_t k, uint64_t n, double chance);

/** The standard normal's distribution function, and its inverse (1e-9 <= p <= 1 - 1e-9: to 1e-8). */
double weir_normal_cdf(double z);
double weir_normal_quantile(double p);

#endif
