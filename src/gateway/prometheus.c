/* The figures in the text format of Prometheus (version 0.0.4). */
#include "gateway/figures_private.h"

#include <inttypes.h>

/* A histogram's edges are powers of two in microseconds, where the figures' own edges are. */
#define FIRST_EDGE_LOG2 7  /* 128 us */
#define LAST_EDGE_LOG2  26 /* 67 s */

static void put_label(struct weir_buf *out, const char *name, const char *value)
{
    (void)weir_buf_printf(out, "%s=\"", name);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            (void)weir_buf_printf(out, "\\%c", *c);
        } else if (*c == '\n') {
            (void)weir_buf_puts(out, "\\n");
        } else {
            (void)weir_buf_append(out, c, 1);
        }
    }
    (void)weir_buf_puts(out, "\"");
}

/* deployment="…",project="…",version="…" without the braces */
static void put_labels(struct weir_buf *out, const struct figures *figures, const char *noun)
{
    put_label(out, noun, figures->deployment);
    (void)weir_buf_puts(out, ",");
    put_label(out, "project", figures->project);
    (void)weir_buf_printf(out, ",version=\"%" PRId64 "\"", figures->version);
}

static void family(struct weir_buf *out, const char *name, const char *type, const char *help)
{
    (void)weir_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(struct weir_buf *out, const char *name, const char *noun,
                   const struct figures *figures, int64_t value)
{
    (void)weir_buf_printf(out, "%s{", name);
    put_labels(out, figures, noun);
    (void)weir_buf_printf(out, "} %" PRId64 "\n", value);
}

static int64_t get(const atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void put_histogram(struct weir_buf *out, const char *name, const struct figures *figures)
{
    int64_t n = 0;
    int bucket = 0;
    for (int edge = FIRST_EDGE_LOG2; edge <= LAST_EDGE_LOG2; edge++) {
        for (; bucket < FIGURES_BUCKETS && figures_bucket_end(bucket) <= (int64_t)1 << edge;
             bucket++) {
            n += get(&figures->buckets[bucket]);
        }
        (void)weir_buf_printf(out, "%s_bucket{", name);
        put_labels(out, figures, "deployment");
        (void)weir_buf_printf(out, ",le=\"%.6f\"} %" PRId64 "\n",
                              (double)((int64_t)1 << edge) / 1e6, n);
    }
    for (; bucket < FIGURES_BUCKETS; bucket++) {
        n += get(&figures->buckets[bucket]);
    }
    (void)weir_buf_printf(out, "%s_bucket{", name);
    put_labels(out, figures, "deployment");
    (void)weir_buf_printf(out, ",le=\"+Inf\"} %" PRId64 "\n%s_sum{", n, name);
    put_labels(out, figures, "deployment");
    (void)weir_buf_printf(out, "} %.6f\n%s_count{", (double)get(&figures->sum_us) / 1e6, name);
    put_labels(out, figures, "deployment");
    (void)weir_buf_printf(out, "} %" PRId64 "\n", n);
}

static void put_own(struct weir_buf *out, const struct figures *head)
{
#define X(field, name, help)                                                                       \
    family(out, name, "counter", help);                                                            \
    for (const struct figures *f = head; f != NULL; f = f->next) {                                 \
        sample(out, name, "deployment", f, get(&f->field));                                        \
    }
#include "gateway/figures.def"
#undef X
    family(out, "weir_deployment_in_flight", "gauge", "Requests at replicas now");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        sample(out, "weir_deployment_in_flight", "deployment", f, get(&f->n_in_flight));
    }
    family(out, "weir_deployment_held", "gauge", "Requests that wait for a replica now");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        sample(out, "weir_deployment_held", "deployment", f, get(&f->n_held));
    }
    family(out, "weir_deployment_duration_seconds", "histogram",
           "Time from a request to its answer, at the server");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        put_histogram(out, "weir_deployment_duration_seconds", f);
    }
}

/* Triton's names, as its clients' dashboards have them (docs of Triton, metrics.md). */
static void put_triton(struct weir_buf *out, const struct figures *head)
{
    family(out, "nv_inference_request_success", "counter",
           "Number of successful inference requests");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        int64_t n_failed = get(&f->n_failed);
        sample(out, "nv_inference_request_success", "model", f, get(&f->n_requests) - n_failed);
    }
    family(out, "nv_inference_request_failure", "counter", "Number of failed inference requests");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        sample(out, "nv_inference_request_failure", "model", f, get(&f->n_failed));
    }
    family(out, "nv_inference_request_duration_us", "counter",
           "Cumulative inference request duration in microseconds");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        sample(out, "nv_inference_request_duration_us", "model", f, get(&f->sum_us));
    }
    family(out, "nv_inference_pending_request_count", "gauge",
           "Instantaneous number of pending requests");
    for (const struct figures *f = head; f != NULL; f = f->next) {
        sample(out, "nv_inference_pending_request_count", "model", f,
               get(&f->n_in_flight) + get(&f->n_held));
    }
}

void figures_prometheus(struct figures_registry *registry, struct weir_buf *out)
{
    pthread_mutex_lock(&registry->lock);
    if (registry->head != NULL) {
        put_own(out, registry->head);
        put_triton(out, registry->head);
    }
    pthread_mutex_unlock(&registry->lock);
}
