/** What the two halves of the snapshot share: reading (snapshot.c) and rows (snapshot_rows.c). */
#ifndef WEIR_CONTROL_SNAPSHOT_PRIVATE_H
#define WEIR_CONTROL_SNAPSHOT_PRIVATE_H

#include "control/snapshot.h"

/** Room for `n` elements; what is there stays. */
void *snapshot_grown(void *old, int32_t *cap, int32_t n, size_t size);

#endif
