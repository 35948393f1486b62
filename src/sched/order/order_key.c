#include "sched/order/order_key.h"

#include "base/macros.h"
#include "sched/share/shares.h"

/** Shares are compared in billionths. A share of something the queue is not entitled to at all
 *  counts this many times the share of the cluster. */
#define SHARE_SCALE     1000000000
#define NO_SHARE_FACTOR 1000

static int compare_i64(int64_t l, int64_t r)
{
    return l < r ? -1 : l > r;
}

int order_compare_keys(const struct order_key *l, const struct order_key *r)
{
    if (l->is_over_share != r->is_over_share) {
        return l->is_over_share ? 1 : -1;
    }
    if (l->is_over_quota != r->is_over_quota) {
        return l->is_over_quota ? 1 : -1;
    }
    if (l->priority != r->priority) {
        return l->priority > r->priority ? -1 : 1;
    }
    if (l->has_no_share != r->has_no_share) {
        return l->has_no_share ? 1 : -1;
    }
    if (l->dominant_with != r->dominant_with) {
        return compare_i64(l->dominant_with, r->dominant_with);
    }
    if (l->dominant_without != r->dominant_without) {
        return compare_i64(l->dominant_without, r->dominant_without);
    }
    for (int i = 0; i < WEIR_SCHED_N_RESOURCES; i++) {
        int compared = compare_i64(l->allocatable[i], r->allocatable[i]);
        if (compared != 0) {
            return compared;
        }
    }
    return 0;
}

/** What a share of nothing counts as. */
static int64_t share_of_nothing(const struct cluster *cluster, int r, int64_t has)
{
    __int128 of = WEIR_MAX(cluster->capacity.total.of[r], 1);
    __int128 share = (__int128)has * SHARE_SCALE / of * NO_SHARE_FACTOR;
    return (int64_t)WEIR_MIN(share, (__int128)INT64_MAX);
}

/** How much of what it may have of a resource a queue has. */
static int64_t share_of(const struct cluster *cluster, int r, int64_t has, int64_t allocatable)
{
    if (has <= 0) {
        return 0;
    }
    int64_t of = allocatable < 0 ? cluster->capacity.total.of[r] : allocatable;
    if (of > 0 && has <= INT64_MAX / SHARE_SCALE) {
        return has * SHARE_SCALE / of;
    }
    if (of <= 0) {
        return share_of_nothing(cluster, r, has);
    }
    __int128 share = (__int128)has * SHARE_SCALE / of;
    return (int64_t)WEIR_MIN(share, (__int128)INT64_MAX);
}

/** Put one resource, of which the queue has `has` and will have `with`, into the key. */
static void add_resource(const struct cluster *cluster, int32_t queue, int r, int64_t has,
                         int64_t with, struct order_key *key)
{
    int64_t quota = cluster->queues[queue].shares[r].quota;
    int64_t fair = shares_fair(cluster, queue, r);
    int64_t allocatable = shares_allocatable(cluster, queue, r);
    bool is_model = r >= WEIR_SCHED_FIRST_MODEL;
    key->is_over_quota = key->is_over_quota || (quota >= 0 && with > quota);
    bool is_over_share = fair >= 0 && has > fair;
    if (!cluster->profile->over_share_in_all) {
        key->is_over_share = key->is_over_share || is_over_share;
    } else if (!is_model) {
        key->is_over_share = key->is_over_share && is_over_share;
    }
    if (!is_model) {
        key->has_no_share = key->has_no_share && allocatable == 0;
        key->allocatable[r] = allocatable;
    }
    if (!is_model || allocatable >= 0) { /* Of an unbounded model only those in all count. */
        key->dominant_with = WEIR_MAX(key->dominant_with, share_of(cluster, r, with, allocatable));
        key->dominant_without =
            WEIR_MAX(key->dominant_without, share_of(cluster, r, has, allocatable));
    }
}

void order_make_key(const struct cluster *cluster, int32_t queue,
                    const struct weir_sched_amount *has, const struct weir_sched_amount *with,
                    struct order_key *key)
{
    *key = (struct order_key){.is_over_share = cluster->profile->over_share_in_all,
                              .priority = cluster->snapshot->queues[queue].priority,
                              .has_no_share = true};
    for (int r = 0; r < cluster->capacity.n_resources; r++) {
        if (r < WEIR_SCHED_FIRST_MODEL || has->of[r] != with->of[r]) { /* The job's model. */
            add_resource(cluster, queue, r, has->of[r], with->of[r], key);
        }
    }
}
