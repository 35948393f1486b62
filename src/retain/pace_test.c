/* The number of rows settles where a step takes what it should, whatever a row costs. The clock is
 * a model: a row costs so many microseconds, a step some besides, and now and then another process
 * takes the processor. */
#include "retain/pace.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <stdbool.h>

struct machine {
    double row_us, step_us;
};

static int64_t step(struct retain_pace *pace, const struct machine *machine)
{
    int64_t n = retain_pace_rows(pace);
    int64_t took_us = (int64_t)(machine->step_us + machine->row_us * (double)n);
    retain_pace_note(pace, n, took_us);
    return took_us;
}

static const struct machine machines[] = {
    {0.5, 50}, {5, 50}, {13, 200}, {40, 100}, {160, 300}, {600, 20}, {1200, 0},
};

START_TEST(a_step_settles_at_what_it_should_take)
{
    const struct machine *machine = &machines[_i];
    struct retain_pace pace = {.n_entries = 1};
    int n_early_long = 0;
    for (int i = 0; i < 200; i++) {
        n_early_long += step(&pace, machine) > PACE_STEP_MAX_US;
    }
    ck_assert_int_le(n_early_long, 4); /* each quarters: 128 rows become one */
    for (int i = 0; i < 1000; i++) {
        int64_t n = retain_pace_rows(&pace), took_us = step(&pace, machine);
        ck_assert_int_le(took_us, WEIR_MAX(2 * PACE_AIM_US, (int64_t)machine->row_us));
        ck_assert_msg(took_us * 4 >= PACE_AIM_US || n >= PACE_ENTRIES_MAX || n == 1,
                      "%d rows in %d us", (int)n, (int)took_us);
    }
}

END_TEST

/* A row that suddenly costs ten times as much: pages that are no longer in memory. */
START_TEST(rows_that_become_dear_cost_one_long_step)
{
    struct retain_pace pace = {.n_entries = 1};
    struct machine machine = {.row_us = 13, .step_us = 50};
    int n_long = 0;
    for (int i = 0; i < 300; i++) {
        (void)step(&pace, &machine);
    }
    machine.row_us *= 10;
    for (int i = 0; i < 300; i++) {
        n_long += step(&pace, &machine) > PACE_STEP_MAX_US;
    }
    ck_assert_int_le(n_long, 1);
}

END_TEST

/* Another process has the processor for 4 ms in every tenth step: most steps stay within the bound,
 * and the number of rows does not sink to nothing. */
START_TEST(a_busy_machine_makes_steps_short_and_does_not_stop_them)
{
    struct retain_pace pace = {.n_entries = 1};
    struct weir_rng rng;
    const struct machine machine = {.row_us = 13, .step_us = 50};
    int64_t n_long = 0, n_rows = 0;
    weir_rng_init(&rng, 7, 0);
    for (int i = 0; i < 2000; i++) {
        int64_t n = retain_pace_rows(&pace);
        bool is_late = weir_rng_below(&rng, 10) == 0;
        int64_t took_us =
            (int64_t)(machine.step_us + machine.row_us * (double)n) + (is_late ? 4000 : 0);
        retain_pace_note(&pace, n, took_us);
        n_long += took_us > PACE_STEP_MAX_US;
        n_rows += n;
    }
    ck_assert_int_eq(n_long, 0);
    ck_assert_int_gt(n_rows / 2000, 16);
}

END_TEST

START_TEST(a_step_that_finds_little_says_nothing_about_many)
{
    struct retain_pace pace = {.n_entries = 1};
    int64_t n = retain_pace_rows(&pace);
    for (int i = 0; i < 100; i++) {
        retain_pace_note(&pace, 1, 10);
    }
    ck_assert_int_eq(retain_pace_rows(&pace), n);
}

END_TEST

START_TEST(rows_in_many_indexes_are_fewer_in_a_step)
{
    for (int64_t n_entries = 1; n_entries <= 5000; n_entries *= 3) {
        struct retain_pace pace = {.n_entries = n_entries};
        for (int i = 0; i < 1000; i++) {
            int64_t n = retain_pace_rows(&pace);
            ck_assert_int_ge(n, 1);
            ck_assert(n == 1 || n * n_entries <= PACE_ENTRIES_MAX);
            retain_pace_note(&pace, n, 0);
        }
        ck_assert_int_eq(retain_pace_rows(&pace),
                         WEIR_MAX((int64_t)1, PACE_ENTRIES_MAX / n_entries));
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("pace");
    TCase *tcase = tcase_create("pace");
    tcase_add_loop_test(tcase, a_step_settles_at_what_it_should_take, 0,
                        sizeof machines / sizeof *machines);
    tcase_add_test(tcase, rows_that_become_dear_cost_one_long_step);
    tcase_add_test(tcase, a_busy_machine_makes_steps_short_and_does_not_stop_them);
    tcase_add_test(tcase, a_step_that_finds_little_says_nothing_about_many);
    tcase_add_test(tcase, rows_in_many_indexes_are_fewer_in_a_step);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
