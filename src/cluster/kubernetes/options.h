/** What a cluster under Kubernetes is told by its document. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_OPTIONS_H
#define WEIR_CLUSTER_KUBERNETES_OPTIONS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** What places the pods: the words of option "scheduler". */
#define KUBERNETES_BY_CLUSTER "cluster"
#define KUBERNETES_BY_KUEUE   "kueue"
#define KUBERNETES_BY_WEIR    "weir"

/** Text is NULL where nothing is said; JSON is borrowed from the document. */
struct kubernetes_options {
    char *kubeconfig, *context, *namespace_name;
    const json_t *servers; /**< Further addresses of its API servers. */
    char *scheduler;
    char *kueue_queue, *priority_class;
    /** {"QUEUE": {"namespace", "kueue_queue", "priority_class", "pod_image"}} */
    const json_t *queues;
    char *image;     /**< Weir's. */
    char *pod_image; /**< What tasks see; NULL: Weir's. */
    const json_t *pull_secrets;
    /** Extended resource: "nvidia.com/gpu"; NULL: each with a name that ends in "/gpu". */
    char *device;
    char *pool_label; /**< Nodes with one value of it are a pool; NULL: nodes of one shape are. */
    const json_t *node_selector, *tolerations, *labels, *annotations;
    const json_t *topology; /**< Labels of nodes that say where they are, the widest first. */
    const json_t *volumes;  /**< As base/volume.h has them. */
    /** What jobs may have of their pods: beginnings of images' names, NULL: all; "claim:NAME", "nfs:HOST:/DIR". */
    const json_t *job_images, *job_volumes;
    char *runtime_class, *service_account;
    char *time, *grace;
    int64_t user;
    char *server, *ca_file; /**< What agents are told, as the pods have it. */
};

/** Whom a request is for, over there. Borrowed; NULL: nothing is said. */
struct kubernetes_payer {
    const char *namespace_name, *kueue_queue, *priority_class, *pod_image;
};

struct kubernetes_payer kubernetes_options_payer(const struct kubernetes_options *options,
                                                 const char *queue);

/** `time` and `grace` in milliseconds; time 0: none. */
int64_t kubernetes_options_time_ms(const struct kubernetes_options *options);
int64_t kubernetes_options_grace_ms(const struct kubernetes_options *options);

bool kubernetes_is_scheduled_by(const struct kubernetes_options *options, const char *who);

/** Is it the name of a resource that counts as an accelerator? */
bool kubernetes_is_device(const struct kubernetes_options *options, const char *resource);

/**
 * Do they make sense, whatever the cluster is? Pure.
 * @return NULL, or a sentence that names the option. In the arena.
 */
const char *kubernetes_options_wrong(const struct kubernetes_options *options,
                                     struct weir_arena *arena);

#endif
