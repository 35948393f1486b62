/**
 * Slab: the one allocation behind a set of tensors. It consists of zeroed pages from the kernel,
 * huge ones where possible: in other frameworks page faults took a quarter of the CPU time.
 */
#ifndef WEIR_NN_SLAB_H
#define WEIR_NN_SLAB_H

#include <stddef.h>

struct slab {
    char *base;
    size_t size_bytes;
    size_t used_bytes; /**< What slab_take has given out. */
};

/** Maps `size_bytes` of zeroed memory; 0 is fine. @return false if memory is out. */
_Bool slab_map(struct slab *slab, size_t size_bytes);
/** Gives the memory back. An empty slab is fine. */
void slab_unmap(struct slab *slab);

/** Touches all pages now: for memory whose first use may come late. */
void slab_populate(const struct slab *slab);

/**
 * The next `size_bytes` at a multiple of 64. A slab without memory (base NULL) counts only and
 * returns NULL. So the same calls are made twice: once to learn the size, and once after slab_map.
 */
void *slab_take(struct slab *slab, size_t size_bytes);

#endif
