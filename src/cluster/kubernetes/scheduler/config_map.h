/** The ConfigMap that tells a pod's containers of their part of a device. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_CONFIG_MAP_H
#define WEIR_CLUSTER_KUBERNETES_CONFIG_MAP_H

#include "kube/client.h"

/**
 * Have it as it should be: made, or changed where it is one of Weir's.
 * @param wanted  All of it, with its namespace.
 * @return CONFLICT for one that is there and is not Weir's; else as weir_kube_call.
 */
weir_status config_map_write(struct weir_kube *kube, const json_t *wanted, struct weir_arena *arena,
                             struct weir_kube_refusal *refusal,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
