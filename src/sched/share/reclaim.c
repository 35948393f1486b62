#include "sched/share/reclaim.h"

#include "sched/share/division.h"

#include <string.h>

/** What a queue has within all quotas above it is its own where guarantees come first: another's
 *  line may be below its share, and this one's above because of a sibling. */
static bool is_spared(const struct cluster *cluster, int32_t leaf,
                      const struct weir_sched_amount *amount,
                      const struct weir_sched_amount *still_to_lose)
{
    return cluster->profile->guarantee_first &&
           shares_holds_its_own(cluster, leaf, amount, still_to_lose);
}

bool reclaim_may_ask(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed)
{
    const struct queue_state *state = &cluster->queues[queue];
    for (int r = 0; r < cluster->capacity.n_resources; r++) {
        if (amount->of[r] > 0 && !shares_is_within(state->allocated.of[r] + amount->of[r],
                                                   shares_fair(cluster, queue, r))) {
            return false;
        }
        if (fixed->of[r] > 0 && !shares_is_within(state->non_preemptible.of[r] + fixed->of[r],
                                                  shares_of(cluster, queue, r)->quota)) {
            return false;
        }
    }
    return true;
}

/** The line of queues from a leaf up to where it is compared with another. */
struct line {
    int32_t leaf, compared;
    const struct weir_sched_amount *still_to_lose; /**< Per queue; NULL: nothing. */
    const struct weir_sched_amount *more;          /**< That each of them will have; NULL. */
    bool is_bare;                                  /**< Suppose that they have nothing at all. */
};

/** Whose share of a resource counts: the highest of the line that has a quota of the model. */
static int32_t line_queue(const struct cluster *cluster, const struct line *line, int r)
{
    int32_t found = line->compared;
    bool is_model = r >= WEIR_SCHED_FIRST_MODEL;
    for (int32_t q = line->leaf; is_model && q != line->compared;
         q = cluster->snapshot->queues[q].parent) {
        found = shares_of(cluster, q, r)->quota >= 0 ? q : found;
    }
    return shares_of(cluster, line->compared, r)->quota >= 0 ? line->compared : found;
}

static int64_t line_has(const struct cluster *cluster, const struct line *line, int32_t queue,
                        int r)
{
    int64_t taken = line->still_to_lose == NULL ? 0 : line->still_to_lose[queue].of[r];
    int64_t more = line->more == NULL ? 0 : line->more->of[r];
    return line->is_bare ? 0 : cluster->queues[queue].allocated.of[r] + taken + more;
}

static bool is_above_allocatable(const struct cluster *cluster, const struct line *line,
                                 const struct weir_sched_amount *involved)
{
    for (int r = 0; r < cluster->capacity.n_resources; r++) {
        int32_t queue = involved->of[r] > 0 ? line_queue(cluster, line, r) : -1;
        if (queue >= 0 && !shares_is_within(line_has(cluster, line, queue, r),
                                            shares_allocatable(cluster, queue, r))) {
            return true;
        }
    }
    return false;
}

static bool is_above_quota(const struct cluster *cluster, const struct line *line,
                           const struct weir_sched_amount *involved)
{
    for (int r = 0; r < cluster->capacity.n_resources; r++) {
        int32_t queue = involved->of[r] > 0 ? line_queue(cluster, line, r) : -1;
        if (queue >= 0 && !shares_is_within(line_has(cluster, line, queue, r),
                                            shares_of(cluster, queue, r)->quota)) {
            return true;
        }
    }
    return false;
}

/** Whether what is lost of a model is within the quota of it. */
static bool is_guaranteed(const struct cluster *cluster, const struct line *line,
                          const struct weir_sched_amount *taken)
{
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources; r++) {
        int32_t queue = taken->of[r] > 0 ? line_queue(cluster, line, r) : -1;
        if (queue >= 0 &&
            line_has(cluster, line, queue, r) <= shares_of(cluster, queue, r)->quota) {
            return true;
        }
    }
    return false;
}

/** ratio l * multiplier >= ratio r, where a ratio is has / fair, over nothing infinite and over -1,
 *  which is any amount, nothing. */
static bool is_as_saturated(const struct cluster *cluster, int64_t l_has, int64_t l_fair,
                            int64_t r_has, int64_t r_fair)
{
    __int128 multiplier = cluster->profile->saturation_ppm;
    if (r_fair < 0) {
        return true;
    }
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
    for (int r = 0; r < cluster->capacity.n_resources; r++) {
        int64_t fair = shares_fair(cluster, taker, r);
        bool is_bound = shares_of(cluster, taker, r)->quota >= 0;
        if (involved->of[r] > 0 && taker_has->of[r] > fair && is_bound &&
            is_as_saturated(cluster, taker_has->of[r], fair, sibling_has->of[r],
                            shares_fair(cluster, sibling, r))) {
            return false;
        }
    }
    return true;
}

/** `lost`: per queue, whether it or one below it has lost any of a resource. */
static bool line_stays_fair(const struct cluster *cluster, int32_t queue,
                            const struct weir_sched_amount *amount, bool is_fixed,
                            const struct weir_sched_amount *taken)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        int32_t parent = cluster->snapshot->queues[queue].parent;
        int32_t sibling = parent < 0 ? cluster->first_root : cluster->queues[parent].first_child;
        for (; sibling >= 0; sibling = cluster->queues[sibling].next_sibling) {
            const struct weir_sched_amount *has = &cluster->queues[sibling].allocated;
            bool has_losses = false;
            for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
                has_losses = has_losses || taken[sibling].of[r] != 0;
            }
            if (sibling != queue && has_losses &&
                !is_below_sibling(cluster, queue, sibling, &cluster->queues[queue].allocated, has,
                                  amount)) {
                return false;
            }
        }
        for (int r = 0; r < cluster->capacity.n_resources && is_fixed; r++) {
            if (amount->of[r] > 0 && !shares_is_within(cluster->queues[queue].non_preemptible.of[r],
                                                       shares_of(cluster, queue, r)->quota)) {
                return false;
            }
        }
    }
    return true;
}

/** By what queues have. */
static bool is_entitled(const struct cluster *cluster, const struct line *taker,
                        const struct line *loser, const struct weir_sched_amount *amount,
                        const struct weir_sched_amount *involved)
{
    return is_above_allocatable(cluster, loser, involved) ||
           (!is_above_quota(cluster, taker, amount) && is_above_quota(cluster, loser, involved));
}

/** Whether what is guaranteed to a queue is lent to a leaf: it comes back, though all that is
 *  borrowed there be its own department's, which has no more than is its. `is_allocated`: it has it
 *  already. */
static bool is_lent(const struct cluster *cluster, int32_t queue,
                    const struct weir_sched_amount *amount, bool is_allocated, int32_t leaf,
                    const struct weir_sched_amount *still_to_lose)
{
    const struct line borrower = {.leaf = leaf, .compared = leaf, .still_to_lose = still_to_lose};
    return cluster->profile->guarantee_first && is_above_quota(cluster, &borrower, amount) &&
           shares_is_guaranteed(cluster, queue, amount, is_allocated);
}

static bool loss_is_allowed(const struct cluster *cluster, const struct line *taker,
                            const struct line *loser, const struct weir_sched_amount *amount,
                            const struct weir_sched_amount *taken)
{
    if (is_spared(cluster, loser->leaf, amount, loser->still_to_lose) ||
        is_guaranteed(cluster, loser, taken)) {
        return false;
    }
    struct weir_sched_amount involved = *amount;
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->capacity.n_resources; r++) {
        involved.of[r] = taken->of[r] > 0 ? amount->of[r] : 0; /* For no other model's sake. */
    }
    return is_entitled(cluster, taker, loser, amount, &involved) ||
           is_lent(cluster, taker->leaf, &involved, true, loser->leaf, loser->still_to_lose);
}

void reclaim_mark_losers(const struct cluster *cluster, int32_t queue,
                         const struct weir_sched_amount *amount, bool *out_may_lose)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    bool is_any = false; /* Of those below `line`: what they lose brings it below its quota. */
    memset(out_may_lose, 0, (size_t)cluster->snapshot->n_queues * sizeof *out_may_lose);
    for (int32_t line = queue; line >= 0; line = queues[line].parent) {
        bool is_new = false;
        for (int32_t leaf = 0; leaf < cluster->snapshot->n_queues; leaf++) {
            struct line taker = {
                .leaf = queue, .compared = queue, .more = amount, .is_bare = is_any};
            struct line loser = {.leaf = leaf, .compared = leaf};
            cluster_find_siblings(cluster, &taker.compared, &loser.compared);
            if (leaf != queue && taker.compared == line && cluster->queues[leaf].first_child < 0) {
                out_may_lose[leaf] = (is_entitled(cluster, &taker, &loser, amount, amount) ||
                                      is_lent(cluster, queue, amount, false, leaf, NULL)) &&
                                     !is_spared(cluster, leaf, amount, NULL);
                is_new = is_new || out_may_lose[leaf];
            }
        }
        is_any = is_any || is_new;
    }
}

void reclaim_mark_unfair(const struct cluster *cluster, int32_t queue,
                         const struct weir_sched_amount *amount, struct reclaim_loss *losses,
                         int32_t n_losses, struct weir_sched_amount *remaining)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    for (int32_t i = 0; i < n_losses; i++) {
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            amount_add(&remaining[q], &losses[i].amount);
        }
    }
    for (int32_t i = 0; i < n_losses; i++) {
        struct line taker = {.leaf = queue, .compared = queue, .still_to_lose = remaining};
        struct line loser = {
            .leaf = losses[i].queue, .compared = losses[i].queue, .still_to_lose = remaining};
        cluster_find_siblings(cluster, &taker.compared, &loser.compared);
        losses[i].is_unfair = !loss_is_allowed(cluster, &taker, &loser, amount, &losses[i].amount);
        for (int32_t q = losses[i].queue; q >= 0 && !losses[i].is_unfair; q = queues[q].parent) {
            amount_subtract(&remaining[q], &losses[i].amount);
        }
    }
    for (int32_t i = 0; i < n_losses; i++) {
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            remaining[q] = (struct weir_sched_amount){{0}};
        }
    }
}

bool reclaim_is_fair(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *amount, bool is_fixed,
                     const struct reclaim_loss *losses, int32_t n_losses,
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
        struct line taker = {.leaf = queue, .compared = queue};
        struct line loser = {
            .leaf = losses[i].queue, .compared = losses[i].queue, .still_to_lose = remaining};
        cluster_find_siblings(cluster, &taker.compared, &loser.compared);
        is_fair = loss_is_allowed(cluster, &taker, &loser, amount, &losses[i].amount);
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            amount_subtract(&remaining[q], &losses[i].amount);
        }
    }
    for (int32_t i = 0; i < n_losses; i++) { /* From here on: who lost of what at all. */
        for (int32_t q = losses[i].queue; q >= 0; q = queues[q].parent) {
            for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
                remaining[q].of[r] |= losses[i].amount.of[r] > 0;
            }
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
