#include "sched/place.h"

#include "base/macros.h"
#include "sched/explain.h"
#include "sched/fgd_index.h"

#include <stdlib.h>
#include <string.h>

/** One domain that a sub-group could lie in. */
struct candidate {
    int32_t first, n; /**< Span of the topology's nodes. */
    int32_t level;
    int32_t n_fit; /**< So many of the group's tasks fit, if they were alike. */
    int32_t turn;  /**< Place of the domain around it in the order of preference. */
    int32_t path;  /**< Place in the order of paths: the last tie-break. */
};

/** What is being placed, for the recursion down the sub-groups. */
struct placing {
    struct placer *placer;
    const int32_t *tasks;
    int32_t n_tasks;
    int32_t n_placed;
    int32_t failed; /**< First task without a place; -1. */
    bool is_bound_to_domain;
    struct weir_sched_wait *wait;
};

weir_status placer_init(struct placer *placer, struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    *placer = (struct placer){.cluster = cluster, .max_devices = 1};
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        placer->max_devices = WEIR_MAX(placer->max_devices, snapshot->nodes[i].n_devices);
    }
    placer->devices = calloc(2 * (size_t)placer->max_devices, sizeof(int32_t));
    placer->ranks = calloc((size_t)snapshot->n_nodes + 1, sizeof(int32_t));
    if (placer->devices == NULL || placer->ranks == NULL) {
        return WEIR_ERR_NOMEM;
    }
    if (cluster->profile->placement[0] == 'f' || cluster->profile->placement_cpu[0] == 'f') {
        WEIR_TRY(fgd_index_create(cluster, &cluster->fgd));
    }
    return topology_make(snapshot, &placer->topologies);
}

void placer_fini(struct placer *placer)
{
    if (placer->cluster != NULL) {
        topology_free(placer->topologies, placer->cluster->snapshot->n_topologies);
        fgd_index_destroy(placer->cluster->fgd);
        placer->cluster->fgd = NULL;
    }
    free(placer->devices);
    free(placer->ranks);
}

/** How many tasks like this one the node has room for in the future. */
static int32_t count_fits(const struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    const struct node_state *node = &cluster->nodes[at];
    if (!fits_ever(cluster, task, at)) {
        return 0;
    }
    int64_t n = given->n_tasks_max < 0 ? INT32_MAX : given->n_tasks_max - node->tasks_future;
    if (demand->cpu_milli > 0) {
        n = WEIR_MIN(n, (given->cpu_milli - node->cpu_future) / demand->cpu_milli);
    }
    if (demand->memory_bytes > 0) {
        n = WEIR_MIN(n, (given->memory_bytes - node->memory_future) / demand->memory_bytes);
    }
    if (demand->n_devices > 0 && demand->device_milli == WEIR_SCHED_DEVICE) {
        n = WEIR_MIN(n, node->whole_future / demand->n_devices);
    } else if (demand->n_devices > 0) {
        int64_t units = WEIR_MAX(cluster_device_units(cluster, task, at), 1), n_shares = 0;
        for (int32_t d = 0; d < given->n_devices; d++) {
            int64_t used = cluster->devices[node->first_device + d].future;
            n_shares += WEIR_MAX(node->device_size - used, 0) / units;
        }
        n = WEIR_MIN(n, n_shares / demand->n_devices);
    }
    return (int32_t)WEIR_MAX(n, 0);
}

static bool place_task(struct placing *placing, int32_t task, const struct place_nodes *nodes)
{
    struct placer *placer = placing->placer;
    struct fits_spot spot;
    placer_find(placer, task, nodes, &spot);
    if (spot.when < FITS_FUTURE) {
        placing->failed = placing->failed < 0 ? task : placing->failed;
        return false;
    }
    bool is_now = spot.when == FITS_NOW && !placer->pipeline_only;
    cluster_place(placer->cluster, task, is_now ? PHASE_BOUND : PHASE_PIPELINED, spot.node,
                  spot.devices, spot.zones);
    placing->n_placed++;
    return true;
}

static bool place_group(struct placing *placing, int32_t g, const struct place_nodes *nodes);

static bool place_members(struct placing *placing, int32_t g, const struct place_nodes *nodes)
{
    const struct cluster *cluster = placing->placer->cluster;
    if (cluster->groups[g].first_child < 0) {
        for (int32_t i = 0; i < placing->n_tasks; i++) {
            if (cluster->tasks[placing->tasks[i]].group == g &&
                !place_task(placing, placing->tasks[i], nodes)) {
                return false;
            }
        }
        return true;
    }
    for (int32_t c = cluster->groups[g].first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        if (!place_group(placing, c, nodes)) {
            return false;
        }
    }
    return true;
}

/** The tasks to place below a group: how many, the first, and whether all are alike. */
static int32_t count_members(const struct placing *placing, int32_t g, int32_t *out_first,
                             bool *out_alike)
{
    const struct cluster *cluster = placing->placer->cluster;
    int32_t n = 0;
    *out_alike = true;
    for (int32_t i = 0; i < placing->n_tasks; i++) {
        int32_t task = placing->tasks[i];
        if (group_is_below(cluster, cluster->tasks[task].group, g)) {
            *out_first = n == 0 ? task : *out_first;
            *out_alike =
                *out_alike && cluster->tasks[task].shape == cluster->tasks[*out_first].shape;
            n++;
        }
    }
    return n;
}

/** A node on which a task of the group is or will be; -1. */
static int32_t find_member_node(const struct cluster *cluster, int32_t g)
{
    const struct group_state *group = &cluster->groups[g];
    for (int32_t i = 0; i < group->n_tasks; i++) {
        int32_t target = cluster->tasks[cluster->task_order[group->first_task + i]].target;
        if (target >= 0) {
            return target;
        }
    }
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        int32_t target = find_member_node(cluster, c);
        if (target >= 0) {
            return target;
        }
    }
    return -1;
}

static int by_preference(const void *left, const void *right)
{
    const struct candidate *l = left, *r = right;
    if (l->level != r->level) {
        return l->level > r->level ? -1 : 1; /* Narrow ones first. */
    }
    if (l->turn != r->turn) {
        return l->turn < r->turn ? -1 : 1;
    }
    if (l->n_fit != r->n_fit) {
        return l->n_fit < r->n_fit ? -1 : 1; /* The fullest first. */
    }
    return l->path < r->path ? -1 : l->path > r->path;
}

static int by_room(const void *left, const void *right)
{
    const struct candidate *l = left, *r = right;
    if (l->n_fit != r->n_fit) {
        return l->n_fit > r->n_fit ? -1 : 1;
    }
    return l->path > r->path ? -1 : l->path < r->path;
}

static struct candidate *collect(const struct placing *placing, const struct topology *topology,
                                 int32_t low, int32_t high, int32_t task, int32_t *out_n)
{
    int32_t first = topology->level_first[low], end = topology->level_first[high + 1];
    struct candidate *candidates = calloc((size_t)(end - first) + 1, sizeof *candidates);
    if (candidates == NULL) {
        placing->placer->cluster->status = WEIR_ERR_NOMEM;
        return NULL;
    }
    for (int32_t d = first; d < end; d++) {
        const struct topology_domain *domain = &topology->domains[d];
        struct candidate *candidate = &candidates[d - first];
        *candidate = (struct candidate){
            .first = domain->first, .n = domain->n, .level = domain->level, .path = d};
        for (int32_t i = domain->first; i < domain->first + domain->n; i++) {
            candidate->n_fit += count_fits(placing->placer->cluster, task, topology->nodes[i]);
        }
    }
    *out_n = end - first;
    return candidates;
}

/** Sort candidates so that those of one wide domain lie together, the fullest wide one first. Takes
 *  domains of all levels and returns how many are of level `low` or narrower; they come first. */
static int32_t sort_by_preference(const struct placing *placing, const struct topology *topology,
                                  struct candidate *candidates, int32_t low, int32_t high)
{
    int32_t *turns = calloc((size_t)topology->n_domains + 1, sizeof *turns);
    if (turns == NULL) {
        placing->placer->cluster->status = WEIR_ERR_NOMEM;
        return 0;
    }
    for (int32_t l = 0; l <= high; l++) {
        int32_t first = topology->level_first[l], end = topology->level_first[l + 1];
        for (int32_t d = first; d < end; d++) {
            int32_t parent = topology->domains[d].parent;
            candidates[d].turn = parent < 0 ? 0 : turns[parent];
        }
        qsort(candidates + first, (size_t)(end - first), sizeof *candidates, by_preference);
        for (int32_t i = first; i < end; i++) {
            turns[candidates[i].path] = i;
        }
    }
    free(turns);
    int32_t n = topology->level_first[high + 1], n_wide = topology->level_first[low];
    memmove(candidates, candidates + n_wide, (size_t)(n - n_wide) * sizeof *candidates);
    qsort(candidates, (size_t)(n - n_wide), sizeof *candidates, by_preference);
    return n - n_wide;
}

/** Within a wide domain the sub-domains with most room come first: it keeps the group together. */
static bool rank_nodes(const struct placing *placing, const struct topology *topology,
                       int32_t level, int32_t task)
{
    int32_t n = 0;
    struct candidate *domains = collect(placing, topology, level, level, task, &n);
    if (domains == NULL) {
        return false;
    }
    qsort(domains, (size_t)n, sizeof *domains, by_room);
    for (int32_t i = 0; i < placing->placer->cluster->snapshot->n_nodes; i++) {
        placing->placer->ranks[i] = n;
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = domains[i].first; j < domains[i].first + domains[i].n; j++) {
            placing->placer->ranks[topology->nodes[j]] = i;
        }
    }
    free(domains);
    return true;
}

/** The nodes of a span that are also among `within`, in the order of nodes. */
static int by_number(const void *left, const void *right)
{
    int32_t l = *(const int32_t *)left, r = *(const int32_t *)right;
    return l < r ? -1 : l > r;
}

static int32_t intersect(const int32_t *span, int32_t n_span, const struct place_nodes *within,
                         int32_t *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < n_span; i++) {
        if (within->list == NULL ||
            bsearch(&span[i], within->list, (size_t)within->n, sizeof *span, by_number) != NULL) {
            out[n++] = span[i];
        }
    }
    qsort(out, (size_t)n, sizeof *out, by_number);
    return n;
}

static bool try_nodes(struct placing *placing, int32_t g, const struct place_nodes *nodes)
{
    size_t checkpoint = cluster_checkpoint(placing->placer->cluster);
    int32_t n_placed = placing->n_placed;
    if (place_members(placing, g, nodes)) {
        return true;
    }
    cluster_rollback(placing->placer->cluster, checkpoint);
    placing->n_placed = n_placed;
    return false;
}

static bool try_domains(struct placing *placing, int32_t g, const struct place_nodes *nodes,
                        struct candidate *candidates, int32_t n, int32_t *buffer)
{
    const struct cluster *cluster = placing->placer->cluster;
    const struct group_state *group = &cluster->groups[g];
    const struct topology *topology = &placing->placer->topologies[group->topology];
    int32_t first_task = -1, member_node = find_member_node(cluster, g);
    bool are_alike;
    int32_t n_tasks = count_members(placing, g, &first_task, &are_alike);
    int32_t home = member_node < 0 || group->required_level < 0
                       ? -1
                       : topology_domain_of(topology, group->required_level, member_node);
    for (int32_t i = 0; i < n && cluster->status == WEIR_OK; i++) {
        const struct candidate *candidate = &candidates[i];
        bool is_home = home < 0 || (candidate->first >= topology->domains[home].first &&
                                    candidate->first + candidate->n <=
                                        topology->domains[home].first + topology->domains[home].n);
        if (!is_home || (are_alike && candidate->n_fit < n_tasks)) {
            continue;
        }
        struct place_nodes domain = {.list = buffer, .has_ranks = nodes->has_ranks};
        domain.n = intersect(topology->nodes + candidate->first, candidate->n, nodes, buffer);
        if (group->preferred_level > candidate->level) {
            domain.has_ranks = rank_nodes(placing, topology, group->preferred_level, first_task);
        }
        if (domain.n > 0 && try_nodes(placing, g, &domain)) {
            return true;
        }
    }
    return false;
}

/** Without a domain that holds the group: over all nodes, domains with most room first. */
static bool place_anywhere(struct placing *placing, int32_t g, const struct place_nodes *nodes,
                           int32_t first_task)
{
    const struct cluster *cluster = placing->placer->cluster;
    const struct group_state *group = &cluster->groups[g];
    const struct topology *topology = &placing->placer->topologies[group->topology];
    struct place_nodes ranked = *nodes;
    int32_t *all = NULL;
    if (nodes->list == NULL) {
        all = malloc(((size_t)cluster->snapshot->n_nodes + 1) * sizeof *all);
        for (int32_t i = 0; i < cluster->snapshot->n_nodes && all != NULL; i++) {
            all[i] = i;
        }
        ranked = (struct place_nodes){.list = all, .n = cluster->snapshot->n_nodes};
    }
    ranked.has_ranks = rank_nodes(placing, topology, group->preferred_level, first_task);
    bool is_placed = ranked.list != NULL && ranked.has_ranks && try_nodes(placing, g, &ranked);
    free(all);
    return is_placed;
}

static bool place_group(struct placing *placing, int32_t g, const struct place_nodes *nodes)
{
    struct cluster *cluster = placing->placer->cluster;
    const struct group_state *group = &cluster->groups[g];
    int32_t first_task = -1;
    bool are_alike;
    if (count_members(placing, g, &first_task, &are_alike) == 0) {
        return true;
    }
    if (group->topology < 0 || (group->required_level < 0 && group->preferred_level < 0)) {
        return place_members(placing, g, nodes);
    }
    const struct topology *topology = &placing->placer->topologies[group->topology];
    int32_t low = group->required_level < 0 ? 0 : group->required_level;
    int32_t high = WEIR_MAX(group->preferred_level, low), n = 0;
    struct candidate *candidates = collect(placing, topology, 0, high, first_task, &n);
    int32_t *buffer = malloc(((size_t)topology->n_nodes + 1) * sizeof *buffer);
    bool is_placed = false;
    if (candidates == NULL || buffer == NULL) {
        cluster->status = WEIR_ERR_NOMEM;
    } else {
        n = sort_by_preference(placing, topology, candidates, low, high);
        is_placed = try_domains(placing, g, nodes, candidates, n, buffer);
    }
    free(candidates);
    free(buffer);
    if (!is_placed && group->required_level < 0 && cluster->status == WEIR_OK) {
        return place_anywhere(placing, g, nodes, first_task);
    }
    placing->is_bound_to_domain = !is_placed;
    return is_placed;
}

/** A gang starts together: if part of it must wait for room, what is bound waits with it. */
static void defer_if_split(struct cluster *cluster, int32_t job, const int32_t *tasks,
                           int32_t n_tasks)
{
    bool is_split = false;
    for (int32_t i = 0; i < cluster->jobs[job].n_groups; i++) {
        const struct group_state *group = &cluster->groups[cluster->jobs[job].first_group + i];
        is_split = is_split || (group->first_child < 0 && group->n_pipelined > 0 &&
                                group->n_alive < group->min_member);
    }
    for (int32_t i = 0; i < n_tasks && is_split; i++) {
        if (cluster->tasks[tasks[i]].phase == PHASE_BOUND) {
            cluster_defer(cluster, tasks[i]);
        }
    }
}

bool placer_place(struct placer *placer, int32_t job, const int32_t *tasks, int32_t n_tasks,
                  struct weir_sched_wait *wait)
{
    struct cluster *cluster = placer->cluster;
    struct placing placing = {
        .placer = placer, .tasks = tasks, .n_tasks = n_tasks, .failed = -1, .wait = wait};
    struct place_nodes anywhere = placer->only;
    int32_t shape = cluster->tasks[tasks[0]].shape;
    bool is_known = anywhere.list == NULL && cluster->shape_failed[shape] == cluster->n_freed;
    size_t checkpoint = cluster_checkpoint(cluster);
    if (!is_known && place_group(&placing, cluster->jobs[job].first_group, &anywhere) &&
        cluster->status == WEIR_OK) {
        defer_if_split(cluster, job, tasks, n_tasks);
        return true;
    }
    /* Of a gang that may run on several models: those before the one that failed took the rest. */
    bool is_share = wait != NULL && placing.n_placed > 0 && placing.failed >= 0 &&
                    !placing.is_bound_to_domain && explain_share(cluster, placing.failed, wait);
    cluster_rollback(cluster, checkpoint);
    if (placing.failed == tasks[0] && !placing.is_bound_to_domain && checkpoint == 0 &&
        anywhere.list == NULL) {
        cluster->shape_failed[shape] = cluster->n_freed;
    }
    if (wait != NULL && !is_share) {
        explain_no_place(cluster, job, is_known ? tasks[0] : placing.failed, n_tasks,
                         placing.n_placed, placing.is_bound_to_domain, wait);
    }
    return false;
}
