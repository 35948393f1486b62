/**
 * Pollux's workloads: name,time,application,num_replicas,batch_size. They give no run times, which
 * depend on throughput profiles; a column "duration" (seconds with num_replicas) may be added.
 */
#include "sim/import.h"

weir_status import_pollux(const char *text, size_t len, const char *what,
                          struct weir_sim_trace *trace, struct weir_error *err)
{
    struct csv csv;
    int name, time, application, num_replicas;
    WEIR_TRY(csv_open(&csv, text, len, what, err));
    WEIR_TRY(csv_need(&csv, "name", &name, err));
    WEIR_TRY(csv_need(&csv, "time", &time, err));
    WEIR_TRY(csv_need(&csv, "application", &application, err));
    WEIR_TRY(csv_need(&csv, "num_replicas", &num_replicas, err));
    int duration = csv_column(&csv, "duration");
    for (;;) {
        bool has;
        int64_t n_replicas;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            return WEIR_OK;
        }
        struct weir_sim_job *job = trace_add(trace);
        if (job == NULL) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s: too many jobs", what);
        }
        job->name = trace_text(trace, csv.fields[name].text, csv.fields[name].len);
        job->queue = trace_text(trace, csv.fields[application].text, csv.fields[application].len);
        WEIR_TRY(csv_time(&csv, time, &job->submit_ms, err));
        WEIR_TRY(csv_int(&csv, num_replicas, 1, 4096, 1, &n_replicas, err));
        WEIR_TRY(csv_scaled(&csv, duration, 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                            &job->duration_ms, err));
        job->n_tasks = (int32_t)n_replicas;
        job->n_devices = 1;
    }
}
