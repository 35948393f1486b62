#include "control/task_use.h"

#include "store/live.h"
#include "store/stmt.h"
#include "track/track.h"

#include <inttypes.h>
#include <math.h>

#define METRICS_MAX  130 /* of one task: two, and two of each of its devices */
#define STEP_MS      1000
#define WHOLE_DEVICE 1000

static const char sql_run[] =
    "SELECT r.id, r.created_ms, t.rank, (SELECT count(*) FROM tasks WHERE job = j.id)"
    " FROM tasks t JOIN attempts a ON a.task = t.id AND a.number = t.attempt"
    " JOIN jobs j ON j.id = t.job JOIN runs r ON r.id = j.run"
    " WHERE t.id = :task AND t.attempt = :attempt AND a.node = :node";

/* A node tells -1 or null of what it does not know. */
static const char sql_devices[] =
    "SELECT " WEIR_LIVE_DEVICE("d", "utilisation_pct") ", " WEIR_LIVE_DEVICE(
        "d", "memory_used_bytes") " FROM task_devices x"
                                  " JOIN devices d ON d.node = x.node AND d.idx = x.idx"
                                  " WHERE x.task = :task AND x.attempt = :attempt AND x.milli = "
                                  ":whole ORDER BY x.idx";

/** The metrics of one task that are being made. */
struct task_metrics {
    struct control *control;
    char *run;
    const char *prefix; /**< "system/" or "system/task_3/" */
    int64_t step;
    struct weir_metric items[METRICS_MAX];
    size_t n;
};

static void add(struct task_metrics *metrics, const char *name, double value)
{
    if (metrics->n < METRICS_MAX && isfinite(value) && value >= 0) {
        metrics->items[metrics->n++] = (struct weir_metric){
            .run = metrics->run,
            .key = weir_arena_printf(metrics->control->arena, "%s%s", metrics->prefix, name),
            .step = metrics->step,
            .value = value,
            .time_ms = metrics->control->now_ms};
    }
}

static weir_status add_devices(struct task_metrics *metrics, struct weir_txn *txn,
                               const struct task_use *use, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_arena *arena = metrics->control->arena;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_devices,
                            WEIR_BINDS(WEIR_BIND_TEXT("task", use->task),
                                       WEIR_BIND_INT("attempt", use->attempt),
                                       WEIR_BIND_INT("whole", WHOLE_DEVICE)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    for (int i = 0; has_row; i++) {
        add(metrics, weir_arena_printf(arena, "gpu_%d_utilization_percent", i),
            weir_stmt_f64(row, 0));
        add(metrics, weir_arena_printf(arena, "gpu_%d_memory_bytes", i), weir_stmt_f64(row, 1));
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

/* Which run the attempt works for; metrics->run stays NULL if there is none that is to be told. */
static weir_status find_run(struct task_metrics *metrics, struct weir_txn *txn, const char *node,
                            const struct task_use *use, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_arena *arena = metrics->control->arena;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_run,
                            WEIR_BINDS(WEIR_BIND_TEXT("task", use->task),
                                       WEIR_BIND_INT("attempt", use->attempt),
                                       WEIR_BIND_TEXT("node", node)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (has_row && weir_stmt_int(row, 2) < TASK_USE_RANKS_MAX) {
        int64_t since_ms = metrics->control->now_ms - weir_stmt_int(row, 1);
        metrics->run = weir_stmt_text(row, 0, arena);
        metrics->step = WEIR_MAX((int64_t)0, since_ms / STEP_MS);
        metrics->prefix =
            weir_stmt_int(row, 3) > 1
                ? weir_arena_printf(arena, "system/task_%" PRId64 "/", weir_stmt_int(row, 2))
                : "system/";
    }
    return WEIR_OK;
}

weir_status control_task_use(struct control *control, struct weir_txn *txn, const char *node,
                             const struct task_use *uses, size_t n, struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct task_metrics metrics = {.control = control};
        WEIR_TRY(find_run(&metrics, txn, node, &uses[i], err));
        if (metrics.run == NULL) {
            continue;
        }
        add(&metrics, "cpu_cores", uses[i].cpu_cores);
        add(&metrics, "memory_bytes", (double)uses[i].memory_bytes);
        WEIR_TRY(add_devices(&metrics, txn, &uses[i], err));
        WEIR_TRY(weir_metrics_put(txn, metrics.run, metrics.items, metrics.n, err));
    }
    return WEIR_OK;
}
