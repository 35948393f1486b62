/* Sweeps in the control plane: jobs and runs of trials, made once and stopped in time, whatever dies between. */
#include "control/job/control_fixture.h"
#include "control/sweep.h"
#include "control/sweep/sweeper.h"
#include "track/run.h"

#include <math.h>

static struct control_fixture fixture;
static struct sweeper sweeper;

#define SWEEP                                                                                      \
    "{\"name\":\"s\",\"seed\":1,\"job\":{\"kind\":\"command\",\"spec\":{\"argv\":[\"try\","        \
    "\"--lr={{lr}}\",\"{{lr}}\"]}},\"goal\":{\"metric\":\"loss\",\"direction\":\"minimize\"},"     \
    "\"parameters\":"                                                                              \
    "{\"lr\":[0.1,0.2,0.3,0.4],\"n\":[7]},\"method\":{\"kind\":\"grid\"},\"parallel\":2"

static weir_status create_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    struct weir_sweep *sweep = context;
    json_t *document = json_loads(sweep->document, 0, NULL);
    ck_assert_ptr_nonnull(document);
    weir_status status = control_sweep_create(control, txn, document, sweep, err);
    json_decref(document);
    return status;
}

static struct weir_sweep create(const char *document)
{
    struct weir_sweep sweep = {.document = (char *)document};
    turn(&fixture, create_in, &sweep);
    return sweep;
}

static struct weir_sweep sweep_record(const struct weir_sweep *sweep)
{
    struct weir_sweep out;
    REQUIRE(find_record(&fixture, &weir_sweep_resource, sweep->id, &out));
    return out;
}

static struct weir_sweep_trial trial_record(const struct weir_sweep *sweep, int64_t number)
{
    struct weir_sweep_trial out;
    char *id = weir_arena_printf(&fixture.store.arena, "%s:%d", sweep->id, (int)number);
    REQUIRE(find_record(&fixture, &weir_sweep_trial_resource, id, &out));
    return out;
}

struct measured {
    const char *run, *key;
    int64_t step;
    double value;
};

static weir_status measure_in(struct control *control, struct weir_txn *txn, void *context,
                              struct weir_error *err)
{
    const struct measured *measured = context;
    const struct weir_metric metric = {.key = (char *)measured->key,
                                       .step = measured->step,
                                       .value = measured->value,
                                       .time_ms = control->now_ms};
    return weir_metrics_put(txn, measured->run, &metric, 1, err);
}

static void measure(const struct weir_sweep *sweep, int64_t number, const char *key, int64_t step,
                    double value)
{
    const struct weir_sweep_trial trial = trial_record(sweep, number);
    turn(&fixture, measure_in, &(struct measured){trial.run, key, step, value});
}

static void look(void)
{
    sweeper.next_mono_ms = 0;
    (void)sweeper_look(&sweeper, fixture.now_ms);
    (void)carry_out(&fixture, 1);
}

static void run_job(const struct weir_sweep *sweep, int64_t number)
{
    const struct weir_sweep_trial trial = trial_record(sweep, number);
    place(&fixture, trial.job);
    runs(&fixture, trial.job, 0);
}

START_TEST(a_trial_is_a_job_and_a_run_that_say_what_it_tries)
{
    struct weir_sweep sweep = create(SWEEP "}");
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), 0);
    ck_assert_uint_eq(carry_out(&fixture, 2), 2);
    const struct weir_sweep_trial trial = trial_record(&sweep, 2);
    ck_assert_str_eq(trial.state, "RUNNING");
    struct weir_job job = job_record(&fixture, trial.job);
    ck_assert_str_eq(job.name, "s.2");
    ck_assert_str_eq(job.created_by, "ann");
    ck_assert_str_eq(job.run, trial.run);
    json_t *spec = json_loads(job.spec, 0, NULL);
    const char *lr = json_string_value(json_array_get(json_object_get(spec, "argv"), 1));
    const json_t *env = json_object_get(spec, "env");
    ck_assert_str_eq(lr, "--lr=0.2");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(spec, "argv"), 2)), "0.2");
    ck_assert_str_eq(json_string_value(json_object_get(env, "WEIR_PARAM_LR")), "0.2");
    ck_assert_str_eq(json_string_value(json_object_get(env, "WEIR_PARAM_N")), "7");
    ck_assert_str_eq(json_string_value(json_object_get(env, "WEIR_TRIAL")), "2");
    json_decref(spec);
}

END_TEST

static weir_status tags_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t number;
    struct weir_tag *tags;
    struct weir_experiment experiment;
    struct weir_run run;
    size_t n;
    struct weir_arena *arena = &fixture.store.arena;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, context, arena, &run, err));
    WEIR_TRY(weir_experiment_get(txn, run.experiment, arena, &experiment, err));
    ck_assert_str_eq(experiment.name, "s");
    WEIR_TRY(weir_run_number(txn, context, &number, err));
    WEIR_TRY(weir_run_parameters(txn, number, arena, &tags, &n, err));
    bool has_lr = false;
    for (size_t i = 0; i < n; i++) {
        has_lr = has_lr || (strcmp(tags[i].key, "lr") == 0 && strcmp(tags[i].value, "0.1") == 0);
    }
    ck_assert(has_lr);
    WEIR_TRY(weir_run_tags(txn, number, arena, &tags, &n, err));
    bool has_trial = false;
    for (size_t i = 0; i < n; i++) {
        has_trial = has_trial ||
                    (strcmp(tags[i].key, "weir.trial") == 0 && strcmp(tags[i].value, "1") == 0);
    }
    ck_assert(has_trial);
    return WEIR_OK;
}

START_TEST(its_run_is_found_by_experiment_parameter_and_tag)
{
    struct weir_sweep sweep = create(SWEEP "}");
    (void)carry_out(&fixture, 0);
    fixture_read(&fixture.store, tags_in, trial_record(&sweep, 1).run);
}

END_TEST

START_TEST(the_next_trial_follows_when_one_ends_and_the_best_is_known)
{
    struct weir_sweep sweep = create(SWEEP "}");
    (void)carry_out(&fixture, 0);
    for (int64_t i = 1; i <= 4; i++) {
        run_job(&sweep, i);
        measure(&sweep, i, "loss", 1, i == 3 ? 0.5 : 1);
        exits(&fixture, trial_record(&sweep, i).job, 0, 0);
        look();
    }
    sweep = sweep_record(&sweep);
    ck_assert_str_eq(sweep.state, "SUCCEEDED");
    ck_assert_int_eq(sweep.best, 3);
    ck_assert_double_eq(sweep.best_value, 0.5);
    ck_assert_int_eq(sweep.n_succeeded, 4);
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), 4);
    ck_assert_uint_eq(count_records(&fixture, &weir_run_resource), 4);
}

END_TEST

/* Epochs count here, and are reported beside the goal's metric. */
START_TEST(a_bad_trial_is_stopped_early_and_is_no_failure)
{
    struct weir_run run;
    struct weir_sweep sweep = create(
        "{\"name\":\"s\",\"seed\":1,\"job\":{\"kind\":\"command\",\"spec\":{\"argv\":[\"try\"]}},"
        "\"goal\":{\"metric\":\"accuracy\",\"direction\":\"maximize\"},\"parameters\":{\"x\":[1,2]}"
        ","
        "\"trials\":2,\"parallel\":2,\"method\":{\"kind\":\"asha\",\"max_resource\":9,"
        "\"resource\":\"epoch\"}}");
    (void)carry_out(&fixture, 0);
    run_job(&sweep, 1);
    run_job(&sweep, 2);
    for (int64_t i = 1; i <= 2; i++) {
        measure(&sweep, i, "epoch", 100, 0.5);
        measure(&sweep, i, "accuracy", 100, 0.1);
        measure(&sweep, i, "epoch", 200, 1);
        measure(&sweep, i, "accuracy", 200, i == 1 ? 0.9 : 0.2);
    }
    look();
    ck_assert_str_eq(trial_record(&sweep, 1).state, "RUNNING");
    ck_assert_str_eq(trial_record(&sweep, 2).state, "STOPPING");
    ck_assert_str_eq(trial_record(&sweep, 2).reason, "number 2 of 2 at epoch 1");
    struct weir_job job = job_record(&fixture, trial_record(&sweep, 2).job);
    ck_assert_str_eq(job.state, "STOPPING");
    exits(&fixture, job.id, 0, 143);
    look();
    ck_assert_str_eq(trial_record(&sweep, 2).state, "STOPPED");
    REQUIRE(find_record(&fixture, &weir_run_resource, job.run, &run));
    ck_assert_str_eq(run.status, "FINISHED");
    ck_assert_uint_eq(count_records(&fixture, &weir_alert_resource), 0);
}

END_TEST

START_TEST(failed_jobs_are_counted_and_raise_no_alert_each)
{
    struct weir_sweep sweep = create(SWEEP ",\"max_failures\":2}");
    (void)carry_out(&fixture, 0);
    for (int64_t i = 1; i <= 2; i++) {
        run_job(&sweep, i);
        exits(&fixture, trial_record(&sweep, i).job, 0, 1);
    }
    look();
    sweep = sweep_record(&sweep);
    ck_assert_str_eq(sweep.state, "FAILED");
    ck_assert_int_eq(sweep.n_failed, 2);
    ck_assert_uint_eq(count_records(&fixture, &weir_alert_resource), 0);
}

END_TEST

static weir_status stop_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    const struct weir_sweep_event stop = {.type = WEIR_SWEEP_EVENT_STOP, .note = "stopped by ann"};
    return control_sweep_event(control, txn, context, &stop, err);
}

START_TEST(a_sweep_that_is_stopped_cancels_its_jobs)
{
    struct weir_sweep sweep = create(SWEEP "}");
    (void)carry_out(&fixture, 0);
    turn(&fixture, stop_in, sweep.id);
    (void)carry_out(&fixture, 1);
    look();
    ck_assert_str_eq(sweep_record(&sweep).state, "CANCELLED");
    ck_assert_str_eq(job_record(&fixture, trial_record(&sweep, 1).job).state, "CANCELLED");
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), 2);
}

END_TEST

START_TEST(a_job_that_cannot_be_made_is_a_failed_trial_that_says_why)
{
    struct weir_sweep sweep = create(
        "{\"name\":\"s\",\"job\":{\"kind\":\"train\",\"spec\":{\"model\":\"lenet\",\"dataset\":"
        "\"{{d}}\"}},\"goal\":{\"metric\":\"loss\",\"direction\":\"minimize\"},\"parameters\":"
        "{\"d\":[\"faces\",\"nothing\"]},\"method\":{\"kind\":\"grid\"}}");
    (void)carry_out(&fixture, 0);
    ck_assert_str_eq(trial_record(&sweep, 1).state, "RUNNING");
    ck_assert_str_eq(trial_record(&sweep, 2).state, "FAILED");
    ck_assert_ptr_nonnull(
        strstr(trial_record(&sweep, 2).reason, "there is no dataset \"nothing\""));
}

END_TEST

static const struct {
    const char *job, *said;
} refused[] = {
    {"{\"kind\":\"serve\",\"spec\":{}}", "a trial ends, and a job of kind serve does not"},
    {"{\"kind\":\"dance\",\"spec\":{}}", "$.job.kind"},
    {"{\"kind\":\"command\",\"spec\":{\"argv\":[\"{{y}}\"]}}", "{{y}} is none of the parameters"},
    {"{\"kind\":\"command\",\"spec\":{\"argw\":[\"a\"]}}", "$.job of trial 1: $.spec"},
};

START_TEST(what_no_trial_could_do_is_refused_at_once)
{
    char *text = weir_arena_printf(
        &fixture.store.arena,
        "{\"name\":\"s\",\"job\":%s,\"goal\":{\"metric\":\"loss\",\"direction\":\"minimize\"},"
        "\"parameters\":{\"x\":[1,2]},\"trials\":2}",
        refused[_i].job);
    struct weir_sweep sweep = {.document = text};
    weir_status status = try_turn(&fixture, create_in, &sweep, false);
    ck_assert_msg(status == WEIR_ERR_INVALID &&
                      strstr(fixture.err.message, refused[_i].said) != NULL,
                  "%s", fixture.err.message);
    ck_assert_uint_eq(count_records(&fixture, &weir_sweep_resource), 0);
}

END_TEST

static void set_up(void)
{
    control_fixture_make(&fixture);
    sweeper = (struct sweeper){.store = fixture.store.store};
}

static void tear_down(void)
{
    aside_fini(&sweeper.aside);
    control_fixture_fini(&fixture);
}

int main(void)
{
    Suite *suite = suite_create("control_sweep");
    TCase *tcase = tcase_create("control_sweep");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_trial_is_a_job_and_a_run_that_say_what_it_tries);
    tcase_add_test(tcase, its_run_is_found_by_experiment_parameter_and_tag);
    tcase_add_test(tcase, the_next_trial_follows_when_one_ends_and_the_best_is_known);
    tcase_add_test(tcase, a_bad_trial_is_stopped_early_and_is_no_failure);
    tcase_add_test(tcase, failed_jobs_are_counted_and_raise_no_alert_each);
    tcase_add_test(tcase, a_sweep_that_is_stopped_cancels_its_jobs);
    tcase_add_test(tcase, a_job_that_cannot_be_made_is_a_failed_trial_that_says_why);
    tcase_add_loop_test(tcase, what_no_trial_could_do_is_refused_at_once, 0,
                        WEIR_ARRAY_LEN(refused));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
