/**
 * Orders: what the doors of one replica were told, until the server has heard it. Any thread.
 *
 *     door_orders_open(path, &orders)
 *     door_orders_note(orders, &order)     // a door: sent; later what came of it, under the same identifier
 *     door_orders_report(orders)           // the reporter: the oldest ORDERS_PER_REPORT
 *     door_orders_taken(orders)            // … and they have arrived
 *
 * An order is a line of the file before it is sent, and what came of it before door_orders_note returns: a kill loses none, as a
 * decision that no such line is there about comes again (outbox.h). A loss of power may: nothing is synced. What has arrived leaves the
 * file. While the server is away, at most ORDERS_MAX are kept; then the oldest go, which is logged.
 *
 * An identifier is one order. The first thing that came of it stands: told again, after a kill, a controller answers "repeated". One that
 * was sent and is not sent again was never answered, as far as is known: that is "silent", whatever holds it back now.
 */
#ifndef WEIR_PREDICT_DOOR_ORDERS_H
#define WEIR_PREDICT_DOOR_ORDERS_H

#include "base/json.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDERS_MAX        1024
#define ORDERS_PER_REPORT 64
#define ORDER_SENT        "sent" /**< Nothing has come of it yet. */

struct door_order {
    char id[WEIR_UUID_BYTES];
    char door[64], verb[8];
    char state[16];                /**< ORDER_SENT, an answer, "silent"; or why it was not sent. */
    char decision[64], camera[64]; /**< "": none. */
    char detail[200];              /**< Why, for people; "": nothing. */
    int64_t sent_ms, valid_until_ms;
    int64_t answered_ms; /**< 0: it is not. */
    bool is_held;        /**< It is not sent, for the state. */
};

struct door_orders;

/** Read what the process before has left. @param path  The file, made when it is needed; NULL: nothing outlives the process. */
struct door_orders *door_orders_open(const char *path);
void door_orders_close(struct door_orders *orders); /**< NULL is accepted. */

/** A file that cannot be written is logged; the order is kept in memory. orders NULL: nothing is noted. */
void door_orders_note(struct door_orders *orders, const struct door_order *order);

/** The oldest, as an array: a new reference; NULL: there are none. One thread at a time. orders NULL is accepted. */
json_t *door_orders_report(struct door_orders *orders);

/** The last report has arrived. */
void door_orders_taken(struct door_orders *orders);

#endif
