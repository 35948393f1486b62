/**
 * Acme: trace_seren.csv, trace_kalos.csv. Its column "queue" is a time; who shares the cluster is
 * told by "type" (Pretrain, Evaluation …). Tasks are node_num nodes where gpu_num divides by them.
 */

#include "sim/import.h"

enum column { JOB_ID, USER, NODE_NUM, GPU_NUM, CPU_NUM, TYPE, SUBMIT_TIME, DURATION, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {"job_id",  "user", "node_num",    "gpu_num",
                                               "cpu_num", "type", "submit_time", "duration"};

static weir_status read_row(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    const int *at = row->at;
    struct weir_sim_job *job = row->job;
    int64_t n_nodes, n_devices, n_cpus;
    job->name = import_text(row, JOB_ID);
    job->user = import_text(row, USER);
    job->queue = import_text(row, TYPE);
    WEIR_TRY(csv_int(csv, at[NODE_NUM], 0, 1 << 16, 1, &n_nodes, err));
    WEIR_TRY(csv_int(csv, at[GPU_NUM], 0, 1 << 20, 0, &n_devices, err));
    WEIR_TRY(csv_int(csv, at[CPU_NUM], 0, 1 << 24, 0, &n_cpus, err));
    WEIR_TRY(csv_time(csv, at[SUBMIT_TIME], &job->submit_ms, err));
    WEIR_TRY(csv_scaled(csv, at[DURATION], 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                        &job->duration_ms, err));
    job->n_devices = (int32_t)n_devices;
    job->cpu_milli = n_cpus * 1000;
    if (n_devices > 0 && n_nodes > 0 && n_devices % n_nodes == 0) {
        job->n_tasks = (int32_t)n_nodes;
        job->n_devices /= job->n_tasks;
        job->cpu_milli /= job->n_tasks;
    }
    if (n_devices == 0 && n_cpus == 0) {
        trace_leave_out(row->trace);
    }
    return WEIR_OK;
}

static const struct import_form form = {
    .columns = columns, .n_columns = N_COLUMNS, .n_needed = N_COLUMNS, .read = read_row};

const struct weir_sim_format convert_acme = {
    "acme", "trace_seren.csv and trace_kalos.csv of AcmeTrace", .form = &form};
