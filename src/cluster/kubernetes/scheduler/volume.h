/**
 * Claims of volumes, volumes and their classes: digests of mirrors' (place.h). They are looked at once a pod that Weir places
 * has a claim. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_VOLUME_H
#define WEIR_CLUSTER_KUBERNETES_VOLUME_H

#include "cluster/kubernetes/scheduler/place.h"

/** Ways to have a volume, a bit each. */
enum volume_mode {
    VOLUME_RWO = 1,
    VOLUME_ROX = 2,
    VOLUME_RWX = 4,
    VOLUME_RWOP = 8, /**< By one pod. */
};

/** What a claim asks for, and a volume has. */
struct volume_kind {
    const char *class_name; /**< "": of none. */
    int64_t bytes;
    uint32_t modes;
    bool is_block;
};

/** A PersistentVolumeClaim. Text is NULL where nothing is said. */
struct volume_claim {
    struct place_held held;
    const char *key; /**< "NAMESPACE/NAME" */
    const char *space, *name, *uid, *version;
    const char *volume;        /**< The volume that it has, or is to have. */
    const char *selected_node; /**< Where it is to be made. */
    const char *owner_uid;     /**< The object that controls it. */
    struct volume_kind kind;
    struct select_all selector;
    bool has_selector, is_bound, is_lost, is_leaving;
};

/** A PersistentVolume. */
struct volume {
    struct place_held held;
    const char *name, *version;
    const char *claim, *claim_uid; /**< The key of the claim that has it, and its uid. */
    struct volume_kind kind;
    struct select_labels labels;
    struct select_all *terms; /**< One of them holds for each node that may have it. */
    size_t n_terms;
    bool has_terms, is_free;
};

/** A StorageClass. */
struct volume_class {
    struct place_held held;
    const char *name;
    bool provisions, is_delayed;   /**< is_delayed: a claim waits for its pod's node. */
    struct select_all *topologies; /**< One of them holds for each node where it makes volumes. */
    size_t n_topologies;
};

/** Made with one holder. NULL: it is none. */
struct volume_claim *volume_claim_read(const json_t *claim);
struct volume *volume_read(const json_t *volume);
struct volume_class *volume_class_read(const json_t *volume_class);

/** Might the claim have the volume, wherever it is? */
bool volume_fits(const struct volume *volume, const struct volume_claim *claim);

/** May the node have it? */
bool volume_is_at(const struct volume *volume, const struct place_node *node);
bool volume_class_is_at(const struct volume_class *volume_class, const struct place_node *node);

#endif
