/** What a call may see and change. */
#include "mlflow/call.h"

#include "store/stmt.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RUN_ID_MAX        256
#define EXPERIMENT_ID_MAX 64

static const char sql_run[] =
    "SELECT number, id, name, project, experiment, kind, status, job, artifact_root, \"user\","
    " created_ms, start_ms, finished_ms, deleted_ms FROM runs WHERE id = :id";

static bool is_id(const char *id, size_t max_bytes)
{
    size_t len = strlen(id);
    if (len == 0 || len > max_bytes || !isalnum((unsigned char)*id)) {
        return false;
    }
    for (const char *p = id; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-') {
            return false;
        }
    }
    return true;
}

static void read_run(struct weir_stmt *stmt, struct weir_arena *arena, struct mlflow_run *out)
{
    out->number = weir_stmt_int(stmt, 0);
    out->record = (struct weir_run){.id = weir_stmt_text(stmt, 1, arena),
                                    .name = weir_stmt_text(stmt, 2, arena),
                                    .project = weir_stmt_text(stmt, 3, arena),
                                    .experiment = weir_stmt_int(stmt, 4),
                                    .kind = weir_stmt_text(stmt, 5, arena),
                                    .status = weir_stmt_text(stmt, 6, arena),
                                    .job = weir_stmt_text(stmt, 7, arena),
                                    .artifact_root = weir_stmt_text(stmt, 8, arena),
                                    .user = weir_stmt_text(stmt, 9, arena),
                                    .created_ms = weir_stmt_int(stmt, 10),
                                    .start_ms = weir_stmt_int(stmt, 11),
                                    .finished_ms = weir_stmt_int(stmt, 12),
                                    .deleted_ms = weir_stmt_int(stmt, 13)};
}

weir_status mlflow_read(struct weir_mlflow_call *call, weir_txn_fn fn, void *context,
                        struct weir_error *err)
{
    return weir_store_read_scoped(call->store, &call->rows, fn, context, err);
}

weir_status mlflow_write(struct weir_mlflow_call *call, weir_txn_fn fn, void *context,
                         struct weir_error *err)
{
    return call->ops->write(call->owner, fn, context, err);
}

weir_status mlflow_refuse_others(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "this task's token looks at runs of its own job only: who it works for "
                          "has no right to look at others now");
}

weir_status mlflow_find_run(const struct weir_mlflow_call *call, struct weir_txn *txn,
                            const char *id, struct mlflow_run *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    if (!is_id(id, RUN_ID_MAX)) {
        json_t *value = json_string(id);
        weir_status status = mlflow_invalid(call->arena, "run_id", value, "", err);
        json_decref(value);
        return status;
    }
    WEIR_TRY(weir_stmt_open(txn, sql_run, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (has_row) {
        read_run(stmt, call->arena, out);
    }
    bool is_own = has_row && call->job != NULL && out->record.job != NULL &&
                  strcmp(out->record.job, call->job) == 0;
    if (call->sees_own_only && !is_own) { /* whether it is there or not */
        return mlflow_refuse_others(err);
    }
    return has_row && weir_row_scope_sees(&call->rows, out->record.project)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOT_FOUND, "Run '%.256s' not found", id);
}

weir_status mlflow_find_run_to_change(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                      const char *id, bool may_be_deleted, struct mlflow_run *out,
                                      struct weir_error *err)
{
    WEIR_TRY(mlflow_find_run(call, txn, id, out, err));
    const char *job = out->record.job;
    if (call->job != NULL && (job == NULL || strcmp(job, call->job) != 0)) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "this task's token changes runs of its own job only, and run %s is "
                              "not one of them",
                              id);
    }
    return may_be_deleted || out->record.deleted_ms == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "The run %s must be in the 'active' state. Current state is "
                                "deleted.",
                                id);
}

weir_status mlflow_find_experiment(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                   const char *id, struct weir_experiment *out,
                                   struct weir_error *err)
{
    char *end = NULL;
    if (!is_id(id, EXPERIMENT_ID_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "Invalid experiment ID: '%.80s'", id);
    }
    int64_t number = strtoll(id, &end, 10);
    weir_status status = WEIR_ERR_NOT_FOUND;
    if (call->sees_own_only && (*end != '\0' || number != call->own_experiment)) {
        return mlflow_refuse_others(err);
    }
    if (*end == '\0' && number == 0 && strcmp(call->project, "default") != 0) {
        status = weir_experiment_find(txn, call->project, WEIR_EXPERIMENT_DEFAULT, call->arena, out,
                                      err);
    } else if (*end == '\0') {
        status = weir_experiment_get(txn, number, call->arena, out, err);
    }
    if (status == WEIR_ERR_NOT_FOUND ||
        (status == WEIR_OK && !weir_row_scope_sees(&call->rows, out->project))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "No Experiment with id=%.80s exists", id);
    }
    return status;
}
