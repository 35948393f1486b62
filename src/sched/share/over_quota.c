#include "sched/share/over_quota.h"

#include "base/macros.h"

static int64_t above(int64_t has, int64_t bound)
{
    return bound < 0 ? 0 : WEIR_MAX(has - bound, 0);
}

/** Negative if less of a resource is borrowed than when queues had `more` than they have. */
static int compare(const struct cluster *cluster, int r, const struct weir_sched_amount *more)
{
    __int128 of_leaves = 0, of_all = 0, of_leaves_quota = 0, of_all_quota = 0;
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        int64_t has = cluster->queues[q].allocated.of[r], had = has + more[q].of[r];
        int64_t due = shares_allocatable(cluster, q, r), quota = cluster->queues[q].shares[r].quota;
        int64_t change = above(has, due) - above(had, due);
        int64_t change_quota = above(has, quota) - above(had, quota);
        bool is_leaf = cluster->queues[q].first_child < 0;
        of_leaves += is_leaf ? change : 0;
        of_all += change;
        of_leaves_quota += is_leaf ? change_quota : 0;
        of_all_quota += change_quota;
    }
    __int128 first = of_leaves != 0         ? of_leaves
                     : of_all != 0          ? of_all
                     : of_leaves_quota != 0 ? of_leaves_quota
                                            : of_all_quota;
    return first < 0 ? -1 : first > 0;
}

/** Count an amount for a queue and all above it. */
static void count(const struct cluster *cluster, int32_t queue,
                  const struct weir_sched_amount *amount, bool is_loss,
                  struct weir_sched_amount *sums)
{
    for (; queue >= 0; queue = cluster->snapshot->queues[queue].parent) {
        if (is_loss) {
            amount_add(&sums[queue], amount);
        } else {
            amount_subtract(&sums[queue], amount);
        }
    }
}

bool over_quota_is_less(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, const struct reclaim_loss *losses,
                        int32_t n_losses, struct weir_sched_amount *scratch)
{
    int compared = 0;
    count(cluster, queue, amount, false, scratch);
    for (int32_t i = 0; i < n_losses; i++) {
        count(cluster, losses[i].queue, &losses[i].amount, true, scratch);
    }
    for (int r = 0; r < cluster->capacity.n_resources && compared == 0; r++) {
        compared = compare(cluster, r, scratch);
    }
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        scratch[q] = (struct weir_sched_amount){{0}};
    }
    return compared < 0;
}
