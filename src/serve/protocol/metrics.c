#include "serve/protocol/metrics.h"

#include <inttypes.h>
#include <stdio.h>

/** A counter of each version. */
struct metric {
    const char *name, *help;
    uint64_t (*value)(const struct batch_stats *stats);
};

// clang-format off
static uint64_t n_success(const struct batch_stats *s) { return s->success.n; }
static uint64_t n_failure(const struct batch_stats *s) { return s->failure.n; }
static uint64_t n_rows(const struct batch_stats *s) { return s->n_rows; }
static uint64_t n_batches(const struct batch_stats *s) { return s->n_batches; }
static uint64_t request_us(const struct batch_stats *s) { return (s->success.ns + s->failure.ns) / 1000; }
static uint64_t queue_us(const struct batch_stats *s) { return s->queue.ns / 1000; }
static uint64_t input_us(const struct batch_stats *s) { return s->input.ns / 1000; }
static uint64_t infer_us(const struct batch_stats *s) { return s->infer.ns / 1000; }
static uint64_t output_us(const struct batch_stats *s) { return s->output.ns / 1000; }
static uint64_t n_refused(const struct batch_stats *s) { return s->n_refused; }
static uint64_t n_expired(const struct batch_stats *s) { return s->n_expired; }
static uint64_t n_gone(const struct batch_stats *s) { return s->n_gone; }

static const struct metric metrics[] = {
    {"nv_inference_request_success", "Number of successful inference requests", n_success},
    {"nv_inference_request_failure", "Number of failed inference requests", n_failure},
    {"nv_inference_count", "Number of inferences performed, a batch counting its rows", n_rows},
    {"nv_inference_exec_count", "Number of model executions performed", n_batches},
    {"nv_inference_request_duration_us", "Cumulative time of inference requests in microseconds", request_us},
    {"nv_inference_queue_duration_us", "Cumulative time of requests in the queue in microseconds", queue_us},
    {"nv_inference_compute_input_duration_us", "Cumulative time of joining inputs in microseconds", input_us},
    {"nv_inference_compute_infer_duration_us", "Cumulative time of computing in microseconds", infer_us},
    {"nv_inference_compute_output_duration_us", "Cumulative time of splitting outputs in microseconds", output_us},
    {"weir_serve_refused_total", "Requests refused because the queue was full", n_refused},
    {"weir_serve_expired_total", "Requests whose time was over before they were computed", n_expired},
    {"weir_serve_gone_total", "Requests whose client left before they were computed", n_gone},
};

// clang-format on

/* {model="…",version="…" */
static void put_labels(struct weir_buf *out, const struct version_row *row)
{
    (void)weir_buf_puts(out, "{model=\"");
    for (const char *at = row->model; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            (void)weir_buf_append(out, "\\", 1);
        }
        if (*at == '\n') {
            (void)weir_buf_puts(out, "\\n");
        } else {
            (void)weir_buf_append(out, at, 1);
        }
    }
    (void)weir_buf_printf(out, "\",version=\"%" PRId64 "\"", row->number);
}

static void put_head(struct weir_buf *out, const char *name, const char *type, const char *help)
{
    (void)weir_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_latency(struct weir_buf *out, const struct version_row *row,
                        const struct batch_stats *stats)
{
    uint64_t n = 0;
    for (size_t i = 0; i < BATCH_LATENCY_BUCKETS; i++) {
        n += stats->latency_counts[i];
        (void)weir_buf_puts(out, "weir_serve_request_seconds_bucket");
        put_labels(out, row);
        if (i + 1 < BATCH_LATENCY_BUCKETS) {
            (void)weir_buf_printf(out, ",le=\"%g\"} %" PRIu64 "\n", batch_latency_bound_s(i), n);
        } else {
            (void)weir_buf_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n", n);
        }
    }
    (void)weir_buf_puts(out, "weir_serve_request_seconds_sum");
    put_labels(out, row);
    (void)weir_buf_printf(out, "} %.9f\n", (double)stats->success.ns / 1e9);
    (void)weir_buf_puts(out, "weir_serve_request_seconds_count");
    put_labels(out, row);
    (void)weir_buf_printf(out, "} %" PRIu64 "\n", stats->success.n);
}

/** A gauge of each version. */
static void put_gauges(struct weir_buf *out, const struct versions_view *view)
{
    put_head(out, "weir_serve_version_ready", "gauge", "Whether the version takes requests");
    for (size_t i = 0; i < view->n; i++) {
        (void)weir_buf_puts(out, "weir_serve_version_ready");
        put_labels(out, &view->rows[i]);
        (void)weir_buf_printf(out, "} %d\n", view->rows[i].version != NULL);
    }
    put_head(out, "weir_serve_waiting", "gauge", "Requests that wait or are computed");
    for (size_t i = 0; i < view->n; i++) {
        if (view->rows[i].version != NULL) {
            (void)weir_buf_puts(out, "weir_serve_waiting");
            put_labels(out, &view->rows[i]);
            (void)weir_buf_printf(out, "} %zu\n",
                                  batcher_n_waiting(view->rows[i].version->batcher));
        }
    }
    put_head(out, "weir_serve_memory_bytes", "gauge", "Memory that the version is counted with");
    for (size_t i = 0; i < view->n; i++) {
        if (view->rows[i].version != NULL) {
            (void)weir_buf_puts(out, "weir_serve_memory_bytes");
            put_labels(out, &view->rows[i]);
            (void)weir_buf_printf(out, "} %zu\n", view->rows[i].version->memory_bytes);
        }
    }
}

void metrics_write(const struct versions_view *view, struct weir_arena *arena, struct weir_buf *out)
{
    struct batch_stats *stats = WEIR_ARENA_ARRAY(arena, view->n + 1, struct batch_stats);
    for (size_t i = 0; i < view->n; i++) {
        if (view->rows[i].version != NULL) {
            batcher_stats(view->rows[i].version->batcher, &stats[i]);
        }
    }
    for (size_t k = 0; k < WEIR_ARRAY_LEN(metrics); k++) {
        put_head(out, metrics[k].name, "counter", metrics[k].help);
        for (size_t i = 0; i < view->n; i++) {
            if (view->rows[i].version != NULL) {
                (void)weir_buf_puts(out, metrics[k].name);
                put_labels(out, &view->rows[i]);
                (void)weir_buf_printf(out, "} %" PRIu64 "\n", metrics[k].value(&stats[i]));
            }
        }
    }
    put_head(out, "weir_serve_request_seconds", "histogram",
             "Time of successful requests, from submission to answer");
    for (size_t i = 0; i < view->n; i++) {
        if (view->rows[i].version != NULL) {
            put_latency(out, &view->rows[i], &stats[i]);
        }
    }
    put_gauges(out, view);
}
