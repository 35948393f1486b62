/** A fuzz target of an importer: any bytes give a trace in order, or an error with a sentence. */
#ifndef WEIR_SIM_IMPORT_FUZZ_H
#define WEIR_SIM_IMPORT_FUZZ_H

#include "sim/trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int import_fuzz(const struct weir_sim_format *format, const uint8_t *data,
                              size_t size)
{
    struct weir_error err = {0};
    struct weir_sim_trace trace = {0};
    if (weir_sim_trace_parse((const char *)data, size, "fuzz", format, &trace, &err) != WEIR_OK) {
        if (err.message[0] == '\0' || trace.jobs != NULL) {
            abort();
        }
        return 0;
    }
    for (int32_t i = 0; i < trace.n_jobs; i++) {
        const struct weir_sim_job *job = &trace.jobs[i];
        if (job->name == NULL || job->queue == NULL || job->n_devices < 0 || job->cpu_milli < 0 ||
            job->memory_bytes < 0 || job->device_milli < 1 || job->device_milli > 1000 ||
            job->duration_ms < WEIR_SIM_UNKNOWN || job->min_tasks > job->n_tasks ||
            (i > 0 && job->submit_ms < trace.jobs[i - 1].submit_ms)) {
            abort();
        }
    }
    weir_sim_trace_fini(&trace);
    return 0;
}

#endif
