/**
 * Beats: what each node's last heartbeat said, as a digest, so that one that says the same is known at once. Readings
 * (temperatures, use, what of a disk is free) are no part of it. In memory; a server that has just started knows none.
 * Any thread. Cost: a hundred bytes for each node.
 */
#ifndef WEIR_API_BEATS_H
#define WEIR_API_BEATS_H

#include "base/sha256.h"

#include <stdbool.h>
#include <stdint.h>

/** After so long a heartbeat is taken for news though it says the same: what else it sets right is not forgotten. */
#define BEATS_KEPT_MS 600000

struct beats;

struct beats *beats_create(void);
void beats_destroy(struct beats *beats);

/** Was this said last, and not too long ago? */
bool beats_has(struct beats *beats, const char *node, const char digest[WEIR_SHA256_TEXT_BYTES],
               int64_t mono_ms);

/** It was said, and is in the store. */
void beats_keep(struct beats *beats, const char *node, const char digest[WEIR_SHA256_TEXT_BYTES],
                int64_t mono_ms);

/** Somebody changed what heartbeats say of this node: the next one is news. */
void beats_forget(struct beats *beats, const char *node);

#endif
