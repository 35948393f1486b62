/**
 * Which NUMA zones of a node a task takes: the rules by which the kubelet's Topology Manager admits
 * it, so that whoever is planned there is not refused there.
 *
 * A resource counts if the node's zones state it: whole devices, and of a task that is aligned CPUs
 * and memory; shares of devices lie in the zones that the task takes. By policy `single` one zone
 * holds all of it. By `restricted` each resource has a width, the fewest zones that could hold what
 * is asked of it on the empty node; all must be the same, and the first zones of that width, in
 * lexicographic order, that have it free together are taken. By `best-effort` nobody is refused:
 * the zones that have most of what is still wanted are taken one after the other. A task that takes
 * several zones draws all it can from the lowest before the next; what none has, of a task that is
 * there all the same, from the last.
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

/** Whether they will when what leaves has left, wherever devices lie that it shares. */
bool zones_fit_future(const struct cluster *cluster, int32_t task, int32_t node);

/**
 * Choose zones, and whole devices in them.
 *
 * @param devices    In: the task's devices, found to be free; out: of whole ones others, if the
 *                   zones have devices of their own.
 * @param out_zones  A bit each; 0: it takes none.
 * @param out_span   How many it is taken to lie in, for comparing nodes; 0: zones do not matter.
 * @return false: no zones would do. Then devices are undefined.
 */
bool zones_find(const struct cluster *cluster, int32_t task, int32_t node, bool is_now,
                int32_t *devices, uint32_t *out_zones, int32_t *out_span);

/** Whether zones of a node have room for what is drawn of them beside all who are there now, or
 *  will be. @param draws  Per zone; NULL: it is counted already. */
bool zones_hold(const struct cluster *cluster, int32_t node, uint32_t zones,
                const struct numa_allocation *numa, bool is_now);

/** What the task draws of each of these zones if it comes now, or when what leaves has left.
 *  @param out  cluster.max_zones. */
void zones_allocate(const struct cluster *cluster, int32_t task, int32_t node, uint32_t zones,
                    bool is_now, struct numa_allocation *out);

#endif
