#include "sched/place/place.h"

#include "base/macros.h"
#include "sched/place/domains.h"
#include "sched/place/explain.h"
#include "sched/place/fgd_index.h"

#include <stdlib.h>

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
    if (placer->devices == NULL) {
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
}

static bool place_task(struct placing *placing, int32_t task, const struct place_nodes *nodes)
{
    struct placer *placer = placing->placer;
    struct assignment assignment;
    placer_find(placer, task, nodes, &assignment);
    if (assignment.when < FITS_FUTURE) {
        placing->failed = placing->failed < 0 ? task : placing->failed;
        return false;
    }
    bool is_now = assignment.when == FITS_NOW && !placer->pipeline_only;
    cluster_place(placer->cluster, task, is_now ? PHASE_BOUND : PHASE_PIPELINED, assignment.node,
                  assignment.devices, assignment.zones);
    if (placer->note_placed != NULL) {
        placer->note_placed(placer->context, task);
    }
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

/** The tasks to place below a group. @param out  May be NULL. */
static int32_t list_members(const struct placing *placing, int32_t g, int32_t *out)
{
    const struct cluster *cluster = placing->placer->cluster;
    int32_t n = 0;
    for (int32_t i = 0; i < placing->n_tasks; i++) {
        if (group_is_below(cluster, cluster->tasks[placing->tasks[i]].group, g)) {
            if (out != NULL) {
                out[n] = placing->tasks[i];
            }
            n++;
        }
    }
    return n;
}

static int by_number(const void *left, const void *right)
{
    int32_t l = *(const int32_t *)left, r = *(const int32_t *)right;
    return l < r ? -1 : l > r;
}

/** The nodes of a span that are also among `within`, in the order of nodes. */
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

/** All nodes, whether they have a place in a topology or not. */
static int32_t list_all(const struct cluster *cluster, const struct place_nodes *within,
                        int32_t *out)
{
    int32_t n = within->list == NULL ? cluster->snapshot->n_nodes : within->n;
    for (int32_t i = 0; i < n; i++) {
        out[i] = within->list == NULL ? i : within->list[i];
    }
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
                        const struct domains *domains, int32_t *buffer)
{
    const struct cluster *cluster = placing->placer->cluster;
    const struct topology *topology = &placing->placer->topologies[cluster->groups[g].topology];
    for (int32_t i = 0; i < domains->n && cluster->status == WEIR_OK; i++) {
        const struct domain *domain = &domains->list[i];
        bool is_any = domain->level == DOMAIN_ROOT;
        struct place_nodes inside = {
            .list = buffer, .ranks = domains->ranks != NULL ? domains->ranks : nodes->ranks};
        inside.n = is_any ? list_all(cluster, nodes, buffer)
                          : intersect(topology->nodes + domain->first, domain->n, nodes, buffer);
        if (inside.n > 0 && try_nodes(placing, g, &inside)) {
            return true;
        }
    }
    return false;
}

static bool place_group(struct placing *placing, int32_t g, const struct place_nodes *nodes)
{
    struct cluster *cluster = placing->placer->cluster;
    const struct group_state *group = &cluster->groups[g];
    int32_t n_members = list_members(placing, g, NULL);
    if (n_members == 0) {
        return true;
    }
    if (group->topology < 0 || (group->required_level < 0 && group->preferred_level < 0)) {
        return place_members(placing, g, nodes);
    }
    size_t n_nodes = (size_t)cluster->snapshot->n_nodes;
    int32_t *members = malloc(((size_t)n_members + n_nodes) * sizeof *members);
    struct domains domains = {0};
    bool is_placed = false;
    if (members == NULL) {
        cluster->status = WEIR_ERR_NOMEM;
    } else {
        list_members(placing, g, members);
        cluster->status = domains_find(placing->placer, g, members, n_members, &domains);
        is_placed = try_domains(placing, g, nodes, &domains, members + n_members);
    }
    domains_free(&domains);
    free(members);
    placing->is_bound_to_domain = !is_placed && group->required_level >= 0;
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
    bool is_known =
        anywhere.list == NULL && cluster->shapes.failed[shape] == cluster->changes.n_freed;
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
        cluster->shapes.failed[shape] = cluster->changes.n_freed;
    }
    if (wait != NULL && !is_share) {
        explain_no_place(cluster, job, is_known ? tasks[0] : placing.failed, n_tasks,
                         placing.n_placed, placing.is_bound_to_domain, wait);
    }
    return false;
}
