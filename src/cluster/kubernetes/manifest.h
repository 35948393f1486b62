/**
 * What an operator applies so that Weir runs on a Kubernetes cluster: the documents of its server, of the rights of its
 * driver (kubernetes/rights.h), and of what its agents may reach. manifest.yaml has them, and manifest_team.yaml those of
 * a team's namespace, with holes. Pure.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_MANIFEST_H
#define WEIR_CLUSTER_KUBERNETES_MANIFEST_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

/** Names in the documents that the driver uses too: its pods' account, and the label by which policies know them. */
#define WEIR_KUBERNETES_AGENT_ACCOUNT "weir-agent"
#define WEIR_KUBERNETES_PART_LABEL    "app.kubernetes.io/component"
#define WEIR_KUBERNETES_AGENT_PART    "agent"

struct weir_kubernetes_manifest {
    const char *name; /**< What Weir calls the cluster. */
    /** It places pods: "cluster" (its own scheduler), "kueue", or "weir", which takes more rights. */
    const char *scheduler;
    const char *namespace, *image;
    /** A namespace in which a queue has its pods: what it needs, and nothing else; NULL: all but such. */
    const char *team;
    const char *host;              /**< By which browsers reach the console; NULL: by none. */
    const char *ingress_class;     /**< NULL: the cluster's default one. */
    const char *ingress_namespace; /**< Where the controller of ingresses runs. */
    const char *storage;           /**< "20Gi" */
    const char *storage_class;     /**< NULL: the cluster's default one. */
    const char *quota; /**< "cpu=8,nvidia.com/gpu=4": of all of the namespace; NULL: none. */
    bool has_monitor;  /**< For Prometheus by its operator. */
    bool has_jobs;     /**< People see jobs with kubectl: the definition of WeirJobs, and rights. */
};

/**
 * The documents, in the order in which they are applied.
 * @param out  An array; a new reference.
 * @return INVALID naming a flag of `weir cluster manifest`: Kubernetes would not take its value.
 */
weir_status weir_kubernetes_manifest_make(const struct weir_kubernetes_manifest *wanted,
                                          json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** What to do then: commands, a line each, in the arena. */
const char *weir_kubernetes_manifest_notes(const struct weir_kubernetes_manifest *wanted,
                                           struct weir_arena *arena);

#endif
