/**
 * Draws under "nothing drifted": internal to stats. If two samples are one sample divided by
 * chance, the counts of the smaller part are a draw without replacement from the pooled counts.
 */
#ifndef WEIR_STATS_PERMUTATION_H
#define WEIR_STATS_PERMUTATION_H

#include "base/rng.h"

/** ln(n!), relative error below 1e-12. */
double permutation_log_factorial(uint64_t n);

/**
 * How many of `n_draws` balls taken without replacement from `n_total`, `n_marked` of which are
 * marked, are marked. Requires n_marked, n_draws <= n_total. Exact up to double rounding, by
 * inversion from the mode outwards: one uniform number; cost O(standard deviation).
 */
uint64_t permutation_hypergeometric(struct weir_rng *rng, uint64_t n_total, uint64_t n_marked,
                                    uint64_t n_draws);

/** Divide `pooled` by chance: `out[i]` of bin i's balls go into a sample of `n_draws` in all. */
void permutation_draw(struct weir_rng *rng, const uint64_t *pooled, uint32_t n_bins,
                      uint64_t n_draws, uint64_t *out);

#endif
