#include "ion/ion_step.h"

#include "ion/step/ion_play.h"

static void set_up(void)
{
    begin_ion(1000000);
}

static void must_apply(const char *policy, const char *triggers)
{
    must(applied(&arena, policy, triggers, 1));
}

static struct weir_ion_event asked(enum weir_ion_event_type type, int64_t version)
{
    return (struct weir_ion_event){.type = type, .version = version, .actor = "ann", .note = "why"};
}

static struct weir_ion_event ended(enum weir_ion_event_type type, int64_t training)
{
    return (struct weir_ion_event){
        .type = type, .pipeline = "t", .training = training, .note = "oops"};
}

static int64_t serving_version(void)
{
    const struct weir_ion_candidate *candidate = serving(&state, "t:p");
    return candidate != NULL ? candidate->version : 0;
}

static const char *candidate_state(int64_t version)
{
    for (size_t i = 0; i < state.n_candidates; i++) {
        if (state.candidates[i].version == version) {
            return state.candidates[i].state;
        }
    }
    return "none";
}

START_TEST(always_update_takes_each_new_model_and_says_so)
{
    must_apply("always-update", "{}");
    ck_assert_str_eq(pipeline_of(&state, "p")->state, "WAITING");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 0);
    must(model(&arena, "t", 1));
    ck_assert_int_eq(serving_version(), 1);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 1);
    const struct weir_policy_decision *decision = &find_action(WEIR_ION_ACTION_DECIDED)->decision;
    ck_assert_str_eq(decision->verdict, "promote");
    ck_assert_str_eq(decision->policy, "always-update");
    ck_assert_str_eq(decision->actor, "policy");
    ck_assert_ptr_nonnull(strstr(decision->inputs, "\"accuracy\""));
    must(model(&arena, "t", 2));
    ck_assert_int_eq(serving_version(), 2);
    ck_assert_str_eq(candidate_state(1), "RETIRED");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 0);
    ck_assert_int_eq(find_action(WEIR_ION_ACTION_DEPLOYED)->number, 2);
    must(model(&arena, "t", 2)); /* Told twice, done once. */
    ck_assert_uint_eq(actions.n, 0);
    must(model(&arena, "elsewhere", 3));
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

START_TEST(a_model_that_comes_late_does_not_replace_a_newer_one)
{
    must_apply("always-update", "{}");
    must(model(&arena, "t", 2));
    must(model(&arena, "t", 1));
    ck_assert_int_eq(serving_version(), 2);
    ck_assert_str_eq(candidate_state(1), "REJECTED");
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_DECIDED)->decision.verdict, "skip");
}

END_TEST

START_TEST(a_manual_link_waits_for_a_person)
{
    must_apply("manual", "{}");
    must(model(&arena, "t", 1));
    must(model(&arena, "t", 2));
    must(model(&arena, "t", 3));
    ck_assert_int_eq(serving_version(), 0);
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_DECIDED)->decision.verdict, "wait");
    must(asked(WEIR_ION_EVENT_REJECT, 2));
    ck_assert_str_eq(candidate_state(2), "REJECTED");
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_APPROVE, 2)), WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, "REJECTED"));
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_APPROVE, 9)), WEIR_ERR_NOT_FOUND);
    must(asked(WEIR_ION_EVENT_APPROVE, 0));
    ck_assert_int_eq(serving_version(), 3);
    const struct weir_policy_decision *decision = &find_action(WEIR_ION_ACTION_DECIDED)->decision;
    ck_assert_str_eq(decision->actor, "ann");
    ck_assert_str_eq(decision->note, "why");
    must(asked(WEIR_ION_EVENT_APPROVE, 1)); /* An older one, but a person wants it. */
    ck_assert_int_eq(serving_version(), 1);
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_APPROVE, 0)), WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, "nothing waits"));
}

END_TEST

START_TEST(a_rollback_goes_to_what_served_before_and_newer_models_are_still_taken)
{
    must_apply("always-update", "{}");
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_ROLLBACK, 0)), WEIR_ERR_CONFLICT);
    for (int64_t version = 1; version <= 3; version++) {
        must(model(&arena, "t", version));
    }
    must(asked(WEIR_ION_EVENT_ROLLBACK, 0));
    ck_assert_int_eq(serving_version(), 2);
    ck_assert_str_eq(candidate_state(3), "ROLLED_BACK");
    must(asked(WEIR_ION_EVENT_ROLLBACK, 0));
    ck_assert_int_eq(serving_version(), 1); /* Not back to 3. */
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_ROLLBACK, 0)), WEIR_ERR_CONFLICT);
    must(asked(WEIR_ION_EVENT_ROLLBACK, 3)); /* By name it may be one that was rolled back. */
    ck_assert_int_eq(serving_version(), 3);
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_ROLLBACK, 3)), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_ROLLBACK, 7)), WEIR_ERR_NOT_FOUND);
    must(model(&arena, "t", 4));
    ck_assert_int_eq(serving_version(), 4);
}

END_TEST

START_TEST(triggers_while_training_are_folded_into_one_more)
{
    must_apply("manual", "{new_data: true}");
    struct weir_ion_event trigger = asked(WEIR_ION_EVENT_TRIGGER, 0);
    trigger.pipeline = "t";
    must(trigger);
    const struct weir_ion_action *start = find_action(WEIR_ION_ACTION_START_TRAINING);
    ck_assert_str_eq(start->key, "start_training:x:t:1");
    ck_assert_str_eq(start->message, "by hand (ann)");
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_STARTED, .pipeline = "t", .training = 1, .job = "j1", .run = "r1"});
    ck_assert_str_eq(pipeline_of(&state, "t")->job, "j1");
    must(dataset("faces", 1));
    must(trigger);
    must(dataset("faces", 2));
    must(dataset("faces", 2));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_TRAINING), 0);
    must(ended(WEIR_ION_EVENT_FINISHED, 1));
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->message, "faces version 1");
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 2);
    ck_assert_ptr_null(pipeline_of(&state, "t")->job);
    must(ended(WEIR_ION_EVENT_FINISHED, 1)); /* Told twice. */
    ck_assert_uint_eq(actions.n, 0);
    must(ended(WEIR_ION_EVENT_FAILED, 2));
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
    ck_assert_ptr_nonnull(strstr(find_action(WEIR_ION_ACTION_ALERT)->message, "oops"));
    must(dataset("faces", 3));
    ck_assert_int_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->number, 3);
    must(ended(WEIR_ION_EVENT_FINISHED, 3));
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_RESOLVE)->key, "training_failed:x:t");
}

END_TEST

/** An unresolved alert, by the actions of all steps so far. */
static int alert_level;

static void must_seeing_alerts(struct weir_ion_event event)
{
    must(event);
    alert_level += (int)n_actions(&actions, WEIR_ION_ACTION_ALERT);
    alert_level = n_actions(&actions, WEIR_ION_ACTION_RESOLVE) > 0 ? 0 : alert_level;
}

START_TEST(a_training_that_a_person_cancels_is_no_failure)
{
    must_apply("manual", "{}");
    struct weir_ion_event trigger = asked(WEIR_ION_EVENT_TRIGGER, 0);
    trigger.pipeline = "t";
    struct weir_ion_event cancelled = ended(WEIR_ION_EVENT_CANCELLED, 1);
    cancelled.note = "cancelled by ann";
    alert_level = 0;
    must_seeing_alerts(trigger);
    must_seeing_alerts(cancelled);
    ck_assert_int_eq(alert_level, 0);
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
    ck_assert_ptr_null(pipeline_of(&state, "t")->job);
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_EVENT)->kind, "training_cancelled");
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_EVENT)->message,
                     "Training 1 of pipeline t was cancelled by ann.");
    /* The alert of a failure before it stays: nothing has succeeded. What waits goes on. */
    must_seeing_alerts(trigger);
    must_seeing_alerts(ended(WEIR_ION_EVENT_FAILED, 2));
    ck_assert_int_eq(alert_level, 1);
    must_seeing_alerts(trigger);
    must_seeing_alerts(trigger);
    cancelled.training = 3;
    must_seeing_alerts(cancelled);
    ck_assert_int_eq(alert_level, 1);
    ck_assert_int_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->number, 4);
    must_seeing_alerts(ended(WEIR_ION_EVENT_FINISHED, 4));
    ck_assert_int_eq(alert_level, 0);
    must_seeing_alerts(trigger);
    must_seeing_alerts(ended(WEIR_ION_EVENT_FAILED, 5));
    must_seeing_alerts(asked(WEIR_ION_EVENT_DELETED, 0)); /* nobody is to mend it any more */
    ck_assert_int_eq(alert_level, 0);
}

END_TEST

START_TEST(who_may_not_be_triggered_says_why)
{
    must_apply("manual", "{manual: false}");
    struct weir_ion_event trigger = asked(WEIR_ION_EVENT_TRIGGER, 0);
    trigger.pipeline = "t";
    ck_assert_int_eq(step(trigger), WEIR_ERR_CONFLICT);
    trigger.pipeline = "p";
    ck_assert_int_eq(step(trigger), WEIR_ERR_INVALID);
    trigger.pipeline = "q";
    ck_assert_int_eq(step(trigger), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(a_schedule_fires_and_missed_times_are_one_trigger)
{
    now_ms = 0;
    must_apply("manual", "{schedule: '0 0 3 * * ?'}");
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), 3 * 3600000);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    ck_assert_uint_eq(actions.n, 0);
    now_ms = 10LL * 86400000;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_TRAINING), 1);
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), (10LL * 24 + 3) * 3600000);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

static size_t ticks_at(int64_t when_ms)
{
    now_ms = when_ms - 1000; /* step() adds it. */
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
    return n_actions(&actions, WEIR_ION_ACTION_START_TRAINING);
}

START_TEST(a_schedule_keeps_its_times_when_the_clock_is_set_back)
{
    const int64_t hour_ms = 3600000, day_ms = 24 * hour_ms;
    now_ms = 40 * day_ms;
    must_apply("manual", "{schedule: '0 0 3 * * ?'}");
    /* The clock had been a month ahead: it was the 41st day, not the 71st. */
    ck_assert_uint_eq(ticks_at(70 * day_ms + 3 * hour_ms), 1);
    must(ended(WEIR_ION_EVENT_FINISHED, 1));
    int64_t true_ms = 40 * day_ms + hour_ms;
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, true_ms), true_ms);
    ck_assert_uint_eq(ticks_at(true_ms), 0);
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, true_ms), 40 * day_ms + 3 * hour_ms);
    ck_assert_uint_eq(ticks_at(40 * day_ms + 3 * hour_ms), 1);
    must(ended(WEIR_ION_EVENT_FINISHED, 2));
    /* Put right by seconds, it does not fire the same time twice. */
    int64_t again_ms = 40 * day_ms + 3 * hour_ms - 5000;
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, again_ms), 41 * day_ms + 3 * hour_ms);
    ck_assert_uint_eq(ticks_at(again_ms), 0);
    ck_assert_uint_eq(ticks_at(again_ms + 10000), 0);
}

END_TEST

START_TEST(a_schedule_that_seemed_over_comes_back_with_the_clock)
{
    const int64_t day_ms = 86400000;
    now_ms = 0;
    must_apply("manual", "{schedule: '0 0 3 2 1 ? 1970'}");
    ck_assert_uint_eq(ticks_at(400 * day_ms), 1);
    must(ended(WEIR_ION_EVENT_FINISHED, 1));
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, 401 * day_ms), INT64_MAX);
    ck_assert_uint_eq(ticks_at(day_ms), 0);
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, day_ms), day_ms + 3 * 3600000);
}

END_TEST

/** As a server of before left it: triggers had no rows. */
START_TEST(a_time_that_passed_before_triggers_had_rows_still_fires)
{
    const int64_t hour_ms = 3600000;
    now_ms = 0;
    must_apply("manual", "{schedule: '0 0 3 * * ?'}");
    int64_t next_ms = pipeline_of(&state, "t")->runs.next_fire_ms;
    ck_assert_int_eq(next_ms, 3 * hour_ms);
    state.triggers = NULL;
    state.n_triggers = 0;
    struct weir_ion_event trigger = asked(WEIR_ION_EVENT_TRIGGER, 0);
    trigger.pipeline = "none";
    now_ms = 5 * hour_ms;
    char *before = dump_state(&state, &arena);
    ck_assert_int_eq(step(trigger), WEIR_ERR_NOT_FOUND);
    ck_assert_str_eq(dump_state(&state, &arena), before);
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), now_ms);
    ck_assert_uint_eq(ticks_at(now_ms), 1);
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.next_fire_ms, 27 * hour_ms);
    ck_assert_uint_eq(ticks_at(now_ms), 0);
}

END_TEST

START_TEST(data_that_is_there_when_the_document_is_applied_starts_the_first_training)
{
    static const struct weir_ion_dataset datasets[] = {{"faces", 4, "/faces", "d", "b", 0, 0, 0},
                                                       {"people", 2, "/people", "d", "b", 0, 0, 0}};
    struct weir_ion_event apply = applied(&arena, "always-update", "{new_data: true}", 1);
    apply.datasets = datasets;
    apply.n_datasets = 2;
    must(apply);
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->message, "faces version 4");
    ck_assert_int_eq(pipeline_of(&state, "p")->service.gallery.version, 2);
    must(apply); /* Nothing has changed. */
    ck_assert_uint_eq(actions.n, 0);
    ck_assert_int_eq(state.ion.revision, 1);
    must(dataset("faces", 4));
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

static json_t *deployment(void)
{
    const char *text = pipeline_of(&state, "p")->service.deployment;
    ck_assert_ptr_nonnull(text);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

START_TEST(a_deployment_says_all_that_a_replica_needs_and_counts_its_changes)
{
    static const struct weir_ion_member members[] = {{"x:ann", "x", "ann", "allow", "bob", 1},
                                                     {"x:eve", "x", "eve", "deny", "bob", 1}};
    must_apply("always-update", "{}");
    must(model(&arena, "t", 7));
    must(dataset("people", 3));
    state.members = members;
    state.n_members = 2;
    state.ion.list_revision = 5;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_LISTS});
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_LISTS}); /* Nothing new. */
    ck_assert_uint_eq(actions.n, 0);
    json_t *json = deployment();
    json_t *expected = json_loads(
        "{\"revision\":3,\"model\":{\"name\":\"x.t\",\"version\":7,\"id\":\"t-v7\",\"blob\":"
        "\"b10b\"},\"stages\":[\"decode\",\"embed\",\"match\",\"decide\"],"
        "\"gallery\":{\"dataset\":\"people\",\"version\":3,\"path\":\"/"
        "data\",\"digest\":\"d16e57\","
        "\"blob\":\"b10b\",\"impostors\":null},\"list_revision\":5,\"lists\":{\"allow\":[\"ann\"],"
        "\"deny\":[\"eve\"]},"
        "\"default\":\"allow\",\"false_accept_rate\":0.01,\"false_deny_rate\":0.01,\"source\":{"
        "\"kind\":\"http\"},\"sinks\":"
        "[]}",
        0, NULL);
    ck_assert_ptr_nonnull(expected);
    ck_assert_msg(json_equal(json, expected), "%s", pipeline_of(&state, "p")->service.deployment);
    json_decref(json);
    json_decref(expected);
    const struct weir_ion_lock_down gate = {.door = "gate"};
    state.lock_downs = &gate;
    state.n_lock_downs = 1;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_LISTS});
    json = deployment();
    expected = json_pack("[s]", "gate");
    ck_assert(json_equal(json_object_get(json_object_get(json, "lists"), "locked"), expected));
    json_decref(json);
    json_decref(expected);
}

END_TEST

/* As applied(), with a detector of this name, of which there is a version. */
static struct weir_ion_event applied_of(const char *name, int64_t version, const char *training)
{
    static struct weir_ion_named_detector detector;
    char *text;
    char *yaml = weir_arena_printf(
        &arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m%s},"
        " {name: p, type: prediction, source: {kind: http}, gallery: {dataset: people}, stages: "
        "[decode, "
        "{kind: detect, model: %s}, align, embed, match, track, decide]}],"
        " links: [{from: t, to: p, policy: always-update}]}",
        training, name);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    detector = (struct weir_ion_named_detector){
        "p", {.name = "faces", .model_version = "f-1", .version = version, .blob = "f00d"}};
    event.detectors = &detector;
    event.n_detectors = version > 0;
    return event;
}

static struct weir_ion_event applied_with_detector(const char *name, int64_t version)
{
    return applied_of(name, version, "");
}

static void check_detector(int64_t version, int64_t revision)
{
    json_t *json = deployment();
    json_t *detector = json_object_get(json, "detector");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "revision")), revision);
    ck_assert_str_eq(json_string_value(json_object_get(detector, "name")), "faces");
    ck_assert_int_eq(json_integer_value(json_object_get(detector, "version")), version);
    json_decref(json);
}

static void offer_detector(int64_t version, const char *alias)
{
    struct weir_ion_model faces = {.name = "faces",
                                   .model_version =
                                       weir_arena_printf(&arena, "f-%lld", (long long)version),
                                   .version = version,
                                   .blob = "f00d"};
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_MODEL,
                                 .actor = "ann",
                                 .models = &faces,
                                 .n_models = 1,
                                 .aliases = alias != NULL ? &alias : NULL});
}

START_TEST(a_detector_is_served_as_its_name_says_and_moves_with_it)
{
    must(applied_with_detector("faces@best", 0));
    must(model(&arena, "t", 7));
    ck_assert_ptr_null(pipeline_of(&state, "p")->service.deployment); /* It has no detector yet. */
    ck_assert_ptr_nonnull(
        strstr(pipeline_of(&state, "p")->state_reason, "weir model alias faces best"));
    offer_detector(3, NULL); /* No alias names it. */
    ck_assert_ptr_null(pipeline_of(&state, "p")->service.deployment);
    offer_detector(3, "best");
    check_detector(3, 1);
    offer_detector(2, "best"); /* An alias may go back. */
    check_detector(2, 2);
    offer_detector(9, "other");
    check_detector(2, 2);
    must(applied_with_detector("faces", 4));
    check_detector(4, 3);
    offer_detector(5, NULL);
    check_detector(5, 4);
    offer_detector(3, NULL);
    check_detector(5, 4);
    must(applied_with_detector("faces/1", 1));
    check_detector(1, 5);
    offer_detector(6, NULL);
    check_detector(1, 5);
}

END_TEST

START_TEST(a_training_that_a_detector_cuts_waits_for_its_first_version)
{
    static const char cut[] = ", cut_as: p, triggers: {manual: true, new_data: true}";
    const struct weir_ion_pipeline *training;
    must(applied_of("faces@best", 0, cut));
    must(dataset("faces", 2));
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .actor = "ann", .pipeline = (char *)"t"});
    training = pipeline_of(&state, "t");
    ck_assert_str_eq(training->state, "IDLE");
    ck_assert_int_eq(training->runs.training, 0);
    ck_assert_msg(strstr(training->state_reason, "weir model alias faces best") != NULL, "%s",
                  training->state_reason);
    offer_detector(3, NULL); /* No alias names it. */
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 0);
    offer_detector(3, "best"); /* One run, of both wishes. */
    training = pipeline_of(&state, "t");
    ck_assert_str_eq(training->state, "TRAINING");
    ck_assert_int_eq(training->runs.training, 1);
    ck_assert_ptr_null(training->state_reason);
    ck_assert_ptr_null(training->runs.pending_cause);
}

END_TEST

START_TEST(a_training_starts_at_once_with_a_detector_that_is_there)
{
    static const char cut[] = ", cut_as: p, triggers: {new_data: true}";
    must(applied_of("faces", 4, cut));
    must(dataset("faces", 2));
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 1);
    must(applied_of("others", 0, cut)); /* Another, of which there is none yet: it waits. */
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_FINISHED, .pipeline = (char *)"t", .training = 1});
    must(dataset("faces", 3));
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 1);
    ck_assert_ptr_nonnull(strstr(pipeline_of(&state, "t")->state_reason, "needs model others"));
    must(applied_of("others", 0, "")); /* Not cut any more: it goes on. */
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 2);
}

END_TEST

/* The training stands before the pipeline that it is cut as, and its data comes with the document. */
START_TEST(a_training_does_not_start_with_what_another_alias_named)
{
    static const char cut[] = ", cut_as: p, triggers: {new_data: true}";
    struct weir_ion_dataset faces = {
        .name = (char *)"faces", .version = 2, .path = (char *)"/d/faces", .digest = (char *)"d"};
    for (int i = 0; i < 2; i++) { /* Applied over the other, and once that was deleted. */
        must(applied_of("faces@best", 4, cut));
        if (i == 1) {
            must((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
        }
        struct weir_ion_event event = applied_of(i == 0 ? "faces@new" : "faces@best", 0, cut);
        event.datasets = &faces;
        event.n_datasets = 1;
        must(event);
        ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 0);
        ck_assert_ptr_nonnull(pipeline_of(&state, "t")->runs.pending_cause);
        must((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED, .actor = "ann"});
    }
}

END_TEST

START_TEST(a_training_that_another_run_holds_does_not_say_that_its_detector_is_missing)
{
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(
        &arena,
        "{name: x, pipelines: [{name: a, type: preparation, dataset: raw, output: faces,"
        " parameters: {argv: [a]}}, {name: t, type: training, dataset: faces, model: m,"
        " cut_as: p, triggers: [manual]}, {name: p, type: prediction, source: {kind: http},"
        " gallery: {dataset: people}, stages: [decode, {kind: detect, model: faces}, align, embed,"
        " match, decide]}], links: [{from: a, to: t, dataset: faces},"
        " {from: t, to: p, policy: always-update}]}",
        &text);
    event.document = text;
    must(event);
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .actor = "ann", .pipeline = (char *)"t"});
    ck_assert_ptr_nonnull(strstr(pipeline_of(&state, "t")->state_reason, "needs model faces"));
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .actor = "ann", .pipeline = (char *)"a"});
    ck_assert_str_eq(pipeline_of(&state, "a")->state, "RUNNING");
    offer_detector(3, NULL);
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
    ck_assert_ptr_null(pipeline_of(&state, "t")->state_reason);
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_FAILED, .pipeline = (char *)"a", .training = 1});
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "TRAINING");
}

END_TEST

START_TEST(a_detector_that_is_the_model_is_served_as_both)
{
    char *text;
    struct weir_ion_model faces = {
        .name = "faces", .model_version = "f-1", .version = 3, .blob = "f00d"};
    struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_APPLIED, .actor = "ann", .models = &faces, .n_models = 1};
    event.doc = doc_from_yaml(&arena,
                              "{name: x, pipelines: [{name: p, type: prediction, source: {kind: "
                              "http}, stages: [decode, {kind: detect, model: faces}, track, count, "
                              "decide]}]}",
                              &text);
    event.document = text;
    must(event);
    check_detector(3, 1);
    json_t *json = deployment();
    ck_assert(json_equal(json_object_get(json, "model"), json_object_get(json, "detector")));
    json_decref(json);
    offer_detector(4, NULL);
    check_detector(4, 2);
}

END_TEST

/* As applied(), with impostors in the gallery (NULL: none). */
static struct weir_ion_event applied_with(const char *impostors)
{
    char *text;
    char *yaml = weir_arena_printf(
        &arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
        " {name: p, type: prediction, source: {kind: http}, gallery: {dataset: people%s%s}}],"
        " links: [{from: t, to: p, policy: always-update}]}",
        impostors != NULL ? ", impostors: " : "", impostors != NULL ? impostors : "");
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    return event;
}

/* Version of the deployment's impostors; 0 if it has none. Checks the deployment's revision. */
static int64_t impostors_at(int64_t revision)
{
    json_t *json = deployment();
    ck_assert_int_eq(json_integer_value(json_object_get(json, "revision")), revision);
    json_t *impostors = json_object_get(json_object_get(json, "gallery"), "impostors");
    int64_t version = json_integer_value(json_object_get(impostors, "version"));
    json_decref(json);
    return version;
}

START_TEST(a_new_version_of_the_impostors_is_a_new_deployment)
{
    static const struct weir_ion_dataset other = {"visitors", 9, "/v", "d", "b", 0, 0, 0};
    must(applied_with("passers-by"));
    must(model(&arena, "t", 7));
    must(dataset("people", 3));
    ck_assert_int_eq(impostors_at(2), 0); /* Nobody yet: the gallery serves without. */
    must(dataset("passers-by", 1));
    ck_assert_int_eq(impostors_at(3), 1);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_DEPLOYED), 1);
    must(dataset("passers-by", 1)); /* The same again. */
    ck_assert_uint_eq(actions.n, 0);
    must(dataset("visitors", 5)); /* Somebody else's. */
    ck_assert_int_eq(impostors_at(3), 1);
    must(dataset("passers-by", 4));
    ck_assert_int_eq(impostors_at(4), 4);
    struct weir_ion_event apply = applied_with("visitors");
    apply.datasets = &other;
    apply.n_datasets = 1;
    must(apply);
    ck_assert_int_eq(impostors_at(5), 9);
    must(applied_with(NULL));
    ck_assert_int_eq(impostors_at(6), 0);
}

END_TEST

START_TEST(replicas_start_anew_when_their_number_changes)
{
    must_apply("always-update", "{}");
    must(model(&arena, "t", 1));
    must(applied(&arena, "always-update", "{}", 2));
    /* The first start has not been carried out: it will read the new document. */
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 0);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = "j1"});
    must(applied(&arena, "always-update", "{}", 3));
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_STOP_PREDICTION)->job, "j1");
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_START_PREDICTION)->key, "start_prediction:x:p:2");
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = "j2"});
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_FAILED, .pipeline = "p", .job = "j1"});
    ck_assert_str_eq(pipeline_of(&state, "p")->job, "j2");
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_FAILED, .pipeline = "p", .job = "j2"});
    must(model(&arena, "t", 2));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 1);
}

END_TEST

START_TEST(replicas_start_anew_when_their_gpus_change)
{
    must_apply("always-update", "{}");
    must(model(&arena, "t", 1));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = "j1"});
    must(applied_as(&arena, "always-update", "{}", "1, gpus: 2"));
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_STOP_PREDICTION)->job, "j1");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 1);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = "j2"});
    must(applied_as(&arena, "always-update", "{}", "1, gpus: 2"));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 0);
}

END_TEST

START_TEST(deleting_stops_everything_and_applying_again_brings_back_what_served)
{
    must_apply("manual", "{}");
    must(model(&arena, "t", 1));
    must(asked(WEIR_ION_EVENT_APPROVE, 1));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = "j1"});
    struct weir_ion_event trigger = asked(WEIR_ION_EVENT_TRIGGER, 0);
    trigger.pipeline = "t";
    must(trigger);
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_STARTED, .pipeline = "t", .training = 1, .job = "j2"});
    must(asked(WEIR_ION_EVENT_DELETED, 0));
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_STOP_PREDICTION)->job, "j1");
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_STOP_TRAINING)->job, "j2");
    ck_assert_str_eq(candidate_state(1), "RETIRED");
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_DELETED, 0)), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(step(trigger), WEIR_ERR_CONFLICT);
    must(ended(WEIR_ION_EVENT_FAILED, 1));
    must(model(&arena, "t", 2));
    ck_assert_uint_eq(actions.n, 0);
    must_apply("manual", "{}");
    ck_assert_int_eq(serving_version(), 1);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 1);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_DECIDED), 1);
    must(trigger);
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->key, "start_training:x:t:2");
}

END_TEST

static struct weir_ion_event pushed(const char *name, int64_t version)
{
    return model_of(&arena, name, NULL, version,
                    weir_arena_printf(&arena, "%s-v%lld", name, (long long)version));
}

/* A document whose link begins at the model "free", of which `version` is the newest; 0: none. */
static struct weir_ion_event applied_to_model(const char *policy, int64_t version)
{
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    char *text;
    event.doc = doc_from_yaml(
        &arena,
        weir_arena_printf(
            &arena,
            "{name: x, pipelines: [{name: p, type: prediction, source: {kind: http}}],"
            " links: [{from: {model: free}, to: p, policy: %s}]}",
            policy),
        &text);
    event.document = text;
    event.models = pushed("free", version).models;
    event.n_models = version > 0;
    return event;
}

static int64_t served_of_model(void)
{
    const struct weir_ion_candidate *candidate = serving(&state, "model/free:p");
    return candidate != NULL ? candidate->version : 0;
}

START_TEST(a_registered_models_versions_come_to_its_link)
{
    must(applied_to_model("always-update", 3)); /* It was there before. */
    ck_assert_int_eq(served_of_model(), 3);
    ck_assert_ptr_nonnull(
        strstr(pipeline_of(&state, "p")->service.deployment, "\"name\":\"free\""));
    ck_assert_ptr_nonnull(strstr(pipeline_of(&state, "p")->service.deployment, "\"classify\""));
    must(pushed("other", 9)); /* Another model's. */
    ck_assert_uint_eq(actions.n, 0);
    must(pushed("free", 4));
    ck_assert_int_eq(served_of_model(), 4);
    must(pushed("free", 4)); /* The same again. */
    ck_assert_uint_eq(actions.n, 0);
    must(asked(WEIR_ION_EVENT_ROLLBACK, 0));
    ck_assert_int_eq(served_of_model(), 3);
    /* A person looks from now on; what came meanwhile waits, and what serves stays. */
    must(applied_to_model("manual", 6));
    ck_assert_int_eq(served_of_model(), 3);
    must(asked(WEIR_ION_EVENT_APPROVE, 6));
    ck_assert_int_eq(served_of_model(), 6);
    must(pushed("free", 7));
    must(asked(WEIR_ION_EVENT_REJECT, 7));
    ck_assert_int_eq(served_of_model(), 6);
}

END_TEST

START_TEST(a_model_without_a_version_is_waited_for)
{
    must(applied_to_model("always-update", 0));
    ck_assert_str_eq(pipeline_of(&state, "p")->state, "WAITING");
    must(pushed("free", 1));
    ck_assert_int_eq(served_of_model(), 1);
    ck_assert_str_eq(pipeline_of(&state, "p")->state, "DEPLOYING");
}

END_TEST

START_TEST(a_pipeline_that_is_added_later_gets_the_newest_model_under_its_policy)
{
    must_apply("always-update", "{}");
    must(model(&arena, "t", 1));
    must(model(&arena, "t", 2));
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    char *text;
    event.doc = doc_from_yaml(
        &arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
        " {name: p, type: prediction, source: {kind: http}},"
        " {name: q, type: prediction, source: {kind: http}},"
        " {name: r, type: prediction, source: {kind: http}}],"
        " links: [{from: t, to: p, policy: always-update}, {from: t, to: q, policy: always-update},"
        " {from: t, to: r, policy: manual}]}",
        &text);
    event.document = text;
    must(event);
    ck_assert_int_eq(serving(&state, "t:q")->version, 2);
    ck_assert_ptr_null(serving(&state, "t:r"));
    must(asked(WEIR_ION_EVENT_APPROVE, 2));
    ck_assert_int_eq(serving(&state, "t:r")->version, 2);
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_ROLLBACK, 0)), WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, "which one"));
    event = asked(WEIR_ION_EVENT_ROLLBACK, 0);
    event.link = "t:p";
    must(event);
    ck_assert_int_eq(serving(&state, "t:p")->version, 1);
    ck_assert_int_eq(serving(&state, "t:q")->version, 2);
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "ion_step", set_up, tear_down, always_update_takes_each_new_model_and_says_so,
    a_model_that_comes_late_does_not_replace_a_newer_one, a_manual_link_waits_for_a_person,
    a_rollback_goes_to_what_served_before_and_newer_models_are_still_taken,
    triggers_while_training_are_folded_into_one_more,
    a_training_that_a_person_cancels_is_no_failure, who_may_not_be_triggered_says_why,
    a_schedule_fires_and_missed_times_are_one_trigger,
    a_schedule_keeps_its_times_when_the_clock_is_set_back,
    a_schedule_that_seemed_over_comes_back_with_the_clock,
    a_time_that_passed_before_triggers_had_rows_still_fires,
    data_that_is_there_when_the_document_is_applied_starts_the_first_training,
    a_deployment_says_all_that_a_replica_needs_and_counts_its_changes,
    a_detector_is_served_as_its_name_says_and_moves_with_it,
    a_training_that_a_detector_cuts_waits_for_its_first_version,
    a_training_starts_at_once_with_a_detector_that_is_there,
    a_training_does_not_start_with_what_another_alias_named,
    a_training_that_another_run_holds_does_not_say_that_its_detector_is_missing,
    a_detector_that_is_the_model_is_served_as_both,
    a_new_version_of_the_impostors_is_a_new_deployment,
    replicas_start_anew_when_their_number_changes, replicas_start_anew_when_their_gpus_change,
    deleting_stops_everything_and_applying_again_brings_back_what_served,
    a_registered_models_versions_come_to_its_link, a_model_without_a_version_is_waited_for,
    a_pipeline_that_is_added_later_gets_the_newest_model_under_its_policy)
