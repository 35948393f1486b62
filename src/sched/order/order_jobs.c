#include "sched/order/order_jobs.h"

#include "base/macros.h"
#include "sched/evict/eviction_cost.h"
#include "sched/model/quantum.h"
#include "sched/order/ageing.h"

#include <string.h>

static int compare_i64(int64_t l, int64_t r)
{
    return l < r ? -1 : l > r;
}

/** Of waiting jobs: the due before the others, and they by their age; else 0. */
static int compare_age(const struct order *order, int32_t l, int32_t r)
{
    bool l_due = order->ranks[l] == QUANTUM_BELOW && ageing_is_due(order->cluster, l);
    bool r_due = order->ranks[r] == QUANTUM_BELOW && ageing_is_due(order->cluster, r);
    if (l_due != r_due) {
        return l_due ? -1 : 1;
    }
    return l_due ? ageing_compare(order->cluster, l, r) : 0;
}

/** Negative if job l comes before r within one queue. */
static int compare_jobs(const struct order *order, int32_t l, int32_t r)
{
    const struct cluster *cluster = order->cluster;
    const struct order_job *left = &order->of_jobs[l], *right = &order->of_jobs[r];
    int aged = order->is_victims ? 0 : compare_age(order, l, r);
    if (aged != 0) {
        return aged;
    }
    if (left->priority != right->priority) {
        return left->priority > right->priority ? -1 : 1;
    }
    if (order->is_victims && left->claim != right->claim &&
        WEIR_MIN(left->claim, right->claim) < 0) {
        return left->claim < 0 ? 1 : -1; /* What is idle goes before what is above a minimum. */
    }
    if (order->ranks[l] != order->ranks[r]) {
        return order->ranks[l] < order->ranks[r] ? -1 : 1;
    }
    if (left->claim != right->claim) {
        int compared = compare_i64(left->claim, right->claim);
        return order->is_victims ? -compared : compared;
    }
    if (left->created_ms != right->created_ms) {
        return left->created_ms < right->created_ms ? -1 : 1;
    }
    int by_name = strcmp(cluster->snapshot->jobs[l].name, cluster->snapshot->jobs[r].name);
    return by_name != 0 ? by_name : (l < r ? -1 : l > r);
}

static bool job_is_before(const struct order *order, int32_t l, int32_t r)
{
    int compared = compare_jobs(order, l, r);
    return order->is_victims ? compared > 0 : compared < 0;
}

void order_jobs_list(struct order *order, int32_t job)
{
    const struct cluster *cluster = order->cluster;
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    const struct weir_sched_profile *profile = cluster->profile;
    bool weighs_loss = order->is_victims && (profile->least_eviction_cost || profile->idle_pct > 0);
    int64_t loss = weighs_loss ? eviction_cost(cluster, job) : 0; /* Of what has not started: 0. */
    order->ranks[job] = (uint8_t)quantum_rank(cluster, job);
    order->of_jobs[job] = (struct order_job){
        .claim = loss, .created_ms = given->created_ms, .priority = given->priority};
}

#define KEY_RANK_SHIFT 29
#define KEY_CLAIM_BITS 28
#define KEY_CLAIM_STEP 11 /* Bits of a claim that are left to the comparison of jobs. */

struct order_entry order_jobs_entry(const struct order *order, int32_t job)
{
    const struct order_job *of = &order->of_jobs[job];
    if (!order->is_victims) {
        return (struct order_entry){.job = job};
    }
    uint64_t claim = of->claim < 0 ? 0 : (uint64_t)of->claim >> KEY_CLAIM_STEP;
    uint64_t most = ((uint64_t)1 << KEY_CLAIM_BITS) - 1;
    uint64_t key = (uint64_t)((int64_t)of->priority - INT32_MIN) << 32;
    key |= (uint64_t)(of->claim >= 0) << 31;
    key |= (uint64_t)(QUANTUM_ABOVE - order->ranks[job]) << KEY_RANK_SHIFT;
    return (struct order_entry){.key = key | WEIR_MIN(claim, most), .job = job};
}

static bool entry_is_before(const struct order *order, const struct order_entry *l,
                            const struct order_entry *r)
{
    return l->key != r->key ? l->key < r->key : job_is_before(order, l->job, r->job);
}

void order_jobs_sink(const struct order *order, struct order_entry *heap, int32_t n, int32_t at)
{
    struct order_entry what = heap[at];
    for (int32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && entry_is_before(order, &heap[child + 1], &heap[child])) {
            child++;
        }
        if (!entry_is_before(order, &heap[child], &what)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = what;
}

void order_jobs_raise(const struct order *order, struct order_entry *heap, int32_t n,
                      struct order_entry what)
{
    int32_t at = n;
    for (; at > 0 && entry_is_before(order, &what, &heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
    }
    heap[at] = what;
}
