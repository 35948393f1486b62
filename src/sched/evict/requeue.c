#include "sched/evict/requeue.h"

#include "sched/evict/settle.h"
#include "sched/model/chunk.h"

#include <string.h>

/** In the sense of SOLVER_NODES_PER_STEP, to see who waits. */
#define JOBS_PER_STEP 64

/** Who else waits has its turn as well, which can let one queue be served before another. Of more
 *  than so many none has: to look at each in every scenario would take longer than all the rest. */
#define OTHERS_MAX 256

void requeue_clear(struct solver *solver)
{
    cluster_rollback(solver->cluster, solver->checkpoint);
    requeue_release(solver);
}

void requeue_release(struct solver *solver)
{
    struct search *search = &solver->search;
    for (int32_t i = 0; i < search->n_victims; i++) {
        search->turns[search->victims[i]] = CHUNK_BY_PHASE;
        search->is_victim[solver->cluster->tasks[search->victims[i]].job] = false;
    }
    search->n_victims = 0;
}

static void add_victim(struct solver *solver, int32_t task)
{
    struct search *search = &solver->search;
    int32_t job = solver->cluster->tasks[task].job;
    if (search->turns[task] != CHUNK_AGAIN) {
        if (!search->is_victim[job]) {
            search->was_whole[job] =
                chunk_is_satisfied(solver->cluster, solver->cluster->jobs[job].first_group);
        }
        search->victims[search->n_victims++] = task;
        search->turns[task] = CHUNK_AGAIN;
        search->is_victim[job] = true;
        cluster_evict(solver->cluster, task, solver->reason, solver->job);
    }
}

static bool holds(const int32_t *devices, int32_t n, int32_t device)
{
    for (int32_t i = 0; i < n; i++) {
        if (devices[i] == device) {
            return true;
        }
    }
    return false;
}

/** A task that waits for `from` of a node waits for `to` instead. */
static void change_device(struct solver *solver, int32_t task, int32_t node, int32_t from,
                          int32_t to)
{
    struct cluster *cluster = solver->cluster;
    const struct task_state *state = &cluster->tasks[task];
    int32_t n = cluster_demand(cluster, task)->n_devices;
    const int32_t *target = cluster->target_devices + state->first_spot;
    if (state->phase != PHASE_PIPELINED || state->target != node || !holds(target, n, from)) {
        return;
    }
    int32_t *changed = solver->placer->devices;
    for (int32_t i = 0; i < n; i++) {
        changed[i] = target[i] == from ? to : target[i];
    }
    cluster_move(cluster, task, changed);
}

/** Devices of a NUMA zone are alike: whoever was given one of a victim's that stays takes a free
 *  one. */
static void make_way(struct solver *solver, int32_t victim)
{
    const struct job_state *job = &solver->cluster->jobs[solver->job];
    struct cluster *cluster = solver->cluster;
    const struct task_state *state = &cluster->tasks[victim];
    int32_t node = state->held, n = cluster_demand(cluster, victim)->n_devices;
    const int32_t *held = cluster->held_devices + state->first_spot;
    const struct device_state *devices = cluster->devices + cluster->nodes[node].first_device;
    for (int32_t i = 0; i < n; i++) {
        int32_t to = settle_find_free(cluster, victim, held[i]);
        if (devices[held[i]].future == 0 || to < 0) {
            continue;
        }
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            change_device(solver, t, node, held[i], to);
        }
        for (int32_t v = 0; v < solver->search.n_victims; v++) {
            change_device(solver, solver->search.victims[v], node, held[i], to);
        }
    }
}

/** Whoever is placed where it runs has not to go at all. */
static void stay(void *context, int32_t task)
{
    struct solver *solver = context;
    struct cluster *cluster = solver->cluster;
    const struct task_state *state = &cluster->tasks[task];
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    size_t size = (size_t)demand->n_devices * sizeof(int32_t);
    bool is_share = demand->n_devices > 0 && demand->device_milli != WEIR_SCHED_DEVICE;
    if (state->phase != PHASE_PIPELINED || state->target != state->held || state->held < 0 ||
        (is_share && memcmp(cluster->held_devices + state->first_spot,
                            cluster->target_devices + state->first_spot, size) != 0)) {
        return;
    }
    size_t checkpoint = cluster_checkpoint(cluster);
    cluster_evict(cluster, task, solver->reason, solver->job);
    make_way(solver, task);
    if (fits_back(cluster, task)) {
        cluster_unevict(cluster, task);
    } else {
        cluster_rollback(cluster, checkpoint);
    }
}

/** Place what waits next of a job. */
static bool place(struct solver *solver, int32_t job)
{
    struct cluster *cluster = solver->cluster;
    struct weir_sched_amount amount, fixed;
    int32_t n = chunk_next_by_turn(cluster, job, solver->search.turns, solver->scratch);
    if (n == 0) {
        return job != solver->job;
    }
    chunk_amount(cluster, solver->scratch, n, &amount, &fixed);
    size_t checkpoint = cluster_checkpoint(cluster);
    if (!shares_admit(cluster, cluster->jobs[job].queue, &amount, &fixed, NULL) ||
        !placer_place(solver->placer, job, solver->scratch, n, NULL)) {
        return false;
    }
    for (int32_t i = 0; i < n && job != solver->job; i++) {
        if (!solver->may_move && cluster->tasks[solver->scratch[i]].phase == PHASE_PIPELINED) {
            cluster_rollback(cluster, checkpoint);
            return false;
        }
    }
    return true;
}

/** List who gets a place, the job and its victims, and of all others who wait if they are not too
 *  many. @return How many of the former. */
static int32_t list_jobs(struct solver *solver)
{
    const struct cluster *cluster = solver->cluster;
    struct search *search = &solver->search;
    int32_t n = 0, n_others = 0;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        bool gets_place = search->is_victim[j] || j == solver->job;
        bool waits = cluster->groups[cluster->jobs[j].first_group].n_pending > 0;
        search->is_listed[j] = gets_place || waits;
        n += gets_place;
        n_others += waits && !gets_place;
    }
    for (int32_t j = 0; j < cluster->snapshot->n_jobs && n_others > OTHERS_MAX; j++) {
        search->is_listed[j] = search->is_victim[j] || j == solver->job;
    }
    return n;
}

/** Let all that waits pass in order, and place the job and its victims. @return Whether the job has
 *  its place. */
static bool allocate(struct solver *solver)
{
    struct cluster *cluster = solver->cluster;
    struct search *search = &solver->search;
    bool is_placed = false, has_failed = false;
    struct order order;
    int32_t n_left = list_jobs(solver);
    if (order_init_by_turn(&order, cluster, search->is_listed, search->turns) != WEIR_OK) {
        cluster->status = WEIR_ERR_NOMEM;
        has_failed = true;
    }
    for (int32_t job = -1; !has_failed && n_left > 0 && (job = order_pop(&order)) >= 0;) {
        n_left -= search->is_victim[job] || job == solver->job;
        if (job == solver->job) {
            is_placed = place(solver, job);
            has_failed = !is_placed;
        } else if (search->is_victim[job]) {
            place(solver, job);
        }
    }
    order_fini(&order);
    return is_placed && !has_failed && cluster->status == WEIR_OK;
}

static void count_loss(const struct cluster *cluster, int32_t task, struct reclaim_loss *loss)
{
    struct task_charge charge = cluster_charge(cluster, task, cluster->tasks[task].held);
    amount_count(&loss->amount, &charge, 1);
    charge.model = cluster_charge(cluster, task, -1).model;
    amount_count(&loss->asked, &charge, 1);
}

static int32_t add_loss(struct solver *solver, int32_t task, int32_t n)
{
    int32_t queue = solver->cluster->jobs[solver->cluster->tasks[task].job].queue;
    solver->losses[n] = (struct reclaim_loss){.queue = queue};
    count_loss(solver->cluster, task, &solver->losses[n]);
    return n + 1;
}

static bool is_lost(const struct cluster *cluster, int32_t task)
{
    return cluster->tasks[task].target < 0;
}

/**
 * What is lost: of each job the tasks beyond as many as the minimum of their sub-group one by one,
 * the others together.
 */
static int32_t count_losses(struct solver *solver)
{
    const struct cluster *cluster = solver->cluster;
    struct search *search = &solver->search;
    int32_t n = 0, n_early = 0;
    if (!settle_reserve_losses(solver, search->n_victims)) {
        return 0;
    }
    for (int32_t v = 0; v < search->n_victims; v++) {
        search->n_of_group[cluster->tasks[search->victims[v]].group] = 0;
        search->loss_of_job[cluster->tasks[search->victims[v]].job] = -1;
    }
    for (int32_t v = 0; v < search->n_victims; v++) {
        int32_t task = search->victims[v], group = cluster->tasks[task].group;
        if (search->n_of_group[group]++ < cluster->groups[group].min_member) {
            search->victims_early[n_early++] = task;
        } else if (is_lost(cluster, task)) {
            n = add_loss(solver, task, n);
        }
    }
    for (int32_t v = 0; v < n_early; v++) {
        int32_t task = search->victims_early[v], job = cluster->tasks[task].job;
        if (is_lost(cluster, task) && search->loss_of_job[job] >= 0) {
            count_loss(cluster, task, &solver->losses[search->loss_of_job[job]]);
        } else if (is_lost(cluster, task)) {
            search->loss_of_job[job] = n;
            n = add_loss(solver, task, n);
        }
    }
    return n;
}

/** Whether the task moves off devices of a model that are guaranteed to a queue of its. */
static bool leaves_model(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    int model = state->held < 0 ? -1 : cluster_charge(cluster, task, state->held).model;
    if (model < 0 || state->target < 0 || cluster->nodes[state->target].model == model) {
        return false;
    }
    int32_t queue = cluster->jobs[state->job].queue;
    while (queue >= 0 && cluster->queues[queue].shares[model].quota < 0) {
        queue = cluster->snapshot->queues[queue].parent;
    }
    return queue >= 0;
}

/** Whether only a part of a job would be left that was whole: of a gang of which some members had
 *  to move for fewer of the tasks, these may now have no place. */
static bool is_torn(const struct solver *solver, int32_t job)
{
    const struct cluster *cluster = solver->cluster;
    const struct group_state *root = &cluster->groups[cluster->jobs[job].first_group];
    return solver->search.was_whole[job] && root->n_alive + root->n_pipelined > 0 &&
           !chunk_is_satisfied(cluster, cluster->jobs[job].first_group);
}

static bool is_allowed(struct solver *solver)
{
    const struct search *search = &solver->search;
    int64_t most = solver->cluster->profile->consolidation_max_moves, n_moves = 0;
    int32_t n_losses = count_losses(solver);
    for (int32_t v = 0; v < search->n_victims; v++) {
        n_moves += solver->cluster->tasks[search->victims[v]].phase == PHASE_PIPELINED;
        if (leaves_model(solver->cluster, search->victims[v]) ||
            (is_lost(solver->cluster, search->victims[v]) &&
             is_torn(solver, solver->cluster->tasks[search->victims[v]].job))) {
            return false;
        }
    }
    if (solver->must_move_all && (n_losses > 0 || (most >= 0 && n_moves > most))) {
        return false;
    }
    return solver->cluster->status == WEIR_OK &&
           (solver->allow == NULL || solver->allow(solver, solver->losses, n_losses));
}

bool requeue_try(struct solver *solver)
{
    struct cluster *cluster = solver->cluster;
    struct search *search = &solver->search;
    solver->n_scenarios++;
    solver->n_steps += 1 + cluster->snapshot->n_nodes / SOLVER_NODES_PER_STEP +
                       cluster->snapshot->n_jobs / JOBS_PER_STEP;
    requeue_clear(solver);
    for (int32_t i = 0; i < search->n_recorded; i++) {
        add_victim(solver, search->recorded[i]);
    }
    for (int32_t u = 0; u < solver->n_units; u++) {
        const struct solver_unit *unit = &solver->units[u];
        for (int32_t i = unit->first; i < unit->first + unit->n && search->chosen[u]; i++) {
            add_victim(solver, solver->unit_tasks[i]);
        }
    }
    solver->placer->pipeline_only = true;
    solver->placer->note_placed = stay;
    solver->placer->context = solver;
    bool is_placed = search->n_victims > 0 && allocate(solver);
    solver->placer->pipeline_only = false;
    solver->placer->note_placed = NULL;
    return is_placed && is_allowed(solver);
}
