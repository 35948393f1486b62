/**
 * Embedding store: embeddings of photos by one model, in one file, found by the photo's digest.
 *
 * File: "WEIREMB1", dim (4 bytes), count (8), then per photo 64 digits of its SHA-256 and dim
 * floats, in order of digest, then CRC-32 of all before; little-endian. A file that is damaged or
 * of another dim is as good as none.
 */
#ifndef WEIR_PREDICT_EMBEDDING_STORE_H
#define WEIR_PREDICT_EMBEDDING_STORE_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"

#include <stddef.h>

#define EMBEDDING_DIGEST_LEN 64

struct embedding_store {
    size_t dim, n;
    char *rows; /**< n rows of digest and vector. */
    struct weir_arena arena;
};

/** Caller memory; empty if there is no usable file. */
void embedding_store_load(struct embedding_store *store, const char *path, size_t dim);
void embedding_store_fini(struct embedding_store *store);

/** Copy the vector of a photo; false if it is not there. */
bool embedding_store_find(const struct embedding_store *store, const char *digest, float *out);

/** Replace the file by n embeddings. Order and duplicates do not matter. */
weir_status embedding_store_save(const char *path, size_t dim, const char *const *digests,
                                 const float *vectors, size_t n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
