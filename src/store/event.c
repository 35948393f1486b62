#include "store/event.h"

#include "store/chain.h"
#include "store/noun.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field event_fields[] = {
    WEIR_FIELD(weir_event, seq,     INT,  WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Number, in commit order"),
    WEIR_FIELD(weir_event, time_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it happened"),
    WEIR_FIELD(weir_event, topic,   TEXT, WEIR_FIELD_READ_ONLY, "", "Area: ions, jobs, runs, alerts, system …"),
    WEIR_FIELD(weir_event, kind,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What happened, one word"),
    WEIR_FIELD(weir_event, severity, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "info, warning or error"),
    WEIR_FIELD(weir_event, subject, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "To what: ion/NAME, job/ID …"),
    WEIR_FIELD(weir_event, project, TEXT, WEIR_FIELD_READ_ONLY, "", "Whose the subject is; absent: the platform's"),
    WEIR_FIELD(weir_event, actor,   TEXT, WEIR_FIELD_READ_ONLY, "", "Who did it"),
    WEIR_FIELD(weir_event, message, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "A sentence"),
    WEIR_FIELD(weir_event, data,    JSON, WEIR_FIELD_READ_ONLY, "", "Details"),
    WEIR_FIELD(weir_event, chain,   INT,  WEIR_FIELD_READ_ONLY, "", "Of the audit: number in its chain; else 0"),
    WEIR_FIELD(weir_event, hash,    TEXT, WEIR_FIELD_READ_ONLY, "", "Of the audit: SHA-256 of the row behind the one before"),
};
static const struct weir_field setting_fields[] = {
    WEIR_FIELD(weir_setting, key,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED, "", "Name"),
    WEIR_FIELD(weir_setting, value,      JSON, WEIR_FIELD_REQUIRED | WEIR_FIELD_MUTABLE, "", "Value"),
    WEIR_FIELD(weir_setting, updated_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "Last change"),
};
// clang-format on

const struct weir_resource weir_event_resource =
    WEIR_RESOURCE("event", "events", weir_event, event_fields);
const struct weir_resource weir_setting_resource =
    WEIR_RESOURCE("setting", "settings", weir_setting, setting_fields);

const struct weir_noun weir_noun_event = {
    "events", .project = "project",
    .rules = {WEIR_RULE("events", "What happened, in sentences", "The oldest go first.", 20,
                        {WEIR_DAYS(90), WEIR_MB(80)}, 420, 9, .by = WEIR_ROWS_NUMBERED,
                        .time = "time_ms", .where = WEIR_TRAIL_SQL " = 0"),
              WEIR_RULE("audit", "What admins did to users and tokens", "The oldest go first.", 30,
                        {WEIR_DAYS(730), WEIR_MB(30)}, 420, 9, .by = WEIR_ROWS_NUMBERED,
                        .time = "time_ms", .where = WEIR_TRAIL_SQL " = 1",
                        .trail = WEIR_TRAIL_ACTS),
              WEIR_RULE("accesses",
                        "Sessions, first uses of tokens, refusals, looks at pictures of people",
                        "The oldest go first.", 40, {WEIR_DAYS(90), WEIR_MB(20)}, 420, 9,
                        .by = WEIR_ROWS_NUMBERED, .time = "time_ms", .where = WEIR_TRAIL_SQL " = 2",
                        .trail = WEIR_TRAIL_ACCESSES)},
    .captured = WEIR_CAPTURED("events", 80, .resource = &weir_event_resource, .by = "subject",
                              .time = "time_ms")};

/* Kinds that are not here are "info". A change needs a migration for the events of before. */
static const struct {
    const char *kind, *severity;
} severities[] = {
    {"training_failed", "error"},     {"job_failed", "error"},
    {"job_restarting", "warning"},    {"replica_restarting", "warning"},
    {"job_cancelled", "warning"},     {"prediction_ended", "warning"},
    {"decisions_lost", "error"},      {"training_cancelled", "warning"},
    {"review_wanted", "warning"},     {"model_rejected", "warning"},
    {"model_rolled_back", "warning"}, {"one_class", "warning"},
    {"deployment_failed", "error"},   {"login_refused", "warning"},
    {"access_refused", "warning"},    {"alert_raised", "warning"},
    {"device_bad", "warning"},        {"device_gone", "warning"},
    {"replica_silent", "warning"},    {"replica_replaced", "warning"},
    {"replica_ended", "warning"},     {"run_failed", "error"},
    {"task_kept", "warning"},         {"run_cancelled", "warning"},
    {"sweep_failed", "error"},
};

const char *weir_event_severity(const char *kind)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(severities); i++) {
        if (strcmp(severities[i].kind, kind) == 0) {
            return severities[i].severity;
        }
    }
    return "info";
}

/* As the server: what an act leads to may be of another project than its actor's. */
static weir_status append(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_event *event = context;
    char hash[WEIR_SHA256_TEXT_BYTES];
    WEIR_TRY(weir_txn_next(txn, "events", &event->seq, err));
    WEIR_TRY(weir_chain_extend(txn, event, hash, err));
    if (event->project != NULL) {
        return weir_txn_insert(txn, &weir_event_resource, event, err);
    }
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = weir_subject_project(txn, event->subject, &arena, &event->project, err);
    if (status == WEIR_OK) {
        status = weir_txn_insert(txn, &weir_event_resource, event, err);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_event_append(struct weir_txn *txn, const struct weir_event *event,
                              int64_t *out_seq, struct weir_error *err)
{
    struct weir_event numbered = *event;
    numbered.severity = (char *)weir_event_severity(event->kind);
    WEIR_TRY(weir_txn_as(txn, NULL, append, &numbered, err));
    if (out_seq != NULL) {
        *out_seq = numbered.seq;
    }
    return WEIR_OK;
}

weir_status weir_setting_get(struct weir_txn *txn, const char *key, struct weir_arena *arena,
                             char **out_value, struct weir_error *err)
{
    struct weir_setting setting;
    WEIR_TRY(weir_txn_get(txn, &weir_setting_resource, key, arena, &setting, err));
    *out_value = setting.value;
    return WEIR_OK;
}

weir_status weir_setting_put(struct weir_txn *txn, const char *key, const char *value,
                             int64_t now_ms, struct weir_error *err)
{
    const struct weir_setting setting = {
        .key = (char *)key, .value = (char *)value, .updated_ms = now_ms};
    return weir_txn_upsert(txn, &weir_setting_resource, &setting, err);
}
