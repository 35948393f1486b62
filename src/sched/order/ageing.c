#include "sched/order/ageing.h"

int64_t ageing_waits_since(const struct weir_sched_job *job)
{
    return job->queued_ms > 0 ? job->queued_ms : job->created_ms;
}

static bool is_over(const struct cluster *cluster, int32_t job, int64_t until_ms)
{
    int64_t bound = cluster->profile->ageing_bound_ms;
    return bound > 0 && until_ms - ageing_waits_since(&cluster->snapshot->jobs[job]) > bound;
}

bool ageing_is_due(const struct cluster *cluster, int32_t job)
{
    return is_over(cluster, job, cluster->snapshot->now_ms);
}

int ageing_compare(const struct cluster *cluster, int32_t l, int32_t r)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    int64_t left = ageing_waits_since(&jobs[l]), right = ageing_waits_since(&jobs[r]);
    return left < right ? -1 : left > right;
}

bool ageing_is_spared(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int64_t now = cluster->snapshot->now_ms;
    int64_t start = given->started_ms > 0 ? given->started_ms : now;
    return is_over(cluster, job, start) && now - start <= start - ageing_waits_since(given);
}
