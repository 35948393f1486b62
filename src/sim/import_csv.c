/** Our own form: columns by name, in any order (docs/reference/simulator.md). */
#include "sim/import.h"

#include <string.h>

// clang-format off
enum column {
    NAME, SUBMIT, DURATION, ACCELERATORS, SHARE, TASKS, MIN_TASKS, CPU, MEMORY_GIB, MODEL, QUEUE, USER,
    PRIORITY, PREEMPTIBLE, BUSY_PCT, TIME_LIMIT, N_COLUMNS
};

static const char *const names[N_COLUMNS] = {
    "name", "submit", "duration", "accelerators", "share", "tasks", "min_tasks", "cpu", "memory_gib", "model",
    "queue", "user", "priority", "preemptible", "busy_pct", "time_limit",
};

// clang-format on

struct reader {
    struct csv csv;
    int at[N_COLUMNS];
    struct weir_sim_trace *trace;
};

static const char *text_at(const struct reader *reader, enum column column)
{
    if (csv_is_empty(&reader->csv, reader->at[column])) {
        return NULL;
    }
    const struct csv_field *field = &reader->csv.fields[reader->at[column]];
    return trace_text(reader->trace, field->text, field->len);
}

/** "0.5" is half a device, "2" two; "share" says how much of each. */
static weir_status read_devices(const struct reader *reader, struct weir_sim_job *job,
                                struct weir_error *err)
{
    const struct csv *csv = &reader->csv;
    int64_t milli, share;
    WEIR_TRY(csv_scaled(csv, reader->at[ACCELERATORS], 0, 1 << 20, 1000, 0, &milli, err));
    WEIR_TRY(csv_scaled(csv, reader->at[SHARE], 0.001, 1, 1000, 1000, &share, err));
    if (milli > 1000 && milli % 1000 != 0) {
        return csv_refuse(csv, reader->at[ACCELERATORS],
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

static weir_status read_preemptible(const struct reader *reader, struct weir_sim_job *job,
                                    struct weir_error *err)
{
    const char *text = text_at(reader, PREEMPTIBLE);
    if (text == NULL) {
        job->is_preemptible = job->priority < 100;
    } else if (strcmp(text, "yes") == 0 || strcmp(text, "true") == 0) {
        job->is_preemptible = true;
    } else if (strcmp(text, "no") == 0 || strcmp(text, "false") == 0) {
        job->is_preemptible = false;
    } else {
        return csv_refuse(&reader->csv, reader->at[PREEMPTIBLE], "yes or no", err);
    }
    return WEIR_OK;
}

static weir_status read_numbers(const struct reader *reader, struct weir_sim_job *job,
                                struct weir_error *err)
{
    const struct csv *csv = &reader->csv;
    const int *at = reader->at;
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

static weir_status read_job(const struct reader *reader, struct weir_error *err)
{
    struct weir_sim_job *job = trace_add(reader->trace);
    if (job == NULL) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: too many jobs", reader->csv.what);
    }
    job->name = text_at(reader, NAME);
    job->queue = text_at(reader, QUEUE);
    job->user = text_at(reader, USER);
    job->model = text_at(reader, MODEL);
    WEIR_TRY(csv_time(&reader->csv, reader->at[SUBMIT], &job->submit_ms, err));
    WEIR_TRY(read_devices(reader, job, err));
    WEIR_TRY(read_numbers(reader, job, err));
    WEIR_TRY(read_preemptible(reader, job, err));
    if (job->n_tasks == 0 && (job->n_devices == 0 || job->device_milli < 1000)) {
        job->n_tasks = 1;
    }
    if (job->n_devices == 0 && job->cpu_milli == 0 && job->memory_bytes == 0) {
        trace_leave_out(reader->trace);
    }
    return WEIR_OK;
}

/** A misspelt column would be a silent default: every column must be one we know. */
static weir_status find_columns(struct reader *reader, struct weir_error *err)
{
    const struct csv *csv = &reader->csv;
    for (int i = 0; i < csv->n_columns; i++) {
        bool is_known = false;
        for (int c = 0; c < N_COLUMNS; c++) {
            is_known =
                is_known || (strlen(names[c]) == csv->columns[i].len &&
                             memcmp(names[c], csv->columns[i].text, csv->columns[i].len) == 0);
        }
        if (!is_known) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s: line %lld, column %d: no column is called \"%.*s\"; the names "
                "are name, submit, duration, accelerators, share, tasks, min_tasks, "
                "cpu, memory_gib, model, queue, user, priority, preemptible, "
                "busy_pct, time_limit",
                csv->what, (long long)csv->line, i + 1, (int)WEIR_MIN(csv->columns[i].len, 40),
                csv->columns[i].text);
        }
    }
    for (int c = 0; c < N_COLUMNS; c++) {
        reader->at[c] = csv_column(csv, names[c]);
    }
    WEIR_TRY(csv_need(csv, "submit", &reader->at[SUBMIT], err));
    return WEIR_OK;
}

weir_status import_csv(const char *text, size_t len, const char *what, struct weir_sim_trace *trace,
                       struct weir_error *err)
{
    struct reader reader = {.trace = trace};
    WEIR_TRY(csv_open(&reader.csv, text, len, what, err));
    WEIR_TRY(find_columns(&reader, err));
    for (;;) {
        bool has;
        WEIR_TRY(csv_next(&reader.csv, &has, err));
        if (!has) {
            return WEIR_OK;
        }
        WEIR_TRY(read_job(&reader, err));
    }
}
