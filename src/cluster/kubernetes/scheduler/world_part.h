/** Parts of devices in a world: which devices of its node's row a task has. For world.c. */
#ifndef WEIR_CLUSTER_KUBERNETES_WORLD_PART_H
#define WEIR_CLUSTER_KUBERNETES_WORLD_PART_H

#include "cluster/kubernetes/scheduler/world_node.h"

/** The world's shares are made: count the devices that are divided as held by ours. */
void world_part_begin(const struct world *world, struct world_nodes *nodes);

/** Write what a pod has, or asks for, of devices into its task. @param node  -1: it has none yet. */
void world_part_put(struct world *world, struct world_nodes *nodes, const struct world_pod *pod,
                    int32_t node, struct weir_sched_task *task);

#endif
