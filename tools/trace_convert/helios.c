/** Helios: cluster_log.csv. */

#include "sim/import.h"

enum column { JOB_ID, USER, VC, GPU_NUM, CPU_NUM, SUBMIT_TIME, DURATION, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {"job_id",  "user",        "vc",      "gpu_num",
                                               "cpu_num", "submit_time", "duration"};

static weir_status read_row(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    const int *at = row->at;
    struct weir_sim_job *job = row->job;
    int64_t n_devices, n_cpus;
    job->name = import_text(row, JOB_ID);
    job->user = import_text(row, USER);
    job->queue = import_text(row, VC);
    WEIR_TRY(csv_int(csv, at[GPU_NUM], 0, 1 << 20, 0, &n_devices, err));
    WEIR_TRY(csv_int(csv, at[CPU_NUM], 0, 1 << 20, 0, &n_cpus, err));
    WEIR_TRY(csv_time(csv, at[SUBMIT_TIME], &job->submit_ms, err));
    WEIR_TRY(csv_scaled(csv, at[DURATION], 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                        &job->duration_ms, err));
    job->n_devices = (int32_t)n_devices;
    job->cpu_milli = n_cpus * 1000;
    if (n_devices == 0 && n_cpus == 0) {
        trace_leave_out(row->trace);
    }
    return WEIR_OK;
}

static const struct import_form form = {
    .columns = columns, .n_columns = N_COLUMNS, .n_needed = N_COLUMNS, .read = read_row};

const struct weir_sim_format convert_helios = {"helios", "cluster_log.csv of HeliosData",
                                               .form = &form};
