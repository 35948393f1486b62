/**
 * Visible: the accelerators that a process may use, as CUDA_VISIBLE_DEVICES lists them: "0,3" are places among those that
 * it sees, "GPU-8f3a…,MIG-5e1c…" are UUIDs, of which the first part is enough.
 */
#ifndef WEIR_DEVICE_VISIBLE_H
#define WEIR_DEVICE_VISIBLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** Is a device in the list? NULL: all are. @param place  -1: it has none, as a slice. Pure. */
bool visible_has(const char *list, int place, const char *uuid);

/** The entry behind `*at` in the list, which moves on; false: there is none. Pure. */
bool visible_next(const char **at, const char **out, size_t *out_len);

/** Is the library of NVIDIA's driver there, which tells what there is? It is opened if it was not. */
struct weir_device_context;
bool nvml_is_here(struct weir_device_context *context);

#endif
