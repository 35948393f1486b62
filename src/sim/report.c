#include "sim/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *checked(json_t *value)
{
    if (value == NULL) {
        (void)fprintf(stderr, "weir: out of memory while writing a report\n");
        abort();
    }
    return value;
}

static json_t *spread_json(const struct weir_sim_spread *spread)
{
    return checked(json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", spread->mean, "p50", spread->p50,
                             "p90", spread->p90, "p99", spread->p99, "max", spread->max));
}

static json_t *classes_json(const struct weir_sim_report *report)
{
    json_t *list = checked(json_array());
    for (int32_t i = 0; i < report->n_classes; i++) {
        const struct weir_sim_class *class = &report->classes[i];
        (void)json_array_append_new(
            list, checked(json_pack(
                      "{s:s, s:i, s:i, s:f, s:o, s:o, s:o, s:o}", "accelerators", class->name,
                      "jobs", class->n_jobs, "finished", class->n_finished, "device_hours",
                      class->device_hours, "completion_s", spread_json(&class->completion),
                      "first_start_s", spread_json(&class->to_start), "waiting_s",
                      spread_json(&class->waiting), "slowdown", spread_json(&class->slowdown))));
    }
    return list;
}

static json_t *queues_json(const struct weir_sim_report *report)
{
    json_t *list = checked(json_array());
    for (int32_t i = 0; i < report->n_queues; i++) {
        const struct weir_sim_queue *queue = &report->queues[i];
        (void)json_array_append_new(
            list, checked(json_pack(
                      "{s:s, s:f, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "queue",
                      queue->name, "quota", queue->quota, "jobs", queue->n_jobs, "finished",
                      queue->n_finished, "evictions", queue->n_evictions, "device_hours",
                      queue->device_hours, "served", queue->served, "guarantee_kept",
                      queue->guarantee_kept, "longest_below_guarantee_s", queue->longest_below_s,
                      "longest_unreclaimed_s", queue->longest_unreclaimed_s, "completion_s",
                      spread_json(&queue->completion), "waiting_s", spread_json(&queue->waiting))));
    }
    return list;
}

static json_t *samples_json(const struct weir_sim_report *report)
{
    json_t *list = checked(json_array());
    for (int32_t i = 0; i < report->n_samples; i++) {
        const struct weir_sim_sample *sample = &report->samples[i];
        (void)json_array_append_new(
            list,
            checked(json_pack("{s:f, s:f, s:f, s:f, s:f}", "from_s", (double)sample->from_ms / 1000,
                              "allocated", sample->allocated, "running_jobs", sample->running,
                              "waiting_jobs", sample->waiting, "waiting_accelerators",
                              sample->waiting_devices)));
    }
    return list;
}

json_t *weir_sim_report_json(const struct weir_sim_report *report)
{
    json_t *value = checked(json_pack(
        "{s:s, s:i, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f, "
        "s:f, s:f, "
        "s:I, "
        "s:I}",
        "profile", report->profile, "nodes", report->n_nodes, "accelerators", report->n_devices,
        "jobs", report->n_jobs, "submitted", report->n_submitted, "finished", report->n_finished,
        "cut", report->n_cut, "running", report->n_running, "never_ran", report->n_never, "span_s",
        (double)report->span_ms / 1000, "arrivals_s", (double)report->arrivals_ms / 1000,
        "allocation_pct", report->allocation_pct, "allocation_all_pct", report->allocation_all_pct,
        "utilisation_pct", report->utilisation_pct, "jain", report->jain, "evictions",
        (json_int_t)report->n_evictions, "held_device_hours", report->held_device_hours,
        "lost_device_hours", report->lost_device_hours, "overhead_device_hours",
        report->overhead_device_hours, "cycles", (json_int_t)report->n_cycles, "decisions",
        (json_int_t)report->n_decisions));
    if (report->never_reason != NULL) {
        (void)json_object_set_new(value, "never_reason",
                                  checked(json_string(report->never_reason)));
    }
    if (report->cycle_max_ms > 0) {
        (void)json_object_set_new(
            value, "cycle_ms",
            checked(json_pack("{s:f, s:f, s:f}", "mean", report->cycle_mean_ms, "p99",
                              report->cycle_p99_ms, "max", report->cycle_max_ms)));
    }
    (void)json_object_set_new(value, "sizes", classes_json(report));
    (void)json_object_set_new(value, "queues", queues_json(report));
    (void)json_object_set_new(value, "samples", samples_json(report));
    return value;
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *weir_sim_span_text(double seconds, char out[WEIR_SIM_SPAN_BYTES])
{
    static const struct {
        double below, unit;
        const char *name;
    } units[] = {{1, 0.001, "ms"},
                 {60, 1, "s"},
                 {3600, 60, "min"},
                 {172800, 3600, "h"},
                 {HUGE_VAL, 86400, "d"}};

    size_t i = 0;
    while (seconds >= units[i].below && i + 1 < WEIR_ARRAY_LEN(units)) {
        i++;
    }
    if (seconds == 0) {
        (void)snprintf(out, WEIR_SIM_SPAN_BYTES, "0");
    } else {
        double value = seconds / units[i].unit;
        (void)snprintf(out, WEIR_SIM_SPAN_BYTES, value < 99.95 ? "%.3g %s" : "%.0f %s", value,
                       units[i].name);
    }
    return out;
}

static void ratios_text(const struct weir_sim_spread *spread, struct weir_buf *out)
{
    const double values[] = {spread->mean, spread->p50, spread->p90, spread->p99, spread->max};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        (void)weir_buf_printf(out, values[i] < 99.95 ? "%9.3g" : "%9.0f", values[i]);
    }
    (void)weir_buf_puts(out, "\n");
}

static void spread_text(const struct weir_sim_spread *spread, struct weir_buf *out)
{
    const double values[] = {spread->mean, spread->p50, spread->p90, spread->p99, spread->max};
    char text[WEIR_SIM_SPAN_BYTES];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        (void)weir_buf_printf(out, "%9s", weir_sim_span_text(values[i], text));
    }
    (void)weir_buf_puts(out, "\n");
}

static void classes_text(const struct weir_sim_report *report, struct weir_buf *out)
{
    (void)weir_buf_printf(out, "\n%-16s%8s %-12s%9s%9s%9s%9s%9s\n", "ACCELERATORS", "JOBS", "",
                          "MEAN", "P50", "P90", "P99", "MAX");
    for (int32_t i = 0; i < report->n_classes; i++) {
        const struct weir_sim_class *class = &report->classes[i];
        (void)weir_buf_printf(out, "%-16s%8d %-12s", class->name, class->n_jobs, "completion");
        spread_text(&class->completion, out);
        (void)weir_buf_printf(out, "%-16s%8s %-12s", "", "", "first start");
        spread_text(&class->to_start, out);
        (void)weir_buf_printf(out, "%-16s%8s %-12s", "", "", "waiting");
        spread_text(&class->waiting, out);
        (void)weir_buf_printf(out, "%-16s%8s %-12s", "", "", "slowdown");
        ratios_text(&class->slowdown, out);
    }
}

static void queues_text(const struct weir_sim_report *report, struct weir_buf *out)
{
    (void)weir_buf_printf(out, "\n%-20s%7s%8s%8s%11s%12s%11s%11s%8s\n", "QUEUE", "QUOTA", "JOBS",
                          "SERVED", "GUARANTEE", "LONGEST", "MEAN", "MEAN", "EVICT-");
    (void)weir_buf_printf(out, "%-20s%7s%8s%8s%11s%12s%11s%11s%8s\n", "", "", "", "", "KEPT",
                          "BELOW IT", "COMPLETION", "WAITING", "IONS");
    for (int32_t i = 0; i < report->n_queues; i++) {
        const struct weir_sim_queue *queue = &report->queues[i];
        char below[WEIR_SIM_SPAN_BYTES], completion[WEIR_SIM_SPAN_BYTES],
            waiting[WEIR_SIM_SPAN_BYTES], quota[24] = "-";
        if (queue->n_jobs == 0) {
            continue;
        }
        if (queue->quota >= 0) {
            (void)snprintf(quota, sizeof quota, "%g", queue->quota);
        }
        (void)weir_buf_printf(out, "%-20.20s%7s%8d%7.1f%%%10.2f%%%12s%11s%11s%8d\n", queue->name,
                              quota, queue->n_jobs, 100 * queue->served,
                              100 * queue->guarantee_kept,
                              weir_sim_span_text(queue->longest_below_s, below),
                              weir_sim_span_text(queue->completion.mean, completion),
                              weir_sim_span_text(queue->waiting.mean, waiting), queue->n_evictions);
    }
}

void weir_sim_report_text(const struct weir_sim_report *report, struct weir_buf *out)
{
    char span[WEIR_SIM_SPAN_BYTES];
    (void)weir_buf_printf(out, "profile          %s\n", report->profile);
    (void)weir_buf_printf(out, "cluster          %d nodes, %g accelerators\n", report->n_nodes,
                          report->n_devices);
    (void)weir_buf_printf(out, "jobs             %d, %d finished in %s\n", report->n_jobs,
                          report->n_finished,
                          weir_sim_span_text((double)report->span_ms / 1000, span));
    if (report->n_cut > 0) {
        (void)weir_buf_printf(out, "ended by limit   %d\n", report->n_cut);
    }
    if (report->n_running > 0) {
        (void)weir_buf_printf(out, "running          %d at the end\n", report->n_running);
    }
    if (report->n_submitted < report->n_jobs) {
        (void)weir_buf_printf(out, "not submitted    %d\n", report->n_jobs - report->n_submitted);
    }
    if (report->n_never > 0) {
        (void)weir_buf_printf(out, "never ran        %d%s%s\n", report->n_never,
                              report->never_reason != NULL ? "; the first: " : "",
                              report->never_reason != NULL ? report->never_reason : "");
    }
    (void)weir_buf_printf(out,
                          "allocation       %.2f %% until the last submission, %.2f %% in all\n",
                          report->allocation_pct, report->allocation_all_pct);
    (void)weir_buf_printf(out, "utilisation      %.2f %%\n", report->utilisation_pct);
    (void)weir_buf_printf(out, "fairness         %.4f (Jain's index over queues)\n", report->jain);
    (void)weir_buf_printf(out, "evictions        %lld; %.1f device hours lost, %.1f for restarts\n",
                          (long long)report->n_evictions, report->lost_device_hours,
                          report->overhead_device_hours);
    if (report->n_cycles > 0) {
        (void)weir_buf_printf(out, "cycles           %lld", (long long)report->n_cycles);
        if (report->cycle_max_ms > 0) {
            (void)weir_buf_printf(out, "; %.2f ms each, p99 %.2f ms, longest %.1f ms",
                                  report->cycle_mean_ms, report->cycle_p99_ms,
                                  report->cycle_max_ms);
        }
        (void)weir_buf_puts(out, "\n");
    }
    classes_text(report, out);
    queues_text(report, out);
}
