/**
 * Pollux's workloads: name,time,application,num_replicas,batch_size. They give no run times, which
 * depend on throughput profiles; a column "duration" (seconds with num_replicas) may be added.
 */
#include "trace_convert/formats.h"

#include "sim/import.h"

enum column { NAME, TIME, APPLICATION, NUM_REPLICAS, N_NEEDED, DURATION = N_NEEDED, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {"name", "time", "application", "num_replicas",
                                               "duration"};

static weir_status read_row(const struct import_row *row, struct weir_error *err)
{
    const int *at = row->at;
    struct weir_sim_job *job = row->job;
    int64_t n_replicas;
    job->name = import_text(row, NAME);
    job->queue = import_text(row, APPLICATION);
    WEIR_TRY(csv_time(row->csv, at[TIME], &job->submit_ms, err));
    WEIR_TRY(csv_int(row->csv, at[NUM_REPLICAS], 1, 4096, 1, &n_replicas, err));
    WEIR_TRY(csv_scaled(row->csv, at[DURATION], 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                        &job->duration_ms, err));
    job->n_tasks = (int32_t)n_replicas;
    job->n_devices = 1;
    return WEIR_OK;
}

static const struct import_form form = {
    .columns = columns, .n_columns = N_COLUMNS, .n_needed = N_NEEDED, .read = read_row};

const struct weir_sim_format convert_pollux = {
    "pollux", "workload-*.csv of Pollux, with a column duration added", .form = &form};
