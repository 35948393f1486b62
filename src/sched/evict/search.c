#include "sched/evict/search.h"

#include "base/macros.h"
#include "sched/evict/requeue.h"
#include "sched/evict/victims.h"
#include "sched/model/chunk.h"
#include "sched/model/portion.h"

#include <stdlib.h>
#include <string.h>

enum way {
    WAY_ONE_NODE,  /**< All of the jobs on one node of the last victim. */
    WAY_FEW_NODES, /**< All on a growing number of nodes. */
    N_WAYS,
};

bool search_applies(const struct cluster *cluster)
{
    return cluster->profile->like_kai;
}

weir_status search_init(struct search *search, const struct cluster *cluster)
{
    size_t n_tasks = (size_t)cluster->snapshot->n_tasks + 1;
    size_t n_nodes = (size_t)cluster->snapshot->n_nodes + 1;
    size_t n_jobs = (size_t)cluster->snapshot->n_jobs + 1;
    search->turns = calloc(n_tasks, 1);
    search->is_gone = calloc(n_tasks, sizeof(bool));
    search->is_recorded = calloc(n_tasks, sizeof(bool));
    search->recorded = calloc(n_tasks, sizeof(int32_t));
    search->victims = calloc(n_tasks, sizeof(int32_t));
    search->is_victim = calloc(n_jobs, sizeof(bool));
    search->is_listed = calloc(n_jobs, sizeof(bool));
    search->was_whole = calloc(n_jobs, sizeof(bool));
    search->nodes = calloc(n_nodes, sizeof *search->nodes);
    search->chosen = calloc(n_tasks, sizeof(bool));
    search->victims_early = calloc(n_tasks, sizeof(int32_t));
    search->n_of_group = calloc((size_t)cluster->n_groups + 1, sizeof(int32_t));
    search->loss_of_job = calloc(n_jobs, sizeof(int32_t));
    search->recorded_milli = calloc(n_nodes, sizeof *search->recorded_milli);
    search->gone_of_job = calloc(n_jobs, sizeof *search->gone_of_job);
    search->fits = calloc(n_nodes, sizeof *search->fits);
    search->recorded_gains = calloc(n_nodes, sizeof *search->recorded_gains);
    bool is_whole =
        search->turns != NULL && search->is_gone != NULL && search->is_recorded != NULL &&
        search->recorded != NULL && search->victims != NULL && search->is_victim != NULL &&
        search->is_listed != NULL && search->nodes != NULL && search->chosen != NULL &&
        search->victims_early != NULL && search->was_whole != NULL && search->n_of_group != NULL &&
        search->loss_of_job != NULL && search->recorded_milli != NULL &&
        search->recorded_gains != NULL && search->gone_of_job != NULL && search->fits != NULL;
    return is_whole ? WEIR_OK : WEIR_ERR_NOMEM;
}

void search_fini(struct search *search)
{
    free(search->turns);
    free(search->is_gone);
    free(search->is_recorded);
    free(search->recorded);
    free(search->victims);
    free(search->is_victim);
    free(search->is_listed);
    free(search->was_whole);
    free(search->nodes);
    free(search->chosen);
    free(search->victims_early);
    free(search->n_of_group);
    free(search->loss_of_job);
    free(search->recorded_milli);
    free(search->recorded_gains);
    free(search->gone_of_job);
    free(search->fits);
}

/** Choose all units of the jobs that have one on the node. @return Whether there is any. */
static bool choose_node(struct solver *solver, int32_t node)
{
    struct search *search = &solver->search;
    bool *is_there = search->is_listed;
    memset(is_there, 0, (size_t)solver->cluster->snapshot->n_jobs * sizeof *is_there);
    for (int32_t link = solver->node_head[node]; link >= 0; link = solver->links[link].next) {
        is_there[solver->units[solver->links[link].unit].job] = true;
    }
    for (int32_t u = 0; u < solver->n_units; u++) {
        search->chosen[u] = is_there[solver->units[u].job];
    }
    return solver->node_head[node] >= 0;
}

static int by_name(const void *left, const void *right)
{
    const struct search_node *l = left, *r = right;
    return strcmp(l->name, r->name);
}

/** The nodes of the job's tasks, by name. */
static int32_t list_nodes_of(struct solver *solver, int32_t job)
{
    const struct cluster *cluster = solver->cluster;
    const struct job_state *state = &cluster->jobs[job];
    struct search_node *nodes = solver->search.nodes;
    int32_t n = 0;
    for (int32_t t = state->first_task; t < state->first_task + state->n_tasks; t++) {
        int32_t node = cluster_seat(cluster, t);
        bool is_new = node >= 0;
        for (int32_t i = 0; i < n && is_new; i++) {
            is_new = nodes[i].node != node;
        }
        if (is_new) {
            nodes[n++] =
                (struct search_node){.node = node, .name = cluster->snapshot->nodes[node].name};
        }
    }
    qsort(nodes, (size_t)n, sizeof *nodes, by_name);
    return n;
}

static bool is_over(const struct solver *solver)
{
    return solver->cluster->status != WEIR_OK || solver->n_steps >= solver->search.steps_end ||
           solver->n_scenarios >= solver->cluster->profile->search_max_scenarios;
}

/** Whether the job could get its place if what is recorded and the chosen units were gone, by sums
 *  alone. */
static bool chosen_could_do(struct solver *solver)
{
    struct search *search = &solver->search;
    const struct cluster *cluster = solver->cluster;
    size_t size = (size_t)cluster->snapshot->n_nodes * sizeof *solver->all_gains;
    if (!solver->is_simple) {
        return true;
    }
    memcpy(solver->all_gains, search->recorded_gains, size);
    for (int32_t u = 0; u < solver->n_units; u++) {
        const struct solver_unit *unit = &solver->units[u];
        for (int32_t i = unit->first; i < unit->first + unit->n && search->chosen[u]; i++) {
            prospect_count(&solver->prospect, solver->unit_tasks[i], solver->unit_nodes[i], true,
                           true, &solver->all_gains[solver->unit_nodes[i]]);
        }
    }
    return prospect_count_fits(cluster, solver->pending[0], solver->all_gains, search->n_shown) >=
           search->n_shown;
}

/** The same if all victims so far were gone. */
static bool all_could_do(const struct solver *solver)
{
    const struct search *search = &solver->search;
    return !solver->is_simple || search->n_fit >= search->n_shown;
}

/** The same of those on one node, by what their jobs hold of devices: quickly. Whatever was rounded
 *  down, of a task or a shared device, counts for one more. */
static bool node_could_do(const struct solver *solver, int32_t node)
{
    const struct search *search = &solver->search;
    int64_t milli = solver->cluster->room_milli + search->recorded_sum;
    for (int32_t link = solver->node_head[node]; link >= 0; link = solver->links[link].next) {
        milli += search->gone_of_job[solver->units[solver->links[link].unit].job];
    }
    return !solver->is_simple || milli >= search->wanted_milli;
}

static bool try_one_node(struct solver *solver)
{
    requeue_clear(solver);
    int32_t n = list_nodes_of(solver, solver->units[solver->n_units - 1].job);
    for (int32_t i = 0; i < n && !is_over(solver); i++) {
        int32_t node = solver->search.nodes[i].node;
        if (node_could_do(solver, node) && choose_node(solver, node) && chosen_could_do(solver) &&
            requeue_try(solver)) {
            return true;
        }
    }
    return false;
}

/** What a victim gives of devices, but not what stands for parts of them and is counted apart. */
static int64_t milli_of(const struct cluster *cluster, int32_t task, int32_t node)
{
    bool has_devices = cluster_demand(cluster, task)->n_devices > 0;
    return has_devices ? cluster_charge(cluster, task, node).accelerators : 0;
}

/** What a task wants of devices wherever it will be: 0 if it asks for some of their memory. */
static int64_t milli_wanted(const struct cluster *cluster, int32_t task)
{
    return portion_least(cluster->profile, cluster_demand(cluster, task));
}

static int by_room(const void *left, const void *right)
{
    const struct search_node *l = left, *r = right;
    if (l->room != r->room) {
        return l->room < r->room ? -1 : 1;
    }
    return l->turn < r->turn ? -1 : l->turn > r->turn;
}

/** The nodes of victims, those with the least room first, and without those on which none of the
 *  first n_tasks could lie. *out_rest: what these need beyond the room on other nodes. */
static int32_t list_nodes(struct solver *solver, int32_t n_tasks, int64_t *out_rest)
{
    const struct cluster *cluster = solver->cluster;
    struct search_node *nodes = solver->search.nodes;
    int64_t least = INT64_MAX;
    int32_t n = 0;
    *out_rest = 0;
    for (int32_t i = 0; i < n_tasks; i++) {
        int64_t milli = milli_wanted(cluster, solver->pending[i]);
        *out_rest += milli;
        least = WEIR_MIN(least, milli);
    }
    for (int32_t node = 0; node < cluster->snapshot->n_nodes; node++) {
        struct search_node found = {.node = node, .turn = INT32_MAX};
        found.room = cluster->nodes[node].room_milli + solver->search.recorded_milli[node];
        for (int32_t link = solver->node_head[node]; link >= 0; link = solver->links[link].next) {
            const struct solver_unit *unit = &solver->units[solver->links[link].unit];
            for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
                if (solver->unit_nodes[i] == node) {
                    found.room += milli_of(cluster, solver->unit_tasks[i], node);
                    found.turn = WEIR_MIN(found.turn, i);
                }
            }
        }
        if (found.turn == INT32_MAX) {
            *out_rest -= found.room;
        } else if (found.room >= least) {
            nodes[n++] = found;
        }
    }
    qsort(nodes, (size_t)n, sizeof *nodes, by_room);
    return n;
}

static bool try_few_nodes(struct solver *solver, int32_t n_tasks)
{
    struct search *search = &solver->search;
    int64_t rest = 0;
    requeue_clear(solver);
    int32_t n = list_nodes(solver, n_tasks, &rest);
    memset(search->chosen, 0, (size_t)solver->n_units * sizeof *search->chosen);
    for (int32_t k = 0; k <= n && !is_over(solver); k++) {
        if (k > 0) {
            const struct search_node *node = &search->nodes[k - 1];
            for (int32_t link = solver->node_head[node->node]; link >= 0;
                 link = solver->links[link].next) {
                search->chosen[solver->links[link].unit] = true;
            }
            rest -= node->room;
        }
        if (rest <= 0 && chosen_could_do(solver) && requeue_try(solver)) {
            return true;
        }
    }
    return false;
}

/** Only the first n_tasks of those to be placed wait. */
static void show(struct solver *solver, int32_t n_tasks, int32_t n_all)
{
    const struct job_state *job = &solver->cluster->jobs[solver->job];
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        solver->search.turns[t] = n_all > 0 ? CHUNK_HIDDEN : CHUNK_BY_PHASE;
    }
    for (int32_t i = 0; i < n_tasks; i++) {
        solver->search.turns[solver->pending[i]] = CHUNK_BY_PHASE;
    }
}

/** Begin with the first victim again, to find places for the first n_tasks. */
static bool begin(struct solver *solver, int32_t n_tasks, int32_t n_all)
{
    struct search *search = &solver->search;
    const struct cluster *cluster = solver->cluster;
    size_t n_nodes = (size_t)cluster->snapshot->n_nodes;
    victims_close(solver);
    if (victims_open(solver) != WEIR_OK) {
        solver->cluster->status = WEIR_ERR_NOMEM;
        return false;
    }
    memset(search->is_gone, 0, (size_t)cluster->snapshot->n_tasks * sizeof *search->is_gone);
    memset(search->recorded_milli, 0, n_nodes * sizeof *search->recorded_milli);
    memset(search->gone_of_job, 0, (size_t)cluster->snapshot->n_jobs * sizeof *search->gone_of_job);
    search->recorded_sum = search->wanted_milli = 0;
    for (int32_t i = 0; i < search->n_recorded; i++) {
        int32_t task = search->recorded[i], node = cluster_seat(cluster, task);
        int64_t milli = milli_of(cluster, task, node);
        prospect_count(&solver->prospect, task, node, true, true, &solver->gains[node]);
        search->recorded_milli[node] += milli;
        search->recorded_sum += milli + 1;
    }
    memcpy(search->recorded_gains, solver->gains, n_nodes * sizeof *solver->gains);
    for (int32_t i = 0; i < n_tasks; i++) {
        search->wanted_milli += milli_wanted(cluster, solver->pending[i]);
    }
    search->n_fit = 0;
    for (int32_t node = 0; node < cluster->snapshot->n_nodes; node++) {
        search->fits[node] =
            prospect_count_on(cluster, solver->pending[0], node, &solver->gains[node]);
        search->n_fit += search->fits[node];
        search->recorded_sum += cluster->nodes[node].n_shared;
    }
    search->n_shown = n_tasks;
    show(solver, n_tasks, n_all);
    chunk_amount(cluster, solver->pending, n_tasks, &solver->amount, &solver->fixed);
    return true;
}

static bool pop(struct solver *solver)
{
    struct search *search = &solver->search;
    requeue_clear(solver);
    if (!victims_pop(solver)) {
        return false;
    }
    const struct cluster *cluster = solver->cluster;
    const struct solver_unit *unit = &solver->units[solver->n_units - 1];
    for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
        int32_t node = solver->unit_nodes[i];
        int64_t n = prospect_count_on(cluster, solver->pending[0], node, &solver->gains[node]);
        search->n_fit += n - search->fits[node];
        search->fits[node] = n;
        search->gone_of_job[unit->job] += milli_of(cluster, solver->unit_tasks[i], node) + 1;
    }
    return true;
}

/** Search for the first n_tasks. The scenario that holds is in place. */
static bool probe(struct solver *solver, enum way way, int32_t n_tasks, int32_t n_all)
{
    requeue_clear(solver);
    if (is_over(solver) || !begin(solver, n_tasks, n_all)) {
        return false;
    }
    if (all_could_do(solver) && requeue_try(solver)) {
        return true;
    }
    while (!is_over(solver)) {
        if (!pop(solver)) {
            return false;
        }
        if (all_could_do(solver) &&
            (way == WAY_ONE_NODE ? try_one_node(solver) : try_few_nodes(solver, n_tasks))) {
            return true;
        }
        requeue_clear(solver);
    }
    return false;
}

/** Keep in mind who had to go or move. */
static void record(struct solver *solver)
{
    struct search *search = &solver->search;
    for (int32_t i = 0; i < search->n_recorded; i++) {
        search->is_recorded[search->recorded[i]] = false;
    }
    search->n_recorded = 0;
    for (int32_t v = 0; v < search->n_victims; v++) {
        if (solver->cluster->tasks[search->victims[v]].phase != PHASE_RUNNING) {
            search->recorded[search->n_recorded++] = search->victims[v];
            search->is_recorded[search->victims[v]] = true;
        }
    }
}

static bool probe_and_record(struct solver *solver, enum way way, int32_t n_tasks, int32_t n_all)
{
    bool is_solved = probe(solver, way, n_tasks, n_all);
    if (is_solved) {
        record(solver);
    }
    return is_solved;
}

/** Doubling and then halving finds how many of the tasks can be placed; with the victims of that,
 *  all are tried. */
static bool solve(struct solver *solver, enum way way, int32_t n_all)
{
    int32_t low = 0, high = 1;
    while (low < n_all && probe_and_record(solver, way, high, n_all)) {
        low = high;
        high = WEIR_MIN(2 * high, n_all);
    }
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (probe_and_record(solver, way, middle, n_all)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low > 0 && !is_over(solver) && probe(solver, way, n_all, n_all);
}

bool search_solve(struct solver *solver, int32_t n_tasks)
{
    struct search *search = &solver->search;
    bool is_solved = false;
    search->n_victims = 0;
    for (enum way way = WAY_ONE_NODE; way < N_WAYS && !is_solved; way++) {
        solver->n_scenarios = 0;
        search->steps_end =
            solver->n_steps + (solver->steps_max - solver->n_steps) / (N_WAYS - way);
        is_solved = solve(solver, way, n_tasks);
        for (int32_t i = 0; i < search->n_recorded; i++) {
            search->is_recorded[search->recorded[i]] = false;
        }
        search->n_recorded = 0;
    }
    requeue_release(solver);
    show(solver, 0, 0);
    victims_close(solver);
    return is_solved;
}
