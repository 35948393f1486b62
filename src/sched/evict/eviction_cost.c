#include "sched/evict/eviction_cost.h"

#include "base/macros.h"

/**
 * All devices that a job holds, in thousandths. A share by memory counts as on the smallest
 * devices. What this plan has bound has not started and does not count. Cost: its tasks.
 */
static int64_t cost_devices(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int64_t sum = 0;
    for (int32_t t = given->first_task; t < given->first_task + given->n_tasks; t++) {
        if (cluster->tasks[t].current_node >= 0 && cluster->tasks[t].phase != PHASE_BOUND) {
            sum += cluster_charge(cluster, t, cluster->tasks[t].current_node).accelerators;
        }
    }
    return sum;
}

bool eviction_cost_is_idle(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    return given->preemptibility == WEIR_SCHED_PREEMPTIBLE && given->utilisation_pct >= 0 &&
           given->utilisation_pct < cluster->profile->idle_pct && cost_devices(cluster, job) > 0;
}

int64_t eviction_cost(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    if (eviction_cost_is_idle(cluster, job)) {
        return -1;
    }
    if (!cluster->profile->least_eviction_cost) {
        return 0;
    }
    int64_t since = WEIR_MAX(given->started_ms, given->checkpoint_ms);
    since = since > 0 ? since : given->created_ms;
    __int128 cost =
        (__int128)WEIR_MAX(cluster->snapshot->now_ms - since, 0) * cost_devices(cluster, job);
    return (int64_t)WEIR_MIN(cost, (__int128)INT64_MAX);
}
