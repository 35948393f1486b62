/**
 * Neighbours: where a pod may lie beside others (pod affinity, anti-affinity, spread constraints), by what lies where. The
 * planner knows one such term of a task (neighbours_planned); the rest is told to it as labels of nodes, from what lies there
 * before it plans, and looked at again for each pod that is bound. For the scheduler's own files. Owned by one thread.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_NEIGHBOURS_H
#define WEIR_CLUSTER_KUBERNETES_NEIGHBOURS_H

#include "cluster/kubernetes/scheduler/place.h"

struct neighbours_pod {
    const struct place_pod *pod;
    int32_t node;
    bool is_planned; /**< The planner knows of it. */
};

/** A label of nodes, and which have the same value of it. */
struct neighbours_key;

struct neighbours {
    const struct place_node *const *nodes; /**< Borrowed. */
    int32_t n_nodes;
    const struct spaces *spaces; /**< Borrowed. */
    struct weir_arena *arena;    /**< Borrowed. */
    struct neighbours_pod *pods;
    size_t n, cap;
    size_t n_guarded; /**< So many of these pods want others away. */
    size_t n_choosy;  /**< So many would rather be near others, or not. */
    size_t n_mild;    /**< So many nodes have taints that only rather keep pods away. */
    struct neighbours_key *keys;
    int64_t *sums;              /**< For each node, while a pod asks (rather.h). */
    const int32_t *last_scores; /**< What the pod before it got. */
};

/** It lies there. */
void neighbours_add(struct neighbours *neighbours, const struct place_pod *pod, int32_t node,
                    bool is_planned);

/** Is there anything to look at for it? */
bool neighbours_matter(const struct neighbours *neighbours, const struct place_pod *pod);

/** The term that the planner is to keep; NULL: none. *out_is_apart is set then. */
const struct place_term *neighbours_planned(const struct neighbours *neighbours,
                                            const struct place_pod *pod, bool *out_is_apart);

/**
 * Which nodes may it have?
 * @param are_all_looked_at  Also the terms that the planner keeps.
 * @param allowed  In/out, for each node: those that may not be had are set to false.
 */
void neighbours_allow(struct neighbours *neighbours, const struct place_pod *pod,
                      bool are_all_looked_at, bool *allowed);

/** For each node the number of its domain by a label, from 0; -1: it has no such label. */
const int32_t *neighbours_domains(struct neighbours *neighbours, const char *key);

/** Does a node have the labels that the pod's own rules for nodes ask for? */
bool neighbours_fits_node(const struct place_pod *pod, const struct place_node *node);

#endif
