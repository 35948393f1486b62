/** Pods of a cluster under Kubernetes: what of them is to be known. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_POD_H
#define WEIR_CLUSTER_KUBERNETES_POD_H

#include "cluster/driver.h"
#include "cluster/kubernetes/options.h"

#define KUBERNETES_ALLOCATION_LABEL "weir.dev/allocation"
#define KUBERNETES_NODES_LABEL      "weir.dev/nodes" /**< How many pods its allocation has. */

enum kubernetes_pod_phase {
    KUBERNETES_POD_WAITING,  /**< No node is found for it yet. */
    KUBERNETES_POD_STARTING, /**< It has a node, and its agent does not run yet. */
    KUBERNETES_POD_RUNNING,
    KUBERNETES_POD_SUCCEEDED,
    KUBERNETES_POD_FAILED,
};

/** What is kept of a pod; one block of memory, freed with free(). Text is NULL where nothing is said. */
struct kubernetes_pod {
    const char *allocation; /**< Tag; NULL: it is not one of ours. */
    const char *node;
    /* Set for our pods only. */
    const char *name, *namespace_name;
    const char *said; /**< "ImagePullBackOff" */
    const char *why;  /**< What the API says of it, as a sentence. */
    enum kubernetes_pod_phase phase;
    enum weir_allocation_ending ending; /**< If it has failed. */
    int64_t n_pods;                     /**< So many its allocation has. */
    /** It has had a node since then, and says why its agent does not start; 0: it is on its way, or has none. */
    int64_t stuck_since_ms;
    int64_t ends_ms; /**< When its time is over, since 1970; 0: nobody says. */
    bool is_leaving; /**< It has been told to end. */
    /* Set for all pods. */
    bool is_over;    /**< It has nothing of its node any more. */
    bool is_of_node; /**< A daemon's, or a static one. */
    int64_t cpu_milli, memory_bytes;
};

struct kubernetes_pod *kubernetes_pod_read(const json_t *pod);

/** What a pod asks for of a resource, in thousandths: all containers together, or the most that one that comes before them
 *  does; and what comes on top. */
int64_t kubernetes_pod_requests(const json_t *pod, const char *resource);

#endif
