#include "sched/share/shares.h"

#include "base/macros.h"
#include "sched/model/model.h"
#include "sched/share/division.h"
#include "sched/share/timed_quota.h"

#include <stdlib.h>
#include <string.h>

static void read_models(struct cluster *cluster, const struct weir_sched_model_share *models,
                        int32_t n_models, struct weir_sched_share *out)
{
    for (int32_t i = 0; i < n_models; i++) {
        out[model_named(cluster, models[i].model)] = models[i].share;
    }
}

void shares_read(struct cluster *cluster)
{
    static const struct weir_sched_share unbounded = {WEIR_SCHED_UNLIMITED, 1,
                                                      WEIR_SCHED_UNLIMITED};
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t q = 0; q < snapshot->n_queues; q++) { /* Parents come first. */
        const struct weir_sched_queue *given = &snapshot->queues[q];
        const struct weir_sched_timed_quota *timed =
            cluster->profile->timed_quotas ? timed_quota_of(snapshot, given) : NULL;
        struct queue_state *queue = &cluster->queues[q];
        memcpy(queue->shares, timed != NULL ? timed->shares : given->shares, sizeof given->shares);
        bool bounds_model = false;
        for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources; r++) {
            queue->shares[r] = unbounded;
        }
        read_models(cluster, given->models, given->n_models, queue->shares);
        if (timed != NULL) {
            read_models(cluster, timed->models, timed->n_models, queue->shares);
        }
        for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources; r++) {
            bounds_model =
                bounds_model || queue->shares[r].quota >= 0 || queue->shares[r].limit >= 0;
        }
        int32_t above = given->parent < 0 ? -1 : cluster->queues[given->parent].bounds_model;
        queue->bounds_model = bounds_model ? q : above;
    }
}

static void divide_among(struct cluster *cluster, int32_t first, int resource, int64_t total,
                         struct division_part *parts)
{
    int32_t n = 0;
    for (int32_t q = first; q >= 0; q = cluster->queues[q].next_sibling) {
        const struct weir_sched_queue *given = &cluster->snapshot->queues[q];
        const struct weir_sched_share *share = shares_of(cluster, q, resource);
        bool is_model = resource >= WEIR_SCHED_FIRST_MODEL;
        parts[n++] = (struct division_part){.quota = share->quota,
                                            .limit = share->limit,
                                            .weight = WEIR_MAX(share->weight, 0),
                                            .want = cluster->queues[q].requested.of[resource],
                                            .usage_ppm = is_model ? 0 : given->usage_ppm[resource],
                                            .priority = given->priority,
                                            .age_rank = q};
    }
    int64_t rest = division_give_quota(parts, n, total);
    bool are_devices = resource != WEIR_SCHED_CPU && resource != WEIR_SCHED_MEMORY;
    const struct division_rule rule = {
        .unit = are_devices ? WEIR_SCHED_DEVICE : 1,
        .usage_weight_ppm = cluster->profile->usage_weight_ppm,
    };
    if (rest > 0) {
        division_give_rest(parts, n, rest, &rule);
    }
    for (int32_t i = 0; i < n; i++) {
        cluster->queues[parts[i].age_rank].fair_share.of[resource] = parts[i].share;
    }
}

weir_status shares_divide(struct cluster *cluster)
{
    int32_t n_queues = cluster->snapshot->n_queues;
    struct division_part *parts = malloc(((size_t)n_queues + 1) * sizeof *parts);
    if (parts == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int r = 0; r < cluster->capacity.n_resources; r++) {
        divide_among(cluster, cluster->first_root, r, cluster->capacity.total.of[r], parts);
        for (int32_t q = 0; q < n_queues; q++) { /* Parents come first. */
            divide_among(cluster, cluster->queues[q].first_child, r,
                         cluster->queues[q].fair_share.of[r], parts);
        }
    }
    free(parts);
    return WEIR_OK;
}

int64_t shares_allocatable(const struct cluster *cluster, int32_t queue, int resource)
{
    const struct weir_sched_share *share = shares_of(cluster, queue, resource);
    if (share->quota < 0) {
        return share->limit;
    }
    int64_t wanted = WEIR_MAX(share->quota, cluster->queues[queue].fair_share.of[resource]);
    return share->limit < 0 ? wanted : WEIR_MIN(share->limit, wanted);
}

int64_t shares_fair(const struct cluster *cluster, int32_t queue, int resource)
{
    return resource < WEIR_SCHED_FIRST_MODEL ? cluster->queues[queue].fair_share.of[resource]
                                             : shares_allocatable(cluster, queue, resource);
}

static void explain(struct weir_sched_wait *wait, enum weir_sched_wait_code code, int resource,
                    int64_t need, int64_t have, int32_t queue)
{
    if (wait != NULL) {
        wait->code = code;
        wait->resource = (enum weir_sched_resource)resource;
        wait->need = need;
        wait->have = have;
        wait->object = queue;
    }
}

/** One queue and one resource of it. */
static bool admits(const struct cluster *cluster, int32_t queue, int r, int64_t amount,
                   int64_t fixed, struct weir_sched_wait *wait)
{
    const struct queue_state *state = &cluster->queues[queue];
    const struct weir_sched_share *share = shares_of(cluster, queue, r);
    int64_t all = state->allocated.of[r] + amount;
    if (amount > 0 && !shares_is_within(all, share->limit)) {
        explain(wait, WEIR_SCHED_WAIT_QUEUE_LIMIT, r, all, share->limit, queue);
        return false;
    }
    int64_t all_fixed = state->non_preemptible.of[r] + fixed;
    if (fixed > 0 && !shares_is_within(all_fixed, share->quota)) {
        explain(wait, WEIR_SCHED_WAIT_QUEUE_QUOTA, r, all_fixed, share->quota, queue);
        return false;
    }
    return true;
}

bool shares_admit(const struct cluster *cluster, int32_t queue,
                  const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed,
                  struct weir_sched_wait *wait)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        for (int r = 0; r < cluster->capacity.n_resources; r++) {
            if (!admits(cluster, queue, r, amount->of[r], fixed->of[r], wait)) {
                return false;
            }
        }
    }
    return true;
}

/** A queue, one of whose resources is a model, and all above it. */
static bool line_admits(const struct cluster *cluster, int32_t queue, int r, int64_t amount,
                        int64_t fixed, struct weir_sched_wait *wait)
{
    queue = cluster->queues[queue].bounds_model;
    while (queue >= 0 && admits(cluster, queue, r, amount, fixed, wait)) {
        int32_t parent = cluster->snapshot->queues[queue].parent;
        queue = parent < 0 ? -1 : cluster->queues[parent].bounds_model;
    }
    return queue < 0;
}

bool shares_admit_at(const struct cluster *cluster, int32_t task, int32_t node,
                     struct weir_sched_wait *wait)
{
    int32_t r = cluster->nodes[node].model;
    int32_t queue = cluster->snapshot->jobs[cluster->tasks[task].job].queue;
    bool is_by_memory = demand_is_by_memory(cluster_demand(cluster, task));
    bool is_bounded = r >= 0 && cluster->queues[queue].bounds_model >= 0;
    if (!is_by_memory && !is_bounded) {
        return true;
    }
    int64_t amount = cluster_charge(cluster, task, node).accelerators;
    int64_t fixed = cluster_is_fixed(cluster, task) ? amount : 0;
    for (int32_t q = queue; q >= 0 && is_by_memory; q = cluster->snapshot->queues[q].parent) {
        if (!admits(cluster, q, WEIR_SCHED_ACCELERATOR, amount, fixed, wait)) {
            return false;
        }
    }
    return !is_bounded || line_admits(cluster, queue, r, amount, fixed, wait);
}

uint32_t shares_open_parts(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    int32_t queue = cluster->snapshot->jobs[cluster->tasks[task].job].queue;
    if (cluster->queues[queue].bounds_model < 0 ||
        demand_is_by_memory(demand)) { /* Nodes differ. */
        return NODE_INDEX_ALL;
    }
    int64_t amount = cluster_charge(cluster, task, -1).accelerators;
    int64_t fixed = cluster_is_fixed(cluster, task) ? amount : 0;
    uint32_t open = 1;
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources; r++) {
        if (line_admits(cluster, queue, r, amount, fixed, NULL)) {
            open |= 2U << (r - WEIR_SCHED_FIRST_MODEL);
        }
    }
    return open;
}

/** What a queue holds of what it is guaranteed, with what it is still to lose (NULL: nothing): of
 *  queues above others, what those hold of theirs. */
static int64_t guaranteed_use(const struct cluster *cluster, int32_t queue, int r,
                              const struct weir_sched_amount *still_to_lose)
{
    int64_t quota = shares_of(cluster, queue, r)->quota, use = 0;
    int32_t child = cluster->queues[queue].first_child;
    if (child < 0) {
        use = cluster->queues[queue].allocated.of[r];
        use += still_to_lose == NULL ? 0 : still_to_lose[queue].of[r];
    }
    for (; child >= 0; child = cluster->queues[child].next_sibling) {
        use += guaranteed_use(cluster, child, r, still_to_lose);
    }
    return quota < 0 ? use : WEIR_MIN(use, quota);
}

/** Whether a queue has `more` left of its quota; what those below it borrow does not count. */
static bool has_quota_left(const struct cluster *cluster, int32_t queue, int r, int64_t more,
                           const struct weir_sched_amount *still_to_lose)
{
    int64_t quota = shares_of(cluster, queue, r)->quota, use = more;
    int64_t taken = still_to_lose == NULL ? 0 : still_to_lose[queue].of[r];
    int32_t child = cluster->queues[queue].first_child;
    if (shares_is_within(cluster->queues[queue].allocated.of[r] + taken + more, quota)) {
        return true;
    }
    if (child < 0) {
        return false;
    }
    for (; child >= 0; child = cluster->queues[child].next_sibling) {
        use += guaranteed_use(cluster, child, r, still_to_lose);
    }
    return use <= quota;
}

/** As shares_is_guaranteed. */
static bool is_within_quotas(const struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount, bool is_allocated,
                             const struct weir_sched_amount *still_to_lose)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        for (int r = 0; r < cluster->capacity.n_resources; r++) {
            int64_t more = is_allocated ? 0 : amount->of[r];
            if (amount->of[r] > 0 && !has_quota_left(cluster, queue, r, more, still_to_lose)) {
                return false;
            }
        }
    }
    return true;
}

bool shares_is_guaranteed(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount, bool is_allocated)
{
    return is_within_quotas(cluster, queue, amount, is_allocated, NULL);
}

bool shares_holds_its_own(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount,
                          const struct weir_sched_amount *still_to_lose)
{
    return is_within_quotas(cluster, queue, amount, true, still_to_lose);
}

bool shares_is_within_quotas(const struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        for (int r = 0; r < cluster->capacity.n_resources; r++) {
            if (amount->of[r] > 0 &&
                !shares_is_within(amount->of[r], shares_of(cluster, queue, r)->quota)) {
                return false;
            }
        }
    }
    return true;
}
