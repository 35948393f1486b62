/** The grace period: whether work that must go is evicted, or first gets a checkpoint request. */
#ifndef WEIR_SCHED_GRACE_H
#define WEIR_SCHED_GRACE_H

#include "sched/model/cluster.h"

/** What a plan does with a running task. */
enum grace_step {
    GRACE_NOTHING, /**< It keeps running; or it has a request and may still save. */
    GRACE_REQUEST_CHECKPOINT,
    GRACE_EVICT,
};

/** The step for a task that the snapshot has running. */
enum grace_step grace_step_of(const struct cluster *cluster, int32_t task);

#endif
