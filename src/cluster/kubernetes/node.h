/** Nodes of a cluster under Kubernetes, and the pools that they are. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_NODE_H
#define WEIR_CLUSTER_KUBERNETES_NODE_H

#include "cluster/driver.h"
#include "cluster/kubernetes/options.h"

/** What is kept of a node; one block of memory, freed with free(). Text is NULL where nothing is said. */
struct kubernetes_node {
    const char *name;
    const char *pool;   /**< Value of the pools' label. */
    const char *model;  /**< What its accelerators are; NULL: it has none. */
    const char *device; /**< Their resource. */
    const char *closed; /**< Why it takes nothing new. */
    int64_t cpu_milli, memory_bytes, n_devices;
    bool is_cordoned; /**< A person closed it. */
};

/** @return NULL: it is not one of those that the options select. */
struct kubernetes_node *kubernetes_node_read(const struct kubernetes_options *options,
                                             const json_t *node);

/** What its vendor's labels call the accelerators of a node that has this resource; else the vendor. In the arena, or of the
 *  labels. */
const char *kubernetes_node_model(const json_t *labels, const char *device,
                                  struct weir_arena *arena);

/** What pods have of a node. */
struct kubernetes_use {
    const char *node;
    int64_t cpu_milli; /**< Requested by all. */
    int64_t own_cpu_milli,
        own_memory_bytes; /**< By what belongs to the node: daemons, static pods. */
};

/** Those of a node, of an array sorted by node; NULL: it is not among them. */
struct kubernetes_use *kubernetes_use_of(struct kubernetes_use *uses, size_t n, const char *node);

struct kubernetes_pool {
    struct weir_pool_offer offer;
    const char *label;       /**< Value of the pools' label; NULL: it is told by its shape. */
    const char *device;      /**< Resource of its accelerators. */
    const char **node_names; /**< In the arena. */
    size_t n_nodes;
};

/**
 * The pools that nodes are: those with one value of the pools' label, or those of one shape (processors, memory within 3 %,
 * accelerators). A node of a pool has so much as the least of them leaves beside what belongs to the node.
 * @param uses  Sorted by node. @param out  In the arena.
 */
void kubernetes_pools_make(const struct kubernetes_node *const *nodes, size_t n_nodes,
                           struct kubernetes_use *uses, size_t n_uses, struct weir_arena *arena,
                           struct kubernetes_pool **out, size_t *out_n);

#endif
