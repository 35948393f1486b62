/**
 * Frozen: does a camera still see? It is told a digest of each frame.
 *
 * A sensor never gives the same picture twice; a camera whose frames are equal to the bit for a while
 * has hung, or what stands between repeats its last picture. Frames that equal one of the last few,
 * though not always the last, are duplicates: something sends frames again.
 */
#ifndef WEIR_STATS_FROZEN_H
#define WEIR_STATS_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_FROZEN_FRAMES   20    /**< Equal frames in a row … */
#define WEIR_FROZEN_AFTER_MS 30000 /**< … over at least so long, unless said. */
#define WEIR_FROZEN_RECENT   16    /**< Frames that one can be a duplicate of. */

/** Zero it before the first frame. */
struct weir_frozen {
    uint64_t recent[WEIR_FROZEN_RECENT]; /**< Ring. */
    uint64_t n;                          /**< Frames seen. */
    uint64_t n_equal;                    /**< In a row, this one included. */
    int64_t since_ms;                    /**< When the first of them came. */
};

/**
 * A frame was seen.
 * @return It equals one of the last WEIR_FROZEN_RECENT.
 */
bool weir_frozen_add(struct weir_frozen *frozen, uint64_t digest, int64_t time_ms);

/** Are the frames up to now one and the same, WEIR_FROZEN_FRAMES of them or more and for after_ms? */
bool weir_frozen_is(const struct weir_frozen *frozen, int64_t time_ms, int64_t after_ms);

/** 64-bit digest of bytes; equal pictures have equal ones. Not for secrets. About 8 bytes a ns. */
uint64_t weir_frozen_digest(const void *bytes, size_t len);

#endif
