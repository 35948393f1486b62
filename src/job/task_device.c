#include "job/task_device.h"

#include "job/device.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

/* Attempts that one heartbeat settles; the next does the others. */
#define ROWS_MAX 256

static const char sql_look[] =
    "SELECT d.memory_bytes, d.kind, n.device_milli FROM devices d JOIN nodes n ON n.name = d.node"
    " WHERE d.node = :node AND d.idx = :idx AND d.state = 'ok'";
static const char sql_give[] =
    "INSERT INTO task_devices (task, attempt, node, idx, milli, memory_bytes)"
    " SELECT :task, :attempt, :node, :idx, CAST(:milli AS BIGINT), CAST(:bytes AS BIGINT)"
    " WHERE (SELECT coalesce(sum(milli), 0) FROM task_devices WHERE node = :node AND idx = :idx)"
    " + :milli <= :most AND (:whole = 0 OR"
    " (SELECT coalesce(sum(memory_bytes), 0) FROM task_devices WHERE node = :node AND idx = :idx)"
    " + :bytes <= :whole)";
static const char sql_of_attempt[] =
    "SELECT node, idx FROM task_devices WHERE task = :task AND attempt = :attempt";
static const char sql_end[] = "DELETE FROM task_devices WHERE task = :task AND attempt = :attempt";
static const char sql_leave[] = "UPDATE task_devices SET is_left = 1 WHERE task = :task"
                                " AND is_left = 0 AND attempt <> :live";
static const char sql_abandon[] = "UPDATE task_devices SET is_left = 1 WHERE task IN"
                                  " (SELECT id FROM tasks WHERE job = :job)";
static const char sql_left_on[] = "SELECT DISTINCT task, attempt FROM task_devices"
                                  " WHERE node = :node AND is_left = 1";
static const char sql_left[] =
    "SELECT DISTINCT node, idx FROM task_devices WHERE is_left = 1 ORDER BY node, idx";
static const char sql_sum[] =
    "SELECT sum(milli) FROM task_devices WHERE node = :node AND idx = :idx";
static const char sql_holders[] =
    "SELECT j.name || '/' || t.rank FROM task_devices d JOIN tasks t ON t.id = d.task"
    " JOIN jobs j ON j.id = t.job WHERE d.node = :node AND d.idx = :idx ORDER BY j.name, t.rank";
static const char sql_show[] = "UPDATE devices SET used_milli = :milli, holders = :holders"
                               " WHERE node = :node AND idx = :idx";

size_t weir_task_device_indices(const char *devices, int64_t *out)
{
    size_t n = 0;
    while (devices != NULL && *devices != '\0') {
        char *end;
        long long idx = strtoll(devices, &end, 10);
        if (end == devices || idx < 0 || n == WEIR_TASK_DEVICES_MAX ||
            (*end != ',' && *end != '\0')) {
            return 0;
        }
        out[n++] = idx;
        devices = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* ---- what people see of a device -------------------------------------------------------------- */

static weir_status show(struct weir_txn *txn, struct weir_arena *arena, const char *node,
                        int64_t idx, struct weir_error *err)
{
    const struct weir_bind of[] = {WEIR_BIND_TEXT("node", node), WEIR_BIND_INT("idx", idx)};
    int64_t milli;
    char **names, *text = NULL;
    size_t n;
    WEIR_TRY(weir_txn_query_int(txn, sql_sum, of, WEIR_ARRAY_LEN(of), 0, &milli, err));
    WEIR_TRY(
        weir_txn_query_texts(txn, sql_holders, of, WEIR_ARRAY_LEN(of), arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        text = text == NULL ? names[i] : weir_arena_printf(arena, "%s, %s", text, names[i]);
    }
    return weir_txn_exec(
        txn, sql_show,
        WEIR_BINDS(of[0], of[1], WEIR_BIND_INT("milli", milli), WEIR_BIND_TEXT("holders", text)),
        NULL, err);
}

/* ---- give ------------------------------------------------------------------------------------- */

struct giving {
    struct weir_txn *txn;
    struct weir_arena arena;
    const struct weir_task *task;
    bool *wrote; /* Per task: by this call. */
    bool is_given;
};

/* Bytes as thousandths are rounded down, so that those who share a device never add up to more. */
static int64_t milli_of(const struct weir_task *task, int64_t device_bytes)
{
    if (task->accelerator_milli > 0) {
        return task->accelerator_milli;
    }
    return device_bytes > 0 ? (int64_t)((__int128)task->accelerator_memory_bytes *
                                        WEIR_DEVICE_WHOLE / device_bytes)
                            : WEIR_DEVICE_WHOLE;
}

static int64_t bytes_of(const struct weir_task *task, int64_t device_bytes)
{
    return task->accelerator_milli > 0
               ? (int64_t)((__int128)device_bytes * task->accelerator_milli / WEIR_DEVICE_WHOLE)
               : task->accelerator_memory_bytes;
}

/* What there is of a device: of its memory, and in thousandths. */
struct whole {
    int64_t bytes, milli;
};

static weir_status look_at(struct giving *giving, int64_t idx, bool *out_is_ok, struct whole *out,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    WEIR_TRY(weir_stmt_open(
        giving->txn, sql_look,
        WEIR_BINDS(WEIR_BIND_TEXT("node", giving->task->node), WEIR_BIND_INT("idx", idx)), &row,
        err));
    WEIR_TRY(weir_stmt_step(row, out_is_ok, err));
    if (*out_is_ok) {
        struct weir_device device = {.kind = weir_stmt_text(row, 1, &giving->arena)};
        out->bytes = weir_stmt_int(row, 0);
        out->milli = weir_stmt_int(row, 2);
        out->milli = out->milli > 0 ? out->milli : WEIR_DEVICE_WHOLE;
        *out_is_ok = weir_device_is_accelerator(&device);
    }
    return WEIR_OK;
}

static weir_status give_one(struct giving *giving, int64_t idx, struct weir_error *err)
{
    const struct weir_task *task = giving->task;
    struct whole whole = {0};
    int64_t n = 0;
    bool is_ok = false;
    WEIR_TRY(look_at(giving, idx, &is_ok, &whole, err));
    bool needs_memory = task->accelerator_milli == 0;
    if (!is_ok || (needs_memory && whole.bytes < task->accelerator_memory_bytes)) {
        giving->is_given = false;
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_exec(giving->txn, sql_give,
                           WEIR_BINDS(WEIR_BIND_TEXT("task", task->id),
                                      WEIR_BIND_INT("attempt", task->attempt),
                                      WEIR_BIND_TEXT("node", task->node), WEIR_BIND_INT("idx", idx),
                                      WEIR_BIND_INT("milli", milli_of(task, whole.bytes)),
                                      WEIR_BIND_INT("most", whole.milli),
                                      WEIR_BIND_INT("bytes", bytes_of(task, whole.bytes)),
                                      WEIR_BIND_INT("whole", whole.bytes)),
                           &n, err));
    giving->is_given = n == 1;
    return giving->is_given ? show(giving->txn, &giving->arena, task->node, idx, err) : WEIR_OK;
}

static const char sql_has[] =
    "SELECT count(*) FROM task_devices WHERE task = :task AND attempt = :attempt";

/* Twice at one time it may be that a service's replicas are placed. */
static weir_status was_placed(const struct giving *giving, const struct weir_task *task,
                              int64_t now_ms, bool *out, struct weir_error *err)
{
    int64_t n;
    *out = task->n_accelerators > 0 && task->node != NULL && task->started_ms == now_ms &&
           weir_task_phase_from_text(task->state) == WEIR_TASK_STARTING;
    if (!*out) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_query_int(
        giving->txn, sql_has,
        WEIR_BINDS(WEIR_BIND_TEXT("task", task->id), WEIR_BIND_INT("attempt", task->attempt)), 0,
        &n, err));
    *out = n == 0;
    return WEIR_OK;
}

static weir_status give_task(struct giving *giving, struct weir_error *err)
{
    int64_t indices[WEIR_TASK_DEVICES_MAX];
    size_t n = weir_task_device_indices(giving->task->devices, indices);
    giving->is_given = n == (size_t)giving->task->n_accelerators;
    for (size_t i = 0; i < n && giving->is_given; i++) {
        for (size_t k = 0; k < i; k++) {
            giving->is_given = giving->is_given && indices[k] != indices[i];
        }
        if (giving->is_given) {
            WEIR_TRY(give_one(giving, indices[i], err));
        }
    }
    return WEIR_OK;
}

static weir_status give_all(struct giving *giving, const struct weir_job_state *state,
                            int64_t now_ms, struct weir_error *err)
{
    giving->wrote = WEIR_ARENA_ARRAY(&giving->arena, state->n_tasks + 1, bool);
    for (size_t i = 0; i < state->n_tasks && giving->is_given; i++) {
        giving->task = &state->tasks[i];
        WEIR_TRY(was_placed(giving, giving->task, now_ms, &giving->wrote[i], err));
        if (giving->wrote[i]) {
            WEIR_TRY(give_task(giving, err));
        }
    }
    for (size_t i = 0; i < state->n_tasks && !giving->is_given; i++) {
        const struct weir_task *task = &state->tasks[i];
        if (giving->wrote[i]) {
            WEIR_TRY(weir_task_devices_end(giving->txn, task->id, task->attempt, err));
        }
    }
    return WEIR_OK;
}

weir_status weir_task_devices_give(struct weir_txn *txn, const struct weir_job_state *state,
                                   int64_t now_ms, bool *out_is_given, struct weir_error *err)
{
    struct giving giving = {.txn = txn, .is_given = true};
    weir_arena_init(&giving.arena, 0);
    weir_status status = give_all(&giving, state, now_ms, err);
    weir_arena_fini(&giving.arena);
    *out_is_given = giving.is_given;
    return status;
}

/* ---- take back -------------------------------------------------------------------------------- */

struct place {
    char *node;
    int64_t idx;
};

static weir_status places_of(struct weir_txn *txn, const struct weir_bind *binds, size_t n_binds,
                             struct weir_arena *arena, struct place *out, size_t *out_n,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_of_attempt, binds, n_binds, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && *out_n < WEIR_TASK_DEVICES_MAX) {
        out[(*out_n)++] = (struct place){weir_stmt_text(row, 0, arena), weir_stmt_int(row, 1)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status end_in(struct weir_txn *txn, const char *task, int64_t attempt,
                          struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_bind binds[] = {WEIR_BIND_TEXT("task", task),
                                      WEIR_BIND_INT("attempt", attempt)};
    struct place places[WEIR_TASK_DEVICES_MAX];
    size_t n;
    WEIR_TRY(places_of(txn, binds, WEIR_ARRAY_LEN(binds), arena, places, &n, err));
    if (n == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_exec(txn, sql_end, binds, WEIR_ARRAY_LEN(binds), NULL, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(show(txn, arena, places[i].node, places[i].idx, err));
    }
    return WEIR_OK;
}

static const char sql_given[] =
    "SELECT d.idx, d.milli, d.memory_bytes, v.id, v.kind, coalesce(p.details, v.details)"
    " FROM task_devices d JOIN devices v ON v.node = d.node AND v.idx = d.idx"
    " LEFT JOIN devices p ON p.node = v.node AND p.idx = v.parent"
    " WHERE d.task = :task AND d.attempt = :attempt ORDER BY d.idx";

weir_status weir_task_devices_of(struct weir_txn *txn, const char *task, int64_t attempt,
                                 struct weir_arena *arena, struct weir_given_device *out,
                                 size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(
        txn, sql_given, WEIR_BINDS(WEIR_BIND_TEXT("task", task), WEIR_BIND_INT("attempt", attempt)),
        &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && *out_n < WEIR_TASK_DEVICES_MAX) {
        out[(*out_n)++] = (struct weir_given_device){.idx = weir_stmt_int(row, 0),
                                                     .milli = weir_stmt_int(row, 1),
                                                     .memory_bytes = weir_stmt_int(row, 2),
                                                     .id = weir_stmt_text(row, 3, arena),
                                                     .kind = weir_stmt_text(row, 4, arena),
                                                     .details = weir_stmt_text(row, 5, arena)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

weir_status weir_task_devices_end(struct weir_txn *txn, const char *task, int64_t attempt,
                                  struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return end_in(txn, task, attempt, &arena, err);
}

weir_status weir_task_devices_leave(struct weir_txn *txn, const struct weir_job_state *state,
                                    struct weir_error *err)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        int phase = weir_task_phase_from_text(task->state);
        bool is_live = phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING ||
                       phase == WEIR_TASK_STOPPING;
        if (task->n_accelerators > 0) {
            WEIR_TRY(weir_txn_exec(txn, sql_leave,
                                   WEIR_BINDS(WEIR_BIND_TEXT("task", task->id),
                                              WEIR_BIND_INT("live", is_live ? task->attempt : -1)),
                                   NULL, err));
        }
    }
    return WEIR_OK;
}

weir_status weir_task_devices_abandon(struct weir_txn *txn, const char *job, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_abandon, WEIR_BINDS(WEIR_BIND_TEXT("job", job)), NULL, err);
}

static bool is_alive(const struct weir_attempt_name *alive, size_t n_alive, const char *task,
                     int64_t attempt)
{
    for (size_t i = 0; i < n_alive; i++) {
        if (alive[i].attempt == attempt && strcmp(alive[i].task, task) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status left_on(struct weir_txn *txn, const char *node, struct weir_arena *arena,
                           struct weir_attempt_name *out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_left_on, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && *out_n < ROWS_MAX) {
        out[(*out_n)++] =
            (struct weir_attempt_name){weir_stmt_text(row, 0, arena), weir_stmt_int(row, 1)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status settle_in(struct weir_txn *txn, const char *node,
                             const struct weir_attempt_name *alive, size_t n_alive,
                             struct weir_arena *arena, size_t *out_n, struct weir_error *err)
{
    struct weir_attempt_name *left = WEIR_ARENA_ARRAY(arena, ROWS_MAX, struct weir_attempt_name);
    size_t n_left;
    *out_n = 0;
    WEIR_TRY(left_on(txn, node, arena, left, &n_left, err));
    for (size_t i = 0; i < n_left; i++) {
        if (!is_alive(alive, n_alive, left[i].task, left[i].attempt)) {
            WEIR_TRY(end_in(txn, left[i].task, left[i].attempt, arena, err));
            ++*out_n;
        }
    }
    return WEIR_OK;
}

weir_status weir_task_devices_settle(struct weir_txn *txn, const char *node,
                                     const struct weir_attempt_name *alive, size_t n_alive,
                                     size_t *out_n_freed, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return settle_in(txn, node, alive, n_alive, &arena, out_n_freed, err);
}

weir_status weir_task_devices_each_left(struct weir_txn *txn, weir_device_left_fn fn, void *context,
                                        struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    weir_status status;
    WEIR_TRY(weir_stmt_open(txn, sql_left, WEIR_NO_BINDS, &row, err));
    while ((status = weir_stmt_step(row, &has_row, err)) == WEIR_OK && has_row) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        fn(context, weir_stmt_text(row, 0, &arena), weir_stmt_int(row, 1));
        weir_arena_fini(&arena);
    }
    return status;
}
