#include "sched/place/wishes.h"

#include "sched/place/affinity.h"

#include <stdlib.h>
#include <string.h>

weir_status wishes_init(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    bool is_any = false;
    for (int32_t i = 0; i < snapshot->n_tasks && !is_any; i++) {
        is_any = wishes_matter(cluster, i);
    }
    if (!is_any) {
        return WEIR_OK;
    }
    cluster->wished = calloc((size_t)snapshot->n_nodes + 1, sizeof *cluster->wished);
    cluster->company = calloc((size_t)snapshot->n_nodes + 1, sizeof *cluster->company);
    return cluster->wished != NULL && cluster->company != NULL ? WEIR_OK : WEIR_ERR_NOMEM;
}

bool wishes_matter(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *wants = &cluster->snapshot->tasks[task];
    return wants->scores != NULL || wants->n_wishes > 0;
}

/** Add the weight to each node for each task that is meant and near it. */
static void add_company(struct cluster *cluster, int32_t task, const struct weir_sched_wish *wish)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    memset(cluster->company, 0, (size_t)snapshot->n_nodes * sizeof *cluster->company);
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        int32_t node = cluster->tasks[i].planned_node;
        if (i != task && node >= 0 && wish->domains[node] >= 0 &&
            affinity_has_labels(&snapshot->tasks[i], wish->labels, wish->n_labels)) {
            cluster->company[wish->domains[node]]++;
        }
    }
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        if (wish->domains[i] >= 0) {
            cluster->wished[i] += (int64_t)wish->weight * cluster->company[wish->domains[i]];
        }
    }
}

void wishes_count(struct cluster *cluster, int32_t task)
{
    const struct weir_sched_task *wants = &cluster->snapshot->tasks[task];
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        cluster->wished[i] = wants->scores != NULL ? wants->scores[i] : 0;
    }
    for (int32_t i = 0; i < wants->n_wishes; i++) {
        add_company(cluster, task, &wants->wishes[i]);
    }
}
