#include "sched/place/domains.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

/** A search for domains. */
struct domain_search {
    const struct placer *placer;
    const struct cluster *cluster;
    const struct topology *topology;
    const struct group_state *group;
    const int32_t *tasks;
    int32_t n_tasks;
    int32_t low, high;      /**< The widest level to try; the narrowest. */
    struct domain *domains; /**< Of the levels 0 to high, and the root at the end. */
    int32_t n_domains;
    bool are_alike; /**< All tasks are of one shape. */
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

static void judge_domain(struct domain_search *search, struct domain *domain)
{
    int64_t n_fit = 0;
    for (int32_t i = domain->first; i < domain->first + domain->n; i++) {
        n_fit += count_fits(search->cluster, search->tasks[0], search->topology->nodes[i]);
    }
    domain->fullness = -n_fit;
    domain->is_tried = !search->are_alike || n_fit >= search->n_tasks;
}

static bool is_inside(const struct domain *domain, const struct domain *around)
{
    return domain->level >= around->level && domain->first >= around->first &&
           domain->first + domain->n <= around->first + around->n;
}

/** Mark the nodes on which tasks of the group are or will be. */
static void mark_members(const struct cluster *cluster, int32_t g, bool *has_member_on)
{
    const struct group_state *group = &cluster->groups[g];
    for (int32_t i = 0; i < group->n_tasks; i++) {
        int32_t planned_node =
            cluster->tasks[cluster->task_order[group->first_task + i]].planned_node;
        if (planned_node >= 0) {
            has_member_on[planned_node] = true;
        }
    }
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        mark_members(cluster, c, has_member_on);
    }
}

static bool has_member(const struct domain_search *search, const struct domain *domain,
                       const bool *has_member_on)
{
    for (int32_t i = domain->first; i < domain->first + domain->n; i++) {
        if (has_member_on[search->topology->nodes[i]]) {
            return true;
        }
    }
    return false;
}

/** What is to be placed joins the rest of the group: in a domain of the required level in which a
 *  part of it is already. */
static bool require_home(struct domain_search *search)
{
    const struct cluster *cluster = search->cluster;
    const struct group_state *group = search->group;
    if (group->required_level < 0 || group->n_alive + group->n_pipelined == 0) {
        return true;
    }
    bool *has_member_on = calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof *has_member_on);
    if (has_member_on == NULL) {
        return false;
    }
    mark_members(cluster, (int32_t)(group - cluster->groups), has_member_on);
    int32_t first = search->topology->level_first[group->required_level];
    int32_t end = search->topology->level_first[group->required_level + 1];
    for (int32_t h = first; h < end; h++) {
        const struct domain *home = &search->domains[h];
        bool is_home = has_member(search, home, has_member_on);
        for (int32_t d = first; d < search->n_domains - 1 && !is_home; d++) {
            struct domain *domain = &search->domains[d];
            domain->is_tried = domain->is_tried && !is_inside(domain, home);
        }
    }
    free(has_member_on);
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
static bool sort_levels(struct domain_search *search)
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
static bool rank_nodes(const struct domain_search *search, struct domains *out)
{
    const struct topology *topology = search->topology;
    int32_t level = search->group->preferred_level, n_nodes = search->cluster->snapshot->n_nodes;
    int32_t first = topology->level_first[level], n = topology->level_first[level + 1] - first;
    struct domain *ranked = calloc((size_t)n + 1, sizeof *ranked);
    out->ranks = calloc((size_t)n_nodes + 1, sizeof *out->ranks);
    if (ranked == NULL || out->ranks == NULL) {
        free(ranked);
        return false;
    }
    memcpy(ranked, search->domains + first, (size_t)n * sizeof *ranked);
    qsort(ranked, (size_t)n, sizeof *ranked, by_fullness);
    for (int32_t i = 0; i < n_nodes; i++) {
        out->ranks[i] = n;
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = ranked[i].first; j < ranked[i].first + ranked[i].n; j++) {
            out->ranks[topology->nodes[j]] = n - 1 - i;
        }
    }
    free(ranked);
    return true;
}

static void list(struct domain_search *search, struct domains *out)
{
    const struct topology *topology = search->topology;
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

static bool judge(struct domain_search *search)
{
    const struct topology *topology = search->topology;
    struct domain *root = &search->domains[search->n_domains - 1];
    for (int32_t d = 0; d < search->n_domains - 1; d++) {
        const struct topology_domain *given = &topology->domains[d];
        search->domains[d] =
            (struct domain){.first = given->first, .n = given->n, .level = given->level, .path = d};
        judge_domain(search, &search->domains[d]);
    }
    *root = (struct domain){.n = topology->n_nodes, .level = DOMAIN_ROOT, .is_tried = true};
    return require_home(search);
}

static bool run(struct domain_search *search, struct domains *out)
{
    if (!judge(search) || !sort_levels(search)) {
        return false;
    }
    list(search, out);
    return search->group->preferred_level < 0 || rank_nodes(search, out);
}

weir_status domains_find(const struct placer *placer, int32_t g, const int32_t *tasks,
                         int32_t n_tasks, struct domains *out)
{
    const struct cluster *cluster = placer->cluster;
    const struct group_state *group = &cluster->groups[g];
    struct domain_search search = {.placer = placer,
                                   .cluster = cluster,
                                   .topology = &placer->topologies[group->topology],
                                   .group = group,
                                   .tasks = tasks,
                                   .n_tasks = n_tasks,
                                   .low = group->required_level < 0 ? DOMAIN_ROOT
                                                                    : group->required_level,
                                   .high = WEIR_MAX(group->preferred_level, group->required_level),
                                   .are_alike = true};
    for (int32_t i = 1; i < n_tasks; i++) {
        search.are_alike =
            search.are_alike && cluster->tasks[tasks[i]].shape == cluster->tasks[tasks[0]].shape;
    }
    search.n_domains = search.topology->level_first[search.high + 1] + 1;
    search.domains = calloc((size_t)search.n_domains, sizeof *search.domains);
    *out = (struct domains){.list = calloc((size_t)search.n_domains, sizeof *out->list)};
    bool is_made = search.domains != NULL && out->list != NULL && run(&search, out);
    free(search.domains);
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
