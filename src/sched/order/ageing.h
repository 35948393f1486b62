/**
 * Ageing with a bound: who has waited for longer than the profile's ageing_bound_ms goes before all
 * of its queue that have not, whatever their priority. The bound doubles with each level of service
 * that a job has had (service.h): long jobs that are evicted for short ones would else age in turn,
 * and each would only get what another one loses. Among those who are due, whoever has waited for
 * the most of its own bounds goes first: else long ones, which are due after a longer wait, would
 * keep short ones waiting for as long.
 * Limits and the order of the queues stay as they are. Within its queue it takes from those of no
 * higher priority that are not spared, and if it is no larger than its queue's quota also what is
 * lent to other queues, whatever its queue has (candidates.h): a gang of that size would else never
 * find so much free at once, as what is free goes to the small jobs behind it, and would never be
 * within its share while something of the queue cannot be evicted. What is guaranteed stays.
 *
 * What holds: when a job is due, only jobs that have waited for even more of their bounds are
 * before it in its queue, and nobody of its level or a higher one joins them. If jobs end within R
 * of their start, the job fits the cluster when that is empty, backfill is on and its queue is
 * alone or next by its share, then a job of level l, with K due ones before it, starts within 2^l
 * ageing_bound_ms + (K + 1) R of beginning to wait, if none of a lower level becomes due meanwhile.
 * A preemption of it begins its wait anew (queued_ms).
 */
#ifndef WEIR_SCHED_AGEING_H
#define WEIR_SCHED_AGEING_H

#include "sched/model/cluster.h"

/** Since when a job waits. */
int64_t ageing_waits_since(const struct weir_sched_job *job);

/** Whether a job that waits has waited for longer than the bound. */
bool ageing_is_due(const struct cluster *cluster, int32_t job);

/** Negative if of two that are due l goes before r; 0: they have waited for the same time. */
int ageing_compare(const struct cluster *cluster, int32_t l, int32_t r);

/** Whether a job that runs was due when it started, has run for no longer than it had waited, and
 *  has not come to its next level: then it is not preempted. Cost: its tasks. */
bool ageing_is_spared(const struct cluster *cluster, int32_t job);

#endif
