#include "sched/place/nomination.h"

#include "sched/model/quantum.h"
#include "sched/place/fits.h"
#include "sched/place/zones.h"

static bool is_leaving(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    return cluster->tasks[task].phase == PHASE_RELEASING && given->nomination != NULL;
}

void nomination_take_all(struct cluster *cluster)
{
    int64_t n_decisions = cluster->n_decisions; /* They were another plan's. */
    for (int32_t t = 0; t < cluster->snapshot->n_tasks && cluster->profile->nominations; t++) {
        if (is_leaving(cluster, t)) {
            const struct weir_sched_nomination *nomination = cluster->snapshot->tasks[t].nomination;
            cluster_place(cluster, t, PHASE_PIPELINED, nomination->node, nomination->devices,
                          nomination->zones);
        }
    }
    cluster->n_decisions = n_decisions;
    cluster_commit(cluster);
}

/** Whether everything fits where the task is to go when what leaves has left. */
static bool has_room(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    const struct weir_sched_node *given = &cluster->snapshot->nodes[state->planned_node];
    const struct node_state *node = &cluster->nodes[state->planned_node];
    if (!zones_hold(cluster, state->planned_node, state->zones, NULL, false) ||
        !fits_ever(cluster, task, state->planned_node) || node->cpu_future > given->cpu_milli ||
        node->memory_future > given->memory_bytes ||
        (given->n_tasks_max >= 0 && node->tasks_future > given->n_tasks_max)) {
        return false;
    }
    int32_t n_devices = cluster_demand(cluster, task)->n_devices;
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t d = cluster->planned_devices[state->first_assigned + i];
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

weir_status nomination_drop_void(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t j = 0; j < snapshot->n_jobs && cluster->profile->nominations; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        int32_t root = cluster->jobs[j].first_group;
        bool is_any_void = false;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (cluster->tasks[t].phase == PHASE_PIPELINED && !has_room(cluster, t)) {
                cluster_evict(cluster, t, (enum weir_sched_evict_reason)cluster->tasks[t].reason,
                              cluster->tasks[t].by_job);
                is_any_void = true;
            }
        }
        if (is_any_void && !quantum_is_satisfied(cluster, root)) {
            drop_job(cluster, job);
        }
        cluster_commit(cluster);
    }
    return cluster->status;
}

bool nomination_is_known(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *given = &cluster->snapshot->tasks[task];
    int32_t planned_node = cluster->tasks[task].planned_node;
    if (given->state == WEIR_SCHED_PIPELINED) {
        return planned_node == given->node;
    }
    return cluster->profile->nominations && given->nomination != NULL &&
           (given->state == WEIR_SCHED_RELEASING || given->is_leaving) &&
           planned_node == given->nomination->node;
}

bool nomination_may_bind(const struct cluster *cluster, int32_t task)
{
    enum weir_sched_task_state state = cluster->snapshot->tasks[task].state;
    return cluster->tasks[task].current_node < 0 &&
           (state == WEIR_SCHED_PENDING ||
            (state == WEIR_SCHED_PIPELINED && cluster->profile->nominations));
}
