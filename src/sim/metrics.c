#include "sim/metrics.h"

#define FIRST_SAMPLE_MS 60000

void metrics_init(struct metrics *metrics, struct weir_arena *arena, int32_t n_queues,
                  int32_t n_jobs, int64_t capacity_milli)
{
    *metrics = (struct metrics){
        .n_queues = n_queues, .capacity_milli = capacity_milli, .sample_ms = FIRST_SAMPLE_MS};
    metrics->queues = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, struct metrics_queue);
    metrics->jobs = WEIR_ARENA_ARRAY(arena, (size_t)n_jobs, struct metrics_job);
    metrics->want = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, double);
    metrics->share = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, double);
}

/** What is guaranteed of a want. */
static double guaranteed(const struct metrics_queue *queue, double want)
{
    return queue->quota_milli == WEIR_SCHED_UNLIMITED ? want
                                                      : WEIR_MIN((double)queue->quota_milli, want);
}

/** Work out fair shares of what queues ask for: `share` of `want`, both per queue. */
static void divide(const struct metrics *metrics, const double *want, double *share)
{
    double left = (double)metrics->capacity_milli;
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        share[q] = guaranteed(&metrics->queues[q], want[q]);
        left -= share[q];
    }
    for (int32_t round = 0; round < metrics->n_queues && left > 0.5; round++) {
        double weights = 0, given = 0;
        for (int32_t q = 0; q < metrics->n_queues; q++) {
            weights += want[q] > share[q] ? (double)metrics->queues[q].weight : 0;
        }
        for (int32_t q = 0; q < metrics->n_queues && weights > 0; q++) {
            if (want[q] > share[q]) {
                double part = left * (double)metrics->queues[q].weight / weights;
                part = WEIR_MIN(part, want[q] - share[q]);
                share[q] += part;
                given += part;
            }
        }
        left -= given;
        if (given < 0.5) {
            break;
        }
    }
}

/* ---- who waits below a guarantee --------------------------------------------------------------
 */

/** The smallest size that holds `milli`; METRICS_SIZES or more: not watched. */
static int64_t size_of(int64_t milli)
{
    return milli <= 900 ? (milli + 99) / 100 : 9 + (milli + 999) / 1000;
}

/** Devices of the largest job of a size. */
static int64_t size_milli(int32_t size)
{
    return size < 10 ? (int64_t)size * 100 : (int64_t)(size - 9) * 1000;
}

/** Whoever waits the longest for room that is there. */
static void count_wait(const struct metrics *metrics, struct metrics_queue *queue,
                       const struct metrics_size *size)
{
    if (size->first >= 0 && size->room_since_ms >= 0) {
        int64_t since_ms = WEIR_MAX(size->room_since_ms, metrics->jobs[size->first].since_ms);
        queue->longest_below_ms = WEIR_MAX(queue->longest_below_ms, metrics->now_ms - since_ms);
    }
}

/** What is left of the quota has changed. Size 0 asks for no device and has no guarantee. */
static void watch_room(struct metrics *metrics, struct metrics_queue *queue)
{
    int64_t room = queue->quota_milli - queue->held_milli;
    for (int32_t s = 1; s < METRICS_SIZES; s++) {
        struct metrics_size *size = &queue->sizes[s];
        bool has_room = size_milli(s) <= room, had_room = size->room_since_ms >= 0;
        if (had_room && !has_room) {
            count_wait(metrics, queue, size);
            size->room_since_ms = -1;
        } else if (has_room && !had_room) {
            size->room_since_ms = metrics->now_ms;
        } else if (!has_room) {
            break; /* nor have the larger ones, nor had they */
        }
    }
}

/** What could be had: what is free, and what queues hold beyond their quotas. */
static int64_t to_be_had(const struct metrics *metrics)
{
    int64_t milli = metrics->capacity_milli - metrics->held_milli;
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        int64_t quota = metrics->queues[q].quota_milli, held = metrics->queues[q].held_milli;
        milli += quota == WEIR_SCHED_UNLIMITED ? 0 : WEIR_MAX(held - quota, 0);
    }
    return milli;
}

/** Of who waits below a quota: since when, up to `until_ms`, what could be had is enough. Only what
 *  holds over a span of time counts, not what is so between two changes at one moment. */
static void watch_reclaims(struct metrics *metrics, int64_t until_ms)
{
    int64_t milli = to_be_had(metrics);
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        struct metrics_queue *queue = &metrics->queues[q];
        for (int32_t s = 1; s < METRICS_SIZES; s++) {
            struct metrics_size *size = &queue->sizes[s];
            int64_t whole =
                size_milli(s) < WEIR_SCHED_DEVICE ? milli : milli - metrics->parts_milli;
            if (size->first < 0 || size->room_since_ms < 0 || size_milli(s) > whole) {
                size->able_since_ms = -1;
                continue;
            }
            if (size->able_since_ms < 0) {
                size->able_since_ms = metrics->now_ms;
            }
            int64_t since_ms = WEIR_MAX(size->able_since_ms, metrics->jobs[size->first].since_ms);
            queue->longest_unreclaimed_ms =
                WEIR_MAX(queue->longest_unreclaimed_ms, until_ms - since_ms);
        }
    }
}

void metrics_parts(struct metrics *metrics, int64_t milli)
{
    metrics->parts_milli = milli;
}

void metrics_start(struct metrics *metrics)
{
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        for (int32_t s = 0; s < METRICS_SIZES; s++) {
            metrics->queues[q].sizes[s] = (struct metrics_size){-1, -1, -1, -1};
        }
        watch_room(metrics, &metrics->queues[q]);
    }
}

void metrics_wait(struct metrics *metrics, int32_t job, int32_t queue_index, int64_t milli,
                  int64_t least_milli)
{
    struct metrics_queue *queue = &metrics->queues[queue_index];
    int64_t s = size_of(least_milli);
    struct metrics_job *row = &metrics->jobs[job];
    *row = (struct metrics_job){.queue = queue_index,
                                .size = s < METRICS_SIZES ? (int32_t)s : -1,
                                .previous = -1,
                                .next = -1,
                                .milli = milli,
                                .since_ms = metrics->now_ms};
    queue->waiting_milli += milli;
    metrics->n_waiting++;
    if (row->size >= 0) {
        struct metrics_size *size = &queue->sizes[row->size];
        row->previous = size->last;
        *(size->last >= 0 ? &metrics->jobs[size->last].next : &size->first) = job;
        size->last = job;
    }
}

void metrics_wait_end(struct metrics *metrics, int32_t job)
{
    const struct metrics_job *row = &metrics->jobs[job];
    struct metrics_queue *queue = &metrics->queues[row->queue];
    queue->waiting_milli -= row->milli;
    metrics->n_waiting--;
    if (row->size >= 0) {
        struct metrics_size *size = &queue->sizes[row->size];
        if (size->first == job) {
            count_wait(metrics, queue, size);
        }
        *(row->previous >= 0 ? &metrics->jobs[row->previous].next : &size->first) = row->next;
        *(row->next >= 0 ? &metrics->jobs[row->next].previous : &size->last) = row->previous;
    }
}

void metrics_finish(struct metrics *metrics)
{
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        for (int32_t s = 0; s < METRICS_SIZES; s++) {
            count_wait(metrics, &metrics->queues[q], &metrics->queues[q].sizes[s]);
        }
    }
}

/* ---- integrals --------------------------------------------------------------------------------
 */

static void integrate_queues(struct metrics *metrics, double span)
{
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        struct metrics_queue *queue = &metrics->queues[q];
        metrics->want[q] = (double)(queue->held_milli + queue->waiting_milli);
    }
    divide(metrics, metrics->want, metrics->share);
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        struct metrics_queue *queue = &metrics->queues[q];
        double held = (double)queue->held_milli, quota = guaranteed(queue, metrics->want[q]);
        queue->held += held * span;
        queue->entitled += metrics->share[q] * span;
        queue->served += WEIR_MIN(held, metrics->share[q]) * span;
        queue->guaranteed += quota * span;
        queue->kept += WEIR_MIN(held, quota) * span;
    }
}

/** Two samples become one of double width. */
static void halve_samples(struct metrics *metrics)
{
    struct weir_sim_sample *samples = metrics->samples;
    for (int32_t i = 0; i < WEIR_SIM_SAMPLES; i++) {
        struct weir_sim_sample sum = {0};
        for (int32_t k = 2 * i; k < 2 * i + 2 && k < WEIR_SIM_SAMPLES; k++) {
            sum.allocated += samples[k].allocated;
            sum.running += samples[k].running;
            sum.waiting += samples[k].waiting;
            sum.waiting_devices += samples[k].waiting_devices;
        }
        samples[i] = sum;
    }
    metrics->sample_ms *= 2;
}

/** Samples hold integrals until the report divides them. */
static void integrate_samples(struct metrics *metrics, int64_t until_ms)
{
    double waiting_milli = 0;
    for (int32_t q = 0; q < metrics->n_queues; q++) {
        waiting_milli += (double)metrics->queues[q].waiting_milli;
    }
    while ((until_ms - 1) / metrics->sample_ms >= WEIR_SIM_SAMPLES) {
        halve_samples(metrics);
    }
    for (int64_t at = metrics->now_ms; at < until_ms;) {
        int64_t i = at / metrics->sample_ms;
        int64_t end = WEIR_MIN(until_ms, (i + 1) * metrics->sample_ms);
        double span = (double)(end - at);
        metrics->samples[i].allocated += (double)metrics->held_milli * span;
        metrics->samples[i].running += metrics->n_running * span;
        metrics->samples[i].waiting += metrics->n_waiting * span;
        metrics->samples[i].waiting_devices += waiting_milli * span;
        at = end;
    }
}

void metrics_advance(struct metrics *metrics, int64_t now_ms)
{
    if (now_ms <= metrics->now_ms) {
        return;
    }
    double span = (double)(now_ms - metrics->now_ms);
    metrics->held += (double)metrics->held_milli * span;
    metrics->busy += (double)metrics->busy_milli_pct / 100 * span;
    integrate_queues(metrics, span);
    integrate_samples(metrics, now_ms);
    watch_reclaims(metrics, now_ms);
    metrics->now_ms = now_ms;
}

void metrics_arrive(struct metrics *metrics)
{
    metrics->arrivals_ms = metrics->now_ms;
    metrics->held_until_arrivals = metrics->held;
}

void metrics_hold(struct metrics *metrics, int32_t queue_index, int64_t milli, int32_t busy_pct)
{
    struct metrics_queue *queue = &metrics->queues[queue_index];
    queue->held_milli += milli;
    metrics->held_milli += milli;
    metrics->busy_milli_pct += milli * busy_pct;
    watch_room(metrics, queue);
}
