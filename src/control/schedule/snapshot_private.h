/** What the two halves of the snapshot share: reading (snapshot.c) and rows (snapshot_rows.c). */
#ifndef WEIR_CONTROL_SNAPSHOT_PRIVATE_H
#define WEIR_CONTROL_SNAPSHOT_PRIVATE_H

#include "control/snapshot.h"

/** Room for `n` elements; what is there stays. */
void *snapshot_grown(void *old, int32_t *cap, int32_t n, size_t size);

/** What the copy holds of reservations, brought up to date; in a read transaction. */
weir_status snapshot_read_reservations(struct snapshot *snapshot, struct weir_txn *txn,
                                       int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** The planner's rows of reservations; after those of nodes and queues. */
void snapshot_fill_reservations(struct snapshot *snapshot, int64_t now_ms);

#endif
