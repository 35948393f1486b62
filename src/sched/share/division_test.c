/* The division of one resource against a slow, obvious one that gives unit by unit. */
#include "sched/share/division.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <stdbool.h>

#define N_MAX 6

static const struct division_rule devices = {.unit = 1000};
static const struct division_rule by_use = {.unit = 1000, .usage_weight_ppm = 1000000};

static void random_parts(struct weir_rng *rng, struct division_part *parts, int n)
{
    for (int i = 0; i < n; i++) {
        parts[i] = (struct division_part){
            .quota = weir_rng_below(rng, 5) == 0 ? -1 : (int64_t)weir_rng_below(rng, 6) * 1000,
            .limit = weir_rng_below(rng, 3) == 0 ? (int64_t)weir_rng_below(rng, 12) * 1000 : -1,
            .weight = (int64_t)weir_rng_below(rng, 4),
            .want = (int64_t)weir_rng_below(rng, 20) * 500,
            .priority = (int32_t)weir_rng_below(rng, 2),
            .age_rank = i};
    }
}

static int64_t bound(const struct division_part *part)
{
    return part->limit < 0 ? part->want : WEIR_MIN(part->want, part->limit);
}

START_TEST(nothing_is_given_up_and_nobody_gets_more_than_wanted)
{
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i, 7);
    struct division_part parts[N_MAX];
    random_parts(&rng, parts, N_MAX);
    int64_t total = (int64_t)weir_rng_below(&rng, 40) * 500;
    int64_t rest = division_give_quota(parts, N_MAX, total), by_quota = 0, all = 0;
    int64_t from_quota[N_MAX];
    for (int i = 0; i < N_MAX; i++) {
        from_quota[i] = parts[i].share;
        by_quota += parts[i].share;
        int64_t quota = parts[i].quota < 0 ? total : parts[i].quota;
        ck_assert_int_eq(parts[i].share, WEIR_MIN(quota, bound(&parts[i])));
    }
    ck_assert_int_eq(rest, WEIR_MAX(total - by_quota, 0));
    int64_t left = division_give_rest(parts, N_MAX, rest, &devices);
    bool is_hungry = false;
    for (int i = 0; i < N_MAX; i++) {
        ck_assert_int_le(parts[i].share, WEIR_MAX(bound(&parts[i]), 0));
        ck_assert_int_ge(parts[i].share, from_quota[parts[i].age_rank]);
        is_hungry = is_hungry || (parts[i].weight > 0 && parts[i].share < bound(&parts[i]));
        all += parts[i].share;
    }
    ck_assert_int_eq(all - by_quota + left, rest);
    ck_assert(left == 0 || !is_hungry);
}

END_TEST

START_TEST(a_queue_that_used_much_gets_less_of_the_rest)
{
    struct division_part parts[2] = {
        {.weight = 1, .limit = -1, .want = 100000, .usage_ppm = 500000, .age_rank = 0},
        {.weight = 1, .limit = -1, .want = 100000, .age_rank = 1}};
    ck_assert_int_eq(division_give_rest(parts, 2, 10000, &by_use), 0);
    /* w' is 0.5 + 1 * (0.5 - 0.5) = 0.5 and 0.5 + 1 * 0.5 = 1: 3.33 and 6.67, in whole devices. */
    int64_t heavy = parts[0].age_rank == 0 ? parts[0].share : parts[1].share;
    ck_assert_int_eq(heavy, 3000);
}

END_TEST

static int64_t share_of(const struct division_part *parts, int n, int32_t age_rank)
{
    for (int i = 0; i < n; i++) {
        if (parts[i].age_rank == age_rank) {
            return parts[i].share;
        }
    }
    return -1;
}

/** Four queues that want half a device each: one device is enough for two. */
START_TEST(nobody_gets_more_than_it_wants_though_a_unit_is_left)
{
    struct division_part parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct division_part){.weight = 1, .limit = -1, .want = 500, .age_rank = i};
    }
    ck_assert_int_eq(division_give_rest(parts, 4, 1000, &devices), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(share_of(parts, 4, i), i < 2 ? 500 : 0);
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("division", {nothing_is_given_up_and_nobody_gets_more_than_wanted, 100},
                     {a_queue_that_used_much_gets_less_of_the_rest, 0},
                     {nobody_gets_more_than_it_wants_though_a_unit_is_left, 0})
