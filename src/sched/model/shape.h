/**
 * Shapes: tasks of one shape fit the same nodes. They have equal demand, selector, tolerations and
 * affinity, and queues whose shares tell the same nodes apart.
 */
#ifndef WEIR_SCHED_SHAPE_H
#define WEIR_SCHED_SHAPE_H

#include "sched/model/cluster.h"

/** Give every task the number of its shape; fill cluster->shape_*. NOMEM. Cost: linear. */
weir_status shape_assign(struct cluster *cluster) WEIR_MUST_CHECK;

/** Whether two tasks ask for the same labels and tolerate the same taints. */
bool shape_has_same_constraint(const struct weir_sched_task *left,
                               const struct weir_sched_task *right);

/** Equal for tasks with the same constraint. */
uint64_t shape_constraint_hash(const struct weir_sched_task *task);

#endif
