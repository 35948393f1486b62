/* The room for small tasks, against any order in which a planner may place what waits. */
#include "control/small.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdbool.h>
#include <string.h>

#define TASKS_MAX 24
#define N_NODES   WEIR_TEST_TIMES(4000, 400)

struct waiting {
    int64_t milli[TASKS_MAX];
    size_t n;
};

static int64_t draw(struct weir_rng *rng, bool has_parts)
{
    if (weir_rng_below(rng, 2) == 0) {
        return 1 + (int64_t)weir_rng_below(rng, 500);
    }
    int64_t part = has_parts ? 250 * (int64_t)weir_rng_below(rng, 4) : 0;
    return 1000 * (1 + (int64_t)weir_rng_below(rng, 3)) + part;
}

/* Of what waits: sums, and amounts that are not small. */
static struct small_waits waits_of(const struct waiting *waiting, int64_t *large)
{
    struct small_waits waits = {.large = large};
    for (size_t i = 0; i < waiting->n; i++) {
        int64_t milli = waiting->milli[i];
        if (milli < CONTROL_SMALL_MILLIS) {
            waits.small += milli;
            continue;
        }
        size_t at = 0;
        while (at < waits.n_large && large[at] < milli) {
            at++;
        }
        if (at == waits.n_large || large[at] != milli) {
            memmove(large + at + 1, large + at, (waits.n_large - at) * sizeof *large);
            large[at] = milli;
            waits.n_large++;
        }
    }
    return waits;
}

static void place(struct small_node *node, struct waiting *waiting, size_t i)
{
    int64_t milli = waiting->milli[i];
    *(milli < CONTROL_SMALL_MILLIS ? &node->small : &node->large) += milli;
    waiting->milli[i] = waiting->milli[--waiting->n];
}

/* One cycle of a planner that tries in any order, and may pass anything over. */
static bool plan(struct weir_rng *rng, struct small_node *node, struct waiting *waiting,
                 bool passes_over)
{
    int64_t large[TASKS_MAX];
    const struct small_waits waits = waits_of(waiting, large);
    int64_t most = node->own + control_small_room(node, &waits);
    bool has_placed = false;
    for (size_t n_tries = 2 * waiting->n; n_tries > 0 && waiting->n > 0; n_tries--) {
        size_t i = weir_rng_below(rng, waiting->n);
        bool fits = node->small + node->large + waiting->milli[i] <= most;
        if (fits && !(passes_over && weir_rng_below(rng, 2) == 0)) {
            place(node, waiting, i);
            has_placed = true;
        }
    }
    return has_placed;
}

START_TEST(nothing_is_promised_twice_and_small_tasks_find_their_room)
{
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    int n_beside = 0;
    for (int round = 0; round < N_NODES; round++) {
        struct small_node node = {.own = 1000 * (1 + (int64_t)weir_rng_below(&rng, 6))};
        struct waiting waiting = {.n = 0};
        bool has_parts = weir_rng_below(&rng, 2) == 0;
        for (int cycle = 0; cycle < 8; cycle++) {
            while (waiting.n < TASKS_MAX && weir_rng_below(&rng, 3) > 0) {
                waiting.milli[waiting.n++] = draw(&rng, has_parts);
            }
            (void)plan(&rng, &node, &waiting, true);
            ck_assert_msg(node.large <= node.own &&
                              node.small + node.large <= node.own + CONTROL_SMALL_ROOM_MILLIS,
                          "%lld and %lld of %lld, seed %llu", (long long)node.large,
                          (long long)node.small, (long long)node.own, (unsigned long long)seed);
            node.small -= node.small > 0 && weir_rng_below(&rng, 4) == 0 ? node.small : 0;
            node.large -= node.large > 0 && weir_rng_below(&rng, 4) == 0 ? node.large : 0;
        }
        while (plan(&rng, &node, &waiting, false)) {
        }
        n_beside += node.small + node.large > node.own;
    }
    ck_assert_int_gt(n_beside, N_NODES / 4);
}

END_TEST

START_TEST(where_all_are_whole_the_room_is_open_to_what_is_small)
{
    const int64_t whole[] = {1000, 3000}, part[] = {1250};
    const struct small_node node = {.own = 2000, .small = 100, .large = 1000};
    ck_assert_int_eq(control_small_room(&node, &(struct small_waits){0}), 100);
    ck_assert_int_eq(control_small_room(&node, &(struct small_waits){300, whole, 2}), 400);
    ck_assert_int_eq(control_small_room(&node, &(struct small_waits){900, whole, 2}), 500);
    ck_assert_int_eq(control_small_room(&node, &(struct small_waits){900, part, 1}), 349);
    const struct small_node empty = {.own = 2000}; /* two of them would take it */
    ck_assert_int_eq(control_small_room(&empty, &(struct small_waits){900, part, 1}), 0);
}

END_TEST

WEIR_TEST_MAIN("small", nothing_is_promised_twice_and_small_tasks_find_their_room,
               where_all_are_whole_the_room_is_open_to_what_is_small)
