/**
 * Calibrate: the score from which a face counts as known, for a stated rate of false accepts.
 *
 * What would an unknown person get? Every gallery photo answers that for the others: its best score
 * against all *other* people is an impostor score. The threshold is the (1 − rate)-quantile of
 * these. Of n scores the largest few are all that is known about rare events, so where fewer than
 * 10 lie above the quantile it is taken from a tail: the scores above the 90 % point are fitted by
 * an exponential distribution (Pickands 1975: excesses over a high threshold are generalised
 * Pareto; shape 0 is on the safe side for cosines, which are bounded). With fewer than 20 scores,
 * mean + z(1 − rate) deviations.
 *
 * The people of the gallery were often trained on, and a network holds people it has seen further
 * apart than strangers: on real faces, the best scores of strangers lie half-way up to the genuine
 * ones. So the threshold is never below i + (g - i) * (GUARD_SHARE + GUARD_PER_SIGMA * z(1 -
 * rate)), i and g being the mean impostor and genuine score (a photo against the other photos of
 * the same person) and z the normal quantile. The two constants were chosen on seven splits of the
 * ORL faces, where 1 % asked for gave 0.3 to 1.2 % of strangers accepted and 81 to 96 % of known
 * people. It is not raised, beyond that guard, over the score that GENUINE_REFUSED_MAX of the known
 * people's own photos stay below: people enrolled since the last training may look alike to the
 * network, and a gallery that knows nobody until it is retrained would protect nothing. What the
 * stated rate asks for is then not reached; `quantile` says by how much, and the deployment's log
 * shows both.
 *
 * With one person there are no impostors, with nobody nothing: then THRESHOLD_BLIND, or the middle
 * between the genuine mean and 0 if that is higher. With one photo for each person there are no
 * genuine scores, and THRESHOLD_FLOOR is the least. The result lies in [THRESHOLD_FLOOR,
 * THRESHOLD_CEILING].
 */
#ifndef WEIR_PREDICT_CALIBRATE_H
#define WEIR_PREDICT_CALIBRATE_H

#include "base/status.h"
#include "predict/matcher.h"

#include <stddef.h>

#define GUARD_SHARE         0.42
#define GUARD_PER_SIGMA     0.14
#define GENUINE_REFUSED_MAX 0.1

#define THRESHOLD_BLIND   0.6
#define THRESHOLD_FLOOR   0.2
#define THRESHOLD_CEILING 0.99

/** At most so many photos are compared with all others: the cost is bounded, the estimate good. */
#define CALIBRATE_PROBES_MAX 4000

struct calibration {
    double threshold;
    double quantile;                    /**< Of the impostor scores alone; NaN without. */
    double genuine_mean, impostor_mean; /**< NaN without. */
    double genuine_low;                 /**< GENUINE_REFUSED_MAX quantile of genuine scores. */
    size_t n_genuine, n_impostor;
};

/** The score that a fraction `rate` of impostors reaches. Reorders `scores`. NaN if n is 0. Pure.
 */
double calibrate_quantile(double *scores, size_t n, double rate);

/** @return INVALID for a rate outside (0, 1); NOMEM. Cost: n² · dim multiply-adds, bounded. */
weir_status calibrate(const struct templates *templates, double rate, struct calibration *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
