/**
 * A node goes: what is on it moves on, and is no failure of it.
 */
#ifndef WEIR_CONTROL_NODE_GONE_H
#define WEIR_CONTROL_NODE_GONE_H

#include "control/control.h"

/**
 * Each job with a task on the node is asked to save and to wait for another node (event EVICT): of a service that
 * replica alone, of an elastic gang that task if it can spare it, else the whole gang, once.
 *
 * @param why    For the job: "node n1 is drained by ann".
 * @param out_n  How many were; may be NULL.
 */
weir_status control_node_evict(struct control *control, struct weir_txn *txn, const char *node,
                               const char *why, int64_t *out_n,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The node is gone for good, and has left: its tokens end, its devices are forgotten, its tasks are lost.
 *
 * @param is_foreseen  None of it counts as a restart.
 */
weir_status control_node_gone(struct control *control, struct weir_txn *txn, const char *node,
                              bool is_foreseen, const char *why,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
