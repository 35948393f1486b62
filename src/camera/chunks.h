/** A body that comes in chunks (RFC 9112, 7.1), piece by piece: what it says, without sizes, extensions and trailers. Pure. */
#ifndef WEIR_CAMERA_CHUNKS_H
#define WEIR_CAMERA_CHUNKS_H

#include "base/buf.h"

#include <stdbool.h>

/** All zeros before the first piece. */
struct camera_chunks {
    enum { CHUNKS_SIZE, CHUNKS_EXTENSION, CHUNKS_DATA, CHUNKS_END, CHUNKS_TRAILER } state;

    size_t n_left;   /**< Bytes of the chunk to come. */
    size_t n_digits; /**< The size's, so far; behind the last chunk, the trailer line's. */
    bool is_over;    /**< The body is whole: what comes is left. */
};

/** Append what a piece says. @return CORRUPT: these are no chunks; LIMIT: out has no room, or a chunk is larger than `most`. */
weir_status camera_chunks_take(struct camera_chunks *chunks, const char *bytes, size_t n,
                               size_t most, struct weir_buf *out) WEIR_MUST_CHECK;

#endif
