/**
 * Ageing with a bound: a job that has waited for longer than the profile's ageing_bound_ms goes
 * before all jobs of its queue that have not, whatever their priority.
 *
 * The bound doubles with each level of service that a job has had (service.h). Else long jobs that
 * are evicted for short ones would age in turn, and each would get only what another one loses.
 * Among jobs that are due, the one goes first that has waited for the most of its own bounds. Else
 * long jobs, which are due after a longer wait, would keep short ones waiting for as long.
 *
 * Limits and the order of queues stay as they are. A job that is due takes from those of its queue
 * that have no higher priority and are not spared. If it is no larger than its queue's quota, it
 * also takes what is lent to other queues, whatever its queue has (candidates.h): else a gang of
 * that size would never find so much free at once, because what is free goes to the small jobs
 * behind it. What is guaranteed stays.
 *
 * What holds: when a job is due, only jobs that have waited for even more of their bounds are
 * before it in its queue, and no job of its level or a higher one joins them. Let jobs end within R
 * of their start, let the job fit the cluster when that is empty, let backfill be on, and let its
 * queue be alone or next by its share. Then a job of level l with K due jobs before it starts
 * within 2^l ageing_bound_ms + (K + 1) R of beginning to wait, if no job of a lower level becomes
 * due meanwhile. A preemption begins its wait anew (queued_ms).
 */
#ifndef WEIR_SCHED_AGEING_H
#define WEIR_SCHED_AGEING_H

#include "sched/model/cluster.h"

/** The time at which a job began to wait. */
int64_t ageing_waits_since(const struct weir_sched_job *job);

/** Whether a job that waits has waited for longer than the bound. */
bool ageing_is_due(const struct cluster *cluster, int32_t job);

/**
 * Negative if, of two jobs that are due, l goes before r; 0: they have waited for the same time.
 */
int ageing_compare(const struct cluster *cluster, int32_t l, int32_t r);

/**
 * Whether a running job is not preempted because of its age: it was due when it started, has run
 * for no longer than it had waited, and has not come to its next level. Cost: its tasks.
 */
bool ageing_is_spared(const struct cluster *cluster, int32_t job);

#endif
