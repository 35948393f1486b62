#include "sim/meter.h"

#define FIRST_SAMPLE_MS 60000

void meter_init(struct meter *meter, struct weir_arena *arena, int32_t n_queues,
                int64_t capacity_milli, int64_t arrivals_ms)
{
    *meter = (struct meter){.n_queues = n_queues,
                            .capacity_milli = capacity_milli,
                            .arrivals_ms = arrivals_ms,
                            .sample_ms = FIRST_SAMPLE_MS};
    meter->queues = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, struct meter_queue);
    meter->want = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, double);
    meter->share = WEIR_ARENA_ARRAY(arena, (size_t)n_queues, double);
    for (int32_t q = 0; q < n_queues; q++) {
        meter->queues[q].below_since_ms = -1;
    }
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

/** Whether a waiting job of the queue would fit between what it holds and its quota. */
static bool is_below(const struct meter_queue *queue)
{
    int64_t room = queue->quota_milli - queue->held_milli;
    for (int size = 1; size < METER_SIZES - 1 && (int64_t)size * 1000 <= room; size++) {
        if (queue->n_waiting[size] > 0) {
            return true;
        }
    }
    return false;
}

static void watch_guarantee(struct meter *meter, struct meter_queue *queue)
{
    if (!is_below(queue)) {
        queue->below_since_ms = -1;
    } else if (queue->below_since_ms < 0) {
        queue->below_since_ms = meter->now_ms;
    }
}

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
        if (queue->below_since_ms >= 0) {
            int64_t below_ms = meter->now_ms + (int64_t)span - queue->below_since_ms;
            queue->longest_below_ms = WEIR_MAX(queue->longest_below_ms, below_ms);
        }
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
    if (meter->now_ms < meter->arrivals_ms) {
        meter->held_until_arrivals +=
            (double)meter->held_milli *
            (double)(WEIR_MIN(now_ms, meter->arrivals_ms) - meter->now_ms);
    }
    integrate_queues(meter, span);
    integrate_samples(meter, now_ms);
    meter->now_ms = now_ms;
}

void meter_wait(struct meter *meter, int32_t queue_index, int64_t milli, int sign)
{
    struct meter_queue *queue = &meter->queues[queue_index];
    int64_t size = WEIR_MIN((milli + 999) / 1000, METER_SIZES - 1);
    queue->waiting_milli += sign * milli;
    queue->n_waiting[size] += sign;
    meter->n_waiting += sign;
    watch_guarantee(meter, queue);
}

void meter_hold(struct meter *meter, int32_t queue_index, int64_t milli, int32_t busy_pct)
{
    struct meter_queue *queue = &meter->queues[queue_index];
    queue->held_milli += milli;
    meter->held_milli += milli;
    meter->busy_milli_pct += milli * busy_pct;
    watch_guarantee(meter, queue);
}
