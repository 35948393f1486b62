#include "sched/shares.h"

#include "base/macros.h"
#include "sched/division.h"

#include <stdio.h>
#include <stdlib.h>

static const struct weir_sched_share *share_of(const struct cluster *cluster, int32_t queue, int r)
{
    return &cluster->snapshot->queues[queue].shares[r];
}

static bool is_within(int64_t value, int64_t bound)
{
    return bound < 0 || value <= bound;
}

static void divide_among(struct cluster *cluster, int32_t first, int resource, int64_t total,
                         struct division_part *parts)
{
    int32_t n = 0;
    for (int32_t q = first; q >= 0; q = cluster->queues[q].next_sibling) {
        const struct weir_sched_queue *given = &cluster->snapshot->queues[q];
        const struct weir_sched_share *share = &given->shares[resource];
        parts[n++] = (struct division_part){.quota = share->quota,
                                            .limit = share->limit,
                                            .weight = WEIR_MAX(share->weight, 0),
                                            .want = cluster->queues[q].requested.of[resource],
                                            .usage_ppm = given->usage_ppm[resource],
                                            .priority = given->priority,
                                            .age_rank = q};
    }
    int64_t rest = division_give_quota(parts, n, total);
    int64_t unit = resource == WEIR_SCHED_ACCELERATOR ? WEIR_SCHED_DEVICE : 1;
    if (rest > 0) {
        division_give_rest(parts, n, rest, unit, cluster->profile->usage_weight_ppm);
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
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        divide_among(cluster, cluster->first_root, r, cluster->total.of[r], parts);
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
    const struct weir_sched_share *share = share_of(cluster, queue, resource);
    if (share->quota < 0) {
        return share->limit;
    }
    int64_t wanted = WEIR_MAX(share->quota, cluster->queues[queue].fair_share.of[resource]);
    return share->limit < 0 ? wanted : WEIR_MIN(share->limit, wanted);
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

bool shares_admit(const struct cluster *cluster, int32_t queue,
                  const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed,
                  struct weir_sched_wait *wait)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        const struct queue_state *state = &cluster->queues[queue];
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            const struct weir_sched_share *share = share_of(cluster, queue, r);
            int64_t all = state->allocated.of[r] + amount->of[r];
            if (amount->of[r] > 0 && !is_within(all, share->limit)) {
                explain(wait, WEIR_SCHED_WAIT_QUEUE_LIMIT, r, all, share->limit, queue);
                return false;
            }
            int64_t all_fixed = state->non_preemptible.of[r] + fixed->of[r];
            if (fixed->of[r] > 0 && !is_within(all_fixed, share->quota)) {
                explain(wait, WEIR_SCHED_WAIT_QUEUE_QUOTA, r, all_fixed, share->quota, queue);
                return false;
            }
        }
    }
    return true;
}

bool shares_may_reclaim(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount,
                        const struct weir_sched_amount *fixed)
{
    const struct queue_state *state = &cluster->queues[queue];
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        if (amount->of[r] > 0 && state->allocated.of[r] + amount->of[r] > state->fair_share.of[r]) {
            return false;
        }
        if (fixed->of[r] > 0 && !is_within(state->non_preemptible.of[r] + fixed->of[r],
                                           share_of(cluster, queue, r)->quota)) {
            return false;
        }
    }
    return true;
}

/** The two ancestors-or-selves of left and right that are siblings; equal if one is above or is the
 *  other. */
static void find_siblings(const struct cluster *cluster, int32_t *left, int32_t *right)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    while (cluster->queues[*left].depth > cluster->queues[*right].depth) {
        *left = queues[*left].parent;
    }
    while (cluster->queues[*right].depth > cluster->queues[*left].depth) {
        *right = queues[*right].parent;
    }
    while (*left != *right && queues[*left].parent != queues[*right].parent) {
        *left = queues[*left].parent;
        *right = queues[*right].parent;
    }
}

static bool is_above_allocatable(const struct cluster *cluster, int32_t queue,
                                 const struct weir_sched_amount *has,
                                 const struct weir_sched_amount *involved)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        if (involved->of[r] > 0 && !is_within(has->of[r], shares_allocatable(cluster, queue, r))) {
            return true;
        }
    }
    return false;
}

static bool is_above_quota(const struct cluster *cluster, int32_t queue,
                           const struct weir_sched_amount *has,
                           const struct weir_sched_amount *involved)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        if (involved->of[r] > 0 && !is_within(has->of[r], share_of(cluster, queue, r)->quota)) {
            return true;
        }
    }
    return false;
}

/** ratio l * multiplier >= ratio r, where a ratio is has / fair and over nothing is infinite. */
static bool is_as_saturated(const struct cluster *cluster, int64_t l_has, int64_t l_fair,
                            int64_t r_has, int64_t r_fair)
{
    __int128 multiplier = cluster->profile->saturation_ppm;
    if (l_fair <= 0 || r_fair <= 0) {
        return r_fair > 0 || r_has <= 0;
    }
    return (__int128)l_has * multiplier / DIVISION_PPM * r_fair >= (__int128)r_has * l_fair;
}

/** The saturation guard between the taker's line and one sibling that lost. */
static bool is_below_sibling(const struct cluster *cluster, int32_t taker, int32_t sibling,
                             const struct weir_sched_amount *taker_has,
                             const struct weir_sched_amount *sibling_has,
                             const struct weir_sched_amount *involved)
{
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        int64_t fair = cluster->queues[taker].fair_share.of[r];
        if (involved->of[r] > 0 && taker_has->of[r] > fair &&
            share_of(cluster, taker, r)->quota >= 0 &&
            is_as_saturated(cluster, taker_has->of[r], fair, sibling_has->of[r],
                            cluster->queues[sibling].fair_share.of[r])) {
            return false;
        }
    }
    return true;
}

static bool line_stays_fair(const struct cluster *cluster, int32_t queue,
                            const struct weir_sched_amount *involved, bool is_fixed,
                            const struct weir_sched_amount *remaining)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        int32_t parent = cluster->snapshot->queues[queue].parent;
        int32_t sibling = parent < 0 ? cluster->first_root : cluster->queues[parent].first_child;
        for (; sibling >= 0; sibling = cluster->queues[sibling].next_sibling) {
            const struct weir_sched_amount *has = &cluster->queues[sibling].allocated;
            bool has_lost = false;
            for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
                has_lost = has_lost || remaining[sibling].of[r] != 0;
            }
            if (sibling != queue && has_lost &&
                !is_below_sibling(cluster, queue, sibling, &cluster->queues[queue].allocated, has,
                                  involved)) {
                return false;
            }
        }
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES && is_fixed; r++) {
            if (involved->of[r] > 0 && !is_within(cluster->queues[queue].non_preemptible.of[r],
                                                  share_of(cluster, queue, r)->quota)) {
                return false;
            }
        }
    }
    return true;
}

/** What a queue still has before the losses that `lost` does not hold yet. */
static struct weir_sched_amount before(const struct cluster *cluster, int32_t queue,
                                       const struct weir_sched_amount *still_to_lose)
{
    struct weir_sched_amount has = cluster->queues[queue].allocated;
    amount_add(&has, still_to_lose);
    return has;
}

static bool loss_is_allowed(const struct cluster *cluster, int32_t taker, int32_t loser,
                            const struct weir_sched_amount *amount,
                            const struct weir_sched_amount *has)
{
    if (is_above_allocatable(cluster, loser, has, amount)) {
        return true;
    }
    return !is_above_quota(cluster, taker, &cluster->queues[taker].allocated, amount) &&
           is_above_quota(cluster, loser, has, amount);
}

bool shares_reclaim_is_fair(const struct cluster *cluster, int32_t queue,
                            const struct weir_sched_amount *amount, bool is_fixed,
                            const struct shares_loss *losses, int32_t n_losses,
                            struct weir_sched_amount *remaining)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    for (int32_t i = 0; i < n_losses; i++) {
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            remaining[q] = (struct weir_sched_amount){{0}};
        }
    }
    for (int32_t i = 0; i < n_losses; i++) {
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            amount_add(&remaining[q], &losses[i].amount);
        }
    }
    bool is_fair = true;
    for (int32_t i = 0; i < n_losses && is_fair; i++) {
        int32_t taker = queue, loser = losses[i].queue;
        find_siblings(cluster, &taker, &loser);
        struct weir_sched_amount has = before(cluster, loser, &remaining[loser]);
        is_fair = loss_is_allowed(cluster, taker, loser, amount, &has);
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            amount_subtract(&remaining[q], &losses[i].amount);
        }
    }
    for (int32_t i = 0; i < n_losses; i++) { /* From here on: who lost at all. */
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            remaining[q].of[WEIR_SCHED_CPU] = 1;
        }
    }
    is_fair = is_fair && line_stays_fair(cluster, queue, amount, is_fixed, remaining);
    for (int32_t i = 0; i < n_losses; i++) {
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            remaining[q] = (struct weir_sched_amount){{0}};
        }
    }
    return is_fair;
}
