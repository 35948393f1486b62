/** What Kubernetes takes as names and amounts, asked before it does. For kubernetes/manifest.c. */
#ifndef WEIR_CLUSTER_KUBERNETES_MANIFEST_CHECK_H
#define WEIR_CLUSTER_KUBERNETES_MANIFEST_CHECK_H

#include "cluster/kubernetes/manifest.h"

/** @return INVALID naming the flag and what is expected. */
weir_status kubernetes_manifest_check(const struct weir_kubernetes_manifest *wanted,
                                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
