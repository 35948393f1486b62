/**
 * Orders: what doors were told, as their replica reports it, each once. An order that a decision is behind names it, but no person:
 * that is the decision's to say, as long as it is kept.
 */
#ifndef WEIR_ION_ORDER_H
#define WEIR_ION_ORDER_H

#include "base/record.h"
#include "store/store.h"

#include <stdint.h>

struct weir_door_order {
    char *id; /**< The command's, by the replica. */
    int64_t seq;
    char *ion, *pipeline, *replica, *door;
    char *verb;     /**< "open", "hold", "lock" */
    char *state;    /**< "sent", an answer, "silent", or why it was not sent. */
    char *decision; /**< NULL: it is the door's hours, or a lock-down. */
    char *camera;
    int64_t sent_ms, valid_until_ms;
    int64_t answered_ms; /**< 0: it is not. */
    char *detail;        /**< Why, in the controller's words or the replica's. */
};

extern const struct weir_resource weir_door_order_resource;

/** What "state" may be, with blanks between. */
#define WEIR_ORDER_STATES                                                                          \
    "sent done repeated late refused jammed silent locked-down not-now interlocked"

/**
 * Keep orders of one replica; seq is not read. One that is there stays as it is, unless it was only sent.
 * @return INVALID: an order lacks its id, door, verb or time, or has another state.
 */
weir_status weir_door_orders_store(struct weir_txn *txn, const struct weir_door_order *orders,
                                   size_t n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
