/** Quantiles of an array, exact. */
#ifndef WEIR_STATS_QUANTILE_H
#define WEIR_STATS_QUANTILE_H

#include <stddef.h>

/**
 * q-quantile (0 ≤ q ≤ 1) with linear interpolation between order statistics (numpy's and R's
 * default, type 7). Reorders `values`. NaN if n is 0 or a value is NaN. Cost: O(n) expected.
 */
double weir_quantile(double *values, size_t n, double q);

#endif
