/**
 * Ageing with a bound: a job that has waited for longer than the profile's ageing_bound_ms goes
 * before all jobs of its queue that have not, whatever their priority.
 *
 * Among jobs that are due, the one goes first that has waited longest.
 *
 * Limits and the order of queues stay as they are. A job that is due takes from those of its queue
 * that have no higher priority and are not spared. If it is no larger than its queue's quota, it
 * also takes what is lent to other queues, whatever its queue has (candidates.h): else a gang of
 * that size would never find so much free at once, because what is free goes to the small jobs
 * behind it. What is guaranteed stays.
 *
 * What holds: when a job is due, only jobs that have waited even longer are before it in its queue,
 * and no other joins them. Let jobs end within R of their start, let the job fit the cluster when
 * that is empty, let backfill be on, and let its queue be alone or next by its share. Then a job
 * with K due jobs before it starts within ageing_bound_ms + (K + 1) R of beginning to wait. A
 * preemption begins its wait again (queued_ms).
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
 * for no longer than it had waited.
 */
bool ageing_is_spared(const struct cluster *cluster, int32_t job);

#endif
