#include "control/engine/aside.h"

#include "base/test_main.h"

#include <stdio.h>

START_TEST(what_is_set_aside_is_told_once_and_tried_again_later)
{
    struct aside aside = {0};
    ck_assert(!aside_has(&aside, "job/a", 0));
    ck_assert(aside_put(&aside, "job/a", 1000));
    ck_assert(aside_has(&aside, "job/a", 1000 + ASIDE_AGAIN_MS - 1));
    ck_assert(!aside_has(&aside, "job/a", 1000 + ASIDE_AGAIN_MS));
    ck_assert(!aside_put(&aside, "job/a", 70000)); /* known already: nothing to tell */
    ck_assert(aside_has(&aside, "job/a", 70000));
    ck_assert(!aside_has(&aside, "ion/a", 70000));
    ck_assert(aside_take(&aside, "job/a"));
    ck_assert(!aside_take(&aside, "job/a"));
    ck_assert_uint_eq(aside.n, 0);
    aside_fini(&aside);
}

END_TEST

START_TEST(the_list_is_bounded_and_forgets_what_nobody_asks_for)
{
    struct aside aside = {0};
    char subject[32];
    for (int i = 0; i < ASIDE_MAX + 5; i++) {
        (void)snprintf(subject, sizeof subject, "job/%d", i);
        ck_assert(aside_put(&aside, subject, i) == (i < ASIDE_MAX));
    }
    ck_assert_uint_eq(aside.n, ASIDE_MAX);
    aside_sweep(&aside, 2 * ASIDE_AGAIN_MS + 10);
    ck_assert_uint_eq(aside.n, ASIDE_MAX - 10);
    aside_fini(&aside);
    ck_assert_uint_eq(aside.n, 0);
}

END_TEST

WEIR_TEST_MAIN("aside", what_is_set_aside_is_told_once_and_tried_again_later,
               the_list_is_bounded_and_forgets_what_nobody_asks_for)
