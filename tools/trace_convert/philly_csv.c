/** Philly, reduced: timestamp,duration,num_gpus,gpu_time,cluster; "cluster" is the virtual one. */

#include "sim/import.h"

enum column { TIMESTAMP, DURATION, NUM_GPUS, CLUSTER, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {"timestamp", "duration", "num_gpus", "cluster"};

static weir_status read_row(const struct import_row *row, struct weir_error *err)
{
    const int *at = row->at;
    struct weir_sim_job *job = row->job;
    int64_t n_devices;
    WEIR_TRY(csv_time(row->csv, at[TIMESTAMP], &job->submit_ms, err));
    WEIR_TRY(csv_scaled(row->csv, at[DURATION], 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                        &job->duration_ms, err));
    WEIR_TRY(csv_int(row->csv, at[NUM_GPUS], 0, 1 << 20, 0, &n_devices, err));
    job->n_devices = (int32_t)n_devices;
    job->queue = import_text(row, CLUSTER);
    if (n_devices == 0) {
        trace_leave_out(row->trace);
    }
    return WEIR_OK;
}

static const struct import_form form = {
    .columns = columns, .n_columns = N_COLUMNS, .n_needed = N_COLUMNS, .read = read_row};

const struct weir_sim_format convert_philly_csv = {
    "philly-csv", "Philly reduced to timestamp, duration, num_gpus, cluster", .form = &form};
