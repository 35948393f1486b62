#include "sched/order/ageing.h"

#include "sched/evict/eviction_cost.h"
#include "sched/order/service.h"

int64_t ageing_waits_since(const struct weir_sched_job *job)
{
    return job->queued_ms > 0 ? job->queued_ms : job->created_ms;
}

/** For how long a job had waited then, halved with each level: levels of more service age slower.
 */
static int64_t scaled_wait_ms(const struct cluster *cluster, int32_t job, int64_t until_ms)
{
    int64_t waits = until_ms - ageing_waits_since(&cluster->snapshot->jobs[job]);
    return waits >> service_level(cluster, job);
}

static bool is_over(const struct cluster *cluster, int32_t job, int64_t until_ms)
{
    int64_t bound = cluster->profile->ageing_bound_ms;
    return bound > 0 && scaled_wait_ms(cluster, job, until_ms) > bound;
}

bool ageing_is_due(const struct cluster *cluster, int32_t job)
{
    return is_over(cluster, job, cluster->snapshot->now_ms);
}

int ageing_compare(const struct cluster *cluster, int32_t l, int32_t r)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    int64_t now = cluster->snapshot->now_ms;
    int64_t left = scaled_wait_ms(cluster, l, now), right = scaled_wait_ms(cluster, r, now);
    if (left == right) {
        left = -ageing_waits_since(&jobs[l]);
        right = -ageing_waits_since(&jobs[r]);
    }
    return left > right ? -1 : left < right;
}

/** Whether this run has brought the job to its next level, with the devices that it holds now. */
static bool has_risen(const struct cluster *cluster, int32_t job, int64_t ran_ms)
{
    __int128 had_ms = (__int128)eviction_cost_devices(cluster, job) * ran_ms / WEIR_SCHED_DEVICE;
    int64_t served_ms = cluster->snapshot->jobs[job].served_ms;
    int64_t before_ms = had_ms < served_ms ? served_ms - (int64_t)had_ms : 0;
    return service_level_of(cluster, before_ms) < service_level(cluster, job);
}

bool ageing_is_spared(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int64_t now = cluster->snapshot->now_ms;
    int64_t start = given->started_ms > 0 ? given->started_ms : now;
    return is_over(cluster, job, start) && now - start <= start - ageing_waits_since(given) &&
           !has_risen(cluster, job, now - start);
}
