#include "sched/model/cluster.h"

#include "base/macros.h"
#include "sched/model/fraction.h"
#include "sched/place/fgd_index.h"

#define PART_UNITS ((int64_t)1000000000000)

void cluster_index_node(struct cluster *cluster, int32_t at)
{
    if (cluster->fgd != NULL) {
        fgd_index_note(cluster->fgd, at);
    }
    if (!cluster->index.is_stale[at]) {
        cluster->index.is_stale[at] = true;
        cluster->index.stale[cluster->index.n_stale++] = at;
    }
}

/** A share of the whole, for an order: equal shares of different wholes are equal. */
static int64_t part_of(int64_t amount, int64_t whole)
{
    return whole > 0 ? (int64_t)((__int128)amount * PART_UNITS / whole) : 0;
}

/** Who packs looks for the fewest whole devices left, and only then at what is left of others. */
static int64_t key_by_room(const struct cluster *cluster, int32_t at)
{
    const struct node_state *node = &cluster->nodes[at];
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    int64_t all = given->n_devices * weir_sched_device_milli(given);
    return cluster->profile->placement[0] == 's'
               ? PART_UNITS - part_of(node->room_milli, all)
               : node->whole_future * CLUSTER_KEY_WHOLE_DEVICE + node->room_milli;
}

/** Whether the node has devices of any kind, as a whole or in parts. */
static bool has_devices(const struct weir_sched_node *node)
{
    bool has_some = node->n_devices > 0;
    for (int32_t i = 0; i < node->n_extras && !has_some; i++) {
        has_some = node->extras[i].count > 0 && node->extras[i].device_milli > 0;
    }
    return has_some;
}

static int64_t key_by_cpu(const struct cluster *cluster, int32_t at)
{
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    int64_t room = WEIR_MAX(given->cpu_milli - cluster->nodes[at].cpu_future, 0);
    int64_t key = cluster->profile->placement_cpu[0] == 's'
                      ? PART_UNITS - part_of(room, given->cpu_milli)
                      : room;
    return key + (has_devices(given) ? CLUSTER_KEY_WITH_DEVICES : 0);
}

static void index_node(struct cluster *cluster, int32_t at)
{
    const struct node_state *node = &cluster->nodes[at];
    if (!node->is_open) {
        return;
    }
    if (cluster->snapshot->nodes[at].n_devices > 0) {
        int64_t key = key_by_room(cluster, at);
        node_index_set(&cluster->index.by.by_room, at, key);
        if (node->n_shared > 0) {
            node_index_set(&cluster->index.by.by_shared, at, key);
        } else {
            node_index_clear(&cluster->index.by.by_shared, at);
        }
    }
    node_index_set(&cluster->index.by.by_cpu, at, key_by_cpu(cluster, at));
}

int64_t cluster_least_key(const struct cluster *cluster, const struct weir_sched_demand *demand)
{
    const struct weir_sched_profile *profile = cluster->profile;
    if (demand->n_devices == 0) {
        return profile->placement_cpu[0] == 's' ? 0 : demand->cpu_milli;
    }
    if (profile->placement[0] == 's') {
        return 0;
    }
    return demand->device_milli == WEIR_SCHED_DEVICE
               ? demand->n_devices * CLUSTER_KEY_WHOLE_DEVICE
               : WEIR_MAX(fraction_least(demand), demand->n_devices);
}

const struct cluster_indices *cluster_indices(struct cluster *cluster)
{
    for (int32_t i = 0; i < cluster->index.n_stale; i++) {
        cluster->index.is_stale[cluster->index.stale[i]] = false;
        index_node(cluster, cluster->index.stale[i]);
    }
    cluster->index.n_stale = 0;
    return &cluster->index.by;
}
