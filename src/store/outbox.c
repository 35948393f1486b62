#include "store/event.h"

#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>

// clang-format off
static const struct weir_field outbox_fields[] = {
    WEIR_FIELD(weir_outbox, seq,        INT,  WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Order of decision"),
    WEIR_FIELD(weir_outbox, key,        TEXT, WEIR_FIELD_READ_ONLY, "", "Idempotency key"),
    WEIR_FIELD(weir_outbox, kind,       TEXT, WEIR_FIELD_READ_ONLY, "", "What to do"),
    WEIR_FIELD(weir_outbox, payload,    JSON, WEIR_FIELD_READ_ONLY, "", "With what"),
    WEIR_FIELD(weir_outbox, state,      TEXT, WEIR_FIELD_READ_ONLY, "", "pending, done or failed"),
    WEIR_FIELD(weir_outbox, attempts,   INT,  WEIR_FIELD_READ_ONLY, "", "How often it was taken"),
    WEIR_FIELD(weir_outbox, due_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "Not before"),
    WEIR_FIELD(weir_outbox, error,      TEXT, WEIR_FIELD_READ_ONLY, "", "What went wrong last"),
    WEIR_FIELD(weir_outbox, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was decided"),
    WEIR_FIELD(weir_outbox, done_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was done"),
};
// clang-format on

const struct weir_resource weir_outbox_resource =
    WEIR_RESOURCE("outbox entry", "outbox", weir_outbox, outbox_fields);

const struct weir_noun weir_noun_outbox = {
    "outbox", .rules = {WEIR_RULE("actions", "Actions of the server that are done or failed",
                                  "Those done longest ago go first.", 190,
                                  {WEIR_DAYS(7), WEIR_MB(20)}, 400, 5, .time = "done_ms",
                                  .key = "key", .tie = "seq", .where = "state <> 'pending'")}};

static const char sql_has_key[] = "SELECT count(*) FROM outbox WHERE key = :key";
static const char sql_next_due[] =
    "SELECT min(CASE WHEN due_ms > :latest THEN :now ELSE due_ms END) FROM outbox"
    " WHERE state = 'pending'";
static const char sql_forget_delay[] =
    "UPDATE outbox SET due_ms = :now WHERE state = 'pending' AND due_ms > :latest";
static const char sql_done[] =
    "UPDATE outbox SET state = 'done', done_ms = :now, error = NULL WHERE seq = :seq";
static const char sql_retry[] = "UPDATE outbox SET due_ms = :due, error = :error WHERE seq = :seq";
static const char sql_failed[] =
    "UPDATE outbox SET state = 'failed', done_ms = :now, error = :error WHERE seq = :seq";
static const char sql_release[] = "UPDATE outbox SET due_ms = :now"
                                  " WHERE state = 'pending' AND attempts > 0 AND due_ms > :now";

weir_status weir_outbox_add(struct weir_txn *txn, const char *key, const char *kind,
                            const char *payload, int64_t due_ms, int64_t now_ms,
                            struct weir_error *err)
{
    int64_t n_there;
    WEIR_TRY(weir_txn_query_int(txn, sql_has_key, WEIR_BINDS(WEIR_BIND_TEXT("key", key)), 0,
                                &n_there, err));
    if (n_there > 0) {
        return WEIR_OK;
    }
    struct weir_outbox entry = {.key = (char *)key,
                                .kind = (char *)kind,
                                .payload = (char *)payload,
                                .state = "pending",
                                .due_ms = due_ms,
                                .created_ms = now_ms};
    WEIR_TRY(weir_txn_next(txn, "outbox", &entry.seq, err));
    return weir_txn_insert(txn, &weir_outbox_resource, &entry, err);
}

weir_status weir_outbox_take(struct weir_txn *txn, int64_t now_ms, int64_t lease_ms, size_t limit,
                             struct weir_arena *arena, struct weir_outbox **out, size_t *out_n,
                             struct weir_error *err)
{
    void *items;
    size_t n;
    const int64_t latest_ms = now_ms + WEIR_OUTBOX_DELAY_MAX_MS;
    WEIR_TRY(weir_txn_exec(
        txn, sql_forget_delay,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("latest", latest_ms)), NULL, err));
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("state", EQ, "pending"),
                                                  WEIR_FILTER_INT("due_ms", LE, now_ms)),
                                     .limit = limit};
    WEIR_TRY(weir_txn_list(txn, &weir_outbox_resource, &query, arena, &items, &n, NULL, err));
    struct weir_outbox *entries = items;
    for (size_t i = 0; i < n; i++) {
        entries[i].attempts++;
        entries[i].due_ms = now_ms + lease_ms;
        WEIR_TRY(weir_txn_update(txn, &weir_outbox_resource, &entries[i],
                                 WEIR_FIELDS("attempts", "due_ms"), err));
    }
    *out = entries;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_outbox_next_due(struct weir_txn *txn, int64_t now_ms, int64_t *out_ms,
                                 struct weir_error *err)
{
    const int64_t latest_ms = now_ms + WEIR_OUTBOX_DELAY_MAX_MS;
    return weir_txn_query_int(
        txn, sql_next_due,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("latest", latest_ms)), INT64_MAX,
        out_ms, err);
}

/** The entry must be there. */
static weir_status change(struct weir_txn *txn, const char *sql, int64_t seq,
                          const struct weir_bind *binds, size_t n_binds, struct weir_error *err)
{
    int64_t n_changed;
    WEIR_TRY(weir_txn_exec(txn, sql, binds, n_binds, &n_changed, err));
    if (n_changed == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no outbox entry %" PRId64, seq);
    }
    return WEIR_OK;
}

weir_status weir_outbox_done(struct weir_txn *txn, int64_t seq, int64_t now_ms,
                             struct weir_error *err)
{
    return change(txn, sql_done, seq,
                  WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("seq", seq)), err);
}

weir_status weir_outbox_fail(struct weir_txn *txn, int64_t seq, const char *error, int64_t retry_ms,
                             int64_t now_ms, struct weir_error *err)
{
    if (retry_ms != 0) {
        return change(txn, sql_retry, seq,
                      WEIR_BINDS(WEIR_BIND_INT("due", retry_ms), WEIR_BIND_TEXT("error", error),
                                 WEIR_BIND_INT("seq", seq)),
                      err);
    }
    return change(txn, sql_failed, seq,
                  WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("error", error),
                             WEIR_BIND_INT("seq", seq)),
                  err);
}

weir_status weir_outbox_release(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_release, WEIR_BINDS(WEIR_BIND_INT("now", now_ms)), NULL, err);
}
