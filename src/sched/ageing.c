#include "sched/ageing.h"

int64_t ageing_waits_since(const struct weir_sched_job *job)
{
    return job->queued_ms > 0 ? job->queued_ms : job->created_ms;
}

bool ageing_is_due(const struct cluster *cluster, int32_t job)
{
    int64_t bound = cluster->profile->ageing_bound_ms;
    return bound > 0 &&
           cluster->snapshot->now_ms - ageing_waits_since(&cluster->snapshot->jobs[job]) > bound;
}
