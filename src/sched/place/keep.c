#include "sched/place/keep.h"

#include "base/macros.h"
#include "sched/model/chunk.h"
#include "sched/place/fits.h"
#include "sched/place/zones.h"

static bool is_leaving(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    return cluster->tasks[task].phase == PHASE_RELEASING && given->promise != NULL;
}

void keep_take_promises(struct cluster *cluster)
{
    int64_t n_decisions = cluster->n_decisions; /* They were another plan's. */
    for (int32_t t = 0; t < cluster->snapshot->n_tasks && cluster->profile->keep_places; t++) {
        if (is_leaving(cluster, t)) {
            const struct weir_sched_promise *promise = cluster->snapshot->tasks[t].promise;
            cluster_place(cluster, t, PHASE_PIPELINED, promise->node, promise->devices,
                          promise->zones);
        }
    }
    cluster->n_decisions = n_decisions;
    cluster_commit(cluster);
}

/** Whether everything fits where the task is to go when what leaves has left. */
static bool has_room(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    const struct weir_sched_node *given = &cluster->snapshot->nodes[state->target];
    const struct node_state *node = &cluster->nodes[state->target];
    if (!zones_hold(cluster, state->target, state->zones, NULL, false) ||
        !fits_ever(cluster, task, state->target) || node->cpu_future > given->cpu_milli ||
        node->memory_future > given->memory_bytes ||
        (given->n_tasks_max >= 0 && node->tasks_future > given->n_tasks_max)) {
        return false;
    }
    int32_t n_devices = cluster_demand(cluster, task)->n_devices;
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t d = cluster->target_devices[state->first_spot + i];
        if (cluster->devices[node->first_device + d].future > node->device_size) {
            return false;
        }
    }
    for (int32_t e = node->first_extra; e < node->first_extra + given->n_extras; e++) {
        if (cluster->extras[e].future > cluster->extras[e].count) {
            return false;
        }
    }
    return true;
}

static void drop_job(struct cluster *cluster, const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PIPELINED) {
            cluster_evict(cluster, t, (enum weir_sched_evict_reason)cluster->tasks[t].reason,
                          cluster->tasks[t].by_job);
        }
    }
}

weir_status keep_drop_lost(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t j = 0; j < snapshot->n_jobs && cluster->profile->keep_places; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        int32_t root = cluster->jobs[j].first_group;
        bool has_lost = false;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (cluster->tasks[t].phase == PHASE_PIPELINED && !has_room(cluster, t)) {
                cluster_evict(cluster, t, (enum weir_sched_evict_reason)cluster->tasks[t].reason,
                              cluster->tasks[t].by_job);
                has_lost = true;
            }
        }
        if (has_lost && !chunk_is_satisfied(cluster, root)) {
            drop_job(cluster, job);
        }
        cluster_commit(cluster);
    }
    return cluster->status;
}

bool keep_is_known(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    int32_t target = cluster->tasks[task].target;
    if (given->state == WEIR_SCHED_PIPELINED) {
        return target == given->node;
    }
    return cluster->profile->keep_places && given->promise != NULL &&
           (given->state == WEIR_SCHED_RELEASING || given->is_leaving) &&
           target == given->promise->node;
}

bool keep_may_bind(const struct cluster *cluster, int32_t task)
{
    enum weir_sched_task_state state = cluster->snapshot->tasks[task].state;
    return cluster->tasks[task].held < 0 &&
           (state == WEIR_SCHED_PENDING ||
            (state == WEIR_SCHED_PIPELINED && cluster->profile->keep_places));
}
