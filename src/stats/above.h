/**
 * The part of a histogram above a threshold: what a baseline of values is compared with when only
 * values above the threshold are looked at.
 */
#ifndef WEIR_STATS_ABOVE_H
#define WEIR_STATS_ABOVE_H

#include "stats/histogram.h"

#include <stdbool.h>

/**
 * A copy of `histogram` without the bins below the first edge at or above the threshold, and without
 * what is missing. Its mean and deviation are those of its bins' centres. Pure.
 * @param out_cut  That edge: values at or below it are not to be compared.
 * @return false if there is no such edge, or fewer than n_min values are left.
 */
bool weir_histogram_above(const struct weir_histogram *histogram, double threshold, uint64_t n_min,
                          struct weir_histogram *out, double *out_cut);

#endif
