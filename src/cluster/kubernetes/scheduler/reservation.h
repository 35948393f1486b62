/**
 * Reservations: a device of a node that pods have parts of is held by a pod of Weir's own namespace, which asks for one whole
 * device as any pod does. So the kubelet, and every other scheduler, count it as taken. It prints which device it was given.
 * Such a device is a group: its name follows from the node's, so that it is made once, whatever is killed. Pure. For the
 * scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_RESERVATION_H
#define WEIR_CLUSTER_KUBERNETES_RESERVATION_H

#include "cluster/kubernetes/scheduler/place.h"

#define RESERVATION_CONTAINER    "holder"
#define RESERVATION_CPU_MILLI    10 /**< What its pod asks for. */
#define RESERVATION_MEMORY_BYTES ((int64_t)16 << 20)
#define RESERVATION_PRINTED_MAX  4096 /**< Bytes of its log that are looked at. */

/** The n-th group of a node. */
const char *reservation_group(const char *node, int32_t n, struct weir_arena *arena);

/** Which of the node's groups it is; -1: none. */
int32_t reservation_number(const char *node, const char *group);

/** The name of a group's pod. */
const char *reservation_name(const char *group, struct weir_arena *arena);

/** What all such pods have. A new reference. */
json_t *reservation_template(const struct kubernetes_options *options);

/** @param device  The resource. A new reference. */
json_t *reservation_make(const json_t *common, const char *node, const char *device,
                         const char *group, struct weir_arena *arena);

/** Read whether a pod is one. */
void reservation_read(const json_t *object, struct place_pod *pod);

/**
 * The device that its pod was given, by what it printed.
 * @param out_wrong  In/out: set to what is wrong, half a sentence, if it tells of none.
 * @return NULL: none; without *out_wrong it has not printed yet.
 */
const char *reservation_device(const char *printed, struct weir_arena *arena,
                               const char **out_wrong);

#endif
