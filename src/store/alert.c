#include "store/event.h"

#include "store/alert_kind.h"
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
    WEIR_FIELD(weir_alert, resolved_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When its cause was gone"),
};
// clang-format on

const struct weir_resource weir_alert_resource =
    WEIR_RESOURCE("alert", "alerts", weir_alert, alert_fields);

static const char sql_raise_again[] =
    "UPDATE alerts SET count = count + 1, last_ms = :now, subject = :subject, message = :message,"
    " data = :data"
    " WHERE key = :key AND state <> 'resolved'";
static const char sql_acknowledge[] =
    "UPDATE alerts SET state = 'acknowledged', acknowledged_by = :actor, acknowledged_ms = :now"
    " WHERE id = :id AND state = 'open'";
static const char sql_resolve[] = "UPDATE alerts SET state = 'resolved', resolved_ms = :now"
                                  " WHERE key = :key AND state <> 'resolved'";
static const char sql_is_there[] =
    "SELECT CASE WHEN state = 'resolved' THEN 2 ELSE 1 END FROM alerts WHERE id = :id";

weir_status weir_alert_raise(struct weir_txn *txn, const struct weir_alert *alert, int64_t now_ms,
                             bool *out_is_new, struct weir_error *err)
{
    int64_t n_changed;
    WEIR_TRY(weir_txn_exec(
        txn, sql_raise_again,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("subject", alert->subject),
                   WEIR_BIND_TEXT("message", alert->message), WEIR_BIND_TEXT("data", alert->data),
                   WEIR_BIND_TEXT("key", alert->key)),
        &n_changed, err));
    if (n_changed == 0) {
        const struct weir_alert_kind *kind = weir_alert_kind_find(alert->kind);
        struct weir_alert raised = *alert;
        if (raised.severity == NULL) {
            raised.severity =
                (char *)(kind != NULL && kind->severity != NULL ? kind->severity : "critical");
        }
        raised.state = "open";
        raised.count = 1;
        raised.raised_ms = now_ms;
        raised.last_ms = now_ms;
        raised.acknowledged_by = NULL;
        raised.acknowledged_ms = 0;
        raised.resolved_ms = 0;
        WEIR_TRY(weir_txn_insert(txn, &weir_alert_resource, &raised, err));
    }
    if (out_is_new != NULL) {
        *out_is_new = n_changed == 0;
    }
    return WEIR_OK;
}

weir_status weir_alert_acknowledge(struct weir_txn *txn, const char *id, const char *actor,
                                   int64_t now_ms, struct weir_error *err)
{
    int64_t n_changed, found;
    WEIR_TRY(weir_txn_exec(txn, sql_acknowledge,
                           WEIR_BINDS(WEIR_BIND_TEXT("actor", actor), WEIR_BIND_INT("now", now_ms),
                                      WEIR_BIND_TEXT("id", id)),
                           &n_changed, err));
    if (n_changed == 1) {
        return WEIR_OK;
    }
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

weir_status weir_alert_resolve(struct weir_txn *txn, const char *key, int64_t now_ms,
                               struct weir_error *err)
{
    return weir_txn_exec(txn, sql_resolve,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("key", key)), NULL,
                         err);
}
