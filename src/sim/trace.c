#include "sim/trace.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/hash.h"
#include "sim/import.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX  ((size_t)4 << 30)
#define ARENA_BYTES_MAX ((size_t)8 << 30)
#define N_BUCKETS       4096

struct trace_text_entry {
    struct trace_text_entry *next;
    size_t len;
    int32_t job; /**< -1: none is remembered. */
    char text[];
};

struct trace_texts {
    struct trace_text_entry *buckets[N_BUCKETS];
};

const char *trace_text(struct weir_sim_trace *trace, const char *text, size_t len)
{
    if (len == 0) {
        return NULL;
    }
    uint64_t hash = weir_hash_bytes(WEIR_HASH_BEGIN, text, len);
    struct trace_text_entry **bucket = &trace->texts->buckets[(hash ^ hash >> 32) % N_BUCKETS];
    for (struct trace_text_entry *entry = *bucket; entry != NULL; entry = entry->next) {
        if (entry->len == len && memcmp(entry->text, text, len) == 0) {
            return entry->text;
        }
    }
    struct trace_text_entry *entry = weir_arena_alloc(&trace->arena, sizeof *entry + len + 1);
    entry->next = *bucket;
    entry->len = len;
    entry->job = -1;
    for (size_t i = 0; i < len; i++) {
        /* A NUL would cut the text short, and what is later shown must not steer a terminal. */
        entry->text[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    }
    *bucket = entry;
    return entry->text;
}

weir_status trace_add(struct weir_sim_trace *trace, const char *what, struct weir_sim_job **out,
                      struct weir_error *err)
{
    if (trace->n_jobs == WEIR_SIM_JOBS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: too many jobs", what);
    }
    weir_xgrow(&trace->jobs, sizeof *trace->jobs, (size_t)trace->n_jobs, &trace->jobs_cap);
    struct weir_sim_job *job = &trace->jobs[trace->n_jobs++];
    *job = (struct weir_sim_job){.duration_ms = WEIR_SIM_UNKNOWN,
                                 .after = -1,
                                 .device_milli = 1000,
                                 .priority = 50,
                                 .busy_pct = 100,
                                 .is_preemptible = true};
    *out = job;
    return WEIR_OK;
}

void trace_leave_out(struct weir_sim_trace *trace)
{
    trace->n_jobs--;
    trace->n_left_out++;
}

static struct trace_text_entry *entry_of(const char *text)
{
    return (struct trace_text_entry *)(text - offsetof(struct trace_text_entry, text));
}

void trace_remember(struct weir_sim_trace *trace, const char *text)
{
    entry_of(text)->job = trace->n_jobs - 1;
}

int32_t trace_find(const char *text)
{
    return entry_of(text)->job;
}

static bool is_digits(const char *text, const char *form)
{
    for (; *form != '\0'; text++, form++) {
        bool is_digit = *text >= '0' && *text <= '9';
        if (*form == '0'   ? !is_digit
            : *form == 'T' ? *text != 'T' && *text != ' '
                           : *text != *form) {
            return false;
        }
    }
    return true;
}

bool trace_time_parse(const char *text, size_t len, int64_t *out_ms)
{
    static const char form[] = "0000-00-00T00:00:00";
    char copy[48];
    size_t body = sizeof form - 1;
    if (len < body || len + 2 > sizeof copy || !is_digits(text, form)) {
        return false;
    }
    memcpy(copy, text, len);
    copy[10] = 'T';
    copy[len] = '\0';
    if (strpbrk(copy + body, "Z+-") == NULL) {
        copy[len] = 'Z';
        copy[len + 1] = '\0';
    }
    return weir_time_parse(copy, out_ms) == WEIR_OK && *out_ms >= 0 && *out_ms < WEIR_SIM_TIME_MAX;
}

static int compare_jobs(const void *left, const void *right)
{
    const struct weir_sim_job *a = left, *b = right;
    if (a->submit_ms != b->submit_ms) {
        return a->submit_ms < b->submit_ms ? -1 : 1;
    }
    return (a->file_order > b->file_order) - (a->file_order < b->file_order);
}

/** Whom a job follows was counted in the order of the file. */
static void renumber(struct weir_sim_trace *trace)
{
    int32_t *now = weir_xalloc((size_t)trace->n_jobs * sizeof *now);
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        now[trace->jobs[j].file_order] = j;
    }
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        struct weir_sim_job *job = &trace->jobs[j];
        job->after = job->after >= 0 ? now[job->after] : -1;
    }
    free(now);
}

/** Names and queues where the trace has none; order by time. */
static void complete(struct weir_sim_trace *trace)
{
    const char *queue = trace_text(trace, "default", strlen("default"));
    for (int32_t i = 0; i < trace->n_jobs; i++) {
        struct weir_sim_job *job = &trace->jobs[i];
        if (job->name == NULL) {
            job->name = weir_arena_printf(&trace->arena, "job-%d", i);
        }
        if (job->queue == NULL) {
            job->queue = queue;
        }
        job->file_order = i;
    }
    if (trace->n_jobs > 0) {
        qsort(trace->jobs, (size_t)trace->n_jobs, sizeof *trace->jobs, compare_jobs);
        renumber(trace);
    }
}

weir_status weir_sim_trace_parse(const char *text, size_t len, const char *what,
                                 const struct weir_sim_format *format, struct weir_sim_trace *out,
                                 struct weir_error *err)
{
    struct weir_sim_trace trace = {0};
    weir_arena_init(&trace.arena, ARENA_BYTES_MAX);
    trace.texts = WEIR_ARENA_NEW(&trace.arena, struct trace_texts);
    weir_status status = format->form != NULL
                             ? import_rows(format->form, text, len, what, &trace, err)
                             : format->import(text, len, what, &trace, err);
    if (status != WEIR_OK) {
        weir_sim_trace_fini(&trace);
        return status;
    }
    complete(&trace);
    trace.texts = NULL;
    *out = trace;
    return WEIR_OK;
}

weir_status weir_sim_trace_load(const char *path, const struct weir_sim_format *format,
                                struct weir_sim_trace *out, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    char *text;
    size_t len;
    weir_arena_init(&arena, FILE_BYTES_MAX + ((size_t)1 << 20));
    WEIR_TRY(weir_file_read(path, FILE_BYTES_MAX, &arena, &text, &len, err));
    return weir_sim_trace_parse(text, len, path, format, out, err);
}

void weir_sim_trace_fini(struct weir_sim_trace *trace)
{
    if (trace != NULL) {
        free(trace->jobs);
        weir_arena_fini(&trace->arena);
        *trace = (struct weir_sim_trace){0};
    }
}
