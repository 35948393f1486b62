/** A request as what the API server is asked to make: a Secret and a Job. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_JOB_H
#define WEIR_CLUSTER_KUBERNETES_JOB_H

#include "cluster/kubernetes/node.h"

#define KUBERNETES_MANAGER "weir"

/** Label of all that is ours, with the value KUBERNETES_MANAGER. */
#define KUBERNETES_MANAGED_LABEL "app.kubernetes.io/managed-by"

/**
 * The Job of one pod with an agent per node. New references to JSON.
 * @param n_pools  How many the cluster has: of one alone nodes need not be named.
 * @return LIMIT for more nodes than the pool has; INVALID for more than one of its nodes has.
 */
weir_status kubernetes_job_make(const struct kubernetes_options *options,
                                const struct kubernetes_pool *pool, size_t n_pools,
                                const struct weir_node_request *request, struct weir_arena *arena,
                                json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Weir's own image. */
const char *kubernetes_weir_image(const struct kubernetes_options *options);

/** What each pod of Weir's has: the account, and no rights. A new reference to a part of a pod's spec. */
json_t *kubernetes_pod_base(const struct kubernetes_options *options);

/** What every container may, which is nothing. A new reference. */
json_t *kubernetes_no_rights(void);

/** The Secret with which its agents join. @param uid  Of the Job, with which it goes away; NULL: there is none yet. */
json_t *kubernetes_secret_make(const struct weir_node_request *request, const char *uid,
                               struct weir_arena *arena);

#endif
