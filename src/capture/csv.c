#include "capture/csv.h"

#include "base/clock.h"
#include "base/grow.h"
#include "ion/decision.h"
#include "ion/ion_step.h"
#include "ion/kpi.h"
#include "ion/statistic.h"
#include "store/event.h"
#include "track/track.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define HOUR_MS       ((int64_t)3600000)
#define CSV_LOOK_ROWS 256

/** A field, quoted if it must be. */
static void put_text(struct weir_buf *buf, const char *text)
{
    if (text == NULL) {
        return;
    }
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)weir_buf_puts(buf, text);
        return;
    }
    (void)weir_buf_puts(buf, "\"");
    for (const char *rest = text; *rest != '\0';) {
        size_t len = strcspn(rest, "\"");
        (void)weir_buf_append(buf, rest, len);
        rest += len;
        if (*rest == '"') {
            (void)weir_buf_puts(buf, "\"\"");
            rest++;
        }
    }
    (void)weir_buf_puts(buf, "\"");
}

static void put_time(struct weir_buf *buf, int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms > 0) {
        weir_time_format(time_ms, text);
        (void)weir_buf_puts(buf, text);
    }
}

static void put_number(struct weir_buf *buf, double value)
{
    if (isfinite(value)) {
        (void)weir_buf_printf(buf, "%.17g", value);
    }
}

void csv_files_init(struct csv_files *files, struct weir_arena *arena)
{
    *files = (struct csv_files){.arena = arena};
    weir_buf_init(&files->events, CSV_FILES_MAX_BYTES);
    weir_buf_init(&files->aggregates, CSV_FILES_MAX_BYTES);
    weir_buf_init(&files->kpis, CSV_FILES_MAX_BYTES);
    (void)weir_buf_puts(&files->kpis, "time,name,value,unit\r\n");
    (void)weir_buf_puts(&files->events, "time,host,eventId,event,eventType,seq,raiseAlert,"
                                        "createdTime,clearedTime,deletedTime\r\n");
    (void)weir_buf_puts(&files->aggregates, "time,pipeline,n,grant,deny,unknown,error,label,"
                                            "latency_mean_us,latency_max_us\r\n");
}

void csv_files_fini(struct csv_files *files)
{
    for (size_t i = 0; i < files->n_pipelines; i++) {
        weir_buf_fini(&files->pipelines[i].stats);
    }
    weir_buf_fini(&files->events);
    weir_buf_fini(&files->aggregates);
    weir_buf_fini(&files->kpis);
}

static struct csv_pipeline *pipeline_of(struct csv_files *files, const char *name)
{
    for (size_t i = 0; i < files->n_pipelines; i++) {
        if (strcmp(files->pipelines[i].name, name) == 0) {
            return &files->pipelines[i];
        }
    }
    if (files->n_pipelines == CSV_PIPELINES_MAX || !weir_name_is_valid(name)) {
        return NULL; /* its name becomes a file's */
    }
    struct csv_pipeline *pipeline = &files->pipelines[files->n_pipelines++];
    *pipeline = (struct csv_pipeline){.name = weir_arena_strdup(files->arena, name)};
    weir_buf_init(&pipeline->stats, CSV_FILES_MAX_BYTES);
    (void)weir_buf_puts(&pipeline->stats, "time,source,name,step,value,statistic,p_value,drifted,"
                                          "n_samples,model_version\r\n");
    return pipeline;
}

/* ---- events and alerts ----------------------------------------------------------------------- */

static void add_event(struct csv_files *files, const void *record)
{
    const struct weir_event *event = record;
    struct weir_buf *buf = &files->events;
    put_time(buf, event->time_ms);
    (void)weir_buf_printf(buf, ",,%" PRId64 ",", event->seq);
    put_text(buf, event->message);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, event->kind);
    (void)weir_buf_printf(buf, ",%" PRId64 ",false,", event->seq);
    put_time(buf, event->time_ms);
    (void)weir_buf_puts(buf, ",,\r\n");
}

static void add_alert(struct csv_files *files, const void *record)
{
    const struct weir_alert *alert = record;
    struct weir_buf *buf = &files->events;
    put_time(buf, alert->raised_ms);
    (void)weir_buf_puts(buf, ",,");
    put_text(buf, alert->id);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, alert->message);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, alert->kind);
    (void)weir_buf_puts(buf, ",,true,");
    put_time(buf, alert->raised_ms);
    (void)weir_buf_puts(buf, ",");
    put_time(buf, alert->resolved_ms);
    (void)weir_buf_puts(buf, ",\r\n");
}

/* ---- business figures ------------------------------------------------------------------------ */

static void add_kpi(struct csv_files *files, const void *record)
{
    const struct weir_kpi *kpi = record;
    struct weir_buf *buf = &files->kpis;
    put_time(buf, kpi->time_ms);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, kpi->name);
    (void)weir_buf_puts(buf, ",");
    put_number(buf, kpi->value);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, kpi->unit);
    (void)weir_buf_puts(buf, "\r\n");
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void add_run(struct csv_files *files, const void *record)
{
    const struct weir_run *run = record;
    struct csv_pipeline *pipeline =
        run->pipeline != NULL ? pipeline_of(files, run->pipeline) : NULL;
    if (pipeline == NULL) {
        return;
    }
    weir_arena_grow(files->arena, &files->runs, sizeof *files->runs, files->n_runs,
                    &files->cap_runs);
    files->runs[files->n_runs++] =
        (struct csv_run){.id = weir_arena_strdup(files->arena, run->id),
                         .i_pipeline = (size_t)(pipeline - files->pipelines)};
}

/* Those of a run come one behind the other, in the order of the runs. */
static const struct csv_run *run_of(struct csv_files *files, const char *id)
{
    for (size_t i = 0; i < files->n_runs; i++) {
        size_t at = (files->i_run + i) % files->n_runs;
        if (strcmp(files->runs[at].id, id) == 0) {
            files->i_run = at;
            return &files->runs[at];
        }
    }
    return NULL;
}

static void add_metric(struct csv_files *files, const void *record)
{
    const struct weir_metric *metric = record;
    const struct csv_run *run = run_of(files, metric->run);
    if (run == NULL) {
        return;
    }
    struct weir_buf *buf = &files->pipelines[run->i_pipeline].stats;
    put_time(buf, metric->time_ms);
    (void)weir_buf_printf(buf, ",%s,", metric->run);
    put_text(buf, metric->key);
    (void)weir_buf_printf(buf, ",%" PRId64 ",", metric->step);
    put_number(buf, metric->value);
    (void)weir_buf_puts(buf, ",,,,,\r\n");
}

static void add_report(struct csv_files *files, const void *record)
{
    const struct weir_health_report *report = record;
    struct csv_pipeline *pipeline = pipeline_of(files, report->pipeline);
    if (pipeline == NULL) {
        return;
    }
    struct weir_buf *buf = &pipeline->stats;
    put_time(buf, report->time_ms);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, report->replica);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, report->signal);
    (void)weir_buf_puts(buf, ",,");
    put_number(buf, report->value);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, report->statistic);
    (void)weir_buf_puts(buf, ",");
    put_number(buf, report->p_value);
    (void)weir_buf_printf(buf, ",%s,%" PRId64 ",%" PRId64 "\r\n",
                          report->drifted ? "true" : "false", report->n_samples,
                          report->model_version);
}

/* What a pipeline's own code told; of no pipeline: it stands in rows/statistics.jsonl alone. */
static void add_statistic(struct csv_files *files, const void *record)
{
    const struct weir_statistic *statistic = record;
    struct csv_pipeline *pipeline =
        statistic->pipeline != NULL ? pipeline_of(files, statistic->pipeline) : NULL;
    if (pipeline == NULL) {
        return;
    }
    struct weir_buf *buf = &pipeline->stats;
    put_time(buf, statistic->time_ms);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, statistic->job);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, statistic->name);
    (void)weir_buf_puts(buf, ",,");
    put_text(buf, statistic->value);
    (void)weir_buf_puts(buf, ",");
    put_text(buf, statistic->kind);
    (void)weir_buf_printf(buf, ",,,,%" PRId64 "\r\n", statistic->model_version);
}

/* ---- decisions by hour ----------------------------------------------------------------------- */

static void end_hour(struct csv_files *files, struct csv_pipeline *pipeline)
{
    struct weir_buf *buf = &files->aggregates;
    const struct csv_hour *hour = &pipeline->hour;
    if (hour->n > 0) {
        put_time(buf, hour->hour_ms);
        (void)weir_buf_puts(buf, ",");
        put_text(buf, pipeline->name);
        (void)weir_buf_printf(buf,
                              ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                              ",%" PRId64 ",%.1f,%" PRId64 "\r\n",
                              hour->n, hour->n_grant, hour->n_deny, hour->n_unknown, hour->n_error,
                              hour->n_label, (double)hour->latency_sum_us / (double)hour->n,
                              hour->latency_max_us);
    }
    pipeline->hour = (struct csv_hour){0};
}

static void add_decision(struct csv_files *files, const void *record)
{
    const struct weir_decision *decision = record;
    struct csv_pipeline *pipeline = pipeline_of(files, decision->pipeline);
    int64_t hour_ms = decision->time_ms / HOUR_MS * HOUR_MS;
    if (pipeline == NULL) {
        return;
    }
    if (pipeline->hour.hour_ms != hour_ms) {
        end_hour(files, pipeline);
        pipeline->hour.hour_ms = hour_ms;
    }
    struct csv_hour *hour = &pipeline->hour;
    hour->n++;
    hour->n_grant += strcmp(decision->verdict, "grant") == 0;
    hour->n_deny += strcmp(decision->verdict, "deny") == 0;
    hour->n_unknown += strcmp(decision->verdict, "unknown") == 0;
    hour->n_error += strcmp(decision->verdict, "error") == 0;
    hour->n_label += strcmp(decision->verdict, "label") == 0;
    hour->latency_sum_us += decision->latency_us;
    hour->latency_max_us = WEIR_MAX(hour->latency_max_us, decision->latency_us);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Looked at now and then: a row is short against all. */
static bool is_too_much(struct csv_files *files)
{
    size_t n_bytes = files->events.len + files->aggregates.len + files->kpis.len;
    if (++files->n_added % CSV_LOOK_ROWS != 0) {
        return false;
    }
    for (size_t i = 0; i < files->n_pipelines; i++) {
        n_bytes += files->pipelines[i].stats.len;
    }
    return n_bytes > CSV_FILES_MAX_BYTES;
}

/* Each has its file, also an empty one. */
static void add_pipeline(struct csv_files *files, const void *record)
{
    (void)pipeline_of(files, ((const struct weir_ion_pipeline *)record)->name);
}

static const struct {
    const struct weir_noun *table;
    void (*add)(struct csv_files *files, const void *record);
} adders[] = {
    {&weir_noun_event, add_event},
    {&weir_noun_alert, add_alert},
    {&weir_noun_run, add_run},
    {&weir_noun_metric, add_metric},
    {&weir_noun_health_report, add_report},
    {&weir_noun_statistic, add_statistic},
    {&weir_noun_kpi, add_kpi},
    {&weir_noun_decision, add_decision},
    {&weir_noun_ion_pipeline, add_pipeline},
};

void csv_files_add(struct csv_files *files, const struct weir_noun *table, const void *record)
{
    files->is_full = files->is_full || is_too_much(files);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(adders) && !files->is_full; i++) {
        if (adders[i].table == table) {
            adders[i].add(files, record);
        }
    }
}

weir_status csv_files_end(struct csv_files *files, struct weir_error *err)
{
    weir_status status = files->is_full ? WEIR_ERR_LIMIT : files->events.status;
    for (size_t i = 0; i < files->n_pipelines; i++) {
        end_hour(files, &files->pipelines[i]);
        status = status == WEIR_OK ? files->pipelines[i].stats.status : status;
    }
    status = status == WEIR_OK ? files->aggregates.status : status;
    status = status == WEIR_OK ? files->kpis.status : status;
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(
                     err, status,
                     "the tables of the snapshot are larger than %zu MB: take a shorter span",
                     CSV_FILES_MAX_BYTES >> 20);
}
