/** Nodes of a world: what they have for pods of ours, as the planner's rows. For world.c. */
#ifndef WEIR_CLUSTER_KUBERNETES_WORLD_NODE_H
#define WEIR_CLUSTER_KUBERNETES_WORLD_NODE_H

#include "cluster/kubernetes/scheduler/world.h"

#define WORLD_DEVICES_MAX 4096 /**< The planner counts no more of a node. */

/** What is taken off a node, and what is asked of it. */
struct world_node {
    int64_t cpu_milli, memory_bytes, n_devices, n_pods; /**< What others hold. */
    int64_t own_devices;                                /**< What ours hold. */
    int32_t next_device; /**< The first of its row that no task was given yet. */
    int64_t *extras;     /**< What others hold, by name. */
};

struct world_nodes {
    const struct place_node *const *nodes;
    size_t n;
    struct world_node *uses;
    const char **extras; /**< Names of what our pods ask for beside the usual. */
    size_t n_extras, extras_cap;
    const char **devices; /**< Resources that are accelerators of some node. */
    size_t n_devices;
    const bool **masks; /**< Sets of nodes that pods may have: each becomes a label. */
    size_t n_masks, masks_cap;
    const struct volumes *volumes; /**< NULL: there are none. */
    struct weir_arena *arena;
};

void world_nodes_init(struct world_nodes *nodes, const struct world_input *input,
                      struct weir_arena *arena);

/** @return Its index; -1: there is none. */
int32_t world_nodes_find(const struct world_nodes *nodes, const char *name);

/** The resource of the accelerators that a pod asks for; NULL: none. */
const char *world_nodes_device(const struct world_nodes *nodes, const struct place_pod *pod);

/** A pod of ours asks for this. To be told of all before anything is taken. */
void world_nodes_ask(struct world_nodes *nodes, const struct place_pod *pod);

/** The same for one thing of which nodes have some. */
void world_nodes_ask_for(struct world_nodes *nodes, const char *name);

/** Somebody else has it of a node. @param has_devices  Its devices, too. */
void world_nodes_take(struct world_nodes *nodes, const struct place_pod *pod, int32_t node,
                      bool has_devices);

/** The key of the label that nodes of a mask have. Equal masks have one. */
const char *world_nodes_mask(struct world_nodes *nodes, const bool *allowed);

/** The rows, when all is said. */
const struct weir_sched_node *world_nodes_rows(struct world_nodes *nodes);

#endif
