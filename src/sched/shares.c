#include "sched/shares.h"

#include "base/macros.h"
#include "sched/division.h"
#include "sched/model.h"
#include "sched/windows.h"

#include <stdlib.h>
#include <string.h>

static const struct weir_sched_share *share_of(const struct cluster *cluster, int32_t queue, int r)
{
    return &cluster->queues[queue].shares[r];
}

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
        const struct weir_sched_window *window =
            cluster->profile->quota_windows ? window_of(snapshot, given) : NULL;
        struct queue_state *queue = &cluster->queues[q];
        memcpy(queue->shares, window != NULL ? window->shares : given->shares,
               sizeof given->shares);
        bool bounds_model = false;
        for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->n_resources; r++) {
            queue->shares[r] = unbounded;
        }
        read_models(cluster, given->models, given->n_models, queue->shares);
        if (window != NULL) {
            read_models(cluster, window->models, window->n_models, queue->shares);
        }
        for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->n_resources; r++) {
            bounds_model =
                bounds_model || queue->shares[r].quota >= 0 || queue->shares[r].limit >= 0;
        }
        int32_t above = given->parent < 0 ? -1 : cluster->queues[given->parent].bounds_model;
        queue->bounds_model = bounds_model ? q : above;
    }
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
        const struct weir_sched_share *share = share_of(cluster, q, resource);
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
    const struct division_rule rule = {.unit = are_devices ? WEIR_SCHED_DEVICE : 1,
                                       .usage_weight_ppm = cluster->profile->usage_weight_ppm,
                                       .in_whole_units = cluster->profile->like_kai};
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
    for (int r = 0; r < cluster->n_resources; r++) {
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
    const struct weir_sched_share *share = share_of(cluster, queue, r);
    int64_t all = state->allocated.of[r] + amount;
    if (amount > 0 && !is_within(all, share->limit)) {
        explain(wait, WEIR_SCHED_WAIT_QUEUE_LIMIT, r, all, share->limit, queue);
        return false;
    }
    int64_t all_fixed = state->non_preemptible.of[r] + fixed;
    if (fixed > 0 && !is_within(all_fixed, share->quota)) {
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
        for (int r = 0; r < cluster->n_resources; r++) {
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
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->n_resources; r++) {
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
    int64_t quota = share_of(cluster, queue, r)->quota, use = 0;
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
    int64_t quota = share_of(cluster, queue, r)->quota, use = more;
    int64_t lost = still_to_lose == NULL ? 0 : still_to_lose[queue].of[r];
    int32_t child = cluster->queues[queue].first_child;
    if (is_within(cluster->queues[queue].allocated.of[r] + lost + more, quota)) {
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
        for (int r = 0; r < cluster->n_resources; r++) {
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
        for (int r = 0; r < cluster->n_resources; r++) {
            if (amount->of[r] > 0 &&
                !is_within(amount->of[r], share_of(cluster, queue, r)->quota)) {
                return false;
            }
        }
    }
    return true;
}

/** What a queue has within all quotas above it is its own where guarantees come first: another's
 *  line may be below its share, and this one's above because of a sibling. */
static bool is_spared(const struct cluster *cluster, int32_t leaf,
                      const struct weir_sched_amount *amount,
                      const struct weir_sched_amount *still_to_lose)
{
    return cluster->profile->guarantee_first &&
           shares_holds_its_own(cluster, leaf, amount, still_to_lose);
}

/** Of which resources a reclaim of `amount` is judged: of those asked for; by like_kai of all. */
static struct weir_sched_amount counted(const struct cluster *cluster,
                                        const struct weir_sched_amount *amount)
{
    struct weir_sched_amount about = *amount;
    bool is_any = false;
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        is_any = is_any || amount->of[r] > 0;
    }
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES && is_any && cluster->profile->like_kai; r++) {
        about.of[r] = 1;
    }
    return about;
}

bool shares_may_reclaim(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount,
                        const struct weir_sched_amount *fixed)
{
    const struct queue_state *state = &cluster->queues[queue];
    const struct weir_sched_amount about = counted(cluster, amount),
                                   about_fixed = counted(cluster, fixed);
    for (int r = 0; r < cluster->n_resources; r++) {
        if (about.of[r] > 0 &&
            !is_within(state->allocated.of[r] + amount->of[r], shares_fair(cluster, queue, r))) {
            return false;
        }
        if (about_fixed.of[r] > 0 && !is_within(state->non_preemptible.of[r] + fixed->of[r],
                                                share_of(cluster, queue, r)->quota)) {
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
        found = share_of(cluster, q, r)->quota >= 0 ? q : found;
    }
    return share_of(cluster, line->compared, r)->quota >= 0 ? line->compared : found;
}

static int64_t line_has(const struct cluster *cluster, const struct line *line, int32_t queue,
                        int r)
{
    int64_t lost = line->still_to_lose == NULL ? 0 : line->still_to_lose[queue].of[r];
    int64_t more = line->more == NULL ? 0 : line->more->of[r];
    return line->is_bare ? 0 : cluster->queues[queue].allocated.of[r] + lost + more;
}

static bool is_above_allocatable(const struct cluster *cluster, const struct line *line,
                                 const struct weir_sched_amount *involved)
{
    for (int r = 0; r < cluster->n_resources; r++) {
        int32_t queue = involved->of[r] > 0 ? line_queue(cluster, line, r) : -1;
        if (queue >= 0 &&
            !is_within(line_has(cluster, line, queue, r), shares_allocatable(cluster, queue, r))) {
            return true;
        }
    }
    return false;
}

static bool is_above_quota(const struct cluster *cluster, const struct line *line,
                           const struct weir_sched_amount *involved)
{
    for (int r = 0; r < cluster->n_resources; r++) {
        int32_t queue = involved->of[r] > 0 ? line_queue(cluster, line, r) : -1;
        if (queue >= 0 &&
            !is_within(line_has(cluster, line, queue, r), share_of(cluster, queue, r)->quota)) {
            return true;
        }
    }
    return false;
}

/** Whether what is lost of a model is within the quota of it. */
static bool is_guaranteed(const struct cluster *cluster, const struct line *line,
                          const struct weir_sched_amount *lost)
{
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->n_resources; r++) {
        int32_t queue = lost->of[r] > 0 ? line_queue(cluster, line, r) : -1;
        if (queue >= 0 && line_has(cluster, line, queue, r) <= share_of(cluster, queue, r)->quota) {
            return true;
        }
    }
    return false;
}

/** ratio l * multiplier >= ratio r, where a ratio is has / fair, over nothing infinite and over -1,
 *  which is any amount, nothing. By like_kai who is entitled to nothing is never less saturated. */
static bool is_as_saturated(const struct cluster *cluster, int64_t l_has, int64_t l_fair,
                            int64_t r_has, int64_t r_fair)
{
    __int128 multiplier = cluster->profile->saturation_ppm;
    if (r_fair < 0) {
        return true;
    }
    if (l_fair <= 0 || r_fair <= 0) {
        return r_fair > 0 || (r_has <= 0 && !cluster->profile->like_kai);
    }
    return (__int128)l_has * multiplier / DIVISION_PPM * r_fair >= (__int128)r_has * l_fair;
}

/** The saturation guard between the taker's line and one sibling that lost. */
static bool is_below_sibling(const struct cluster *cluster, int32_t taker, int32_t sibling,
                             const struct weir_sched_amount *taker_has,
                             const struct weir_sched_amount *sibling_has,
                             const struct weir_sched_amount *involved)
{
    for (int r = 0; r < cluster->n_resources; r++) {
        int64_t fair = shares_fair(cluster, taker, r);
        bool is_bound = share_of(cluster, taker, r)->quota >= 0 || cluster->profile->like_kai;
        if (involved->of[r] > 0 && taker_has->of[r] > fair && is_bound &&
            is_as_saturated(cluster, taker_has->of[r], fair, sibling_has->of[r],
                            shares_fair(cluster, sibling, r))) {
            return false;
        }
    }
    return true;
}

/** What the guard looks at beside what the taker asks for, by like_kai: what the sibling lost. */
static struct weir_sched_amount guarded(const struct cluster *cluster,
                                        const struct weir_sched_amount *amount,
                                        const struct weir_sched_amount *lost)
{
    struct weir_sched_amount involved = *amount;
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES && cluster->profile->like_kai; r++) {
        involved.of[r] += lost->of[r];
    }
    return involved;
}

/** `lost`: per queue, whether it or one below it has lost any of a resource. */
static bool line_stays_fair(const struct cluster *cluster, int32_t queue,
                            const struct weir_sched_amount *amount, bool is_fixed,
                            const struct weir_sched_amount *lost)
{
    const struct weir_sched_amount about = counted(cluster, amount);
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        int32_t parent = cluster->snapshot->queues[queue].parent;
        int32_t sibling = parent < 0 ? cluster->first_root : cluster->queues[parent].first_child;
        for (; sibling >= 0; sibling = cluster->queues[sibling].next_sibling) {
            const struct weir_sched_amount *has = &cluster->queues[sibling].allocated;
            bool has_lost = false;
            for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
                has_lost = has_lost || lost[sibling].of[r] != 0;
            }
            const struct weir_sched_amount involved = guarded(cluster, amount, &lost[sibling]);
            if (sibling != queue && has_lost &&
                !is_below_sibling(cluster, queue, sibling, &cluster->queues[queue].allocated, has,
                                  &involved)) {
                return false;
            }
        }
        for (int r = 0; r < cluster->n_resources && is_fixed; r++) {
            if (about.of[r] > 0 && !is_within(cluster->queues[queue].non_preemptible.of[r],
                                              share_of(cluster, queue, r)->quota)) {
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
           is_within_quotas(cluster, queue, amount, is_allocated, NULL);
}

static bool loss_is_allowed(const struct cluster *cluster, const struct line *taker,
                            const struct line *loser, const struct weir_sched_amount *amount,
                            const struct weir_sched_amount *lost)
{
    if (is_spared(cluster, loser->leaf, amount, loser->still_to_lose) ||
        is_guaranteed(cluster, loser, lost)) {
        return false;
    }
    const struct weir_sched_amount about = counted(cluster, amount);
    struct weir_sched_amount involved = about;
    for (int r = WEIR_SCHED_FIRST_MODEL; r < cluster->n_resources; r++) {
        involved.of[r] = lost->of[r] > 0 ? amount->of[r] : 0; /* For no other model's sake. */
    }
    return is_entitled(cluster, taker, loser, &about, &involved) ||
           is_lent(cluster, taker->leaf, &involved, true, loser->leaf, loser->still_to_lose);
}

bool shares_may_take_from(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount, int32_t leaf)
{
    const struct weir_sched_amount about = counted(cluster, amount);
    struct line taker = {.leaf = queue, .compared = queue, .more = amount};
    struct line loser = {.leaf = leaf, .compared = leaf};
    cluster_find_siblings(cluster, &taker.compared, &loser.compared);
    if (is_above_quota(cluster, &taker, &about)) {
        return is_above_allocatable(cluster, &loser, &about);
    }
    bool is_below = false;
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        int64_t has = cluster->queues[loser.compared].allocated.of[r];
        int64_t quota = share_of(cluster, loser.compared, r)->quota;
        if (amount->of[r] > 0 && quota >= 0 && has > quota) {
            return true;
        }
        is_below = is_below || (amount->of[r] > 0 && has < quota);
    }
    return !is_below;
}

void shares_mark_losers(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, bool *out_may_lose)
{
    const struct weir_sched_queue *queues = cluster->snapshot->queues;
    const struct weir_sched_amount about = counted(cluster, amount);
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
                out_may_lose[leaf] = (is_entitled(cluster, &taker, &loser, &about, &about) ||
                                      is_lent(cluster, queue, amount, false, leaf, NULL)) &&
                                     !is_spared(cluster, leaf, amount, NULL);
                is_new = is_new || out_may_lose[leaf];
            }
        }
        is_any = is_any || is_new;
    }
}

void shares_mark_unfair(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, struct shares_loss *losses,
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
