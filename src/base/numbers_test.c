/* Lists of numbers. */
#include "base/numbers.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdbool.h>
#include <string.h>

#define MOST 64

/* Ranges written at random say the numbers that a set of flags has, ascending and once. */
START_TEST(a_list_is_the_set_that_its_ranges_say)
{
    struct weir_rng rng;
    struct weir_arena arena;
    struct weir_error err;
    (void)test_seed(&rng);
    weir_arena_init(&arena, 0);
    for (int round = 0; round < WEIR_TEST_TIMES(2000, 200); round++) {
        bool is_in[100] = {false};
        char *text = "";
        size_t n_said = 0, n_parts = 1 + weir_rng_below(&rng, 5), n, next = 0;
        for (size_t i = 0; i < n_parts; i++) {
            uint64_t from = weir_rng_below(&rng, 90), to = from + weir_rng_below(&rng, 10);
            uint64_t step = 1 + weir_rng_below(&rng, 4), form = weir_rng_below(&rng, 3);
            to = form == 0 ? from : to;
            step = form < 2 ? 1 : step;
            text = weir_arena_printf(&arena, "%s%s%llu", text, i > 0 ? "," : "",
                                     (unsigned long long)from);
            text = form > 0 ? weir_arena_printf(&arena, "%s-%llu", text, (unsigned long long)to)
                            : text;
            text = form > 1 ? weir_arena_printf(&arena, "%s:%llu", text, (unsigned long long)step)
                            : text;
            for (uint64_t k = from; k <= to; k += step) {
                is_in[k] = true;
                n_said++;
            }
        }
        int64_t *numbers;
        weir_status status = weir_numbers_parse(text, MOST, &arena, &numbers, &n, &err);
        ck_assert_msg(status == (n_said > MOST ? WEIR_ERR_LIMIT : WEIR_OK), "%s", text);
        for (size_t k = 0; k < WEIR_ARRAY_LEN(is_in) && status == WEIR_OK; k++) {
            if (is_in[k]) {
                ck_assert_msg(next < n && numbers[next] == (int64_t)k, "%s: %zu", text, k);
                next++;
            }
        }
        ck_assert(status != WEIR_OK || next == n);
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_is_no_list_is_refused)
{
    static const char *const bad[] = {
        "",      ",",        "1,",   "1-", "2-1", "1-3:0",   "1-3:",
        "x",     "1 ",       "1--2", "-1", "1:2", "4000001", "99999999999999999999",
        "1-2-3", "0-4000000"};
    struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        int64_t *numbers;
        size_t n;
        ck_assert_msg(weir_numbers_parse(bad[i], MOST, &arena, &numbers, &n, &err) != WEIR_OK, "%s",
                      bad[i]);
        ck_assert_ptr_nonnull(strstr(err.message, bad[i]));
    }
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("numbers", a_list_is_the_set_that_its_ranges_say, what_is_no_list_is_refused)
