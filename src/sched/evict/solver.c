#include "sched/evict/solver.h"

#include "base/macros.h"
#include "sched/evict/replace_victims.h"
#include "sched/evict/victims.h"
#include "sched/model/fraction.h"
#include "sched/model/quantum.h"
#include "sched/place/affinity.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/** After so many scenarios it is worth asking whether any could do. */
#define PRUNE_AFTER 4

/** Gangs of so many tasks and more are solved task by task for good. */
#define FREEZE_FROM 16

/** An array of the solver: where its pointer is put, and how long it is. */
struct part {
    void *to;
    size_t n, size;
};

#define PART(pointer, n)                                                                           \
    {                                                                                              \
        &(pointer), (n), sizeof *(pointer)                                                         \
    }

static size_t padded_bytes(const struct part *part)
{
    size_t align = _Alignof(max_align_t);
    return ((part->n + 1) * part->size + align - 1) / align * align;
}

/** All arrays in one block, zeroed. What is large of it comes zeroed from the system, page by page as
 *  it is used. */
static void *make_parts(const struct part *parts, size_t n_parts)
{
    size_t size = 0;
    for (size_t i = 0; i < n_parts; i++) {
        size += padded_bytes(&parts[i]);
    }
    char *memory = calloc(1, size), *at = memory;
    for (size_t i = 0; i < n_parts && memory != NULL; i++) {
        memcpy(parts[i].to, &at, sizeof at);
        at += padded_bytes(&parts[i]);
    }
    return memory;
}

weir_status solver_init(struct solver *solver, struct cluster *cluster, struct placer *placer)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    size_t n_jobs = (size_t)snapshot->n_jobs, n_tasks = (size_t)snapshot->n_tasks;
    size_t n_nodes = (size_t)snapshot->n_nodes, n_queues = (size_t)snapshot->n_queues;
    *solver = (struct solver){.cluster = cluster, .placer = placer};
    solver->is_large = snapshot->n_nodes > SOLVER_LARGE;
    solver->sorted[0].version = solver->sorted[1].version = -1;
    const struct part parts[] = {
        PART(solver->request.is_victim, n_jobs),
        PART(solver->request.may_lose, n_queues),
        PART(solver->request.tiers, n_queues),
        PART(solver->is_listed, n_jobs),
        PART(solver->sorted[0].is_listed, n_jobs),
        PART(solver->sorted[1].is_listed, n_jobs),
        PART(solver->is_feasible, n_nodes),
        PART(solver->units.popped, n_jobs),
        PART(solver->units.last_of_job, n_jobs),
        PART(solver->units.tasks, n_tasks),
        PART(solver->units.nodes, n_tasks),
        PART(solver->units.all, n_tasks),
        PART(solver->units.node_head, n_nodes),
        PART(solver->units.links, n_tasks),
        PART(solver->units.reclaimable, n_nodes),
        PART(solver->all_reclaimable, n_nodes),
        PART(solver->pending, n_tasks),
        PART(solver->scratch, n_tasks),
        PART(solver->scenario.evicted, n_tasks),
        PART(solver->scenario.recorded, n_tasks),
        PART(solver->scenario.made, n_tasks + 1),
        PART(solver->remaining, n_queues),
    };
    solver->memory = make_parts(parts, WEIR_ARRAY_LEN(parts));
    return solver->memory != NULL ? feasibility_init(&solver->feasibility, cluster, placer)
                                  : WEIR_ERR_NOMEM;
}

void solver_fini(struct solver *solver)
{
    order_fini(&solver->victims);
    order_fini(&solver->sorted[0].order);
    order_fini(&solver->sorted[1].order);
    feasibility_fini(&solver->feasibility);
    free(solver->scenario.losses);
    free(solver->memory);
}

static void evict_one(struct solver *solver, int32_t u)
{
    struct eviction_unit *unit = &solver->units.all[u];
    if (unit->is_evicted) {
        return;
    }
    unit->is_evicted = true;
    solver->scenario.evicted[solver->scenario.n_evicted++] = u;
    for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
        cluster_evict(solver->cluster, solver->units.tasks[i], solver->request.reason,
                      solver->request.job);
    }
}

/** A unit; and with a minimum what was above it, because nothing stays without. */
static void evict_unit(struct solver *solver, int32_t u)
{
    evict_one(solver, u);
    for (int32_t p = solver->units.all[u].is_last ? solver->units.all[u].previous : -1; p >= 0;
         p = solver->units.all[p].previous) {
        evict_one(solver, p);
    }
}

static int by_number(const void *left, const void *right)
{
    int32_t l = *(const int32_t *)left, r = *(const int32_t *)right;
    return l < r ? -1 : l > r;
}

static void clear_scenario(struct solver *solver)
{
    cluster_rollback(solver->cluster, solver->scenario.checkpoint);
    for (int32_t i = 0; i < solver->scenario.n_evicted; i++) {
        solver->units.all[solver->scenario.evicted[i]].is_evicted = false;
    }
    solver->scenario.n_evicted = 0;
}

static int32_t add_unit_nodes(const struct solver *solver, int32_t u, int32_t n)
{
    const struct eviction_unit *unit = &solver->units.all[u];
    for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
        solver->scenario.made[n++] = solver->units.nodes[i];
    }
    return n;
}

/** The nodes on which room is made: `node` and those of what is recorded, in order. */
static struct place_nodes made_room(const struct solver *solver, int32_t node)
{
    int32_t n = 0, n_unique = 0;
    for (int32_t i = 0; i < solver->scenario.n_recorded; i++) {
        n = add_unit_nodes(solver, solver->scenario.recorded[i], n);
    }
    solver->scenario.made[n++] = node;
    qsort(solver->scenario.made, (size_t)n, sizeof(int32_t), by_number);
    for (int32_t i = 0; i < n; i++) {
        if (n_unique == 0 || solver->scenario.made[n_unique - 1] != solver->scenario.made[i]) {
            solver->scenario.made[n_unique++] = solver->scenario.made[i];
        }
    }
    return (struct place_nodes){.list = solver->scenario.made, .n = n_unique};
}

/** Place the first tasks of the job, if its queues may take them in this scenario. */
static bool place_pending(struct solver *solver, int32_t n_tasks)
{
    struct weir_sched_amount amount, fixed;
    int32_t queue = solver->cluster->snapshot->jobs[solver->request.job].queue;
    const int32_t *tasks = solver->pending + solver->scenario.n_frozen;
    n_tasks -= solver->scenario.n_frozen;
    quantum_amount_at_least(solver->cluster, tasks, n_tasks, &amount, &fixed);
    return shares_admit(solver->cluster, queue, &amount, &fixed, NULL) &&
           placer_place(solver->placer, solver->request.job, tasks, n_tasks, NULL);
}

/** A gang that goes leaves room on many nodes; only that on one more counts for one more task. */
static void exclude_others(struct solver *solver, int32_t node, bool is_excluded)
{
    for (int32_t i = 0; i < solver->scenario.n_evicted; i++) {
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[i]];
        for (int32_t t = unit->first; t < unit->first + unit->n && !unit->is_recorded; t++) {
            int32_t current_node = solver->units.nodes[t];
            solver->cluster->is_excluded[current_node] = is_excluded && current_node != node;
        }
    }
    for (int32_t i = 0; i < solver->scenario.n_recorded; i++) {
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.recorded[i]];
        for (int32_t t = unit->first; t < unit->first + unit->n; t++) {
            solver->cluster->is_excluded[solver->units.nodes[t]] = false;
        }
    }
}

/** Put the scenario in place: what is recorded, and of the units from `first` to `last` what
 * touches `node`, goes; the first n_tasks of the job come. */
static bool try_scenario(struct solver *solver, int32_t n_tasks, int32_t node, int32_t first,
                         int32_t last)
{
    struct cluster *cluster = solver->cluster;
    solver->budget.n_steps += 1 + cluster->snapshot->n_nodes / SOLVER_NODES_PER_STEP;
    clear_scenario(solver);
    for (int32_t i = 0; i < solver->scenario.n_recorded; i++) {
        evict_unit(solver, solver->scenario.recorded[i]);
    }
    for (int32_t link = node < 0 ? -1 : solver->units.node_head[node]; link >= 0;
         link = solver->units.links[link].next) {
        if (solver->units.links[link].unit >= first && solver->units.links[link].unit <= last) {
            evict_unit(solver, solver->units.links[link].unit);
        }
    }
    qsort(solver->scenario.evicted, (size_t)solver->scenario.n_evicted, sizeof(int32_t), by_number);
    size_t checkpoint = cluster_checkpoint(cluster);
    if (n_tasks > 1 && node >= 0) { /* Rather all where room is made: the rest stays whole. */
        solver->placer->only = made_room(solver, node);
        bool is_whole = place_pending(solver, n_tasks);
        solver->placer->only = (struct place_nodes){0};
        if (is_whole && replace_victims(solver, n_tasks)) {
            return true;
        }
        cluster_rollback(cluster, checkpoint);
    }
    exclude_others(solver, node, true);
    bool is_placed = place_pending(solver, n_tasks);
    exclude_others(solver, node, false);
    return is_placed && replace_victims(solver, n_tasks);
}

static void record(struct solver *solver)
{
    solver->scenario.n_recorded = 0;
    for (int32_t i = 0; i < solver->scenario.n_evicted; i++) {
        int32_t u = solver->scenario.evicted[i];
        solver->units.all[u].is_recorded = !replace_is_whole(solver, &solver->units.all[u]);
        if (solver->units.all[u].is_recorded) {
            solver->scenario.recorded[solver->scenario.n_recorded++] = u;
        }
    }
}

/**
 * Let what is solved stand, so that the next task costs no more than the first did. Small gangs are
 * worked out again with each task instead, which finds scenarios with fewer victims.
 */
static void freeze(struct solver *solver, int32_t n_tasks)
{
    const struct cluster *cluster = solver->cluster;
    const struct job_state *job = &cluster->jobs[solver->request.job];
    if (n_tasks < FREEZE_FROM || job->n_groups > 1 ||
        cluster->groups[job->first_group].topology >= 0) {
        return;
    }
    for (int32_t i = 0; i < solver->scenario.n_evicted; i++) {
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[i]];
        for (int32_t t = unit->first; t < unit->first + unit->n; t++) {
            if (cluster->tasks[solver->units.tasks[t]].planned_node >= 0) {
                return; /* Who stays or moves now may have to go for a later task. */
            }
        }
    }
    for (int32_t i = 0; i < solver->scenario.n_evicted;
         i++) { /* They are no longer there to be popped. */
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[i]];
        solver->units.popped[unit->job] -= unit->n;
    }
    solver->scenario.n_frozen_losses = replace_count_losses(solver);
    solver->scenario.n_frozen = n_tasks;
    solver->scenario.checkpoint = cluster_checkpoint(cluster);
    solver->scenario.n_evicted = solver->scenario.n_recorded = 0;
}

/** What all possible victims hold, by node. */
static void count_all_reclaimable(struct solver *solver)
{
    const struct cluster *cluster = solver->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    memset(solver->all_reclaimable, 0, (size_t)snapshot->n_nodes * sizeof *solver->all_reclaimable);
    solver->budget.n_steps += snapshot->n_tasks / SOLVER_JOBS_PER_STEP;
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct job_state *job = &cluster->jobs[j];
        bool is_victim = solver->request.is_victim[j] != SOLVER_NOT_A_VICTIM;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && is_victim; t++) {
            const struct task_state *task = &cluster->tasks[t];
            int32_t seat = cluster_seat(cluster, t);
            if (seat >= 0 && seat == task->planned_node) {
                feasibility_count(&solver->feasibility, t, seat,
                                  solver->request.may_lose[job->queue], job->n_tasks > 1,
                                  &solver->all_reclaimable[seat]);
            }
        }
    }
}

/** Whether the job would fit if all possible victims were gone: if not, nothing else can help. */
static bool is_infeasible(struct solver *solver, int32_t n_tasks)
{
    clear_scenario(solver);
    if (solver->is_simple) {
        const struct reclaimable *reclaimable = solver->feasibility.reclaimable;
        if (!solver->request.must_move_all) {
            count_all_reclaimable(solver);
            reclaimable = solver->all_reclaimable;
        }
        return feasibility_count_fits(solver->cluster, solver->pending[0], reclaimable, n_tasks) <
               n_tasks;
    }
    while (victims_pop(solver)) {
    }
    for (int32_t u = 0; u < solver->units.n; u++) {
        evict_unit(solver, u);
    }
    bool fits = place_pending(solver, n_tasks);
    clear_scenario(solver);
    return !fits;
}

/** Whether a scenario on the node is worth a trial: the first task, which fits nowhere as things
 *  are, can only come to lie there. */
static bool could_help(struct solver *solver, int32_t n_tasks, int32_t node)
{
    clear_scenario(solver);
    return n_tasks > 1 || !solver->is_simple ||
           feasibility_fits(solver->cluster, solver->pending[0], node,
                            &solver->units.reclaimable[node]);
}

/** Whether a unit before u that is not recorded has a task on the node. */
static bool has_earlier(const struct solver *solver, int32_t node, int32_t u)
{
    for (int32_t link = solver->units.node_head[node]; link >= 0;
         link = solver->units.links[link].next) {
        int32_t unit = solver->units.links[link].unit;
        if (unit < u && !solver->units.all[unit].is_recorded) {
            return true;
        }
    }
    return false;
}

/**
 * All on the node up to unit u go; and if that is more than may be taken, u alone where the search
 * is one by right or by age (n_tiers): a gang that loses first and is too large to go stands on
 * many nodes, and who stands beside it may be what is lent.
 */
static bool try_node(struct solver *solver, int32_t n_tasks, int32_t node, int32_t u)
{
    if (try_scenario(solver, n_tasks, node, 0, u)) {
        return true;
    }
    return solver->request.n_tiers > 0 && has_earlier(solver, node, u) &&
           try_scenario(solver, n_tasks, node, u, u);
}

static bool try_unit(struct solver *solver, int32_t n_tasks, int32_t u)
{
    const struct eviction_unit *unit = &solver->units.all[u];
    if (unit->is_recorded) {
        return false;
    }
    for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
        int32_t node = solver->units.nodes[i];
        bool is_new = true;
        for (int32_t j = unit->first; j < i && is_new; j++) {
            is_new = solver->units.nodes[j] != node;
        }
        if (is_new && could_help(solver, n_tasks, node) && try_node(solver, n_tasks, node, u)) {
            return true;
        }
        solver->budget.n_scenarios += is_new;
    }
    return false;
}

/** Find victims for one task more than before. */
static bool solve_tasks(struct solver *solver, int32_t n_tasks, int32_t n_all)
{
    int64_t most = solver->cluster->profile->search_max_scenarios;
    solver->budget.n_scenarios++;
    if (try_scenario(solver, n_tasks, -1, 0, -1)) {
        record(solver);
        return true;
    }
    for (int32_t u = 0; solver->cluster->status == WEIR_OK; u++) {
        clear_scenario(solver);
        if (u >= solver->units.n && !victims_pop(solver)) {
            return false;
        }
        if (try_unit(solver, n_tasks, u)) {
            record(solver);
            return true;
        }
        if (solver->budget.n_scenarios >= most ||
            solver->budget.n_steps >= solver->budget.steps_max) {
            return false;
        }
        if (u == PRUNE_AFTER && n_tasks == 1 && !solver->is_pruned &&
            is_infeasible(solver, n_all)) {
            return false;
        }
    }
    return false;
}

/** The least that the job's tasks take of devices, whatever the node. */
static int64_t devices_wanted(const struct solver *solver, int32_t n_tasks)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < n_tasks; i++) {
        const struct weir_sched_demand *demand =
            cluster_demand(solver->cluster, solver->pending[i]);
        sum += fraction_least(demand);
    }
    return sum;
}

/** How many tasks like this one the node could hold if it were empty, at most. */
static int64_t most_on(const struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    int64_t n = node->n_tasks_max < 0 ? INT32_MAX : node->n_tasks_max;
    if (demand->cpu_milli > 0) {
        n = WEIR_MIN(n, node->cpu_milli / demand->cpu_milli);
    }
    if (demand->memory_bytes > 0) {
        n = WEIR_MIN(n, node->memory_bytes / demand->memory_bytes);
    }
    if (demand->n_devices > 0 && demand->device_milli == WEIR_SCHED_DEVICE) {
        n = WEIR_MIN(n, node->n_devices / demand->n_devices);
    }
    return n;
}

/** Whether the nodes could hold the tasks of each shape if they were empty. */
static bool is_possible(const struct solver *solver, int32_t n_tasks)
{
    const struct cluster *cluster = solver->cluster;
    for (int32_t first = 0, end; first < n_tasks; first = end) { /* Runs of equal shapes. */
        int32_t task = solver->pending[first];
        for (end = first + 1; end < n_tasks && cluster->tasks[solver->pending[end]].shape ==
                                                   cluster->tasks[task].shape;) {
            end++;
        }
        int64_t n_possible = 0;
        for (int32_t node = 0; node < cluster->snapshot->n_nodes && n_possible < end - first;
             node++) {
            n_possible += fits_ever(cluster, task, node) ? most_on(cluster, task, node) : 0;
        }
        if (n_possible < end - first) {
            return false;
        }
    }
    return true;
}

/** Whether the tasks are alike, what fits them is a matter of one node alone, and their queues
 * would take the first: then sums by node say who need not be tried. */
static bool is_simple(const struct solver *solver, int32_t n_tasks)
{
    const struct cluster *cluster = solver->cluster;
    const struct job_state *job = &cluster->jobs[solver->request.job];
    struct weir_sched_amount amount, fixed;
    int32_t queue = cluster->snapshot->jobs[solver->request.job].queue;
    if (job->n_groups > 1 || cluster->groups[job->first_group].topology >= 0 ||
        cluster->queues[queue].bounds_model >= 0 || affinity_matters(cluster, solver->pending[0])) {
        return false;
    }
    for (int32_t i = 1; i < n_tasks; i++) {
        if (cluster->tasks[solver->pending[i]].shape != cluster->tasks[solver->pending[0]].shape) {
            return false;
        }
    }
    quantum_amount_at_least(cluster, solver->pending, 1, &amount, &fixed);
    return shares_admit(cluster, queue, &amount, &fixed, NULL);
}

/** Note the nodes on which a task of the job would fit if everybody who could move had.
 *  @return Whether all n_tasks would. */
static bool find_feasible(struct solver *solver, int32_t n_tasks)
{
    int64_t n = 0;
    solver->budget.n_steps += solver->cluster->snapshot->n_nodes / SOLVER_LOOKS_PER_STEP;
    for (int32_t at = 0; at < solver->cluster->snapshot->n_nodes; at++) {
        int64_t n_here = feasibility_count_on(solver->cluster, solver->pending[0], at,
                                              &solver->feasibility.reclaimable[at]);
        solver->is_feasible[at] = n_here > 0;
        n += n_here;
    }
    return n >= n_tasks;
}

int64_t solver_steps_for_moves(const struct solver *solver, int64_t most)
{
    int64_t n_nodes = solver->cluster->snapshot->n_nodes;
    return solver->is_large ? most * SOLVER_LARGE / n_nodes : most;
}

bool solver_solve(struct solver *solver)
{
    struct cluster *cluster = solver->cluster;
    int32_t n_tasks = quantum_next(cluster, solver->request.job, solver->pending);
    if (n_tasks == 0) {
        return false;
    }
    quantum_amount(cluster, solver->pending, n_tasks, &solver->request.amount,
                   &solver->request.fixed);
    if (solver->request.must_move_all &&
        devices_wanted(solver, n_tasks) > cluster->capacity.room_milli) {
        return false; /* Moving work makes no room that was not there. */
    }
    if (!is_possible(solver, n_tasks)) {
        return false;
    }
    solver->is_simple = is_simple(solver, n_tasks);
    solver->is_pruned = solver->request.must_move_all && solver->is_simple && solver->is_large;
    if (solver->is_pruned && !find_feasible(solver, n_tasks)) {
        return false;
    }
    if (n_tasks >= FREEZE_FROM && victims_open(solver) != WEIR_OK) {
        victims_close(solver);
        cluster->status = WEIR_ERR_NOMEM;
        return false;
    }
    solver->scenario.checkpoint = cluster_checkpoint(cluster);
    solver->budget.n_scenarios = 0;
    solver->scenario.n_evicted = solver->scenario.n_recorded = 0;
    solver->scenario.n_frozen = solver->scenario.n_frozen_losses = 0;
    size_t base = solver->scenario.checkpoint;
    solver->placer->pipeline_only = true;
    bool is_solved = true;
    for (int32_t n = 1; n <= n_tasks && is_solved; n++) {
        is_solved = solve_tasks(solver, n, n_tasks);
        if (is_solved && n < n_tasks) {
            freeze(solver, n);
        }
    }
    solver->placer->pipeline_only = false;
    victims_close(solver);
    if (!is_solved || solver->scenario.n_recorded + solver->scenario.n_frozen_losses == 0 ||
        cluster->status != WEIR_OK) {
        cluster_rollback(cluster, base);
        return false;
    }
    return true;
}
