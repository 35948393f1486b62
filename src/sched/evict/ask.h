/** Whether work that must go is told to end, or is asked to save its state first. */
#ifndef WEIR_SCHED_ASK_H
#define WEIR_SCHED_ASK_H

#include "sched/model/cluster.h"

enum ask {
    ASK_NOTHING, /**< It stays; or it was asked and may still save. */
    ASK_CHECKPOINT,
    ASK_TO_END,
};

/** What the plan says to a task that the snapshot has running. */
enum ask ask_of(const struct cluster *cluster, int32_t task);

#endif
