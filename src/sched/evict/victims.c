#include "sched/evict/victims.h"

#include "sched/model/quantum.h"

#include <string.h>

/** Who is in the way is sorted apart if it is less than this part of all victims. */
#define PRUNED_PART 4

/** The victims of one ring in order, the others being popped already or to come. */
static weir_status open_tier(struct solver *solver)
{
    const struct cluster *cluster = solver->cluster;
    for (int32_t i = 0; i < cluster->snapshot->n_jobs; i++) {
        solver->is_listed[i] = solver->request.is_victim[i] != SOLVER_NOT_A_VICTIM &&
                               solver->request.tiers[cluster->jobs[i].queue] == solver->tier;
    }
    order_fini(&solver->victims);
    return order_init(&solver->victims, cluster, solver->is_listed, true);
}

/** Whether a victim has a task on a node where the job could come to lie. */
static bool is_in_the_way(const struct solver *solver, int32_t job)
{
    const struct job_state *state = &solver->cluster->jobs[job];
    for (int32_t t = state->first_task; t < state->first_task + state->n_tasks; t++) {
        int32_t node = cluster_seat(solver->cluster, t);
        if (node >= 0 && solver->is_feasible[node]) {
            return true;
        }
    }
    return false;
}

/** The victims in the way in order; without an effect if they are most of all. */
static weir_status open_pruned(struct solver *solver)
{
    int32_t n_jobs = solver->cluster->snapshot->n_jobs, n_victims = 0, n_listed = 0;
    for (int32_t i = 0; i < n_jobs; i++) {
        bool is_victim = solver->request.is_victim[i] != SOLVER_NOT_A_VICTIM;
        solver->is_listed[i] = is_victim && is_in_the_way(solver, i);
        n_victims += is_victim;
        n_listed += solver->is_listed[i];
    }
    solver->budget.n_steps += n_jobs / SOLVER_LOOKS_PER_STEP;
    solver->is_pruned = n_listed < n_victims / PRUNED_PART;
    if (!solver->is_pruned) {
        return WEIR_OK;
    }
    solver->budget.n_steps += n_listed / SOLVER_SORTS_PER_STEP;
    order_fini(&solver->victims);
    return order_init(&solver->victims, solver->cluster, solver->is_listed, true);
}

/** The victims in order: what the last search sorted is brought up to date. */
static weir_status open_order(struct solver *solver)
{
    const struct cluster *cluster = solver->cluster;
    size_t size = (size_t)cluster->snapshot->n_jobs * sizeof *solver->is_listed;
    struct solver_sorted *sorted =
        &solver->sorted[solver->request.reason == WEIR_SCHED_EVICT_PREEMPT];
    if (sorted->version < 0) {
        order_fini(&sorted->order);
        WEIR_TRY(order_init(&sorted->order, cluster, solver->is_listed, true));
    } else {
        order_update(&sorted->order, solver->is_listed, sorted->is_listed, sorted->version);
    }
    memcpy(sorted->is_listed, solver->is_listed, size);
    sorted->version = cluster->changes.n_commits;
    return order_copy(&solver->victims, &sorted->order);
}

/** All victims, or those of the first ring, in order. */
static weir_status open_wide(struct solver *solver)
{
    int32_t n_jobs = solver->cluster->snapshot->n_jobs;
    bool is_cut = solver->request.must_move_all && solver->is_large;
    solver->budget.n_steps += n_jobs / (is_cut ? SOLVER_LOOKS_PER_STEP : SOLVER_JOBS_PER_STEP);
    for (int32_t i = 0; i < n_jobs; i++) {
        solver->is_listed[i] = solver->request.is_victim[i] != SOLVER_NOT_A_VICTIM;
    }
    solver->tier = 0;
    return solver->request.n_tiers > 0 ? open_tier(solver) : open_order(solver);
}

weir_status victims_open(struct solver *solver)
{
    const struct weir_sched_snapshot *snapshot = solver->cluster->snapshot;
    solver->units.n = solver->units.n_tasks = 0;
    solver->are_open = true;
    memset(solver->units.reclaimable, 0,
           (size_t)snapshot->n_nodes * sizeof *solver->units.reclaimable);
    memset(solver->units.popped, 0, (size_t)snapshot->n_jobs * sizeof *solver->units.popped);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        solver->units.node_head[i] = -1;
    }
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        solver->units.last_of_job[i] = -1;
    }
    if (solver->is_pruned) {
        WEIR_TRY(open_pruned(solver));
    }
    return solver->is_pruned ? WEIR_OK : open_wide(solver);
}

void victims_close(struct solver *solver)
{
    solver->are_open = false;
    if (solver->request.n_tiers > 0 || solver->is_pruned) {
        order_fini(&solver->victims); /* It is no copy of what was sorted. */
    }
    solver->units.n = solver->units.n_tasks = 0;
}

/** Of a job with one group: the tasks after the first n_popped to end. */
static int32_t next_of_flat(const struct solver *solver, int32_t job, int32_t n_popped,
                            int32_t *out, bool *out_is_last)
{
    const struct cluster *cluster = solver->cluster;
    const struct group_state *group = &cluster->groups[cluster->jobs[job].first_group];
    int32_t n_surplus = group->n_alive + group->n_pipelined - group->min_member, n = 0;
    bool is_one = n_popped < n_surplus;
    int32_t n_left = group->n_alive - n_popped; /* The last are gone already. */
    for (int32_t i = 0; i < group->n_tasks && n_left > 0; i++) {
        int32_t task = cluster->task_order[group->first_task + i];
        enum task_phase phase = (enum task_phase)cluster->tasks[task].phase;
        if (phase == PHASE_RUNNING || phase == PHASE_BOUND) {
            n_left--;
            if (!is_one || n_left == 0) {
                out[n++] = task;
            }
        }
    }
    *out_is_last = !is_one;
    return n;
}

/** Of a job with sub-groups: by ending what comes before, on trial. */
static int32_t next_of_tree(struct solver *solver, int32_t job, int32_t n_popped, int32_t *out,
                            bool *out_is_last)
{
    struct cluster *cluster = solver->cluster;
    size_t checkpoint = cluster_checkpoint(cluster);
    int32_t n = 0;
    for (int32_t n_done = 0; cluster->status == WEIR_OK; n_done += n) {
        n = quantum_to_evict(cluster, job, out);
        *out_is_last = n == cluster->groups[cluster->jobs[job].first_group].n_alive;
        if (n == 0 || n_done >= n_popped) {
            break;
        }
        for (int32_t i = 0; i < n; i++) {
            cluster_evict(cluster, out[i], WEIR_SCHED_EVICT_NONE, WEIR_SCHED_NONE);
        }
    }
    cluster_rollback(cluster, checkpoint);
    return n;
}

static int32_t next_unit(struct solver *solver, int32_t job, int32_t *out, bool *out_is_last)
{
    struct cluster *cluster = solver->cluster;
    int32_t n_popped = solver->units.popped[job];
    if (quantum_is_only_pipelined(cluster, job)) {
        *out_is_last = true;
        return n_popped == 0 ? quantum_to_evict(cluster, job, out) : 0;
    }
    bool is_flat = cluster->jobs[job].n_groups == 1;
    int32_t n = is_flat ? next_of_flat(solver, job, n_popped, out, out_is_last)
                        : next_of_tree(solver, job, n_popped, out, out_is_last);
    bool is_whole = solver->request.is_victim[job] == SOLVER_WHOLE &&
                    cluster->jobs[job].preemptibility == WEIR_SCHED_PREEMPTIBLE;
    return *out_is_last && !is_whole ? 0 : n;
}

static void link_unit(struct solver *solver, int32_t unit)
{
    const struct eviction_unit *of = &solver->units.all[unit];
    const struct job_state *job = &solver->cluster->jobs[of->job];
    for (int32_t i = of->first; i < of->first + of->n; i++) {
        int32_t node = cluster_seat(solver->cluster, solver->units.tasks[i]);
        solver->units.nodes[i] = node;
        feasibility_count(&solver->feasibility, solver->units.tasks[i], node,
                          solver->request.may_lose[job->queue], job->n_tasks > 1,
                          &solver->units.reclaimable[node]);
        int32_t last = solver->units.node_head[node];
        if (last < 0 || solver->units.links[last].unit != unit) {
            solver->units.links[i] = (struct solver_link){.unit = unit, .next = last};
            solver->units.node_head[node] = i;
        }
    }
}

/** What is left of a job loses after others that are still above their minimum. */
static void push_rest(struct solver *solver, int32_t job, int32_t *scratch)
{
    bool is_last = true;
    next_unit(solver, job, scratch, &is_last);
    order_push_ranked(&solver->victims, job, is_last ? QUANTUM_AT : QUANTUM_ABOVE);
}

bool victims_pop(struct solver *solver)
{
    solver->budget.n_steps++;
    if (!solver->are_open && victims_open(solver) != WEIR_OK) {
        solver->cluster->status = WEIR_ERR_NOMEM;
        return false;
    }
    for (;;) {
        int32_t job = order_pop(&solver->victims);
        if (job < 0 && solver->tier + 1 < solver->request.n_tiers) {
            solver->tier++;
            if (open_tier(solver) != WEIR_OK) {
                solver->cluster->status = WEIR_ERR_NOMEM;
                return false;
            }
            continue;
        }
        if (job < 0 || solver->cluster->status != WEIR_OK) {
            return false;
        }
        bool is_last = true;
        int32_t *out = solver->units.tasks + solver->units.n_tasks;
        int32_t n = next_unit(solver, job, out, &is_last);
        if (n == 0) {
            continue;
        }
        solver->units.all[solver->units.n] =
            (struct eviction_unit){.first = solver->units.n_tasks,
                                   .n = n,
                                   .job = job,
                                   .previous = solver->units.last_of_job[job],
                                   .is_last = is_last};
        solver->units.last_of_job[job] = solver->units.n;
        solver->units.n_tasks += n;
        solver->units.popped[job] += n;
        link_unit(solver, solver->units.n++);
        struct weir_sched_amount amount;
        quantum_amount(solver->cluster, out, n, &amount, NULL);
        order_count_loss(&solver->victims, job, &amount);
        if (!is_last) {
            push_rest(solver, job, out + n);
        }
        return true;
    }
}
