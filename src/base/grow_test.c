#include "base/grow.h"

#include "base/test_main.h"

#include <stdint.h>
#include <stdlib.h>

START_TEST(what_is_in_the_array_stays_while_it_grows)
{
    int32_t *items = NULL;
    size_t cap = 0, n_moves = 0;
    for (size_t n = 0; n < 1000; n++) {
        size_t before = cap;
        ck_assert_int_eq(weir_grow(&items, sizeof *items, n, &cap), WEIR_OK);
        ck_assert_uint_gt(cap, n);
        n_moves += cap != before;
        items[n] = (int32_t)n;
    }
    ck_assert_uint_eq(cap, 1024);
    ck_assert_uint_eq(n_moves, 7); /* 16, 32 … 1024 */
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(items[i], (int32_t)i);
    }
    free(items);
}

END_TEST

START_TEST(more_than_can_be_addressed_is_refused_and_nothing_changes)
{
    int32_t *items = malloc(sizeof *items);
    int32_t *before = items;
    size_t cap = SIZE_MAX / 4;
    items[0] = 7;
    ck_assert_int_eq(weir_grow(&items, sizeof *items, cap, &cap), WEIR_ERR_NOMEM);
    ck_assert_ptr_eq(items, before);
    ck_assert_uint_eq(cap, SIZE_MAX / 4);
    ck_assert_int_eq(items[0], 7);
    cap = SIZE_MAX / 2 + 1; /* twice as much is 0 */
    ck_assert_int_eq(weir_grow(&items, 1, cap, &cap), WEIR_ERR_NOMEM);
    free(items);
}

END_TEST
START_TEST(an_array_in_an_arena_stays_too)
{
    struct weir_arena arena;
    int64_t *items = NULL;
    size_t cap = 0;
    weir_arena_init(&arena, 0);
    for (size_t n = 0; n < 100; n++) {
        weir_arena_grow(&arena, &items, sizeof *items, n, &cap);
        ck_assert_uint_gt(cap, n);
        items[n] = (int64_t)n;
    }
    ck_assert_uint_eq(cap, 128);
    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(items[i], (int64_t)i);
    }
    weir_arena_fini(&arena);
}

END_TEST
WEIR_TEST_MAIN("grow", what_is_in_the_array_stays_while_it_grows,
               more_than_can_be_addressed_is_refused_and_nothing_changes,
               an_array_in_an_arena_stays_too)
