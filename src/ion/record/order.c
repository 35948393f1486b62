#include "ion/order.h"

#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field order_fields[] = {
    WEIR_FIELD_SIZED(weir_door_order, id, TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED, 64, "", "Identifier of the command"),
    WEIR_FIELD(weir_door_order, seq,            INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_door_order, ion,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_door_order, pipeline,       TEXT, WEIR_FIELD_READ_ONLY, "", "Pipeline"),
    WEIR_FIELD(weir_door_order, replica,        TEXT, WEIR_FIELD_READ_ONLY, "", "Replica that told the door"),
    WEIR_FIELD_SIZED(weir_door_order, door, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 63, "", "Door"),
    WEIR_FIELD_SIZED(weir_door_order, verb, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 8, "", "open, hold or lock"),
    WEIR_FIELD_SIZED(weir_door_order, state, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 16, "", "What came of it: done, repeated, late, refused or jammed, as the door says; silent; sent, if nothing yet; locked-down, not-now or interlocked, if it was not sent"),
    WEIR_FIELD_SIZED(weir_door_order, decision, TEXT, 0, 64, "", "The decision that lets somebody in; none: the door's hours, or a lock-down"),
    WEIR_FIELD_SIZED(weir_door_order, camera, TEXT, WEIR_FIELD_COLUMN, 63, "", "The decision's camera"),
    WEIR_FIELD(weir_door_order, sent_ms,        TIME, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN | WEIR_FIELD_FIRST, "ms", "When it was sent first, by the clock of the replica's node"),
    WEIR_FIELD(weir_door_order, valid_until_ms, TIME, 0, "ms", "Until when a door may carry it out"),
    WEIR_FIELD(weir_door_order, answered_ms,    TIME, WEIR_FIELD_COLUMN, "ms", "When the answer was there"),
    WEIR_FIELD_SIZED(weir_door_order, detail, TEXT, WEIR_FIELD_COLUMN, 256, "", "Why, in the words of the door, or of its replica"),
};
// clang-format on

const struct weir_resource weir_door_order_resource =
    WEIR_RESOURCE("order", "door_orders", weir_door_order, order_fields);

const struct weir_noun weir_noun_door_order = {
    "door_orders", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("orders", "What doors were told, one row each", "The oldest go first.", 15,
                        {WEIR_DAYS(30), WEIR_MB(40)}, 450, 8, .is_of_project = true,
                        .by = WEIR_ROWS_NUMBERED, .time = "sent_ms")},
    .captured = WEIR_CAPTURED("orders", 115, .resource = &weir_door_order_resource, .by = "ion",
                              .time = "sent_ms")};

/* Another ION's of the same identifier stays as it is. */
static const char sql_forget_sent[] =
    "DELETE FROM door_orders WHERE id = :id AND ion = :ion AND state = 'sent'";
static const char sql_is_there[] = "SELECT count(*) FROM door_orders WHERE id = :id";

static bool is_word(const char *text, const char *words)
{
    size_t len = strlen(text);
    for (const char *at = words; len > 0 && (at = strstr(at, text)) != NULL; at += len) {
        if ((at == words || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' ')) {
            return true;
        }
    }
    return false;
}

static weir_status store_one(struct weir_txn *txn, const struct weir_door_order *order,
                             struct weir_error *err)
{
    struct weir_door_order numbered = *order;
    int64_t n_there;
    if (!is_word(order->state, WEIR_ORDER_STATES)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.orders: \"%.40s\" is no state of an order",
                              order->state);
    }
    if (strcmp(order->state, "sent") != 0) {
        WEIR_TRY(weir_txn_exec(
            txn, sql_forget_sent,
            WEIR_BINDS(WEIR_BIND_TEXT("id", order->id), WEIR_BIND_TEXT("ion", order->ion)), NULL,
            err));
    }
    WEIR_TRY(weir_txn_query_int(txn, sql_is_there, WEIR_BINDS(WEIR_BIND_TEXT("id", order->id)), 0,
                                &n_there, err));
    if (n_there > 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_next(txn, "door_orders", &numbered.seq, err));
    return weir_txn_insert(txn, &weir_door_order_resource, &numbered, err);
}

weir_status weir_door_orders_store(struct weir_txn *txn, const struct weir_door_order *orders,
                                   size_t n, struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(store_one(txn, &orders[i], err));
    }
    return WEIR_OK;
}
