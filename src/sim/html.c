/** The page of a report. */
#include "sim/plot.h"
#include "sim/report.h"

#include <stdlib.h>

#define N_QUANTILES 200

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<style>\n"
    ":root{--bg:#fbfaf7;--card:#fff;--ink:#20242a;--soft:#646b75;--line:#e2ded6;--c0:#1f6f8b;"
    "--c1:#c2571a;--c2:#5b7f2b;--mark:#a33b4b}\n"
    "@media (prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2026;--ink:#e6e8ea;"
    "--soft:#9aa3ad;--line:#323840;--c0:#5fb3d1;--c1:#f0955c;--c2:#a3c56b;--mark:#e27b8a}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:16px/1.45 system-ui,sans-serif}main{max-width:1080px;margin:0 auto;padding:1.5rem 1rem "
    "3rem}\n"
    "h1{font-size:1.5rem;margin:0 0 .25rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem "
    "0 .5rem}"
    "p{margin:.25rem 0;color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(2,1fr);gap:.75rem;"
    "margin:1.25rem 0}@media "
    "(min-width:700px){.tiles{grid-template-columns:repeat(4,1fr)}}.tile{background:var(--card);"
    "border:1px solid var(--line);border-radius:"
    "8px;padding:.6rem .8rem}.tile b{display:block;font-size:1.35rem;font-variant-numeric:"
    "tabular-nums}.tile span{color:var(--soft);font-size:.85rem}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:"
    "1rem}"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:.8rem}figcaption{font-size:.9rem;margin-bottom:.9rem}.about{color:var(--soft)}"
    ".legend{display:flex;flex-wrap:wrap;gap:0 1rem;color:var(--soft);font-size:.85rem}"
    ".legend i{display:inline-block;width:.8rem;height:.25rem;margin-right:.35rem;"
    "vertical-align:middle}\n"
    ".plot{position:relative;padding:0 .6rem 1.6rem 3.4rem}svg{display:block;width:100%;height:"
    "13rem;overflow:visible}path{fill:none;stroke-width:1.5;vector-effect:non-scaling-stroke}"
    ".grid{stroke:var(--line);stroke-width:1}.mark{stroke:var(--mark);stroke-dasharray:5 4}"
    ".c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.filled.c0{fill:var(--c0);"
    "fill-opacity:.18}.k0{background:var(--c0)}.k1{background:var(--c1)}.k2{background:var(--c2)}"
    ".kmark{background:var(--mark)}\n"
    ".x span,.y span{position:absolute;font-size:.75rem;color:var(--soft);white-space:nowrap;"
    "font-variant-numeric:tabular-nums}.y{position:absolute;left:0;top:0;width:3rem;height:13rem}"
    ".y span{right:0;transform:translateY(-50%)}.x{position:relative;height:0}.x span{top:.35rem;"
    "transform:translateX(-50%)}.x span:first-child{transform:none}\n"
    ".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:"
    "8px}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{padding:.4rem .7rem;"
    "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;border-bottom:1px solid "
    "var(--line)}tr:last-child td{border-bottom:0}th:first-child,td:first-child{text-align:left}"
    "th{color:var(--soft);font-weight:600}\n</style>\n";

static void tile(const char *name, const char *value, struct weir_buf *out)
{
    (void)weir_buf_printf(out, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value, name);
}

static void print_tiles(const struct weir_sim_report *report, struct weir_buf *out)
{
    char text[64], span[WEIR_SIM_SPAN_BYTES];
    (void)weir_buf_puts(out, "<div class=\"tiles\">\n");
    (void)snprintf(text, sizeof text, "%.1f %%", report->allocation_pct);
    tile("allocated until the last submission", text, out);
    (void)snprintf(text, sizeof text, "%.1f %%", report->utilisation_pct);
    tile("used, to the last event", text, out);
    tile("mean completion", weir_sim_span_text(report->classes[0].completion.mean, span), out);
    tile("mean waiting", weir_sim_span_text(report->classes[0].waiting.mean, span), out);
    tile("longest waiting", weir_sim_span_text(report->classes[0].waiting.max, span), out);
    (void)snprintf(text, sizeof text, "%.3f", report->jain);
    tile("fairness (Jain)", text, out);
    (void)snprintf(text, sizeof text, "%lld", (long long)report->n_evictions);
    tile("evictions", text, out);
    (void)snprintf(text, sizeof text, "%.0f h", report->lost_device_hours);
    tile("device time lost", text, out);
    (void)weir_buf_puts(out, "</div>\n");
}

static void print_curves(const struct weir_sim_report *report, struct weir_arena *arena,
                         struct weir_buf *out)
{
    size_t n = (size_t)report->n_samples;
    double *x = WEIR_ARENA_ARRAY(arena, n, double), *held = WEIR_ARENA_ARRAY(arena, n, double),
           *wanted = WEIR_ARENA_ARRAY(arena, n, double),
           *waiting = WEIR_ARENA_ARRAY(arena, n, double),
           *running = WEIR_ARENA_ARRAY(arena, n, double), max_wanted = 0, max_jobs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_sim_sample *sample = &report->samples[i];
        x[i] = (double)sample->from_ms / 1000;
        held[i] = sample->allocated;
        wanted[i] = sample->waiting_devices;
        waiting[i] = sample->waiting;
        running[i] = sample->running;
        max_wanted = WEIR_MAX(max_wanted, wanted[i]);
        max_jobs = WEIR_MAX(max_jobs, WEIR_MAX(waiting[i], running[i]));
    }
    double x_max = (double)report->span_ms / 1000;
    struct plot_curve allocated[] = {{"allocated", x, held, n, true, true}};
    struct plot_curve backlog[] = {{"asked for by jobs that wait", x, wanted, n, true, true}};
    struct plot_curve jobs[] = {{"running", x, running, n, true, false},
                                {"waiting", x, waiting, n, true, false}};
    plot_print(&(struct plot){.title = "Accelerators allocated",
                              .about = "over time",
                              .y_unit = "",
                              .x_max = x_max,
                              .y_max = report->n_devices,
                              .mark = report->n_devices,
                              .mark_name = "the cluster",
                              .curves = allocated,
                              .n_curves = 1},
               out);
    plot_print(&(struct plot){.title = "Jobs",
                              .about = "over time",
                              .y_unit = "",
                              .x_max = x_max,
                              .y_max = max_jobs,
                              .curves = jobs,
                              .n_curves = 2},
               out);
    plot_print(&(struct plot){.title = "Accelerators missing",
                              .about = "over time",
                              .y_unit = "",
                              .x_max = x_max,
                              .y_max = max_wanted,
                              .curves = backlog,
                              .n_curves = 1},
               out);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/** Which part of the jobs took at most so long. */
static void print_distribution(const struct weir_sim_report *report, const double *completion,
                               const double *waiting, size_t n, struct weir_arena *arena,
                               struct weir_buf *out)
{
    double *pct = WEIR_ARENA_ARRAY(arena, N_QUANTILES + 1, double),
           *x_completion = WEIR_ARENA_ARRAY(arena, N_QUANTILES + 1, double),
           *x_waiting = WEIR_ARENA_ARRAY(arena, N_QUANTILES + 1, double);
    for (size_t i = 0; n > 0 && i <= N_QUANTILES; i++) {
        size_t at = WEIR_MIN(n - 1, n * i / N_QUANTILES);
        pct[i] = 100.0 * (double)i / N_QUANTILES;
        x_completion[i] = completion[at];
        x_waiting[i] = waiting[at];
    }
    struct plot_curve curves[] = {
        {"completion", x_completion, pct, n > 0 ? N_QUANTILES + 1 : 0, false, false},
        {"waiting", x_waiting, pct, n > 0 ? N_QUANTILES + 1 : 0, false, false}};
    plot_print(&(struct plot){.title = "Jobs done",
                              .about = "within a time",
                              .y_unit = " %",
                              .x_max = WEIR_MAX(report->classes[0].completion.max, 60),
                              .y_max = 100,
                              .is_log_x = true,
                              .curves = curves,
                              .n_curves = 2},
               out);
}

static void print_times(const struct weir_sim_report *report, struct weir_arena *arena,
                        struct weir_buf *out)
{
    double *completion = WEIR_ARENA_ARRAY(arena, (size_t)report->n_jobs, double),
           *waiting = WEIR_ARENA_ARRAY(arena, (size_t)report->n_jobs, double);
    size_t n = 0;
    for (int32_t j = 0; j < report->n_jobs; j++) {
        const struct weir_sim_job_result *job = &report->jobs[j];
        if (job->end_ms != WEIR_SIM_UNKNOWN) {
            completion[n] = (double)(job->end_ms - job->submit_ms) / 1000;
            waiting[n++] = (double)(job->end_ms - job->submit_ms - job->ran_ms) / 1000;
        }
    }
    qsort(completion, n, sizeof *completion, compare_doubles);
    qsort(waiting, n, sizeof *waiting, compare_doubles);
    print_distribution(report, completion, waiting, n, arena, out);
}

static void spread_cells(const struct weir_sim_spread *spread, struct weir_buf *out)
{
    const double values[] = {spread->mean, spread->p50, spread->p90, spread->p99, spread->max};
    char text[WEIR_SIM_SPAN_BYTES];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        (void)weir_buf_printf(out, "<td>%s</td>", weir_sim_span_text(values[i], text));
    }
}

static void print_classes(const struct weir_sim_report *report, bool is_waiting,
                          struct weir_buf *out)
{
    (void)weir_buf_printf(
        out,
        "<h2>%s by size</h2><div class=\"scroll\"><table><tr><th>Accelerators</th>"
        "<th>Jobs</th><th>Finished</th><th>Mean</th><th>p50</th><th>p90</th>"
        "<th>p99</th><th>Max</th></tr>\n",
        is_waiting ? "Waiting" : "Completion");
    for (int32_t i = 0; i < report->n_classes; i++) {
        const struct weir_sim_class *class = &report->classes[i];
        (void)weir_buf_printf(out, "<tr><td>%s</td><td>%d</td><td>%d</td>", class->name,
                              class->n_jobs, class->n_finished);
        spread_cells(is_waiting ? &class->waiting : &class->completion, out);
        (void)weir_buf_puts(out, "</tr>\n");
    }
    (void)weir_buf_puts(out, "</table></div>\n");
}

static void print_queues(const struct weir_sim_report *report, struct weir_buf *out)
{
    char text[3][WEIR_SIM_SPAN_BYTES];
    (void)weir_buf_puts(out, "<h2>Queues</h2><div class=\"scroll\"><table><tr><th>Queue</th>"
                             "<th>Quota</th><th>Jobs</th><th>Served</th><th>Guarantee kept</th>"
                             "<th>Longest below it</th><th>Mean completion</th><th>Mean waiting"
                             "</th><th>Evictions</th></tr>\n");
    for (int32_t i = 0; i < report->n_queues; i++) {
        const struct weir_sim_queue *queue = &report->queues[i];
        if (queue->n_jobs == 0) {
            continue;
        }
        (void)weir_buf_puts(out, "<tr><td>");
        plot_escape(queue->name, out);
        (void)weir_buf_printf(
            out, queue->quota < 0 ? "</td><td>unlimited</td>" : "</td><td>%g</td>", queue->quota);
        (void)weir_buf_printf(out,
                              "<td>%d</td><td>%.1f %%</td><td>%.2f "
                              "%%</td><td>%s</td><td>%s</td><td>%s</td><td>%d</td>"
                              "</tr>\n",
                              queue->n_jobs, 100 * queue->served, 100 * queue->guarantee_kept,
                              weir_sim_span_text(queue->longest_below_s, text[0]),
                              weir_sim_span_text(queue->completion.mean, text[1]),
                              weir_sim_span_text(queue->waiting.mean, text[2]), queue->n_evictions);
    }
    (void)weir_buf_puts(out,
                        "</table></div>\n"
                        "<p>Served: held, of the fair share or what was asked for if that is "
                        "less. Longest below: with a job waiting that fits into the quota.</p>\n");
}

void weir_sim_report_html(const struct weir_sim_report *report, const char *title,
                          struct weir_buf *out)
{
    struct weir_arena arena;
    char span[WEIR_SIM_SPAN_BYTES];
    weir_arena_init(&arena, (size_t)1 << 30);
    (void)weir_buf_puts(out, page_head);
    (void)weir_buf_puts(out, "<title>");
    plot_escape(title, out);
    (void)weir_buf_puts(out, "</title></head><body><main>\n<h1>");
    plot_escape(title, out);
    (void)weir_buf_puts(out, "</h1>\n<p>Profile ");
    plot_escape(report->profile, out);
    (void)weir_buf_printf(out, ", %d nodes, %g accelerators, %d jobs, %d finished in %s.</p>\n",
                          report->n_nodes, report->n_devices, report->n_jobs, report->n_finished,
                          weir_sim_span_text((double)report->span_ms / 1000, span));
    if (report->n_never > 0) {
        (void)weir_buf_printf(out, "<p>%d never ran. ", report->n_never);
        plot_escape(report->never_reason != NULL ? report->never_reason : "", out);
        (void)weir_buf_puts(out, "</p>\n");
    }
    print_tiles(report, out);
    (void)weir_buf_puts(out, "<div class=\"plots\">\n");
    print_curves(report, &arena, out);
    print_times(report, &arena, out);
    (void)weir_buf_puts(out, "</div>\n");
    print_classes(report, false, out);
    print_classes(report, true, out);
    print_queues(report, out);
    (void)weir_buf_puts(out, "</main></body></html>\n");
    weir_arena_fini(&arena);
}
