/**
 * Calibrate: the scores from which a face counts as known, for stated rates of mistakes.
 *
 * What would an unknown person get? There are two ways to know.
 *
 * *By impostors*: photos of people who are neither enrolled nor trained on. The best score of each
 * in the gallery is what an impostor gets, and the threshold is the score that the stated share of
 * them reaches (score_quantile.h), with a 90 % interval. With fewer than SCORES_FEW scores it is
 * not less than what the gallery gives.
 *
 * *By the gallery itself*, where there are no impostors: every gallery photo's best score against
 * all *other* people is an impostor score, and their quantile is the beginning. But the people of
 * the gallery were often trained on, and a network holds people it has seen further apart than
 * impostors: on real faces, the best scores of impostors lie half-way up to the genuine ones. So
 * the threshold is never below i + (g - i) * (GUARD_SHARE + GUARD_PER_SIGMA * z(1 - rate)), i and g
 * being the mean impostor and genuine score (a photo against the other photos of the same person)
 * and z the normal quantile. The two constants were chosen on seven splits of the ORL faces, where
 * 1 % asked for gave 0.3 to 1.2 % of impostors accepted. On other faces it can be far more: what
 * impostors get is not known then, and `expected_rate` says so. The threshold is not raised, beyond
 * that guard, over the score that GENUINE_REFUSED_MAX of the known people's own photos stay below:
 * people enrolled since the last training may look alike to the network, and a gallery that knows
 * nobody until it is retrained would protect nothing.
 *
 * With one person there are no impostors, with nobody nothing: then, without impostors,
 * THRESHOLD_BLIND, or the middle between the genuine mean and 0 if that is higher. The result lies
 * in [THRESHOLD_FLOOR, THRESHOLD_CEILING].
 *
 * *The deny list* has a threshold of its own, as the harm is another one: who is barred and not
 * recognised is let go as unknown, while an impostor who is taken for somebody barred would not have
 * been let in anyway. It is the score that a share `deny_rate` of impostors reaches against one
 * given person of the gallery (not against the best of all), so that each person on the list costs
 * that much in false alarms; but never above the threshold of all. Without impostors it is half-way
 * from what other people of the gallery get up to that threshold.
 */
#ifndef WEIR_PREDICT_CALIBRATE_H
#define WEIR_PREDICT_CALIBRATE_H

#include "base/status.h"
#include "predict/matcher.h"
#include "predict/score_quantile.h"

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
    CALIBRATION_IMPOSTORS, /**< Impostors alone. */
    CALIBRATION_BOTH,      /**< Few impostors: the larger of what both give. */
};

/** "blind", "gallery", "impostors", "both". */
const char *calibration_rule_text(enum calibration_rule rule);

struct calibration {
    enum calibration_rule rule;
    double threshold;
    double threshold_low, threshold_high; /**< 90 % interval by impostors; NaN without. */
    double deny_threshold;                /**< For people on the deny list; ≤ threshold. */
    double quantile;                      /**< Of the scores that the rule goes by; NaN without. */
    double genuine_mean, between_mean;    /**< Within the gallery; NaN without. */
    double genuine_low;                   /**< GENUINE_REFUSED_MAX quantile of genuine scores. */
    double refused_share; /**< Of genuine scores below the threshold; NaN without. */
    double expected_rate; /**< Of impostors at or above it; NaN: not known. */
    size_t n_genuine, n_between;
    size_t n_impostors, n_impostor_people; /**< Scores, and of how many people. */
};

/** What is asked for; each above 0 and below 1. */
struct calibration_rates {
    double accept; /**< Share of impostors that may be taken for somebody. */
    double deny;   /**< Share of impostors that may be taken for one given person who is barred. */
};

/**
 * @param impostors  Photos by the same net of people who are not in `templates`; n may be 0.
 * @return INVALID for a rate outside (0, 1); NOMEM. Cost: (n + n impostors) · n · dim
 * multiply-adds, bounded.
 */
weir_status calibrate(const struct templates *templates, const struct templates *impostors,
                      const struct calibration_rates *rates, struct calibration *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
