/**
 * Shares: which devices of a world's nodes are divided, and among which pods: by the pods that hold them (reservation.h), and
 * by what each pod with a part was bound with, or is about to be. Devices of a node are alike; the first ones of its row are
 * those that are divided, in the order of their groups. Pure. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_SHARES_H
#define WEIR_CLUSTER_KUBERNETES_SHARES_H

#include "cluster/kubernetes/scheduler/place.h"

struct weir_sched_part;
struct world;
struct world_input;
struct world_nodes;
struct world_pod;

/** A device that is divided, or is held so that it can be. */
struct shares_group {
    const char *name;
    int32_t node;
    int32_t device; /**< In the node's row; -1: it is not there for pods that are planned. */
    const struct place_pod *holder; /**< NULL: nobody holds it. */
    int64_t milli;                  /**< What is given of it. */
    int64_t lost_milli;             /**< What pods have of that which are not planned. */
    int32_t n_sharers, n_bound, n_planned, n_unsure;
    bool is_let_go; /**< Its holder is told to end, or has to be. */
};

/** A ConfigMap, and of which device it tells. */
struct shares_config {
    const char *space, *name, *group;
    int32_t node;
    int64_t milli;
};

struct shares {
    struct weir_arena *arena; /**< Borrowed. */
    const struct place_node *const *nodes;
    int32_t n_nodes;
    struct shares_group *groups; /**< By node, then by their numbers. */
    int32_t n_groups;
    size_t groups_cap;
    /** Where those of a node begin, and one more; what was given since comes after all of these. */
    int32_t *first;
    struct shares_config *configs;
    size_t n_configs, configs_cap;
    size_t n_sorted; /**< So many of them are sorted. */
};

/** @param planned  For each pod of the input: does the planner know of it? */
void shares_make(const struct world_input *input, const struct world_nodes *nodes,
                 const bool *planned, struct weir_arena *arena, struct shares *out);

/** The group that a pod has a part of on its node; NULL: none. */
struct shares_group *shares_of(const struct shares *shares, const struct world_pod *pod,
                               int32_t node);

/** Does this pod hold a device of the node's row for others? */
bool shares_holds(const struct shares *shares, const struct place_pod *pod, int32_t node);

/** How many devices of the node's row are divided. */
int32_t shares_n_devices(const struct shares *shares, int32_t node);

/** Is a device of the node, that pods have parts of, maybe held for them no more? Then no device of it is given. */
bool shares_is_unsure(const struct shares *shares, int32_t node);

/** May a node's devices be divided? */
bool shares_can_divide(const struct place_node *node);

/** What the pod's ConfigMap tells of; NULL: nothing yet. */
const struct shares_config *shares_config_of(const struct shares *shares,
                                             const struct place_pod *pod);

/** Why it cannot have what its ConfigMap tells of, beside the pods that have: a sentence; NULL: it can. */
const char *shares_wrong(const struct shares *shares, const struct place_pod *pod);

enum shares_answer {
    SHARES_BIND, /**< It has no parts: nothing stands in the way of its bindings. */
    SHARES_HOLD, /**< Its pods have their places, and are bound when all of their devices are known. */
    SHARES_WAIT, /**< A device is held for nobody, and let go first; or one of the node is unsure. */
    SHARES_REFUSE, /**< A device that it is to have a part of has no room for that. */
};

/**
 * What becomes of pods that the plan binds? Note what they have then. A pod has a part of the device that its ConfigMap
 * tells of, else of the fullest of the node with room, else of one that nobody has a part of: a new group, at the end of
 * `groups`.
 *
 * @param out_groups  For each action, NULL before: the group of a pod that gets a part.
 */
enum shares_answer shares_place(struct world *world, const struct weir_sched_part *part,
                                const char **out_groups);

#endif
