/** Comparisons of two versions that run, as people see them. */
#ifndef WEIR_API_ARMS_H
#define WEIR_API_ARMS_H

#include "api/core/views.h"
#include "ion/ion.h"

/** Of an ION; an array in the arena. What cannot be read is left out. The state is borrowed as long as the array. */
struct api_ab_comparison *comparisons_of_ion(struct weir_txn *txn,
                                             const struct weir_ion_state *state, int64_t now_ms,
                                             struct weir_arena *arena, size_t *out_n);

/** At a deployment; an array in the arena. An ION that cannot be read is left out. */
struct api_ab_comparison *comparisons_at(struct weir_txn *txn, const char *deployment,
                                         int64_t now_ms, struct weir_arena *arena, size_t *out_n);

#endif
