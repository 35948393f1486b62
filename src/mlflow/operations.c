/** Every operation of MLflow's API, as data. */
#include "mlflow/call.h"

#define R(right) WEIR_RIGHT_##right
#define READ     WEIR_MLFLOW_READ
#define WRITE    WEIR_MLFLOW_WRITE
#define NONE     WEIR_MLFLOW_NONE
#define FLOW     WEIR_MLFLOW_FLOW
#define ASKS     WEIR_MLFLOW_ASKS
#define MIB      ((uint64_t)1 << 20)

// clang-format off: a table, one row per operation
const struct weir_mlflow_operation mlflow_operations[] = {
    /* method, path, noun, the argument that names it, right, access, flags, body, function */
    {"POST", "mlflow/experiments/create", "experiments", "name", R(RUNS_CHANGE), WRITE, 0, 0,
     mlflow_experiment_create},
    {"GET", "mlflow/experiments/get", "experiments", "experiment_id", R(RUNS_LOOK), READ, 0, 0,
     mlflow_experiment_get},
    {"GET", "mlflow/experiments/get-by-name", "experiments", "experiment_name", R(RUNS_LOOK), READ,
     0, 0, mlflow_experiment_get_by_name},
    {"POST", "mlflow/experiments/delete", "experiments", "experiment_id", R(RUNS_CHANGE), WRITE, 0,
     0, mlflow_experiment_delete},
    {"POST", "mlflow/experiments/restore", "experiments", "experiment_id", R(RUNS_CHANGE), WRITE, 0,
     0, mlflow_experiment_restore},
    {"POST", "mlflow/experiments/update", "experiments", "experiment_id", R(RUNS_CHANGE), WRITE, 0,
     0, mlflow_experiment_update},
    {"POST", "mlflow/experiments/set-experiment-tag", "experiments", "experiment_id",
     R(RUNS_CHANGE), WRITE, 0, 0, mlflow_experiment_set_tag},
    {"POST", "mlflow/experiments/delete-experiment-tag", "experiments", "experiment_id",
     R(RUNS_CHANGE), WRITE, 0, 0, mlflow_experiment_delete_tag},
    {"POST", "mlflow/experiments/search", "experiments", NULL, R(RUNS_LOOK), READ, ASKS, 0,
     mlflow_experiment_search},
    {"GET", "mlflow/experiments/search", "experiments", NULL, R(RUNS_LOOK), READ, 0, 0,
     mlflow_experiment_search},
    {"POST", "mlflow/experiments/search-datasets", "experiments", NULL, R(RUNS_LOOK), READ, ASKS, 0,
     mlflow_dataset_search},
    {"POST", "mlflow/runs/search", "runs", NULL, R(RUNS_LOOK), READ, ASKS, 0, mlflow_run_search},
    {"GET", "mlflow/metrics/get-history", "runs", "run_id", R(RUNS_LOOK), READ, 0, 0,
     mlflow_history},
    {"GET", "mlflow/metrics/get-history-bulk", "runs", NULL, R(RUNS_LOOK), READ, 0, 0,
     mlflow_history_bulk},
    {"GET", "mlflow/metrics/get-history-bulk-interval", "runs", NULL, R(RUNS_LOOK), READ, 0, 0,
     mlflow_history_interval},
    {"POST", "mlflow/runs/create", "runs", "experiment_id", R(RUNS_CHANGE), WRITE, FLOW, 0,
     mlflow_run_create},
    {"POST", "mlflow/runs/update", "runs", "run_id", R(RUNS_CHANGE), WRITE, FLOW, 0,
     mlflow_run_update},
    {"GET", "mlflow/runs/get", "runs", "run_id", R(RUNS_LOOK), READ, 0, 0, mlflow_run_get},
    {"POST", "mlflow/runs/delete", "runs", "run_id", R(RUNS_CHANGE), WRITE, 0, 0,
     mlflow_run_delete},
    {"POST", "mlflow/runs/restore", "runs", "run_id", R(RUNS_CHANGE), WRITE, 0, 0,
     mlflow_run_restore},
    {"POST", "mlflow/runs/log-metric", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 0,
     mlflow_log_metric},
    {"POST", "mlflow/runs/log-parameter", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 0,
     mlflow_log_parameter},
    {"POST", "mlflow/runs/set-tag", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 0,
     mlflow_set_tag},
    {"POST", "mlflow/runs/delete-tag", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 0,
     mlflow_delete_tag},
    {"POST", "mlflow/runs/log-batch", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 0,
     mlflow_log_batch},
    {"POST", "mlflow/runs/log-model", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 0,
     mlflow_log_model},
    {"POST", "mlflow/runs/log-inputs", "runs", "run_id", R(RUNS_CHANGE), NONE, FLOW, 32 * MIB,
     mlflow_log_inputs},
};
// clang-format on

const size_t mlflow_n_operations = WEIR_ARRAY_LEN(mlflow_operations);
