/** Profile: how net_run.c records operations. */
#ifndef WEIR_NN_PROFILE_PRIVATE_H
#define WEIR_NN_PROFILE_PRIVATE_H

#include "nn/plan/plan.h"
#include "nn/profile.h"

#include "base/clock.h"

/** What an operation did. The values of enum task_phase come first. */
enum profile_what {
    PROFILE_FORWARD_COMBINE = TASK_PACK_BACKWARD + 1,
    PROFILE_BACKWARD_COMBINE,
    PROFILE_REFRESH,
    PROFILE_GRADIENT_AND_UPDATE, /**< TASK_WEIGHT_GRADIENT that updates parameters too. */
    PROFILE_WHATS
};

/** The time now; 0 without a profile. */
static inline uint64_t profile_begin(const struct weir_profile *profile)
{
    return profile ? weir_mono_ns() : 0;
}

/**
 * Records one operation. It does nothing without a profile.
 * @param what      enum task_phase or profile_what.
 * @param n_images  Images that it was done for.
 */
void profile_end(struct weir_profile *profile, int32_t i_thread, int32_t i_op, int what,
                 int32_t n_images, uint64_t begin_ns);

#endif
