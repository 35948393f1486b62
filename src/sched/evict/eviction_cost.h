/** What an eviction costs: the work since the last checkpoint; nothing, if the work is idle. */
#ifndef WEIR_SCHED_EVICTION_COST_H
#define WEIR_SCHED_EVICTION_COST_H

#include "sched/model/cluster.h"

/** All devices that a job holds, in thousandths, with shares by memory as the smallest devices
 * would count them. What this plan has bound has not started and counts not. Cost: its tasks. */
int64_t eviction_cost_devices(const struct cluster *cluster, int32_t job);

/** Whether a preemptible job with devices is measured to use less of them than idle_pct. */
bool eviction_cost_is_idle(const struct cluster *cluster, int32_t job);

/** Device-milliseconds that end with the job if it is evicted whole now, in thousandths of a
 *  device; -1 if it is idle. Work without devices, or only just bound, loses none. Cost: its tasks.
 */
int64_t eviction_cost(const struct cluster *cluster, int32_t job);

#endif
