/**
 * Quantiles: exact on an array, and a sketch of bounded memory for latencies.
 *
 * The sketch is a log-linear histogram of unsigned integers (microseconds, nanoseconds, bytes):
 * exact below 64, above that 32 equal buckets per power of two. A quantile is the middle of its
 * bucket, within 1/64 (1.6 %) of a value that has exactly that rank; count, sum, minimum and
 * maximum are exact. 15 KiB, no allocation, mergeable in any order with the same result.
 */
#ifndef WEIR_STATS_QUANTILE_H
#define WEIR_STATS_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

/**
 * q-quantile (0 ≤ q ≤ 1) with linear interpolation between order statistics (numpy's and R's
 * default, type 7). Reorders `values`. NaN if n is 0 or a value is NaN. Cost: O(n) expected.
 */
double weir_quantile(double *values, size_t n, double q);

#define WEIR_SKETCH_BUCKETS (64 + 58 * 32)

struct weir_sketch {
    uint64_t n, min, max; /**< min is UINT64_MAX and max 0 while empty. */
    double sum;
    uint64_t counts[WEIR_SKETCH_BUCKETS];
};

void weir_sketch_init(struct weir_sketch *sketch);
void weir_sketch_add(struct weir_sketch *sketch, uint64_t value);
void weir_sketch_merge(struct weir_sketch *sketch, const struct weir_sketch *other);

/** The value of rank ⌈q·n⌉ (at least 1), within 1/64; exact for q = 0 and 1. 0 if empty. */
uint64_t weir_sketch_quantile(const struct weir_sketch *sketch, double q);

/** Mean; 0 if empty. */
double weir_sketch_mean(const struct weir_sketch *sketch);

#endif
