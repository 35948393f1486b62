/** Files of /sys and /proc: one value in a line each, below the context's root. */
#ifndef WEIR_DEVICE_SYSFS_H
#define WEIR_DEVICE_SYSFS_H

#include "device/device.h"

#include <stddef.h>

#define SYSFS_PATH_BYTES 512

/** ROOT + path as printf makes it, cut at the end. @return out. */
const char *sysfs_path(const struct weir_device_context *context, char out[SYSFS_PATH_BYTES],
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

/** First line of a file without blanks at its ends; "" if there is none. @return out. */
const char *sysfs_text(const char *path, char *out, size_t size);

/** The same as a number; `fallback` if it is none. */
int64_t sysfs_int(const char *path, int64_t fallback);

/** Call fn with each name in a folder that begins with `prefix`, in order; at most 1024. */
void sysfs_each(const char *folder, const char *prefix, void (*fn)(void *context, const char *name),
                void *context);

/** What stands behind "key" and a colon in a file of lines "key : value"; "" if nothing does. */
const char *sysfs_key(const char *path, const char *key, char *out, size_t size);

#endif
