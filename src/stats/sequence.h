/**
 * Sequence: a drift that is too slow or too small for any one window, found by adding up.
 *
 * Page's test (two-sided CUSUM; Page-Hinkley's is the same with the mean learned on the way). Each
 * value becomes the normal score of its bin, by the baseline's counts, so that under no drift it has
 * mean 0 and variance 1 whatever its distribution. Sums of (score − k) upward and (−score − k)
 * downward, never below 0, alarm at h. The allowance k is the largest shift that does not matter, and
 * beyond it a margin of a quarter of a deviation, and of 1/√m for a baseline of m values, whose own
 * mean is not known better. h follows from the margin and the mean number of values between false
 * alarms (Siegmund, Sequential Analysis, 1985): up to the shift that does not matter they come no
 * oftener.
 *
 * A shift of d deviations is found after about h/(d − k) values, one a little below k now and then. It
 * sees shifts of location alone; windows (drift.h) see the rest. It assumes independent values.
 */
#ifndef WEIR_STATS_SEQUENCE_H
#define WEIR_STATS_SEQUENCE_H

#include "stats/histogram.h"

#include <stdbool.h>

/** Values between false alarms, on average, unless said: a value a second: once in 12 days. */
#define WEIR_SEQUENCE_VALUES 1e6

/** Fields are private. */
struct weir_sequence {
    struct weir_histogram baseline;
    double score[WEIR_HISTOGRAM_MAX_BINS];
    double margin, allowance, limit, up, down;
    bool is_alarmed;
};

/**
 * @param shift_max       The largest shift that does not matter, in deviations; 0 or less: none.
 * @param values_between  Mean number of values between false alarms, at least 100; 0:
 *                        WEIR_SEQUENCE_VALUES.
 * @return INVALID if the baseline has fewer than WEIR_DRIFT_MIN_VALUES values or a number is
 *         out of range.
 */
weir_status weir_sequence_init(struct weir_sequence *sequence,
                               const struct weir_histogram *baseline, double shift_max,
                               double values_between, struct weir_error *err) WEIR_MUST_CHECK;

/** Add a live value (NaN: no effect). @return Is there an alarm? It ends when the sum that raised it
 *  has gone down to a quarter of its limit. Cost: a search among the bins. */
bool weir_sequence_add(struct weir_sequence *sequence, double value);

/** How far the larger sum is, in limits: 1 and more is an alarm. */
double weir_sequence_level(const struct weir_sequence *sequence);

/** How often a sum goes so far within n values if nothing that matters has changed; at most 1. */
double weir_sequence_p(const struct weir_sequence *sequence, uint64_t n);

#endif
