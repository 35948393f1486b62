#include "store/event.h"

#include "store/alert_kind.h"
#include "store/noun.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

// clang-format off
static const struct weir_field alert_fields[] = {
    WEIR_FIELD(weir_alert, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_alert, key,             TEXT, WEIR_FIELD_READ_ONLY, "", "One unresolved alert per key"),
    WEIR_FIELD(weir_alert, severity,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "info, warning or critical"),
    WEIR_FIELD(weir_alert, kind,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "drift, training_failed, node_lost …"),
    WEIR_FIELD(weir_alert, subject,         TEXT, WEIR_FIELD_READ_ONLY, "", "About what: ion/NAME, node/NAME …"),
    WEIR_FIELD(weir_alert, project,         TEXT, WEIR_FIELD_READ_ONLY, "", "Whose the subject is; absent: the platform's"),
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
    "alerts", .project = "project",
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
    "UPDATE alerts SET count = count + 1, last_ms = :now, subject = :subject, project = :project,"
    " message = :message, data = :data, kind = :kind, severity = :severity"
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

/* What an act leads to may be of another project than its actor's: alerts are raised and ended as the server. */

struct raising {
    const struct weir_alert *alert;
    int64_t now_ms;
    bool is_new;
};

static weir_status raise_of(struct weir_txn *txn, struct raising *raising, char *project,
                            struct weir_error *err)
{
    const struct weir_alert *alert = raising->alert;
    const struct weir_alert_kind *kind = weir_alert_kind_find(alert->kind);
    struct weir_alert raised = {.id = alert->id,
                                .key = alert->key,
                                .severity = alert->severity,
                                .kind = alert->kind,
                                .subject = alert->subject,
                                .project = project,
                                .message = alert->message,
                                .data = alert->data,
                                .state = "open",
                                .count = 1,
                                .raised_ms = raising->now_ms,
                                .last_ms = raising->now_ms};
    int64_t n_changed;
    if (raised.severity == NULL) {
        raised.severity =
            (char *)(kind != NULL && kind->severity != NULL ? kind->severity : "critical");
    }
    WEIR_TRY(weir_txn_exec(
        txn, sql_raise_again,
        WEIR_BINDS(WEIR_BIND_INT("now", raising->now_ms), WEIR_BIND_TEXT("subject", raised.subject),
                   WEIR_BIND_TEXT("project", raised.project),
                   WEIR_BIND_TEXT("message", raised.message), WEIR_BIND_TEXT("data", raised.data),
                   WEIR_BIND_TEXT("kind", raised.kind), WEIR_BIND_TEXT("severity", raised.severity),
                   WEIR_BIND_TEXT("key", raised.key)),
        &n_changed, err));
    raising->is_new = n_changed == 0;
    return raising->is_new ? weir_txn_insert(txn, &weir_alert_resource, &raised, err) : WEIR_OK;
}

static weir_status raise_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct raising *raising = context;
    struct weir_arena arena;
    char *project;
    weir_arena_init(&arena, 0);
    weir_status status = weir_subject_project(txn, raising->alert->subject, &arena, &project, err);
    if (status == WEIR_OK) {
        status = raise_of(txn, raising, project, err);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_alert_raise(struct weir_txn *txn, const struct weir_alert *alert, int64_t now_ms,
                             bool *out_is_new, struct weir_error *err)
{
    struct raising raising = {.alert = alert, .now_ms = now_ms};
    WEIR_TRY(weir_txn_as(txn, NULL, raise_in, &raising, err));
    if (out_is_new != NULL) {
        *out_is_new = raising.is_new;
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

/** A statement about alerts, and what is bound to it. */
struct marking {
    const char *sql;
    const struct weir_bind *binds;
    size_t n_binds;
};

static weir_status mark_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct marking *marking = context;
    return weir_txn_exec(txn, marking->sql, marking->binds, marking->n_binds, NULL, err);
}

weir_status weir_alert_resolve(struct weir_txn *txn, const char *key, int64_t now_ms,
                               struct weir_error *err)
{
    struct marking marking = {sql_resolve,
                              WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("key", key))};
    return weir_txn_as(txn, NULL, mark_in, &marking, err);
}

weir_status weir_alert_look_again(struct weir_txn *txn, const char *subject, struct weir_error *err)
{
    struct marking marking = {sql_look_again, WEIR_BINDS(WEIR_BIND_TEXT("subject", subject))};
    return weir_txn_as(txn, NULL, mark_in, &marking, err);
}
