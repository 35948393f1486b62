/**
 * SHA-256 of bytes as they come.
 *
 *     struct weir_sha256_stream hash;
 *     weir_sha256_begin(&hash);
 *     weir_sha256_add(&hash, bytes, len);     any number of times
 *     weir_sha256_end(&hash, text);
 */
#ifndef WEIR_BASE_SHA256_H
#define WEIR_BASE_SHA256_H

#include "base/file.h"

/** The library's state, which its own header need not be there for. */
struct weir_sha256_stream {
    _Alignas(8) unsigned char state[128];
};

void weir_sha256_begin(struct weir_sha256_stream *stream);
void weir_sha256_add(struct weir_sha256_stream *stream, const void *bytes, size_t len);
void weir_sha256_end(struct weir_sha256_stream *stream, char out[WEIR_SHA256_TEXT_BYTES]);

#endif
