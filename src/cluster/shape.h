/** Shape of a node, as the name of a pool: "16c-64g-4xh200". */
#ifndef WEIR_CLUSTER_SHAPE_H
#define WEIR_CLUSTER_SHAPE_H

#include "base/arena.h"

#include <stdint.h>

/** In the arena. @param model  Of its accelerators; NULL: it has none. Pure. */
const char *weir_shape_name(int64_t cpus, int64_t memory_bytes, int64_t n_accelerators,
                            const char *model, struct weir_arena *arena);

#endif
