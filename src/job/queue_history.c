#include "job/queue_history.h"

#include "store/noun.h"
#include "store/stmt.h"

#include <string.h>

const struct weir_noun weir_noun_queue_history = {
    "queue_history", .project = "project",
    .rules = {WEIR_RULE("queue-history", "What queues had and waited for, by 5 min",
                        "The oldest go first.", 220, {WEIR_DAYS(90), WEIR_MB(58)}, 250, 3,
                        .by = WEIR_ROWS_TIMED, .time = "time_ms", .key = "time_ms, queue",
                        .where = "time_ms > 0")}};

/* The row of the newest sample. */
#define NOW 0

static const char sql_forget[] = "DELETE FROM queue_history WHERE time_ms = 0";
static const char sql_add[] =
    "INSERT INTO queue_history VALUES (:time, :queue, :project, 1, :dg, :du, :db, :dw, :cg, :cu,"
    " :cb, :cw) ON CONFLICT (time_ms, queue) DO UPDATE SET n = queue_history.n + 1, project = "
    "excluded.project,"
    " device_guarantee = queue_history.device_guarantee + excluded.device_guarantee,"
    " device_used = queue_history.device_used + excluded.device_used,"
    " device_borrowed = queue_history.device_borrowed + excluded.device_borrowed,"
    " device_waiting = queue_history.device_waiting + excluded.device_waiting,"
    " cpu_guarantee = queue_history.cpu_guarantee + excluded.cpu_guarantee,"
    " cpu_used = queue_history.cpu_used + excluded.cpu_used,"
    " cpu_borrowed = queue_history.cpu_borrowed + excluded.cpu_borrowed,"
    " cpu_waiting = queue_history.cpu_waiting + excluded.cpu_waiting";
static const char sql_read[] =
    "SELECT time_ms - time_ms % :step AS at, queue, max(project), sum(device_guarantee) / sum(n),"
    " sum(device_used) / sum(n), sum(device_borrowed) / sum(n), sum(device_waiting) / sum(n),"
    " sum(cpu_guarantee) / sum(n), sum(cpu_used) / sum(n), sum(cpu_borrowed) / sum(n),"
    " sum(cpu_waiting) / sum(n) FROM queue_history WHERE time_ms >= :from AND time_ms < :to"
    " AND (queue = :queue OR :queue IS NULL) AND (project = :project OR :project IS NULL)"
    " GROUP BY at, queue ORDER BY at, queue LIMIT :n";

static weir_status add_at(struct weir_txn *txn, const struct weir_queue_sample *sample,
                          int64_t time_ms, struct weir_error *err)
{
    const struct weir_queue_amounts *devices = &sample->devices, *cpus = &sample->cpus;
    return weir_txn_exec(
        txn, sql_add,
        WEIR_BINDS(WEIR_BIND_INT("time", time_ms), WEIR_BIND_TEXT("queue", sample->queue),
                   WEIR_BIND_TEXT("project", sample->project),
                   WEIR_BIND_INT("dg", devices->guarantee), WEIR_BIND_INT("du", devices->used),
                   WEIR_BIND_INT("db", devices->borrowed), WEIR_BIND_INT("dw", devices->waiting),
                   WEIR_BIND_INT("cg", cpus->guarantee), WEIR_BIND_INT("cu", cpus->used),
                   WEIR_BIND_INT("cb", cpus->borrowed), WEIR_BIND_INT("cw", cpus->waiting)),
        NULL, err);
}

weir_status weir_queue_history_add(struct weir_txn *txn, const struct weir_queue_sample *samples,
                                   size_t n, int64_t now_ms, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(txn, sql_forget, WEIR_NO_BINDS, NULL, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(add_at(txn, &samples[i], NOW, err));
        WEIR_TRY(add_at(txn, &samples[i], now_ms - now_ms % WEIR_QUEUE_BUCKET_MS, err));
    }
    return WEIR_OK;
}

static struct weir_queue_amounts amounts_at(const struct weir_stmt *row, int first)
{
    return (struct weir_queue_amounts){
        .guarantee = weir_stmt_int(row, first),
        .used = weir_stmt_int(row, first + 1),
        .borrowed = weir_stmt_int(row, first + 2),
        .waiting = weir_stmt_int(row, first + 3),
    };
}

static weir_status read_points(struct weir_txn *txn, const struct weir_bind *binds, size_t n_binds,
                               struct weir_arena *arena, struct weir_queue_point **out,
                               size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_queue_point *points = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_read, binds, n_binds, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        if (n == WEIR_QUEUE_HISTORY_MAX) {
            return weir_error_set(
                err, WEIR_ERR_LIMIT,
                "more than %d points: ask for less time, longer steps or one queue",
                WEIR_QUEUE_HISTORY_MAX);
        }
        if (n == cap) {
            struct weir_queue_point *grown =
                WEIR_ARENA_ARRAY(arena, 2 * cap + 64, struct weir_queue_point);
            if (n > 0) {
                memcpy(grown, points, n * sizeof *grown);
            }
            points = grown;
            cap = 2 * cap + 64;
        }
        points[n++] =
            (struct weir_queue_point){weir_stmt_int(row, 0),
                                      {weir_stmt_text(row, 1, arena), weir_stmt_text(row, 2, arena),
                                       amounts_at(row, 3), amounts_at(row, 7), 0}};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = points;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_queue_history_read(struct weir_txn *txn, const char *queue, const char *project,
                                    int64_t from_ms, int64_t to_ms, int64_t step_ms,
                                    struct weir_arena *arena, struct weir_queue_point **out,
                                    size_t *out_n, struct weir_error *err)
{
    const struct weir_bind binds[] = {
        WEIR_BIND_INT("step", step_ms),     WEIR_BIND_INT("from", WEIR_MAX(from_ms, (int64_t)1)),
        WEIR_BIND_INT("to", to_ms),         WEIR_BIND_TEXT("queue", queue),
        WEIR_BIND_TEXT("project", project), WEIR_BIND_INT("n", WEIR_QUEUE_HISTORY_MAX + 1)};
    return read_points(txn, binds, WEIR_ARRAY_LEN(binds), arena, out, out_n, err);
}
