/**
 * Histogram with fixed edges, and the streaming mean and variance of what was added.
 *
 * n_bins bins have n_bins − 1 inner edges e[0] < e[1] < …: bin 0 is (−∞, e[0]], bin i is
 * (e[i−1], e[i]], the last is (e[n−2], +∞). NaN is counted apart. A value type: copy it freely.
 *
 * The usual form is 13 bins made from training data of mean μ and deviation σ: (−∞, μ−2σ], eleven
 * equal bins between, (μ+2σ, +∞); σ = 0 is taken as 0.05 (and as 0.05·|μ| where |μ| is so large
 * that the edges would coincide). Live data is then counted with the training edges.
 *
 * JSON: {"edges":[…],"counts":[…],"nan":n,"infinite":n,"mean":μ,"m2":Σ(x−μ)²,"min":…,"max":…}; min
 * and max are null while empty or infinite.
 */
#ifndef WEIR_STATS_HISTOGRAM_H
#define WEIR_STATS_HISTOGRAM_H

#include "base/json.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_HISTOGRAM_MAX_BINS    64
#define WEIR_HISTOGRAM_NORMAL_BINS 13

struct weir_histogram {
    uint32_t n_bins; /**< 2 .. WEIR_HISTOGRAM_MAX_BINS */
    double edges[WEIR_HISTOGRAM_MAX_BINS - 1];
    uint64_t counts[WEIR_HISTOGRAM_MAX_BINS];
    uint64_t n;     /**< Values counted, without NaN. */
    uint64_t n_nan; /**< NaN seen: "missing". */
    /** Of n: infinities, counted in the outer bins, left out of mean and m2. */
    uint64_t n_infinite;
    double mean;     /**< Of the finite values; 0 while there are none. */
    double m2;       /**< Σ(x − mean)², Welford. */
    double min, max; /**< Of the counted values; NaN while empty. */
};

/** Inner edges of the caller, strictly increasing and finite. @return INVALID. */
weir_status weir_histogram_init(struct weir_histogram *hist, const double *edges,
                                size_t n_edges) WEIR_MUST_CHECK;

/** n_bins bins: n_bins − 2 equal ones over [low, high] and the two outside. @return INVALID. */
weir_status weir_histogram_init_linear(struct weir_histogram *hist, double low, double high,
                                       uint32_t n_bins) WEIR_MUST_CHECK;

/** The 13-bin form around mean ± 2 sigma. @return INVALID if either is not finite. */
weir_status weir_histogram_init_normal(struct weir_histogram *hist, double mean,
                                       double sigma) WEIR_MUST_CHECK;

/** Same edges as `like`, nothing counted. */
void weir_histogram_init_like(struct weir_histogram *hist, const struct weir_histogram *like);

/** The 13-bin form of these values, with them counted: a baseline. @return INVALID without a finite
 *  value. */
weir_status weir_histogram_from_values(struct weir_histogram *hist, const double *values,
                                       size_t n) WEIR_MUST_CHECK;

void weir_histogram_add(struct weir_histogram *hist, double value);

/** Bin of a value that is not NaN. */
uint32_t weir_histogram_bin(const struct weir_histogram *hist, double value);

/** Centre of each bin (n_bins of them); an outer bin's is its neighbour's width outside its edge,
 *  which for the 13-bin form of normal data (2.36 σ) is the mean of what lies there. */
void weir_histogram_centres(const struct weir_histogram *hist, double *out);

/** Sample variance m2 / (n − 1), 0 for fewer than two values; and its root. */
double weir_histogram_variance(const struct weir_histogram *hist);
double weir_histogram_stddev(const struct weir_histogram *hist);

/** New JSON object (aborts if memory is out); json_decref it. */
json_t *weir_histogram_to_json(const struct weir_histogram *hist);

/** Only its form, {"edges":[…],"counts":[…]}: to draw it. As weir_histogram_to_json. */
json_t *weir_histogram_counts_json(const struct weir_histogram *hist);

/** Compact JSON text in the arena. */
char *weir_histogram_to_text(const struct weir_histogram *hist, struct weir_arena *arena);

/** @return INVALID naming the key; `out` is written only on success. */
weir_status weir_histogram_from_json(const json_t *value, struct weir_histogram *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_histogram_from_text(const char *text, size_t len, struct weir_histogram *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
