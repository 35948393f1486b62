#include "sched/evict/replace_victims.h"

#include "sched/model/quantum.h"
#include "sched/place/zones.h"

#include <stdlib.h>

/** What is above a minimum comes back only if the minimum does. */
static bool unit_has_base(const struct solver *solver, const struct eviction_unit *unit)
{
    int32_t root = solver->cluster->jobs[unit->job].first_group;
    return unit->is_last || quantum_is_satisfied(solver->cluster, root);
}

/** A victim comes back only within the limits that what was placed meanwhile has left. */
static bool unit_is_admitted(const struct solver *solver, const struct eviction_unit *unit)
{
    struct weir_sched_amount amount, fixed;
    quantum_amount_at_least(solver->cluster, solver->units.tasks + unit->first, unit->n, &amount,
                            &fixed);
    return shares_admit(solver->cluster, solver->cluster->snapshot->jobs[unit->job].queue, &amount,
                        &fixed, NULL);
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

static int32_t find_free(const struct cluster *cluster, int32_t victim, int32_t device)
{
    const int32_t *current_node = cluster->current_devices + cluster->tasks[victim].first_assigned;
    int32_t node = cluster->tasks[victim].current_node,
            n = cluster_demand(cluster, victim)->n_devices;
    const struct weir_sched_node *given = &cluster->snapshot->nodes[node];
    const struct device_state *states = cluster->devices + cluster->nodes[node].first_device;
    uint32_t zone = zones_of_devices(given, &device, 1);
    for (int32_t d = 0; d < given->n_devices; d++) {
        if (states[d].future == 0 && !holds(current_node, n, d) &&
            zones_of_devices(given, &d, 1) == zone) {
            return d;
        }
    }
    return -1;
}

/** If `other` waits for `device` of the victim's node, let it wait for a free one instead. */
static bool swap_device(struct solver *solver, int32_t victim, int32_t device, int32_t other)
{
    struct cluster *cluster = solver->cluster;
    const struct task_state *state = &cluster->tasks[other];
    int32_t node = cluster->tasks[victim].current_node,
            n = cluster_demand(cluster, other)->n_devices;
    int32_t *planned_node = cluster->planned_devices + state->first_assigned;
    if (state->phase != PHASE_PIPELINED || state->planned_node != node ||
        cluster_demand(cluster, other)->device_milli != WEIR_SCHED_DEVICE ||
        !holds(planned_node, n, device)) {
        return false;
    }
    int32_t to = find_free(cluster, victim, device);
    if (to < 0) {
        return false;
    }
    int32_t *swapped = solver->placer->devices;
    for (int32_t i = 0; i < n; i++) {
        swapped[i] = planned_node[i] == device ? to : planned_node[i];
    }
    cluster_move(cluster, other, swapped);
    return true;
}

/** Whole devices are alike: who was only given a victim's own by chance takes another. */
static void make_way(struct solver *solver, int32_t victim, int32_t n_tasks)
{
    struct cluster *cluster = solver->cluster;
    const struct task_state *state = &cluster->tasks[victim];
    const struct device_state *devices =
        cluster->devices + cluster->nodes[state->current_node].first_device;
    for (int32_t i = 0; i < cluster_demand(cluster, victim)->n_devices; i++) {
        int32_t device = cluster->current_devices[state->first_assigned + i];
        bool is_free = devices[device].future == 0;
        for (int32_t t = 0; t < n_tasks && !is_free; t++) {
            is_free = swap_device(solver, victim, device, solver->pending[t]);
        }
        for (int32_t e = 0; e < solver->scenario.n_evicted && !is_free; e++) {
            const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[e]];
            for (int32_t t = unit->first; t < unit->first + unit->n && !is_free; t++) {
                is_free = swap_device(solver, victim, device, solver->units.tasks[t]);
            }
        }
    }
}

static bool task_can_run_on(struct solver *solver, int32_t task, int32_t n_tasks)
{
    if (solver->cluster->tasks[task].phase != PHASE_RELEASING) {
        return false;
    }
    make_way(solver, task, n_tasks);
    if (!fits_back(solver->cluster, task)) {
        return false;
    }
    cluster_unevict(solver->cluster, task);
    return true;
}

/** Tasks of a unit that have no place yet, into scratch. */
static int32_t homeless(const struct solver *solver, const struct eviction_unit *unit)
{
    int32_t n = 0;
    for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
        if (solver->cluster->tasks[solver->units.tasks[i]].planned_node < 0) {
            solver->scratch[n++] = solver->units.tasks[i];
        }
    }
    return n;
}

static bool replace_unit(struct solver *solver, const struct eviction_unit *unit,
                         bool prefers_running_on, int32_t n_tasks)
{
    struct cluster *cluster = solver->cluster;
    for (int32_t i = unit->first; i < unit->first + unit->n && prefers_running_on; i++) {
        task_can_run_on(solver, solver->units.tasks[i], n_tasks);
    }
    int32_t n = homeless(solver, unit);
    if (n > 0 && (!solver->request.may_move ||
                  !placer_place(solver->placer, unit->job, solver->scratch, n, NULL))) {
        return false;
    }
    for (int32_t i = unit->first; i < unit->first + unit->n && !prefers_running_on; i++) {
        int32_t task = solver->units.tasks[i];
        if (cluster->tasks[task].planned_node == cluster->tasks[task].current_node) {
            size_t checkpoint = cluster_checkpoint(cluster);
            cluster_evict(cluster, task, solver->request.reason, solver->request.job);
            if (!task_can_run_on(solver, task, n_tasks)) {
                cluster_rollback(cluster, checkpoint);
            }
        }
    }
    return true;
}

/** A unit finds its place, or nothing of it changes. */
static bool try_unit(struct solver *solver, const struct eviction_unit *unit,
                     bool prefers_running_on, int32_t n_tasks)
{
    size_t checkpoint = cluster_checkpoint(solver->cluster);
    if (!unit_has_base(solver, unit) || !unit_is_admitted(solver, unit)) {
        return false;
    }
    bool is_settled = replace_unit(solver, unit, prefers_running_on, n_tasks);
    if (!is_settled) {
        cluster_rollback(solver->cluster, checkpoint);
    }
    return is_settled;
}

/** Where all must move, the first that finds no place ends it: the others would for nothing. */
static void replace_those(struct solver *solver, bool must_run_on, bool prefers_running_on,
                          int32_t n_tasks)
{
    bool is_settled = true;
    for (int32_t i = solver->scenario.n_evicted - 1;
         i >= 0 && (is_settled || !solver->request.must_move_all); i--) {
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[i]];
        if (unit->must_run_on == must_run_on) {
            is_settled = try_unit(solver, unit, prefers_running_on, n_tasks);
        }
    }
}

static void replace_all(struct solver *solver, bool prefers_running_on, int32_t n_tasks)
{
    replace_those(solver, true, prefers_running_on, n_tasks);
    replace_those(solver, false, prefers_running_on, n_tasks);
}

bool replace_is_whole(const struct solver *solver, const struct eviction_unit *unit)
{
    for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
        if (solver->cluster->tasks[solver->units.tasks[i]].phase != PHASE_RUNNING) {
            return false;
        }
    }
    return true;
}

/** Make room for n in solver->scenario.losses. false: memory is out. */
static bool reserve_losses(struct solver *solver, int32_t n)
{
    if (n <= solver->scenario.losses_cap) {
        return true;
    }
    void *grown = realloc(solver->scenario.losses, 2 * (size_t)n * sizeof *solver->scenario.losses);
    if (grown == NULL) {
        solver->cluster->status = WEIR_ERR_NOMEM;
        return false;
    }
    solver->scenario.losses = grown;
    solver->scenario.losses_cap = 2 * n;
    return true;
}

int32_t replace_count_losses(struct solver *solver)
{
    const struct cluster *cluster = solver->cluster;
    int32_t n = solver->scenario.n_frozen_losses;
    if (!reserve_losses(solver, n + solver->scenario.n_evicted)) {
        return n;
    }
    for (int32_t e = 0; e < solver->scenario.n_evicted; e++) {
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[e]];
        struct reclaim_loss loss = {.queue = cluster->snapshot->jobs[unit->job].queue};
        bool is_loss = false;
        for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
            int32_t task = solver->units.tasks[i];
            if (cluster->tasks[task].planned_node < 0) {
                struct task_charge charge =
                    cluster_charge(cluster, task, cluster->tasks[task].current_node);
                amount_count(&loss.amount, &charge, 1);
                charge.model = cluster_charge(cluster, task, -1).model;
                amount_count(&loss.asked, &charge, 1);
                is_loss = true;
            }
        }
        if (is_loss) {
            solver->scenario.losses[n++] = loss;
        }
    }
    return n;
}

static int32_t count_moves(const struct solver *solver)
{
    int32_t n = 0;
    for (int32_t e = 0; e < solver->scenario.n_evicted; e++) {
        const struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[e]];
        for (int32_t i = unit->first; i < unit->first + unit->n; i++) {
            n += solver->cluster->tasks[solver->units.tasks[i]].phase == PHASE_PIPELINED;
        }
    }
    return n;
}

static bool is_allowed(struct solver *solver)
{
    int32_t n_losses = replace_count_losses(solver);
    int64_t most = solver->cluster->profile->consolidation_max_moves;
    if (solver->request.must_move_all &&
        (n_losses > 0 || (most >= 0 && count_moves(solver) > most))) {
        return false;
    }
    return n_losses == 0 || solver->request.allow == NULL ||
           solver->request.allow(solver, solver->scenario.losses, n_losses);
}

/**
 * Who was popped first has the least claim among all who run, which is not to say that this job is
 * entitled to it: a queue above the job's may borrow as well, while a sibling has more than its
 * own. So those from whom the job must not take stay before the others.
 */
static bool replace_by_right(struct solver *solver, int32_t n_tasks)
{
    int32_t n_losses = replace_count_losses(solver), first = solver->scenario.n_frozen_losses,
            n_unfair = 0;
    if (n_losses != first + solver->scenario.n_evicted) {
        return false; /* Not in the state of before: memory is out. */
    }
    reclaim_mark_unfair(solver->cluster, solver->cluster->snapshot->jobs[solver->request.job].queue,
                        &solver->request.amount, solver->scenario.losses, n_losses,
                        solver->remaining);
    for (int32_t e = 0; e < solver->scenario.n_evicted; e++) {
        solver->units.all[solver->scenario.evicted[e]].must_run_on =
            solver->scenario.losses[first + e].is_unfair;
        n_unfair += solver->scenario.losses[first + e].is_unfair;
    }
    bool is_mixed = n_unfair > 0 && n_unfair < solver->scenario.n_evicted;
    if (is_mixed) {
        replace_all(solver, true, n_tasks);
    }
    for (int32_t e = 0; e < solver->scenario.n_evicted; e++) {
        solver->units.all[solver->scenario.evicted[e]].must_run_on = false;
    }
    return is_mixed && is_allowed(solver);
}

/** The nearest victims borrow what the job's own line of queues needs: they do not come back only
 *  because others, from further away, have left more room than it takes. */
static bool replace_without_nearest(struct solver *solver, int32_t n_tasks)
{
    const struct cluster *cluster = solver->cluster;
    for (int32_t e = 0; e < solver->scenario.n_evicted; e++) {
        struct eviction_unit *unit = &solver->units.all[solver->scenario.evicted[e]];
        unit->must_run_on = solver->request.tiers[cluster->jobs[unit->job].queue] > 0;
    }
    replace_those(solver, true, true, n_tasks);
    for (int32_t e = 0; e < solver->scenario.n_evicted; e++) {
        solver->units.all[solver->scenario.evicted[e]].must_run_on = false;
    }
    return is_allowed(solver);
}

bool replace_victims(struct solver *solver, int32_t n_tasks)
{
    bool has_rights = solver->request.reason == WEIR_SCHED_EVICT_RECLAIM &&
                      solver->cluster->profile->guarantee_first;
    size_t checkpoint = cluster_checkpoint(solver->cluster);
    replace_all(solver, true, n_tasks);
    if (is_allowed(solver)) {
        return true;
    }
    cluster_rollback(solver->cluster, checkpoint);
    if (has_rights) {
        if (replace_by_right(solver, n_tasks)) {
            return true;
        }
        cluster_rollback(solver->cluster, checkpoint);
    }
    if (solver->request.n_tiers > 0) {
        return replace_without_nearest(solver, n_tasks);
    }
    if (!solver->request.may_move) {
        return false;
    }
    replace_all(solver, false, n_tasks);
    return is_allowed(solver);
}
