/**
 * Backfill with reservations, and from the same calculation the time at which a waiting job
 * probably starts.
 *
 * In the order in which jobs are served, the first `backfill_depth` that find no room get a
 * *reservation*: the earliest time at which all their tasks fit, as jobs end (run_time_end_ms), and
 * the rooms they would then take. From then on in this cycle these rooms are held: a later job
 * starts only beside them, or if its known run time ends before the reservation begins. So a large
 * gang is passed only by what does not delay it, as long as jobs end when they are expected to. If
 * nothing is known of the running jobs, the reservation moves with the guess. The next
 * `forecast_depth` jobs get a time as well, but no room is held for them.
 *
 * The time told to the first job in the order holds: while jobs end in time it starts then or
 * sooner. The times of jobs behind it follow from the present order. When an earlier job starts
 * sooner and elsewhere than told, one behind it may start later.
 *
 * Every cycle works everything out again; nothing is remembered. What is supposed: rooms add up, so
 * a room counts as taken by the job that leaves it and by the job that comes; queues' limits and
 * quotas count as they will be; nodes that are closed now stay so; affinities look at what runs
 * now; nothing is evicted. A time is the earliest under these rules and never before the job's turn
 * in the order.
 *
 * Cost of a reservation or forecast: listing the running jobs, which are sorted once a cycle;
 * O(log) attempts to place; and counting out and in the tasks that end before.
 */
#ifndef WEIR_SCHED_BACKFILL_H
#define WEIR_SCHED_BACKFILL_H

#include "sched/forecast/completions.h"
#include "sched/forecast/scan.h"

/** The room of one task in a slot. */
struct backfill_place {
    int32_t task, node;
    int32_t first_device; /**< In backfill.devices. */
    uint32_t zones;
};

/** The time and rooms of one waiting job. */
struct backfill_slot {
    int32_t job;
    int64_t from_ms, until_ms;
    int32_t after_job; /**< With whose end it begins; -1. */
    int32_t first, n;  /**< Of backfill.places. */
    struct weir_sched_amount amount, fixed;
    int32_t shape;       /**< Of all its tasks; -1: they differ. */
    bool is_reservation; /**< Its room is held; else a forecast. */
    bool holds_room;     /**< In the state at the moment. */
};

struct backfill {
    struct cluster *cluster;
    struct placer *placer;
    struct backfill_slot *slots;
    int32_t n_slots, n_reservations, slots_cap;
    int32_t n_tried; /**< Jobs for which a time was looked for. */
    struct backfill_place *places;
    size_t n_places, places_cap;
    int32_t *devices;
    size_t n_devices, devices_cap;
    struct completion *of_jobs; /**< Of every job, run or not, in order; once are_sorted. */
    bool are_sorted;
    bool *is_active;        /**< Per job: some of it has a place, */
    int64_t active_version; /**< in the state of cluster.changes.n_commits; -1: not known. */
    struct completion *completions;
    int32_t n_completions, position; /**< The first `position` ends are supposed to be over. */
    struct scan scan;
    int32_t *tasks;             /**< Room for one job's tasks. */
    struct backfill_slot *late; /**< Forecasts to make. */
    int32_t n_late;
    int32_t *touched; /**< Nodes whose indices are out of date, and per node whether it is. */
    int32_t n_touched;
    bool *is_touched;
};

/**
 * Prepare. Off, and without cost, if both depths are 0. NOMEM: backfill_fini frees what was made.
 */
weir_status backfill_init(struct backfill *backfill, struct cluster *cluster,
                          struct placer *placer) WEIR_MUST_CHECK;
void backfill_fini(struct backfill *backfill);

/** Hold what this job may not use, and nothing else; -1: what no job may use. */
void backfill_hold_against(struct backfill *backfill, int32_t job);

/**
 * The same for a job that takes what is guaranteed to it: room that is held for jobs that would
 * borrow is open to it.
 */
void backfill_hold_against_guaranteed(struct backfill *backfill, int32_t job);

/** Whether room is held for the job. */
bool backfill_has_reserved(const struct backfill *backfill, int32_t job);

/** Hold nothing. */
void backfill_let_go(struct backfill *backfill);

/**
 * Note that the job found no room, with what backfill_hold_against left it. Its `wait` says so if
 * it only waits for room that is held for others. It gets a reservation if its turn is early
 * enough, and its `wait` says from when. Nothing may be uncommitted. What is held is undefined
 * until the next of the calls above.
 */
void backfill_add(struct backfill *backfill, int32_t job);

/** Tell the jobs behind those when they start. The same holds. */
void backfill_forecast(struct backfill *backfill);

#endif
