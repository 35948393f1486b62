#include "trace_convert/formats.h"

#include <errno.h>
#include <inttypes.h>

static void put_text(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; text != NULL && *text != '\0'; text++) {
        (void)fputs(*text == '"' ? "\"\"" : (const char[]){*text, '\0'}, file);
    }
    (void)fputs("\",", file);
}

/** Milliseconds as seconds; nothing where they are not known. */
static void put_seconds(FILE *file, int64_t ms)
{
    if (ms >= 0) {
        (void)fprintf(file, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    }
    (void)fputc(',', file);
}

/** As often as not a whole number: of tasks or limits that are not stated nothing. */
static void put_count(FILE *file, int64_t count)
{
    if (count > 0) {
        (void)fprintf(file, "%" PRId64, count);
    }
    (void)fputc(',', file);
}

static void put_job(FILE *file, const struct weir_sim_job *job)
{
    put_text(file, job->name);
    put_text(file, job->queue);
    put_text(file, job->user);
    put_text(file, job->model);
    put_seconds(file, job->submit_ms);
    put_seconds(file, job->duration_ms);
    (void)fprintf(file, "%d,", job->n_devices);
    (void)fprintf(file, "%.3f,", (double)job->device_milli / 1000);
    put_count(file, job->n_tasks);
    put_count(file, job->min_tasks);
    (void)fprintf(file, "%.3f,", (double)job->cpu_milli / 1000);
    (void)fprintf(file, "%.12f,", (double)job->memory_bytes / 1073741824.0);
    put_count(file, job->time_limit_ms / 1000);
    (void)fprintf(file, "%d,%d,%s\n", job->priority, job->busy_pct,
                  job->is_preemptible ? "yes" : "no");
}

weir_status convert_write(const struct weir_sim_trace *trace, FILE *file, struct weir_error *err)
{
    (void)fputs("name,queue,user,model,submit,duration,accelerators,share,tasks,min_tasks,cpu,"
                "memory_gib,time_limit,priority,busy_pct,preemptible\n",
                file);
    for (int32_t i = 0; i < trace->n_jobs; i++) {
        put_job(file, &trace->jobs[i]);
    }
    return fflush(file) == 0 && !ferror(file)
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "cannot write the trace");
}
