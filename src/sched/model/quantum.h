/**
 * Gang quanta: the tasks of a job that start or end together. Up to the minimum all of them do;
 * above it, one by one. A job with sub-groups has a quantum of whole sub-groups.
 */
#ifndef WEIR_SCHED_QUANTUM_H
#define WEIR_SCHED_QUANTUM_H

#include "sched/model/cluster.h"

/** How a job stands to its minimum: it runs below, at or above it. */
enum quantum_rank {
    QUANTUM_BELOW,
    QUANTUM_AT,
    QUANTUM_ABOVE,
};

enum quantum_rank quantum_rank(const struct cluster *cluster, int32_t job);

/** Whether as many members of a group as its minimum run or are placed. */
bool quantum_is_satisfied(const struct cluster *cluster, int32_t group);

/**
 * The pending tasks that start next together.
 * @param out  Room for all the job's tasks.
 * @return How many; 0: none is pending, or too few of them for the minimum.
 */
int32_t quantum_next(const struct cluster *cluster, int32_t job, int32_t *out);

/** Whether nothing of the job runs and some of it has a place to wait for. Cost: its tasks, if so. */
bool quantum_is_only_pipelined(const struct cluster *cluster, int32_t job);

/**
 * The running tasks that end next together: one above the minimum, else all. Of a job that is only
 * pipelined, all that is. Result as of quantum_next.
 */
int32_t quantum_to_evict(const struct cluster *cluster, int32_t job, int32_t *out);

/**
 * What the tasks count as together, and the part of it that is not preemptible (out_fixed may be
 * NULL).
 */
void quantum_amount(const struct cluster *cluster, const int32_t *tasks, int32_t n_tasks,
                    struct weir_sched_amount *out_amount, struct weir_sched_amount *out_fixed);

/**
 * The same on the nodes where they count least. Jobs are admitted with this, and each task once
 * more on the node that it gets (shares_admit_at).
 */
void quantum_amount_at_least(const struct cluster *cluster, const int32_t *tasks, int32_t n_tasks,
                             struct weir_sched_amount *out_amount,
                             struct weir_sched_amount *out_fixed);

#endif
