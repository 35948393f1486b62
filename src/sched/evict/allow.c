#include "sched/evict/allow.h"

#include "sched/model/quantum.h"
#include "sched/share/over_quota.h"

/** Whether what is lost asks for less than it had of a model of which its queues have quotas: it
 * may run on others as well, so it need not stand behind who must run on this one. */
static bool is_adaptable(const struct cluster *cluster, const struct reclaim_loss *loss)
{
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources; r++) {
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
static bool would_return(const struct solver *solver, const struct reclaim_loss *loss)
{
    const struct cluster *cluster = solver->cluster;
    int32_t taker = cluster->snapshot->jobs[solver->request.job].queue, loser = loss->queue;
    int32_t first = solver->request.first_waiting[taker];
    bool is_first = first < 0 || first == solver->request.job;
    bool asks_less = !cluster->profile->nominations && is_adaptable(cluster, loss);
    if (is_first && !asks_less) {
        return false;
    }
    struct weir_sched_amount amount = solver->request.amount, fixed;
    if (!is_first) {
        int32_t n = quantum_next(cluster, first, solver->scratch);
        quantum_amount(cluster, solver->scratch, n, &amount, &fixed);
    }
    cluster_find_siblings(cluster, &taker, &loser);
    struct weir_sched_amount has = cluster->queues[taker].allocated;
    amount_subtract(&has, &solver->request.amount);
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
        for (int r = 0; r < cluster->capacity.n_resources; r++) {
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
    int32_t taker = cluster->snapshot->jobs[solver->request.job].queue;
    if (queue == taker) {
        return true; /* Its first waiting job: it comes before all others of the queue. */
    }
    cluster_find_siblings(cluster, &taker, &queue);
    struct order_key taker_key, key;
    struct weir_sched_amount with = cluster->queues[taker].allocated;
    amount_add(&with, &solver->request.amount);
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
    const struct weir_sched_job *job = &cluster->snapshot->jobs[solver->request.job];
    size_t checkpoint = cluster_checkpoint(cluster);
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PIPELINED && cluster->tasks[t].current_node < 0) {
            cluster_evict(cluster, t, WEIR_SCHED_EVICT_NONE, WEIR_SCHED_NONE);
        }
    }
    bool is_overfeeding = false;
    for (int32_t q = 0; q < cluster->snapshot->n_queues && !is_overfeeding; q++) {
        int32_t first = solver->request.first_waiting[q];
        if (first < 0 || first == solver->request.job) {
            continue;
        }
        const struct weir_sched_amount none = {{0}};
        struct weir_sched_amount amount, fixed;
        int32_t n = quantum_next(cluster, first, solver->scratch);
        size_t before = cluster_checkpoint(cluster);
        quantum_amount(cluster, solver->scratch, n, &amount, &fixed);
        bool is_open = n > 0 && !is_overfed(cluster, q, &amount, &amount);
        if (n > 0 && (!is_open || cluster->capacity.n_resources > WEIR_SCHED_FIRST_MODEL) &&
            is_served_before(solver, q, &amount) &&
            shares_admit(cluster, q, &amount, &fixed, NULL) &&
            placer_place(solver->placer, first, solver->scratch, n, NULL)) {
            quantum_amount(cluster, solver->scratch, n, &amount, &fixed); /* Now with its models. */
            is_overfeeding = !is_open || is_overfed(cluster, q, &amount, &none);
        }
        cluster_rollback(cluster, before);
    }
    cluster_rollback(cluster, checkpoint);
    return is_overfeeding;
}

bool allow_preempt(const struct solver *solver, const struct reclaim_loss *losses, int32_t n_losses)
{
    (void)losses;
    return n_losses == 0 || !would_overfeed(solver);
}

bool allow_reclaim(const struct solver *solver, const struct reclaim_loss *losses, int32_t n_losses)
{
    const struct cluster *cluster = solver->cluster;
    int32_t queue = cluster->snapshot->jobs[solver->request.job].queue;
    bool is_fixed = false;
    bool is_first = cluster->profile->guarantee_first &&
                    shares_is_guaranteed(cluster, queue, &solver->request.amount, true);
    if (!is_first && would_overfeed(solver)) {
        return false;
    }
    for (int32_t i = 0; i < n_losses && !is_first; i++) {
        if (would_return(solver, &losses[i])) {
            return false;
        }
    }
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        is_fixed = is_fixed || solver->request.fixed.of[r] > 0;
    }
    /* Where places are kept, what a reclaim gives stands: so each can be asked to lower what is
     * borrowed, and there is no second one that takes it back. */
    bool must_lower = cluster->profile->nominations && n_losses > 0;
    return reclaim_is_fair(cluster, queue, &solver->request.amount, is_fixed, losses, n_losses,
                           solver->remaining) &&
           (!must_lower || over_quota_is_less(cluster, queue, &solver->request.amount, losses,
                                              n_losses, solver->remaining));
}

bool allow_lent(const struct solver *solver, const struct reclaim_loss *losses, int32_t n_losses)
{
    const struct cluster *cluster = solver->cluster;
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    int32_t taker = cluster->snapshot->jobs[solver->request.job].queue;
    struct weir_sched_amount *still_to_lose = solver->remaining;
    bool is_lent = true;
    for (int32_t i = 0; i < n_losses; i++) {
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            amount_add(&still_to_lose[q], &losses[i].amount);
        }
    }
    for (int32_t i = 0; i < n_losses; i++) {
        is_lent = is_lent && (losses[i].queue == taker ||
                              !shares_holds_its_own(cluster, losses[i].queue,
                                                    &solver->request.amount, still_to_lose));
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            amount_subtract(&still_to_lose[q], &losses[i].amount);
        }
    }
    return is_lent;
}
