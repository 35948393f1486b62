/** Our own form: columns by name, in any order (docs/reference/simulator.md). */
#include "sim/import.h"

#include <string.h>

// clang-format off
enum column {
    SUBMIT, N_NEEDED,
    NAME = N_NEEDED, DURATION, ACCELERATORS, SHARE, TASKS, MIN_TASKS, CPU, MEMORY_GIB, MODEL, QUEUE, USER,
    PRIORITY, PREEMPTIBLE, BUSY_PCT, TIME_LIMIT, AFTER, THINK, N_COLUMNS
};

static const char *const columns[N_COLUMNS] = {
    "submit",
    "name", "duration", "accelerators", "share", "tasks", "min_tasks", "cpu", "memory_gib", "model", "queue", "user",
    "priority", "preemptible", "busy_pct", "time_limit", "after", "think",
};

// clang-format on

/** "0.5" is half a device, "2" two; "share" says how much of each. */
static weir_status read_devices(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    struct weir_sim_job *job = row->job;
    int64_t milli, share;
    WEIR_TRY(csv_scaled(csv, row->at[ACCELERATORS], 0, 1 << 20, 1000, 0, &milli, err));
    WEIR_TRY(csv_scaled(csv, row->at[SHARE], 0.001, 1, 1000, 1000, &share, err));
    if (milli > 1000 && milli % 1000 != 0) {
        return csv_refuse(csv, row->at[ACCELERATORS],
                          "a share of one device, or whole devices (a column \"share\" says how "
                          "much of each)",
                          err);
    }
    if (milli > 0 && milli < 1000) {
        job->n_devices = 1;
        job->device_milli = (int32_t)milli;
    } else {
        job->n_devices = (int32_t)(milli / 1000);
        job->device_milli = (int32_t)share;
    }
    return WEIR_OK;
}

static weir_status read_preemptible(const struct import_row *row, struct weir_error *err)
{
    struct weir_sim_job *job = row->job;
    const char *text = import_text(row, PREEMPTIBLE);
    if (text == NULL) {
        job->is_preemptible = job->priority < 100;
    } else if (strcmp(text, "yes") == 0 || strcmp(text, "true") == 0) {
        job->is_preemptible = true;
    } else if (strcmp(text, "no") == 0 || strcmp(text, "false") == 0) {
        job->is_preemptible = false;
    } else {
        return csv_refuse(row->csv, row->at[PREEMPTIBLE], "yes or no", err);
    }
    return WEIR_OK;
}

static weir_status read_numbers(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    const int *at = row->at;
    struct weir_sim_job *job = row->job;
    int64_t n_tasks, min_tasks, priority, busy;
    WEIR_TRY(csv_scaled(csv, at[DURATION], 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                        &job->duration_ms, err));
    WEIR_TRY(csv_int(csv, at[TASKS], 1, 1 << 16, 0, &n_tasks, err));
    WEIR_TRY(csv_int(csv, at[MIN_TASKS], 1, 1 << 16, 0, &min_tasks, err));
    if (min_tasks > n_tasks) {
        return csv_refuse(csv, at[MIN_TASKS], "no more than tasks", err);
    }
    WEIR_TRY(csv_scaled(csv, at[CPU], 0, 1e9, 1000, 0, &job->cpu_milli, err));
    WEIR_TRY(csv_scaled(csv, at[MEMORY_GIB], 0, 1e9, 1073741824.0, 0, &job->memory_bytes, err));
    WEIR_TRY(csv_int(csv, at[PRIORITY], -1000000, 1000000, 50, &priority, err));
    WEIR_TRY(csv_int(csv, at[BUSY_PCT], 0, 100, 100, &busy, err));
    WEIR_TRY(
        csv_scaled(csv, at[TIME_LIMIT], 0, IMPORT_SECONDS_MAX, 1000, 0, &job->time_limit_ms, err));
    job->n_tasks = (int32_t)n_tasks;
    job->min_tasks = (int32_t)min_tasks;
    job->priority = (int32_t)priority;
    job->busy_pct = (int32_t)busy;
    return WEIR_OK;
}

/** A time, or a row above and how long after its end. */
static weir_status read_submission(const struct import_row *row, struct weir_error *err)
{
    const struct csv *csv = row->csv;
    struct weir_sim_job *job = row->job;
    const char *after = import_text(row, AFTER);
    WEIR_TRY(csv_scaled(csv, row->at[THINK], 0, IMPORT_SECONDS_MAX, 1000, 0, &job->think_ms, err));
    if (after == NULL && job->think_ms > 0) {
        return csv_refuse(csv, row->at[THINK], "nothing, as \"after\" names no job", err);
    }
    if (after == NULL || !csv_is_empty(csv, row->at[SUBMIT])) {
        WEIR_TRY(csv_time(csv, row->at[SUBMIT], &job->submit_ms, err));
    }
    if (after != NULL) {
        job->after = trace_find(after);
        if (job->after < 0) {
            return csv_refuse(csv, row->at[AFTER], "the name of a job in a row above", err);
        }
        int64_t earliest_ms = row->trace->jobs[job->after].submit_ms + job->think_ms;
        job->submit_ms = WEIR_MAX(job->submit_ms, earliest_ms);
        if (job->submit_ms > WEIR_SIM_TIME_MAX) {
            return csv_refuse(csv, row->at[THINK], "less: the trace is too long", err);
        }
    }
    return WEIR_OK;
}

static weir_status read_row(const struct import_row *row, struct weir_error *err)
{
    struct weir_sim_job *job = row->job;
    job->name = import_text(row, NAME);
    job->queue = import_text(row, QUEUE);
    job->user = import_text(row, USER);
    job->model = import_text(row, MODEL);
    WEIR_TRY(read_submission(row, err));
    WEIR_TRY(read_devices(row, err));
    WEIR_TRY(read_numbers(row, err));
    WEIR_TRY(read_preemptible(row, err));
    if (job->n_tasks == 0 && (job->n_devices == 0 || job->device_milli < 1000)) {
        job->n_tasks = 1;
    }
    if (job->n_devices == 0 && job->cpu_milli == 0 && job->memory_bytes == 0) {
        trace_leave_out(row->trace);
    } else if (job->name != NULL) {
        trace_remember(row->trace, job->name);
    }
    return WEIR_OK;
}

static const struct import_form form = {.columns = columns,
                                        .n_columns = N_COLUMNS,
                                        .n_needed = N_NEEDED,
                                        .is_closed = true,
                                        .read = read_row};

const struct weir_sim_format weir_sim_csv = {
    "csv", "columns by name: submit, duration, accelerators, …", .form = &form};
