/**
 * What placing pods needs to know of pods and nodes: digests of a mirror's, richer than the driver's own (pod.h, node.h).
 * Each has an arena of its own, and is there as long as somebody holds it: the mirror, and cycles that go on. For the
 * scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_PLACE_H
#define WEIR_CLUSTER_KUBERNETES_PLACE_H

#include "cluster/kubernetes/options.h"
#include "cluster/kubernetes/scheduler/select.h"

#include <stdatomic.h>

#define PLACE_SCHEDULER     "weir" /**< spec.schedulerName of those that Weir places. */
#define PLACE_DEFAULT_QUEUE "default"
#define PLACE_QUEUE         "weir.dev/queue"       /**< Label, else annotation. */
#define PLACE_GANG          "weir.dev/gang"        /**< The same. */
#define PLACE_GANG_SIZE     "weir.dev/gang-size"   /**< The same. */
#define PLACE_PREEMPTIBLE   "weir.dev/preemptible" /**< Label. */
#define PLACE_PORT          "hostPort/"
#define PLACE_GANG_MAX      100000

/** How many hold a digest. */
struct place_held {
    struct weir_arena arena;
    atomic_int n_holders;
};

/** How much of a resource that is neither processors nor memory: an extended one, disk, huge pages, a port of the host. */
struct place_amount {
    const char *name;
    int64_t count;
};

/** Pods of which it is said that they lie together, or apart, in one value of a node's label. */
struct place_term {
    const char *key; /**< The label. */
    struct select_all pods;
    const char **spaces; /**< Namespaces of these pods. */
    size_t n_spaces;
    bool is_everywhere; /**< In all namespaces. */
    bool has_selector;  /**< Also in those that this selects by their labels. */
    struct select_all selector;
    const char *text; /**< Equal ones say the same. */
    int64_t max_skew; /**< A spread constraint has one. */
    int32_t weight;   /**< For each of these pods, where it does not bind; below 0: rather apart. */
};

struct place_terms {
    struct place_term *rows;
    size_t n;
};

/** Nodes that a pod rather has. */
struct place_nodes_wish {
    struct select_all nodes;
    int32_t weight;
};

/** A taint as the planner knows it: the key, ":" and the effect. */
struct place_toleration {
    const char *key, *value, *effect; /**< NULL: any. */
};

/** A part of a device that a pod asks for (part.h). Text is NULL where nothing is said. */
struct place_part {
    int64_t milli;              /**< Thousandths of one device; 0: none. */
    const char *config;         /**< The ConfigMap that its containers read. */
    const char *group, *device; /**< It was bound with them. */
};

/** What a pod holds for others that have parts of it (reservation.h). */
struct place_holder {
    const char *group;   /**< NULL: it holds nothing for others. */
    const char *trouble; /**< Why it does not run; NULL: nobody says. */
    bool is_running;
};

/** A volume that it mounts by a claim. */
struct place_claim {
    const char *key;   /**< "NAMESPACE/NAME" */
    bool is_ephemeral; /**< Made for it alone. */
};

/** Text is NULL where nothing is said. */
struct place_pod {
    struct place_held held;
    const char *space, *name, *key, *uid; /**< `key` is "NAMESPACE/NAME". */
    const char *node, *nominated;
    const char *queue;     /**< PLACE_DEFAULT_QUEUE where nothing is said. */
    const char *gang;      /**< "NAMESPACE/GANG" */
    const char *said;      /**< Why it waits, as its condition has it. */
    const char *asks_more; /**< What it asks for that cannot be had here: a sentence. */
    int64_t gang_size, priority;
    int64_t created_ms, bound_ms; /**< Since 1970; 0: nobody says. */
    int64_t gone_ms;              /**< When it has to be gone; 0: it may stay. */
    int64_t time_limit_ms;        /**< 0: none. */
    int64_t cpu_milli, memory_bytes;
    struct place_amount *amounts;
    size_t n_amounts;
    struct select_labels labels, node_selector;
    struct select_all *node_terms; /**< One of them, where there are some. */
    size_t n_node_terms;
    bool has_node_terms;
    struct place_toleration *tolerations;
    size_t n_tolerations;
    struct place_terms with, apart, spread; /**< Required alone. */
    struct place_part part;
    struct place_holder holder;
    struct place_terms rather; /**< What does not bind, of these three. */
    struct place_nodes_wish *rather_nodes;
    size_t n_rather_nodes;
    bool selects_spaces; /**< One that binds selects namespaces by labels. */
    bool sees_spaces;    /**< One of any of them does. */
    /** Pods of the same number rather lie on different nodes; 0: it does not matter. */
    uint32_t rather_apart;
    struct place_claim *claims; /**< For its volumes. */
    size_t n_claims;
    bool is_ours;
    bool is_over, has_succeeded, is_gated;
    bool is_preemptible, never_preempts;
};

struct place_taint {
    const char *key, *value, *effect;
};

struct place_node {
    struct place_held held;
    const char *name;
    const char *device, *model; /**< Resource and model of its accelerators; NULL: it has none. */
    int64_t cpu_milli, memory_bytes, n_devices, n_pods;
    struct place_amount *amounts; /**< All the rest. */
    size_t n_amounts;
    struct select_labels labels;
    struct place_taint *taints; /**< That keep pods away. */
    size_t n_taints;
    struct place_taint *mild_taints; /**< That only rather do. */
    size_t n_mild_taints;
    bool is_cordoned, is_ready;
};

/** Made with one holder. */
struct place_pod *place_pod_read(const json_t *pod);
struct place_node *place_node_read(const struct kubernetes_options *options, const json_t *node);

/** One holder more, one less; with the last it is freed. NULL is accepted. Any thread. */
void place_hold(const struct place_held *held);
void place_release(void *digest);

/** How much of it is asked for, or there. */
int64_t place_amount_of(const struct place_amount *amounts, size_t n, const char *name);

/** Does the pod, by its tolerations, pass a taint? */
bool place_tolerates(const struct place_pod *pod, const struct place_taint *taint);

/** Does the node fit the pod's required affinity to nodes? */
bool place_fits_node_terms(const struct place_pod *pod, const struct place_node *node);

struct spaces;

/** Is the pod one of those that the term of another speaks of? Namespaces that are not seen are all taken for selected. */
bool place_term_has(const struct place_term *term, const struct place_pod *pod,
                    const struct spaces *spaces);

#endif
