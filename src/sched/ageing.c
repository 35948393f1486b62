#include "sched/ageing.h"

#include "sched/service.h"

int64_t ageing_waits_since(const struct weir_sched_job *job)
{
    return job->queued_ms > 0 ? job->queued_ms : job->created_ms;
}

/** Whether to have waited until then was too long. */
static bool is_over(const struct cluster *cluster, int32_t job, int64_t until_ms)
{
    int64_t bound = cluster->profile->ageing_bound_ms;
    int64_t waits = until_ms - ageing_waits_since(&cluster->snapshot->jobs[job]);
    return bound > 0 && waits >> service_level(cluster, job) > bound;
}

bool ageing_is_due(const struct cluster *cluster, int32_t job)
{
    return is_over(cluster, job, cluster->snapshot->now_ms);
}

bool ageing_is_spared(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int64_t now = cluster->snapshot->now_ms;
    int64_t start = given->started_ms > 0 ? given->started_ms : now;
    return is_over(cluster, job, start) && now - start <= start - ageing_waits_since(given);
}
