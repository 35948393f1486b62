/**
 * The arithmetic of collectives: which rank sums which slice, and in which order. Pure functions.
 *
 * An array is cut into slices, one per rank, on multiples of 64 bytes for 4-byte elements, so that
 * two ranks never write the same cache line. Sums are taken per element in the order of the
 * sources. Vector width, slicing and chunking do not change a bit of the result.
 */
#ifndef WEIR_COMM_SUM_H
#define WEIR_COMM_SUM_H

#include "comm/comm.h"

struct comm_slice {
    size_t first, n; /**< Elements. */
};

/** Slice i_part of n_elems elements in n_parts. Slices cover all elements; some may be empty. */
struct comm_slice comm_slice(size_t n_elems, int n_parts, int i_part);

/**
 * Write the element-wise sum of n_sources >= 1 arrays, ((s0 + s1) + s2) + …, into each of n_targets
 * arrays. A target may be one of the sources; otherwise arrays do not overlap.
 */
void comm_sum(enum weir_comm_type type, void *const *targets, int n_targets,
              const void *const *sources, int n_sources, size_t n_elems);

#endif
