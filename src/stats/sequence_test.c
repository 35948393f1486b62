/* A drift too small for a window: how soon it is found, and how long it stays quiet without one. */
#include "stats/sequence.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "stats/drift.h"

#include <math.h>
#include <stdio.h>

#define N_BASELINE 5000

static struct weir_rng rng;

static double skewed(void) /* exponential: far from normal */
{
    return -log(1 - weir_rng_f64(&rng));
}

static struct weir_sequence make(bool is_skewed, double values_between)
{
    static double values[N_BASELINE];
    struct weir_histogram baseline;
    struct weir_sequence sequence;
    for (size_t i = 0; i < N_BASELINE; i++) {
        values[i] = is_skewed ? skewed() : weir_rng_normal(&rng);
    }
    ck_assert_int_eq(weir_histogram_from_values(&baseline, values, N_BASELINE), WEIR_OK);
    ck_assert_int_eq(weir_sequence_init(&sequence, &baseline, 0, values_between, NULL), WEIR_OK);
    return sequence;
}

START_TEST(without_drift_it_is_as_quiet_as_it_was_asked)
{
    for (int is_skewed = 0; is_skewed < 2; is_skewed++) {
        int n_alarms = 0;
        const int n_runs = 40, n_values = 10000;
        for (int run = 0; run < n_runs; run++) {
            weir_rng_init(&rng, 7, (uint64_t)run);
            struct weir_sequence sequence = make(is_skewed, 100000);
            bool is_alarmed = false;
            for (int i = 0; i < n_values && !is_alarmed; i++) {
                is_alarmed =
                    weir_sequence_add(&sequence, is_skewed ? skewed() : weir_rng_normal(&rng));
            }
            n_alarms += is_alarmed;
        }
        /* 40 runs of a tenth of the mean: 3.8 alarms to expect. */
        printf("seed 7, skewed %d: %d alarms in 40 runs\n", is_skewed, n_alarms);
        ck_assert_int_le(n_alarms, 11);
    }
}

END_TEST

START_TEST(a_slow_ramp_is_found_before_any_window_of_200_would_tell)
{
    weir_rng_init(&rng, 8, 0);
    struct weir_sequence sequence = make(false, 0);
    int i = 0;
    while (!weir_sequence_add(&sequence, weir_rng_normal(&rng) + 0.0005 * i)) {
        ck_assert_int_lt(++i, 3000);
    }
    printf("seed 8: found after %d values, at a shift of %.2f\n", i, 0.0005 * i);
    ck_assert_int_gt(i, 300);
    ck_assert_int_lt(i, 1500);
}

END_TEST

START_TEST(both_directions_are_found_and_the_alarm_ends_with_its_cause)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        weir_rng_init(&rng, 9, 0);
        struct weir_sequence sequence = make(true, 0);
        int n = 0;
        while (!weir_sequence_add(&sequence, fmax(0, skewed() + sign * 0.8))) {
            ck_assert_int_lt(++n, 500);
        }
        for (int i = 0; i < 1000; i++) {
            (void)weir_sequence_add(&sequence, fmax(0, skewed() + sign * 0.8));
        }
        ck_assert(weir_sequence_add(&sequence, NAN));
        n = 0;
        while (weir_sequence_add(&sequence, skewed())) {
            ck_assert_int_lt(++n, 1000);
        }
        ck_assert_double_le(weir_sequence_level(&sequence), 0.25);
    }
}

END_TEST

/* By shifts below what matters it is not raised, however long they last. */
START_TEST(a_shift_that_does_not_matter_is_not_added_up)
{
    static double values[N_BASELINE];
    struct weir_histogram baseline;
    struct weir_sequence all, large;
    weir_rng_init(&rng, 10, 0);
    for (size_t i = 0; i < N_BASELINE; i++) {
        values[i] = weir_rng_normal(&rng);
    }
    ck_assert_int_eq(weir_histogram_from_values(&baseline, values, N_BASELINE), WEIR_OK);
    ck_assert_int_eq(weir_sequence_init(&all, &baseline, 0.1, 0, NULL), WEIR_OK);
    ck_assert_int_eq(weir_sequence_init(&large, &baseline, 0.5, 0, NULL), WEIR_OK);
    bool is_found = false;
    for (int i = 0; i < 20000; i++) {
        double value = 0.4 + weir_rng_normal(&rng);
        is_found = weir_sequence_add(&all, value) || is_found;
        ck_assert(!weir_sequence_add(&large, value));
    }
    ck_assert(is_found);
    /* At its limit as often as asked; less often beyond. */
    all.up = all.limit, all.down = 0;
    ck_assert_double_eq_tol(weir_sequence_p(&all, 200) / (200 / WEIR_SEQUENCE_VALUES), 1, 1e-6);
    all.up = 2 * all.limit;
    ck_assert_double_lt(weir_sequence_p(&all, 200), 1e-6);
    all.up = 0;
    ck_assert_double_eq(weir_sequence_p(&all, 200), 1);
}

END_TEST

START_TEST(unusable_questions_are_refused)
{
    struct weir_histogram baseline;
    struct weir_sequence sequence;
    const double few[] = {1, 2, 3};
    ck_assert_int_eq(weir_histogram_from_values(&baseline, few, 3), WEIR_OK);
    ck_assert_int_eq(weir_sequence_init(&sequence, &baseline, 0, 0, NULL), WEIR_ERR_INVALID);
    baseline.n = 100;
    ck_assert_int_eq(weir_sequence_init(&sequence, &baseline, 0, 5, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_sequence_init(&sequence, &baseline, 0, NAN, NULL), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("sequence", without_drift_it_is_as_quiet_as_it_was_asked,
               a_slow_ramp_is_found_before_any_window_of_200_would_tell,
               a_shift_that_does_not_matter_is_not_added_up,
               both_directions_are_found_and_the_alarm_ends_with_its_cause,
               unusable_questions_are_refused)
