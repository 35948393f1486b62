/**
 * What the driver asks of a cluster's API server, as a table: the rules of its roles are made of it, and what lacks is
 * named by it.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_RIGHTS_H
#define WEIR_CLUSTER_KUBERNETES_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/** Which clusters need a right. */
enum kubernetes_right_who {
    KUBERNETES_RIGHT_ALWAYS,
    KUBERNETES_RIGHT_WEIR, /**< Where Weir places the cluster's pods. */
    /** The same, and some pods alone: what lacks is said of these pods, and no cluster is wrong for it. */
    KUBERNETES_RIGHT_SOME,
    KUBERNETES_RIGHT_JOBS, /**< Where people see jobs (shown.h): the definition of WeirJobs is installed. */
    KUBERNETES_N_RIGHT_WHO,
};

struct kubernetes_right {
    const char *verb;     /**< "get" */
    const char *group;    /**< Group of the API: "batch"; "" for the core's. */
    const char *resource; /**< "pods", or with a subresource "pods/log". */
    bool is_cluster_wide; /**< In all namespaces, not in the cluster's alone. */
    enum kubernetes_right_who who;
    const char *purpose; /**< "to ask for nodes" */
};

/** In the order of rights.def. */
extern const struct kubernetes_right kubernetes_rights[];
extern const size_t kubernetes_n_rights;

#endif
