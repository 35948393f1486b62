#include "sched/place/domains.h"

#include "base/macros.h"
#include "sched/model/portion.h"

#include <stdlib.h>
#include <string.h>

/** Nodes of the preferred level's domains are ranked in so many steps, if by sums. */
#define RANK_STEPS 10

/** Ratios in billionths. */
#define RATIO_ONE ((int64_t)1000000000)

/** The ratio where something is asked for and nothing of it is free, and the largest there is. */
#define RATIO_WITHOUT (1000 * RATIO_ONE)
#define RATIO_MOST    (1000000 * RATIO_ONE)

/** What is summed up: these, and then extras by name. */
enum {
    SUM_DEVICES, /**< In thousandths. */
    SUM_CPU,
    SUM_MEMORY,
    SUM_TASKS,
    SUM_FIRST_EXTRA,
};

/** A search for domains. */
struct search {
    const struct placer *placer;
    const struct cluster *cluster;
    const struct topology *topology;
    const struct group_state *group;
    const int32_t *tasks;
    int32_t n_tasks;
    int32_t low, high;      /**< The widest level to try; the narrowest. */
    struct domain *domains; /**< Of the levels 0 to high, and the root at the end. */
    int32_t n_domains;
    struct domain common; /**< Only what is inside counts. */
    int32_t n_sums;
    int64_t *sum, *largest, *n_asking; /**< Of the tasks; and how many ask for any. */
    int64_t *free, *node;              /**< Of a domain, and scratch for one node of it. */
    bool are_even;                     /**< Whoever asks for something at all, all do. */
    bool are_alike;                    /**< All tasks are of one shape. */
};

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

static void judge_by_fit(struct search *search, struct domain *domain)
{
    int64_t n_fit = 0;
    for (int32_t i = domain->first; i < domain->first + domain->n; i++) {
        n_fit += count_fits(search->cluster, search->tasks[0], search->topology->nodes[i]);
    }
    domain->fullness = -n_fit;
    domain->is_tried = !search->are_alike || n_fit >= search->n_tasks;
}

/** What a task asks for; by memory alone it asks for no device that could be summed up. */
static void read_task(const struct search *search, int32_t task, int64_t *out)
{
    const struct cluster *cluster = search->cluster;
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    memset(out, 0, (size_t)search->n_sums * sizeof *out);
    out[SUM_DEVICES] =
        demand_is_by_memory(demand) ? 0 : portion_charge(cluster->profile, demand, 0, false);
    out[SUM_CPU] = demand->cpu_milli;
    out[SUM_MEMORY] = demand->memory_bytes;
    out[SUM_TASKS] = 1;
    for (int32_t i = 0; i < cluster->tasks[task].n_extras; i++) {
        const struct extra_want *want = &cluster->wants[cluster->tasks[task].first_extra + i];
        out[SUM_FIRST_EXTRA + want->name] += want->count;
    }
}

static void read_tasks(struct search *search)
{
    for (int32_t i = 0; i < search->n_tasks; i++) {
        read_task(search, search->tasks[i], search->node);
        for (int32_t s = 0; s < search->n_sums; s++) {
            search->sum[s] += search->node[s];
            search->largest[s] = WEIR_MAX(search->largest[s], search->node[s]);
            search->n_asking[s] += search->node[s] > 0;
        }
    }
    search->are_even = true;
    for (int32_t s = 0; s < search->n_sums; s++) {
        bool is_even = search->n_asking[s] == 0 || search->n_asking[s] == search->n_tasks;
        search->are_even = search->are_even && (is_even || s == SUM_CPU || s == SUM_MEMORY);
    }
}

/** What a node has free in the future, of devices whole ones only. */
static void read_node(const struct search *search, int32_t at, int64_t *out)
{
    const struct cluster *cluster = search->cluster;
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    const struct node_state *node = &cluster->nodes[at];
    memset(out, 0, (size_t)search->n_sums * sizeof *out);
    out[SUM_DEVICES] = (int64_t)node->whole_future * WEIR_SCHED_DEVICE;
    out[SUM_CPU] = given->cpu_milli - node->cpu_future;
    out[SUM_MEMORY] = given->memory_bytes - node->memory_future;
    out[SUM_TASKS] = given->n_tasks_max < 0 ? INT32_MAX : given->n_tasks_max - node->tasks_future;
    for (int32_t i = 0; i < given->n_extras; i++) {
        const struct extra_state *extra = &cluster->extras[node->first_extra + i];
        out[SUM_FIRST_EXTRA + extra->name] += extra->count - extra->future;
    }
}

/** What is left of the devices of a node that are shared already, in thousandths. */
static int64_t shared_room(const struct cluster *cluster, int32_t at)
{
    int64_t room = 0;
    for (int32_t d = 0; d < cluster->snapshot->nodes[at].n_devices; d++) {
        const struct device_state *device = &cluster->devices[cluster->nodes[at].first_device + d];
        room += device->future > 0 ? device->room_milli : 0;
    }
    return room;
}

/** How many tasks as large as the largest a node would hold that has so much free. */
static int64_t count_largest(const struct search *search, int32_t at, int64_t *free)
{
    const int64_t *largest = search->largest;
    if (largest[SUM_DEVICES] > 0 && largest[SUM_DEVICES] < WEIR_SCHED_DEVICE) {
        free[SUM_DEVICES] += shared_room(search->cluster, at);
    }
    int64_t n = INT64_MAX;
    bool is_nothing = true;
    for (int32_t s = 0; s < search->n_sums; s++) {
        if (largest[s] > 0) {
            n = WEIR_MIN(n, WEIR_MAX(free[s], 0) / largest[s]);
            is_nothing = is_nothing && s == SUM_TASKS;
        }
    }
    return is_nothing ? search->n_tasks : n;
}

/** The greatest part of what is free that the tasks take of any resource; above 1: more. */
static int64_t ratio(const struct search *search, const int64_t *free)
{
    int64_t most = 0;
    for (int32_t s = 0; s < search->n_sums; s++) {
        if (search->sum[s] > 0 && s != SUM_TASKS) {
            __int128 of_this = RATIO_WITHOUT;
            if (free[s] > 0) { /* Rounded up: what is above 1 stays so. */
                of_this = ((__int128)search->sum[s] * RATIO_ONE + free[s] - 1) / free[s];
            }
            most = WEIR_MAX(most, (int64_t)WEIR_MIN(of_this, (__int128)RATIO_MOST));
        }
    }
    return most;
}

static void judge_by_sums(struct search *search, struct domain *domain)
{
    int64_t n_largest = 0;
    memset(search->free, 0, (size_t)search->n_sums * sizeof *search->free);
    for (int32_t i = domain->first; i < domain->first + domain->n; i++) {
        int32_t at = search->topology->nodes[i];
        read_node(search, at, search->node);
        for (int32_t s = 0; s < search->n_sums; s++) {
            search->free[s] += search->node[s];
        }
        n_largest += count_largest(search, at, search->node);
    }
    domain->fullness = ratio(search, search->free);
    domain->is_tried =
        search->are_even ? n_largest >= search->n_tasks : domain->fullness <= RATIO_ONE;
}

static int by_number(const void *left, const void *right)
{
    int32_t l = *(const int32_t *)left, r = *(const int32_t *)right;
    return l < r ? -1 : l > r;
}

static bool is_within(const struct place_nodes *within, int32_t node)
{
    return within->list == NULL || !within->is_domain ||
           bsearch(&node, within->list, (size_t)within->n, sizeof node, by_number) != NULL;
}

/** The narrowest domain, down to the preferred level, that holds all the nodes. */
static struct domain find_common(const struct search *search, const struct place_nodes *within)
{
    const struct topology *topology = search->topology;
    struct domain common = search->domains[search->n_domains - 1];
    int32_t first = -1, last = -1;
    for (int32_t i = 0; i < topology->n_nodes; i++) {
        if (is_within(within, topology->nodes[i])) {
            first = first < 0 ? i : first;
            last = i;
        }
    }
    int32_t narrowest = search->group->preferred_level;
    narrowest = narrowest < 0 ? topology->n_levels - 1 : narrowest;
    for (int32_t l = 0; l <= narrowest && first >= 0; l++) {
        for (int32_t d = topology->level_first[l]; d < topology->level_first[l + 1]; d++) {
            const struct topology_domain *domain = &topology->domains[d];
            if (domain->first <= first && last < domain->first + domain->n) {
                common = (struct domain){.first = domain->first, .n = domain->n, .level = l};
            }
        }
    }
    return common;
}

static bool is_inside(const struct domain *domain, const struct domain *around)
{
    return domain->level >= around->level && domain->first >= around->first &&
           domain->first + domain->n <= around->first + around->n;
}

/** Domains that are not inside the common one are not tried; nor any if it has no room itself. */
static void keep_inside(struct search *search, const struct place_nodes *within)
{
    search->common = find_common(search, within);
    judge_by_sums(search, &search->common);
    for (int32_t d = 0; d < search->n_domains; d++) {
        struct domain *domain = &search->domains[d];
        domain->is_tried =
            domain->is_tried && search->common.is_tried && is_inside(domain, &search->common);
    }
}

/** Mark the nodes on which tasks of the group are or will be. */
static void mark_members(const struct cluster *cluster, int32_t g, bool *is_held)
{
    const struct group_state *group = &cluster->groups[g];
    for (int32_t i = 0; i < group->n_tasks; i++) {
        int32_t target = cluster->tasks[cluster->task_order[group->first_task + i]].target;
        if (target >= 0) {
            is_held[target] = true;
        }
    }
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        mark_members(cluster, c, is_held);
    }
}

static bool has_member(const struct search *search, const struct domain *domain,
                       const bool *is_held)
{
    for (int32_t i = domain->first; i < domain->first + domain->n; i++) {
        if (is_held[search->topology->nodes[i]]) {
            return true;
        }
    }
    return false;
}

/** What is to be placed joins the rest of the group: in a domain of the required level in which a
 *  part of it is already. */
static bool keep_home(struct search *search)
{
    const struct cluster *cluster = search->cluster;
    const struct group_state *group = search->group;
    if (group->required_level < 0 || group->n_alive + group->n_pipelined == 0) {
        return true;
    }
    bool *is_held = calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof *is_held);
    if (is_held == NULL) {
        return false;
    }
    mark_members(cluster, (int32_t)(group - cluster->groups), is_held);
    int32_t first = search->topology->level_first[group->required_level];
    int32_t end = search->topology->level_first[group->required_level + 1];
    for (int32_t h = first; h < end; h++) {
        const struct domain *home = &search->domains[h];
        bool is_home = has_member(search, home, is_held);
        for (int32_t d = first; d < search->n_domains - 1 && !is_home; d++) {
            struct domain *domain = &search->domains[d];
            domain->is_tried = domain->is_tried && !is_inside(domain, home);
        }
    }
    free(is_held);
    return true;
}

static int by_preference(const void *left, const void *right)
{
    const struct domain *l = left, *r = right;
    if (l->turn != r->turn) {
        return l->turn < r->turn ? -1 : 1;
    }
    if (l->fullness != r->fullness) {
        return l->fullness > r->fullness ? -1 : 1;
    }
    return l->path < r->path ? -1 : l->path > r->path;
}

/** Sort each level, so that the domains of one wide domain lie together. */
static bool sort_levels(struct search *search)
{
    const struct topology *topology = search->topology;
    int32_t *turns = calloc((size_t)topology->n_domains + 1, sizeof *turns);
    for (int32_t l = 0; l <= search->high && turns != NULL; l++) {
        int32_t first = topology->level_first[l], end = topology->level_first[l + 1];
        for (int32_t d = first; d < end; d++) {
            int32_t parent = topology->domains[d].parent;
            search->domains[d].turn = parent < 0 ? 0 : turns[parent];
        }
        qsort(search->domains + first, (size_t)(end - first), sizeof *search->domains,
              by_preference);
        for (int32_t i = first; i < end; i++) {
            turns[search->domains[i].path] = i;
        }
    }
    free(turns);
    return turns != NULL;
}

/** Among all domains of a level, not only those of one wider. */
static int by_fullness(const void *left, const void *right)
{
    struct domain l = *(const struct domain *)left, r = *(const struct domain *)right;
    l.turn = r.turn = 0;
    return by_preference(&l, &r);
}

/** A group that no preferred domain holds is kept together: those with most room come first. */
static bool rank_nodes(const struct search *search, struct domains *out)
{
    const struct topology *topology = search->topology;
    int32_t level = search->group->preferred_level, n_nodes = search->cluster->snapshot->n_nodes;
    bool by_sums = search->cluster->profile->like_kai;
    int32_t first = topology->level_first[level], n = topology->level_first[level + 1] - first;
    struct domain *ranked = calloc((size_t)n + 1, sizeof *ranked);
    out->ranks = calloc((size_t)n_nodes + 1, sizeof *out->ranks);
    if (ranked == NULL || out->ranks == NULL) {
        free(ranked);
        return false;
    }
    int32_t n_level = n;
    n = 0;
    for (int32_t d = first; d < first + n_level; d++) {
        if (is_inside(&search->domains[d], &search->common)) {
            ranked[n++] = search->domains[d];
        }
    }
    if (!by_sums) {
        qsort(ranked, (size_t)n, sizeof *ranked, by_fullness);
    }
    for (int32_t i = 0; i < n_nodes; i++) {
        out->ranks[i] = WEIR_MAX(n, RANK_STEPS);
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t step = (int32_t)((int64_t)(i + 1) * RANK_STEPS / n);
        int32_t rank = by_sums ? RANK_STEPS - step : n - 1 - i;
        for (int32_t j = ranked[i].first; j < ranked[i].first + ranked[i].n; j++) {
            out->ranks[topology->nodes[j]] = rank;
        }
    }
    free(ranked);
    return true;
}

static void list(struct search *search, struct domains *out)
{
    const struct topology *topology = search->topology;
    int32_t preferred = search->group->preferred_level;
    if (search->cluster->profile->like_kai && preferred >= 0 && preferred < search->low) {
        return; /* What is preferred is wider than what is required: it asks for nothing. */
    }
    for (int32_t l = search->high; l >= search->low; l--) {
        int32_t first = l < 0 ? search->n_domains - 1 : topology->level_first[l];
        int32_t end = l < 0 ? search->n_domains : topology->level_first[l + 1];
        for (int32_t d = first; d < end; d++) {
            if (search->domains[d].is_tried) {
                out->list[out->n++] = search->domains[d];
            }
        }
    }
}

static bool judge(struct search *search, const struct place_nodes *within)
{
    const struct topology *topology = search->topology;
    struct domain *root = &search->domains[search->n_domains - 1];
    bool by_sums = search->cluster->profile->like_kai;
    for (int32_t d = 0; d < search->n_domains - 1; d++) {
        const struct topology_domain *given = &topology->domains[d];
        search->domains[d] =
            (struct domain){.first = given->first, .n = given->n, .level = given->level, .path = d};
        (by_sums ? judge_by_sums : judge_by_fit)(search, &search->domains[d]);
    }
    *root = (struct domain){.n = topology->n_nodes, .level = DOMAIN_ROOT, .is_tried = true};
    search->common = *root;
    if (by_sums) {
        keep_inside(search, within);
    }
    return keep_home(search);
}

static bool run(struct search *search, const struct place_nodes *within, struct domains *out)
{
    read_tasks(search);
    if (!judge(search, within) || !sort_levels(search)) {
        return false;
    }
    list(search, out);
    return search->group->preferred_level < 0 || rank_nodes(search, out);
}

weir_status domains_find(const struct placer *placer, int32_t g, const int32_t *tasks,
                         int32_t n_tasks, const struct place_nodes *within, struct domains *out)
{
    const struct cluster *cluster = placer->cluster;
    const struct group_state *group = &cluster->groups[g];
    struct search search = {.placer = placer,
                            .cluster = cluster,
                            .topology = &placer->topologies[group->topology],
                            .group = group,
                            .tasks = tasks,
                            .n_tasks = n_tasks,
                            .low = group->required_level < 0 ? DOMAIN_ROOT : group->required_level,
                            .high = WEIR_MAX(group->preferred_level, group->required_level),
                            .n_sums = SUM_FIRST_EXTRA + cluster->n_extra_names,
                            .are_alike = true};
    for (int32_t i = 1; i < n_tasks; i++) {
        search.are_alike =
            search.are_alike && cluster->tasks[tasks[i]].shape == cluster->tasks[tasks[0]].shape;
    }
    size_t n_sums = (size_t)search.n_sums;
    search.n_domains = search.topology->level_first[search.high + 1] + 1;
    search.domains = calloc((size_t)search.n_domains, sizeof *search.domains);
    search.sum = calloc(5 * n_sums, sizeof *search.sum);
    *out = (struct domains){.list = calloc((size_t)search.n_domains, sizeof *out->list)};
    bool is_made = search.domains != NULL && search.sum != NULL && out->list != NULL;
    if (is_made) {
        search.largest = search.sum + n_sums;
        search.free = search.sum + 2 * n_sums;
        search.node = search.sum + 3 * n_sums;
        search.n_asking = search.sum + 4 * n_sums;
        is_made = run(&search, within, out);
    }
    free(search.domains);
    free(search.sum);
    if (!is_made) {
        domains_free(out);
        return WEIR_ERR_NOMEM;
    }
    return WEIR_OK;
}

void domains_free(struct domains *domains)
{
    free(domains->list);
    free(domains->ranks);
    *domains = (struct domains){0};
}
