#include "notify/queue.h"

#include "base/uuid.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

#define ERROR_MAX_BYTES 500

static const char sql_count[] =
    "SELECT count(*) FROM alert_deliveries WHERE receiver = :receiver AND state = 'pending'";
/* Of one alert only the oldest may go; of each receiver the one that is due first. */
static const char sql_list[] =
    "SELECT receiver, seq, due FROM (SELECT receiver, seq, due, row_number() OVER"
    " (PARTITION BY receiver ORDER BY due, seq) AS place FROM (SELECT receiver, seq,"
    " CASE WHEN due_ms > :latest THEN 0 ELSE due_ms END AS due"
    " FROM alert_deliveries AS d WHERE state = 'pending' AND NOT EXISTS (SELECT 1 FROM"
    " alert_deliveries AS o WHERE o.receiver = d.receiver AND o.state = 'pending'"
    " AND o.alert = d.alert AND o.seq < d.seq)) AS may) AS placed WHERE place = 1"
    " ORDER BY due";
static const char sql_id[] = "SELECT id FROM alert_deliveries WHERE seq = :seq";
/* What was given up meanwhile, because its receiver was deleted, stays so. */
static const char sql_sent[] =
    "UPDATE alert_deliveries SET state = 'sent', error = NULL, done_ms = :now"
    " WHERE seq = :seq AND state = 'pending'";
static const char sql_failed[] =
    "UPDATE alert_deliveries SET state = :state, error = :error, due_ms = :due, done_ms = :done"
    " WHERE seq = :seq AND state = 'pending'";
static const char sql_give_back[] =
    "UPDATE alert_deliveries SET due_ms = :now, attempts = attempts - 1"
    " WHERE seq = :seq AND state = 'pending'";
static const char sql_release[] =
    "UPDATE alert_deliveries SET due_ms = :now WHERE state = 'pending' AND due_ms > :now";
static const char sql_forget[] =
    "UPDATE alert_deliveries SET state = 'dead', done_ms = :now, error = 'its receiver was deleted'"
    " WHERE receiver = :receiver AND state = 'pending'";

static const char sql_fails[] = "UPDATE alert_receivers SET is_failing = 1 WHERE name = :name";
static const char sql_takes[] =
    "UPDATE alert_receivers SET is_failing = 0, last_sent_ms = :now WHERE name = :name";

static char *failing_key(const char *receiver, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "receiver_failing:%s", receiver);
}

static weir_status raise_failing(struct weir_txn *txn, const char *receiver, const char *message,
                                 int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_alert alert = {.id = id,
                                     .key = failing_key(receiver, arena),
                                     .kind = "receiver_failing",
                                     .subject = "server/alerts",
                                     .message = (char *)message};
    WEIR_TRY(
        weir_txn_exec(txn, sql_fails, WEIR_BINDS(WEIR_BIND_TEXT("name", receiver)), NULL, err));
    return weir_alert_raise(txn, &alert, now_ms, NULL, err);
}

weir_status notify_queue_add(struct weir_txn *txn, const struct weir_alert_delivery *delivery,
                             int64_t now_ms, struct weir_arena *arena, char **out_id,
                             struct weir_error *err)
{
    int64_t n;
    char id[WEIR_UUID_BYTES];
    struct weir_alert_delivery added = *delivery;
    if (out_id != NULL) {
        *out_id = NULL;
    }
    WEIR_TRY(weir_txn_query_int(
        txn, sql_count, WEIR_BINDS(WEIR_BIND_TEXT("receiver", delivery->receiver)), 0, &n, err));
    if (n >= NOTIFY_QUEUE_MAX) {
        return raise_failing(txn, delivery->receiver,
                             weir_arena_printf(arena,
                                               "%d messages wait for receiver %s of alerts: new "
                                               "ones are left out until it takes some.",
                                               NOTIFY_QUEUE_MAX, delivery->receiver),
                             now_ms, arena, err);
    }
    weir_uuid_make(id);
    added.id = id;
    added.state = "pending";
    added.attempts = 0;
    added.due_ms = now_ms;
    added.created_ms = now_ms;
    added.error = NULL;
    added.done_ms = 0;
    WEIR_TRY(weir_txn_next(txn, "alert_deliveries", &added.seq, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_alert_delivery_resource, &added, err));
    if (out_id != NULL) {
        *out_id = weir_arena_strdup(arena, id);
    }
    return WEIR_OK;
}

weir_status notify_queue_list(struct weir_txn *txn, int64_t now_ms, struct weir_arena *arena,
                              struct notify_waiting **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct notify_waiting *list =
        WEIR_ARENA_ARRAY(arena, WEIR_ALERT_RECEIVERS_MAX, struct notify_waiting);
    size_t n = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_list,
                            WEIR_BINDS(WEIR_BIND_INT("latest", now_ms + NOTIFY_RETRY_MAX_MS)),
                            &stmt, err));
    while (n < WEIR_ALERT_RECEIVERS_MAX) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        list[n++] = (struct notify_waiting){weir_stmt_text(stmt, 0, arena), weir_stmt_int(stmt, 1),
                                            weir_stmt_int(stmt, 2)};
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}

weir_status notify_queue_take(struct weir_txn *txn, int64_t seq, int64_t now_ms,
                              struct weir_arena *arena, struct weir_alert_delivery *out,
                              struct weir_error *err)
{
    char **ids;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, sql_id, WEIR_BINDS(WEIR_BIND_INT("seq", seq)), arena, &ids,
                                  &n, err));
    WEIR_TRY(
        weir_txn_get(txn, &weir_alert_delivery_resource, n > 0 ? ids[0] : "", arena, out, err));
    bool is_due = out->due_ms <= now_ms || out->due_ms > now_ms + NOTIFY_RETRY_MAX_MS;
    if (strcmp(out->state, "pending") != 0 || !is_due) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "delivery \"%s\" is done, or not due",
                              out->id);
    }
    out->attempts++;
    out->due_ms = now_ms + NOTIFY_LEASE_MS;
    return weir_txn_update(txn, &weir_alert_delivery_resource, out,
                           WEIR_FIELDS("attempts", "due_ms"), err);
}

weir_status notify_queue_sent(struct weir_txn *txn, const struct weir_alert_delivery *delivery,
                              int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    int64_t n_changed;
    WEIR_TRY(
        weir_txn_exec(txn, sql_sent,
                      WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("seq", delivery->seq)),
                      &n_changed, err));
    if (n_changed == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_exec(
        txn, sql_takes,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("name", delivery->receiver)), NULL,
        err));
    return weir_alert_resolve(txn, failing_key(delivery->receiver, arena), now_ms, err);
}

int64_t notify_retry_ms(int64_t attempts)
{
    int64_t shift = WEIR_MIN(attempts - 1, (int64_t)20);
    return WEIR_MIN((int64_t)1000 << WEIR_MAX(shift, (int64_t)0), NOTIFY_RETRY_MAX_MS);
}

weir_status notify_queue_failed(struct weir_txn *txn, const struct weir_alert_delivery *delivery,
                                const char *error, bool is_final, int64_t now_ms,
                                struct weir_arena *arena, struct weir_error *err)
{
    bool is_dead = is_final || delivery->attempts >= NOTIFY_TRIES_MAX;
    const char *cut = weir_arena_printf(arena, "%.*s", ERROR_MAX_BYTES, error);
    int64_t due_ms = is_dead ? 0 : now_ms + notify_retry_ms(delivery->attempts), n_changed;
    WEIR_TRY(weir_txn_exec(txn, sql_failed,
                           WEIR_BINDS(WEIR_BIND_TEXT("state", is_dead ? "dead" : "pending"),
                                      WEIR_BIND_TEXT("error", cut), WEIR_BIND_INT("due", due_ms),
                                      WEIR_BIND_INT("done", is_dead ? now_ms : 0),
                                      WEIR_BIND_INT("seq", delivery->seq)),
                           &n_changed, err));
    if (n_changed == 0 || (!is_dead && delivery->attempts < NOTIFY_TRIES_TOLD)) {
        return WEIR_OK;
    }
    return raise_failing(
        txn, delivery->receiver,
        weir_arena_printf(
            arena, "Receiver %s of alerts does not take messages: %s.%s", delivery->receiver, cut,
            is_dead ? " One was given up: `weir get alert-deliveries state=dead`." : ""),
        now_ms, arena, err);
}

weir_status notify_queue_give_back(struct weir_txn *txn, int64_t seq, int64_t now_ms,
                                   struct weir_error *err)
{
    return weir_txn_exec(txn, sql_give_back,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("seq", seq)), NULL,
                         err);
}

weir_status notify_queue_release(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_release, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), NULL, err);
}

weir_status notify_queue_forget(struct weir_txn *txn, const char *receiver, int64_t now_ms,
                                struct weir_arena *arena, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(
        txn, sql_forget,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("receiver", receiver)), NULL, err));
    return weir_alert_resolve(txn, failing_key(receiver, arena), now_ms, err);
}
