/** Wishes: which of the nodes that start a task as soon it would rather have. */
#ifndef WEIR_SCHED_WISHES_H
#define WEIR_SCHED_WISHES_H

#include "sched/model/cluster.h"

/** Make room for the sums, if any task has wishes. NOMEM. */
weir_status wishes_init(struct cluster *cluster) WEIR_MUST_CHECK;

/** Does the task rather have some nodes than others? */
bool wishes_matter(const struct cluster *cluster, int32_t task);

/**
 * Work out the sum of each node for a task that wishes matter to (cluster->wished), with every other task on its planned node.
 * Cost: nodes; with wishes for company tasks, too.
 */
void wishes_count(struct cluster *cluster, int32_t task);

#endif
