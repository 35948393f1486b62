/**
 * Evaluation: how right a version is on a named dataset, beside the version that serves. What the
 * policy `evaluate` looks at beside weir_policy_inputs. Pure.
 *
 * The policy asks for a measurement; the server makes a job of it (kind `measure`); its figures are
 * those of the job's run. Of a candidate its row keeps who is measured (`n` to `run`); how that goes a
 * TICK adds.
 */
#ifndef WEIR_ION_POLICY_EVALUATION_H
#define WEIR_ION_POLICY_EVALUATION_H

#include "ion/policy.h"

struct weir_policy_evaluation {
    int64_t n;            /**< Measurements asked for at this policy so far. */
    int64_t asked_ms;     /**< When the last of them was; 0: none was. */
    int64_t live_version; /**< That it compares with; 0: none. */
    char *job, *run;      /**< NULL: it has not begun. */
    char *state;   /**< The job's, as far as known: SUCCEEDED, FAILED, CANCELLED …; NULL. */
    char *problem; /**< Why it cannot be made, or has failed. */
    int64_t n_samples, n_errors;                     /**< Pictures; those that cannot be read. */
    double accuracy, loss, live_accuracy, live_loss; /**< Means over the samples. */
    int64_t only_candidate, only_live;               /**< On which one alone is right. */
    double loss_m2; /**< Of the differences in loss: sum of squared distances from their mean. */
};

extern const struct weir_resource weir_policy_evaluation_resource;

/** The evaluation of a candidate or of inputs; zeros if there is none. */
const struct weir_policy_evaluation *
weir_policy_evaluation_of(const struct weir_policy_evaluation *evaluation);

#endif
