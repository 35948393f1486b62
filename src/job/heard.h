/**
 * Heard: heartbeats that say nothing new.
 *
 * Most heartbeats repeat what the one before has said, but for readings: how warm a device is, how busy, how full a
 * disk. Such a one writes nothing. That the node was heard of, and its readings, are live values (store/live.h), which
 * every reader of nodes and devices sees at once. On the disk lies
 *
 * - when nodes were heard of (weir_heard_keep), at most WEIR_HEARD_EVERY_MS old: after a kill a server knows which were
 *   there;
 * - of readings what came with the last news.
 */
#ifndef WEIR_JOB_HEARD_H
#define WEIR_JOB_HEARD_H

#include "job/device.h"
#include "job/job.h"

#define WEIR_HEARD_EVERY_MS 15000

/**
 * A node was heard of, and this is what its agent read. With its first heartbeat and each that had news, when that is
 * committed, and with all others. @param is_news  Devices that are not among the reports are gone.
 */
void weir_heard_put(struct weir_store *store, const struct weir_node *node,
                    const struct weir_device_report *reports, size_t n_reports, bool is_news,
                    int64_t now_ms);

/** May a heartbeat without news be taken without writing: has the node not left, and is nothing there to be settled
 *  (weir_task_devices_settle)? */
weir_status weir_heard_is_enough(struct weir_txn *txn, const char *node, bool *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Keep on the disk when nodes were heard of. Cost: a page for each 100 nodes. */
weir_status weir_heard_keep(struct weir_txn *txn, struct weir_store *store,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** When the server starts: what the one before has kept. */
weir_status weir_heard_restore(struct weir_txn *txn, struct weir_error *err) WEIR_MUST_CHECK;

#endif
