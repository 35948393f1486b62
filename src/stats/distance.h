/**
 * Distances between two histograms with the same edges (p = training, q = live), normalised to
 * proportions. They are for showing and for comparison with other products: none of them says
 * whether a difference is real, because each depends on the number of values; drift.h does.
 *
 * All return NaN if the edges differ or one side is empty.
 */
#ifndef WEIR_STATS_DISTANCE_H
#define WEIR_STATS_DISTANCE_H

#include "stats/histogram.h"

/** Population stability index Σ(q−p)·ln(q/p), proportions floored at 1e−4. */
double weir_distance_psi(const struct weir_histogram *p, const struct weir_histogram *q);

/** Jensen–Shannon distance: root of the divergence in bits, 0..1. */
double weir_distance_js(const struct weir_histogram *p, const struct weir_histogram *q);

/** Largest difference of the cumulative proportions (Kolmogorov–Smirnov on bins), 0..1. */
double weir_distance_ks(const struct weir_histogram *p, const struct weir_histogram *q);

/** Root of Σ(p−q)², the sum over bins (not their mean). */
double weir_distance_rmse(const struct weir_histogram *p, const struct weir_histogram *q);

/** Hellinger distance, 0..1. */
double weir_distance_hellinger(const struct weir_histogram *p, const struct weir_histogram *q);

/** MCenter's similarity Σpq/Σp² clipped to 1: 1 = alike. Blind to collapse; for comparison only. */
double weir_distance_mcenter(const struct weir_histogram *p, const struct weir_histogram *q);

#endif
