/* Maintenance windows: random ones, against what a clock that is asked at every moment says. */
#include "job/node_window.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <check.h>
#include <string.h>

#define NOW_MS   INT64_C(1700000000000)
#define N_TRIALS WEIR_TEST_TIMES(2000, 200)

START_TEST(a_window_is_ahead_until_it_is_over_and_tells_its_next_moment)
{
    struct weir_rng rng;
    for (int i = 0; i < N_TRIALS; i++) {
        weir_rng_init(&rng, (uint64_t)i, 1);
        struct weir_node node = {.name = "n"};
        int64_t from_ms = NOW_MS - 50 + (int64_t)weir_rng_below(&rng, 100);
        int64_t until_ms =
            weir_rng_below(&rng, 4) == 0 ? 0 : NOW_MS - 50 + (int64_t)weir_rng_below(&rng, 200);
        weir_status status = weir_node_window_set(&node, from_ms, until_ms, NOW_MS, NULL);
        int64_t begins_ms = WEIR_MAX(from_ms, NOW_MS);
        ck_assert_msg((status == WEIR_OK) == (until_ms == 0 || until_ms > begins_ms), "seed %d", i);
        if (status != WEIR_OK) {
            ck_assert_int_eq(node.closed_from_ms, 0);
            continue;
        }
        int64_t next_ms = INT64_MAX, at_ms = NOW_MS + (int64_t)weir_rng_below(&rng, 200);
        for (int64_t t = NOW_MS + 200; t > at_ms; t--) {
            next_ms = t == begins_ms || t == until_ms ? t : next_ms;
        }
        ck_assert_msg(weir_node_window_next_ms(&node, at_ms) == next_ms, "seed %d", i);
        ck_assert_int_eq(weir_node_window_is_ahead(&node, at_ms),
                         until_ms == 0 || at_ms < until_ms);
    }
}

END_TEST

START_TEST(a_window_is_told_before_and_while_it_holds_and_no_longer)
{
    struct weir_arena arena;
    struct weir_node node = {.name = "n"};
    weir_arena_init(&arena, 0);
    ck_assert_ptr_null(weir_node_window_text(&node, NOW_MS, &arena));
    ck_assert_int_eq(weir_node_window_set(&node, NOW_MS + 1000, NOW_MS + 5000, NOW_MS, NULL),
                     WEIR_OK);
    ck_assert_str_eq(weir_node_window_text(&node, NOW_MS, &arena),
                     "closes at 2023-11-14T22:13:21.000Z until 2023-11-14T22:13:25.000Z");
    ck_assert_str_eq(weir_node_window_text(&node, NOW_MS + 1000, &arena),
                     "is closed until 2023-11-14T22:13:25.000Z");
    ck_assert_ptr_null(weir_node_window_text(&node, NOW_MS + 5000, &arena));
    ck_assert_int_eq(weir_node_window_set(&node, NOW_MS, 0, NOW_MS, NULL), WEIR_OK);
    ck_assert_str_eq(weir_node_window_text(&node, NOW_MS + 5000, &arena), "is closed");
    ck_assert_int_eq(weir_node_window_set(&node, 0, 0, NOW_MS, NULL), WEIR_OK);
    ck_assert_ptr_null(weir_node_window_text(&node, NOW_MS, &arena));
    ck_assert_int_eq(weir_node_window_set(&node, 0, NOW_MS + 1, NOW_MS, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(
        weir_node_window_set(&node, NOW_MS + WEIR_NODE_WINDOW_AHEAD_MAX_MS + 1, 0, NOW_MS, NULL),
        WEIR_ERR_INVALID);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("node_window", a_window_is_ahead_until_it_is_over_and_tells_its_next_moment,
               a_window_is_told_before_and_while_it_holds_and_no_longer)
