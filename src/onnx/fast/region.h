/**
 * Region: the memory of a run's tensors, placed by lifetime. Addresses are given while a plan is
 * made and stay good for all its runs; plans of other shapes use the same memory, as one runs at a
 * time. Only what is written to takes memory.
 */
#ifndef WEIR_ONNX_FAST_REGION_H
#define WEIR_ONNX_FAST_REGION_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct region_block {
    size_t offset, n_bytes;
    int n_references;
};

struct region {
    char *base;
    size_t n_bytes;
    struct region_block **live; /* By offset. */
    size_t n_live, live_cap;
    size_t peak_bytes;
};

/** Reserves addresses for up to most_bytes; less where the process may not have as many. */
weir_status region_open(struct region *region, size_t most_bytes,
                        struct weir_error *err) WEIR_MUST_CHECK;
void region_close(struct region *region);

/** Everything is free again: a new plan begins. Blocks are forgotten. */
void region_begin(struct region *region);

/** Places a block, with one reference, at a multiple of 64. LIMIT, NOMEM. */
weir_status region_take(struct region *region, size_t n_bytes, struct region_block *block,
                        struct weir_error *err) WEIR_MUST_CHECK;
/** One reference less; the last makes the place free. */
void region_give(struct region *region, struct region_block *block);

static inline void *region_at(const struct region *region, const struct region_block *block)
{
    return region->base + block->offset;
}

/** Does the address lie here? */
bool region_has(const struct region *region, const void *address);

#endif
