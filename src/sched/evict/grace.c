#include "sched/evict/grace.h"

#include "sched/model/quantum.h"

enum grace_step grace_step_of(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    if (state->phase != PHASE_RELEASING && state->phase != PHASE_PIPELINED) {
        return GRACE_NOTHING;
    }
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    const struct weir_sched_job *job = &cluster->snapshot->jobs[state->job];
    int64_t grace = cluster->profile->evict_grace_ms;
    if (given->state != WEIR_SCHED_RUNNING) {
        return GRACE_NOTHING;
    }
    if (given->is_leaving) {
        bool is_due =
            grace < 0 || cluster->snapshot->now_ms - job->checkpoint_requested_ms >= grace;
        return job->evict_acknowledged || is_due ? GRACE_EVICT : GRACE_NOTHING;
    }
    /* What is above a minimum takes no work with it, and a broken gang has none to save. */
    bool is_surplus = state->phase == PHASE_RELEASING &&
                      quantum_is_satisfied(cluster, cluster->jobs[state->job].first_group);
    return grace >= 0 && job->can_checkpoint && !is_surplus &&
                   state->reason != WEIR_SCHED_EVICT_STALE
               ? GRACE_REQUEST_CHECKPOINT
               : GRACE_EVICT;
}
