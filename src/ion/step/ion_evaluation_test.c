/* Versions that are measured for a policy: each way in and out, with figures and a clock that the test makes
 * up. Each decision is made again from its row. */
#include "ion/step/ion_play.h"

#include <inttypes.h>

#define EVALUATE "{kind: evaluate, dataset: held-out, min_samples: 50, timeout_s: 100%s}"

static struct weir_ion_measured measured; /**< What the next tick sees. */

static void set_up(void)
{
    begin_ion(1000000);
    measured = (struct weir_ion_measured){0};
}

static void play(struct weir_ion_event event)
{
    must(event);
    require_replays(&actions, &arena);
}

static void apply_links(const char *links)
{
    char *text, *yaml = weir_arena_printf(
                    &arena,
                    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
                    " {name: p, type: prediction, source: {kind: http}}], links: [%s]}",
                    links);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    play(event);
}

/** @param more  Further options of the policy: ", margin: 0.1". */
static void apply(const char *more)
{
    char *policy = weir_arena_printf(&arena, EVALUATE, more);
    apply_links(weir_arena_printf(&arena, "{from: t, to: p, policy: %s}", policy));
}

static void is_in(int64_t version, const char *wanted)
{
    ck_assert_str_eq(require_candidate(&state, version)->state, wanted);
}

static void said(const char *words)
{
    for (size_t i = 0; i < actions.n; i++) {
        if (actions.items[i].type == WEIR_ION_ACTION_DECIDED &&
            strstr(actions.items[i].decision.rule, words) != NULL) {
            return;
        }
    }
    ck_abort_msg("nobody said: %s", words);
}

/** The last event asked for this measurement of the version. */
static void asked(int64_t version, int64_t number, int64_t live)
{
    const struct weir_ion_action *action = find_action(WEIR_ION_ACTION_START_EVALUATION);
    ck_assert_ptr_nonnull(action);
    ck_assert_str_eq(action->pipeline, require_candidate(&state, version)->id);
    ck_assert_int_eq(action->number, number);
    struct weir_policy_evaluation row =
        *weir_policy_evaluation_of(require_candidate(&state, version)->evaluation);
    ck_assert_int_eq(row.live_version, live);
    is_in(version, WEIR_CANDIDATE_WAITING);
}

static void stopped(const char *job)
{
    bool is_stopped = false;
    for (size_t i = 0; i < actions.n; i++) {
        is_stopped = is_stopped || (actions.items[i].type == WEIR_ION_ACTION_STOP_EVALUATION &&
                                    strcmp(actions.items[i].job, job) == 0);
    }
    ck_assert(is_stopped);
}

static void begun(int64_t version, int64_t number, const char *job)
{
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_MEASURING,
                                 .candidate = require_candidate(&state, version)->id,
                                 .number = number,
                                 .job = job,
                                 .run = "r1"});
}

static void tick_of(int64_t version, struct weir_policy_evaluation figures)
{
    measured = (struct weir_ion_measured){require_candidate(&state, version)->id, figures};
    play((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TICK, .measured = &measured, .n_measured = 1});
}

/** Of 100 pictures, on which one alone is right. */
static struct weir_policy_evaluation ended(char *job, int64_t only_candidate, int64_t only_live)
{
    return (struct weir_policy_evaluation){.job = job,
                                           .state = "SUCCEEDED",
                                           .n_samples = 100,
                                           .accuracy = 0.8,
                                           .loss = 0.5,
                                           .live_accuracy =
                                               0.8 - (double)(only_candidate - only_live) / 100,
                                           .live_loss = 0.6,
                                           .only_candidate = only_candidate,
                                           .only_live = only_live,
                                           .loss_m2 = 4};
}

/** Version 1 serves, and version 2 is measured by job j1. */
static void measure_second(const char *more)
{
    apply(more);
    play(model(&arena, "t", 1));
    is_in(1, WEIR_CANDIDATE_SERVING);
    play(model(&arena, "t", 2));
    asked(2, 1, 1);
    begun(2, 1, "j1");
}

START_TEST(the_first_version_has_nothing_to_be_compared_with)
{
    apply("");
    play(model(&arena, "t", 1));
    said("serves no other version");
    is_in(1, WEIR_CANDIDATE_SERVING);
    ck_assert_ptr_null(find_action(WEIR_ION_ACTION_START_EVALUATION));
}

END_TEST

START_TEST(one_that_is_surely_better_serves)
{
    measure_second("");
    tick_of(2, (struct weir_policy_evaluation){.job = "j1", .state = "RUNNING"});
    ck_assert_uint_eq(actions.n, 0);
    tick_of(2, ended("j1", 12, 2));
    said("surely more than 0");
    is_in(2, WEIR_CANDIDATE_SERVING);
    is_in(1, WEIR_CANDIDATE_RETIRED);
    ck_assert_ptr_null(require_candidate(&state, 2)->evaluation);
    stopped("j1"); /* which is over: that changes nothing */
}

END_TEST

START_TEST(one_that_is_not_surely_better_is_rejected)
{
    measure_second("");
    tick_of(2, ended("j1", 7, 4));
    said("not surely more than 0");
    is_in(2, WEIR_CANDIDATE_REJECTED);
    is_in(1, WEIR_CANDIDATE_SERVING);
}

END_TEST

START_TEST(the_row_gives_another_verdict_with_another_threshold)
{
    struct weir_policy_verdict told;
    measure_second("");
    tick_of(2, ended("j1", 12, 2)); /* p = 0.0065 */
    const struct weir_ion_action *action = find_action(WEIR_ION_ACTION_DECIDED);
    json_t *inputs = json_loads(action->decision.inputs, 0, NULL);
    json_object_set_new(json_object_get(inputs, "policy"), "alpha", json_real(0.005));
    char *text = weir_json_text(inputs, &arena);
    json_decref(inputs);
    ck_assert_int_eq(weir_policy_replay(text, &arena, &told, &err), WEIR_OK);
    ck_assert_str_eq(told.verdict, WEIR_VERDICT_REJECT);
}

END_TEST

/* 0.8 of 100 pictures, 2 and 2 alone: not better, but surely not 10 % worse. */
START_TEST(a_margin_says_how_much_worse_it_may_be)
{
    measure_second(_i == 0 ? ", margin: -0.1" : ", margin: 0.1");
    tick_of(2, ended("j1", 2, 2));
    is_in(2, _i == 0 ? WEIR_CANDIDATE_SERVING : WEIR_CANDIDATE_REJECTED);
}

END_TEST

START_TEST(losses_are_compared_in_pairs)
{
    measure_second(_i == 0 ? ", metric: loss" : ", metric: loss, margin: 0.09");
    tick_of(2, ended("j1", 0, 9)); /* 0.1 better, with an error of 0.02 */
    said("loss 0.5, and 0.6 of version 1");
    is_in(2, _i == 0 ? WEIR_CANDIDATE_SERVING : WEIR_CANDIDATE_REJECTED);
}

END_TEST

START_TEST(too_few_pictures_say_nothing)
{
    measure_second("");
    struct weir_policy_evaluation few = ended("j1", 12, 2);
    few.n_samples = 49;
    tick_of(2, few);
    said("fewer than 50");
    is_in(2, WEIR_CANDIDATE_REJECTED);
}

END_TEST

START_TEST(what_fails_is_rejected_or_passes_as_it_says)
{
    static char *const states[] = {"FAILED", "CANCELLED"};
    measure_second(_i < 2 ? "" : ", on_failure: pass");
    tick_of(2, (struct weir_policy_evaluation){
                   .job = "j1", .state = states[_i % 2], .problem = "its job failed: no memory"});
    said("no memory");
    is_in(2, _i < 2 ? WEIR_CANDIDATE_REJECTED : WEIR_CANDIDATE_SERVING);
}

END_TEST

START_TEST(what_cannot_be_measured_is_rejected_at_once)
{
    apply("");
    play(model(&arena, "t", 1));
    play(model(&arena, "t", 2));
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_MEASURING,
                                 .candidate = require_candidate(&state, 2)->id,
                                 .number = 1,
                                 .note = "there is no dataset \"held-out\""});
    said("there is no dataset");
    is_in(2, WEIR_CANDIDATE_REJECTED);
}

END_TEST

START_TEST(one_that_takes_too_long_is_rejected_and_its_job_stopped)
{
    measure_second("");
    now_ms += 99000 - 2000;
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    is_in(2, WEIR_CANDIDATE_WAITING);
    ck_assert_int_le(weir_ion_next_tick_ms(&state, now_ms), now_ms + 2000);
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    said("not measured within 100 s");
    is_in(2, WEIR_CANDIDATE_REJECTED);
    stopped("j1");
}

END_TEST

START_TEST(another_version_that_serves_is_another_comparison)
{
    measure_second("");
    tick_of(2, ended("j1", 12, 2));
    play(model(&arena, "t", 3));
    asked(3, 1, 2);
    begun(3, 1, "j2");
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_ROLLBACK, .actor = "ann"});
    is_in(1, WEIR_CANDIDATE_SERVING);
    tick_of(3, ended("j2", 12, 2)); /* of a comparison with version 2 */
    asked(3, 2, 1);
    stopped("j2");
    begun(3, 1, "j9"); /* told late */
    ck_assert_ptr_null(weir_policy_evaluation_of(require_candidate(&state, 3)->evaluation)->job);
    begun(3, 2, "j3");
    tick_of(3, ended("j3", 12, 2));
    is_in(3, WEIR_CANDIDATE_SERVING);
}

END_TEST

START_TEST(a_newer_one_that_serves_ends_the_others_measurement)
{
    measure_second("");
    play(model(&arena, "t", 3));
    begun(3, 1, "j2");
    tick_of(3, ended("j2", 12, 2));
    is_in(3, WEIR_CANDIDATE_SERVING);
    said("which is newer");
    is_in(2, WEIR_CANDIDATE_REJECTED);
    stopped("j1");
}

END_TEST

START_TEST(nobody_measures_for_a_link_or_an_ion_that_is_gone)
{
    measure_second("");
    if (_i == 0) {
        play((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
    } else if (_i == 1) {
        apply_links("{from: {model: other}, to: p, policy: manual}");
    } else {
        apply(", alpha: 0.01"); /* another chain: it begins anew */
        asked(2, 1, 1);
    }
    stopped("j1");
}

END_TEST

START_TEST(a_person_can_reject_it_meanwhile)
{
    measure_second("");
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_REJECT, .version = 2, .actor = "ann"});
    is_in(2, WEIR_CANDIDATE_REJECTED);
    stopped("j1");
}

END_TEST

START_TEST(a_least_accuracy_is_asked_of_the_first_too)
{
    apply(", least_accuracy: 0.7");
    play(model(&arena, "t", 1));
    asked(1, 1, 0);
    begun(1, 1, "j1");
    struct weir_policy_evaluation alone = {
        .job = "j1", .state = "SUCCEEDED", .n_samples = 100, .accuracy = _i == 0 ? 0.71 : 0.69};
    tick_of(1, alone);
    is_in(1, _i == 0 ? WEIR_CANDIDATE_SERVING : WEIR_CANDIDATE_REJECTED);
}

END_TEST

/** To a deployment: measured, then two people, then a part of the requests. */
static void apply_chain(void)
{
    char *text, *yaml = weir_arena_printf(
                    &arena,
                    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m}],"
                    " links: [{from: t, to: {deployment: d}, policy: [" EVALUATE ", {kind: manual,"
                    " approvals: 2}, {kind: canary, steps: [10], hold_s: 0, min_requests: 10,"
                    " min_judged: 5}]}]}",
                    "");
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    play(event);
}

static void approve(int64_t version, const char *who)
{
    static const char *const roles[] = {"approver", NULL};
    play((struct weir_ion_event){
        .type = WEIR_ION_EVENT_APPROVE, .version = version, .actor = who, .roles = roles});
}

/** The deployment gives the version what is asked for, and has answered with it. */
static void answer_with(int64_t version, int64_t n_requests)
{
    const struct weir_ion_traffic traffic = {
        .candidate = require_candidate(&state, version)->id,
        .live_ppm = require_candidate(&state, version)->share_ppm,
        .is_ready = true,
        .figures = {.server_ms = 1, .n_requests = n_requests, .n_compared = n_requests}};
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK, .traffic = &traffic, .n_traffic = 1});
}

static int64_t serving_version(void)
{
    const struct weir_ion_candidate *live = serving(&state, "t:deployment/d");
    return live != NULL ? live->version : 0;
}

/** From manual on, through the canary. */
static void take_through(int64_t version)
{
    is_in(version, WEIR_CANDIDATE_PENDING_REVIEW);
    ck_assert_ptr_null(require_candidate(&state, version)->evaluation);
    approve(version, "ann");
    is_in(version, WEIR_CANDIDATE_PENDING_REVIEW);
    approve(version, "bob");
}

/* The first has nothing beside which it could be measured or tried: people decide alone. */
START_TEST(a_version_is_measured_then_approved_by_two_then_tried)
{
    apply_chain();
    play(model(&arena, "t", 1));
    take_through(1);
    ck_assert_int_eq(serving_version(), 1);

    play(model(&arena, "t", 2));
    asked(2, 1, 1);
    ck_assert_int_eq(
        step((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .version = 2, .actor = "ann"}),
        WEIR_ERR_CONFLICT); /* Nobody is asked while it is measured. */
    begun(2, 1, "j1");
    tick_of(2, ended("j1", 12, 2));
    stopped("j1");
    take_through(2);
    is_in(2, "CANARY");
    ck_assert_int_eq(serving_version(), 1);
    ck_assert_int_eq(require_candidate(&state, 2)->share_ppm, 100000);
    answer_with(2, 0);
    answer_with(2, 20);
    is_in(2, WEIR_CANDIDATE_SERVING);
    is_in(1, WEIR_CANDIDATE_RETIRED);
}

END_TEST

START_TEST(what_a_measurement_rejects_comes_to_no_people)
{
    apply_chain();
    play(model(&arena, "t", 1));
    take_through(1);
    play(model(&arena, "t", 2));
    begun(2, 1, "j1");
    tick_of(2, ended("j1", 2, 2));
    is_in(2, WEIR_CANDIDATE_REJECTED);
    ck_assert_int_eq(serving_version(), 1);
}

END_TEST

/* Of an ION that is gone nothing is measured: neither what had begun, nor what was only asked for. */
START_TEST(an_ion_that_comes_back_has_its_versions_measured_anew)
{
    measure_second("");
    play(model(&arena, "t", 3));
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
    stopped("j1");
    apply("");
    play((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_EVALUATION), 2);
    begun(2, 1, "j2");
    tick_of(2, ended("j1", 12, 2)); /* of the one that was stopped */
    is_in(2, WEIR_CANDIDATE_WAITING);
    tick_of(2, ended("j2", 12, 2));
    is_in(2, WEIR_CANDIDATE_SERVING);
}

END_TEST

START_TEST(figures_from_outside_are_checked)
{
    static const char *const wrong[] = {
        "{\"asked_ms\":5,\"state\":\"SUCCEEDED\",\"n_samples\":100,\"only_candidate\":200}",
        "{\"asked_ms\":5,\"state\":\"SUCCEEDED\",\"n_samples\":-1}",
        "{\"asked_ms\":5,\"state\":\"SUCCEEDED\",\"n_samples\":100,\"loss_m2\":-3}",
        "{\"asked_ms\":5,\"state\":\"SUCCEEDED\",\"n_samples\":100,\"accuracy\":null}",
    };
    struct weir_policy_verdict told;
    char *inputs = weir_arena_printf(
        &arena,
        "{\"policy\":{\"kind\":\"evaluate\",\"dataset\":\"d\",\"least_accuracy\":0.5},"
        "\"now_ms\":10,\"candidate_version\":2,\"evaluation\":%s}",
        wrong[_i]);
    weir_status status = weir_policy_replay(inputs, &arena, &told, &err);
    ck_assert(status == WEIR_ERR_INVALID || strcmp(told.verdict, WEIR_VERDICT_REJECT) == 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ion_evaluation");
    TCase *tcase = tcase_create("ion_evaluation");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_first_version_has_nothing_to_be_compared_with);
    tcase_add_test(tcase, one_that_is_surely_better_serves);
    tcase_add_test(tcase, one_that_is_not_surely_better_is_rejected);
    tcase_add_test(tcase, the_row_gives_another_verdict_with_another_threshold);
    tcase_add_loop_test(tcase, a_margin_says_how_much_worse_it_may_be, 0, 2);
    tcase_add_loop_test(tcase, losses_are_compared_in_pairs, 0, 2);
    tcase_add_test(tcase, too_few_pictures_say_nothing);
    tcase_add_loop_test(tcase, what_fails_is_rejected_or_passes_as_it_says, 0, 4);
    tcase_add_test(tcase, what_cannot_be_measured_is_rejected_at_once);
    tcase_add_test(tcase, one_that_takes_too_long_is_rejected_and_its_job_stopped);
    tcase_add_test(tcase, another_version_that_serves_is_another_comparison);
    tcase_add_test(tcase, a_newer_one_that_serves_ends_the_others_measurement);
    tcase_add_loop_test(tcase, nobody_measures_for_a_link_or_an_ion_that_is_gone, 0, 3);
    tcase_add_test(tcase, a_person_can_reject_it_meanwhile);
    tcase_add_loop_test(tcase, a_least_accuracy_is_asked_of_the_first_too, 0, 2);
    tcase_add_test(tcase, a_version_is_measured_then_approved_by_two_then_tried);
    tcase_add_test(tcase, what_a_measurement_rejects_comes_to_no_people);
    tcase_add_test(tcase, an_ion_that_comes_back_has_its_versions_measured_anew);
    tcase_add_loop_test(tcase, figures_from_outside_are_checked, 0, 4);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
