/** Profile as net_run.c sees it. For the domain's own files. */
#ifndef WEIR_NN_PROFILE_PRIVATE_H
#define WEIR_NN_PROFILE_PRIVATE_H

#include "nn/plan/plan.h"
#include "nn/profile.h"

#include "base/clock.h"

/** What an operation did; the first are enum task_phase. */
enum profile_what {
    PROFILE_FORWARD_COMBINE = TASK_PACK_BACKWARD + 1,
    PROFILE_BACKWARD_COMBINE,
    PROFILE_REFRESH,
    PROFILE_GRADIENT_AND_UPDATE, /**< TASK_WEIGHT_GRADIENT that uses what it makes. */
    PROFILE_WHATS
};

/** 0 without a profile. */
static inline uint64_t profile_begin(const struct weir_profile *profile)
{
    return profile ? weir_mono_ns() : 0;
}

/**
 * @param what      enum task_phase or profile_what.
 * @param n_images  It was done for.
 */
void profile_end(struct weir_profile *profile, int32_t i_thread, int32_t i_op, int what,
                 int32_t n_images, uint64_t begin_ns);

#endif
