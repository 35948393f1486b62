/** A struct and the texts that it points to, as one block of memory. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_BLOCK_H
#define WEIR_CLUSTER_KUBERNETES_BLOCK_H

#include <stddef.h>

/**
 * Copy a struct into one block with copies of its texts behind it.
 * @param texts  Offsets of its members of type const char *, which may be NULL.
 * @return To be freed with free(). Never NULL.
 */
void *kubernetes_block(const void *object, size_t size, const size_t *texts, size_t n_texts);

#endif
