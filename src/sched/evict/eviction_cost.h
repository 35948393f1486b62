/** What an eviction costs: the work since the last checkpoint; nothing, if the work is idle. */
#ifndef WEIR_SCHED_EVICTION_COST_H
#define WEIR_SCHED_EVICTION_COST_H

#include "sched/model/cluster.h"

/** Whether a preemptible job with devices uses less of them than the profile's idle_pct. */
bool eviction_cost_is_idle(const struct cluster *cluster, int32_t job);

/**
 * Work that is undone if the job is evicted whole now, in thousandths of a device times
 * milliseconds; -1 if it is idle. Work without devices, or only just bound, undoes none. Cost: its
 * tasks.
 */
int64_t eviction_cost(const struct cluster *cluster, int32_t job);

#endif
