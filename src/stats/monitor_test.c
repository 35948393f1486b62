/* What is drift of a signal by its kind: in windows, added up, and only above a cut. */
#include "stats/monitor.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

#define N_BASELINE 2000

static struct weir_rng rng;

static struct weir_histogram baseline_of(void)
{
    static double values[N_BASELINE];
    struct weir_histogram baseline;
    for (size_t i = 0; i < N_BASELINE; i++) {
        values[i] = weir_rng_normal(&rng);
    }
    ck_assert_int_eq(weir_histogram_from_values(&baseline, values, N_BASELINE), WEIR_OK);
    return baseline;
}

/* The first window that is drift by its mean's shift and its deviation, and how; 0: none of 40. */
static int first_drift(const char *name, double shift, double deviation,
                       struct weir_monitor_report *out)
{
    struct weir_monitor monitor;
    const struct weir_drift_config config = {.seed = WEIR_MONITOR_SEED};
    weir_rng_init(&rng, 21, 0);
    struct weir_histogram baseline = baseline_of();
    ck_assert_int_eq(
        weir_monitor_init(&monitor, weir_signal_find(name), &baseline, NAN, &config, NULL),
        WEIR_OK);
    for (int i = 0; i < 40 * 200; i++) {
        double value = shift + deviation * weir_rng_normal(&rng);
        bool is_end = weir_monitor_add(&monitor, value, out);
        ck_assert_int_eq(is_end, i % 200 == 199);
        if (is_end && out->is_drifted) {
            ck_assert(out->is_change);
            return i / 200 + 1;
        }
    }
    return 0;
}

START_TEST(a_drift_is_found_in_two_windows_and_a_slow_one_when_it_has_added_up)
{
    struct weir_monitor_report report;
    ck_assert_int_eq(first_drift("brightness", 0, 1, &report), 0);
    ck_assert_int_eq(first_drift("brightness", 0, 0.5, &report), 2);
    ck_assert_str_eq(report.statistic, "spread");
    ck_assert_double_le(report.p_value, 0.001);
    ck_assert_int_ge(first_drift("brightness", 0.33, 1, &report), 1);
    /* Too small for a window's test at this rate, mostly: it has a p of its own. */
    struct weir_monitor monitor;
    struct weir_histogram baseline = baseline_of();
    const struct weir_drift_config deaf = {.confirm_k = 3, .false_alarm_rate = 1e-5};
    ck_assert_int_eq(
        weir_monitor_init(&monitor, weir_signal_find("brightness"), &baseline, NAN, &deaf, NULL),
        WEIR_OK);
    for (int i = 0;
         !weir_monitor_add(&monitor, 0.4 + weir_rng_normal(&rng), &report) || !report.is_drifted;
         i++) {
        ck_assert_int_lt(i, 40 * 200);
    }
    ck_assert_str_eq(report.statistic, "slow");
    ck_assert_double_eq(report.value, report.level);
    ck_assert_double_ne(report.p_value, report.window.p_value);
}

END_TEST

/* Where few people look otherwise than many a difference has to be larger, however long it lasts. */
START_TEST(what_is_too_small_for_a_signal_of_this_kind_is_never_drift)
{
    struct weir_monitor_report report;
    ck_assert_int_ge(first_drift("brightness", 0.25, 1, &report), 1);
    ck_assert_int_eq(first_drift("contrast", 0.2, 1, &report), 0);
    ck_assert_int_ge(first_drift("contrast", 0.6, 1, &report), 1);
    ck_assert_int_eq(first_drift("embedding", 1.5, 1, &report), 0);
    ck_assert_int_ge(first_drift("embedding", 2.5, 1, &report), 1);
    ck_assert_int_eq(first_drift("embedding", -2.5, 1, &report), 0); /* nearer than training's */
}

END_TEST

START_TEST(only_values_above_the_threshold_are_looked_at)
{
    struct weir_monitor monitor;
    const struct weir_drift_config config = {.window = 20};
    weir_rng_init(&rng, 22, 0);
    struct weir_histogram baseline = baseline_of();
    ck_assert_int_eq(
        weir_monitor_init(&monitor, weir_signal_find("score"), &baseline, 0.1, &config, NULL),
        WEIR_OK);
    ck_assert(monitor.is_watched);
    ck_assert(!weir_monitor_wants(&monitor, 0.1) && !weir_monitor_wants(&monitor, NAN));
    ck_assert(weir_monitor_wants(&monitor, 1));
    ck_assert_double_gt(monitor.drift.baseline.mean, 0.1);
    ck_assert_int_eq(
        weir_monitor_init(&monitor, weir_signal_find("score"), &baseline, 50, &config, NULL),
        WEIR_OK);
    ck_assert(!monitor.is_watched && !weir_monitor_wants(&monitor, 60));
    ck_assert_int_eq(
        weir_monitor_init(&monitor, weir_signal_find("score"), NULL, NAN, &config, NULL), WEIR_OK);
    ck_assert(!monitor.is_watched);
    ck_assert_ptr_null(weir_signal_find("scores"));
}

END_TEST

START_TEST(of_a_camera_one_value_an_interval_is_counted)
{
    ck_assert(!weir_monitor_is_due(5000, 5999, 1000));
    ck_assert(weir_monitor_is_due(5000, 6000, 1000));
    ck_assert(weir_monitor_is_due(5000, 4000, 1000));
    ck_assert(weir_monitor_is_due(5000, 5000, 0));
}

END_TEST

WEIR_TEST_MAIN("monitor", a_drift_is_found_in_two_windows_and_a_slow_one_when_it_has_added_up,
               what_is_too_small_for_a_signal_of_this_kind_is_never_drift,
               only_values_above_the_threshold_are_looked_at,
               of_a_camera_one_value_an_interval_is_counted)
