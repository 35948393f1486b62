/**
 * Volumes of pods, as documents say them: {"path": "/data", "claim": "datasets"}, or with "nfs": "HOST:/DIR" or
 * "host": "/DIR" in place of the claim, and "writable": true for one that is written to. Pure; any thread.
 */
#ifndef WEIR_BASE_VOLUME_H
#define WEIR_BASE_VOLUME_H

#include "base/json.h"

#include <stdbool.h>

/** Text is the document's. One of the three sources is there, the others are NULL. */
struct weir_volume {
    const char *path; /**< Where it is seen. */
    const char *claim, *nfs, *host;
    bool is_writable;
};

/**
 * Read one. What a pod has of its own at such a path is no place for one: /proc, /tmp itself, what is Weir's.
 * @param out  Filled in if it is one.
 * @return NULL, or what is expected in its place.
 */
const char *weir_volume_read(const json_t *document, struct weir_volume *out);

#endif
