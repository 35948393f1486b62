/** Alibaba cluster-trace-gpu-v2023: a pod per line; the multigpu lists end after gpu_milli. */
#include "sim/import.h"

#include <string.h>

struct columns {
    int name, cpu, memory, num_gpu, gpu_milli, gpu_spec, qos, creation, deletion, scheduled;
};

static weir_status find_columns(const struct csv *csv, struct columns *out, struct weir_error *err)
{
    WEIR_TRY(csv_need(csv, "name", &out->name, err));
    WEIR_TRY(csv_need(csv, "cpu_milli", &out->cpu, err));
    WEIR_TRY(csv_need(csv, "memory_mib", &out->memory, err));
    WEIR_TRY(csv_need(csv, "num_gpu", &out->num_gpu, err));
    WEIR_TRY(csv_need(csv, "gpu_milli", &out->gpu_milli, err));
    out->gpu_spec = csv_column(csv, "gpu_spec");
    out->qos = csv_column(csv, "qos");
    out->creation = csv_column(csv, "creation_time");
    out->deletion = csv_column(csv, "deletion_time");
    out->scheduled = csv_column(csv, "scheduled_time");
    return WEIR_OK;
}

/** From when to when it ran: from being scheduled, else from being made. */
static weir_status read_times(const struct csv *csv, const struct columns *columns,
                              struct weir_sim_job *job, struct weir_error *err)
{
    int64_t creation = 0, scheduled = 0, deletion = WEIR_SIM_UNKNOWN;
    int64_t max = WEIR_SIM_TIME_MAX / 1000;
    WEIR_TRY(csv_int(csv, columns->creation, 0, max, 0, &creation, err));
    WEIR_TRY(csv_int(csv, columns->scheduled, 0, max, creation, &scheduled, err));
    WEIR_TRY(csv_int(csv, columns->deletion, 0, max, WEIR_SIM_UNKNOWN, &deletion, err));
    job->submit_ms = creation * 1000;
    if (deletion != WEIR_SIM_UNKNOWN) {
        if (deletion < scheduled) {
            return csv_refuse(csv, columns->deletion, "a time after scheduled_time", err);
        }
        job->duration_ms = (deletion - scheduled) * 1000;
    }
    return WEIR_OK;
}

static weir_status read_job(const struct csv *csv, const struct columns *columns,
                            struct weir_sim_trace *trace, struct weir_error *err)
{
    int64_t num_gpu, gpu_milli, memory_mib;
    struct weir_sim_job *job = trace_add(trace);
    if (job == NULL) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: too many jobs", csv->what);
    }
    const struct csv_field *name = &csv->fields[columns->name];
    job->name = trace_text(trace, name->text, name->len);
    job->n_tasks = 1;
    WEIR_TRY(csv_int(csv, columns->cpu, 0, 1000000000, 0, &job->cpu_milli, err));
    WEIR_TRY(csv_int(csv, columns->memory, 0, 1000000000, 0, &memory_mib, err));
    WEIR_TRY(csv_int(csv, columns->num_gpu, 0, 4096, 0, &num_gpu, err));
    WEIR_TRY(csv_int(csv, columns->gpu_milli, 0, 1000, 0, &gpu_milli, err));
    if (num_gpu > 0 && gpu_milli == 0) {
        return csv_refuse(csv, columns->gpu_milli, "1 to 1000 where num_gpu is not 0", err);
    }
    job->memory_bytes = memory_mib << 20;
    job->n_devices = (int32_t)num_gpu;
    job->device_milli = num_gpu > 0 ? (int32_t)gpu_milli : 1000;
    if (!csv_is_empty(csv, columns->gpu_spec)) {
        const struct csv_field *spec = &csv->fields[columns->gpu_spec];
        job->model = trace_text(trace, spec->text, spec->len);
    }
    if (!csv_is_empty(csv, columns->qos)) {
        const struct csv_field *qos = &csv->fields[columns->qos];
        job->queue = trace_text(trace, qos->text, qos->len);
    }
    return read_times(csv, columns, job, err);
}

weir_status import_alibaba(const char *text, size_t len, const char *what,
                           struct weir_sim_trace *trace, struct weir_error *err)
{
    struct csv csv;
    struct columns columns;
    WEIR_TRY(csv_open(&csv, text, len, what, err));
    WEIR_TRY(find_columns(&csv, &columns, err));
    for (;;) {
        bool has;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            return WEIR_OK;
        }
        WEIR_TRY(read_job(&csv, &columns, trace, err));
    }
}
