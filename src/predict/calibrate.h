/**
 * Calibrate: the score from which a face counts as known, for a stated rate of false accepts.
 *
 * What would an unknown person get? There are two ways to know.
 *
 * *By strangers*: photos of people who are neither enrolled nor trained on. The best score of each
 * in the gallery is what a stranger gets, and the threshold is the (1 - rate) quantile of these. Of
 * n scores the largest few are all that is known about rare events, so where those above the
 * quantile are of fewer than 10 people it is taken from a tail: the largest 5 % of the scores, at
 * least 10, are fitted by an exponential distribution (Pickands 1975: excesses over a high
 * threshold are generalised Pareto; shape 0 is on the safe side for cosines, which are bounded).
 * The mean excess is itself an estimate, from scores of m different people; photos of one person
 * are too alike to count apart. So the quantile is the predictive one, which a new score passes at
 * the stated rate on average over such estimates:
 *
 *     base + m * mean excess * ((share of the tail / rate)^(1/m) - 1)
 *
 * m is 8 at least; for large m this is base + mean excess * log(share of the tail / rate). With
 * fewer than 20 scores: mean + z(1 - rate) deviations, and not less than what the gallery gives.
 *
 * *By the gallery itself*, where there are no strangers: every gallery photo's best score against
 * all *other* people is an impostor score, and their quantile is the beginning. But the people of
 * the gallery were often trained on, and a network holds people it has seen further apart than
 * strangers: on real faces, the best scores of strangers lie half-way up to the genuine ones. So
 * the threshold is never below i + (g - i) * (GUARD_SHARE + GUARD_PER_SIGMA * z(1 - rate)), i and g
 * being the mean impostor and genuine score (a photo against the other photos of the same person)
 * and z the normal quantile. The two constants were chosen on seven splits of the ORL faces, where
 * 1 % asked for gave 0.3 to 1.2 % of strangers accepted. On other faces it can be far more: what
 * strangers get is not known then, and `expected_rate` says so. The threshold is not raised, beyond
 * that guard, over the score that GENUINE_REFUSED_MAX of the known people's own photos stay below:
 * people enrolled since the last training may look alike to the network, and a gallery that knows
 * nobody until it is retrained would protect nothing.
 *
 * With one person there are no impostors, with nobody nothing: then, without strangers,
 * THRESHOLD_BLIND, or the middle between the genuine mean and 0 if that is higher. The result lies
 * in [THRESHOLD_FLOOR, THRESHOLD_CEILING].
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

enum calibration_rule {
    CALIBRATION_BLIND,     /**< Nothing to go by. */
    CALIBRATION_GALLERY,   /**< The gallery's own people. */
    CALIBRATION_STRANGERS, /**< Strangers alone. */
    CALIBRATION_BOTH,      /**< Few strangers: the larger of what both give. */
};

/** "blind", "gallery", "strangers", "both". */
const char *calibration_rule_text(enum calibration_rule rule);

struct calibration {
    enum calibration_rule rule;
    double threshold;
    double quantile;                    /**< Of the scores that the rule goes by; NaN without. */
    double genuine_mean, impostor_mean; /**< Within the gallery; NaN without. */
    double genuine_low;                 /**< GENUINE_REFUSED_MAX quantile of genuine scores. */
    double refused_share;               /**< Of genuine scores below the threshold; NaN without. */
    double expected_rate;               /**< Of strangers at or above it; NaN: not known. */
    size_t n_genuine, n_impostor;
    size_t n_strangers, n_stranger_people; /**< Scores, and of how many people. */
};

/** A score, and whose photo got it. */
struct impostor {
    double score;
    int32_t person;
};

/** The score that a fraction `rate` of impostors reaches. Reorders `scores`. NaN if n is 0. Pure.
 */
double calibrate_quantile(struct impostor *scores, size_t n, double rate);

/** The fraction of impostors that reaches a score: calibrate_quantile's inverse. Reorders. Pure. */
double calibrate_rate(struct impostor *scores, size_t n, double threshold);

/**
 * @param strangers  Photos by the same net of people who are not in `templates`; n may be 0.
 * @return INVALID for a rate outside (0, 1); NOMEM. Cost: (n + n strangers) · n · dim
 * multiply-adds, bounded.
 */
weir_status calibrate(const struct templates *templates, const struct templates *strangers,
                      double rate, struct calibration *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
