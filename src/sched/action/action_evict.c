/** The actions that make room: consolidation, reclaim, preempt; and the end of stale gangs. */
#include "sched/action/actions.h"

#include "base/macros.h"
#include "sched/evict/allow.h"
#include "sched/evict/attempts.h"
#include "sched/evict/candidates.h"
#include "sched/model/quantum.h"
#include "sched/place/affinity.h"

#include <string.h>

/** Marks of jobs that are looked at without a branch. */
#define MARKS_AT_ONCE 1024

struct eviction {
    candidates_fn *mark;
    solver_allow_fn *allow;
    enum weir_sched_evict_reason reason;
    bool must_move_all, may_move, within_share, only_guaranteed, by_age;
};

static bool may_evict_yet(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int64_t since = given->queued_ms > 0 ? given->queued_ms : given->created_ms;
    return cluster->snapshot->now_ms - since >= given->preemption_delay_ms;
}

/** Of which queues victims may be lost: in reclaim of those that have more than is theirs. */
static void mark_losers(struct cycle *cycle, int32_t job, const struct eviction *rule)
{
    const struct cluster *cluster = &cycle->cluster;
    struct solver *solver = &cycle->solver;
    memset(solver->request.may_lose, !rule->must_move_all, (size_t)cluster->snapshot->n_queues);
    if (rule->within_share && cluster->capacity.n_resources == WEIR_SCHED_FIRST_MODEL) {
        struct weir_sched_amount amount, fixed;
        quantum_amount(cluster, cycle->tasks, 1, &amount, &fixed);
        reclaim_mark_losers(cluster, cluster->snapshot->jobs[job].queue, &amount,
                            solver->request.may_lose);
    }
    if (solver->feasibility.version != cluster->changes.n_commits) {
        backfill_let_go(&cycle->backfill); /* Whoever fits in room that is held could move. */
        feasibility_update(&solver->feasibility);
    }
}

/** Whether the job's first task fits nowhere and no node could be made fit by moving others. */
static bool is_beyond_moving(struct cycle *cycle, int32_t job)
{
    struct cluster *cluster = &cycle->cluster;
    const struct job_state *state = &cluster->jobs[job];
    if (state->n_groups > 1 || cluster->groups[state->first_group].topology >= 0 ||
        cluster->queues[cluster->snapshot->jobs[job].queue].bounds_model >= 0 ||
        affinity_matters(cluster, cycle->tasks[0])) {
        return false;
    }
    if (!feasibility_is_known(&cycle->solver.feasibility, cycle->tasks[0])) {
        backfill_let_go(&cycle->backfill);
    }
    return feasibility_rules_out(&cycle->solver.feasibility, cycle->tasks[0]);
}

/** Which jobs may be victims. @return Whether there is one. Cost: jobs, but few are looked at. */
static bool mark_victims(struct cycle *cycle, int32_t job, const struct eviction *rule)
{
    const uint8_t *marks = cycle->solver.request.is_victim;
    int32_t n = cycle->cluster.snapshot->n_jobs;
    rule->mark(cycle, job);
    for (int32_t first = 0; first < n; first += MARKS_AT_ONCE) {
        uint8_t any = 0;
        for (int32_t v = first; v < WEIR_MIN(first + MARKS_AT_ONCE, n); v++) {
            any |= marks[v];
        }
        if (any != SOLVER_NOT_A_VICTIM) {
            return true;
        }
    }
    return false;
}

/**
 * Who is guaranteed what it asks for must not fail because the search began with victims that it
 * may not take from: they can move at first, which takes the room that it needs in the end. Nor
 * because a queue above it would have too much while its own siblings borrow. So search again, only
 * among those of whom something may be lost, the nearest first, and move nobody.
 */
static bool solve_by_right(struct cycle *cycle, const struct weir_sched_amount *amount)
{
    struct cluster *cluster = &cycle->cluster;
    struct solver *solver = &cycle->solver;
    int32_t queue = cluster->jobs[solver->request.job].queue;
    bool is_any = false;
    if (!cluster->profile->guarantee_first ||
        cluster->capacity.n_resources > WEIR_SCHED_FIRST_MODEL ||
        !shares_is_guaranteed(cluster, queue, amount, false)) {
        return false;
    }
    solver->request.n_tiers = cluster->queues[queue].depth + 1;
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        int32_t taker = queue, loser = q;
        cluster_find_siblings(cluster, &taker, &loser);
        solver->request.tiers[q] = cluster->queues[queue].depth - cluster->queues[taker].depth;
        for (int32_t i = cluster->queue_first[q]; i < cluster->queue_first[q + 1]; i++) {
            uint8_t *is_victim = &solver->request.is_victim[cluster->queue_jobs[i]];
            *is_victim = solver->request.may_lose[q] ? *is_victim : SOLVER_NOT_A_VICTIM;
            is_any = is_any || *is_victim != SOLVER_NOT_A_VICTIM;
        }
    }
    solver->request.may_move = false;
    bool is_solved = is_any && solver_solve(solver);
    solver->request.n_tiers = 0;
    return is_solved;
}

/**
 * A gang as large as its queue's quota would never start while the cluster is full and the queue
 * has anything that cannot be evicted: it needs more than its share, if only for that little. So
 * whoever has waited too long may take what is lent to others as well.
 */
static bool solve_by_age(struct cycle *cycle, const struct weir_sched_amount *amount)
{
    struct solver *solver = &cycle->solver;
    if (!candidates_when_due(cycle, solver->request.job, amount)) {
        return false;
    }
    solver->request.allow = allow_lent;
    solver->request.may_move = false;
    solver->request.n_tiers = 2;
    bool is_solved = solver_solve(solver);
    solver->request.n_tiers = 0;
    cycle->has_taken_lent = cycle->has_taken_lent || is_solved;
    return is_solved;
}

static bool make_room(struct cycle *cycle, int32_t job, const struct eviction *rule)
{
    struct cluster *cluster = &cycle->cluster;
    struct solver *solver = &cycle->solver;
    int32_t n = quantum_next(cluster, job, cycle->tasks),
            queue = cluster->snapshot->jobs[job].queue;
    struct weir_sched_amount amount, fixed;
    quantum_amount(cluster, cycle->tasks, n, &amount, &fixed);
    bool is_owed = rule->within_share && cluster->profile->guarantee_first &&
                   shares_is_guaranteed(cluster, queue, &amount, false);
    if (n == 0 || !may_evict_yet(cluster, job) ||
        (rule->within_share && !reclaim_may_ask(cluster, queue, &amount, &fixed)) ||
        (rule->only_guaranteed && !is_owed)) {
        return false;
    }
    if (rule->within_share && action_give_rest_to(cycle, job)) {
        return true;
    }
    mark_losers(cycle, job, rule);
    if (rule->must_move_all && is_beyond_moving(cycle, job)) {
        return false;
    }
    bool has_victims = mark_victims(cycle, job, rule);
    if (!has_victims && !rule->by_age) {
        return false;
    }
    if (is_owed) {
        backfill_hold_against_guaranteed(&cycle->backfill, job);
    } else {
        backfill_hold_against(&cycle->backfill, job);
    }
    solver->request.job = job;
    solver->request.reason = rule->reason;
    solver->request.allow = rule->allow;
    solver->request.must_move_all = rule->must_move_all;
    solver->request.may_move = rule->may_move;
    bool is_solved = (has_victims && solver_solve(solver)) ||
                     (rule->within_share && solve_by_right(cycle, &amount)) ||
                     (rule->by_age && solve_by_age(cycle, &amount));
    cluster_commit(cluster);
    return is_solved;
}

/**
 * Where, in the order of waiting jobs, the second half of an action's steps begins; the first half
 * goes to the first jobs. It is another place at another time, so that jobs for which searches take
 * long and find nothing do not keep those behind them from being looked at, cycle after cycle.
 */
static uint64_t second_start(const struct cycle *cycle)
{
    uint64_t n = 0, now = (uint64_t)cycle->cluster.snapshot->now_ms;
    for (int32_t j = 0; j < cycle->cluster.snapshot->n_jobs; j++) {
        n += cycle->is_listed[j];
    }
    return n == 0 ? 0 : (now * 0x9e3779b97f4a7c15U >> 32) % n;
}

static void find_first_waiting(struct cycle *cycle, const struct order *order)
{
    for (int32_t q = 0; q < cycle->cluster.snapshot->n_queues; q++) {
        bool is_leaf = cycle->cluster.queues[q].first_child < 0;
        cycle->first_waiting[q] = is_leaf ? order->queues[q].top : -1;
    }
    cycle->solver.request.first_waiting = cycle->first_waiting;
}

/** Search for room for one job after the other. When searches that find nothing have taken all
 *  steps, the rest waits for a later cycle. */
static weir_status search_for_all(struct cycle *cycle, const struct eviction *rule,
                                  struct order *order, struct attempts *attempts)
{
    struct cluster *cluster = &cycle->cluster;
    struct solver *solver = &cycle->solver;
    int64_t most = cluster->profile->search_max_scenarios * SOLVER_STEPS_PER_SCENARIO;
    uint64_t start = second_start(cycle);
    most = rule->must_move_all ? solver_steps_for_moves(solver, most) : most;
    solver->budget.n_steps = 0;
    for (uint64_t i = 0; cluster->status == WEIR_OK; i++) {
        int32_t job = order_pop(order);
        solver->budget.steps_max = i < start ? most / 2 : most;
        if (job < 0 || solver->budget.n_steps >= most) {
            break;
        }
        struct failure request;
        bool is_plain = attempts_describe(cycle, job, &request);
        request.job = rule->mark == candidates_of_queue ? job : -1;
        if (solver->budget.n_steps >= solver->budget.steps_max ||
            (is_plain && attempts_have_failed(cycle, attempts, job, &request))) {
            continue;
        }
        int64_t n_steps = solver->budget.n_steps;
        if (make_room(cycle, job, rule)) {
            order_refresh(order);
            solver->budget.n_steps =
                n_steps; /* What finds something is not what has to be bounded. */
        } else if (is_plain && may_evict_yet(cluster, job) &&
                   solver->budget.n_steps < solver->budget.steps_max) {
            attempts_note(cluster, attempts, cluster->snapshot->jobs[job].queue, &request);
        }
    }
    return cluster->status;
}

static weir_status evict_for_all(struct cycle *cycle, const struct eviction *rule)
{
    struct order order;
    struct attempts attempts;
    action_list_waiting(cycle);
    weir_status status = order_init(&order, &cycle->cluster, cycle->is_listed, false);
    if (status == WEIR_OK) {
        find_first_waiting(cycle, &order);
    }
    weir_status made = attempts_init(&attempts, &cycle->cluster);
    status = status == WEIR_OK ? made : status;
    if (status == WEIR_OK) {
        status = search_for_all(cycle, rule, &order, &attempts);
    }
    attempts_fini(&attempts);
    order_fini(&order);
    return status;
}

weir_status action_consolidate(struct cycle *cycle)
{
    const struct eviction rule = {.mark = candidates_of_all,
                                  .reason = WEIR_SCHED_EVICT_CONSOLIDATION,
                                  .must_move_all = true,
                                  .may_move = true};
    return cycle->cluster.profile->consolidation_max_moves == 0 ? WEIR_OK
                                                                : evict_for_all(cycle, &rule);
}

static weir_status reclaim(struct cycle *cycle, bool only_guaranteed)
{
    const struct eviction rule = {.mark = candidates_of_others,
                                  .allow = allow_reclaim,
                                  .reason = WEIR_SCHED_EVICT_RECLAIM,
                                  .may_move = cycle->cluster.profile->move_victims,
                                  .within_share = true,
                                  .only_guaranteed = only_guaranteed};
    return evict_for_all(cycle, &rule);
}

weir_status action_reclaim(struct cycle *cycle)
{
    return reclaim(cycle, false);
}

/** A gang of which a part was lent is taken whole, which may leave its queue below its quota: what
 *  is guaranteed there is taken back at once, though not from who took it, as that waits until the
 *  room is free. */
weir_status action_preempt(struct cycle *cycle)
{
    const struct eviction rule = {.mark = candidates_of_queue,
                                  .allow = allow_preempt,
                                  .reason = WEIR_SCHED_EVICT_PREEMPT,
                                  .may_move = cycle->cluster.profile->move_victims,
                                  .by_age = true};
    WEIR_TRY(evict_for_all(cycle, &rule));
    bool reclaims = strstr(cycle->cluster.profile->actions, "reclaim") != NULL;
    return cycle->has_taken_lent && reclaims ? reclaim(cycle, true) : WEIR_OK;
}

/** A gang of which a member has ended well is ending, not broken. */
static bool is_ending(const struct cluster *cluster, const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_DONE) {
            return true;
        }
    }
    return false;
}

static bool is_broken(const struct cluster *cluster, int32_t job)
{
    int32_t root = cluster->jobs[job].first_group;
    bool is_whole = quantum_is_satisfied(cluster, root);
    return !is_whole && !is_ending(cluster, &cluster->snapshot->jobs[job]);
}

weir_status action_evict_stale(struct cycle *cycle)
{
    struct cluster *cluster = &cycle->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        int64_t grace = job->stale_grace_ms == INT64_MIN ? cluster->profile->stale_grace_ms
                                                         : job->stale_grace_ms;
        if (job->stale_since_ms <= 0 || grace < 0 ||
            snapshot->now_ms - job->stale_since_ms < grace || !is_broken(cluster, j)) {
            continue;
        }
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (cluster->tasks[t].phase == PHASE_RUNNING) {
                cluster_evict(cluster, t, WEIR_SCHED_EVICT_STALE, WEIR_SCHED_NONE);
            }
        }
        cluster_commit(cluster);
    }
    return cluster->status;
}

action_fn *action_named(const char *name, size_t len)
{
    static const struct {
        const char *name;
        action_fn *fn;
    } actions[] = {{"allocate", action_allocate},
                   {"consolidation", action_consolidate},
                   {"reclaim", action_reclaim},
                   {"preempt", action_preempt},
                   {"stalegangeviction", action_evict_stale},
                   {"timelimit", action_end_over_time},
                   {"idle", action_end_idle}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(actions); i++) {
        if (strlen(actions[i].name) == len && memcmp(actions[i].name, name, len) == 0) {
            return actions[i].fn;
        }
    }
    return NULL;
}
