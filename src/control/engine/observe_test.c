/* Triggers that look at the store, in a real one, with a clock that the test drives; each step is also
 * killed at the end of its transaction first. */
#include "control/engine/observe.h"

#include "base/test_main.h"
#include "base/uuid.h"
#include "control/job/control_fixture.h"
#include "ion/decision.h"
#include "ion/kpi.h"
#include "store/event.h"

#define SECOND ((int64_t)1000)

static struct control_fixture fixture;

static void set_up(void)
{
    control_fixture_make(&fixture);
    fixture.now_ms = 100 * SECOND;
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

static void apply_with(const char *triggers)
{
    static const struct weir_ion_dataset datasets[] = {
        {.name = "faces", .version = 1, .path = "/data/faces", .digest = "d1", .blob = "b1"}};
    struct weir_arena *arena = &fixture.store.arena;
    char *text, *yaml = weir_arena_printf(
                    arena,
                    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: lenet,"
                    " triggers: %s}, {name: p, type: prediction, source: {kind: http}}],"
                    " links: [{from: t, to: p, policy: manual}]}",
                    triggers);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(arena, yaml, &text);
    event.document = text;
    event.datasets = datasets;
    event.n_datasets = 1;
    turn(&fixture, apply_in, &event);
}

static weir_status tick_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    (void)context;
    return control_ion_tick(control, txn, "x", err);
}

static weir_status is_due_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(weir_ion_load(txn, "x", control->arena, &state, err));
    return control_observe_is_due(control, txn, &state, context, err);
}

/** Time passes; the step is killed once before it is done. @return How many firings there are. */
static int64_t after(int64_t seconds)
{
    bool is_due;
    fixture.now_ms += seconds * SECOND;
    int64_t n_before = ion_state(&fixture).ion.n_firings;
    turn(&fixture, is_due_in, &is_due);
    ck_assert_int_eq(try_turn(&fixture, tick_in, NULL, true), WEIR_ERR_PEER);
    ck_assert_int_eq(ion_state(&fixture).ion.n_firings, n_before);
    turn(&fixture, tick_in, NULL);
    int64_t n = ion_state(&fixture).ion.n_firings;
    ck_assert(is_due == (n > n_before));
    turn(&fixture, tick_in, NULL); /* the same again */
    ck_assert_int_eq(ion_state(&fixture).ion.n_firings, n);
    return n;
}

struct firings {
    struct weir_trigger_firing *items;
    size_t n;
};

static weir_status firings_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct firings *firings = context;
    return weir_firings_list(txn, "x", "t", 100, &fixture.store.arena, &firings->items, &firings->n,
                             err);
}

/** The newest firing, which its inputs alone make again. */
static struct weir_trigger_firing newest_firing(void)
{
    struct firings firings;
    struct weir_trigger_verdict again;
    fixture_read(&fixture.store, firings_in, &firings);
    ck_assert_uint_gt(firings.n, 0);
    ck_assert_int_eq(
        weir_trigger_replay(firings.items[0].inputs, &fixture.store.arena, &again, NULL), WEIR_OK);
    ck_assert(again.fires);
    ck_assert_str_eq(again.reason, firings.items[0].reason);
    return firings.items[0];
}

static weir_status report_window_in(struct control *control, struct weir_txn *txn, void *context,
                                    struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_health_report report = {.id = id,
                                              .ion = "x",
                                              .pipeline = "p",
                                              .signal = "score",
                                              .statistic = "ks",
                                              .drifted = *(const bool *)context,
                                              .n_samples = 50,
                                              .model_version = 1,
                                              .time_ms = control->now_ms};
    return weir_health_report_store(txn, &report, err);
}

static void window(bool drifted)
{
    fixture.now_ms += SECOND;
    turn(&fixture, report_window_in, &drifted);
}

/** The job of the running training ends. */
static void end_training(void)
{
    (void)carry_out(&fixture, 1);
    struct weir_ion_pipeline pipeline = pipeline_record(&fixture, "t");
    ck_assert_ptr_nonnull(pipeline.job);
    play(&fixture, pipeline.job, 0);
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "IDLE");
}

START_TEST(k_of_n_drifted_windows_train_once_within_the_least_interval)
{
    apply_with("[{kind: drift, signal: score, k: 3, n: 5, least_interval_s: 500}]");
    window(true);
    window(false);
    window(true);
    window(false);
    ck_assert_int_eq(after(1), 0);
    window(true);
    ck_assert_int_eq(after(1), 1);
    struct weir_trigger_firing firing = newest_firing();
    ck_assert_str_eq(firing.kind, "drift");
    ck_assert_str_eq(firing.reason, "drift: 3 of the last 5 windows of score at p");
    ck_assert_int_eq(firing.training, 1);
    window(true);
    window(true);
    window(true);
    ck_assert_int_eq(after(1), 1); /* It runs. */
    end_training();
    ck_assert_int_eq(after(1), 1); /* It is too early. */
    ck_assert_int_eq(after(500), 2);
    ck_assert_int_eq(newest_firing().training, 2);
}

END_TEST

static weir_status kpi_in(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    struct weir_kpi kpi = {.ion = "x",
                           .name = "refused",
                           .value = *(const double *)context,
                           .time_ms = control->now_ms};
    return weir_kpi_add(txn, &kpi, control->now_ms, control->arena, err);
}

START_TEST(a_figure_on_the_wrong_side_trains_and_is_then_used_up)
{
    double good = 3, bad = 7.5;
    apply_with("[{kind: metric, of: kpi, name: refused, when: above, threshold: 5,"
               " least_interval_s: 0}]");
    fixture.now_ms += SECOND;
    turn(&fixture, kpi_in, &good);
    ck_assert_int_eq(after(1), 0);
    turn(&fixture, kpi_in, &bad);
    ck_assert_int_eq(after(1), 1);
    ck_assert_str_eq(newest_firing().reason, "kpi refused 7.5 is above 5");
    end_training();
    ck_assert_int_eq(after(10), 1);
    turn(&fixture, kpi_in, &bad);
    ck_assert_int_eq(after(10), 2);
}

END_TEST

static weir_status metric_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    const struct weir_metric metrics[] = {
        {.key = "accuracy", .step = 1, .value = 0.99, .time_ms = control->now_ms},
        {.key = "accuracy", .step = 9, .value = 0.5, .time_ms = control->now_ms},
        {.key = "loss", .step = 10, .value = 7, .time_ms = control->now_ms}};
    return weir_metrics_put(txn, context, metrics, WEIR_ARRAY_LEN(metrics), err);
}

START_TEST(the_last_value_of_a_metric_of_the_last_run_is_looked_at)
{
    apply_with("[{kind: metric, of: run, name: accuracy, when: below, threshold: 0.6,"
               " least_interval_s: 0}]");
    ck_assert_int_eq(after(1), 0);
    trigger(&fixture);
    (void)carry_out(&fixture, 1);
    turn(&fixture, metric_in, pipeline_record(&fixture, "t").runs.run);
    ck_assert_int_eq(after(1), 1); /* by hand; it runs */
    end_training();
    ck_assert_int_eq(after(1), 2);
    ck_assert_str_eq(newest_firing().reason, "run accuracy 0.5 is below 0.6");
    end_training();
    ck_assert_int_eq(after(1), 2); /* that run measured nothing */
}

END_TEST

static weir_status alert_in(struct control *control, struct weir_txn *txn, void *context,
                            struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_alert alert = {.id = id,
                                     .key = context,
                                     .kind = "drift",
                                     .subject = context,
                                     .message = "score has drifted"};
    return weir_alert_raise(txn, &alert, control->now_ms, NULL, err);
}

START_TEST(an_alert_about_this_ion_trains)
{
    apply_with("[{kind: alert, alert: drift, least_interval_s: 0}]");
    fixture.now_ms += SECOND;
    turn(&fixture, alert_in, (void *)"ion/y");
    ck_assert_int_eq(after(1), 0);
    turn(&fixture, alert_in, (void *)"ion/x");
    ck_assert_int_eq(after(1), 1);
    ck_assert_str_eq(newest_firing().reason, "alert drift: score has drifted");
}

END_TEST

START_TEST(a_model_that_has_grown_old_is_trained_again)
{
    apply_with("[{kind: model-age, max_age_s: 1000, least_interval_s: 200}]");
    ck_assert_int_eq(after(5000), 0); /* There is none. */
    trigger(&fixture);
    (void)carry_out(&fixture, 1);
    struct weir_ion_pipeline pipeline = pipeline_record(&fixture, "t");
    struct registration made = {.id = "v1", .run = pipeline.runs.run};
    turn(&fixture, register_in, &made);
    end_training();
    ck_assert_int_eq(after(900), 1);
    ck_assert_int_eq(after(200), 2);
    ck_assert_str_eq(newest_firing().reason, "the model is older than 1000 s");
    ck_assert_str_eq(pipeline_record(&fixture, "t").runs.cause, "the model is older than 1000 s");
}

END_TEST

static weir_status delete_version_in(struct control *control, struct weir_txn *txn, void *context,
                                     struct weir_error *err)
{
    return weir_model_version_delete(txn, context, "ann", control->now_ms, err);
}

START_TEST(a_version_that_was_deleted_is_no_model)
{
    apply_with("[{kind: model-age, max_age_s: 1000, least_interval_s: 200}]");
    trigger(&fixture);
    (void)carry_out(&fixture, 1);
    struct weir_ion_pipeline pipeline = pipeline_record(&fixture, "t");
    struct registration made = {.id = "v1", .run = pipeline.runs.run};
    turn(&fixture, register_in, &made);
    end_training();
    turn(&fixture, delete_version_in, (void *)"v1");
    ck_assert_int_eq(after(5000), 1);
}

END_TEST

/** With no least interval either: a training that brings nothing younger is one training. */
START_TEST(a_training_that_brings_no_model_is_not_begun_again_at_once)
{
    apply_with("[{kind: model-age, max_age_s: 1000, least_interval_s: 0}]");
    trigger(&fixture);
    (void)carry_out(&fixture, 1);
    struct weir_ion_pipeline pipeline = pipeline_record(&fixture, "t");
    struct registration made = {.id = "v1", .run = pipeline.runs.run};
    turn(&fixture, register_in, &made);
    end_training();
    ck_assert_int_eq(after(1001), 2);
    end_training();
    ck_assert_int_eq(after(100), 2);
    ck_assert_int_eq(after(900), 3);
}

END_TEST

WEIR_TEST_MAIN_WITH("observe", set_up, tear_down,
                    k_of_n_drifted_windows_train_once_within_the_least_interval,
                    a_figure_on_the_wrong_side_trains_and_is_then_used_up,
                    an_alert_about_this_ion_trains, a_model_that_has_grown_old_is_trained_again,
                    the_last_value_of_a_metric_of_the_last_run_is_looked_at,
                    a_version_that_was_deleted_is_no_model,
                    a_training_that_brings_no_model_is_not_begun_again_at_once)
