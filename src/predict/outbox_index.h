/**
 * Outbox index: where the newest decisions lie in the log, by the keys of their frames.
 *
 * It remembers the last `capacity` decisions; an older one is forgotten when a new one comes. Keys
 * are 64-bit hashes: whoever acts on a hit reads the record and compares the names. Not
 * thread-safe: the outbox guards it.
 */
#ifndef WEIR_PREDICT_OUTBOX_INDEX_H
#define WEIR_PREDICT_OUTBOX_INDEX_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Not known: the decision was made durable by an earlier process. */
#define OUTBOX_DURABLE_UNKNOWN UINT32_MAX

struct outbox_index_entry {
    uint64_t key;
    uint64_t position;
    uint32_t durable_us;
    uint32_t next; /**< Chain: entry number + 1. */
};

struct outbox_index {
    struct outbox_index_entry *entries; /**< Ring. */
    uint32_t *buckets;                  /**< Entry number + 1; 0 = empty. */
    size_t capacity, n_buckets;
    uint64_t n_added;
};

weir_status outbox_index_init(struct outbox_index *index, size_t capacity) WEIR_MUST_CHECK;
void outbox_index_fini(struct outbox_index *index);

/** Of a frame's key. */
uint64_t outbox_hash(const char *key);

/** Positions must grow from call to call. */
void outbox_index_add(struct outbox_index *index, uint64_t key, uint64_t position,
                      uint32_t durable_us);

/** The newest with this key; NULL if there is none. Good until the next add. */
const struct outbox_index_entry *outbox_index_find(const struct outbox_index *index, uint64_t key);

/** Position of the oldest decision remembered; false while empty. */
bool outbox_index_oldest(const struct outbox_index *index, uint64_t *out_position);

#endif
