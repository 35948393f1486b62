#include "sched/order/service.h"

#include "base/macros.h"
#include "sched/evict/eviction_cost.h"
#include "sched/order/ageing.h"

int service_level_of(const struct cluster *cluster, int64_t served_ms)
{
    int64_t base_ms = cluster->profile->service_base_ms, level = 0;
    if (base_ms > 0) {
        for (int64_t n = served_ms / base_ms; n > 0; n /= 2) {
            level++;
        }
    }
    return (int)WEIR_MIN(level, cluster->profile->service_levels - 1);
}

int service_level(const struct cluster *cluster, int32_t job)
{
    return service_level_of(cluster, cluster->snapshot->jobs[job].served_ms);
}

bool service_is_new(const struct cluster *cluster, int32_t job)
{
    return cluster->profile->service_base_ms > 0 && cluster->profile->service_levels > 1 &&
           service_level(cluster, job) == 0;
}

static bool is_last(const struct cluster *cluster, int level)
{
    return level > 0 && level == cluster->profile->service_levels - 1;
}

int service_compare(const struct cluster *cluster, int32_t l, int32_t r)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    int left = service_level(cluster, l), right = service_level(cluster, r);
    if (left != right) {
        return left < right ? -1 : 1;
    }
    if (!is_last(cluster, left) || jobs[l].waited_ms == jobs[r].waited_ms) {
        return 0;
    }
    return jobs[l].waited_ms > jobs[r].waited_ms ? -1 : 1;
}

/** How long a job waits this time. */
static int64_t waits_ms(const struct cluster *cluster, int32_t job)
{
    return cluster->snapshot->now_ms - ageing_waits_since(&cluster->snapshot->jobs[job]);
}

/** What would be undone of a job: all since its last checkpoint, unless it is asked for one. */
static int64_t undone_ms(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    if (given->can_checkpoint && cluster->profile->evict_grace_ms >= 0) {
        return 0;
    }
    return cluster->snapshot->now_ms - WEIR_MAX(given->started_ms, given->checkpoint_ms);
}

/** Whether what would be undone is not too much for what the job has waited. */
static bool is_worth_it(const struct cluster *cluster, int32_t job, int64_t asks_milli,
                        int32_t victim)
{
    int64_t undone = undone_ms(cluster, victim);
    int64_t more_ms = undone - SERVICE_LOSS_MS, worth_ms = waits_ms(cluster, job) / 2;
    if (more_ms <= 0 || more_ms > worth_ms) {
        return more_ms <= 0;
    }
    int64_t holds_milli = eviction_cost_devices(cluster, victim);
    return holds_milli <= asks_milli ||
           (__int128)more_ms * holds_milli <= (__int128)worth_ms * asks_milli;
}

bool service_may_take(const struct cluster *cluster, int32_t job, int64_t asks_milli,
                      int32_t victim)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    int level = service_level(cluster, job), of_victim = service_level(cluster, victim);
    if (level > of_victim || (level == of_victim && !is_last(cluster, level))) {
        return false;
    }
    int64_t longer_ms = jobs[job].waited_ms - jobs[victim].waited_ms;
    return (level < of_victim || longer_ms > cluster->profile->service_swap_ms) &&
           is_worth_it(cluster, job, asks_milli, victim);
}

bool service_is_no_easier(const struct cluster *cluster, int32_t than, int32_t job)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    return service_level(cluster, job) >= service_level(cluster, than) &&
           jobs[job].waited_ms <= jobs[than].waited_ms &&
           waits_ms(cluster, job) <= waits_ms(cluster, than);
}
