/* The schedules against the values PyTorch's documentation and the formulas give, worked by hand.
 */
#include "nn/schedule.h"

#include "base/test_main.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_schedule_span ten = {
    .learning_rate = 0.1, .epochs = 10, .warmup_epochs = 0, .steps_per_epoch = 10};

static struct weir_schedule parsed(const char *text, const struct weir_schedule_span *span)
{
    struct weir_schedule schedule;
    struct weir_error err;
    ck_assert_msg(weir_schedule_parse(text, span, &schedule, &err) == WEIR_OK, "%s", err.message);
    return schedule;
}

static void refused(const char *text, const struct weir_schedule_span *span, const char *part)
{
    struct weir_schedule schedule;
    struct weir_error err;
    ck_assert_int_eq(weir_schedule_parse(text, span, &schedule, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" is not in \"%s\"", part, err.message);
}

START_TEST(constant_stays_constant)
{
    struct weir_schedule schedule = parsed("constant", &ten);
    for (uint64_t step = 0; step < 1000; step += 7) {
        ck_assert_double_eq(weir_schedule_rate(&schedule, step), 0.1);
    }
}

END_TEST

START_TEST(step_drops_at_each_milestone_and_not_before)
{
    struct weir_schedule schedule = parsed("step:milestones=3/6.5,gamma=0.5", &ten);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 0), 0.1);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 29), 0.1);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 30), 0.05);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 64), 0.05);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 65), 0.025);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 100000), 0.025);
}

END_TEST

START_TEST(step_without_settings_drops_tenfold_at_half_and_three_quarters)
{
    struct weir_schedule schedule = parsed("step", &ten);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 49), 0.1);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 50), 0.01, 1e-15);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 75), 0.001, 1e-15);
}

END_TEST

START_TEST(cosine_passes_the_known_points)
{
    struct weir_schedule schedule = parsed("cosine:floor=0.02", &ten);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 0), 0.1);
    /* cos 60° = 1/2, cos 90° = 0: a third... of 100 steps is no integer, so a quarter and a half.
     */
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 25), 0.02 + 0.08 * (1 + M_SQRT1_2) / 2,
                            1e-15);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 50), 0.06, 1e-15);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 100), 0.02);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 1000000), 0.02);
}

END_TEST

START_TEST(piecewise_takes_each_rate_from_its_milestone_on)
{
    struct weir_schedule schedule = parsed("piecewise:milestones=3/6.5/8,rates=0.05/0.2/0", &ten);

    static const struct {
        uint64_t step;
        double rate;
    } points[] = {{0, 0.1},  {29, 0.1}, {30, 0.05}, {64, 0.05},
                  {65, 0.2}, {79, 0.2}, {80, 0},    {100000, 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(points); i++) {
        ck_assert_double_eq(weir_schedule_rate(&schedule, points[i].step), points[i].rate);
    }
}

END_TEST

START_TEST(polynomial_passes_the_known_points)
{
    struct weir_schedule_span span = ten;
    struct weir_schedule schedule = parsed("polynomial", &span);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 0), 0.1);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 25), 0.075, 1e-15);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 100), 0);
    schedule = parsed("polynomial:power=2,floor=0.02", &span);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 50), 0.04, 1e-15); /* 0.02 + 0.08 / 4 */
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 90), 0.0208, 1e-15);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 1000), 0.02);
    span.warmup_epochs = 2;
    schedule = parsed("polynomial", &span);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 4), 0.025, 1e-15);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 20), 0.1);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 60), 0.05, 1e-15); /* half of 80 steps */
}

END_TEST

START_TEST(warm_up_rises_linearly_and_then_the_schedule_begins)
{
    struct weir_schedule_span span = ten;
    span.warmup_epochs = 2;
    struct weir_schedule schedule = parsed("cosine", &span);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 0), 0.1 / 20, 1e-15);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 9), 0.05, 1e-15);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 19), 0.1);
    ck_assert_double_eq(weir_schedule_rate(&schedule, 20), 0.1);
    ck_assert_double_eq_tol(weir_schedule_rate(&schedule, 60), 0.05, 1e-15); /* Half of 80 steps. */
}

END_TEST

START_TEST(every_schedule_is_never_above_its_base_and_never_rises_after_warm_up)
{
    size_t n_types = 0;
    const struct weir_schedule_type *types = weir_schedule_types(&n_types);
    ck_assert_uint_eq(n_types, 5);
    for (size_t i = 0; i < n_types; i++) {
        struct weir_schedule_span span = ten;
        span.warmup_epochs = 1.5;
        bool has_rates = strstr(types[i].keys, "rates") != NULL; /* and no defaults for them */
        struct weir_schedule schedule =
            parsed(has_rates ? "piecewise:milestones=4/5,rates=0.09/0.01" : types[i].name, &span);
        double last = span.learning_rate;
        for (uint64_t step = 15; step < 300; step++) {
            double rate = weir_schedule_rate(&schedule, step);
            ck_assert(rate <= last && rate >= 0);
            last = rate;
        }
    }
}

END_TEST

START_TEST(mistakes_are_refused_by_name)
{
    refused("linear", &ten, "constant, step, piecewise, polynomial, cosine");
    refused("", &ten, "constant, step, piecewise, polynomial, cosine");
    refused("piecewise", &ten, "as many rates");
    refused("piecewise:milestones=3/4,rates=0.1", &ten, "got 1 and 2");
    refused("piecewise:milestones=3,rates=-1", &ten, "\"-1\"");
    refused("piecewise:milestones=3,rates=", &ten, "rates");
    refused("piecewise:rates=1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", &ten, "at most 16");
    refused("polynomial:power=0", &ten, "(0, 100]");
    refused("polynomial:gamma=0.1", &ten, "no setting");
    refused("cosine:gamma=0.1", &ten, "no setting \"gamma\"");
    refused("cosine:", &ten, "no setting \"\"");
    refused("cosine:floor", &ten, "floor=value");
    refused("cosine:floor=1", &ten, "floor");
    refused("cosine:floor=nan", &ten, "floor");
    refused("step:gamma=0", &ten, "(0, 1]");
    refused("step:gamma=0.1x", &ten, "0.1x");
    refused("step:milestones=3/2", &ten, "\"2\"");
    refused("step:milestones=11", &ten, "up to 10");
    refused("step:milestones=", &ten, "milestones");
    refused("step:milestones=.1/.2/.3/.4/.5/.6/.7/.8/.9/1/2/3/4/5/6/7/8", &ten, "at most 16");
    char text[1024];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    refused(text, &ten, "512");
}

END_TEST

START_TEST(spans_that_make_no_sense_are_refused)
{
    struct weir_schedule_span span = ten;
    span.learning_rate = NAN;
    refused("constant", &span, "learning rate");
    span = ten;
    span.learning_rate = 0;
    refused("constant", &span, "learning rate");
    span = ten;
    span.epochs = INFINITY;
    refused("constant", &span, "epochs");
    span = ten;
    span.steps_per_epoch = 0;
    refused("constant", &span, "epochs");
    span = ten;
    span.warmup_epochs = 10;
    refused("constant", &span, "warmup");
}

END_TEST

WEIR_TEST_MAIN("schedule", constant_stays_constant, step_drops_at_each_milestone_and_not_before,
               step_without_settings_drops_tenfold_at_half_and_three_quarters,
               cosine_passes_the_known_points, piecewise_takes_each_rate_from_its_milestone_on,
               polynomial_passes_the_known_points,
               warm_up_rises_linearly_and_then_the_schedule_begins,
               every_schedule_is_never_above_its_base_and_never_rises_after_warm_up,
               mistakes_are_refused_by_name, spans_that_make_no_sense_are_refused)
