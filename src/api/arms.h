/** Comparisons of two versions that run, as people see them. */
#ifndef WEIR_API_ARMS_H
#define WEIR_API_ARMS_H

#include "ion/ion.h"

/** Of an ION; a new array. What cannot be read is left out. */
json_t *comparisons_of_ion(struct weir_txn *txn, const struct weir_ion_state *state, int64_t now_ms,
                           struct weir_arena *arena);

/** At a deployment; a new array. An ION that cannot be read is left out. */
json_t *comparisons_at(struct weir_txn *txn, const char *deployment, int64_t now_ms,
                       struct weir_arena *arena);

#endif
