/** Philly, reduced: timestamp,duration,num_gpus,gpu_time,cluster; "cluster" is the virtual one. */
#include "sim/import.h"

weir_status import_philly_csv(const char *text, size_t len, const char *what,
                              struct weir_sim_trace *trace, struct weir_error *err)
{
    struct csv csv;
    int timestamp, duration, num_gpus, cluster;
    WEIR_TRY(csv_open(&csv, text, len, what, err));
    WEIR_TRY(csv_need(&csv, "timestamp", &timestamp, err));
    WEIR_TRY(csv_need(&csv, "duration", &duration, err));
    WEIR_TRY(csv_need(&csv, "num_gpus", &num_gpus, err));
    WEIR_TRY(csv_need(&csv, "cluster", &cluster, err));
    for (;;) {
        bool has;
        int64_t n_devices;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            return WEIR_OK;
        }
        struct weir_sim_job *job = trace_add(trace);
        if (job == NULL) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s: too many jobs", what);
        }
        WEIR_TRY(csv_time(&csv, timestamp, &job->submit_ms, err));
        WEIR_TRY(csv_scaled(&csv, duration, 0, IMPORT_SECONDS_MAX, 1000, WEIR_SIM_UNKNOWN,
                            &job->duration_ms, err));
        WEIR_TRY(csv_int(&csv, num_gpus, 0, 1 << 20, 0, &n_devices, err));
        job->n_devices = (int32_t)n_devices;
        job->queue = trace_text(trace, csv.fields[cluster].text, csv.fields[cluster].len);
        if (n_devices == 0) {
            trace_leave_out(trace);
        }
    }
}
