/** Helios: cluster_log.csv with job_id, user, vc, gpu_num, cpu_num, node_num, submit_time,
 * duration. */
#include "sim/import.h"

struct columns {
    int job_id, user, vc, gpu_num, cpu_num, submit, duration;
};

static weir_status read_job(const struct csv *csv, const struct columns *columns,
                            struct weir_sim_trace *trace, struct weir_error *err)
{
    int64_t n_devices, n_cpus;
    struct weir_sim_job *job = trace_add(trace);
    if (job == NULL) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: too many jobs", csv->what);
    }
    const struct csv_field *fields = csv->fields;
    job->name = trace_text(trace, fields[columns->job_id].text, fields[columns->job_id].len);
    job->user = trace_text(trace, fields[columns->user].text, fields[columns->user].len);
    job->queue = trace_text(trace, fields[columns->vc].text, fields[columns->vc].len);
    WEIR_TRY(csv_int(csv, columns->gpu_num, 0, 1 << 20, 0, &n_devices, err));
    WEIR_TRY(csv_int(csv, columns->cpu_num, 0, 1 << 20, 0, &n_cpus, err));
    WEIR_TRY(csv_time(csv, columns->submit, &job->submit_ms, err));
    WEIR_TRY(csv_scaled(csv, columns->duration, 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                        &job->duration_ms, err));
    job->n_devices = (int32_t)n_devices;
    job->cpu_milli = n_cpus * 1000;
    if (n_devices == 0 && n_cpus == 0) {
        trace_leave_out(trace);
    }
    return WEIR_OK;
}

weir_status import_helios(const char *text, size_t len, const char *what,
                          struct weir_sim_trace *trace, struct weir_error *err)
{
    struct csv csv;
    struct columns columns;
    WEIR_TRY(csv_open(&csv, text, len, what, err));
    WEIR_TRY(csv_need(&csv, "job_id", &columns.job_id, err));
    WEIR_TRY(csv_need(&csv, "user", &columns.user, err));
    WEIR_TRY(csv_need(&csv, "vc", &columns.vc, err));
    WEIR_TRY(csv_need(&csv, "gpu_num", &columns.gpu_num, err));
    WEIR_TRY(csv_need(&csv, "cpu_num", &columns.cpu_num, err));
    WEIR_TRY(csv_need(&csv, "submit_time", &columns.submit, err));
    WEIR_TRY(csv_need(&csv, "duration", &columns.duration, err));
    for (;;) {
        bool has;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            return WEIR_OK;
        }
        WEIR_TRY(read_job(&csv, &columns, trace, err));
    }
}
