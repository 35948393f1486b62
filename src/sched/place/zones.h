/**
 * The NUMA zones of a node that a task takes, by the rules of the kubelet's Topology Manager: a
 * task that is planned on a node is not refused there.
 *
 * A resource counts if the node's zones state it: whole devices; and CPUs and memory of a task that
 * is aligned. Fractional shares of devices lie in the zones that the task takes.
 *
 * - Policy `single`: one zone holds all of it.
 * - Policy `restricted`: each resource has a width, the fewest zones that could hold it on the
 *   empty node. All widths must be the same. The first zones of that width, in lexicographic order,
 *   that have it free together are taken.
 * - Policy `best-effort`: no task is refused. The zones that have most of what is still wanted are
 *   taken one after the other.
 *
 * A task that takes several zones is allocated all it can have in the lowest before the next. What
 * no zone has, of a task that runs there all the same, counts in the last.
 */
#ifndef WEIR_SCHED_ZONES_H
#define WEIR_SCHED_ZONES_H

#include "sched/model/cluster.h"

#define ZONES_MAX 8

/** What a task is taken to span where no zones would do by best effort: more than any node has. */
#define ZONES_NONE_DO (ZONES_MAX + 1)

/** Whether zones matter to a task on any node. */
bool zones_concern(const struct cluster *cluster, int32_t task);

/** The zones in which these devices of the node lie, a bit each. */
uint32_t zones_of_devices(const struct weir_sched_node *node, const int32_t *devices,
                          int32_t n_devices);

/** Whether the zones could hold the task if nothing else were there. */
bool zones_fit_empty(const struct cluster *cluster, int32_t task, int32_t node);

/** Whether the zones will hold the task when what leaves has left, whatever devices it shares. */
bool zones_fit_future(const struct cluster *cluster, int32_t task, int32_t node);

/**
 * Choose zones, and whole devices in them.
 *
 * @param devices    In: the task's devices, found to be free. Out: other whole devices, if the
 *                   zones have devices of their own.
 * @param out_zones  A bit each; 0: it takes none.
 * @param out_span   The number of zones it counts as taking, for comparing nodes; 0: zones do not
 *                   matter.
 * @return false: no zones would do. Then devices are undefined.
 */
bool zones_find(const struct cluster *cluster, int32_t task, int32_t node, bool is_now,
                int32_t *devices, uint32_t *out_zones, int32_t *out_span);

/**
 * Whether zones of a node have room for an allocation beside all tasks that are there now, or will
 * be.
 * @param numa  Per zone; NULL: it is counted already.
 */
bool zones_hold(const struct cluster *cluster, int32_t node, uint32_t zones,
                const struct numa_allocation *numa, bool is_now);

/**
 * Divide what the task takes among these zones, if it comes now or when what leaves has left.
 * @param out  cluster.numa.max_zones elements.
 */
void zones_allocate(const struct cluster *cluster, int32_t task, int32_t node, uint32_t zones,
                    bool is_now, struct numa_allocation *out);

#endif
