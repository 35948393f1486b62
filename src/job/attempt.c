#include "job/attempt.h"

#include "store/noun.h"
#include "store/stmt.h"

/* Of each task all that is left, a few at a time. */
const struct weir_noun weir_noun_attempt = {
    "attempts", WEIR_OF(task, tasks, id),
    .rules = {WEIR_RULE(
        "attempts", "Where the starts of tasks of jobs that are over ran",
        "Those of jobs that ended longest ago go first; an agent cannot report them any more.", 170,
        {WEIR_DAYS(7), WEIR_MB(15)}, 180, 2,
        .from = "jobs j /*+ INDEXED BY jobs_over */ JOIN tasks t ON t.job = j.id", .key = "t.id",
        .time = "j.finished_ms",
        .where = "j." WEIR_WORK_OVER_SQL " AND EXISTS (SELECT 1 FROM attempts WHERE task = t.id)",
        .count = "SELECT count(*) FROM attempts WHERE task IN (SELECT t.id FROM tasks t JOIN jobs j"
                 " ON j.id = t.job WHERE j." WEIR_WORK_OVER_SQL ")",
        .remove = {"DELETE FROM attempts WHERE (task, number) IN (SELECT a.task, a.number"
                   " FROM attempts a JOIN tasks t ON t.id = a.task JOIN jobs j ON j.id = t.job"
                   " WHERE a.task = :key AND j." WEIR_WORK_OVER_SQL " LIMIT :n)"})}};

static const char sql_load[] = "SELECT t.attempt, t.rank, t.exit_code, t.signal, j.id, j.kind, "
                               "j.state, j.run, j.ion, j.pipeline, j.is_service, j.project,"
                               " j.created_by, j.limited_to,"
                               " (SELECT r.experiment FROM runs r WHERE r.id = j.run)"
                               " FROM tasks t JOIN jobs j ON j.id = t.job WHERE t.id = :task";
static const char sql_on_node[] = "SELECT count(*) FROM attempts WHERE task = :task"
                                  " AND number = :number AND node = :node";
static const char sql_record[] = "INSERT INTO attempts (task, number, node)"
                                 " VALUES (:task, :number, :node) ON CONFLICT DO NOTHING";
static const char sql_forget[] = "DELETE FROM attempts WHERE task = :task AND number <= :number";

enum {
    ATTEMPT,
    RANK,
    EXIT_CODE,
    SIGNAL,
    JOB,
    KIND,
    JOB_STATE,
    RUN,
    ION,
    PIPELINE,
    IS_SERVICE,
    PROJECT,
    CREATED_BY,
    LIMITED_TO,
    EXPERIMENT
};

/* A reported end has an exit code or a signal; a lost attempt has neither. */
static bool is_over(const struct weir_stmt *row, int64_t number, struct weir_arena *arena)
{
    int phase = weir_job_phase_from_text(weir_stmt_text(row, JOB_STATE, arena));
    return weir_stmt_int(row, ATTEMPT) != number || weir_stmt_int(row, EXIT_CODE) != -1 ||
           weir_stmt_int(row, SIGNAL) != 0 || phase < 0 ||
           weir_job_phase_is_final((enum weir_job_phase)phase);
}

weir_status weir_attempt_load(struct weir_txn *txn, const char *task, int64_t number,
                              struct weir_arena *arena, struct weir_attempt *out,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_load, WEIR_BINDS(WEIR_BIND_TEXT("task", task)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (!has_row || number < 1 || number > weir_stmt_int(row, ATTEMPT)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "task \"%s\" has no attempt %lld", task,
                              (long long)number);
    }
    if (is_over(row, number, arena)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "attempt %lld of task \"%s\" is over",
                              (long long)number, task);
    }
    *out = (struct weir_attempt){.task = weir_arena_strdup(arena, task),
                                 .number = number,
                                 .job = weir_stmt_text(row, JOB, arena),
                                 .rank = weir_stmt_int(row, RANK),
                                 .kind = weir_stmt_text(row, KIND, arena),
                                 .run = weir_stmt_text(row, RUN, arena),
                                 .ion = weir_stmt_text(row, ION, arena),
                                 .pipeline = weir_stmt_text(row, PIPELINE, arena),
                                 .project = weir_stmt_text(row, PROJECT, arena),
                                 .created_by = weir_stmt_text(row, CREATED_BY, arena),
                                 .limited_to = weir_stmt_text(row, LIMITED_TO, arena),
                                 .experiment = weir_stmt_int(row, EXPERIMENT),
                                 .is_service = weir_stmt_int(row, IS_SERVICE) != 0};
    return WEIR_OK;
}

weir_status weir_attempt_check_node(struct weir_txn *txn, const char *task, int64_t number,
                                    const char *node, struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(
        weir_txn_query_int(txn, sql_on_node,
                           WEIR_BINDS(WEIR_BIND_TEXT("task", task), WEIR_BIND_INT("number", number),
                                      WEIR_BIND_TEXT("node", node)),
                           0, &n, err));
    return n > 0 ? WEIR_OK
                 : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                  "attempt %lld of task \"%.60s\" was not placed on node \"%s\"",
                                  (long long)number, task, node);
}

weir_status weir_attempts_record(struct weir_txn *txn, const struct weir_job_state *state,
                                 int64_t now_ms, struct weir_error *err)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        if (task->node == NULL || task->started_ms != now_ms ||
            weir_task_phase_from_text(task->state) != WEIR_TASK_STARTING) {
            continue;
        }
        WEIR_TRY(weir_txn_exec(txn, sql_record,
                               WEIR_BINDS(WEIR_BIND_TEXT("task", task->id),
                                          WEIR_BIND_INT("number", task->attempt),
                                          WEIR_BIND_TEXT("node", task->node)),
                               NULL, err));
        if (task->attempt > WEIR_ATTEMPTS_KEPT) {
            WEIR_TRY(weir_txn_exec(
                txn, sql_forget,
                WEIR_BINDS(WEIR_BIND_TEXT("task", task->id),
                           WEIR_BIND_INT("number", task->attempt - WEIR_ATTEMPTS_KEPT)),
                NULL, err));
        }
    }
    return WEIR_OK;
}
