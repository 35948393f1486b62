/**
 * Slab: the one allocation behind a set of tensors. Zeroed pages straight from the kernel, asked to
 * be huge ones: page faults were a quarter of stock frameworks' CPU time where we measured.
 */
#ifndef WEIR_NN_SLAB_H
#define WEIR_NN_SLAB_H

#include <stddef.h>

struct slab {
    char *base;
    size_t size_bytes;
    size_t used_bytes; /**< Of slab_take. */
};

/** Map `size_bytes` (0 is fine) of zeroed memory. @return false if memory is out. */
_Bool slab_map(struct slab *slab, size_t size_bytes);
void slab_unmap(struct slab *slab);

/** Have the kernel give all pages now: for memory whose first use may come late. */
void slab_populate(const struct slab *slab);

/**
 * The next `size_bytes` at a multiple of 64. A slab without memory (base NULL) only counts: run the
 * same calls once to learn the size, map it, run them again.
 */
void *slab_take(struct slab *slab, size_t size_bytes);

#endif
