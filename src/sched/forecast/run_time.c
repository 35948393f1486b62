#include "sched/forecast/run_time.h"

#include "base/macros.h"

#include <stdlib.h>

#define MINUTE_MS ((int64_t)60000)
#define DAY_MS    (24 * 60 * MINUTE_MS)

int64_t run_time_bound_ms(const struct weir_sched_job *job)
{
    return job->time_limit_ms > 0 ? job->time_limit_ms : WEIR_MAX(job->expected_run_ms, 0);
}

int64_t run_time_end_ms(const struct weir_sched_job *job, int64_t now_ms)
{
    bool is_running = job->started_ms > 0 && job->started_ms <= now_ms;
    int64_t start = is_running ? job->started_ms : now_ms, ran = now_ms - start;
    int64_t limit = job->time_limit_ms > 0 ? start + job->time_limit_ms : RUN_TIME_NEVER;
    int64_t end;
    if (job->expected_run_ms > ran) {
        end = start + job->expected_run_ms;
    } else if (job->expected_run_ms <= 0 && limit < RUN_TIME_NEVER) {
        end = limit;
    } else if (is_running) {
        end = now_ms + WEIR_MIN(WEIR_MAX(ran, 10 * MINUTE_MS), 7 * DAY_MS);
    } else {
        end = now_ms + DAY_MS;
    }
    return WEIR_MAX(WEIR_MIN(end, limit), now_ms + 1); /* Past its limit it is about to go. */
}

int64_t weir_sched_job_end_ms(const struct weir_sched_job *job, int64_t now_ms)
{
    return run_time_end_ms(job, now_ms);
}

weir_status run_time_init(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    size_t n = 0, n_nodes = (size_t)snapshot->n_nodes;
    cluster->times.at_ms = snapshot->now_ms;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct weir_sched_node *node = &snapshot->nodes[i];
        cluster->times.has_closings =
            cluster->times.has_closings || node->closed_until_ms > node->closed_from_ms;
    }
    for (int32_t i = 0; i < snapshot->n_reservations; i++) {
        n += (size_t)snapshot->reservations[i].n_nodes;
    }
    if (n == 0) {
        return WEIR_OK;
    }
    cluster->times.reserved_first = calloc(n_nodes + 2, sizeof *cluster->times.reserved_first);
    cluster->times.reserved = calloc(n, sizeof *cluster->times.reserved);
    if (cluster->times.reserved_first == NULL || cluster->times.reserved == NULL) {
        return WEIR_ERR_NOMEM;
    }
    int32_t *first = cluster->times.reserved_first; /* Counts, then ends, that become starts. */
    for (int32_t i = 0; i < snapshot->n_reservations; i++) {
        for (int32_t k = 0; k < snapshot->reservations[i].n_nodes; k++) {
            first[snapshot->reservations[i].nodes[k]]++;
        }
    }
    for (size_t i = 1; i < n_nodes; i++) {
        first[i] += first[i - 1];
    }
    first[n_nodes] = (int32_t)n;
    for (int32_t i = snapshot->n_reservations - 1; i >= 0; i--) {
        for (int32_t k = 0; k < snapshot->reservations[i].n_nodes; k++) {
            cluster->times.reserved[--first[snapshot->reservations[i].nodes[k]]] = i;
        }
    }
    return WEIR_OK;
}

static bool is_for(const struct weir_sched_snapshot *snapshot,
                   const struct weir_sched_reservation *reservation, int32_t job)
{
    if (reservation->job >= 0) {
        return reservation->job == job;
    }
    int32_t queue = snapshot->jobs[job].queue;
    while (queue >= 0 && queue != reservation->queue) {
        queue = snapshot->queues[queue].parent;
    }
    return queue >= 0;
}

enum run_time_bar run_time_bar(const struct cluster *cluster, int32_t job, int32_t at,
                               int64_t *out_from_ms, int64_t *out_until_ms)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    const struct weir_sched_node *node = &snapshot->nodes[at];
    int64_t run = run_time_bound_ms(&snapshot->jobs[job]), start = cluster->times.at_ms;
    int64_t end = run > 0 ? start + run : start + 1;
    if (node->closed_until_ms > node->closed_from_ms && start < node->closed_until_ms &&
        end > node->closed_from_ms) {
        *out_from_ms = node->closed_from_ms;
        *out_until_ms = node->closed_until_ms;
        return RUN_TIME_CLOSED;
    }
    if (cluster->times.reserved == NULL) {
        return RUN_TIME_FREE;
    }
    end = run > 0 ? end : RUN_TIME_NEVER;
    for (int32_t i = cluster->times.reserved_first[at]; i < cluster->times.reserved_first[at + 1];
         i++) {
        const struct weir_sched_reservation *reserved =
            &snapshot->reservations[cluster->times.reserved[i]];
        if (start < reserved->until_ms && end > reserved->from_ms &&
            !is_for(snapshot, reserved, job)) {
            *out_from_ms = reserved->from_ms;
            *out_until_ms = reserved->until_ms;
            return RUN_TIME_RESERVED;
        }
    }
    return RUN_TIME_FREE;
}

bool run_time_is_allowed(const struct cluster *cluster, int32_t job, int32_t at)
{
    int64_t from_ms, until_ms;
    return run_time_bar(cluster, job, at, &from_ms, &until_ms) == RUN_TIME_FREE;
}

/** The reservation that is for this job alone; -1. */
static int32_t own_reservation(const struct weir_sched_snapshot *snapshot, int32_t job)
{
    for (int32_t i = 0; i < snapshot->n_reservations; i++) {
        if (snapshot->reservations[i].job == job) {
            return i;
        }
    }
    return -1;
}

uint64_t run_time_kind(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    uint64_t bound = (uint64_t)run_time_bound_ms(&snapshot->jobs[job]);
    if (cluster->times.reserved != NULL) {
        uint64_t owner = own_reservation(snapshot, job) >= 0
                             ? (uint64_t)job + (uint64_t)snapshot->n_queues
                             : (uint64_t)snapshot->jobs[job].queue;
        return bound * 0x9e3779b97f4a7c15U + owner + 1;
    }
    return cluster->times.has_closings ? bound : 0;
}
