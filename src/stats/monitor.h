/**
 * Monitor: everything that is asked of one signal of a stream, in the order of its values: is a window
 * of them drifted (drift.h), does a drift that is too slow for one add up (sequence.h), is it large
 * enough to matter for a signal of this kind? Replicas ask it of live frames, and a replay of what they
 * decided, so that both find the same.
 *
 * A few people at one door have vectors and looks of their own kind, though nothing is wrong: contrast,
 * sharpness and entropy need an effect of 0.3, in a window and added up, and embeddings to lie two
 * deviations farther out.
 */
#ifndef WEIR_STATS_MONITOR_H
#define WEIR_STATS_MONITOR_H

#include "stats/drift.h"
#include "stats/sequence.h"

#define WEIR_MONITOR_SEED        1    /**< Of the draws. */
#define WEIR_MONITOR_CAMERAS_MAX 1024 /**< The values of others are not looked at. */
#define WEIR_MONITOR_INTERVAL_MS 1000 /**< Of each camera one value, unless said. */

/** What is asked of a kind of signal. */
struct weir_signal {
    const char *name;
    /** Floor of a window's effect, and of a shift that is added up; 0: drift.h's. */
    double min_effect;
    double far_out; /**< Deviations that the mean must lie farther out, upwards; 0: not asked. */
};

/** score, brightness, contrast, sharpness, entropy, embedding. */
extern const struct weir_signal weir_signals[];
extern const size_t weir_n_signals;

/** The one of this name, or NULL. */
const struct weir_signal *weir_signal_find(const char *name);

/** Fields are private but for is_watched, is_drifted and drift. */
struct weir_monitor {
    const struct weir_signal *signal;
    bool is_watched; /**< There is a baseline of enough values. */
    bool is_drifted; /**< By the last window. */
    double cut;      /**< Only values above are looked at. */
    struct weir_drift drift;
    struct weir_sequence sequence;
};

/** A window ended. */
struct weir_monitor_report {
    struct weir_drift_report window;
    double level;          /**< Of what is added up: 1 and more is an alarm. */
    bool is_drifted;       /**< Confirmed or added up, and far out where that is asked. */
    bool is_change;        /**< It was not so by the window before. */
    const char *statistic; /**< The window's kind; "slow" if only what is added up says so. */
    double value,
        p_value; /**< The window's; of "slow" the level, and how often a sum goes so far in as
                                many values. */
};

/**
 * @param baseline   NULL or with too few values: the signal is not watched, which is no error.
 * @param threshold  Only values above it are compared, the cut being the baseline's first edge at or
 *                   above it, and with what the baseline has there (above.h). NaN: all.
 * @param config     Its min_effect, if not 0, is in place of the signal's.
 * @return INVALID as weir_drift_init; nothing is watched then.
 */
weir_status weir_monitor_init(struct weir_monitor *monitor, const struct weir_signal *signal,
                              const struct weir_histogram *baseline, double threshold,
                              const struct weir_drift_config *config,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Is it watched, and is the value (NaN: none) one that is looked at? */
bool weir_monitor_wants(const struct weir_monitor *monitor, double value);

/** A value that it wants; others have no effect. @return It ended a window: `out` tells; the window's
 *  histogram is in drift.ended. */
bool weir_monitor_add(struct weir_monitor *monitor, double value, struct weir_monitor_report *out);

/** Is a camera's value at now_ms to be counted, after one at last_ms? Also if time went back. */
bool weir_monitor_is_due(int64_t last_ms, int64_t now_ms, int64_t interval_ms);

#endif
