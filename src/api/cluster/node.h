/** Nodes and their devices, for the routes that tell of both. */
#ifndef WEIR_API_NODE_H
#define WEIR_API_NODE_H

#include "api/core/call.h"
#include "api/core/views.h"

/** The views of nodes, in their order, in the arena: with what is kept and what is used of each, now, and without
 *  their devices. One statement for all of them. */
struct weir_node;
weir_status api_node_views(const struct api_call *call, struct weir_txn *txn,
                           const struct weir_node *nodes, size_t n_nodes, struct api_node **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Tell of each device's holders only those of projects whose jobs the caller may read; the others are
 *  counted. */
struct weir_device;
weir_status api_devices_name(const struct api_call *call, struct weir_txn *txn,
                             struct weir_device *devices, size_t n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** An event of the node that the call is about. @param kind  "node_drained". */
weir_status api_node_tell(struct api_call *call, struct weir_txn *txn, const char *kind,
                          const char *message, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take $.devices, $.unhealthy and $.time_ms of a heartbeat: what is wrong with the node goes into
 * node->unhealthy, how many accelerators it has into n_accelerators. Pure.
 * @param out  The devices, *out_n of them; NULL if the body has none: then nothing is known.
 */
struct weir_device_report;
weir_status api_node_read_devices(const struct api_call *call, struct weir_node *node,
                                  struct weir_device_report **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
