/**
 * The candidates for eviction in one job's favour, by action: solver->request.is_victim is marked.
 */
#ifndef WEIR_SCHED_CANDIDATES_H
#define WEIR_SCHED_CANDIDATES_H

#include "sched/action/actions.h"

typedef void candidates_fn(struct cycle *cycle, int32_t job);

/** Consolidation: every job that runs and may lose. Cost: jobs, but only bytes of them. */
candidates_fn candidates_of_all;

/**
 * Reclaim: jobs of other queues that have run for as long as is stated; else what is above their
 * minimum.
 */
candidates_fn candidates_of_others;

/**
 * Preempt: the jobs of the queue before which the job goes, by priority, by attained service, or
 * because it has waited too long. If the job runs already and only grows, then only what is above
 * their minimum.
 */
candidates_fn candidates_of_queue;

/**
 * For a job that has waited too long and is no larger than its queue's quota: jobs of its queue,
 * the nearest in solver->request.tiers, and jobs of queues that hold more than is guaranteed to
 * them.
 * @return Whether there is any.
 */
bool candidates_when_due(struct cycle *cycle, int32_t job, const struct weir_sched_amount *amount);

/** Whether `than` may preempt all that `job` may preempt, if it asks for as much. */
bool candidates_are_no_more(const struct cluster *cluster, int32_t than, int32_t job);

#endif
