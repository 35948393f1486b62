#include "store/set_clock.h"

#include "base/clock.h"
#include "base/json.h"
#include "store/event.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SQL_MAX_BYTES 2048
#define TIME_MAX_MS   ((int64_t)1 << 53) /* what is later says "never" */
#define SETTING       "clock"
#define OF_OPEN_JOB                                                                                \
    "job IN (SELECT id FROM jobs WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED'))"

// clang-format off
static const struct weir_counted_times counted[] = {
    {"jobs", "due_ms started_ms expected_start_ms queued_ms", "state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"},
    {"tasks", "due_ms started_ms asked_ms saved_ms", OF_OPEN_JOB},
    {"nodes", "last_seen_ms", NULL},
    {"nodes_heard", "last_seen_ms", NULL},
    {"devices", "idle_since_ms changed_ms", NULL},
    {"services", "started_ms used_ms", NULL},
    {"usage_meters", "counted_ms", NULL},
    {"past_use", "time_ms", NULL},
    {"deployments", "state_ms next_start_ms more_ms less_ms", NULL},
    {"deployment_versions", "keep_ms", NULL},
    {"deployment_replicas", "time_ms", NULL},
    {"ion_pipelines", "state_ms started_ms restart_ms last_frame_ms paused_ms", NULL},
    {"ion_candidates", "created_ms position_ms until_ms step_ms begun_ms served_ms", NULL},
    {"ion_triggers", "armed_ms fired_ms", NULL},
    {"ion_arms", "since_ms", NULL},
    {"ion_replicas", "last_frame_ms time_ms", NULL},
    {"sweeps", "paused_ms", "ended_ms = 0"},
    {"sweep_trials", "started_ms", "ended_ms = 0"},
    {"alerts", "raised_ms last_ms", "state <> 'resolved'"},
    {"alert_firings", "due_ms raised_ms told_ms escalated_ms resend_ms acted_ms", "over_ms = 0"},
    {"alert_deliveries", "due_ms", "done_ms = 0"},
    {"outbox", "due_ms", "done_ms = 0"},
    {"artifact_uploads", "created_ms", NULL},
    {"sessions", "expires_ms", NULL},
    {"service_logins", "expires_ms", NULL},
    {"login_links", "expires_ms", NULL},
    {"node_joins", "expires_ms", NULL},
    {"clusters", "heard_ms", NULL},
    {"allocations", "idle_since_ms", "state <> 'ended'"},
};

// clang-format on

/* What is counted with in other ways: since created_ms if it never waited again; created_ms and the pauses
 * together; and a time within a text. */
static const char *const others[] = {
    "UPDATE jobs SET queued_ms = created_ms + :by WHERE queued_ms = 0 AND state = 'PENDING'",
    "UPDATE sweeps SET pauses_ms = pauses_ms + :by WHERE ended_ms = 0",
};
static const char sql_asked[] = "SELECT id, evaluation FROM ion_candidates WHERE evaluation LIKE"
                                " '%\"asked_ms\"%'";
static const char sql_ask[] = "UPDATE ion_candidates SET evaluation = :evaluation WHERE id = :id";

const struct weir_counted_times *weir_counted_times(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(counted);
    return counted;
}

static void write_sql(const struct weir_counted_times *row, char sql[SQL_MAX_BYTES])
{
    const char *column = row->columns;
    size_t at = (size_t)snprintf(sql, SQL_MAX_BYTES, "UPDATE %s SET", row->table);
    while (*column != '\0') {
        int len = (int)strcspn(column, " ");
        at += (size_t)snprintf(
            sql + at, SQL_MAX_BYTES - at,
            "%s %.*s = CASE WHEN %.*s BETWEEN 1 AND :most THEN %.*s + :by ELSE %.*s END",
            column == row->columns ? "" : ",", len, column, len, column, len, column, len, column);
        column += len + strspn(column + len, " ");
    }
    (void)snprintf(sql + at, SQL_MAX_BYTES - at, " WHERE %s",
                   row->where != NULL ? row->where : "1 = 1");
}

/* What the row's document would be; NULL: nothing is asked. */
static char *moved(const struct weir_stmt *row, int64_t by_ms, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *evaluation = weir_stmt_json(row, 1);
    int64_t asked_ms = json_integer_value(json_object_get(evaluation, "asked_ms"));
    if (asked_ms <= 0) {
        return NULL;
    }
    json_object_set_new(evaluation, "asked_ms", json_integer(asked_ms + by_ms));
    return weir_json_text(evaluation, arena);
}

static weir_status move_asked(struct weir_txn *txn, int64_t by_ms, struct weir_arena *arena,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_asked, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        const char *text = moved(row, by_ms, arena);
        if (text != NULL) {
            WEIR_TRY(weir_txn_exec(txn, sql_ask,
                                   WEIR_BINDS(WEIR_BIND_TEXT("id", weir_stmt_text(row, 0, arena)),
                                              WEIR_BIND_TEXT("evaluation", text)),
                                   NULL, err));
        }
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

weir_status weir_set_clock(struct weir_txn *txn, int64_t by_ms, struct weir_error *err)
{
    char sql[SQL_MAX_BYTES];
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    WEIR_TRY(move_asked(txn, by_ms, &arena, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        WEIR_TRY(weir_txn_exec(txn, others[i], WEIR_BINDS(WEIR_BIND_INT("by", by_ms)), NULL, err));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(counted); i++) {
        write_sql(&counted[i], sql);
        WEIR_TRY(weir_txn_exec(
            txn, sql, WEIR_BINDS(WEIR_BIND_INT("by", by_ms), WEIR_BIND_INT("most", TIME_MAX_MS)),
            NULL, err));
    }
    return WEIR_OK;
}

weir_status weir_clock_keep(struct weir_txn *txn, int64_t offset_ms, int64_t now_ms,
                            struct weir_error *err)
{
    char boot[WEIR_BOOT_ID_BYTES], text[128];
    weir_boot_id(boot);
    (void)snprintf(text, sizeof text, "{\"boot\": \"%s\", \"offset_ms\": %" PRId64 "}", boot,
                   offset_ms);
    return weir_setting_put(txn, SETTING, text, now_ms, err);
}

weir_status weir_clock_kept(struct weir_txn *txn, int64_t *out_offset_ms, struct weir_error *err)
{
    char boot[WEIR_BOOT_ID_BYTES], *text;
    struct weir_arena arena;
    json_t *kept = NULL;
    weir_arena_init(&arena, 0);
    *out_offset_ms = 0;
    weir_boot_id(boot);
    weir_status status = weir_setting_get(txn, SETTING, &arena, &text, err);
    if (status == WEIR_OK) {
        status = weir_json_parse(text, strlen(text), SETTING, &kept, err);
    }
    const char *of = json_string_value(json_object_get(kept, "boot"));
    if (of != NULL && *boot != '\0' && strcmp(of, boot) == 0) {
        *out_offset_ms = json_integer_value(json_object_get(kept, "offset_ms"));
    }
    json_decref(kept);
    weir_arena_fini(&arena);
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}
