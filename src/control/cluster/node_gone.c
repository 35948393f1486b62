#include "control/node_gone.h"

#include "job/job.h"
#include "store/stmt.h"
#include "store/table.h"

#define NODE_TASKS_MAX 4096

static const char sql_there[] = "SELECT id, job FROM tasks WHERE node = :node"
                                " AND state IN ('STARTING', 'RUNNING', 'STOPPING') LIMIT :n";
static const char sql_runs_there[] = "SELECT id, job FROM tasks WHERE node = :node"
                                     " AND state IN ('STARTING', 'RUNNING') LIMIT :n";

struct there {
    char *task, *job;
};

static weir_status list(struct control *control, struct weir_txn *txn, const char *sql,
                        const char *node, struct there **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    *out = WEIR_ARENA_ARRAY(control->arena, NODE_TASKS_MAX, struct there);
    WEIR_TRY(weir_stmt_open(
        txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("node", node), WEIR_BIND_INT("n", NODE_TASKS_MAX)),
        &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    for (*out_n = 0; has_row && *out_n < NODE_TASKS_MAX; (*out_n)++) {
        (*out)[*out_n] = (struct there){weir_stmt_text(row, 0, control->arena),
                                        weir_stmt_text(row, 1, control->arena)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

weir_status control_node_evict(struct control *control, struct weir_txn *txn, const char *node,
                               const char *why, int64_t *out_n, struct weir_error *err)
{
    struct there *there;
    size_t n;
    WEIR_TRY(list(control, txn, sql_runs_there, node, &there, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_job_event event = {
            .type = WEIR_JOB_EVENT_EVICT, .task = there[i].task, .text = why};
        bool is_done;
        WEIR_TRY(control_job_evict(control, txn, there[i].job, -1, &event, &is_done, err));
        if (out_n != NULL) {
            *out_n += is_done;
        }
    }
    return WEIR_OK;
}

static weir_status lose_tasks(struct control *control, struct weir_txn *txn, const char *node,
                              bool is_foreseen, const char *why, struct weir_error *err)
{
    const struct weir_job_event lost = {
        .type = WEIR_JOB_EVENT_NODE_LOST, .node = node, .text = why, .is_foreseen = is_foreseen};
    struct there *there;
    size_t n;
    WEIR_TRY(list(control, txn, sql_there, node, &there, &n, err));
    for (size_t i = 0; i < n; i++) {
        weir_status status = control_job_event(control, txn, there[i].job, &lost, err);
        if (status != WEIR_OK && !control_is_unreadable(status)) {
            return status;
        }
    }
    return WEIR_OK;
}

weir_status control_node_gone(struct control *control, struct weir_txn *txn, const char *node,
                              bool is_foreseen, const char *why, struct weir_error *err)
{
    WEIR_TRY(lose_tasks(control, txn, node, is_foreseen, why, err));
    return weir_node_leave(txn, node, control->now_ms, err);
}
