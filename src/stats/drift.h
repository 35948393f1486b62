/**
 * Drift: does a window of live values come from the distribution the model was trained on?
 *
 * There is no threshold on a distance, because under "no drift" every distance grows as windows
 * shrink. The question is asked as a test with a false-alarm rate the user chooses, and it is exact
 * for the two sample sizes at hand, however small or skewed:
 *
 * - The window is counted with the baseline's bins (NaN is one bin more: missing values).
 * - Three statistics, each brought to a standard-normal scale: *location* (mean of bin scores),
 *   *spread* (log ratio of their variances, which sees a collapse or a stuck sensor that similarity
 *   scores reward) and *shape* (likelihood ratio over all bins). The largest is the test statistic.
 * - Its p-value comes from permutation: if nothing drifted, baseline and window are one sample
 *   divided by chance, so the window's counts are a draw from the pooled counts (multivariate
 *   hypergeometric). Draws are repeated, keyed by the seed and the number of the window, until 10
 *   are as extreme as what was seen (Besag and Clifford, Biometrika 78, 1991) or 10/rate are done.
 *   Under no drift P(p ≤ rate) ≤ rate by construction; so it is where a bound of the work ends the
 *   draws earlier, which makes p larger. What is far beyond all of the first draws is not drawn for
 *   any more: its p is told as if all others had been less extreme.
 * - Huge windows make trifles significant, so an effect is asked for as well: the bias-corrected
 *   size w = sqrt(max(0, G − degrees of freedom) / (nm/(n+m))), where w = 0.1 (the default floor,
 *   Cohen's "small") is about a mean shift of 0.1 σ.
 * - One alarm needs k of the last n windows (default 2 of 3).
 *
 * What it cannot see: a change inside one bin. What it assumes: values are independent; of video
 * take one value per person or per second, not per frame.
 */
#ifndef WEIR_STATS_DRIFT_H
#define WEIR_STATS_DRIFT_H

#include "stats/histogram.h"

#include <stdbool.h>

/** Fewer live or baseline values than this are not tested. */
#define WEIR_DRIFT_MIN_VALUES 20

struct weir_drift_config {
    double false_alarm_rate; /**< Per window, 1e-5 .. 0.2; 0 means 0.001. */
    double min_effect;       /**< Floor of w; 0 means 0.1, negative means no floor. */
    uint32_t window;         /**< Values per window, at least WEIR_DRIFT_MIN_VALUES; 0 means 200. */
    uint32_t confirm_k;      /**< Alarm when k … ; 0 means 2 */
    uint32_t confirm_n;      /**< … of the last n windows differ, n ≤ 32; 0 means 3. */
    uint64_t seed;           /**< Of the permutation draws. */
    double work_max;         /**< Of the draws, in steps of 3 to 6 ns; 0: no bound. */
};

/** The simplest statistic that reaches 80 % of the largest: location, spread, else shape. */
enum weir_drift_kind {
    WEIR_DRIFT_NONE,
    WEIR_DRIFT_LOCATION, /**< The mean moved. */
    WEIR_DRIFT_SPREAD,   /**< The variance changed: collapse, stuck sensor, noise. */
    WEIR_DRIFT_SHAPE,    /**< The form changed, or values went missing. */
};

/** "none", "location", "spread", "shape". */
const char *weir_drift_kind_name(enum weir_drift_kind kind);

struct weir_drift_report {
    uint64_t i_window;         /**< Counted from 0. */
    uint64_t n_values;         /**< In the window, with NaN. */
    double statistic;          /**< Largest of the three, in standard deviations. */
    double p_value;            /**< Smallest possible: 1 / (1 + 10/rate). */
    double effect;             /**< w */
    enum weir_drift_kind kind; /**< NONE if not drifted. */
    bool is_drifted;           /**< p ≤ rate and w ≥ floor. */
    bool is_confirmed; /**< Drifted in at least k of the last n windows, this one included. */
    double baseline_mean, baseline_stddev, live_mean, live_stddev;
    double work; /**< Of the draws; the last may go beyond work_max. */
    bool is_cut; /**< work_max ended them: with more, p_value may be smaller. */
};

/**
 * The test alone, on two histograms with the same edges.
 * @param i_window  Keys the permutation draws, and is copied into the report.
 * @return INVALID if the edges differ, a side has fewer than WEIR_DRIFT_MIN_VALUES values or the
 *         configuration is out of range. is_confirmed is false.
 * Cost: about 60 draws (0.1 ms) when nothing drifted, 256 when it did beyond doubt, up to 10/rate
 * draws (20 ms at 0.001) between, or work_max. A draw costs 20 steps for each occupied bin, and two
 * for each ball in the standard deviation of its count.
 */
weir_status weir_drift_test(const struct weir_histogram *baseline,
                            const struct weir_histogram *live,
                            const struct weir_drift_config *config, uint64_t i_window,
                            struct weir_drift_report *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Detector of one signal; 4 KiB in caller memory. Fields but `ended` are private. */
struct weir_drift {
    struct weir_drift_config config; /**< With the defaults filled in. */
    struct weir_histogram baseline, live;
    struct weir_histogram ended; /**< The last whole window. */
    uint64_t n_windows;
    uint32_t history; /**< Bit i: the window i windows ago differed. */
};

/** @return INVALID as weir_drift_test. The baseline is copied. */
weir_status weir_drift_init(struct weir_drift *drift, const struct weir_histogram *baseline,
                            const struct weir_drift_config *config,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Add a live value (NaN = missing). Returns true when this value ended a window; then `out` holds
 *  that window's report. */
bool weir_drift_add(struct weir_drift *drift, double value, struct weir_drift_report *out);

/**
 * Benjamini–Hochberg over the p-values of many signals: out_rejected[i] tells which differ at a
 * false discovery rate of q. Returns how many. `order` is scratch of n elements.
 */
size_t weir_drift_select(const double *p_values, size_t n, double q, size_t *order,
                         bool *out_rejected);

#endif
