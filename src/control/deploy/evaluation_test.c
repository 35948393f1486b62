/* What a policy wants to be measured, carried out over a store: the job, its end, and what the policy says then.
 * Each action fails at the end of its transaction first. */
#include "control/deploy/evaluation.h"

#include "control/engine/observe.h"
#include "control/job/control_fixture.h"

#include <inttypes.h>

static struct control_fixture fixture;

#define CLASSIFIER                                                                                 \
    "{\"output_kind\":\"logits\",\"labels\":[\"0\",\"1\"],"                                        \
    "\"inputs\":[{\"name\":\"x\"}],\"picture\":{\"input\":\"x\"}}"

static weir_status push_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    struct weir_model_version out,
        version = {.id = context, .model = "digits", .blob = context, .signature = CLASSIFIER};
    return control_model_register(control, txn, &version, &out, err);
}

static void push(char *id)
{
    fixture.now_ms += 1000;
    turn(&fixture, push_in, id);
}

static void apply_policy(const char *policy)
{
    struct weir_arena *arena = &fixture.store.arena;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    char *text;
    event.doc = doc_from_yaml(
        arena,
        weir_arena_printf(arena,
                          "{name: x, pipelines: [], links:"
                          " [{from: {model: digits}, to: {deployment: d}, policy: %s}]}",
                          policy),
        &text);
    event.document = text;
    turn(&fixture, apply_in, &event);
}

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_ion_load(txn, "x", &fixture.store.arena, context, err);
}

static const char *state_of(int64_t version)
{
    struct weir_ion_state state;
    fixture_read(&fixture.store, load_in, &state);
    for (size_t i = 0; i < state.n_candidates; i++) {
        if (state.candidates[i].version == version) {
            return state.candidates[i].state;
        }
    }
    return "";
}

static weir_status tick_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    (void)context;
    return control_ion_tick(control, txn, "x", err);
}

static void tick(void)
{
    fixture.now_ms += 1000;
    turn(&fixture, tick_in, NULL);
}

/** The one job that measures. */
static struct weir_job measuring(void)
{
    void *items;
    size_t n = list_records(&fixture, &weir_job_resource, &items), i_found = 0, n_found = 0;
    const struct weir_job *jobs = items;
    for (size_t i = 0; i < n; i++) {
        bool is_one = strcmp(jobs[i].kind, "measure") == 0;
        i_found = is_one ? i : i_found;
        n_found += is_one;
    }
    ck_assert_uint_eq(n_found, 1);
    return jobs[i_found];
}

/** Version 1 serves, and version 2 is measured. */
static void set_up(void)
{
    control_fixture_make(&fixture);
    apply_policy("{kind: evaluate, dataset: faces, min_samples: 50}");
    push("d1");
    ck_assert_str_eq(state_of(1), "SERVING");
    (void)carry_out(&fixture, 1);
    push("d2");
    ck_assert_str_eq(state_of(2), "WAITING");
    (void)carry_out(&fixture, 1);
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

static weir_status figures_in(struct control *control, struct weir_txn *txn, void *context,
                              struct weir_error *err)
{
    static const struct weir_metric metrics[] = {
        {.key = "samples", .value = 100},       {.key = "accuracy", .value = 0.9},
        {.key = "live_accuracy", .value = 0.8}, {.key = "only_model", .value = 12},
        {.key = "only_live", .value = 2},
    };
    (void)control;
    return weir_metrics_put(txn, context, metrics, WEIR_ARRAY_LEN(metrics), err);
}

START_TEST(a_job_measures_both_on_the_policys_dataset)
{
    struct weir_job job = measuring();
    ck_assert_str_eq(job.name, "x.evaluate.v2");
    ck_assert_str_eq(job.ion, "x");
    ck_assert_ptr_null(job.pipeline);
    WEIR_AUTO(weir_json_auto_free) json_t *spec = json_loads(job.spec, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(spec, "model")), "digits@v2");
    ck_assert_str_eq(json_string_value(json_object_get(spec, "live")), "digits@v1");
    ck_assert_str_eq(json_string_value(json_object_get(spec, "dataset")), "faces@v1");
    tick();
    ck_assert_str_eq(state_of(2), "WAITING");
}

END_TEST

START_TEST(its_figures_decide)
{
    struct weir_job job = measuring();
    turn(&fixture, figures_in, job.run);
    play(&fixture, job.id, 0);
    tick();
    ck_assert_str_eq(state_of(2), "SERVING");
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(job_record(&fixture, job.id).state, "SUCCEEDED");
}

END_TEST

START_TEST(a_job_without_figures_or_that_was_cancelled_measures_nothing)
{
    struct weir_job job = measuring();
    if (_i == 0) {
        play(&fixture, job.id, 0);
    } else {
        ck_assert_int_eq(
            try_job_event(&fixture, job.id,
                          (struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "enough"}),
            WEIR_OK);
    }
    tick();
    ck_assert_str_eq(state_of(2), "REJECTED");
    ck_assert_str_eq(state_of(1), "SERVING");
    ck_assert_uint_eq(count_records(&fixture, &weir_alert_resource), 0);
}

END_TEST

/* A task that did not reach the server, which was being started, is started again. */
START_TEST(a_task_that_fails_is_tried_again_and_the_version_waits)
{
    struct weir_job job = measuring();
    play(&fixture, job.id, _i == 0 ? 9 : 2); /* UNAVAILABLE, and INVALID, which stays so */
    tick();
    ck_assert_str_eq(state_of(2), _i == 0 ? "WAITING" : "REJECTED");
    ck_assert_str_eq(job_record(&fixture, job.id).state, _i == 0 ? "RESTARTING" : "FAILED");
}

END_TEST

START_TEST(nobody_waits_for_it_any_more)
{
    struct weir_job job = measuring();
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_DELETED, .actor = "ann"};
    if (_i == 0) {
        turn(&fixture, ion_event_in, &event);
    } else {
        apply_policy("manual");
    }
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(job_record(&fixture, job.id).state, "CANCELLED");
}

END_TEST

START_TEST(what_cannot_be_measured_is_rejected_with_the_reason)
{
    fixture.now_ms += 1000;
    apply_policy("{kind: evaluate, dataset: face}");
    (void)carry_out(&fixture, 1);
    ck_assert_str_eq(state_of(2), "REJECTED");
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("evaluation");
    TCase *tcase = tcase_create("evaluation");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_job_measures_both_on_the_policys_dataset);
    tcase_add_test(tcase, its_figures_decide);
    tcase_add_loop_test(tcase, a_job_without_figures_or_that_was_cancelled_measures_nothing, 0, 2);
    tcase_add_loop_test(tcase, a_task_that_fails_is_tried_again_and_the_version_waits, 0, 2);
    tcase_add_loop_test(tcase, nobody_waits_for_it_any_more, 0, 2);
    tcase_add_test(tcase, what_cannot_be_measured_is_rejected_with_the_reason);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
