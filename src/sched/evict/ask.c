#include "sched/evict/ask.h"

#include "sched/model/chunk.h"

enum ask ask_of(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    if (state->phase != PHASE_RELEASING && state->phase != PHASE_PIPELINED) {
        return ASK_NOTHING;
    }
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    const struct weir_sched_job *job = &cluster->snapshot->jobs[state->job];
    int64_t grace = cluster->profile->evict_grace_ms;
    if (given->state != WEIR_SCHED_RUNNING) {
        return ASK_NOTHING;
    }
    if (given->is_leaving) {
        bool is_due = grace < 0 || cluster->snapshot->now_ms - job->evict_asked_ms >= grace;
        return job->evict_acknowledged || is_due ? ASK_TO_END : ASK_NOTHING;
    }
    /* What is above a minimum takes no work with it, and a broken gang has none to save. */
    bool is_surplus = state->phase == PHASE_RELEASING &&
                      chunk_is_satisfied(cluster, cluster->jobs[state->job].first_group);
    return grace >= 0 && job->can_checkpoint && !is_surplus &&
                   state->reason != WEIR_SCHED_EVICT_STALE
               ? ASK_CHECKPOINT
               : ASK_TO_END;
}
