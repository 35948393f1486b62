/**
 * What is measured while a replay runs: device time held, per queue against its quota and its fair
 * share, and curves. It is told of each change and integrates between them; it does not know the
 * scheduler, so that what it says of fairness is not what the scheduler believes.
 *
 * The fair share of a queue at a moment: its quota or what it asks for if that is less; what is
 * left goes to those who ask for more, in proportion to their weights.
 */
#ifndef WEIR_SIM_METER_H
#define WEIR_SIM_METER_H

#include "sim/replay.h"

#define METER_SIZES 130 /**< Jobs that wait are counted by whole devices up to here. */

struct meter_queue {
    int64_t quota_milli; /**< WEIR_SCHED_UNLIMITED. */
    int64_t weight;
    int64_t held_milli, waiting_milli;
    int32_t n_waiting[METER_SIZES]; /**< By device count rounded up, the last one all above. */
    double held, entitled, served, guaranteed, kept; /**< Integrals, milli × ms. */
    int64_t below_since_ms;                          /**< -1: is not. */
    int64_t longest_below_ms;
};

struct meter {
    struct meter_queue *queues;
    int32_t n_queues;
    int64_t capacity_milli;
    int64_t now_ms, held_milli;
    int32_t n_running, n_waiting;
    double held_until_arrivals, held, busy;
    int64_t busy_milli_pct; /**< Held devices times how busy they are kept, in milli × percent. */
    int64_t arrivals_ms;
    int64_t sample_ms; /**< Width of a sample. */
    struct weir_sim_sample samples[WEIR_SIM_SAMPLES];
    int32_t n_samples;
    double *want, *share; /**< Room for the division. */
};

void meter_init(struct meter *meter, struct weir_arena *arena, int32_t n_queues,
                int64_t capacity_milli, int64_t arrivals_ms);

/** Integrate up to `now_ms`. */
void meter_advance(struct meter *meter, int64_t now_ms);

/** A job waits (sign 1) or no longer does (-1). */
void meter_wait(struct meter *meter, int32_t queue, int64_t milli, int sign);

/** Devices are held, or given back if negative. */
void meter_hold(struct meter *meter, int32_t queue, int64_t milli, int32_t busy_pct);

/** Fair shares of what queues ask for: `share` of `want`, both per queue. */
void meter_divide(const struct meter *meter, const double *want, double *share);

#endif
