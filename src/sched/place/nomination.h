/**
 * Places that an earlier plan promised, and whether it asked: what the next plan makes of them.
 * A promised place counts as taken, its task is bound there as soon as it is free, and nobody else
 * gets it. A promise that cannot be kept (the node is closed, something on it does not leave) is
 * dropped; with it go the other promises of a gang that is not whole without.
 */
#ifndef WEIR_SCHED_NOMINATION_H
#define WEIR_SCHED_NOMINATION_H

#include "sched/model/cluster.h"

/** While the state is built: tasks that leave for a promised place have it. */
void nomination_take_all(struct cluster *cluster);

/** Before a cycle's first action: drop what cannot be kept. */
weir_status nomination_drop_void(struct cluster *cluster);

/** Whether an earlier plan said already that the task has the place it has now. */
bool nomination_is_known(const struct cluster *cluster, int32_t task);

/** Whether a task waits for a place that may be given to it in this cycle. */
bool nomination_may_bind(const struct cluster *cluster, int32_t task);

#endif
