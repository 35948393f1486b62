/**
 * Arms of a comparison: what the policy `ab` looks at beside weir_policy_inputs and the trial. Pure.
 */
#ifndef WEIR_ION_POLICY_ARMS_H
#define WEIR_ION_POLICY_ARMS_H

#include "ion/policy.h"

/** Of successes (0 and 1), or of a named figure, as the policy says. */
struct weir_policy_arms {
    int64_t live_version; /**< That the candidate is compared with; 0: nothing is counted yet. */
    int64_t n, live_n;    /**< Samples. */
    double mean, live_mean;
    double m2, live_m2; /**< Sums of the squares of their distances from the mean. */
};

extern const struct weir_resource weir_policy_arms_resource;

/** The arms of inputs; zeros if there are none, or their figures cannot be. */
const struct weir_policy_arms *weir_policy_arms_of(const struct weir_policy_arms *arms);

#endif
