/**
 * Remake: after an upgrade, what older versions made is made to fit this one.
 *
 * The definition of a task is made with its job, and what agents want to know of one has grown since. When a
 * server starts on a database whose definitions are older than it, it makes those of all open jobs again, from their
 * specifications; jobs, tasks, attempts and folders stay. An attempt that runs goes on. A gang's next attempt is
 * by the new definition. A replica would run for ever, and its reports of then may no longer be understood: it is begun
 * again as soon as its node's agent is of this version too, and finds its folder.
 */
#ifndef WEIR_CONTROL_REMAKE_H
#define WEIR_CONTROL_REMAKE_H

#include "control/control.h"

/** Make definitions again where that was not done yet. One that cannot be is logged, and left. */
weir_status control_remake(struct control *control, struct weir_txn *txn,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Has the node a replica that control_remake_replica would begin again? */
weir_status control_remake_is_due(struct weir_txn *txn, const char *node, bool *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The agent of the node is of this version: begin one of its replicas of before again. The next of them has its turn
 *  with the next heartbeat. */
weir_status control_remake_replica(struct control *control, struct weir_txn *txn, const char *node,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
