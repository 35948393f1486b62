/**
 * A part of a device, as a pod of ours asks for it: by annotations, and a ConfigMap of its namespace that its containers read
 * (envFrom). What a container sees of devices is in its environment when it is made, which nothing but such a ConfigMap can
 * still change when a node is chosen. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_PART_H
#define WEIR_CLUSTER_KUBERNETES_PART_H

#include "cluster/kubernetes/scheduler/place.h"

#define PART_FRACTION "weir.dev/gpu-fraction"
#define PART_CONFIG   "weir.dev/gpu-config"
/** A binding writes both. */
#define PART_GROUP  "weir.dev/gpu-share"
#define PART_DEVICE "weir.dev/gpu-device"

/** Read what it asks for; what is wrong with that becomes its `asks_more`. */
void part_read(const json_t *object, struct place_pod *pod);

/** The ConfigMap of a pod that gets a part of that device. A new reference. */
json_t *part_config(const struct place_pod *pod, const char *device, struct weir_arena *arena);

#endif
