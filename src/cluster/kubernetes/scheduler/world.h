/**
 * World: a cluster under Kubernetes as the planner's snapshot, with the way back. Pure. For the scheduler's own files.
 *
 * What pods of other schedulers hold is taken off their nodes: they are no tasks, so that nothing of them can be planned. Taints,
 * selectors and affinities become labels of nodes. A pod is a task; a gang, or a pod of none, is a job.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_WORLD_H
#define WEIR_CLUSTER_KUBERNETES_WORLD_H

#include "cluster/kubernetes/scheduler/neighbours.h"
#include "cluster/kubernetes/scheduler/shares.h"
#include "cluster/kubernetes/scheduler/space.h"
#include "cluster/kubernetes/scheduler/volumes.h"

#define WORLD_STALE_MS                                                                             \
    60000 /**< A gang of which a part runs, and not the rest, is ended after so long. */
#define WORLD_STUCK_MS 60000 /**< A pod that should be gone for so long holds its place for good. */

/** A pod, and what is known of it beside what the API server has told. */
struct world_pod {
    const struct place_pod *pod;
    const char *node;      /**< Where it is, or will be by what was asked for; NULL: nowhere. */
    const char *nominated; /**< Where room is made for it; NULL: nowhere. */
    const char *group;     /**< The device that it has a part of, or is about to; NULL: none. */
    const char *trouble;   /**< Why it is not placed for a while; NULL: it may be. */
    bool is_unsure; /**< What holds that device is not known to hold the one it was bound with. */
    bool is_leaving;
    bool is_spared;     /**< It may not be told to end just now. */
    bool awaits_claims; /**< It is to be bound where it is when its claims are. */
    /** Since when a part of its gang alone runs; 0: since now, if it does. */
    int64_t half_since_ms;
};

/** Borrowed. */
struct world_input {
    int64_t now_ms;
    const struct place_node *const *nodes; /**< By name. */
    size_t n_nodes;
    const struct world_pod *pods;
    size_t n_pods;
    const struct weir_sched_queue *queues;
    size_t n_queues;
    struct spaces spaces;
    const char *spaces_why;    /**< They could not be looked at: a sentence. */
    struct volumes *volumes;   /**< NULL: no pod that is to get a place has any. */
    const char *const *levels; /**< Labels of nodes that say where they are, the widest first. */
    size_t n_levels;
    const char *space; /**< Weir's own namespace. */
};

/** All of it in an arena, and in what it was made of. */
struct world {
    struct weir_sched_snapshot snapshot;
    const struct world_pod **pod_of_task;
    const char **why;  /**< For each pod of the input: why it is not planned; NULL. */
    const char **half; /**< Gangs of which a part alone runs. */
    size_t n_half;
    struct neighbours neighbours; /**< All that lies anywhere. */
    struct shares shares;
};

void world_make(const struct world_input *input, struct weir_arena *arena, struct world *out);

#endif
