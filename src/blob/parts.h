/**
 * Bytes that come in parts, in any order and over days, until they are joined to a blob:
 *
 *     DIR/ID/NUMBER-SHA256     one file per part
 *
 * A part is there completely or not at all, and stays over a restart. Who sends knows by the list what
 * need not be sent again. A part that is sent again replaces the one of its number.
 * `id` is a UUID of the caller's. Any thread; what happens to one upload at the same time is for the
 * caller to order, but nothing worse than a part that is missing comes of it.
 */
#ifndef WEIR_BLOB_PARTS_H
#define WEIR_BLOB_PARTS_H

#include "blob/blob.h"

#define WEIR_PARTS_MAX 10000
#define WEIR_PARTS_JOINS_MAX                                                                       \
    2 /* at a time: each reads and writes gigabytes, and holds a thread for that */

struct weir_part {
    int64_t number; /**< From 1. */
    uint64_t bytes;
    char sha256[WEIR_SHA256_TEXT_BYTES];
};

/**
 * Make a file a part: it is synced and renamed, so it must lie on the file system of `dir`.
 * @param sha256     Of its bytes, by whoever wrote them.
 * @param max_bytes  Of all parts together.
 * @return INVALID: no such number; LIMIT; NOSPACE, IO. After an error the file is where it was.
 */
weir_status weir_part_take(const char *dir, const char *id, int64_t number, const char *path,
                           uint64_t bytes, const char *sha256, uint64_t max_bytes,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** The parts that are there, by number; none if there is no such upload. */
weir_status weir_parts_list(const char *dir, const char *id, struct weir_arena *arena,
                            struct weir_part **out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Join the parts 1 to n_parts to a blob; they stay until weir_parts_remove.
 * @param id   Checked: a UUID.
 * @return CONFLICT: one is missing, which it names; LIMIT over max_bytes; UNAVAILABLE: WEIR_PARTS_JOINS_MAX
 *         others are being joined; NOSPACE, IO.
 * Cost: reads, hashes and writes every byte; 1 MiB of memory.
 */
weir_status weir_parts_join(const char *dir, const char *id, int64_t n_parts,
                            struct weir_blobs *blobs, uint64_t max_bytes,
                            char out_sha256[WEIR_SHA256_TEXT_BYTES], uint64_t *out_bytes,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Take all parts of an upload away; none is OK. */
weir_status weir_parts_remove(const char *dir, const char *id,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
