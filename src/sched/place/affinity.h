/** Tasks that want others near them or away from them, by labels. */
#ifndef WEIR_SCHED_AFFINITY_H
#define WEIR_SCHED_AFFINITY_H

#include "sched/model/cluster.h"

/** Look whether any task keeps away from others. */
void affinity_init(struct cluster *cluster);

/** Whether where the task fits depends on where other tasks are. */
bool affinity_matters(const struct cluster *cluster, int32_t task);

/**
 * Whether the task's wishes and those of others allow it on the node, with every task where it will
 * be; now: and nobody who is leaving is in the way.
 * Cost: tasks, if it matters.
 */
bool affinity_allows(const struct cluster *cluster, int32_t task, int32_t node, bool is_now);

/** Whether both tasks have the same labels. */
bool affinity_has_same_labels(const struct weir_sched_task *left,
                              const struct weir_sched_task *right);

#endif
