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

#include <stdbool.h>

/** Population stability index Σ(q−p)·ln(q/p), proportions floored at 1e−4. */
double weir_distance_psi(const struct weir_histogram *p, const struct weir_histogram *q);

/** Jensen–Shannon distance: root of the divergence in bits, 0..1. */
double weir_distance_js(const struct weir_histogram *p, const struct weir_histogram *q);

/** Largest difference of the cumulative proportions (Kolmogorov–Smirnov on bins), 0..1. */
double weir_distance_ks(const struct weir_histogram *p, const struct weir_histogram *q);

/** Hellinger distance, 0..1. */
double weir_distance_hellinger(const struct weir_histogram *p, const struct weir_histogram *q);

/** MCenter's similarity Σpq/Σp² clipped to 1: 1 = alike. Blind to collapse; for comparison only. */
double weir_distance_mcenter(const struct weir_histogram *p, const struct weir_histogram *q);

/** Wasserstein's distance of order 1 between the bins' centres, in baseline standard deviations; an
 *  outer bin's centre is its neighbour's width outside its edge. NaN if the baseline has none. */
double weir_distance_wasserstein(const struct weir_histogram *p, const struct weir_histogram *q);

/** Pearson's chi-square of the two rows of counts (homogeneity), over occupied bins. */
double weir_distance_chi2(const struct weir_histogram *p, const struct weir_histogram *q);

struct weir_distance {
    const char *name;
    bool is_similarity; /**< Smaller is farther. */
    double (*of)(const struct weir_histogram *p, const struct weir_histogram *q);
};

extern const struct weir_distance weir_distances[];
extern const size_t weir_n_distances;

/**
 * The limit that a distance passes with this chance if nothing has changed, for these numbers of
 * values and these bins: the null quantile, from 10 / rate draws of the pooled counts (drift.h says
 * why). For a similarity the lower one.
 *
 * @param rate  0.0001 to 0.5.
 * @return NaN if the distance is, for another rate, and where memory is out.
 * Cost: about 1 us for each draw and distance.
 */
double weir_distance_limit(const struct weir_distance *distance,
                           const struct weir_histogram *baseline, const struct weir_histogram *live,
                           double rate, uint64_t seed);

#endif
