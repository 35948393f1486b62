#include "base/backoff.h"

#include "base/test_main.h"

START_TEST(delays_double_up_to_the_maximum_with_jitter_inside_the_upper_half)
{
    struct weir_backoff backoff = {.base_ms = 100, .max_ms = 3000, .seed = (uint64_t)_i + 1};
    int64_t ceiling_ms = 100;
    for (int k = 0; k < 80; k++) { /* beyond 64 doublings: no overflow */
        int64_t delay_ms = weir_backoff_next_ms(&backoff);
        ck_assert_int_ge(delay_ms, ceiling_ms / 2);
        ck_assert_int_le(delay_ms, ceiling_ms);
        ceiling_ms = ceiling_ms * 2 < 3000 ? ceiling_ms * 2 : 3000;
    }
    weir_backoff_reset(&backoff);
    ck_assert_int_le(weir_backoff_next_ms(&backoff), 100);
}

END_TEST

START_TEST(two_clients_do_not_step_together)
{
    struct weir_backoff a = {.base_ms = 100000, .max_ms = 100000};
    struct weir_backoff b = a;
    int n_same = 0;
    for (int k = 0; k < 10; k++) {
        n_same += weir_backoff_next_ms(&a) == weir_backoff_next_ms(&b);
    }
    ck_assert_int_lt(n_same, 3);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("back-off");
    TCase *tcase = tcase_create("backoff");
    tcase_add_loop_test(tcase, delays_double_up_to_the_maximum_with_jitter_inside_the_upper_half, 0,
                        20);
    tcase_add_test(tcase, two_clients_do_not_step_together);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
