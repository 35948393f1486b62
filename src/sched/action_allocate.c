#include "sched/actions.h"

#include "sched/chunk.h"

#include <string.h>

void action_list_waiting(struct cycle *cycle)
{
    const struct cluster *cluster = &cycle->cluster;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        cycle->is_listed[j] = chunk_next(cluster, j, cycle->tasks) > 0;
    }
}

/** Place the job's next tasks. @return Whether there is something left of it to place. */
static bool allocate_job(struct cycle *cycle, int32_t job)
{
    struct cluster *cluster = &cycle->cluster;
    struct weir_sched_amount amount, fixed;
    struct weir_sched_wait *wait = &cluster->jobs[job].wait;
    int32_t n = chunk_next(cluster, job, cycle->tasks);
    chunk_amount(cluster, cycle->tasks, n, &amount, &fixed);
    if (n == 0 ||
        !shares_admit(cluster, cluster->snapshot->jobs[job].queue, &amount, &fixed, wait) ||
        !placer_place(&cycle->placer, job, cycle->tasks, n, wait)) {
        return false;
    }
    cluster_commit(cluster);
    return cluster->groups[cluster->jobs[job].first_group].n_pending > 0;
}

weir_status action_allocate(struct cycle *cycle)
{
    struct order order;
    action_list_waiting(cycle);
    weir_status status = order_init(&order, &cycle->cluster, cycle->is_listed, false);
    while (status == WEIR_OK) {
        int32_t job = order_pop(&order);
        if (job < 0) {
            break;
        }
        if (allocate_job(cycle, job)) {
            order_push(&order, job);
        }
        status = cycle->cluster.status;
    }
    order_fini(&order);
    return status;
}
