/* Experiments, and what belongs to runs. */
#include "track/run.h"

#include "store/identity.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <float.h>
#include <math.h>
#include <string.h>

static struct store_fixture fixture;
static int64_t run;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const projects[] = {"default", "vision"};
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(projects); i++) {
        int64_t id;
        MUST(weir_txn_insert(txn, &weir_project_resource,
                             &(struct weir_project){.name = (char *)projects[i]}, err));
        MUST(weir_experiment_ensure(txn, projects[i], WEIR_EXPERIMENT_DEFAULT, NULL, 1, &id, err));
        ck_assert_int_eq(id, (int64_t)i); /* 0 is the one of "default" */
    }
    const struct weir_run made = {
        .id = "r",
        .name = "r",
        .project = "default",
        .kind = "external",
        .status = "RUNNING",
        .parameters = "{\"lr\": 0.5, \"deep\": {\"a\": [1, 2], \"b\": true}, \"env\": {\"KEY\": "
                      "\"secret\"}, \"none\": null, \"text\": \"x\"}"};
    return weir_run_insert(txn, &made, &run, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* ---- experiments ----------------------------------------------------------------------------- */

static weir_status experiments(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    int64_t id, other;
    struct weir_experiment out;
    const struct weir_experiment in = {.project = "default", .name = "mnist", .created_ms = 5};
    MUST(weir_experiment_create(txn, &in, &id, err));
    ck_assert_int_eq(weir_experiment_create(txn, &in, &other, err), WEIR_ERR_EXISTS);
    MUST(weir_experiment_ensure(txn, "default", "mnist", NULL, 6, &other, err));
    ck_assert_int_eq(other, id);
    MUST(weir_experiment_ensure(txn, "vision", "mnist", NULL, 6, &other, err));
    ck_assert_int_ne(other, id);
    MUST(weir_experiment_rename(txn, id, "digits", 7, err));
    ck_assert_int_eq(weir_experiment_rename(txn, id, WEIR_EXPERIMENT_DEFAULT, 7, err),
                     WEIR_ERR_EXISTS);
    MUST(weir_experiment_find(txn, "default", "digits", &fixture.arena, &out, err));
    ck_assert_int_eq(out.updated_ms, 7);
    ck_assert_int_eq(weir_experiment_find(txn, "default", "mnist", &fixture.arena, &out, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_experiment_create(
                         txn, &(struct weir_experiment){.project = "no", .name = "x"}, &id, err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_experiment_create(
                         txn, &(struct weir_experiment){.project = "vision", .name = ""}, &id, err),
                     WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(experiments_have_one_name_in_a_project)
{
    fixture_write(&fixture, experiments, NULL);
}

END_TEST

static int64_t deleted_ms(struct weir_txn *txn, const char *id, struct weir_error *err)
{
    struct weir_run row;
    ck_assert_int_eq(weir_txn_get(txn, &weir_run_resource, id, &fixture.arena, &row, err), WEIR_OK);
    return row.deleted_ms;
}

static weir_status deleting(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    int64_t number, id;
    MUST(weir_experiment_ensure(txn, "default", "x", NULL, 1, &id, err));
    struct weir_run gone = {.id = "s",
                            .name = "s",
                            .project = "default",
                            .experiment = id,
                            .kind = "external",
                            .status = "KILLED",
                            .deleted_ms = 3};
    MUST(weir_run_insert(txn, &gone, &number, err));
    gone.id = "t";
    gone.deleted_ms = 0;
    MUST(weir_run_insert(txn, &gone, &number, err));
    MUST(weir_experiment_delete(txn, id, 9, err));
    ck_assert_int_eq(deleted_ms(txn, "t", err), 9);
    ck_assert_int_eq(deleted_ms(txn, "r", err), 0); /* another's */
    ck_assert_int_eq(weir_experiment_delete(txn, id, 10, err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(weir_experiment_rename(txn, id, "y", 10, err), WEIR_ERR_CONFLICT);
    MUST(weir_experiment_restore(txn, id, 11, err));
    ck_assert_int_eq(deleted_ms(txn, "t", err), 0);
    ck_assert_int_eq(deleted_ms(txn, "s", err), 3);
    ck_assert_int_eq(weir_experiment_restore(txn, id, 12, err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(weir_experiment_delete(txn, 0, 9, err), WEIR_ERR_CONFLICT);
    return WEIR_OK;
}

START_TEST(a_deleted_experiment_comes_back_with_the_runs_that_went_with_it)
{
    fixture_write(&fixture, deleting, NULL);
}

END_TEST

static weir_status experiment_tags(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_tag *tags;
    size_t n;
    MUST(weir_experiment_tag(txn, 0, &(struct weir_tag){"a", "1"}, 5, err));
    MUST(weir_experiment_tag(txn, 0, &(struct weir_tag){"a", "2"}, 6, err));
    MUST(weir_experiment_tag(txn, 0, &(struct weir_tag){"b", ""}, 6, err));
    MUST(weir_experiment_tags(txn, 0, &fixture.arena, &tags, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(tags[0].value, "2");
    MUST(weir_experiment_untag(txn, 0, "b", 7, err));
    ck_assert_int_eq(weir_experiment_untag(txn, 0, "b", 7, err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_experiment_tag(txn, 0, &(struct weir_tag){"", "1"}, 5, err),
                     WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(tags_of_experiments_are_set_and_removed)
{
    fixture_write(&fixture, experiment_tags, NULL);
}

END_TEST

/* ---- parameters and tags --------------------------------------------------------------------- */

static weir_status of_record(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const expected[][2] = {
        {"deep.a", "[1,2]"}, {"deep.b", "true"}, {"lr", "0.5"}, {"text", "x"}};
    struct weir_tag *parameters;
    size_t n;
    (void)context;
    MUST(weir_run_parameters(txn, run, &fixture.arena, &parameters, &n, err));
    ck_assert_uint_eq(n, WEIR_ARRAY_LEN(expected));
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(parameters[i].key, expected[i][0]);
        ck_assert_str_eq(parameters[i].value, expected[i][1]);
    }
    weir_run_parameters_of("{\"a\": {\"b\": 1}, \"env\": {\"KEY\": \"secret\"}, \"none\": null}",
                           &fixture.arena, &parameters, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(parameters[0].key, "a.b");
    static const char *const nothing[] = {NULL, "", "{", "[1]", "7"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(nothing); i++) {
        weir_run_parameters_of(nothing[i], &fixture.arena, &parameters, &n);
        ck_assert_uint_eq(n, 0);
    }
    return WEIR_OK;
}

START_TEST(what_a_run_was_started_with_are_its_parameters_without_what_is_hidden)
{
    fixture_write(&fixture, of_record, NULL);
}

END_TEST

static weir_status write_once(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_tag first[] = {{"depth", "3"}, {"name", ""}};
    MUST(weir_run_parameters_put(txn, run, first, 2, err));
    MUST(weir_run_parameters_put(txn, run, first, 2, err));
    ck_assert_int_eq(weir_run_parameters_put(txn, run, &(struct weir_tag){"depth", "4"}, 1, err),
                     WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err->message, "key='depth'"));
    char long_value[WEIR_RUN_PARAMETER_MAX + 2];
    memset(long_value, 'x', sizeof long_value);
    long_value[sizeof long_value - 1] = '\0';
    ck_assert_int_eq(
        weir_run_parameters_put(txn, run, &(struct weir_tag){"long", long_value}, 1, err),
        WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(a_parameter_is_written_once)
{
    fixture_write(&fixture, write_once, NULL);
}

END_TEST

static weir_status run_tags(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_tag *tags;
    size_t n;
    const struct weir_tag given[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    MUST(weir_run_tags_put(txn, run, given, 3, err));
    MUST(weir_run_tag_delete(txn, run, "b", err));
    ck_assert_int_eq(weir_run_tag_delete(txn, run, "b", err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_run_tag_delete(txn, run, "never", err), WEIR_ERR_NOT_FOUND);
    MUST(weir_run_tags(txn, run, &fixture.arena, &tags, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(tags[0].value, "3");
    return WEIR_OK;
}

START_TEST(a_tag_takes_the_new_value_and_goes)
{
    fixture_write(&fixture, run_tags, NULL);
}

END_TEST

/* ---- measurements ---------------------------------------------------------------------------- */

static weir_status logged(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_metric points[] = {
        {.key = "loss", .step = 1, .value = 3, .time_ms = 10},
        {.key = "loss", .step = 1, .value = 2, .time_ms = 10},
        {.key = "acc", .step = 0, .value = NAN, .time_ms = 10},
        {.key = "loss", .step = 0, .value = 9, .time_ms = 99},
        {.key = "loss", .step = 1, .value = 3, .time_ms = 10}, /* again */
        {.key = "inf", .step = 0, .value = -INFINITY, .time_ms = 10},
    };
    struct weir_metric *out;
    double last;
    size_t n;
    for (int i = 0; i < 2; i++) {
        MUST(weir_metrics_log(txn, run, points, WEIR_ARRAY_LEN(points), err));
    }
    MUST(weir_metrics_list(txn, "r", "loss", INT64_MIN, 100, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 3);
    ck_assert_double_eq(out[0].value, 9);
    ck_assert_double_eq(out[1].value, 2);
    MUST(weir_metric_last(txn, "r", "loss", &last, err));
    ck_assert_double_eq(last, 3); /* greatest step, then time, then value */
    MUST(weir_metric_last(txn, "r", "inf", &last, err));
    ck_assert_double_eq(last, -DBL_MAX);
    MUST(weir_metrics_latest(txn, "r", &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(out[0].key, "acc");
    ck_assert(isnan(out[0].value));
    return WEIR_OK;
}

START_TEST(every_measurement_is_kept_once_and_the_last_is_known)
{
    fixture_write(&fixture, logged, NULL);
}

END_TEST

static weir_status replaced(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    double last;
    struct weir_metric *out;
    size_t n;
    MUST(weir_metrics_put(txn, "r", &(struct weir_metric){.key = "a", .step = 7, .value = 5}, 1,
                          err));
    MUST(weir_metrics_put(txn, "r", &(struct weir_metric){.key = "a", .step = 7, .value = 1}, 1,
                          err));
    MUST(weir_metrics_put(txn, "r", &(struct weir_metric){.key = "a", .step = 6, .value = 8}, 1,
                          err));
    MUST(weir_metric_last(txn, "r", "a", &last, err));
    ck_assert_double_eq(last, 1);
    MUST(weir_metrics_list(txn, "r", NULL, INT64_MIN, 100, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(weir_metrics_put(txn, "none", out, 1, err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_program_of_weir_that_measures_a_step_again_replaces_it)
{
    fixture_write(&fixture, replaced, NULL);
}

END_TEST

/* A history read page by page is the history read whole; a sample of it is in order, has the ends, and
 * leaves no gap wider than twice its share. */
static weir_status paged(struct weir_txn *txn, void *context, struct weir_error *err)
{
    enum { N = 5000, SAMPLE = 100 };

    (void)context;
    struct weir_metric *points = WEIR_ARENA_ARRAY(&fixture.arena, N, struct weir_metric), *out;
    size_t n, n_read = 0;
    for (size_t i = 0; i < N; i++) {
        points[i] = (struct weir_metric){.key = "m",
                                         .step = (int64_t)(i / 2),
                                         .value = i % 7 == 0 ? NAN : sin((double)i),
                                         .time_ms = 1000 + (int64_t)i};
    }
    MUST(weir_metrics_log(txn, run, points, N, err));
    struct weir_metric_place place, *after = NULL;
    do {
        MUST(weir_metrics_page(txn, run, "m", after, 333, &fixture.arena, &out, &n, err));
        for (size_t i = 0; i < n; i++, n_read++) {
            ck_assert_int_eq(out[i].time_ms, points[n_read].time_ms);
            ck_assert(isnan(out[i].value) == isnan(points[n_read].value));
        }
        if (n > 0) {
            place = (struct weir_metric_place){out[n - 1].step, out[n - 1].time_ms,
                                               isnan(out[n - 1].value) ? 0 : out[n - 1].value,
                                               isnan(out[n - 1].value)};
            after = &place;
        }
    } while (n > 0);
    ck_assert_uint_eq(n_read, N);
    MUST(weir_metrics_sample(txn, run, "m", SAMPLE, &fixture.arena, &out, &n, err));
    ck_assert_uint_le(n, SAMPLE);
    ck_assert_uint_ge(n, SAMPLE / 2);
    ck_assert_int_eq(out[0].time_ms, points[0].time_ms);
    ck_assert_int_eq(out[n - 1].time_ms, points[N - 1].time_ms);
    for (size_t i = 1; i < n; i++) {
        ck_assert_int_gt(out[i].time_ms, out[i - 1].time_ms);
        ck_assert_int_le(out[i].step - out[i - 1].step, 2 * N / 2 / SAMPLE + 2);
    }
    MUST(weir_metrics_sample(txn, run, "m", N, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, N);
    return WEIR_OK;
}

START_TEST(a_history_is_read_by_pages_and_as_a_sample)
{
    fixture_write(&fixture, paged, NULL);
}

END_TEST

/* All of one step: the sample goes by time. */
static weir_status of_one_step(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_metric point = {.key = "m"}, *out;
    size_t n;
    for (int i = 0; i < 1000; i++) {
        point.time_ms = i;
        point.value = i;
        MUST(weir_metrics_log(txn, run, &point, 1, err));
    }
    MUST(weir_metrics_sample(txn, run, "m", 11, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 11);
    ck_assert_double_eq_tol(out[5].value, 500, 1.5);
    return WEIR_OK;
}

START_TEST(measurements_without_steps_are_sampled_over_time)
{
    fixture_write(&fixture, of_one_step, NULL);
}

END_TEST

static weir_status inputs(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_run_input input = {
        .name = "d", .digest = "abc", .source_type = "local", .source = "{}", .tags = "[]"};
    struct weir_run_input *out;
    size_t n;
    MUST(weir_run_input_put(txn, run, 0, &input, err));
    MUST(weir_run_input_put(txn, run, 0, &input, err));
    MUST(weir_run_inputs(txn, run, &fixture.arena, &out, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(out[0].source, "{}");
    ck_assert_ptr_null(out[0].schema);
    ck_assert_int_eq(weir_run_input_put(txn, run, 0, &(struct weir_run_input){.name = "d"}, err),
                     WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(a_run_names_the_data_that_it_read)
{
    fixture_write(&fixture, inputs, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("run", set_up, tear_down, experiments_have_one_name_in_a_project,
                    a_deleted_experiment_comes_back_with_the_runs_that_went_with_it,
                    tags_of_experiments_are_set_and_removed,
                    what_a_run_was_started_with_are_its_parameters_without_what_is_hidden,
                    a_parameter_is_written_once, a_tag_takes_the_new_value_and_goes,
                    every_measurement_is_kept_once_and_the_last_is_known,
                    a_program_of_weir_that_measures_a_step_again_replaces_it,
                    a_history_is_read_by_pages_and_as_a_sample,
                    measurements_without_steps_are_sampled_over_time,
                    a_run_names_the_data_that_it_read)
