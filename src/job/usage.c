#include "job/usage.h"

#include "job/device.h"
#include "store/live.h"
#include "store/noun.h"
#include "store/stmt.h"

#include <string.h>

#define USAGE_KEY "time_ms, span_ms, project, \"user\", job, model"

/* What an hour had goes into its day with the row (migration 0022), so nothing is lost if that is cut short. */
const struct weir_noun weir_noun_usage = {
    "usage", .project = "project",
    .rules = {WEIR_RULE("usage", "Who had how much of the cluster, by hour and job",
                        "The oldest hours go first: they become days without the job.", 200,
                        {WEIR_DAYS(60), WEIR_MB(80)}, 400, 4, .by = WEIR_ROWS_TIMED,
                        .time = "time_ms", .key = USAGE_KEY, .where = "span_ms = 3600000"),
              WEIR_RULE("usage-days", "The same by day, without the job",
                        "The oldest days go first.", 210, {WEIR_DAYS(3650), WEIR_MB(60)}, 300, 4,
                        .by = WEIR_ROWS_TIMED, .time = "time_ms", .key = USAGE_KEY,
                        .where = "span_ms = 86400000")}};

#define NO_DEVICE ""

/* A task that waits for a node. */
#define WAITING 0

static const char sql_begin_waiting[] =
    "INSERT INTO usage_meters VALUES (:task, 0, :model, NULL, :project, :user, :job, :milli, :cpu,"
    " :since) ON CONFLICT DO NOTHING";
/* One row for each model that the attempt has; its CPUs are counted with the first. */
static const char sql_begin_devices[] =
    "INSERT INTO usage_meters SELECT d.task, d.attempt, coalesce(v.model, '') ||"
    " CASE WHEN v.profile IS NOT NULL THEN ' ' || v.profile ELSE '' END AS m, d.node, :project,"
    " :user, :job, sum(d.milli), 0, :since FROM task_devices d LEFT JOIN devices v"
    " ON v.node = d.node AND v.idx = d.idx WHERE d.task = :task AND d.attempt = :attempt"
    " GROUP BY d.task, d.attempt, d.node, m ON CONFLICT DO NOTHING";
static const char sql_give_cpus[] =
    "UPDATE usage_meters SET cpu_milli = :cpu WHERE task = :task AND attempt = :attempt AND model ="
    " (SELECT min(model) FROM usage_meters WHERE task = :task AND attempt = :attempt)";
static const char sql_begin_plain[] =
    "INSERT INTO usage_meters VALUES (:task, :attempt, '', :node, :project, :user, :job, 0, :cpu,"
    " :since) ON CONFLICT DO NOTHING";
static const char sql_end[] =
    "DELETE FROM usage_meters WHERE task = :task AND attempt = :attempt AND model = :model";
static const char sql_counted[] = "UPDATE usage_meters SET counted_ms = :now WHERE task = :task AND"
                                  " attempt = :attempt AND model = :model";

/* What the task's devices of this model say of themselves: those that say something, how busy, how idle;
 * and the part of what its project has that is borrowed. */
#define METER                                                                                      \
    "SELECT m.task, m.attempt, m.model, m.project, m.\"user\", m.job, m.device_milli, "            \
    "m.cpu_milli,"                                                                                 \
    " m.counted_ms, q.device_used, q.device_borrowed, q.cpu_used, q.cpu_borrowed,"                 \
    " (SELECT rank FROM tasks WHERE id = m.task)"                                                  \
    " FROM usage_meters m LEFT JOIN queue_history q ON q.time_ms = 0 AND q.project = m.project"
static const char sql_of_job[] = METER " WHERE m.job = :job";
static const char sql_n_running[] = "SELECT count(*) FROM usage_meters WHERE attempt > 0";
static const char sql_running[] = METER " WHERE m.attempt > 0 AND m.counted_ms <= :before LIMIT :n";
static const char sql_waiting[] =
    METER " WHERE m.attempt = 0 AND m.counted_ms <= :before ORDER BY m.counted_ms LIMIT :n";
static const char sql_measured[] =
    "SELECT coalesce(sum(CASE WHEN pct IS NULL THEN 0 ELSE milli END), 0),"
    " coalesce(sum(milli * pct / 100.0), 0),"
    " coalesce(sum(CASE WHEN pct < :idle THEN milli ELSE 0 END), 0)"
    " FROM (SELECT d.milli AS milli, " WEIR_LIVE_DEVICE(
        "v", "utilisation_pct") " AS pct"
                                " FROM task_devices d JOIN devices v ON v.node = d.node AND v.idx "
                                "= d.idx"
                                " WHERE d.task = :task AND d.attempt = :attempt AND "
                                "coalesce(v.model, '') ||"
                                " CASE WHEN v.profile IS NOT NULL THEN ' ' || v.profile ELSE '' "
                                "END = :model"
                                " AND (SELECT " WEIR_LIVE_NODE(
                                    "last_seen_ms") " FROM nodes WHERE name = d.node) >= :heard) "
                                                    "AS said";

static const char sql_add[] =
    "INSERT INTO usage VALUES (:hour, 3600000, :project, :user, :job, :model, :waited, :given, "
    ":used,"
    " :unknown, :idle, :borrowed, :cpu_waited, :cpu_given, :cpu_borrowed)"
    " ON CONFLICT (time_ms, span_ms, project, \"user\", job, model) DO UPDATE SET"
    " waited = usage.waited + excluded.waited, given = usage.given + excluded.given,"
    " used = usage.used + excluded.used, unknown = usage.unknown + excluded.unknown,"
    " idle = usage.idle + excluded.idle, borrowed = usage.borrowed + excluded.borrowed,"
    " cpu_waited = usage.cpu_waited + excluded.cpu_waited, cpu_given = usage.cpu_given + "
    "excluded.cpu_given,"
    " cpu_borrowed = usage.cpu_borrowed + excluded.cpu_borrowed";
static const char sql_add_total[] =
    "INSERT INTO usage_totals VALUES (:project, :model, :waited, :given, :used, :unknown, :idle,"
    " :borrowed, :cpu_given) ON CONFLICT (project, model) DO UPDATE SET"
    " waited = usage_totals.waited + excluded.waited, given = usage_totals.given + excluded.given,"
    " used = usage_totals.used + excluded.used, unknown = usage_totals.unknown + excluded.unknown,"
    " idle = usage_totals.idle + excluded.idle, borrowed = usage_totals.borrowed + "
    "excluded.borrowed,"
    " cpu_given = usage_totals.cpu_given + excluded.cpu_given";

struct meter {
    char *task, *model, *project, *user, *job;
    int64_t attempt, device_milli, cpu_milli, counted_ms, rank;
    double borrowed, cpu_borrowed; /* Part of what the project has, 0 to 1. */
    double known_milli, busy_milli, idle_milli;
};

struct meters {
    struct meter *items;
    size_t n, cap;
};

/* ---- reading ---------------------------------------------------------------------------------- */

/* Of what is had, so much is above the guarantee. */
static double part_of(const struct weir_stmt *row, int has, int borrowed)
{
    int64_t all = weir_stmt_int(row, has);
    return all > 0 ? (double)weir_stmt_int(row, borrowed) / (double)all : 0;
}

static struct meter *add_meter(struct meters *meters, struct weir_arena *arena)
{
    if (meters->n == meters->cap) {
        size_t cap = 2 * meters->cap + 8;
        struct meter *grown = WEIR_ARENA_ARRAY(arena, cap, struct meter);
        if (meters->n > 0) {
            memcpy(grown, meters->items, meters->n * sizeof *grown);
        }
        meters->items = grown;
        meters->cap = cap;
    }
    return &meters->items[meters->n++];
}

static weir_status read_meters(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                               size_t n_binds, struct weir_arena *arena, struct meters *out,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql, binds, n_binds, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        *add_meter(out, arena) = (struct meter){.task = weir_stmt_text(row, 0, arena),
                                                .attempt = weir_stmt_int(row, 1),
                                                .model = weir_stmt_text(row, 2, arena),
                                                .project = weir_stmt_text(row, 3, arena),
                                                .user = weir_stmt_text(row, 4, arena),
                                                .job = weir_stmt_text(row, 5, arena),
                                                .device_milli = weir_stmt_int(row, 6),
                                                .cpu_milli = weir_stmt_int(row, 7),
                                                .counted_ms = weir_stmt_int(row, 8),
                                                .borrowed = part_of(row, 9, 10),
                                                .cpu_borrowed = part_of(row, 11, 12),
                                                .rank = weir_stmt_int(row, 13)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

/* What the devices said with the last heartbeat, if that was not long before. */
static weir_status measure(struct weir_txn *txn, struct meter *meter, int64_t until_ms,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    if (meter->device_milli == 0 || meter->attempt == WAITING) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_stmt_open(txn, sql_measured,
                            WEIR_BINDS(WEIR_BIND_TEXT("task", meter->task),
                                       WEIR_BIND_INT("attempt", meter->attempt),
                                       WEIR_BIND_TEXT("model", meter->model),
                                       WEIR_BIND_INT("heard", until_ms - WEIR_USAGE_FRESH_MS),
                                       WEIR_BIND_INT("idle", WEIR_DEVICE_IDLE_PCT)),
                            &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (has_row) {
        meter->known_milli = weir_stmt_f64(row, 0);
        meter->busy_milli = weir_stmt_f64(row, 1);
        meter->idle_milli = weir_stmt_f64(row, 2);
    }
    return WEIR_OK;
}

/* ---- counting --------------------------------------------------------------------------------- */

static weir_status add_span(struct weir_txn *txn, const struct meter *meter, int64_t hour_ms,
                            int64_t span_ms, bool is_fresh, struct weir_error *err)
{
    bool waits = meter->attempt == WAITING;
    int64_t devices = meter->device_milli * span_ms, cpus = meter->cpu_milli * span_ms;
    int64_t given = waits ? 0 : devices, cpu_given = waits ? 0 : cpus;
    int64_t known = is_fresh ? (int64_t)(meter->known_milli * (double)span_ms) : 0;
    const struct weir_bind binds[] = {
        WEIR_BIND_INT("hour", hour_ms),
        WEIR_BIND_TEXT("project", meter->project),
        WEIR_BIND_TEXT("user", meter->user),
        WEIR_BIND_TEXT("job", meter->job),
        WEIR_BIND_TEXT("model", meter->model),
        WEIR_BIND_INT("waited", waits ? devices : 0),
        WEIR_BIND_INT("given", given),
        WEIR_BIND_INT("used", is_fresh ? (int64_t)(meter->busy_milli * (double)span_ms) : 0),
        WEIR_BIND_INT("unknown", WEIR_MAX(given - known, (int64_t)0)),
        WEIR_BIND_INT("idle", is_fresh ? (int64_t)(meter->idle_milli * (double)span_ms) : 0),
        WEIR_BIND_INT("borrowed", (int64_t)((double)given * meter->borrowed)),
        WEIR_BIND_INT("cpu_waited", waits ? cpus : 0),
        WEIR_BIND_INT("cpu_given", cpu_given),
        WEIR_BIND_INT("cpu_borrowed", (int64_t)((double)cpu_given * meter->cpu_borrowed))};
    WEIR_TRY(weir_txn_exec(txn, sql_add, binds, WEIR_ARRAY_LEN(binds), NULL, err));
    const struct weir_bind totals[] = {binds[1], binds[4], binds[5],  binds[6], binds[7],
                                       binds[8], binds[9], binds[10], binds[12]};
    return weir_txn_exec(txn, sql_add_total, totals, WEIR_ARRAY_LEN(totals), NULL, err);
}

/* From where it was counted until then, hour by hour. Of a longer time than `most_ms` what devices say now tells
 * nothing. */
static weir_status count(struct weir_txn *txn, struct meter *meter, int64_t until_ms,
                         int64_t most_ms, struct weir_error *err)
{
    bool is_fresh = until_ms - meter->counted_ms <= most_ms;
    WEIR_TRY(measure(txn, meter, until_ms, err));
    for (int64_t from_ms = meter->counted_ms; from_ms < until_ms;) {
        int64_t hour_ms = from_ms - from_ms % WEIR_USAGE_HOUR_MS;
        int64_t to_ms = WEIR_MIN(until_ms, hour_ms + WEIR_USAGE_HOUR_MS);
        WEIR_TRY(add_span(txn, meter, hour_ms, to_ms - from_ms, is_fresh, err));
        from_ms = to_ms;
    }
    return WEIR_OK;
}

static weir_status roll(struct weir_txn *txn, struct meter *meter, int64_t now_ms, int64_t most_ms,
                        struct weir_error *err)
{
    WEIR_TRY(count(txn, meter, now_ms, most_ms, err));
    return weir_txn_exec(
        txn, sql_counted,
        WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("task", meter->task),
                   WEIR_BIND_INT("attempt", meter->attempt), WEIR_BIND_TEXT("model", meter->model)),
        NULL, err);
}

static weir_status end(struct weir_txn *txn, struct meter *meter, int64_t until_ms,
                       struct weir_error *err)
{
    WEIR_TRY(count(txn, meter, until_ms, WEIR_USAGE_ROLL_MAX_MS + WEIR_USAGE_FRESH_MS, err));
    return weir_txn_exec(txn, sql_end,
                         WEIR_BINDS(WEIR_BIND_TEXT("task", meter->task),
                                    WEIR_BIND_INT("attempt", meter->attempt),
                                    WEIR_BIND_TEXT("model", meter->model)),
                         NULL, err);
}

static weir_status roll_all(struct weir_txn *txn, const char *sql, int64_t now_ms, int64_t every_ms,
                            int64_t n_most, int64_t *out_n, struct weir_error *err)
{
    struct weir_arena arena;
    struct meters meters = {0};
    weir_arena_init(&arena, 0);
    weir_status status = read_meters(
        txn, sql,
        WEIR_BINDS(WEIR_BIND_INT("before", now_ms - every_ms), WEIR_BIND_INT("n", n_most)), &arena,
        &meters, err);
    for (size_t i = 0; i < meters.n && status == WEIR_OK; i++) {
        status = roll(txn, &meters.items[i], now_ms, every_ms + WEIR_USAGE_FRESH_MS, err);
    }
    *out_n = (int64_t)meters.n;
    weir_arena_fini(&arena);
    return status;
}

/** How often meters of tasks that run are rolled, where so many do. */
static int64_t every_ms_of(int64_t n_running)
{
    return WEIR_MAX((int64_t)WEIR_USAGE_ROLL_MS,
                    WEIR_MIN(n_running * WEIR_USAGE_EACH_MS, (int64_t)WEIR_USAGE_ROLL_MAX_MS));
}

weir_status weir_usage_roll_running(struct weir_txn *txn, int64_t now_ms, int64_t *out_n,
                                    struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_query_int(txn, sql_n_running, WEIR_NO_BINDS, 0, &n, err));
    return roll_all(txn, sql_running, now_ms, every_ms_of(n), WEIR_USAGE_RUNNING_MAX, out_n, err);
}

weir_status weir_usage_roll_waiting(struct weir_txn *txn, int64_t now_ms, int64_t *out_n,
                                    struct weir_error *err)
{
    return roll_all(txn, sql_waiting, now_ms, WEIR_USAGE_WAIT_MS, WEIR_USAGE_WAITING_MAX, out_n,
                    err);
}

/* ---- beginnings and ends ---------------------------------------------------------------------- */

#define NO_METER (-1)

/* Per task the attempt whose meter should run. */
static int64_t *wanted_meters(const struct weir_job_state *state, int64_t now_ms,
                              struct weir_arena *arena)
{
    int64_t *wanted = WEIR_ARENA_ARRAY(arena, state->n_tasks + 1, int64_t);
    size_t *wants = WEIR_ARENA_ARRAY(arena, state->n_tasks + 1, size_t);
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        wanted[i] = weir_task_is_alive(task) && task->node != NULL ? task->attempt : NO_METER;
    }
    for (size_t n = weir_job_wants(state, now_ms, wants); n > 0; n--) {
        wanted[wants[n - 1]] = WAITING;
    }
    return wanted;
}

/* Tasks lie by rank, and mostly each at its own. */
static size_t find_task(const struct weir_job_state *state, const struct meter *meter)
{
    size_t i = (size_t)meter->rank;
    if (i < state->n_tasks && strcmp(state->tasks[i].id, meter->task) == 0) {
        return i;
    }
    for (i = 0; i < state->n_tasks && strcmp(state->tasks[i].id, meter->task) != 0;) {
        i++;
    }
    return i;
}

static weir_status end_others(struct weir_txn *txn, const struct weir_job_state *state,
                              const int64_t *wanted, bool *has, int64_t now_ms,
                              struct weir_arena *arena, struct weir_error *err)
{
    struct meters meters = {0};
    WEIR_TRY(read_meters(txn, sql_of_job, WEIR_BINDS(WEIR_BIND_TEXT("job", state->job.id)), arena,
                         &meters, err));
    for (size_t m = 0; m < meters.n; m++) {
        struct meter *meter = &meters.items[m];
        size_t i = find_task(state, meter);
        if (i < state->n_tasks && meter->attempt == wanted[i]) {
            has[i] = true;
        } else {
            WEIR_TRY(end(txn, meter, now_ms, err));
        }
    }
    return WEIR_OK;
}

static weir_status begin(struct weir_txn *txn, const struct weir_job *job,
                         const struct weir_task *task, int64_t attempt, int64_t now_ms,
                         struct weir_error *err)
{
    int64_t of_each = task->accelerator_milli > 0 ? task->accelerator_milli : 1000;
    const char *model = task->accelerator_model != NULL ? task->accelerator_model : NO_DEVICE;
    const struct weir_bind task_bind = WEIR_BIND_TEXT("task", task->id),
                           attempt_bind = WEIR_BIND_INT("attempt", attempt),
                           project = WEIR_BIND_TEXT("project", job->project),
                           user = WEIR_BIND_TEXT("user",
                                                 job->created_by != NULL ? job->created_by : ""),
                           id = WEIR_BIND_TEXT("job", job->id),
                           cpu = WEIR_BIND_INT("cpu", task->cpu_millis),
                           since = WEIR_BIND_INT("since", now_ms);
    if (attempt == WAITING) {
        return weir_txn_exec(txn, sql_begin_waiting,
                             WEIR_BINDS(task_bind, WEIR_BIND_TEXT("model", model), project, user,
                                        id, WEIR_BIND_INT("milli", task->n_accelerators * of_each),
                                        cpu, since),
                             NULL, err);
    }
    int64_t n = 0;
    if (task->n_accelerators > 0) {
        WEIR_TRY(weir_txn_exec(txn, sql_begin_devices,
                               WEIR_BINDS(task_bind, attempt_bind, project, user, id, since), &n,
                               err));
    }
    return n > 0 ? weir_txn_exec(txn, sql_give_cpus, WEIR_BINDS(task_bind, attempt_bind, cpu), NULL,
                                 err)
                 : weir_txn_exec(txn, sql_begin_plain,
                                 WEIR_BINDS(task_bind, attempt_bind,
                                            WEIR_BIND_TEXT("node", task->node), project, user, id,
                                            cpu, since),
                                 NULL, err);
}

weir_status weir_usage_record(struct weir_txn *txn, const struct weir_job_state *state,
                              int64_t now_ms, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    int64_t *wanted = wanted_meters(state, now_ms, &arena);
    bool *has = WEIR_ARENA_ARRAY(&arena, state->n_tasks + 1, bool);
    weir_status status = end_others(txn, state, wanted, has, now_ms, &arena, err);
    for (size_t i = 0; i < state->n_tasks && status == WEIR_OK; i++) {
        if (wanted[i] != NO_METER && !has[i]) {
            status = begin(txn, &state->job, &state->tasks[i], wanted[i], now_ms, err);
        }
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_usage_end(struct weir_txn *txn, const char *job, int64_t now_ms,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct meters meters = {0};
    weir_arena_init(&arena, 0);
    WEIR_TRY(
        read_meters(txn, sql_of_job, WEIR_BINDS(WEIR_BIND_TEXT("job", job)), &arena, &meters, err));
    for (size_t i = 0; i < meters.n; i++) {
        WEIR_TRY(end(txn, &meters.items[i], now_ms, err));
    }
    return WEIR_OK;
}
