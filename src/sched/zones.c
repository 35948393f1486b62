#include "sched/zones.h"

#include "base/macros.h"

static bool do_matter(const struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    return node->n_zones > 0 && node->numa_policy != WEIR_SCHED_NUMA_NONE &&
           cluster_demand(cluster, task)->numa_aligned;
}

/** Whether an equal part of the task fits each zone of the mask. */
static bool mask_fits(const struct cluster *cluster, int32_t task, int32_t at, uint32_t mask,
                      bool is_empty, bool is_now)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    int32_t n = __builtin_popcount(mask);
    int64_t cpu = (demand->cpu_milli + n - 1) / n, memory = (demand->memory_bytes + n - 1) / n;
    for (int32_t i = 0; i < node->n_zones; i++) {
        if ((mask & 1U << i) == 0) {
            continue;
        }
        const struct weir_sched_numa_zone *zone = &node->zones[i];
        const struct zone_state *state = &cluster->zones[cluster->nodes[at].first_zone + i];
        int64_t cpu_used = 0, memory_used = 0;
        if (!is_empty) {
            cpu_used = is_now ? WEIR_MAX(state->cpu_now, state->cpu_future) : state->cpu_future;
            memory_used =
                is_now ? WEIR_MAX(state->memory_now, state->memory_future) : state->memory_future;
        }
        if ((zone->cpu_milli >= 0 && cpu > zone->cpu_milli - cpu_used) ||
            (zone->memory_bytes >= 0 && memory > zone->memory_bytes - memory_used)) {
            return false;
        }
    }
    return true;
}

/** Zones in which the devices lie; 0 if zones have no devices of their own. */
static uint32_t zones_of_devices(const struct weir_sched_node *node, const int32_t *devices,
                                 int32_t n_devices)
{
    uint32_t mask = 0;
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t end = 0;
        for (int32_t z = 0; z < node->n_zones; z++) {
            if (node->zones[z].n_devices < 0) {
                return 0;
            }
            bool is_in = devices[i] >= end && devices[i] < end + node->zones[z].n_devices;
            mask |= is_in ? 1U << z : 0;
            end += node->zones[z].n_devices;
        }
    }
    return mask;
}

/** The least number of zones that could hold the task on the empty node; 0: none. */
static int32_t fewest(const struct cluster *cluster, int32_t task, int32_t at)
{
    int32_t n_zones = cluster->snapshot->nodes[at].n_zones, best = 0;
    for (uint32_t mask = 1; mask < 1U << n_zones; mask++) {
        int32_t n = __builtin_popcount(mask);
        if ((best == 0 || n < best) && mask_fits(cluster, task, at, mask, true, false)) {
            best = n;
        }
    }
    return best;
}

bool zones_fit_empty(const struct cluster *cluster, int32_t task, int32_t at)
{
    if (!do_matter(cluster, task, at)) {
        return true;
    }
    int32_t n = fewest(cluster, task, at);
    bool is_single = cluster->snapshot->nodes[at].numa_policy == WEIR_SCHED_NUMA_SINGLE;
    return n == 1 || (n > 0 && !is_single);
}

bool zones_find(const struct cluster *cluster, int32_t task, int32_t at, bool is_now,
                const int32_t *devices, uint32_t *out_zones)
{
    *out_zones = 0;
    if (!do_matter(cluster, task, at)) {
        return true;
    }
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    int32_t n = fewest(cluster, task, at);
    uint32_t needed = zones_of_devices(node, devices, cluster_demand(cluster, task)->n_devices);
    for (uint32_t mask = 1; mask < 1U << node->n_zones; mask++) {
        if (__builtin_popcount(mask) == n && (needed & ~mask) == 0 &&
            mask_fits(cluster, task, at, mask, false, is_now)) {
            *out_zones = mask;
            return true;
        }
    }
    return false;
}
