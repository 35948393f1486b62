/** Why a job waits: the amounts, the object that is in the way, and the sentence. */
#ifndef WEIR_SCHED_EXPLAIN_H
#define WEIR_SCHED_EXPLAIN_H

#include "sched/model/cluster.h"

/**
 * Explain that a task of the job found no placement when n_placed of n_tasks had one. Cost: nodes,
 * once for tasks of one shape.
 */
void explain_no_place(const struct cluster *cluster, int32_t job, int32_t task, int32_t n_tasks,
                      int32_t n_placed, bool is_bound_to_domain, struct weir_sched_wait *wait);

/**
 * Whether there is room for the task, but only on a model of which its queues may take no more as
 * things are. Then *wait says which queue, and how much it would have. Cost: nodes, if the queues'
 * shares tell models apart.
 */
bool explain_share(const struct cluster *cluster, int32_t task, struct weir_sched_wait *wait);

/** Write wait->text from its code and amounts. */
void explain_text(const struct cluster *cluster, struct weir_sched_wait *wait);

#endif
