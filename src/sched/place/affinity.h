/** Affinity: tasks that need others near them, or away from them, by labels. */
#ifndef WEIR_SCHED_AFFINITY_H
#define WEIR_SCHED_AFFINITY_H

#include "sched/model/cluster.h"

/** Note whether any task keeps away from others. */
void affinity_init(struct cluster *cluster);

/** Whether the nodes that fit the task depend on where other tasks are. */
bool affinity_matters(const struct cluster *cluster, int32_t task);

/**
 * Whether the affinities of the task and of all others allow it on the node, with every task on its
 * planned node. `is_now`: also with the tasks that have not left yet. Cost: tasks, if affinity
 * matters.
 */
bool affinity_allows(const struct cluster *cluster, int32_t task, int32_t node, bool is_now);

/** Whether the task has all of these labels. */
bool affinity_has_labels(const struct weir_sched_task *task, const struct weir_sched_label *labels,
                         int32_t n_labels);

/** Whether both tasks have the same labels. */
bool affinity_has_same_labels(const struct weir_sched_task *left,
                              const struct weir_sched_task *right);

#endif
