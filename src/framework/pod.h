/**
 * What a job wants of the pods that its tasks run in: an image of a registry, and volumes. A cluster with a driver that
 * makes pods (cluster/driver.h) alone has it; an image of another name is a file, which nodes unpack. Pure.
 */
#ifndef WEIR_FRAMEWORK_POD_H
#define WEIR_FRAMEWORK_POD_H

#include "base/json.h"
#include "base/status.h"

#define FRAMEWORK_POD_VOLUMES_MAX 32

/** Is it a name of an image in a registry, as "pytorch/pytorch:2.3.0"? One without "/" and ":" is not, nor is a blob. */
bool weir_image_is_of_registry(const char *image);

/**
 * Check members "image" and "volumes" of a specification.
 * @return INVALID with the place, as "$.spec.volumes[0]: …".
 */
weir_status weir_pod_check(const json_t *spec, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What a specification that has been checked wants of its pods, in one form whatever way it is said: {"image", "volumes"},
 * volumes by their path. @return A new reference; NULL: nothing.
 */
json_t *weir_pod_wanted(const json_t *spec);

#endif
