/* Versions that are tried among the requests of a deployment: each way in and out of shadow and canary,
 * with figures and a clock that the test makes up. */
#include "ion/ion_fixture.h"

#include <inttypes.h>

#define LINK "t:deployment/d"

static struct weir_arena arena;
static struct weir_ion_state state;
static struct weir_ion_actions actions;
static struct weir_error err;
static int64_t now_ms;

/** What the deployment says of the version that is tried, with the next tick. */
static struct weir_ion_traffic traffic;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    weir_ion_state_new("x", &arena, &state);
    now_ms = 1000000;
    traffic = (struct weir_ion_traffic){.figures = {.server_ms = 1}};
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static void must(struct weir_ion_event event)
{
    actions = (struct weir_ion_actions){0};
    weir_status status = weir_ion_step(&state, &event, now_ms, &arena, &actions, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    require_replays(&actions, &arena);
}

static void apply_to(const char *policy, const char *mode)
{
    char *text, *yaml = weir_arena_printf(
                    &arena,
                    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m}],"
                    " links: [{from: t, to: {deployment: d}, policy: %s}]}",
                    policy);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann", .mode = mode};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    must(event);
}

/** Link t2:deployment/d in place of the one of before. */
static void apply_another_link(void)
{
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc =
        doc_from_yaml(&arena,
                      "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
                      " {name: t2, type: training, dataset: faces, model: m}],"
                      " links: [{from: t2, to: {deployment: d}, policy: always-update}]}",
                      &text);
    event.document = text;
    must(event);
}

static void tick_of(int64_t version, int64_t after_ms)
{
    now_ms += after_ms;
    traffic.candidate = require_candidate(&state, version)->id;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK, .traffic = &traffic, .n_traffic = 1});
}

/** Version 1 serves, and version 2 has come. */
static void try_second(const char *policy)
{
    apply_to(policy, NULL);
    must(model(&arena, "t", 1));
    ck_assert_str_eq(require_candidate(&state, 1)->state, WEIR_CANDIDATE_SERVING);
    must(model(&arena, "t", 2));
}

static void wants(int64_t serving, int64_t trial, int64_t ppm, int64_t mirror)
{
    struct weir_ion_wanted wanted = weir_ion_wanted_of(&state, &state.doc.links[0]);
    ck_assert_str_eq(wanted.model, "x.t");
    ck_assert_int_eq(wanted.serving, serving);
    ck_assert_int_eq(wanted.trial, trial);
    ck_assert_int_eq(wanted.trial_ppm, ppm);
    ck_assert_int_eq(wanted.mirror, mirror);
}

static void is_in(int64_t version, const char *wanted)
{
    ck_assert_str_eq(require_candidate(&state, version)->state, wanted);
}

/** The last event's decision says it in these words. */
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

START_TEST(a_link_without_trials_gives_its_deployment_what_it_serves)
{
    apply_to("always-update", NULL);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 0);
    must(model(&arena, "t", 1));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    wants(1, 0, 0, 0);
    must(model(&arena, "t", 2));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    wants(2, 0, 0, 0);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_ROLLBACK, .actor = "ann"});
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    wants(1, 0, 0, 0);
    is_in(2, WEIR_CANDIDATE_ROLLED_BACK);
}

END_TEST

#define CANARY                                                                                     \
    "{kind: canary, steps: [10, 100], hold_s: 10, min_requests: 50, min_judged: 20,"               \
    " max_error_rate: 0.1, max_p99_ms: 200, max_disagreement: 0.2, timeout_s: 100}"

START_TEST(a_canary_goes_step_by_step_and_then_serves)
{
    try_second(CANARY);
    is_in(2, "CANARY");
    wants(1, 2, 100000, 2);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    tick_of(2, 200); /* not in effect yet: nothing is written */
    ck_assert_uint_eq(actions.n, 0);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    said("it answers 10 %");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 0);
    traffic.figures.n_requests = 49;
    tick_of(2, 10000);
    ck_assert_uint_eq(actions.n, 0); /* held long enough, with too few requests */
    traffic.figures.n_requests = 50;
    tick_of(2, 200);
    said("the guard on disagreement sees nothing");
    ck_assert_ptr_nonnull(require_candidate(&state, 2)->blocked);
    tick_of(2, 200);
    ck_assert_uint_eq(actions.n, 0); /* said once */
    traffic.figures.n_compared = 20;
    tick_of(2, 200);
    said("it is to answer 100 %");
    ck_assert_ptr_null(require_candidate(&state, 2)->blocked);
    wants(1, 2, 1000000, 1); /* the former version stays loaded */
    traffic.live_ppm = 1000000;
    tick_of(2, 200);
    traffic.figures.n_requests = 100; /* of which 50 are of this step */
    traffic.figures.n_compared = 40;
    tick_of(2, 9999);
    ck_assert_uint_eq(actions.n, 0);
    tick_of(2, 1);
    said("no guard tripped in 2 steps");
    is_in(2, WEIR_CANDIDATE_SERVING);
    is_in(1, WEIR_CANDIDATE_RETIRED);
    wants(2, 0, 0, 0);
}

END_TEST

static const struct {
    struct weir_ion_figures figures;
    const char *words;
} guards[] = {
    {{.server_ms = 1, .n_requests = 20, .n_failed = 6}, "6 of 20 requests failed"},
    {{.server_ms = 1, .n_requests = 100, .n_slow = 4}, "4 of 100 requests took longer than 200 ms"},
    {{.server_ms = 1, .n_compared = 20, .n_disagreed = 9}, "9 of 20 answers were not those"},
    {{.server_ms = 1, .n_requests = 7, .n_unaccepted = 5, .live_requests = 63},
     "it refused (4xx) 5 of 7 requests, and the version that serves 0 of 63"},
    {{.server_ms = 1, .n_compared = 100, .n_only = 20, .live_only = 1},
     "it alone refused (4xx) 20, and the version before alone 1"},
};

/** Above the limits by chance: Wilson's interval (95 %) of the share still holds the limit. */
static const struct weir_ion_figures by_chance[] = {
    {.server_ms = 1, .n_requests = 20, .n_failed = 4},
    {.server_ms = 1, .n_requests = 20, .n_slow = 1},
    {.server_ms = 1, .n_requests = 99, .n_slow = 2, .n_compared = 1},
    {.server_ms = 1, .n_compared = 20, .n_disagreed = 7},
    {.server_ms = 1,
     .n_requests = 20,
     .n_unaccepted = 18,
     .live_requests = 180,
     .live_unaccepted = 160},
    {.server_ms = 1, .n_requests = 20, .n_unaccepted = 2, .live_requests = 180},
    {.server_ms = 1, .n_compared = 100, .n_only = 20, .live_only = 18, .n_neither = 60},
};

START_TEST(a_guard_that_trips_gives_all_requests_back_at_once)
{
    try_second(CANARY);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    traffic.figures = guards[_i].figures;
    tick_of(2, 200);
    said(guards[_i].words);
    is_in(2, WEIR_CANDIDATE_ROLLED_BACK);
    is_in(1, WEIR_CANDIDATE_SERVING);
    wants(1, 0, 0, 0);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    tick_of(2, 200);
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

START_TEST(what_a_few_requests_show_by_chance_trips_no_guard)
{
    try_second(CANARY);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    traffic.figures = by_chance[_i];
    tick_of(2, 200);
    is_in(2, "CANARY");
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

START_TEST(one_failure_of_99_is_no_breach_but_where_none_may_be)
{
    bool is_strict = _i == 1;
    try_second(is_strict ? "{kind: canary, max_error_rate: 0}" : "canary");
    traffic.live_ppm = 10000;
    tick_of(2, 200);
    traffic.figures = (struct weir_ion_figures){.server_ms = 1, .n_requests = 99};
    tick_of(2, 200);
    is_in(2, "CANARY");
    traffic.figures.n_failed = 1;
    tick_of(2, 200);
    is_in(2, is_strict ? WEIR_CANDIDATE_ROLLED_BACK : "CANARY");
}

END_TEST

#define DRIFTING                                                                                   \
    "{kind: canary, steps: [10, 100], hold_s: 10, min_requests: 50, max_error_rate: 1,"            \
    " drift_false_alarm_rate: 0.01, drift_window: 100, timeout_s: 1000}"

/** What both have answered so far: the version n times, of which n_other as the one that serves hardly
 *  ever does; that ten times as often. */
static void answered(int64_t n, int64_t n_other)
{
    traffic.figures.n_requests = n;
    traffic.figures.outputs = weir_arena_printf(
        &arena, "{\"classes\":[%" PRId64 ",%" PRId64 "],\"scores\":[0,%" PRId64 "]}", n - n_other,
        n_other, n);
    traffic.figures.live_outputs = weir_arena_printf(
        &arena, "{\"classes\":[%" PRId64 ",%" PRId64 "],\"scores\":[0,%" PRId64 "]}", n * 99 / 10,
        n / 10, n * 99 / 10 + n / 10);
}

START_TEST(outputs_are_compared_at_doubling_numbers_and_each_look_counts)
{
    try_second(DRIFTING);
    traffic.live_ppm = 100000;
    answered(5000, 4000); /* before the step: of no interest */
    tick_of(2, 200);
    said("it answers 10 %");
    answered(5099, 4001);
    tick_of(2, 20000);
    ck_assert_uint_eq(actions.n, 0); /* held long enough, and not looked at yet */
    answered(5100, 4001);
    tick_of(2, 200);
    said("no drift between the");
    is_in(2, "CANARY");
    tick_of(2, 200);
    said("it is to answer 100 %");
    traffic.live_ppm = 1000000;
    tick_of(2, 200);
    answered(5200, 4002);
    tick_of(2, 200);
    said("step 2 of 2: no drift between the");
    answered(5299, 4050);
    tick_of(2, 200);
    ck_assert_uint_eq(actions.n, 0); /* the second look is at 200 answers of the step */
    answered(5300, 4050);
    tick_of(2, 200);
    said("drift: the classes of 200 answers");
    is_in(2, WEIR_CANDIDATE_ROLLED_BACK);
    is_in(1, WEIR_CANDIDATE_SERVING);
    wants(1, 0, 0, 0);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
}

END_TEST

START_TEST(a_step_whose_outputs_nobody_sees_does_not_end_well)
{
    try_second(DRIFTING);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    traffic.figures.n_requests = 5000; /* of a model that is no classifier */
    tick_of(2, 200);
    said("the guard on drift sees nothing");
    tick_of(2, 999599);
    ck_assert_uint_eq(actions.n, 0);
    tick_of(2, 1);
    said("too few outputs to compare");
    is_in(2, WEIR_CANDIDATE_ROLLED_BACK);
}

END_TEST

START_TEST(looks_count_on_when_the_server_starts_again)
{
    try_second(DRIFTING);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    answered(100, 1);
    tick_of(2, 200);
    said("no drift between the");
    traffic.figures = (struct weir_ion_figures){.server_ms = 2};
    answered(199, 150);
    tick_of(2, 200);
    ck_assert_uint_eq(actions.n, 0);
    answered(200, 150);
    tick_of(2, 200);
    said("drift: the classes of 200 answers");
}

END_TEST

START_TEST(what_does_not_load_or_takes_too_long_is_rolled_back)
{
    try_second(CANARY);
    if (_i == 0) {
        traffic.problem = "no such file";
        tick_of(2, 200);
        said("a replica cannot serve it: no such file");
    } else {
        tick_of(2, 99999);
        is_in(2, "CANARY");
        tick_of(2, 1);
        said("did not end within 100 s");
    }
    is_in(2, WEIR_CANDIDATE_ROLLED_BACK);
    wants(1, 0, 0, 0);
}

END_TEST

START_TEST(figures_of_another_server_count_from_its_start)
{
    try_second(CANARY);
    traffic.live_ppm = 100000;
    traffic.figures =
        (struct weir_ion_figures){.server_ms = 1, .n_requests = 1000, .n_failed = 900};
    tick_of(2, 200); /* all of that was before the step */
    tick_of(2, 200);
    is_in(2, "CANARY");
    traffic.figures = (struct weir_ion_figures){.server_ms = 2, .n_requests = 30, .n_failed = 30};
    tick_of(2, 200);
    said("30 of 30 requests failed");
}

END_TEST

START_TEST(one_is_tried_at_a_time_and_a_person_can_end_it)
{
    try_second(CANARY);
    must(model(&arena, "t", 3));
    is_in(3, WEIR_CANDIDATE_WAITING);
    said("version 2 is being tried");
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_REJECT, .version = 2, .actor = "ann", .note = "no"});
    is_in(2, WEIR_CANDIDATE_REJECTED);
    wants(1, 0, 0, 0);
    tick_of(3, 200);
    is_in(3, "CANARY");
    wants(1, 3, 100000, 3);
}

END_TEST

START_TEST(a_sandbox_and_a_link_that_serves_nothing_try_nothing)
{
    apply_to(CANARY, WEIR_ION_SANDBOX);
    must(model(&arena, "t", 1));
    said("canary: a sandbox");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 0);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_PROMOTED, .actor = "ann"});
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    wants(1, 0, 0, 0);
}

END_TEST

/** The only shift that the last event asked for: what it says of a link that is gone, or not at all. */
static const struct weir_ion_action *only_shift(void)
{
    const struct weir_ion_action *found = NULL;
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 1);
    for (size_t i = 0; i < actions.n; i++) {
        found = actions.items[i].type == WEIR_ION_ACTION_SHIFT ? &actions.items[i] : found;
    }
    return found;
}

START_TEST(a_trial_ends_with_its_ion_or_its_link)
{
    try_second(CANARY);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    char *key_before = weir_arena_printf(
        &arena, "shift_deployment:x:" LINK ":%" PRId64 ":1:production", state.ion.n_decisions);
    now_ms += 1000;
    if (_i == 0) {
        must((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
    } else {
        apply_another_link();
    }
    const struct weir_ion_action *shift = only_shift();
    ck_assert_str_eq(shift->pipeline, LINK);
    ck_assert_str_eq(shift->deployment, "d");
    ck_assert_str_eq(shift->wanted.model, "x.t");
    ck_assert_int_eq(shift->wanted.serving, 1);
    ck_assert_int_eq(shift->wanted.trial, 2);
    ck_assert_int_eq(shift->wanted.trial_ppm, 0);
    ck_assert_int_eq(shift->wanted.mirror, 0);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE),
                      _i == 0 ? 2 : 1); /* of t, too */
    ck_assert_str_ne(only_shift()->key, key_before);
    said("it was being tried");
    is_in(2, WEIR_CANDIDATE_ROLLED_BACK);
    ck_assert_int_eq(require_candidate(&state, 2)->share_ppm, 0);
    ck_assert_int_eq(require_candidate(&state, 2)->updated_ms, now_ms);
    ck_assert_ptr_null(weir_ion_watching(&state, require_candidate(&state, 2)));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_DECIDED), 1);
}

END_TEST

START_TEST(a_link_that_goes_without_a_trial_leaves_its_deployment_alone)
{
    apply_to(CANARY, NULL);
    must(model(&arena, "t", 1));
    apply_another_link();
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 0);
}

END_TEST

START_TEST(a_trial_without_its_file_is_over)
{
    apply_to("[manual, " CANARY "]", NULL);
    must(model(&arena, "t", 2));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "ann"});
    is_in(2, WEIR_CANDIDATE_SERVING);
    must(model(&arena, "t", 3));
    require_candidate(&state, 3)->blob = ""; /* deleted while the ION was */
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .version = 3, .actor = "ann"});
    said("its version was deleted");
    is_in(3, WEIR_CANDIDATE_REJECTED);
    wants(2, 0, 0, 0);
}

END_TEST

START_TEST(an_ion_that_comes_back_as_a_sandbox_asks_for_nothing)
{
    try_second(CANARY);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
    require_candidate(&state, 1)->blob = "";
    apply_to(CANARY, WEIR_ION_SANDBOX);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_SHIFT), 0);
    is_in(1, WEIR_CANDIDATE_RETIRED); /* its version was deleted meanwhile */
}

END_TEST

#define SHADOW                                                                                     \
    "{kind: shadow, min_requests: 100, max_disagreement: 0.1, max_latency_ratio: 2, timeout_s: "   \
    "60}"

static const struct {
    int64_t n_disagreed, copies_us;
    const char *state, *words;
} shadows[] = {
    {10, 1500, WEIR_CANDIDATE_SERVING, "10 of 100 answers differed, in 1.5 times the time"},
    {11, 1500, WEIR_CANDIDATE_REJECTED, "11 of 100 answers were not those"},
    {10, 2100, WEIR_CANDIDATE_REJECTED, "took 2.1 times as long"},
};

START_TEST(a_shadow_compares_answers_and_judges_once)
{
    try_second(SHADOW);
    is_in(2, "SHADOW");
    wants(1, 2, 0, 2);
    traffic.is_ready = true;
    tick_of(2, 200);
    said("it gets copies");
    traffic.figures.n_compared = 99;
    tick_of(2, 200);
    ck_assert_uint_eq(actions.n, 0);
    traffic.figures = (struct weir_ion_figures){.server_ms = 1,
                                                .n_compared = 100,
                                                .compared_us = 1000,
                                                .n_disagreed = shadows[_i].n_disagreed,
                                                .copies_us = shadows[_i].copies_us};
    tick_of(2, 200);
    said(shadows[_i].words);
    is_in(2, shadows[_i].state);
}

END_TEST

START_TEST(a_shadow_that_sees_too_little_is_rejected)
{
    try_second(SHADOW);
    tick_of(2, 60000);
    said("0 of 100 requests were compared within 60 s");
    is_in(2, WEIR_CANDIDATE_REJECTED);
    wants(1, 0, 0, 0);
}

END_TEST

START_TEST(what_cannot_be_judged_says_so_once_and_as_long_as_it_is_so)
{
    try_second("{kind: canary, steps: [10, 100], hold_s: 10, min_requests: 160, timeout_s: 800}");
    tick_of(2, 59999);
    ck_assert_uint_eq(actions.n, 0);
    tick_of(2, 1);
    said("it cannot be judged: no replica has it loaded yet");
    int64_t n_decisions = state.ion.n_decisions;
    tick_of(2, 20000);
    ck_assert_int_eq(state.ion.n_decisions, n_decisions);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    said("it answers 10 %");
    ck_assert_ptr_null(require_candidate(&state, 2)->blocked);
    int64_t begun_ms = require_candidate(&state, 2)->begun_ms;
    tick_of(2, 60000);
    said("it cannot be judged: no requests that it accepted have come so far");
    traffic.figures.n_requests = traffic.figures.n_unaccepted = 30;
    traffic.figures.live_requests = traffic.figures.live_unaccepted = 270;
    tick_of(2, 200);
    said("no requests that it accepted are among what came so far");
    traffic.figures.n_requests = 31;
    tick_of(2, 200); /* one after a minute: nobody knows yet */
    ck_assert_ptr_null(require_candidate(&state, 2)->blocked);
    tick_of(2, 40000);
    said("come too slowly: 160 are wanted");
    ck_assert_int_eq(require_candidate(&state, 2)->begun_ms, begun_ms);
    traffic.figures.n_requests = 130;
    tick_of(2, 200);
    ck_assert_ptr_null(require_candidate(&state, 2)->blocked);
    traffic.figures.n_requests = 190; /* of this step all the time */
    tick_of(2, 200);
    said("it is to answer 100 %");
}

END_TEST

START_TEST(a_guard_on_drift_that_sees_no_classifier_says_so_at_once)
{
    try_second(DRIFTING);
    traffic.live_ppm = 100000;
    tick_of(2, 200);
    traffic.figures.n_requests = 19;
    tick_of(2, 200);
    ck_assert_uint_eq(actions.n, 0);
    traffic.figures.n_requests = 20;
    tick_of(2, 200);
    said("drift is seen of classifiers only");
    ck_assert_ptr_nonnull(strstr(require_candidate(&state, 2)->waits_why, "classifiers only"));
}

END_TEST

START_TEST(a_comparison_without_outcomes_says_so)
{
    try_second("{kind: ab, min_samples: 50}");
    traffic.live_ppm = 500000;
    tick_of(2, 200);
    traffic.figures.n_requests = 49;
    tick_of(2, 60000);
    ck_assert_uint_eq(actions.n, 0);
    traffic.figures.n_requests = 50;
    tick_of(2, 200);
    said("no outcomes (conversion, told by `weir feedback` or a KPI) of both versions are among");
}

END_TEST

/** A version from the training that takes so many values. */
static void come(int64_t version, int n_values)
{
    struct weir_ion_event event = model(&arena, "t", version);
    struct weir_ion_model *made = (struct weir_ion_model *)event.models;
    made->interface = weir_arena_printf(&arena,
                                        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\","
                                        "\"shape\":[-1,%d]}],\"outputs\":[]}",
                                        n_values);
    must(event);
}

static const char *const unasked[] = {
    "always-update",    "canary",
    "shadow",           "ab",
    "[shadow, canary]", "[{kind: rate-limit, min_interval_s: 9}, always-update]"};

START_TEST(what_callers_would_notice_waits_for_a_person)
{
    apply_to(unasked[_i], NULL);
    come(1, 16);
    is_in(1, WEIR_CANDIDATE_SERVING);
    come(2, 8);
    is_in(2, WEIR_CANDIDATE_PENDING_REVIEW);
    said("a person must approve it: it is not compatible with version 1, which serves: its input x "
         "is FP32 [-1,8], before FP32 [-1,16]");
    wants(1, 0, 0, 0);
    tick_of(2, 1000000);
    is_in(2, WEIR_CANDIDATE_PENDING_REVIEW);
    ck_assert_uint_eq(actions.n, 0);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "ann"});
    ck_assert_str_ne(require_candidate(&state, 2)->state, WEIR_CANDIDATE_PENDING_REVIEW);
    come(3, 8); /* rejected, or compared with what serves now */
    if (strcmp(require_candidate(&state, 3)->state, WEIR_CANDIDATE_PENDING_REVIEW) == 0) {
        must((struct weir_ion_event){.type = WEIR_ION_EVENT_REJECT, .actor = "ann"});
        is_in(3, WEIR_CANDIDATE_REJECTED);
    }
}

END_TEST

START_TEST(what_callers_do_not_notice_waits_for_nobody)
{
    apply_to("always-update", NULL);
    come(1, 16);
    come(2, -1);
    is_in(2, WEIR_CANDIDATE_SERVING);
    must(model(&arena, "t", 3)); /* nothing is known of it */
    is_in(3, WEIR_CANDIDATE_SERVING);
}

END_TEST

START_TEST(people_who_are_asked_are_told_what_changes)
{
    apply_to("manual", NULL);
    come(1, 16);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "ann"});
    come(2, 8);
    is_in(2, WEIR_CANDIDATE_PENDING_REVIEW);
    ck_assert_str_eq(require_candidate(&state, 2)->waits_why,
                     "manual: a person must approve it; it is not compatible with version 1, which "
                     "serves: its input x is FP32 [-1,8], before FP32 [-1,16]");
}

END_TEST

START_TEST(a_chain_goes_from_shadow_over_people_to_canary)
{
    apply_to("[" SHADOW ", {kind: manual, approvals: 2}, " CANARY "]", NULL);
    must(model(&arena, "t", 1)); /* nothing to compare with: only people are asked */
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "ann"});
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "bob"});
    is_in(1, WEIR_CANDIDATE_SERVING);
    must(model(&arena, "t", 2));
    traffic.is_ready = true;
    tick_of(2, 200);
    traffic.figures.n_compared = 100;
    tick_of(2, 200);
    is_in(2, WEIR_CANDIDATE_PENDING_REVIEW);
    wants(1, 0, 0, 0);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "ann"});
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "bob"});
    is_in(2, "CANARY");
    wants(1, 2, 100000, 2);
}

END_TEST

static const struct {
    const char *link, *words;
} wrong[] = {
    {"{from: t, to: p, policy: canary}", "canary is for a link that leads to a deployment"},
    {"{from: t, to: p, policy: shadow}", "shadow is for a link that leads to a deployment"},
    {"{from: t, to: 3}", "expected the name of a prediction pipeline, or {deployment: NAME}"},
    {"{from: t, to: {deployment: d}, policy: {kind: canary, steps: [50, 10]}}", "steps[1]"},
    {"{from: t, to: {deployment: d}, policy: {kind: canary, steps: []}}", "steps: expected 1 to"},
    {"{from: t, to: {deployment: d}, policy: {kind: canary, max_error_rate: 1}}", "a guard"},
    {"{from: t, to: {deployment: d}, policy: {kind: canary, hold_s: 9, timeout_s: 9}}",
     "timeout_s"},
};

START_TEST(what_a_document_cannot_mean_is_refused_by_its_place)
{
    json_t *json;
    struct weir_ion_doc doc;
    char *yaml = weir_arena_printf(
        &arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
        " {name: p, type: prediction, source: {kind: http}}], links: [%s]}",
        wrong[_i].link);
    ck_assert_int_eq(weir_yaml_parse(yaml, strlen(yaml), "test", false, &json, &err), WEIR_OK);
    ck_assert_int_eq(weir_ion_doc_parse(json, &arena, &doc, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, wrong[_i].words) != NULL, "%s", err.message);
    json_decref(json);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ion_rollout");
    TCase *tcase = tcase_create("rollout");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_link_without_trials_gives_its_deployment_what_it_serves);
    tcase_add_test(tcase, a_canary_goes_step_by_step_and_then_serves);
    tcase_add_loop_test(tcase, a_guard_that_trips_gives_all_requests_back_at_once, 0,
                        (int)WEIR_ARRAY_LEN(guards));
    tcase_add_loop_test(tcase, what_a_few_requests_show_by_chance_trips_no_guard, 0,
                        (int)WEIR_ARRAY_LEN(by_chance));
    tcase_add_loop_test(tcase, one_failure_of_99_is_no_breach_but_where_none_may_be, 0, 2);
    tcase_add_loop_test(tcase, what_does_not_load_or_takes_too_long_is_rolled_back, 0, 2);
    tcase_add_test(tcase, outputs_are_compared_at_doubling_numbers_and_each_look_counts);
    tcase_add_test(tcase, a_step_whose_outputs_nobody_sees_does_not_end_well);
    tcase_add_test(tcase, looks_count_on_when_the_server_starts_again);
    tcase_add_test(tcase, a_trial_without_its_file_is_over);
    tcase_add_test(tcase, an_ion_that_comes_back_as_a_sandbox_asks_for_nothing);
    tcase_add_test(tcase, figures_of_another_server_count_from_its_start);
    tcase_add_test(tcase, one_is_tried_at_a_time_and_a_person_can_end_it);
    tcase_add_test(tcase, a_sandbox_and_a_link_that_serves_nothing_try_nothing);
    tcase_add_loop_test(tcase, a_trial_ends_with_its_ion_or_its_link, 0, 2);
    tcase_add_test(tcase, a_link_that_goes_without_a_trial_leaves_its_deployment_alone);
    tcase_add_loop_test(tcase, a_shadow_compares_answers_and_judges_once, 0,
                        (int)WEIR_ARRAY_LEN(shadows));
    tcase_add_test(tcase, a_shadow_that_sees_too_little_is_rejected);
    tcase_add_loop_test(tcase, what_callers_would_notice_waits_for_a_person, 0,
                        WEIR_ARRAY_LEN(unasked));
    tcase_add_test(tcase, what_cannot_be_judged_says_so_once_and_as_long_as_it_is_so);
    tcase_add_test(tcase, a_guard_on_drift_that_sees_no_classifier_says_so_at_once);
    tcase_add_test(tcase, a_comparison_without_outcomes_says_so);
    tcase_add_test(tcase, what_callers_do_not_notice_waits_for_nobody);
    tcase_add_test(tcase, people_who_are_asked_are_told_what_changes);
    tcase_add_test(tcase, a_chain_goes_from_shadow_over_people_to_canary);
    tcase_add_loop_test(tcase, what_a_document_cannot_mean_is_refused_by_its_place, 0,
                        (int)WEIR_ARRAY_LEN(wrong));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
