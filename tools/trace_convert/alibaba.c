/** Alibaba cluster-trace-gpu-v2023: a pod per line; the multigpu lists end after gpu_milli. */

#include "sim/import.h"

// clang-format off
enum column {
    NAME, CPU_MILLI, MEMORY_MIB, NUM_GPU, GPU_MILLI, N_NEEDED,
    GPU_SPEC = N_NEEDED, QOS, CREATION_TIME, DELETION_TIME, SCHEDULED_TIME, N_COLUMNS
};

static const char *const columns[N_COLUMNS] = {
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli",
    "gpu_spec", "qos", "creation_time", "deletion_time", "scheduled_time",
};

// clang-format on

/** From when to when it ran: from being scheduled, else from being made. */
static weir_status read_times(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    const int *at = row->at;
    int64_t creation = 0, scheduled = 0, deletion = WEIR_SIM_UNKNOWN;
    int64_t max = WEIR_SIM_TIME_MAX / 1000;
    WEIR_TRY(csv_int(csv, at[CREATION_TIME], 0, max, 0, &creation, err));
    WEIR_TRY(csv_int(csv, at[SCHEDULED_TIME], 0, max, creation, &scheduled, err));
    WEIR_TRY(csv_int(csv, at[DELETION_TIME], 0, max, WEIR_SIM_UNKNOWN, &deletion, err));
    row->job->submit_ms = creation * 1000;
    if (deletion != WEIR_SIM_UNKNOWN) {
        if (deletion < scheduled) {
            return csv_refuse(csv, at[DELETION_TIME], "a time after scheduled_time", err);
        }
        row->job->duration_ms = (deletion - scheduled) * 1000;
    }
    return WEIR_OK;
}

static weir_status read_row(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    const int *at = row->at;
    struct weir_sim_job *job = row->job;
    int64_t num_gpu, gpu_milli, memory_mib;
    job->name = import_text(row, NAME);
    job->n_tasks = 1;
    WEIR_TRY(csv_int(csv, at[CPU_MILLI], 0, 1000000000, 0, &job->cpu_milli, err));
    WEIR_TRY(csv_int(csv, at[MEMORY_MIB], 0, 1000000000, 0, &memory_mib, err));
    WEIR_TRY(csv_int(csv, at[NUM_GPU], 0, 4096, 0, &num_gpu, err));
    WEIR_TRY(csv_int(csv, at[GPU_MILLI], 0, 1000, 0, &gpu_milli, err));
    if (num_gpu > 0 && gpu_milli == 0) {
        return csv_refuse(csv, at[GPU_MILLI], "1 to 1000 where num_gpu is not 0", err);
    }
    job->memory_bytes = memory_mib << 20;
    job->n_devices = (int32_t)num_gpu;
    job->device_milli = num_gpu > 0 ? (int32_t)gpu_milli : 1000;
    job->model = import_text(row, GPU_SPEC);
    job->queue = import_text(row, QOS);
    return read_times(row, err);
}

static const struct import_form form = {
    .columns = columns, .n_columns = N_COLUMNS, .n_needed = N_NEEDED, .read = read_row};

const struct weir_sim_format convert_alibaba = {
    "alibaba-2023", "openb_pod_list_*.csv of cluster-trace-gpu-v2023", .form = &form};
