/** The best spot for one task. */
#include "sched/place/place.h"

#include "sched/place/fgd_index.h"
#include "sched/place/wishes.h"
#include "sched/place/zones.h"
#include "sched/share/shares.h"

#include <string.h>

/** Spots in the order of preference: sub-domain, company on the device, ready now, few of its like on the node, what it
 *  wishes, few NUMA zones, packing by what counts most, start now, packing, node. */
struct candidate {
    int64_t level, key, wished;
    int32_t rank, node, n_alike, n_zones;
    bool is_shared, is_now, starts;
};

static bool is_better(const struct candidate *l, const struct candidate *r)
{
    if (l->rank != r->rank) {
        return l->rank < r->rank;
    }
    if (l->is_shared != r->is_shared) {
        return l->is_shared;
    }
    if (l->is_now != r->is_now) {
        return l->is_now;
    }
    if (l->n_alike != r->n_alike) {
        return l->n_alike < r->n_alike;
    }
    if (l->wished != r->wished) {
        return l->wished > r->wished;
    }
    if (l->n_zones != r->n_zones) {
        return l->n_zones < r->n_zones;
    }
    if (l->level != r->level) {
        return l->level < r->level;
    }
    if (l->starts != r->starts) {
        return l->starts;
    }
    return l->key != r->key ? l->key < r->key : l->node < r->node;
}

static const char *rule_of(const struct placer *placer, const struct weir_sched_demand *demand)
{
    const struct weir_sched_profile *profile = placer->cluster->profile;
    return demand->n_devices > 0 ? profile->placement : profile->placement_cpu;
}

static bool is_packing(const struct placer *placer, const struct weir_sched_demand *demand)
{
    return rule_of(placer, demand)[0] == 'b';
}

static bool is_fgd(const struct placer *placer, const struct weir_sched_demand *demand)
{
    return rule_of(placer, demand)[0] == 'f';
}

static int64_t placing_key(const struct placer *placer, int32_t task, int32_t node)
{
    const struct cluster *cluster = placer->cluster;
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    if (is_fgd(placer, demand)) {
        return fgd_index_cost(cluster->fgd, task, node);
    }
    const struct cluster_indices *indices = cluster_indices(placer->cluster);
    return (demand->n_devices > 0 ? &indices->by_room : &indices->by_cpu)->entries[node].key;
}

/** What of a key counts more than that a task starts at once. */
static int64_t level_of(const struct placer *placer, const struct weir_sched_demand *demand,
                        int64_t key)
{
    return demand->n_devices > 0 && is_packing(placer, demand) ? key / CLUSTER_KEY_WHOLE_DEVICE
                                                               : key;
}

static bool shares_are_wanted(const struct placer *placer, const struct weir_sched_demand *demand)
{
    return demand->n_devices > 0 && demand->device_milli < WEIR_SCHED_DEVICE &&
           is_packing(placer, demand) && placer->cluster->profile->placement_gpu[0] == 'p';
}

/** Over how many NUMA zones the task is taken to lie; where nothing aligns it, over all of them. */
static int32_t count_zones(const struct placer *placer, int32_t task,
                           const struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(placer->cluster, task);
    int32_t n_zones = placer->cluster->snapshot->nodes[assignment->node].n_zones;
    if (!zones_concern(placer->cluster, task) || is_fgd(placer, demand)) {
        return 0;
    }
    if (assignment->span > 0) {
        return assignment->span;
    }
    return n_zones > 0 ? n_zones : placer->cluster->numa.max_zones;
}

/** Add to each node by how many of those it has that the task is to be spread with. */
static void count_alike(const struct cluster *cluster, int32_t task, int32_t by)
{
    int32_t spread = cluster->snapshot->tasks[task].spread;
    for (int32_t i = 0; spread != 0 && i < cluster->n_spread; i++) {
        int32_t other = cluster->spread[i], node = cluster->tasks[other].planned_node;
        if (other != task && node >= 0 && cluster->snapshot->tasks[other].spread == spread) {
            cluster->alike[node] += by;
        }
    }
}

static void note_better(struct assignment *best, const struct assignment *found)
{
    int32_t *devices = best->devices;
    *best = *found;
    best->devices = devices;
}

static void find_in_list(struct placer *placer, int32_t task, const struct place_nodes *nodes,
                         struct assignment *best)
{
    const struct weir_sched_demand *demand = cluster_demand(placer->cluster, task);
    size_t n_devices = (size_t)demand->n_devices;
    struct assignment assignment = {.devices = placer->devices + placer->max_devices};
    struct candidate best_so_far = {0};
    int32_t n_nodes = nodes->list == NULL ? placer->cluster->snapshot->n_nodes : nodes->n;
    bool has_wishes = wishes_matter(placer->cluster, task);
    count_alike(placer->cluster, task, 1);
    if (has_wishes) {
        wishes_count(placer->cluster, task);
    }
    for (int32_t i = 0; i < n_nodes; i++) {
        assignment.node = nodes->list == NULL ? i : nodes->list[i];
        fits_find_within_shares(placer->cluster, task, &assignment);
        int64_t key = placing_key(placer, task, assignment.node);
        struct candidate candidate = {
            .level = level_of(placer, demand, key),
            .key = key,
            .rank = nodes->ranks != NULL ? nodes->ranks[assignment.node] : 0,
            .node = assignment.node,
            .n_alike = placer->cluster->alike != NULL ? placer->cluster->alike[assignment.node] : 0,
            .wished = has_wishes ? placer->cluster->wished[assignment.node] : 0,
            .n_zones = count_zones(placer, task, &assignment),
            .is_shared = assignment.is_shared && shares_are_wanted(placer, demand),
            .is_now = assignment.is_ready && !placer->future_only,
            .starts = assignment.when == FITS_NOW && !placer->future_only,
        };
        if (assignment.when >= FITS_FUTURE &&
            (best->when < FITS_FUTURE || is_better(&candidate, &best_so_far))) {
            best_so_far = candidate;
            note_better(best, &assignment);
            if (n_devices > 0) {
                memcpy(best->devices, assignment.devices, n_devices * sizeof(int32_t));
            }
        }
    }
    count_alike(placer->cluster, task, -1);
    if (best->when >= FITS_FUTURE && is_fgd(placer, demand)) {
        fgd_index_choose(placer->cluster->fgd, task, best);
    }
}

/** Where things are ready now a task goes first, even if the device that it is to share is not. */
static bool is_fit(const struct assignment *assignment, enum fits_when when)
{
    return when == FITS_NOW ? assignment->is_ready : assignment->when >= when;
}

/** The first node of an index, from `from` upwards, that fits at least at `when`; of those that are
 *  equal in what counts most one on which the task starts, if there is any. */
static bool walk_up(struct placer *placer, int32_t task, const struct node_index *index,
                    int64_t from, enum fits_when when, bool must_share,
                    struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(placer->cluster, task);
    uint32_t open = shares_open_parts(placer->cluster, task);
    int32_t at = node_index_at_least(index, open, from, 0), first = -1;
    int64_t level = 0;
    while (at >= 0 && (first < 0 || level_of(placer, demand, index->entries[at].key) == level)) {
        assignment->node = at;
        fits_find_within_shares(placer->cluster, task, assignment);
        if (is_fit(assignment, when) && (!must_share || assignment->is_shared)) {
            if (assignment->when >= when) {
                return true;
            }
            first = first < 0 ? at : first;
            level = level_of(placer, demand, index->entries[first].key);
        }
        at = node_index_at_least(index, open, index->entries[at].key, at + 1);
    }
    if (first >= 0) {
        assignment->node = first;
        fits_find_within_shares(placer->cluster, task, assignment);
    }
    return first >= 0;
}

static bool walk_cpu(struct placer *placer, int32_t task, enum fits_when when,
                     struct assignment *assignment)
{
    const struct node_index *index = &cluster_indices(placer->cluster)->by_cpu;
    int64_t least = cluster_least_key(placer->cluster, cluster_demand(placer->cluster, task));
    uint32_t open = shares_open_parts(placer->cluster, task);
    int32_t at = node_index_at_least(index, open, least, 0);
    while (at >= 0) {
        int64_t key = index->entries[at].key;
        if (key >= CLUSTER_KEY_WITH_DEVICES && key < CLUSTER_KEY_WITH_DEVICES + least) {
            at = node_index_at_least(index, open, CLUSTER_KEY_WITH_DEVICES + least, 0);
            continue;
        }
        assignment->node = at;
        fits_find_within_shares(placer->cluster, task, assignment);
        if (is_fit(assignment, when)) {
            return true;
        }
        at = node_index_at_least(index, open, key, at + 1);
    }
    return false;
}

/** Company on a device comes before an early start: it keeps whole devices free. */
static bool find_shared(struct placer *placer, int32_t task, enum fits_when when,
                        struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(placer->cluster, task);
    return shares_are_wanted(placer, demand) &&
           walk_up(placer, task, &cluster_indices(placer->cluster)->by_shared,
                   cluster_least_key(placer->cluster, demand), when, true, assignment);
}

static bool find_anywhere(struct placer *placer, int32_t task, enum fits_when when,
                          struct assignment *assignment)
{
    struct cluster *cluster = placer->cluster;
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    if (is_fgd(placer, demand)) {
        return fgd_index_find(cluster->fgd, task, when, assignment);
    }
    if (demand->n_devices == 0) {
        return walk_cpu(placer, task, when, assignment);
    }
    return walk_up(placer, task, &cluster_indices(cluster)->by_room,
                   cluster_least_key(cluster, demand), when, false, assignment);
}

void placer_find(struct placer *placer, int32_t task, const struct place_nodes *nodes,
                 struct assignment *assignment)
{
    assignment->devices = placer->devices;
    assignment->when = FITS_NO;
    const struct weir_sched_demand *demand = cluster_demand(placer->cluster, task);
    bool zones_matter = zones_concern(placer->cluster, task) && !is_fgd(placer, demand);
    bool is_spread = placer->cluster->snapshot->tasks[task].spread != 0;
    /* No index knows of these. */
    if (nodes->list != NULL || zones_matter || is_spread || wishes_matter(placer->cluster, task)) {
        find_in_list(placer, task, nodes, assignment);
        return;
    }
    bool tries_now = !placer->future_only;
    if (!(tries_now && find_shared(placer, task, FITS_NOW, assignment)) &&
        !find_shared(placer, task, FITS_FUTURE, assignment) &&
        !(tries_now && find_anywhere(placer, task, FITS_NOW, assignment)) &&
        !find_anywhere(placer, task, FITS_FUTURE, assignment)) {
        assignment->when = FITS_NO;
    }
}
