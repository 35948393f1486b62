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
    bool is_less = false, is_more = false;
    for (int i = 0; i < WEIR_SCHED_N_RESOURCES; i++) {
        int compared = compare_i64(l->allocatable[i], r->allocatable[i]);
        if (compared != 0 && !l->like_kai) {
            return compared;
        }
        is_less = is_less || compared < 0;
        is_more = is_more || compared > 0;
    }
    return is_more - is_less;
}

/** What a share of nothing counts as: by like_kai an amount in devices, milli-cores and bytes. */
static int64_t share_of_nothing(const struct cluster *cluster, int r, int64_t has)
{
    bool are_devices = r != WEIR_SCHED_CPU && r != WEIR_SCHED_MEMORY;
    __int128 of = cluster->profile->like_kai ? (are_devices ? WEIR_SCHED_DEVICE : 1)
                                             : WEIR_MAX(cluster->total.of[r], 1);
    __int128 share = (__int128)has * SHARE_SCALE / of * NO_SHARE_FACTOR;
    return (int64_t)WEIR_MIN(share, (__int128)INT64_MAX);
}

/** How much of what it may have of a resource a queue has. */
static int64_t share_of(const struct cluster *cluster, int r, int64_t has, int64_t allocatable)
{
    if (has <= 0) {
        return 0;
    }
    int64_t of = allocatable < 0 ? cluster->total.of[r] : allocatable;
    if (of > 0 && has <= INT64_MAX / SHARE_SCALE) {
        return has * SHARE_SCALE / of;
    }
    if (of <= 0) {
        return share_of_nothing(cluster, r, has);
    }
    __int128 share = (__int128)has * SHARE_SCALE / of;
    return (int64_t)WEIR_MIN(share, (__int128)INT64_MAX);
}

/** What a queue has of one resource when it is compared. */
struct holding {
    int64_t has, judged; /**< The latter by its quota. */
    int64_t with;
};

static void add_shares(const struct cluster *cluster, int r, const struct holding *holding,
                       int64_t allocatable, struct order_key *key)
{
    int64_t with = share_of(cluster, r, holding->with, allocatable);
    int64_t without = share_of(cluster, r, holding->has, allocatable);
    key->dominant_with = WEIR_MAX(key->dominant_with, with);
    key->dominant_without = WEIR_MAX(key->dominant_without, without);
}

/** Put one resource into the key. */
static void add_resource(const struct cluster *cluster, int32_t queue, int r,
                         const struct holding *holding, struct order_key *key)
{
    int64_t quota = cluster->queues[queue].shares[r].quota;
    int64_t fair = shares_fair(cluster, queue, r);
    int64_t allocatable = shares_allocatable(cluster, queue, r);
    bool is_over_share = fair >= 0 && holding->has > fair, is_model = r >= WEIR_SCHED_FIRST_MODEL;
    key->is_over_quota = key->is_over_quota || (quota >= 0 && holding->judged > quota);
    if (key->like_kai && !is_model) {
        key->is_over_share = key->is_over_share && is_over_share;
        key->has_no_share = key->has_no_share || (allocatable == 0 && holding->judged > 0);
        key->allocatable[r] = allocatable < 0 ? INT64_MAX : allocatable;
    } else {
        key->is_over_share = key->is_over_share || is_over_share;
    }
    if (!key->like_kai && !is_model) {
        key->has_no_share = key->has_no_share && allocatable == 0;
        key->allocatable[r] = allocatable;
    }
    if (!is_model || allocatable >= 0) { /* Of an unbounded model only those in all count. */
        add_shares(cluster, r, holding, allocatable, key);
    }
}

static void make_key(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *has, const struct weir_sched_amount *judged,
                     const struct weir_sched_amount *with, struct order_key *key)
{
    bool like_kai = cluster->profile->like_kai;
    *key = (struct order_key){.priority = cluster->snapshot->queues[queue].priority,
                              .like_kai = like_kai,
                              .is_over_share = like_kai,
                              .has_no_share = !like_kai};
    for (int r = 0; r < cluster->n_resources; r++) {
        const struct holding holding = {has->of[r], judged->of[r], with->of[r]};
        if (r < WEIR_SCHED_FIRST_MODEL || holding.has != holding.with) { /* The job's model. */
            add_resource(cluster, queue, r, &holding, key);
        }
    }
}

void order_make_key(const struct cluster *cluster, int32_t queue,
                    const struct weir_sched_amount *has, const struct weir_sched_amount *with,
                    struct order_key *key)
{
    make_key(cluster, queue, has, with, with, key);
}

void order_make_loser_key(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *has, const struct weir_sched_amount *with,
                          struct order_key *key)
{
    make_key(cluster, queue, has, has, with, key);
}
