/** Measurements of runs: the history of each key, and its last one beside. */
#include "track/run.h"

#include "base/grow.h"
#include "store/noun.h"
#include "store/stmt.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const struct weir_field metric_fields[] = {
    WEIR_FIELD(weir_metric, run,     TEXT, WEIR_FIELD_READ_ONLY, "", "Run"),
    WEIR_FIELD_SIZED(weir_metric, key, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, WEIR_RUN_KEY_MAX, "", "What was measured"),
    WEIR_FIELD(weir_metric, step,    INT,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "At which step"),
    WEIR_FIELD(weir_metric, value,   F64,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Value; null = not a number"),
    WEIR_FIELD(weir_metric, time_ms, TIME, WEIR_FIELD_COLUMN, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_metric_resource =
    WEIR_RESOURCE("metric", "metrics", weir_metric, metric_fields);

const struct weir_noun weir_noun_metric = {
    "metrics", WEIR_OF(run, runs, number),
    .rules = {WEIR_RULE(
        "metrics", "The curves of runs",
        "Those of runs that ended longest ago go first; those of models that serve or wait stay.",
        140, {WEIR_DAYS(365), WEIR_MB(200)}, 130, 2, .is_of_project = true, .from = "runs",
        .time = "finished_ms",
        .where = "finished_ms > 0 AND EXISTS (SELECT 1 FROM metrics WHERE run = runs.number)",
        .may =
            "id NOT IN"
            " (SELECT v.run FROM model_versions v JOIN ion_candidates c ON c.model_version = v.id"
            " WHERE c." WEIR_CANDIDATE_IN_USE_SQL " AND v.run IS NOT NULL) AND id NOT IN"
            " (SELECT v.run FROM model_versions v JOIN deployment_versions d ON d.model = v.model"
            " AND d.version = v.version WHERE v.run IS NOT NULL) AND id NOT IN"
            " (SELECT v.run FROM model_versions v JOIN model_aliases a ON a.model = v.model"
            " AND a.version = v.version WHERE v.run IS NOT NULL)",
        .count = "SELECT count(*) FROM metrics",
        .counted = "SELECT count(*) FROM metrics m JOIN runs r ON r.number = m.run WHERE r.id IN",
        .remove =
            {/* The last of each key stays with the run. */
             "DELETE FROM metrics WHERE (run, key, step, time_ms, value, is_nan) IN (SELECT run,"
             " key, step, time_ms, value, is_nan FROM metrics WHERE run ="
             " (SELECT number FROM runs WHERE id = :key) LIMIT :n)"})},
    .captured = WEIR_CAPTURED("metrics", 160, .resource = &weir_metric_resource)};

#define METRICS_MAX 1000000
#define LATEST_MAX  256
#define COLUMNS     "step, value, time_ms, is_nan"

static const char sql_log[] =
    "INSERT INTO metrics (run, key, step, time_ms, value, is_nan) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT DO NOTHING";
static const char sql_last_put[] =
    "INSERT INTO latest_metrics (run, key, step, time_ms, value, is_nan) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (run, key) DO UPDATE SET step = excluded.step, time_ms = excluded.time_ms,"
    " value = excluded.value, is_nan = excluded.is_nan WHERE (excluded.step, excluded.time_ms,"
    " excluded.value) > (latest_metrics.step, latest_metrics.time_ms, latest_metrics.value)";
static const char sql_replaced[] =
    "DELETE FROM metrics WHERE run = :run AND key = :key AND step = :step";
static const char sql_last_replaced[] =
    "DELETE FROM latest_metrics WHERE run = :run AND key = :key AND step = :step";

static const char sql_list[] =
    "SELECT k.name, m.step, m.value, m.time_ms, m.is_nan FROM track_keys k JOIN metrics m"
    " ON m.key = k.id WHERE m.run = :run AND k.id IN (SELECT key FROM latest_metrics"
    " WHERE run = :run) ORDER BY k.name, m.step, m.time_ms, m.value LIMIT :limit";
static const char sql_list_key[] =
    "SELECT :key, " COLUMNS " FROM metrics WHERE run = :run AND key ="
    " (SELECT id FROM track_keys WHERE name = :key) AND (step > :after OR :is_all = 1)"
    " ORDER BY step, time_ms, value LIMIT :limit";
static const char sql_page[] =
    "SELECT :key, " COLUMNS " FROM metrics WHERE run = :run AND key ="
    " (SELECT id FROM track_keys WHERE name = :key)"
    " AND (step, time_ms, value, is_nan) > (:step, :time, :value, :is_nan)"
    " ORDER BY step, time_ms, value, is_nan LIMIT :limit";
static const char sql_last_point[] =
    "SELECT :key, " COLUMNS " FROM metrics WHERE run = :run AND key ="
    " (SELECT id FROM track_keys WHERE name = :key)"
    " ORDER BY step DESC, time_ms DESC, value DESC LIMIT 1";
static const char sql_latest[] =
    "SELECT k.name, l.step, l.value, l.time_ms, l.is_nan FROM latest_metrics l"
    " JOIN track_keys k ON k.id = l.key WHERE l.run = :run ORDER BY k.name LIMIT :limit";
static const char sql_last[] = "SELECT value, is_nan FROM latest_metrics WHERE run = :run AND key ="
                               " (SELECT id FROM track_keys WHERE name = :key)";

/** As a row has it. */
struct point {
    int64_t key, step, time_ms, is_nan;
    double value;
};

static struct point point_of(const struct weir_metric *metric, int64_t key)
{
    struct point point = {
        .key = key, .step = metric->step, .time_ms = metric->time_ms, .value = metric->value};
    if (isnan(point.value)) {
        point.value = 0;
        point.is_nan = 1;
    } else if (isinf(point.value)) {
        point.value = copysign(DBL_MAX, point.value);
    }
    return point;
}

static bool is_later(const struct point *a, const struct point *b)
{
    if (a->step != b->step) {
        return a->step > b->step;
    }
    return a->time_ms != b->time_ms ? a->time_ms > b->time_ms : a->value > b->value;
}

static weir_status write_point(struct weir_stmt *stmt, int64_t run, const struct point *point,
                               struct weir_error *err)
{
    bool has_row;
    WEIR_TRY(weir_stmt_rebind(
        stmt,
        WEIR_BINDS(WEIR_BIND_INT(NULL, run), WEIR_BIND_INT(NULL, point->key),
                   WEIR_BIND_INT(NULL, point->step), WEIR_BIND_INT(NULL, point->time_ms),
                   WEIR_BIND_F64(NULL, point->value), WEIR_BIND_INT(NULL, point->is_nan)),
        err));
    return weir_stmt_step(stmt, &has_row, err);
}

/* The last of each key among those of one call; a key that comes again is mostly the one before. */
struct last {
    struct point *points;
    size_t n, i_recent;
};

static void see_last(struct last *last, const struct point *point)
{
    size_t i = last->i_recent;
    if (i >= last->n || last->points[i].key != point->key) {
        for (i = 0; i < last->n && last->points[i].key != point->key; i++) {
        }
    }
    if (i == last->n) {
        last->points[last->n++] = *point;
    } else if (is_later(point, &last->points[i])) {
        last->points[i] = *point;
    }
    last->i_recent = i;
}

static weir_status log_all(struct weir_txn *txn, int64_t run, const struct weir_metric *metrics,
                           size_t n, struct last *last, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    const char *name = NULL;
    int64_t key = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_log, WEIR_NO_BINDS, &stmt, err));
    for (size_t i = 0; i < n; i++) {
        if (name == NULL || strcmp(name, metrics[i].key) != 0) {
            name = metrics[i].key;
            WEIR_TRY(weir_track_key(txn, name, &key, err));
        }
        const struct point point = point_of(&metrics[i], key);
        WEIR_TRY(write_point(stmt, run, &point, err));
        see_last(last, &point);
    }
    return WEIR_OK;
}

static weir_status put_last(struct weir_txn *txn, int64_t run, const struct last *last,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_last_put, WEIR_NO_BINDS, &stmt, err));
    for (size_t i = 0; i < last->n; i++) {
        WEIR_TRY(write_point(stmt, run, &last->points[i], err));
    }
    return WEIR_OK;
}

weir_status weir_metrics_log(struct weir_txn *txn, int64_t run, const struct weir_metric *metrics,
                             size_t n, struct weir_error *err)
{
    struct last last = {.points = malloc((n + 1) * sizeof *last.points)};
    if (last.points == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "storing measurements: out of memory");
    }
    weir_status status = log_all(txn, run, metrics, n, &last, err);
    if (status == WEIR_OK) {
        status = put_last(txn, run, &last, err);
    }
    free(last.points);
    return status;
}

/* What was there at the same step goes, also where it was the last one. */
static weir_status remove_replaced(struct weir_txn *txn, int64_t run,
                                   const struct weir_metric *metric, struct weir_error *err)
{
    int64_t key, n_removed;
    WEIR_TRY(weir_track_key(txn, metric->key, &key, err));
    const struct weir_bind binds[] = {WEIR_BIND_INT("run", run), WEIR_BIND_INT("key", key),
                                      WEIR_BIND_INT("step", metric->step)};
    WEIR_TRY(weir_txn_exec(txn, sql_replaced, binds, WEIR_ARRAY_LEN(binds), &n_removed, err));
    return n_removed == 0
               ? WEIR_OK
               : weir_txn_exec(txn, sql_last_replaced, binds, WEIR_ARRAY_LEN(binds), NULL, err);
}

weir_status weir_metrics_put(struct weir_txn *txn, const char *run,
                             const struct weir_metric *metrics, size_t n, struct weir_error *err)
{
    int64_t number;
    WEIR_TRY(weir_run_number(txn, run, &number, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(remove_replaced(txn, number, &metrics[i], err));
        WEIR_TRY(weir_metrics_log(txn, number, &metrics[i], 1, err));
    }
    return WEIR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct weir_metric metric_of(struct weir_stmt *stmt, char *run, struct weir_arena *arena)
{
    return (struct weir_metric){.run = run,
                                .key = weir_stmt_text(stmt, 0, arena),
                                .step = weir_stmt_int(stmt, 1),
                                .value = weir_stmt_int(stmt, 4) != 0 ? NAN : weir_stmt_f64(stmt, 2),
                                .time_ms = weir_stmt_int(stmt, 3)};
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
        metrics[n++] = metric_of(stmt, run_copy, arena);
        WEIR_TRY(weir_arena_check(arena, "metrics", err));
    }
    *out = metrics;
    *out_n = n;
    return WEIR_OK;
}

/* A run that is not there has no measurements. */
static weir_status number_or_none(struct weir_txn *txn, const char *run, int64_t *out,
                                  struct weir_error *err)
{
    weir_status status = weir_run_number(txn, run, out, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        *out = 0;
        return WEIR_OK;
    }
    return status;
}

weir_status weir_metrics_list(struct weir_txn *txn, const char *run, const char *key,
                              int64_t after_step, size_t limit, struct weir_arena *arena,
                              struct weir_metric **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    int64_t n_max = (int64_t)WEIR_MIN(limit, (size_t)METRICS_MAX), number;
    WEIR_TRY(number_or_none(txn, run, &number, err));
    if (key == NULL) {
        WEIR_TRY(weir_stmt_open(
            txn, sql_list, WEIR_BINDS(WEIR_BIND_INT("run", number), WEIR_BIND_INT("limit", n_max)),
            &stmt, err));
    } else {
        WEIR_TRY(weir_stmt_open(txn, sql_list_key,
                                WEIR_BINDS(WEIR_BIND_INT("run", number), WEIR_BIND_TEXT("key", key),
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
    int64_t number;
    WEIR_TRY(number_or_none(txn, run, &number, err));
    WEIR_TRY(weir_stmt_open(
        txn, sql_list, WEIR_BINDS(WEIR_BIND_INT("run", number), WEIR_BIND_INT("limit", INT64_MAX)),
        &stmt, err));
    for (;;) {
        struct weir_arena arena;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_init(&arena, 0);
        const struct weir_metric metric = metric_of(stmt, (char *)run, &arena);
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
    int64_t number;
    WEIR_TRY(number_or_none(txn, run, &number, err));
    WEIR_TRY(weir_stmt_open(txn, sql_last,
                            WEIR_BINDS(WEIR_BIND_INT("run", number), WEIR_BIND_TEXT("key", key)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = has_row && weir_stmt_int(stmt, 1) == 0 ? weir_stmt_f64(stmt, 0) : NAN;
    return WEIR_OK;
}

weir_status weir_metrics_latest(struct weir_txn *txn, const char *run, struct weir_arena *arena,
                                struct weir_metric **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    int64_t number;
    WEIR_TRY(number_or_none(txn, run, &number, err));
    WEIR_TRY(weir_stmt_open(
        txn, sql_latest,
        WEIR_BINDS(WEIR_BIND_INT("run", number), WEIR_BIND_INT("limit", LATEST_MAX)), &stmt, err));
    return read_all(stmt, run, arena, out, out_n, err);
}

weir_status weir_run_metrics(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                             struct weir_metric **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(
        txn, sql_latest, WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_INT("limit", METRICS_MAX)),
        &stmt, err));
    return read_all(stmt, NULL, arena, out, out_n, err);
}

weir_status weir_metrics_page(struct weir_txn *txn, int64_t run, const char *key,
                              const struct weir_metric_place *after, size_t limit,
                              struct weir_arena *arena, struct weir_metric **out, size_t *out_n,
                              struct weir_error *err)
{
    static const struct weir_metric_place first = {INT64_MIN, INT64_MIN, -DBL_MAX, false};
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    const struct weir_metric_place *place = after != NULL ? after : &first;
    WEIR_TRY(weir_stmt_open(
        txn, sql_page,
        WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_TEXT("key", key),
                   WEIR_BIND_INT("step", place->step), WEIR_BIND_INT("time", place->time_ms),
                   WEIR_BIND_F64("value", place->value),
                   WEIR_BIND_INT("is_nan", after != NULL ? place->is_nan : -1),
                   WEIR_BIND_INT("limit", (int64_t)WEIR_MIN(limit, (size_t)METRICS_MAX))),
        &stmt, err));
    return read_all(stmt, NULL, arena, out, out_n, err);
}

/* ---- a sample -------------------------------------------------------------------------------- */

/* The i-th of n places between two numbers, which may be at the two ends of what an integer holds. */
static int64_t between(int64_t lo, int64_t hi, size_t i, size_t n)
{
    long double width = (long double)hi - (long double)lo;
    return (int64_t)((long double)lo + width * (long double)i / (long double)(n - 1));
}

static weir_status read_one(struct weir_txn *txn, int64_t run, const char *key,
                            const struct weir_metric_place *after, struct weir_arena *arena,
                            struct weir_metric *out, bool *out_has, struct weir_error *err)
{
    struct weir_metric *found;
    size_t n;
    WEIR_TRY(weir_metrics_page(txn, run, key, after, 1, arena, &found, &n, err));
    *out_has = n > 0;
    if (n > 0) {
        *out = found[0];
    }
    return WEIR_OK;
}

static weir_status read_last(struct weir_txn *txn, int64_t run, const char *key,
                             struct weir_arena *arena, struct weir_metric *out,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_last_point,
                            WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_TEXT("key", key)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (has_row) {
        *out = metric_of(stmt, NULL, arena);
    }
    return WEIR_OK;
}

static bool is_same(const struct weir_metric *a, const struct weir_metric *b)
{
    return a->step == b->step && a->time_ms == b->time_ms &&
           (a->value == b->value || (isnan(a->value) && isnan(b->value)));
}

weir_status weir_metrics_sample(struct weir_txn *txn, int64_t run, const char *key, size_t n_max,
                                struct weir_arena *arena, struct weir_metric **out, size_t *out_n,
                                struct weir_error *err)
{
    struct weir_metric *all, last;
    size_t n_all, n = 0;
    WEIR_TRY(weir_metrics_page(txn, run, key, NULL, n_max + 1, arena, &all, &n_all, err));
    if (n_all <= n_max) {
        *out = all;
        *out_n = n_all;
        return WEIR_OK;
    }
    struct weir_metric *sample = WEIR_ARENA_ARRAY(arena, n_max, struct weir_metric);
    WEIR_TRY(read_last(txn, run, key, arena, &last, err));
    const struct weir_metric first = all[0];
    bool by_time = first.step == last.step, has = true;
    sample[n++] = first;
    for (size_t i = 1; i + 1 < n_max && has; i++) {
        int64_t at = by_time ? between(first.time_ms, last.time_ms, i, n_max)
                             : between(first.step, last.step, i, n_max);
        const struct weir_metric_place place = {by_time ? first.step : at, by_time ? at : INT64_MIN,
                                                -DBL_MAX, false};
        WEIR_TRY(read_one(txn, run, key, &place, arena, &sample[n], &has, err));
        n += has && !is_same(&sample[n], &sample[n - 1]) && !is_same(&sample[n], &last);
    }
    sample[n++] = last;
    *out = sample;
    *out_n = n;
    return WEIR_OK;
}
