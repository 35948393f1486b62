/**
 * Ageing with a bound: who has waited for longer than the profile's ageing_bound_ms goes before all
 * of its queue that have not, whatever their priority; among those who have, whoever waits longest.
 * The bound doubles with each level of service that a job has had (service.h): long jobs that are
 * evicted for short ones would else age in turn, and each would only get what another one loses.
 * Limits and the order of the queues stay as they are. Within its queue it takes from those of no
 * higher priority that are not spared, and if it is no larger than its queue's quota also what is
 * lent to other queues, whatever its queue has (candidates.h): a gang of that size would else never
 * find so much free at once, as what is free goes to the small jobs behind it, and would never be
 * within its share while something of the queue cannot be evicted. What is guaranteed stays.
 *
 * What holds: when a job is due, only jobs that wait for even longer are before it in its queue,
 * and nobody joins them. If jobs end within R of their start, the job fits the cluster when that is
 * empty, backfill is on and its queue is alone or next by its share, then a job with K due ones
 * before it starts within ageing_bound_ms + (K + 1) R of beginning to wait. A preemption of it
 * begins its wait anew (queued_ms).
 */
#ifndef WEIR_SCHED_AGEING_H
#define WEIR_SCHED_AGEING_H

#include "sched/cluster.h"

/** Since when a job waits. */
int64_t ageing_waits_since(const struct weir_sched_job *job);

/** Whether a job that waits has waited for longer than the bound. */
bool ageing_is_due(const struct cluster *cluster, int32_t job);

/** Whether a job that runs was due when it started, and has run for no longer than it had waited:
 *  then it is not preempted. */
bool ageing_is_spared(const struct cluster *cluster, int32_t job);

#endif
