/** How a comparison goes: what the policy `ab` makes of its arms. Pure. */
#ifndef WEIR_ION_AB_VIEW_H
#define WEIR_ION_AB_VIEW_H

#include "ion/policy_arms.h"
#include "stats/ab.h"

struct weir_ab_view {
    const char *metric; /**< As the policy names it. */
    bool is_rate;       /**< Samples are yes or no. */
    bool is_less_better;
    double confidence;
    int64_t min_samples;
    int64_t timeout_ms; /**< From when it was asked for. */
    struct weir_ab_arm arm, live;
    struct weir_ab found; /**< p_better and p_worse are of the candidate, whatever is better. */
};

/** @return false: it is another policy. */
bool weir_ab_view_of(const struct weir_policy *policy, const struct weir_policy_arms *arms,
                     struct weir_ab_view *out);

#endif
