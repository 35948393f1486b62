/** The actions that end work for what it does itself: it runs too long, or uses nothing. */
#include "sched/action/actions.h"

#include "sched/evict/eviction_cost.h"

/** A job of which a part is on the move is ended when that has arrived, so that it ends whole. */
static void end_job(struct cluster *cluster, int32_t job, enum weir_sched_evict_reason reason)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    if (cluster->groups[cluster->jobs[job].first_group].n_pipelined > 0) {
        return;
    }
    for (int32_t t = given->first_task; t < given->first_task + given->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_RUNNING) {
            cluster_evict(cluster, t, reason, WEIR_SCHED_NONE);
        } else if (cluster->snapshot->tasks[t].is_leaving) {
            cluster->tasks[t].reason = (uint8_t)reason; /* Asked before, perhaps for this. */
        }
    }
    cluster_commit(cluster);
}

bool action_is_over_time(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    return cluster->times.enforces_limits && given->time_limit_ms > 0 && given->started_ms > 0 &&
           cluster->snapshot->now_ms - given->started_ms >= given->time_limit_ms;
}

weir_status action_end_over_time(struct cycle *cycle)
{
    cycle->cluster.times.enforces_limits = true;
    for (int32_t j = 0; j < cycle->cluster.snapshot->n_jobs; j++) {
        if (action_is_over_time(&cycle->cluster, j)) {
            end_job(&cycle->cluster, j, WEIR_SCHED_EVICT_TIME_LIMIT);
        }
    }
    return cycle->cluster.status;
}

weir_status action_end_idle(struct cycle *cycle)
{
    struct cluster *cluster = &cycle->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        if (eviction_cost_is_idle(cluster, j) && job->idle_since_ms > 0 &&
            snapshot->now_ms - job->idle_since_ms >= cluster->profile->idle_after_ms) {
            end_job(cluster, j, WEIR_SCHED_EVICT_IDLE);
        }
    }
    return cluster->status;
}
