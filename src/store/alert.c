#include "store/event.h"

#include "store/alert_kind.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field alert_fields[] = {
    WEIR_FIELD(weir_alert, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_alert, key,             TEXT, WEIR_FIELD_READ_ONLY, "", "One unresolved alert per key"),
    WEIR_FIELD(weir_alert, severity,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "info, warning or critical"),
    WEIR_FIELD(weir_alert, kind,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "drift, training_failed, node_lost …"),
    WEIR_FIELD(weir_alert, subject,         TEXT, WEIR_FIELD_READ_ONLY, "", "About what: ion/NAME, node/NAME …"),
    WEIR_FIELD(weir_alert, message,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "A sentence"),
    WEIR_FIELD(weir_alert, data,            JSON, WEIR_FIELD_READ_ONLY, "", "Details"),
    WEIR_FIELD(weir_alert, state,           TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "open, acknowledged or resolved"),
    WEIR_FIELD(weir_alert, count,           INT,  WEIR_FIELD_READ_ONLY, "", "How often it was raised"),
    WEIR_FIELD(weir_alert, raised_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "First time"),
    WEIR_FIELD(weir_alert, last_ms,         TIME, WEIR_FIELD_READ_ONLY, "ms", "Last time"),
    WEIR_FIELD(weir_alert, acknowledged_by, TEXT, WEIR_FIELD_READ_ONLY, "", "Who has seen it"),
    WEIR_FIELD(weir_alert, acknowledged_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
    WEIR_FIELD(weir_alert, acknowledged_note, TEXT, WEIR_FIELD_READ_ONLY, "", "What they said"),
    WEIR_FIELD(weir_alert, silence,         TEXT, WEIR_FIELD_READ_ONLY, "", "Silence that holds it back: nobody is told"),
    WEIR_FIELD(weir_alert, silenced_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "Until when"),
    WEIR_FIELD(weir_alert, resolved_by,     TEXT, WEIR_FIELD_READ_ONLY, "", "Who ended it; nobody: its cause was gone"),
    WEIR_FIELD(weir_alert, resolved_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it ended"),
    WEIR_FIELD(weir_alert, is_sandbox,      BOOL, WEIR_FIELD_READ_ONLY, "", "Of an ION that is a sandbox: nobody is told"),
};
// clang-format on

const struct weir_resource weir_alert_resource =
    WEIR_RESOURCE("alert", "alerts", weir_alert, alert_fields);

const struct weir_noun weir_noun_alert = {
    "alerts", .subject = "subject",
    .rules = {WEIR_RULE(
        "alerts", "Alerts that are resolved",
        "Those resolved longest ago go first; one that is not resolved stays.", 50,
        {WEIR_DAYS(90), WEIR_MB(20)}, 600, 10, .time = "resolved_ms", .where = "state = 'resolved'",
        .remove = {"DELETE FROM alert_firings WHERE alert IN (SELECT id FROM alerts WHERE id = :key"
                   " AND state = 'resolved')",
                   "DELETE FROM alerts WHERE id = :key AND state = 'resolved'"})},
    .captured = WEIR_CAPTURED("alerts", 90, .resource = &weir_alert_resource, .by = "subject",
                              .time = "raised_ms", .since_always = true, .ended = "resolved_ms")};

static const char sql_raise_again[] =
    "UPDATE alerts SET count = count + 1, last_ms = :now, subject = :subject, message = :message,"
    " data = :data, kind = :kind, severity = :severity"
    " WHERE key = :key AND state <> 'resolved'";
static const char sql_acknowledge[] =
    "UPDATE alerts SET state = 'acknowledged', acknowledged_by = :actor, acknowledged_ms = :now,"
    " acknowledged_note = :note, looked = 0"
    " WHERE id = :id AND state = 'open'";
static const char sql_resolve[] =
    "UPDATE alerts SET state = 'resolved', resolved_ms = :now, looked = 0"
    " WHERE key = :key AND state <> 'resolved'";
static const char sql_end[] =
    "UPDATE alerts SET state = 'resolved', resolved_ms = :now, resolved_by = :actor, looked = 0"
    " WHERE id = :id AND state <> 'resolved'";
static const char sql_look_again[] =
    "UPDATE alerts SET looked = 0 WHERE state <> 'resolved'"
    " AND substr(subject || '/', 1, length(:subject) + 1) = :subject || '/'";
static const char sql_is_there[] =
    "SELECT CASE WHEN state = 'resolved' THEN 2 ELSE 1 END FROM alerts WHERE id = :id";

weir_status weir_alert_raise(struct weir_txn *txn, const struct weir_alert *alert, int64_t now_ms,
                             bool *out_is_new, struct weir_error *err)
{
    int64_t n_changed;
    const struct weir_alert_kind *kind = weir_alert_kind_find(alert->kind);
    const char *severity = alert->severity != NULL                  ? alert->severity
                           : kind != NULL && kind->severity != NULL ? kind->severity
                                                                    : "critical";
    WEIR_TRY(weir_txn_exec(
        txn, sql_raise_again,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("subject", alert->subject),
                   WEIR_BIND_TEXT("message", alert->message), WEIR_BIND_TEXT("data", alert->data),
                   WEIR_BIND_TEXT("kind", alert->kind), WEIR_BIND_TEXT("severity", severity),
                   WEIR_BIND_TEXT("key", alert->key)),
        &n_changed, err));
    if (n_changed == 0) {
        struct weir_alert raised = *alert;
        raised.severity = (char *)severity;
        raised.state = "open";
        raised.count = 1;
        raised.raised_ms = now_ms;
        raised.last_ms = now_ms;
        raised.acknowledged_by = NULL;
        raised.acknowledged_ms = 0;
        raised.acknowledged_note = NULL;
        raised.silence = NULL;
        raised.silenced_ms = 0;
        raised.resolved_by = NULL;
        raised.resolved_ms = 0;
        raised.is_sandbox = false;
        WEIR_TRY(weir_txn_insert(txn, &weir_alert_resource, &raised, err));
    }
    if (out_is_new != NULL) {
        *out_is_new = n_changed == 0;
    }
    return WEIR_OK;
}

/* Why nothing could be done with the alert; WEIR_OK: it is there, and not resolved. */
static weir_status check_open(struct weir_txn *txn, const char *id, struct weir_error *err)
{
    int64_t found;
    WEIR_TRY(weir_txn_query_int(txn, sql_is_there, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), 0, &found,
                                err));
    if (found == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no alert \"%s\"", id);
    }
    if (found == 2) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "alert \"%s\" is resolved already", id);
    }
    return WEIR_OK;
}

weir_status weir_alert_acknowledge(struct weir_txn *txn, const char *id, const char *actor,
                                   const char *note, int64_t now_ms, struct weir_error *err)
{
    int64_t n_changed;
    WEIR_TRY(weir_txn_exec(txn, sql_acknowledge,
                           WEIR_BINDS(WEIR_BIND_TEXT("actor", actor), WEIR_BIND_TEXT("note", note),
                                      WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("id", id)),
                           &n_changed, err));
    return n_changed == 1 ? WEIR_OK : check_open(txn, id, err);
}

weir_status weir_alert_end(struct weir_txn *txn, const char *id, const char *actor, int64_t now_ms,
                           struct weir_error *err)
{
    char **kinds;
    size_t n;
    struct weir_arena arena;
    WEIR_TRY(check_open(txn, id, err));
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_txn_query_texts(txn, "SELECT kind FROM alerts WHERE id = :id",
                             WEIR_BINDS(WEIR_BIND_TEXT("id", id)), &arena, &kinds, &n, err);
    const struct weir_alert_kind *kind =
        status == WEIR_OK && n > 0 ? weir_alert_kind_find(kinds[0]) : NULL;
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    if (kind != NULL && kind->is_watched) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "an alert of kind %s ends by itself: when %s. Acknowledge or silence "
                              "it until then",
                              kind->kind, kind->resolved);
    }
    return weir_txn_exec(txn, sql_end,
                         WEIR_BINDS(WEIR_BIND_TEXT("id", id), WEIR_BIND_TEXT("actor", actor),
                                    WEIR_BIND_INT("now", now_ms)),
                         NULL, err);
}

weir_status weir_alert_resolve(struct weir_txn *txn, const char *key, int64_t now_ms,
                               struct weir_error *err)
{
    return weir_txn_exec(txn, sql_resolve,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("key", key)), NULL,
                         err);
}

weir_status weir_alert_look_again(struct weir_txn *txn, const char *subject, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_look_again, WEIR_BINDS(WEIR_BIND_TEXT("subject", subject)), NULL,
                         err);
}
