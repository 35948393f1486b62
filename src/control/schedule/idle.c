#include "control/schedule/idle.h"

#include "job/queue.h"
#include "store/stmt.h"

#include <inttypes.h>
#include <string.h>

/* A job with a device that is busy, or that its node no longer names, is not in the list. */
static const char sql_idle[] =
    "SELECT j.id, j.project,"
    " max(CASE WHEN t.started_ms > d.idle_since_ms THEN t.started_ms ELSE d.idle_since_ms END)"
    " FROM task_devices x JOIN tasks t ON t.id = x.task AND t.attempt = x.attempt"
    " JOIN jobs j ON j.id = t.job"
    " LEFT JOIN devices d ON d.node = x.node AND d.idx = x.idx"
    " WHERE x.is_left = 0 AND t.state = 'RUNNING' AND j.is_service = 0 AND j.is_held = 0"
    " GROUP BY j.id, j.project"
    " HAVING min(CASE WHEN d.idle_since_ms > 0 THEN 1 ELSE 0 END) = 1 ORDER BY j.id";

static const char sql_services[] = "SELECT s.id, s.project, s.used_ms, s.started_ms, t.started_ms, "
                                   "s.idle_after_ms FROM services s JOIN jobs j ON j.id = s.job"
                                   " LEFT JOIN tasks t ON t.job = j.id AND t.rank = 0"
                                   " WHERE j.state = 'RUNNING' ORDER BY s.id";

static const struct weir_queue *find_queue(const struct weir_queue *queues, size_t n,
                                           const char *name, const char *project)
{
    for (size_t i = 0; i < n; i++) {
        const char *is = name != NULL ? queues[i].name : queues[i].project;
        if (is != NULL && strcmp(is, name != NULL ? name : project) == 0) {
            return &queues[i];
        }
    }
    return NULL;
}

/* How long jobs of a project may be idle: its queue's word, else its parents'. 0: for ever. */
static int64_t bound_of(const struct weir_queue *queues, size_t n, const char *project)
{
    const struct weir_queue *queue = find_queue(queues, n, NULL, project);
    while (queue != NULL && queue->idle_after_ms < 0 && queue->parent != NULL) {
        queue = find_queue(queues, n, queue->parent, NULL);
    }
    return queue != NULL ? WEIR_MAX(queue->idle_after_ms, (int64_t)0) : 0;
}

/* What has been idle for too long, in the control's arena. */
struct found {
    struct control_idle_job *items;
    size_t n, cap;
};

static void add(const struct control *control, struct found *found, char *id, char *text)
{
    if (found->n == found->cap) {
        size_t cap = 2 * found->cap + 8;
        struct control_idle_job *grown =
            WEIR_ARENA_ARRAY(control->arena, cap, struct control_idle_job);
        memcpy(grown, found->items, found->n * sizeof *grown);
        found->items = grown;
        found->cap = cap;
    }
    found->items[found->n++] = (struct control_idle_job){id, text};
}

static weir_status read_jobs(const struct control *control, struct weir_txn *txn,
                             const struct weir_queue *queues, size_t n_queues, struct found *found,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_arena *arena = control->arena;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_idle, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        int64_t after_ms = bound_of(queues, n_queues, weir_stmt_text(row, 1, arena));
        if (after_ms > 0 && control->now_ms - weir_stmt_int(row, 2) >= after_ms) {
            add(control, found, weir_stmt_text(row, 0, arena),
                weir_arena_printf(arena, "held: its devices have been idle for %" PRId64 " s",
                                  after_ms / 1000));
        }
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status read_services(const struct control *control, struct weir_txn *txn,
                                 const struct weir_queue *queues, size_t n_queues,
                                 struct found *found, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_arena *arena = control->arena;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_services, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        int64_t own_ms = weir_stmt_int(row, 5);
        int64_t used_ms = WEIR_MAX(weir_stmt_int(row, 2), weir_stmt_int(row, 3));
        used_ms = WEIR_MAX(used_ms, weir_stmt_int(row, 4));
        int64_t after_ms =
            own_ms > 0 ? own_ms : bound_of(queues, n_queues, weir_stmt_text(row, 1, arena));
        if (after_ms > 0 && control->now_ms - used_ms >= after_ms) {
            add(control, found, weir_stmt_text(row, 0, arena),
                weir_arena_printf(arena, "nobody has used it for %" PRId64 " s", after_ms / 1000));
        }
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

weir_status control_idle_services(const struct control *control, struct weir_txn *txn,
                                  struct control_idle_job **out, size_t *out_n,
                                  struct weir_error *err)
{
    struct weir_queue *queues;
    size_t n_queues;
    struct found found = {.items = WEIR_ARENA_ARRAY(control->arena, 1, struct control_idle_job)};
    WEIR_TRY(weir_queue_list(txn, control->arena, &queues, &n_queues, err));
    WEIR_TRY(read_services(control, txn, queues, n_queues, &found, err));
    *out = found.items;
    *out_n = found.n;
    return WEIR_OK;
}

weir_status control_idle_jobs(const struct control *control, struct weir_txn *txn,
                              struct control_idle_job **out, size_t *out_n, struct weir_error *err)
{
    struct weir_queue *queues;
    size_t n_queues;
    bool is_bounded = false;
    struct found found = {.items = WEIR_ARENA_ARRAY(control->arena, 1, struct control_idle_job)};
    WEIR_TRY(weir_queue_list(txn, control->arena, &queues, &n_queues, err));
    for (size_t i = 0; i < n_queues; i++) {
        is_bounded = is_bounded || queues[i].idle_after_ms > 0;
    }
    if (is_bounded) {
        WEIR_TRY(read_jobs(control, txn, queues, n_queues, &found, err));
    }
    *out = found.items;
    *out_n = found.n;
    return WEIR_OK;
}
