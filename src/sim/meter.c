#include "sim/meter.h"

#define FIRST_SAMPLE_MS 60000

void meter_init(struct meter *meter, struct weir_arena *arena, int32_t n_queues, int32_t n_jobs,
                int64_t capacity_milli)
{
    *meter = (struct meter){
        .n_queues = n_queues, .capacity_milli = capacity_milli, .sample_ms = FIRST_SAMPLE_MS};
    meter->queues = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, struct meter_queue);
    meter->jobs = WEIR_ARENA_ARRAY(arena, (size_t)n_jobs, struct meter_job);
    meter->want = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, double);
    meter->share = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, double);
}

/** What is guaranteed of a want. */
static double guaranteed(const struct meter_queue *queue, double want)
{
    return queue->quota_milli == WEIR_SCHED_UNLIMITED ? want
                                                      : WEIR_MIN((double)queue->quota_milli, want);
}

void meter_divide(const struct meter *meter, const double *want, double *share)
{
    double left = (double)meter->capacity_milli;
    for (int32_t q = 0; q < meter->n_queues; q++) {
        share[q] = guaranteed(&meter->queues[q], want[q]);
        left -= share[q];
    }
    for (int32_t round = 0; round < meter->n_queues && left > 0.5; round++) {
        double weights = 0, given = 0;
        for (int32_t q = 0; q < meter->n_queues; q++) {
            weights += want[q] > share[q] ? (double)meter->queues[q].weight : 0;
        }
        for (int32_t q = 0; q < meter->n_queues && weights > 0; q++) {
            if (want[q] > share[q]) {
                double part = left * (double)meter->queues[q].weight / weights;
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

/** The smallest size that holds `milli`; METER_SIZES or more: not watched. */
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
static void count_wait(const struct meter *meter, struct meter_queue *queue,
                       const struct meter_size *size)
{
    if (size->first >= 0 && size->room_since_ms >= 0) {
        int64_t since_ms = WEIR_MAX(size->room_since_ms, meter->jobs[size->first].since_ms);
        queue->longest_below_ms = WEIR_MAX(queue->longest_below_ms, meter->now_ms - since_ms);
    }
}

/** What is left of the quota has changed. Size 0 asks for no device and has no guarantee. */
static void watch_room(struct meter *meter, struct meter_queue *queue)
{
    int64_t room = queue->quota_milli - queue->held_milli;
    for (int32_t s = 1; s < METER_SIZES; s++) {
        struct meter_size *size = &queue->sizes[s];
        bool has_room = size_milli(s) <= room, had_room = size->room_since_ms >= 0;
        if (had_room && !has_room) {
            count_wait(meter, queue, size);
            size->room_since_ms = -1;
        } else if (has_room && !had_room) {
            size->room_since_ms = meter->now_ms;
        } else if (!has_room) {
            break; /* nor have the larger ones, nor had they */
        }
    }
}

/** What could be had: what is free, and what queues hold beyond their quotas. */
static int64_t to_be_had(const struct meter *meter)
{
    int64_t milli = meter->capacity_milli - meter->held_milli;
    for (int32_t q = 0; q < meter->n_queues; q++) {
        int64_t quota = meter->queues[q].quota_milli, held = meter->queues[q].held_milli;
        milli += quota == WEIR_SCHED_UNLIMITED ? 0 : WEIR_MAX(held - quota, 0);
    }
    return milli;
}

/** Of who waits below a quota: since when, up to `until_ms`, what could be had is enough. Only what
 *  holds over a span of time counts, not what is so between two changes at one moment. */
static void watch_reclaims(struct meter *meter, int64_t until_ms)
{
    int64_t milli = to_be_had(meter);
    for (int32_t q = 0; q < meter->n_queues; q++) {
        struct meter_queue *queue = &meter->queues[q];
        for (int32_t s = 1; s < METER_SIZES; s++) {
            struct meter_size *size = &queue->sizes[s];
            int64_t whole = size_milli(s) < WEIR_SCHED_DEVICE ? milli : milli - meter->parts_milli;
            if (size->first < 0 || size->room_since_ms < 0 || size_milli(s) > whole) {
                size->able_since_ms = -1;
                continue;
            }
            if (size->able_since_ms < 0) {
                size->able_since_ms = meter->now_ms;
            }
            int64_t since_ms = WEIR_MAX(size->able_since_ms, meter->jobs[size->first].since_ms);
            queue->longest_unreclaimed_ms =
                WEIR_MAX(queue->longest_unreclaimed_ms, until_ms - since_ms);
        }
    }
}

void meter_parts(struct meter *meter, int64_t milli)
{
    meter->parts_milli = milli;
}

void meter_start(struct meter *meter)
{
    for (int32_t q = 0; q < meter->n_queues; q++) {
        for (int32_t s = 0; s < METER_SIZES; s++) {
            meter->queues[q].sizes[s] = (struct meter_size){-1, -1, -1, -1};
        }
        watch_room(meter, &meter->queues[q]);
    }
}

void meter_wait(struct meter *meter, int32_t job, int32_t queue_index, int64_t milli,
                int64_t least_milli)
{
    struct meter_queue *queue = &meter->queues[queue_index];
    int64_t s = size_of(least_milli);
    struct meter_job *row = &meter->jobs[job];
    *row = (struct meter_job){.queue = queue_index,
                              .size = s < METER_SIZES ? (int32_t)s : -1,
                              .previous = -1,
                              .next = -1,
                              .milli = milli,
                              .since_ms = meter->now_ms};
    queue->waiting_milli += milli;
    meter->n_waiting++;
    if (row->size >= 0) {
        struct meter_size *size = &queue->sizes[row->size];
        row->previous = size->last;
        *(size->last >= 0 ? &meter->jobs[size->last].next : &size->first) = job;
        size->last = job;
    }
}

void meter_wait_end(struct meter *meter, int32_t job)
{
    const struct meter_job *row = &meter->jobs[job];
    struct meter_queue *queue = &meter->queues[row->queue];
    queue->waiting_milli -= row->milli;
    meter->n_waiting--;
    if (row->size >= 0) {
        struct meter_size *size = &queue->sizes[row->size];
        if (size->first == job) {
            count_wait(meter, queue, size);
        }
        *(row->previous >= 0 ? &meter->jobs[row->previous].next : &size->first) = row->next;
        *(row->next >= 0 ? &meter->jobs[row->next].previous : &size->last) = row->previous;
    }
}

void meter_finish(struct meter *meter)
{
    for (int32_t q = 0; q < meter->n_queues; q++) {
        for (int32_t s = 0; s < METER_SIZES; s++) {
            count_wait(meter, &meter->queues[q], &meter->queues[q].sizes[s]);
        }
    }
}

/* ---- integrals --------------------------------------------------------------------------------
 */

static void integrate_queues(struct meter *meter, double span)
{
    for (int32_t q = 0; q < meter->n_queues; q++) {
        struct meter_queue *queue = &meter->queues[q];
        meter->want[q] = (double)(queue->held_milli + queue->waiting_milli);
    }
    meter_divide(meter, meter->want, meter->share);
    for (int32_t q = 0; q < meter->n_queues; q++) {
        struct meter_queue *queue = &meter->queues[q];
        double held = (double)queue->held_milli, quota = guaranteed(queue, meter->want[q]);
        queue->held += held * span;
        queue->entitled += meter->share[q] * span;
        queue->served += WEIR_MIN(held, meter->share[q]) * span;
        queue->guaranteed += quota * span;
        queue->kept += WEIR_MIN(held, quota) * span;
    }
}

/** Two samples become one of double width. */
static void halve_samples(struct meter *meter)
{
    struct weir_sim_sample *samples = meter->samples;
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
    meter->sample_ms *= 2;
}

/** Samples hold integrals until the report divides them. */
static void integrate_samples(struct meter *meter, int64_t until_ms)
{
    double waiting_milli = 0;
    for (int32_t q = 0; q < meter->n_queues; q++) {
        waiting_milli += (double)meter->queues[q].waiting_milli;
    }
    while ((until_ms - 1) / meter->sample_ms >= WEIR_SIM_SAMPLES) {
        halve_samples(meter);
    }
    for (int64_t at = meter->now_ms; at < until_ms;) {
        int64_t i = at / meter->sample_ms;
        int64_t end = WEIR_MIN(until_ms, (i + 1) * meter->sample_ms);
        double span = (double)(end - at);
        meter->samples[i].allocated += (double)meter->held_milli * span;
        meter->samples[i].running += meter->n_running * span;
        meter->samples[i].waiting += meter->n_waiting * span;
        meter->samples[i].waiting_devices += waiting_milli * span;
        at = end;
    }
}

void meter_advance(struct meter *meter, int64_t now_ms)
{
    if (now_ms <= meter->now_ms) {
        return;
    }
    double span = (double)(now_ms - meter->now_ms);
    meter->held += (double)meter->held_milli * span;
    meter->busy += (double)meter->busy_milli_pct / 100 * span;
    integrate_queues(meter, span);
    integrate_samples(meter, now_ms);
    watch_reclaims(meter, now_ms);
    meter->now_ms = now_ms;
}

void meter_arrive(struct meter *meter)
{
    meter->arrivals_ms = meter->now_ms;
    meter->held_until_arrivals = meter->held;
}

void meter_hold(struct meter *meter, int32_t queue_index, int64_t milli, int32_t busy_pct)
{
    struct meter_queue *queue = &meter->queues[queue_index];
    queue->held_milli += milli;
    meter->held_milli += milli;
    meter->busy_milli_pct += milli * busy_pct;
    watch_room(meter, queue);
}
