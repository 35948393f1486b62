#include "sim/measure.h"

#include <stdlib.h>

#define MILLI_MS_PER_DEVICE_HOUR 3.6e9

/** Sizes of jobs, in thousandths of a device, both ends in. */
static const struct {
    const char *name;
    int64_t low, high;
} size_classes[] = {
    {"all", 0, INT64_MAX},           {"no accelerator", 0, 0},
    {"part of one", 1, 999},         {"1", 1000, 1000},
    {"2 to 3", 1001, 3999},          {"4 to 7", 4000, 7999},
    {"8 to 15", 8000, 15999},        {"16 and more", 16000, INT64_MAX},
    {"8 and more", 8000, INT64_MAX},
};

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double percentile(const double *sorted, int32_t n, double p)
{
    double at = p / 100 * (n - 1);
    int32_t below = (int32_t)at;
    double part = at - below;
    return below + 1 < n ? sorted[below] * (1 - part) + sorted[below + 1] * part : sorted[n - 1];
}

/** The spread of `n` values, which it sorts. Percentiles are interpolated. */
static struct weir_sim_spread spread_of(double *values, int32_t n)
{
    double sum = 0;
    if (n == 0) {
        return (struct weir_sim_spread){0};
    }
    for (int32_t i = 0; i < n; i++) {
        sum += values[i];
    }
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return (struct weir_sim_spread){.mean = sum / n,
                                    .p50 = percentile(values, n, 50),
                                    .p90 = percentile(values, n, 90),
                                    .p99 = percentile(values, n, 99),
                                    .max = values[n - 1]};
}

/** Which jobs are looked at: of a size, or of a queue. */
struct filter {
    int64_t low, high;
    int32_t queue; /**< -1: any. */
};

struct totals {
    int32_t n_jobs, n_finished, n_evictions;
    double asked;
    struct weir_sim_spread completion, to_start, waiting, slowdown;
};

/** Room for a figure of each job. */
struct room {
    double *completion, *to_start, *waiting, *slowdown;
};

/** From submission to its end, of its run time. Who is not at its end has that to come. */
static double slowdown_of(const struct timeline *timeline, int32_t index)
{
    const struct timeline_job *job = &timeline->jobs[index];
    int64_t duration_ms = timeline->trace->jobs[index].duration_ms;
    int64_t took_ms = job->state == TIMELINE_DONE
                          ? job->result.end_ms - job->submit_ms
                          : timeline->now_ms - job->submit_ms - job->result.ran_ms + duration_ms;
    return (double)took_ms / (double)duration_ms;
}

static struct totals total(const struct timeline *timeline, const struct filter *filter,
                           const struct room *room)
{
    struct totals totals = {0};
    int32_t n_slowdowns = 0;
    for (int32_t j = 0; j < timeline->trace->n_jobs; j++) {
        const struct timeline_job *job = &timeline->jobs[j];
        if (job->milli < filter->low || job->milli > filter->high ||
            (filter->queue >= 0 && job->queue != filter->queue)) {
            continue;
        }
        totals.n_jobs++;
        totals.n_evictions += job->result.n_evictions;
        totals.asked += (double)job->milli * (double)timeline->trace->jobs[j].duration_ms;
        if (job->state != TIMELINE_FUTURE && timeline->trace->jobs[j].duration_ms > 0) {
            room->slowdown[n_slowdowns++] = slowdown_of(timeline, j);
        }
        if (job->state == TIMELINE_DONE) {
            int64_t took_ms = job->result.end_ms - job->submit_ms;
            room->completion[totals.n_finished] = (double)took_ms / 1000;
            room->to_start[totals.n_finished] =
                (double)(job->result.first_start_ms - job->submit_ms) / 1000;
            room->waiting[totals.n_finished++] = (double)(took_ms - job->result.ran_ms) / 1000;
        }
    }
    totals.completion = spread_of(room->completion, totals.n_finished);
    totals.to_start = spread_of(room->to_start, totals.n_finished);
    totals.waiting = spread_of(room->waiting, totals.n_finished);
    totals.slowdown = spread_of(room->slowdown, n_slowdowns);
    return totals;
}

static void measure_classes(const struct timeline *timeline, struct weir_sim_report *report,
                            const struct room *room)
{
    report->classes =
        WEIR_ARENA_ARRAY(&report->arena, WEIR_ARRAY_LEN(size_classes), struct weir_sim_class);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(size_classes); i++) {
        struct filter filter = {size_classes[i].low, size_classes[i].high, -1};
        struct totals totals = total(timeline, &filter, room);
        if (totals.n_jobs > 0 || i == 0) {
            report->classes[report->n_classes++] = (struct weir_sim_class){
                .name = size_classes[i].name,
                .n_jobs = totals.n_jobs,
                .n_finished = totals.n_finished,
                .device_hours = totals.asked / MILLI_MS_PER_DEVICE_HOUR,
                .completion = totals.completion,
                .to_start = totals.to_start,
                .waiting = totals.waiting,
                .slowdown = totals.slowdown,
            };
        }
    }
}

static void measure_queues(const struct timeline *timeline, const struct weir_sched_queue *queues,
                           int32_t n_queues, struct weir_sim_report *report,
                           const struct room *room)
{
    double sum = 0, squares = 0;
    int32_t n = 0;
    report->queues = WEIR_ARENA_ARRAY(&report->arena, (size_t)n_queues, struct weir_sim_queue);
    report->n_queues = n_queues;
    for (int32_t q = 0; q < n_queues; q++) {
        const struct metrics_queue *metrics = &timeline->metrics.queues[q];
        struct filter filter = {0, INT64_MAX, q};
        struct totals totals = total(timeline, &filter, room);
        double served = metrics->entitled > 0 ? metrics->served / metrics->entitled : 1;
        report->queues[q] = (struct weir_sim_queue){
            .name = weir_arena_strdup(&report->arena, queues[q].name),
            .quota =
                metrics->quota_milli < 0 ? -1 : (double)metrics->quota_milli / WEIR_SCHED_DEVICE,
            .n_jobs = totals.n_jobs,
            .n_finished = totals.n_finished,
            .n_evictions = totals.n_evictions,
            .device_hours = metrics->held / MILLI_MS_PER_DEVICE_HOUR,
            .served = served,
            .guarantee_kept = metrics->guaranteed > 0 ? metrics->kept / metrics->guaranteed : 1,
            .longest_below_s = (double)metrics->longest_below_ms / 1000,
            .longest_unreclaimed_s = (double)metrics->longest_unreclaimed_ms / 1000,
            .completion = totals.completion,
            .waiting = totals.waiting,
        };
        if (metrics->entitled > 0) {
            sum += served;
            squares += served * served;
            n++;
        }
    }
    report->jain = squares > 0 ? sum * sum / (n * squares) : 1;
}

static void measure_samples(const struct metrics *metrics, struct weir_sim_report *report)
{
    for (int32_t i = 0; i < WEIR_SIM_SAMPLES && i * metrics->sample_ms < metrics->now_ms; i++) {
        const struct weir_sim_sample *sum = &metrics->samples[i];
        int64_t from_ms = i * metrics->sample_ms;
        double span = (double)WEIR_MIN(metrics->sample_ms, metrics->now_ms - from_ms);
        report->samples[report->n_samples++] = (struct weir_sim_sample){
            .from_ms = from_ms,
            .allocated = sum->allocated / span / WEIR_SCHED_DEVICE,
            .running = sum->running / span,
            .waiting = sum->waiting / span,
            .waiting_devices = sum->waiting_devices / span / WEIR_SCHED_DEVICE,
        };
    }
}

static double part_pct(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void measure_whole(const struct timeline *timeline, struct weir_sim_report *report)
{
    const struct metrics *metrics = &timeline->metrics;
    double capacity = (double)metrics->capacity_milli;
    report->n_jobs = timeline->trace->n_jobs;
    report->n_submitted = timeline->n_submitted;
    report->n_finished = timeline->n_done;
    report->n_cut = timeline->n_cut;
    report->n_running = metrics->n_running;
    report->n_never = report->n_submitted - report->n_finished - report->n_running;
    report->n_devices = capacity / WEIR_SCHED_DEVICE;
    report->span_ms = metrics->now_ms;
    report->arrivals_ms = metrics->arrivals_ms;
    report->allocation_pct =
        part_pct(metrics->held_until_arrivals, capacity * (double)metrics->arrivals_ms);
    report->allocation_all_pct = part_pct(metrics->held, capacity * (double)metrics->now_ms);
    report->utilisation_pct =
        part_pct(metrics->busy - timeline->wasted_busy, capacity * (double)metrics->now_ms);
    report->n_evictions = timeline->n_evictions;
    report->lost_device_hours = timeline->lost / MILLI_MS_PER_DEVICE_HOUR;
    report->overhead_device_hours = timeline->overhead / MILLI_MS_PER_DEVICE_HOUR;
    report->held_device_hours = metrics->held / MILLI_MS_PER_DEVICE_HOUR;
}

void measure(const struct timeline *timeline, const struct weir_sched_queue *queues,
             int32_t n_queues, struct weir_sim_report *report)
{
    size_t n = (size_t)timeline->trace->n_jobs;
    struct room room = {.completion = WEIR_ARENA_ARRAY(timeline->arena, n, double),
                        .to_start = WEIR_ARENA_ARRAY(timeline->arena, n, double),
                        .waiting = WEIR_ARENA_ARRAY(timeline->arena, n, double),
                        .slowdown = WEIR_ARENA_ARRAY(timeline->arena, n, double)};
    report->jobs = WEIR_ARENA_ARRAY(&report->arena, n, struct weir_sim_job_result);
    for (size_t j = 0; j < n; j++) {
        report->jobs[j] = timeline->jobs[j].result;
    }
    measure_whole(timeline, report);
    measure_classes(timeline, report, &room);
    measure_queues(timeline, queues, n_queues, report, &room);
    measure_samples(&timeline->metrics, report);
}
