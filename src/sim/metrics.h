/**
 * What is measured while a replay runs: device time held, per queue against its quota and its fair
 * share, and curves. It is told of each change and integrates between them. It does not know the
 * scheduler: so its figures of fairness are not what the scheduler believes.
 *
 * The fair share of a queue at a moment is its quota, or what it asks for if that is less. What is
 * left goes to the queues that ask for more, in proportion to their weights.
 */
#ifndef WEIR_SIM_METRICS_H
#define WEIR_SIM_METRICS_H

#include "sim/replay.h"

#define METRICS_SIZES 140 /**< Tenths of a device up to one, then whole devices up to 130. */

/** Jobs of a queue that wait and could run with so many devices, in the order of queueing. */
struct metrics_size {
    int32_t first, last;   /**< -1: none. */
    int64_t room_since_ms; /**< The queue has so much of its quota left since; -1: it has not. */
    int64_t able_since_ms; /**< Someone waits for that, and so much is to be had; -1. */
};

struct metrics_queue {
    int64_t quota_milli; /**< WEIR_SCHED_UNLIMITED. */
    int64_t weight;
    int64_t held_milli, waiting_milli;
    struct metrics_size sizes[METRICS_SIZES];
    double held, entitled, served, guaranteed, kept; /**< Integrals, milli × ms. */
    int64_t longest_below_ms, longest_unreclaimed_ms;
};

/** A job that waits. */
struct metrics_job {
    int32_t queue, size;    /**< size -1: in no list. */
    int32_t previous, next; /**< Of its queue and size; -1. */
    int64_t milli;
    int64_t since_ms;
};

struct metrics {
    struct metrics_queue *queues;
    int32_t n_queues;
    struct metrics_job *jobs; /**< As in the trace. */
    int64_t capacity_milli;
    int64_t now_ms, held_milli;
    int64_t parts_milli; /**< Free in parts of devices of which others hold the rest. */
    int32_t n_running, n_waiting;
    double held_until_arrivals, held, busy;
    int64_t busy_milli_pct; /**< Held devices times how busy they are kept, in milli × percent. */
    int64_t arrivals_ms;    /**< Of the last job so far. */
    int64_t sample_ms;      /**< Width of a sample. */
    struct weir_sim_sample samples[WEIR_SIM_SAMPLES];
    int32_t n_samples;
    double *want, *share; /**< Room for the division. */
};

void metrics_init(struct metrics *metrics, struct weir_arena *arena, int32_t n_queues,
                  int32_t n_jobs, int64_t capacity_milli);

/** Note that quotas are known. Call before anything else. */
void metrics_start(struct metrics *metrics);

/** Integrate up to `now_ms`. */
void metrics_advance(struct metrics *metrics, int64_t now_ms);

/** A job was submitted. */
void metrics_arrive(struct metrics *metrics);

/**
 * Note that a job waits that asks for `milli` and could run with `least_milli`; metrics_wait_end:
 * it waits no longer.
 */
void metrics_wait(struct metrics *metrics, int32_t job, int32_t queue, int64_t milli,
                  int64_t least_milli);
void metrics_wait_end(struct metrics *metrics, int32_t job);

/** At the end: count the jobs that still wait. */
void metrics_finish(struct metrics *metrics);

/** Note that devices are held, or given back if negative. */
void metrics_hold(struct metrics *metrics, int32_t queue, int64_t milli, int32_t busy_pct);

/**
 * Note how much is free in parts of devices of which others hold the rest. It is of no use to a job
 * that needs whole devices. 0 until it is said.
 */
void metrics_parts(struct metrics *metrics, int64_t milli);

#endif
