#include "sched/action/actions.h"

#include "base/macros.h"
#include "sched/model/quantum.h"
#include "sched/order/ageing.h"
#include "sched/place/nomination.h"
#include "sched/share/shares.h"

/** What queues have had by weight is compared in this part of a millionth. */
#define PAST_SCALE ((int64_t)1000000)

void action_list_waiting(struct cycle *cycle)
{
    const struct cluster *cluster = &cycle->cluster;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        cycle->is_listed[j] =
            quantum_next(cluster, j, cycle->tasks) > 0 && !action_is_over_time(cluster, j);
    }
}

/** Place the job's next tasks. *out_is_owed: the queues admit them, but there is no room.
 *  @return Whether there is something left of it to place. */
static bool allocate_job(struct cycle *cycle, int32_t job, bool *out_is_owed)
{
    struct cluster *cluster = &cycle->cluster;
    struct weir_sched_amount amount, fixed;
    struct weir_sched_wait *wait = cluster_wait(cluster, job);
    int32_t n = quantum_next(cluster, job, cycle->tasks);
    quantum_amount_at_least(cluster, cycle->tasks, n, &amount, &fixed);
    *out_is_owed = false;
    if (n == 0) {
        return false;
    }
    backfill_hold_against(&cycle->backfill, job);
    bool is_admitted =
        shares_admit(cluster, cluster->snapshot->jobs[job].queue, &amount, &fixed, wait);
    if (!is_admitted || !placer_place(&cycle->placer, job, cycle->tasks, n, wait)) {
        *out_is_owed = is_admitted;
        backfill_add(&cycle->backfill, job);
        return false;
    }
    cluster_commit(cluster);
    return cluster->groups[cluster->jobs[job].first_group].n_pending > 0;
}

/** Whether the job's next tasks, and `more` beside them, are within what its queues are
 *  guaranteed. */
static bool is_guaranteed(struct cycle *cycle, int32_t job, const struct weir_sched_amount *more)
{
    const struct cluster *cluster = &cycle->cluster;
    struct weir_sched_amount amount, fixed;
    int32_t n = quantum_next(cluster, job, cycle->tasks);
    quantum_amount(cluster, cycle->tasks, n, &amount, &fixed);
    amount_add(&amount, more);
    return shares_is_guaranteed(cluster, cluster->snapshot->jobs[job].queue, &amount, false);
}

/** The job's queue owes it its next tasks. */
static void note_owed(struct cycle *cycle, int32_t job)
{
    const struct cluster *cluster = &cycle->cluster;
    struct owed *owed = &cycle->owed[cluster->snapshot->jobs[job].queue];
    struct weir_sched_amount amount, fixed;
    int32_t n = quantum_next(cluster, job, cycle->tasks);
    quantum_amount(cluster, cycle->tasks, n, &amount, &fixed);
    amount_add(&owed->amount, &amount);
    owed->job = owed->job >= 0 ? owed->job : job;
}

/** Whether the job would start in place of what its queue owes an earlier one: with it the queue
 *  would have too much for that one to be guaranteed its room, and to get it from those that
 *  borrow. Then it waits until that was tried. */
static bool withhold(struct cycle *cycle, int32_t job)
{
    struct cluster *cluster = &cycle->cluster;
    const struct owed *owed = &cycle->owed[cluster->snapshot->jobs[job].queue];
    if (owed->job < 0 || owed->job == job || is_guaranteed(cycle, job, &owed->amount)) {
        return false;
    }
    struct weir_sched_wait *wait = cluster_wait(cluster, job);
    wait->code = WEIR_SCHED_WAIT_RESERVED;
    wait->object = owed->job;
    cycle->is_withheld[job] = true;
    return true;
}

/** Since when a job waits and its queue was not served; -1: not for as long as it takes. */
static int64_t unserved_since(const struct cluster *cluster, int32_t job)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int64_t since = ageing_waits_since(given);
    bool is_known = since > 0;
    since = WEIR_MAX(since, cluster->snapshot->queues[given->queue].served_ms);
    bool is_long = cluster->snapshot->now_ms - since > cluster->profile->reserve_after_ms;
    return is_known && is_long ? since : -1;
}

/** What a queue has had by its weight: of the resource of which that is most. */
static int64_t past_by_weight(const struct cluster *cluster, int32_t queue)
{
    int64_t most = 0;
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        int64_t weight = WEIR_MAX(shares_of(cluster, queue, r)->weight, 1);
        int64_t used = cluster->snapshot->queues[queue].usage_ppm[r];
        most = WEIR_MAX(most, used * PAST_SCALE / weight);
    }
    return most;
}

/** Whether the queue and all above it have no more than their fair share, and none beside them that
 *  has waiting work a higher priority, or, where past use counts, has had less. */
static bool may_go_first(const struct order *order, int32_t queue)
{
    const struct cluster *cluster = order->cluster;
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    for (; queue >= 0; queue = queues[queue].parent) {
        struct order_key key;
        const struct weir_sched_amount *has = &cluster->queues[queue].allocated;
        int32_t parent = queues[queue].parent;
        int32_t other = parent < 0 ? cluster->first_root : cluster->queues[parent].first_child;
        order_make_key(cluster, queue, has, has, &key);
        if (key.is_over_share) {
            return false;
        }
        bool counts_past = cluster->profile->usage_weight_ppm > 0;
        int64_t past = counts_past ? past_by_weight(cluster, queue) : 0;
        for (; other >= 0; other = cluster->queues[other].next_sibling) {
            bool is_before = queues[other].priority > queues[queue].priority ||
                             (counts_past && past_by_weight(cluster, other) < past);
            if (order->queues[other].top >= 0 && is_before) {
                return false;
            }
        }
    }
    return true;
}

/** The leaf queue of the longest of those in cycle->first_waiting; -1: there is none. */
static int32_t longest_unserved(const struct cycle *cycle)
{
    const struct cluster *cluster = &cycle->cluster;
    int64_t least = INT64_MAX;
    int32_t found = -1;
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        int32_t job = cycle->first_waiting[q];
        if (job >= 0 && unserved_since(cluster, job) < least) {
            least = unserved_since(cluster, job);
            found = q;
        }
    }
    return found;
}

/** Queues are compared by what they would have with their next job, so that a large one goes after
 *  every small one, however long it waits. So the first job of a queue that was not served for long
 *  has its turn before that: it starts, or gets the first reservation. Those that have waited
 *  longest come first. It costs others what they would have borrowed until it starts: its queue is
 *  not above its fair share, and what is guaranteed was given before. */
static void allocate_unserved(struct cycle *cycle, struct order *order)
{
    const struct cluster *cluster = &cycle->cluster;
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        int32_t job = cluster->queues[q].first_child < 0 ? order->queues[q].top : -1;
        bool is_due = job >= 0 && unserved_since(cluster, job) >= 0;
        cycle->first_waiting[q] = is_due ? job : -1;
    }
    for (int32_t q; (q = longest_unserved(cycle)) >= 0 && cluster->status == WEIR_OK;) {
        int32_t job = cycle->first_waiting[q];
        bool is_owed;
        cycle->first_waiting[q] = -1;
        if (may_go_first(order, q) && !withhold(cycle, job)) {
            (void)order_pop_of(order, q);
            cycle->is_listed[job] = allocate_job(cycle, job, &is_owed);
            if (cycle->is_listed[job]) {
                order_push(order, job);
            } else if (backfill_has_reserved(&cycle->backfill, job)) {
                cluster_wait(&cycle->cluster, job)->is_kept = true;
            }
        }
    }
}

/** Give what is free to the listed jobs, or to those of them that only take what is guaranteed; who
 *  has had its turn is no longer listed. */
static weir_status allocate_listed(struct cycle *cycle, bool only_guaranteed)
{
    static const struct weir_sched_amount nothing;
    struct order order;
    weir_status status = order_init(&order, &cycle->cluster, cycle->is_listed, false);
    if (status == WEIR_OK && !only_guaranteed && cycle->cluster.profile->reserve_after_ms > 0) {
        allocate_unserved(cycle, &order);
        status = cycle->cluster.status;
    }
    while (status == WEIR_OK) {
        int32_t job = order_pop(&order);
        if (job < 0) {
            break;
        }
        if ((only_guaranteed && !is_guaranteed(cycle, job, &nothing)) || withhold(cycle, job)) {
            continue;
        }
        bool is_owed;
        cycle->is_listed[job] = allocate_job(cycle, job, &is_owed);
        if (cycle->is_listed[job]) {
            order_push(&order, job);
        } else if (is_owed && only_guaranteed) {
            note_owed(cycle, job);
        }
        status = cycle->cluster.status;
    }
    order_fini(&order);
    return status;
}

/** A guarantee would not be one if a gang that borrows, first in its queue or in the order of the
 *  queues, kept others from what is theirs. */
weir_status action_allocate(struct cycle *cycle)
{
    action_list_waiting(cycle);
    for (int32_t q = 0; q < cycle->cluster.snapshot->n_queues; q++) {
        cycle->owed[q] = (struct owed){.job = -1};
    }
    weir_status status =
        cycle->cluster.profile->guarantee_first ? allocate_listed(cycle, true) : WEIR_OK;
    if (status == WEIR_OK) {
        status = allocate_listed(cycle, false);
    }
    if (status == WEIR_OK) {
        backfill_forecast(&cycle->backfill);
        status = cycle->cluster.status;
    }
    return status;
}

weir_status action_allocate_withheld(struct cycle *cycle)
{
    const struct cluster *cluster = &cycle->cluster;
    bool is_any = false;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        cycle->is_listed[j] = cycle->is_withheld[j] && quantum_next(cluster, j, cycle->tasks) > 0;
        cycle->owed[cluster->snapshot->jobs[j].queue].job = -1;
        is_any = is_any || cycle->is_listed[j];
    }
    return is_any ? allocate_listed(cycle, false) : cluster->status;
}

bool action_give_rest_to(struct cycle *cycle, int32_t job)
{
    struct cluster *cluster = &cycle->cluster;
    struct weir_sched_amount amount, fixed;
    if (!cluster->profile->guarantee_first || !cluster->changes.has_freed) {
        return false;
    }
    int32_t n = quantum_next(cluster, job, cycle->tasks);
    quantum_amount(cluster, cycle->tasks, n, &amount, &fixed);
    if (n == 0 || !shares_is_guaranteed(cluster, cluster->jobs[job].queue, &amount, false)) {
        return false;
    }
    quantum_amount_at_least(cluster, cycle->tasks, n, &amount, &fixed);
    if (!shares_admit(cluster, cluster->jobs[job].queue, &amount, &fixed, NULL)) {
        return false;
    }
    backfill_hold_against_guaranteed(&cycle->backfill, job);
    bool is_placed = placer_place(&cycle->placer, job, cycle->tasks, n, NULL);
    cluster_commit(cluster);
    return is_placed;
}

/** A gang that had to go for one job may leave room for others: those to whom it is guaranteed are
 *  not to wait for the next cycle. */
weir_status action_give_rest(struct cycle *cycle)
{
    struct order order;
    action_list_waiting(cycle);
    weir_status status = order_init(&order, &cycle->cluster, cycle->is_listed, false);
    for (int32_t job = -1; status == WEIR_OK && (job = order_pop(&order)) >= 0;) {
        if (action_give_rest_to(cycle, job) &&
            cycle->cluster.groups[cycle->cluster.jobs[job].first_group].n_pending > 0) {
            order_push(&order, job);
        }
        status = cycle->cluster.status;
    }
    order_fini(&order);
    return status;
}

/** Whether what a pipelined task waits for is not there (any more), nor kept for others. */
static bool is_ready(const struct cluster *cluster, int32_t task)
{
    return nomination_may_bind(cluster, task) && fits_now_where_planned(cluster, task);
}

static bool bind_job(struct cluster *cluster, const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PIPELINED) {
            if (!is_ready(cluster, t)) {
                return false;
            }
            cluster_bind(cluster, t);
        }
    }
    return true;
}

weir_status action_bind_ready(struct cycle *cycle)
{
    struct cluster *cluster = &cycle->cluster;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        int32_t root = cluster->jobs[j].first_group;
        if (cluster->groups[root].n_pipelined > 0 &&
            !bind_job(cluster, &cluster->snapshot->jobs[j])) {
            cluster_rollback(cluster, 0);
        }
        cluster_commit(cluster);
    }
    return cluster->status;
}
