/**
 * Nominated placements: rooms that earlier plans gave to tasks, and that were not free yet. A
 * nominated room counts as taken, its task is bound there as soon as it is free, and no other task
 * gets it. A nomination is void if the node is closed or something on it does not leave. If a gang
 * is not whole without a void one, the gang's other nominations go as well.
 */
#ifndef WEIR_SCHED_NOMINATION_H
#define WEIR_SCHED_NOMINATION_H

#include "sched/model/cluster.h"

/** While the state is built: place the tasks that leave for a nominated node. */
void nomination_take_all(struct cluster *cluster);

/** Before a cycle's first action: drop void nominations. The cluster's status. */
weir_status nomination_drop_void(struct cluster *cluster);

/** Whether an earlier plan gave the task the placement that it has now. */
bool nomination_is_known(const struct cluster *cluster, int32_t task);

/** Whether a task waits for a room that it may get in this cycle. */
bool nomination_may_bind(const struct cluster *cluster, int32_t task);

#endif
