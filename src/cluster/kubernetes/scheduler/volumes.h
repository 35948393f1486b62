/**
 * Volumes: where a pod may lie by its claims, and what is to be asked so that they are bound there. Pure. As the scheduler that
 * Kubernetes brings does it: a volume that is there is where it is; a claim that waits for its pod's node gets a free volume that
 * fits it and the node, the smallest, else one is made there if its class makes any. For the scheduler's own files.
 *
 * What has been asked for and is not told yet is assumed: it counts as if it were told.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_VOLUMES_H
#define WEIR_CLUSTER_KUBERNETES_VOLUMES_H

#include "cluster/kubernetes/scheduler/volume.h"

struct world_pod;

/** What is asked for. NULL: nothing. */
struct volumes_assumed {
    const char **nodes;   /**< For each claim: where its volume is to be made. */
    const char **pods;    /**< For each claim: a pod that gets a place with it. */
    const char **refused; /**< For each claim: nodes where it was not made, a space behind each. */
    const char **claims;  /**< For each volume: the claim that is to have it. */
    int64_t *volume_of;   /**< For each claim: the volume that it has, or is to have; -1: none. */
};

/** Free volumes that a claim could have, the smallest first; made when they are first asked for. */
struct volumes_fitting {
    size_t *rows, n;
    bool is_known;
};

/** All of them, borrowed, by their keys. */
struct volumes {
    const struct volume_claim *const *claims;
    size_t n_claims;
    const struct volume *const *volumes;
    size_t n_volumes;
    const struct volume_class *const *classes;
    size_t n_classes;
    struct volumes_assumed assumed;
    struct volumes_fitting *fitting; /**< For each claim. */
    const struct world_pod *pods;    /**< All pods. */
    size_t n_pods;
    const char *why; /**< They could not be looked at: a sentence. */
    struct weir_arena *arena;
};

/** Something to be asked for a claim on a node. */
struct volumes_choice {
    size_t claim;
    int64_t volume; /**< The volume that it gets; -1: one is made there. */
};

/** Make what is assumed, and fitting, when the rows and the arena are set. */
void volumes_index(struct volumes *volumes);

/** @return Why the pod cannot get a place anywhere just now, a sentence in the arena; NULL: it may be that it can. */
const char *volumes_wrong(const struct volumes *volumes, const struct place_pod *pod,
                          const struct place_node *const *nodes, size_t n_nodes);

/** Set those nodes to false that its claims do not allow. */
void volumes_allow(const struct volumes *volumes, const struct place_pod *pod,
                   const struct place_node *const *nodes, size_t n_nodes, bool *allowed);

/**
 * Claims that need one of the volumes that are there, as nobody makes any for them, need it of a pool: the planner counts what is
 * free of one on each node, so that of many pods each gets its own.
 *
 * @return Its name, for the i-th claim of a pod; NULL: it needs none.
 */
const char *volumes_pool(const struct volumes *volumes, const struct place_pod *pod, size_t i);

/** How much of it is free on a node. @return False: the name is none of a pool. */
bool volumes_pool_free(const struct volumes *volumes, const char *name,
                       const struct place_node *node, int64_t *out);

/**
 * What is to be asked so that the pod has its claims on a node.
 * @param is_of_gang  Others of its gang get places with it: a claim that several nodes may have is made for one of them, and
 *                    whether the others may have it is known when it is bound.
 * @param out  As many as it has claims have room.
 * @return False: it cannot have them there.
 */
bool volumes_choose(const struct volumes *volumes, const struct place_pod *pod,
                    const struct place_node *node, bool is_of_gang, struct volumes_choice *out,
                    size_t *out_n);

/** The place of a claim, or of a volume, by its key; -1: it is not there. */
int64_t volumes_find_claim(const struct volumes *volumes, const char *key);

/** The pod gets a place on a node, with what was chosen for it. */
void volumes_assume(const struct volumes *volumes, const struct place_pod *pod, const char *node,
                    const struct volumes_choice *choices, size_t n_choices);

/** What is assumed now, and back to it. In the arena. */
struct volumes_assumed volumes_keep(const struct volumes *volumes);
void volumes_go_back(struct volumes *volumes, const struct volumes_assumed *kept);

/** The first of its claims that is not bound yet; NULL: all are. */
const struct volume_claim *volumes_unbound(const struct volumes *volumes,
                                           const struct place_pod *pod);

#endif
