#include "track/track.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

// clang-format off
static const struct weir_field run_fields[] = {
    WEIR_FIELD(weir_run, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_run, name,            TEXT, WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_run, project,         TEXT, WEIR_FIELD_NAME, "", "Project it belongs to"),
    WEIR_FIELD(weir_run, kind,            TEXT, 0, "", "train, evaluate …"),
    WEIR_FIELD(weir_run, status,          TEXT, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "RUNNING, FINISHED, FAILED or KILLED"),
    WEIR_FIELD(weir_run, job,             TEXT, 0, "", "Job that does it"),
    WEIR_FIELD(weir_run, ion,             TEXT, 0, "", "ION it works for"),
    WEIR_FIELD(weir_run, pipeline,        TEXT, 0, "", "Pipeline of that ION"),
    WEIR_FIELD(weir_run, dataset,         TEXT, 0, "", "Dataset it reads"),
    WEIR_FIELD(weir_run, dataset_version, INT,  0, "", "Version of the dataset; 0 = unknown"),
    WEIR_FIELD(weir_run, code_version,    TEXT, 0, "", "Version of the program"),
    WEIR_FIELD_HIDING(weir_run, parameters, 0, "env.* files.* source.token", "", "What it was started with; secrets are shown as ***"),
    WEIR_FIELD(weir_run, summary,         JSON, WEIR_FIELD_MUTABLE, "", "What came out"),
    WEIR_FIELD(weir_run, created_by,      TEXT, WEIR_FIELD_READ_ONLY, "", "Who started it"),
    WEIR_FIELD(weir_run, created_ms,      TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it began"),
    WEIR_FIELD(weir_run, finished_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it ended"),
};
static const struct weir_field metric_fields[] = {
    WEIR_FIELD(weir_metric, run,     TEXT, WEIR_FIELD_READ_ONLY, "", "Run"),
    WEIR_FIELD_SIZED(weir_metric, key, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 256, "", "What was measured"),
    WEIR_FIELD(weir_metric, step,    INT,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "At which step"),
    WEIR_FIELD(weir_metric, value,   F64,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Value; null = not a number"),
    WEIR_FIELD(weir_metric, time_ms, TIME, WEIR_FIELD_COLUMN, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_run_resource = WEIR_RESOURCE("run", "runs", weir_run, run_fields);
const struct weir_resource weir_metric_resource =
    WEIR_RESOURCE("metric", "metrics", weir_metric, metric_fields);

static const char sql_put[] = "INSERT INTO metrics (run, key, step, value, time_ms)"
                              " VALUES (:run, :key, :step, :value, :time)"
                              " ON CONFLICT (run, key, step) DO UPDATE SET value = excluded.value, "
                              "time_ms = excluded.time_ms";
static const char sql_list[] = "SELECT key, step, value, time_ms FROM metrics WHERE run = :run "
                               "ORDER BY key, step LIMIT :limit";
static const char sql_list_key[] = "SELECT key, step, value, time_ms FROM metrics"
                                   " WHERE run = :run AND key = :key AND (step > :after OR :is_all "
                                   "= 1) ORDER BY step LIMIT :limit";
static const char sql_latest[] =
    "SELECT key, step, value, time_ms FROM metrics AS m WHERE run = :run AND step ="
    " (SELECT max(step) FROM metrics WHERE run = m.run AND key = m.key) ORDER BY key"
    " LIMIT 256";

static const char sql_last[] =
    "SELECT value FROM metrics WHERE run = :run AND key = :key ORDER BY step DESC LIMIT 1";

#define METRICS_MAX 1000000

weir_status weir_metrics_put(struct weir_txn *txn, const char *run,
                             const struct weir_metric *metrics, size_t n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_put, WEIR_NO_BINDS, &stmt, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_stmt_rebind(stmt,
                                  WEIR_BINDS(WEIR_BIND_TEXT("run", run),
                                             WEIR_BIND_TEXT("key", metrics[i].key),
                                             WEIR_BIND_INT("step", metrics[i].step),
                                             WEIR_BIND_F64("value", metrics[i].value),
                                             WEIR_BIND_INT("time", metrics[i].time_ms)),
                                  err));
        bool has_row;
        weir_status status = weir_stmt_step(stmt, &has_row, err);
        if (status == WEIR_ERR_CONFLICT) {
            return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no run \"%s\"", run);
        }
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

/** All rows of an open statement; the array doubles in the arena. */
static weir_status read_all(struct weir_stmt *stmt, const char *run, struct weir_arena *arena,
                            struct weir_metric **out, size_t *out_n, struct weir_error *err)
{
    struct weir_metric *metrics = NULL;
    size_t n = 0, cap = 0;
    char *run_copy = weir_arena_strdup(arena, run);
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        weir_arena_grow(arena, &metrics, sizeof *metrics, n, &cap);
        metrics[n++] =
            (struct weir_metric){run_copy, weir_stmt_text(stmt, 0, arena), weir_stmt_int(stmt, 1),
                                 weir_stmt_f64(stmt, 2), weir_stmt_int(stmt, 3)};
        WEIR_TRY(weir_arena_check(arena, "metrics", err));
    }
    *out = metrics;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_metrics_list(struct weir_txn *txn, const char *run, const char *key,
                              int64_t after_step, size_t limit, struct weir_arena *arena,
                              struct weir_metric **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    int64_t n_max = (int64_t)WEIR_MIN(limit, (size_t)METRICS_MAX);
    if (key == NULL) {
        WEIR_TRY(weir_stmt_open(
            txn, sql_list, WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_INT("limit", n_max)),
            &stmt, err));
    } else {
        WEIR_TRY(weir_stmt_open(txn, sql_list_key,
                                WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("key", key),
                                           WEIR_BIND_INT("after", after_step),
                                           WEIR_BIND_INT("is_all", after_step == INT64_MIN),
                                           WEIR_BIND_INT("limit", n_max)),
                                &stmt, err));
    }
    return read_all(stmt, run, arena, out, out_n, err);
}

weir_status weir_metrics_each(struct weir_txn *txn, const char *run, weir_metric_fn fn,
                              void *context, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(
        txn, sql_list, WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_INT("limit", INT64_MAX)),
        &stmt, err));
    for (;;) {
        struct weir_arena arena;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_init(&arena, 0);
        const struct weir_metric metric = {(char *)run, weir_stmt_text(stmt, 0, &arena),
                                           weir_stmt_int(stmt, 1), weir_stmt_f64(stmt, 2),
                                           weir_stmt_int(stmt, 3)};
        weir_status status = fn(context, &metric, err);
        weir_arena_fini(&arena);
        WEIR_TRY(status);
    }
}

weir_status weir_metric_last(struct weir_txn *txn, const char *run, const char *key, double *out,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_last,
                            WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("key", key)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = has_row ? weir_stmt_f64(stmt, 0) : NAN;
    return WEIR_OK;
}

weir_status weir_metrics_latest(struct weir_txn *txn, const char *run, struct weir_arena *arena,
                                struct weir_metric **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_latest, WEIR_BINDS(WEIR_BIND_TEXT("run", run)), &stmt, err));
    return read_all(stmt, run, arena, out, out_n, err);
}
