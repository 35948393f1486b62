/** Whether work that must go is told to end, or is asked to save its state first. */
#ifndef WEIR_SCHED_GRACE_H
#define WEIR_SCHED_GRACE_H

#include "sched/model/cluster.h"

enum grace_step {
    GRACE_NOTHING, /**< It stays; or it was asked and may still save. */
    GRACE_REQUEST_CHECKPOINT,
    GRACE_EVICT,
};

/** What the plan says to a task that the snapshot has running. */
enum grace_step grace_step_of(const struct cluster *cluster, int32_t task);

#endif
