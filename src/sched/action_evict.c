/** The actions that make room: consolidation, reclaim, preempt; and the end of stale gangs. */
#include "sched/actions.h"

#include "base/macros.h"
#include "sched/ageing.h"
#include "sched/borrowed.h"
#include "sched/calendar.h"
#include "sched/chunk.h"
#include "sched/service.h"

#include <stdlib.h>
#include <string.h>

/** A request that could not be helped: one of its queue that asks for as much cannot either. */
struct failure {
    bool is_set, is_fixed;
    int32_t shape, n_tasks, priority;
    int32_t job;    /**< If it matters which one it was; -1. */
    int64_t run_ms; /**< Longest run; INT64_MAX = unknown. */
    int32_t next;   /**< Of the same queue; -1. */
};

struct attempts {
    struct failure *last; /**< Per queue: its last failure, whatever happened since. */
    int32_t *first;       /**< Per queue: head of the list in `all`; -1. */
    struct failure *all;  /**< All in the state of this version. */
    int32_t n;
    int64_t version; /**< cluster.n_commits. */
};

/** Mark who may be a victim in solver->is_victim, that judge_running allows. */
typedef void mark_fn(struct cycle *cycle, int32_t job);

struct eviction {
    mark_fn *mark;
    solver_allow_fn *allow;
    enum weir_sched_evict_reason reason;
    bool must_move_all, may_move, within_share;
};

/** Time that a queue's jobs run before others may take from them: the nearest that is stated. */
static int64_t min_run_ms(const struct cluster *cluster, int32_t queue, bool is_reclaim)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        const struct weir_sched_queue *given = &cluster->snapshot->queues[queue];
        int64_t stated = is_reclaim ? given->reclaim_min_run_ms : given->preempt_min_run_ms;
        if (stated >= 0) {
            return stated;
        }
    }
    return 0;
}

/** For reclaim: the queue just below the common ancestor on the victim's side. */
static int32_t below_common(const struct cluster *cluster, int32_t queue, int32_t victim)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    while (cluster->queues[queue].depth > cluster->queues[victim].depth) {
        queue = queues[queue].parent;
    }
    while (cluster->queues[victim].depth > cluster->queues[queue].depth) {
        victim = queues[victim].parent;
    }
    while (queues[victim].parent != queues[queue].parent) {
        victim = queues[victim].parent;
        queue = queues[queue].parent;
    }
    return victim;
}

/** Whoever runs and may lose. A job of which a part is on the move already is left alone: the rest
 *  of a gang must not go without it. */
static uint8_t judge_running(const struct cluster *cluster, int32_t victim)
{
    const struct group_state *root = &cluster->groups[cluster->jobs[victim].first_group];
    bool is_settled = root->n_alive > 0 && root->n_pipelined == 0;
    return is_settled && cluster->jobs[victim].is_preemptible ? SOLVER_WHOLE : SOLVER_NOT_A_VICTIM;
}

/** Judge those anew that have changed since the last time. */
static void update_running(struct cycle *cycle)
{
    const struct cluster *cluster = &cycle->cluster;
    for (int32_t v = 0; v < cluster->snapshot->n_jobs; v++) {
        if (cluster->changed[v] > cycle->runs_version) {
            cycle->runs[v] = judge_running(cluster, v);
        }
    }
    cycle->runs_version = cluster->n_commits;
}

static void mark_running(struct cycle *cycle, int32_t job)
{
    memcpy(cycle->solver.is_victim, cycle->runs, (size_t)cycle->cluster.snapshot->n_jobs);
    cycle->solver.is_victim[job] = SOLVER_NOT_A_VICTIM;
}

static uint8_t judge_min_run(const struct cluster *cluster, int32_t victim, int64_t min_run)
{
    const struct weir_sched_job *job = &cluster->snapshot->jobs[victim];
    bool is_young = job->started_ms > 0 && cluster->snapshot->now_ms - job->started_ms < min_run;
    return is_young ? SOLVER_SURPLUS : SOLVER_WHOLE;
}

static void mark_reclaim(struct cycle *cycle, int32_t job)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t queue = cluster->jobs[job].queue;
    uint8_t *is_victim = cycle->solver.is_victim;
    mark_running(cycle, job);
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        const int32_t *jobs = cluster->queue_jobs + cluster->queue_first[q];
        int32_t n = cluster->queue_first[q + 1] - cluster->queue_first[q];
        int64_t min_run =
            q == queue || n == 0 ? 0 : min_run_ms(cluster, below_common(cluster, queue, q), true);
        for (int32_t i = 0; i < n && (q == queue || min_run > 0); i++) {
            if (q == queue) {
                is_victim[jobs[i]] = SOLVER_NOT_A_VICTIM;
            } else if (is_victim[jobs[i]] != SOLVER_NOT_A_VICTIM) {
                is_victim[jobs[i]] = judge_min_run(cluster, jobs[i], min_run);
            }
        }
    }
}

static uint8_t judge_preempt(const struct cluster *cluster, int32_t job, int32_t victim)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    bool may_take =
        jobs[victim].priority < jobs[job].priority ||
        (jobs[victim].priority == jobs[job].priority && service_may_take(cluster, job, victim));
    if (!may_take || ageing_is_spared(cluster, victim)) {
        return SOLVER_NOT_A_VICTIM;
    }
    return judge_min_run(cluster, victim, min_run_ms(cluster, jobs[victim].queue, false));
}

static void mark_preempt(struct cycle *cycle, int32_t job)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t queue = cluster->jobs[job].queue;
    memset(cycle->solver.is_victim, SOLVER_NOT_A_VICTIM, (size_t)cluster->snapshot->n_jobs);
    for (int32_t i = cluster->queue_first[queue]; i < cluster->queue_first[queue + 1]; i++) {
        int32_t victim = cluster->queue_jobs[i];
        if (victim != job && cycle->runs[victim] != SOLVER_NOT_A_VICTIM) {
            cycle->solver.is_victim[victim] = judge_preempt(cluster, job, victim);
        }
    }
}

/** Siblings on the way to a common ancestor. */
static void find_siblings(const struct cluster *cluster, int32_t *l, int32_t *r)
{
    int32_t left = *l;
    *l = below_common(cluster, *r, *l);
    *r = below_common(cluster, left, *r);
}

/** Whether what is lost asks for less than it had of a model of which its queues have quotas: it
 * may run on others as well, so it need not stand behind who must run on this one. */
static bool is_adaptable(const struct cluster *cluster, const struct shares_loss *loss)
{
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->n_resources; r++) {
        int32_t q = loss->amount.of[r] == loss->asked.of[r] ? -1 : loss->queue;
        while (q >= 0 && cluster->queues[q].shares[r].quota < 0) {
            q = cluster->snapshot->queues[q].parent;
        }
        if (q >= 0) {
            return true;
        }
    }
    return false;
}

/**
 * Whether the next allocation would give what the victim's queue lost back to it: then the reclaim
 * would come again in every cycle. What is tried first there is the taker's oldest waiting job,
 * which need not be the one for which room is made. A place that is kept is not given to whoever
 * asks for no model of its own.
 */
static bool would_return(const struct solver *solver, const struct shares_loss *loss)
{
    const struct cluster *cluster = solver->cluster;
    int32_t taker = cluster->snapshot->jobs[solver->job].queue, loser = loss->queue;
    int32_t first = solver->first_waiting[taker];
    bool is_first = first < 0 || first == solver->job;
    bool asks_less = !cluster->profile->keep_places && is_adaptable(cluster, loss);
    if (is_first && !asks_less) {
        return false;
    }
    struct weir_sched_amount amount = solver->amount, fixed;
    if (!is_first) {
        int32_t n = chunk_next(cluster, first, solver->scratch);
        chunk_amount(cluster, solver->scratch, n, &amount, &fixed);
    }
    find_siblings(cluster, &taker, &loser);
    struct weir_sched_amount has = cluster->queues[taker].allocated;
    amount_subtract(&has, &solver->amount);
    struct weir_sched_amount with = has;
    amount_add(&with, &amount);
    struct order_key taker_key, loser_key;
    order_make_key(cluster, taker, &has, &with, &taker_key);
    has = with = cluster->queues[loser].allocated;
    amount_add(&with, asks_less ? &loss->asked : &loss->amount);
    order_make_key(cluster, loser, &has, &with, &loser_key);
    return order_compare_keys(&loser_key, &taker_key) < 0;
}

/** Whether a queue or one above it would hold more than its fair share of what it takes, with
 *  `more` than it has. */
static bool is_overfed(const struct cluster *cluster, int32_t queue,
                       const struct weir_sched_amount *takes, const struct weir_sched_amount *more)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        for (int r = 0; r < cluster->n_resources; r++) {
            int64_t fair = shares_fair(cluster, queue, r);
            if (takes->of[r] > 0 && fair >= 0 &&
                cluster->queues[queue].allocated.of[r] + more->of[r] > fair) {
                return true;
            }
        }
    }
    return false;
}

/** Whether `queue` with its next job is served before the taker with the job at hand, which has no
 *  place in this state. */
static bool is_served_before(const struct solver *solver, int32_t queue,
                             const struct weir_sched_amount *amount)
{
    const struct cluster *cluster = solver->cluster;
    int32_t taker = cluster->snapshot->jobs[solver->job].queue;
    if (queue == taker) {
        return true; /* Its first waiting job: it comes before all others of the queue. */
    }
    find_siblings(cluster, &taker, &queue);
    struct order_key taker_key, key;
    struct weir_sched_amount with = cluster->queues[taker].allocated;
    amount_add(&with, &solver->amount);
    order_make_key(cluster, taker, &cluster->queues[taker].allocated, &with, &taker_key);
    with = cluster->queues[queue].allocated;
    amount_add(&with, amount);
    order_make_key(cluster, queue, &cluster->queues[queue].allocated, &with, &key);
    int compared = order_compare_keys(&key, &taker_key);
    return compared < 0 || (compared == 0 && queue < taker);
}

/**
 * Whether the room would go to another waiting job, and be above its queues' fair share there: then
 * a third takes it back, and what was evicted for the job at hand returns to be evicted again.
 */
static bool would_overfeed(const struct solver *solver)
{
    struct cluster *cluster = solver->cluster;
    const struct weir_sched_job *job = &cluster->snapshot->jobs[solver->job];
    size_t checkpoint = cluster_checkpoint(cluster);
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PIPELINED && cluster->tasks[t].held < 0) {
            cluster_evict(cluster, t, WEIR_SCHED_EVICT_NONE, WEIR_SCHED_NONE);
        }
    }
    bool is_overfeeding = false;
    for (int32_t q = 0; q < cluster->snapshot->n_queues && !is_overfeeding; q++) {
        int32_t first = solver->first_waiting[q];
        if (first < 0 || first == solver->job) {
            continue;
        }
        const struct weir_sched_amount none = {{0}};
        struct weir_sched_amount amount, fixed;
        int32_t n = chunk_next(cluster, first, solver->scratch);
        size_t before = cluster_checkpoint(cluster);
        chunk_amount(cluster, solver->scratch, n, &amount, &fixed);
        bool is_open = n > 0 && !is_overfed(cluster, q, &amount, &amount);
        if (n > 0 && (!is_open || cluster->n_resources > WEIR_SCHED_FIRST_MODEL) &&
            is_served_before(solver, q, &amount) &&
            shares_admit(cluster, q, &amount, &fixed, NULL) &&
            placer_place(solver->placer, first, solver->scratch, n, NULL)) {
            chunk_amount(cluster, solver->scratch, n, &amount, &fixed); /* Now with its models. */
            is_overfeeding = !is_open || is_overfed(cluster, q, &amount, &none);
        }
        cluster_rollback(cluster, before);
    }
    cluster_rollback(cluster, checkpoint);
    return is_overfeeding;
}

static bool allow_preempt(const struct solver *solver, const struct shares_loss *losses,
                          int32_t n_losses)
{
    (void)losses;
    return n_losses == 0 || !would_overfeed(solver);
}

static bool allow_reclaim(const struct solver *solver, const struct shares_loss *losses,
                          int32_t n_losses)
{
    const struct cluster *cluster = solver->cluster;
    int32_t queue = cluster->snapshot->jobs[solver->job].queue;
    bool is_fixed = false;
    bool is_first = cluster->profile->guarantee_first &&
                    shares_is_guaranteed(cluster, queue, &solver->amount, true);
    if (!is_first && would_overfeed(solver)) {
        return false;
    }
    for (int32_t i = 0; i < n_losses && !is_first; i++) {
        if (would_return(solver, &losses[i])) {
            return false;
        }
    }
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        is_fixed = is_fixed || solver->fixed.of[r] > 0;
    }
    /* Where places are kept, what a reclaim gives stands: so each can be asked to lower what is
     * borrowed, and there is no second one that takes it back. */
    bool must_lower = cluster->profile->keep_places && n_losses > 0;
    return shares_reclaim_is_fair(cluster, queue, &solver->amount, is_fixed, losses, n_losses,
                                  solver->remaining) &&
           (!must_lower ||
            borrowed_is_less(cluster, queue, &solver->amount, losses, n_losses, solver->remaining));
}

/** What a job asks for, if all its tasks are alike and need nothing of each other. */
static bool describe(struct cycle *cycle, int32_t job, struct failure *out)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t n = chunk_next(cluster, job, cycle->tasks);
    if (n == 0 || cluster->jobs[job].n_groups != 1 ||
        cluster->groups[cluster->jobs[job].first_group].topology >= 0) {
        return false;
    }
    *out = (struct failure){.is_set = true,
                            .is_fixed = cluster_is_fixed(cluster, cycle->tasks[0]),
                            .shape = cluster->tasks[cycle->tasks[0]].shape,
                            .n_tasks = n,
                            .priority = cluster->snapshot->jobs[job].priority,
                            .run_ms = calendar_bound_ms(&cluster->snapshot->jobs[job]),
                            .next = -1};
    out->run_ms = out->run_ms > 0 ? out->run_ms : INT64_MAX;
    for (int32_t i = 1; i < n; i++) {
        if (cluster->tasks[cycle->tasks[i]].shape != out->shape) {
            return false;
        }
    }
    return true;
}

static bool is_no_easier(const struct cluster *cluster, const struct failure *than,
                         const struct failure *request)
{
    return than->is_set && than->shape == request->shape && request->n_tasks >= than->n_tasks &&
           request->priority <= than->priority && (request->is_fixed || !than->is_fixed) &&
           (request->job < 0 || service_is_no_easier(cluster, than->job, request->job));
}

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
    memset(solver->may_lose, !rule->must_move_all, (size_t)cluster->snapshot->n_queues);
    if (rule->within_share && cluster->n_resources == WEIR_SCHED_FIRST_MODEL) {
        struct weir_sched_amount amount, fixed;
        chunk_amount(cluster, cycle->tasks, 1, &amount, &fixed);
        shares_mark_losers(cluster, cluster->snapshot->jobs[job].queue, &amount, solver->may_lose);
    }
    if (solver->prospect.version != cluster->n_commits) {
        backfill_let_go(&cycle->backfill); /* Whoever fits in room that is held could move. */
        prospect_update(&solver->prospect);
    }
}

/** Whether the job's first task fits nowhere and no node could be made fit by moving others. */
static bool is_beyond_moving(struct cycle *cycle, int32_t job)
{
    struct cluster *cluster = &cycle->cluster;
    const struct job_state *state = &cluster->jobs[job];
    const struct weir_sched_task *first = &cluster->snapshot->tasks[cycle->tasks[0]];
    if (state->n_groups > 1 || cluster->groups[state->first_group].topology >= 0 ||
        cluster->queues[cluster->snapshot->jobs[job].queue].bounds_model >= 0 ||
        first->affinity_key != NULL || first->anti_affinity_key != NULL) {
        return false;
    }
    if (!prospect_is_known(&cycle->solver.prospect, cycle->tasks[0])) {
        backfill_let_go(&cycle->backfill);
    }
    return prospect_is_hopeless(&cycle->solver.prospect, cycle->tasks[0]);
}

/** Which jobs may be victims. @return Whether there is one. Cost: jobs, but few are looked at. */
static bool mark_victims(struct cycle *cycle, int32_t job, const struct eviction *rule)
{
    update_running(cycle);
    rule->mark(cycle, job);
    for (int32_t v = 0; v < cycle->cluster.snapshot->n_jobs; v++) {
        if (cycle->solver.is_victim[v] != SOLVER_NOT_A_VICTIM) {
            return true;
        }
    }
    return false;
}

static bool make_room(struct cycle *cycle, int32_t job, const struct eviction *rule)
{
    struct cluster *cluster = &cycle->cluster;
    struct solver *solver = &cycle->solver;
    int32_t n = chunk_next(cluster, job, cycle->tasks);
    struct weir_sched_amount amount, fixed;
    chunk_amount(cluster, cycle->tasks, n, &amount, &fixed);
    if (n == 0 || !may_evict_yet(cluster, job) ||
        (rule->within_share &&
         !shares_may_reclaim(cluster, cluster->snapshot->jobs[job].queue, &amount, &fixed))) {
        return false;
    }
    mark_losers(cycle, job, rule);
    if ((rule->must_move_all && is_beyond_moving(cycle, job)) || !mark_victims(cycle, job, rule)) {
        return false;
    }
    backfill_hold_against(&cycle->backfill, job);
    solver->job = job;
    solver->reason = rule->reason;
    solver->allow = rule->allow;
    solver->must_move_all = rule->must_move_all;
    solver->may_move = rule->may_move;
    bool is_solved = solver_solve(solver);
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
    cycle->solver.first_waiting = cycle->first_waiting;
}

/** Whether a job that needs no less of the same queue has failed in the state as it is. */
static bool has_failed(const struct cycle *cycle, const struct attempts *attempts, int32_t job,
                       const struct failure *request)
{
    const struct cluster *cluster = &cycle->cluster;
    int32_t queue = cluster->snapshot->jobs[job].queue;
    if (is_no_easier(cluster, &attempts->last[queue], request)) {
        return true;
    }
    if (attempts->version != cluster->n_commits || backfill_has_reserved(&cycle->backfill, job)) {
        return false;
    }
    for (int32_t i = attempts->first[queue]; i >= 0; i = attempts->all[i].next) {
        if (is_no_easier(cluster, &attempts->all[i], request) &&
            request->run_ms >= attempts->all[i].run_ms) {
            return true;
        }
    }
    return false;
}

static void note_failure(const struct cluster *cluster, struct attempts *attempts, int32_t queue,
                         const struct failure *request)
{
    if (attempts->version != cluster->n_commits) {
        attempts->version = cluster->n_commits;
        attempts->n = 0;
        for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
            attempts->first[q] = -1;
        }
    }
    attempts->last[queue] = attempts->all[attempts->n] = *request;
    attempts->all[attempts->n].next = attempts->first[queue];
    attempts->first[queue] = attempts->n++;
}

static weir_status attempts_init(struct attempts *attempts, const struct cluster *cluster)
{
    size_t n_queues = (size_t)cluster->snapshot->n_queues + 1;
    *attempts = (struct attempts){.version = -1};
    attempts->last = calloc(n_queues, sizeof *attempts->last);
    attempts->first = calloc(n_queues, sizeof *attempts->first);
    attempts->all = calloc((size_t)cluster->snapshot->n_jobs + 1, sizeof *attempts->all);
    bool is_whole = attempts->last != NULL && attempts->first != NULL && attempts->all != NULL;
    return is_whole ? WEIR_OK : WEIR_ERR_NOMEM;
}

static void attempts_fini(struct attempts *attempts)
{
    free(attempts->last);
    free(attempts->first);
    free(attempts->all);
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
    solver->n_steps = 0;
    for (uint64_t i = 0; cluster->status == WEIR_OK; i++) {
        int32_t job = order_pop(order);
        solver->steps_max = i < start ? most / 2 : most;
        if (job < 0 || solver->n_steps >= most) {
            break;
        }
        struct failure request;
        bool is_plain = describe(cycle, job, &request);
        request.job = rule->mark == mark_preempt ? job : -1;
        if (solver->n_steps >= solver->steps_max ||
            (is_plain && has_failed(cycle, attempts, job, &request))) {
            continue;
        }
        int64_t n_steps = solver->n_steps;
        if (make_room(cycle, job, rule)) {
            order_refresh(order);
            solver->n_steps = n_steps; /* What finds something is not what has to be bounded. */
        } else if (is_plain && may_evict_yet(cluster, job) && solver->n_steps < solver->steps_max) {
            note_failure(cluster, attempts, cluster->snapshot->jobs[job].queue, &request);
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
    const struct eviction rule = {.mark = mark_running,
                                  .reason = WEIR_SCHED_EVICT_CONSOLIDATION,
                                  .must_move_all = true,
                                  .may_move = true};
    return cycle->cluster.profile->consolidation_max_moves == 0 ? WEIR_OK
                                                                : evict_for_all(cycle, &rule);
}

weir_status action_reclaim(struct cycle *cycle)
{
    const struct eviction rule = {.mark = mark_reclaim,
                                  .allow = allow_reclaim,
                                  .reason = WEIR_SCHED_EVICT_RECLAIM,
                                  .may_move = cycle->cluster.profile->move_victims,
                                  .within_share = true};
    return evict_for_all(cycle, &rule);
}

weir_status action_preempt(struct cycle *cycle)
{
    const struct eviction rule = {.mark = mark_preempt,
                                  .allow = allow_preempt,
                                  .reason = WEIR_SCHED_EVICT_PREEMPT,
                                  .may_move = cycle->cluster.profile->move_victims};
    return evict_for_all(cycle, &rule);
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

weir_status action_evict_stale(struct cycle *cycle)
{
    struct cluster *cluster = &cycle->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        int64_t grace = job->stale_grace_ms == INT64_MIN ? cluster->profile->stale_grace_ms
                                                         : job->stale_grace_ms;
        if (job->stale_since_ms <= 0 || grace < 0 ||
            snapshot->now_ms - job->stale_since_ms < grace ||
            chunk_is_satisfied(cluster, cluster->jobs[j].first_group) || is_ending(cluster, job)) {
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
