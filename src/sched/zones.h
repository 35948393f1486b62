/** Which NUMA zones of a node a task takes. */
#ifndef WEIR_SCHED_ZONES_H
#define WEIR_SCHED_ZONES_H

#include "sched/cluster.h"

#define ZONES_MAX 8

/** Whether the zones could hold the task if nothing else were there. */
bool zones_fit_empty(const struct cluster *cluster, int32_t task, int32_t node);

/** The fewest, lowest zones with room for the task and in which these devices lie; 0 where zones do
 *  not matter. @return false: none. */
bool zones_find(const struct cluster *cluster, int32_t task, int32_t node, bool is_now,
                const int32_t *devices, uint32_t *out_zones);

#endif
