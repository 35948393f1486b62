/* Graphs: preparations, evaluations and comparisons, the links that start them, restart rules. */
#include "ion/step/ion_play.h"

static void set_up(void)
{
    begin_ion(1000000);
}

static void must_apply(const char *yaml)
{
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    must(event);
}

static struct weir_ion_event of_run(enum weir_ion_event_type type, const char *pipeline)
{
    return (struct weir_ion_event){.type = type,
                                   .pipeline = pipeline,
                                   .training = pipeline_of(&state, pipeline)->runs.training,
                                   .job = "j",
                                   .actor = "ann",
                                   .note = "oops"};
}

static struct weir_ion_event frozen(int64_t version)
{
    struct weir_ion_event event = of_run(WEIR_ION_EVENT_FROZEN, "prepare");
    event.version = version;
    return event;
}

static const char *state_of(const char *pipeline)
{
    return pipeline_of(&state, pipeline)->state;
}

/** "severity kind" of the alert that the last event raised; "": none. */
static const char *alert(void)
{
    for (size_t i = 0; i < actions.n; i++) {
        if (actions.items[i].type == WEIR_ION_ACTION_ALERT) {
            const char *severity = actions.items[i].severity;
            return weir_arena_printf(&arena, "%s %s", severity != NULL ? severity : "-",
                                     actions.items[i].kind);
        }
    }
    return "";
}

#define PREPARE(more)                                                                              \
    "{name: prepare, type: preparation, dataset: raw, output: clean, parameters: {argv: [a]}" more \
    "}"
#define TRAIN(more)           "{name: t, type: training, dataset: clean, model: m" more "}"
#define DOC(pipelines, links) "{name: x, pipelines: [" pipelines "], links: [" links "]}"
#define DATA_LINK             "{from: prepare, to: t, dataset: clean}"

/* ---- the document ---------------------------------------------------------------------------- */

#define EVALUATE "{name: e, type: evaluation, dataset: held-out}"

static const struct {
    const char *yaml, *message;
} wrong[] = {
    {DOC("{name: p, type: preparation, dataset: raw, parameters: {argv: [a]}}", ""),
     "$.pipelines[0].output: missing"},
    {DOC("{name: p, type: preparation, output: clean}", ""), "$.pipelines[0].parameters: missing"},
    {DOC("{name: p, type: preparation, output: clean, parameters: [a]}", ""),
     "$.pipelines[0].parameters: expected an object"},
    {DOC("{name: p, type: preparation, dataset: a, output: a, parameters: {argv: [a]}}", ""),
     "$.pipelines[0].output: \"a\" is what it reads"},
    {DOC("{name: p, type: preparation, output: a, parameters: {argv: [a]}, triggers: [new-data]}",
         ""),
     "$.pipelines[0].triggers[0]: new-data needs a dataset"},
    {DOC(PREPARE(", restart: sometimes"), ""), "$.pipelines[0].restart: \"sometimes\""},
    {DOC(PREPARE(", restart: 3"), ""), "$.pipelines[0].restart: expected the name"},
    {DOC(PREPARE(", restart: {kind: on-failure, times: 0}"), ""),
     "$.pipelines[0].restart.times: 0"},
    {DOC(PREPARE("") ", " TRAIN(""), "{from: nobody, to: t, dataset: clean}"),
     "$.links[0].from: there is no pipeline \"nobody\""},
    {DOC(PREPARE("") ", " TRAIN(""), "{from: t, to: t, dataset: clean}"),
     "$.links[0].from: \"t\" is a training: a data link begins at a preparation"},
    {DOC(PREPARE("") ", " TRAIN(""), "{from: prepare, to: t, dataset: raw}"),
     "$.links[0].dataset: \"prepare\" makes \"clean\", not \"raw\""},
    {DOC(PREPARE("") ", {name: t, type: training, dataset: d, model: m}", DATA_LINK),
     "$.links[0].dataset: the dataset of \"t\" is \"d\", not \"clean\""},
    {DOC(PREPARE("") ", " TRAIN(""), DATA_LINK ", " DATA_LINK),
     "$.links[1]: there are two such links from \"prepare\" to \"t\""},
    {DOC(PREPARE("") ", " TRAIN(""), "{from: prepare, to: t, dataset: clean, policy: manual}"),
     "$.links[0].policy: unknown field of a data link"},
    {DOC(PREPARE("") ", " TRAIN("") ", {name: p, type: prediction, source: {kind: http}}",
         "{from: t, to: p}, {from: prepare, to: p, dataset: clean}"),
     "$.links[1].to: \"p\" is a prediction, which no dataset starts"},
    {DOC(EVALUATE, ""), "$.pipelines[0]: no link brings models to \"e\""},
    {DOC(EVALUATE, "{from: {model: a}, to: e}, {from: {model: b}, to: e}"),
     "$.links[1].to: two links bring models to \"e\" (the other from \"model/a\")"},
    {DOC(EVALUATE, "{from: e, to: e}"), "$.links[0].from: expected the name of a training"},
    {DOC("{name: c, type: comparison, dataset: d}", "{from: {model: a}, to: c}"),
     "$.pipelines[0].against: missing"},
    {DOC("{name: c, type: comparison, dataset: d, against: p}", "{from: {model: a}, to: c}"),
     "$.pipelines[0].against: no link of this document leads to \"p\""},
    {DOC(PREPARE("") ", {name: b, type: preparation, dataset: y, output: clean, parameters: "
                     "{argv: [a]}}",
         ""),
     "$.pipelines[1].output: \"prepare\" makes dataset \"clean\" already"},
    /* Cycles: of two, of one beside others, and not one that time bounds. */
    {DOC("{name: a, type: preparation, dataset: x, output: y, parameters: {argv: [a]}, triggers: "
         "[new-data]}, {name: b, type: preparation, dataset: y, output: x, parameters: {argv: "
         "[a]}}",
         "{from: a, to: b, dataset: y}"),
     "$.pipelines[0]: each run of \"a\" would start the next without end"},
    {DOC("{name: z, type: preparation, dataset: w, output: v, parameters: {argv: [a]}, triggers: "
         "[new-data]}, {name: a, type: preparation, dataset: x, output: y, parameters: {argv: [a]},"
         " triggers: [new-data]}, {name: b, type: preparation, dataset: y, output: x, parameters:"
         " {argv: [a]}, triggers: [new-data]}",
         ""),
     "$.pipelines[1]: each run of \"a\" would start the next without end"},
};

START_TEST(what_is_wrong_in_a_graph_is_named_by_its_place)
{
    struct weir_ion_doc doc;
    json_t *json;
    const char *yaml = wrong[_i].yaml;
    ck_assert_int_eq(weir_yaml_parse(yaml, strlen(yaml), "test", false, &json, &err), WEIR_OK);
    weir_status status = weir_ion_doc_parse(json, &arena, &doc, &err);
    json_decref(json);
    ck_assert_msg(status == WEIR_ERR_INVALID, "%s: %d %s", yaml, status, err.message);
    ck_assert_msg(strncmp(err.message, wrong[_i].message, strlen(wrong[_i].message)) == 0,
                  "%s\nis not\n%s", err.message, wrong[_i].message);
}

END_TEST

START_TEST(a_cycle_that_time_bounds_is_read)
{
    must_apply(
        DOC("{name: a, type: preparation, dataset: x, output: y, parameters: {argv: [a]}, triggers:"
            " [{kind: new-data, least_interval_s: 60}]}, {name: b, type: preparation, dataset: y,"
            " output: x, parameters: {argv: [a]}}",
            "{from: a, to: b, dataset: y}"));
    ck_assert_uint_eq(state.doc.n_feeds, 1);
}

END_TEST

/* ---- data links ------------------------------------------------------------------------------ */

START_TEST(what_is_prepared_is_frozen_and_starts_the_training)
{
    must_apply(DOC(PREPARE(", triggers: [new-data]") ", " TRAIN(""), DATA_LINK));
    must(dataset("raw", 1));
    ck_assert_str_eq(state_of("prepare"), "RUNNING");
    must(of_run(WEIR_ION_EVENT_STARTED, "prepare"));
    must(of_run(WEIR_ION_EVENT_FINISHED, "prepare"));
    ck_assert_str_eq(state_of("prepare"), "FREEZING");
    must(of_run(WEIR_ION_EVENT_FINISHED, "prepare")); /* the same job, told again */
    ck_assert_str_eq(state_of("prepare"), "FREEZING");
    /* The version is there before the run has ended; both use the folder. */
    must(dataset("clean", 1));
    ck_assert_str_eq(state_of("t"), "IDLE");
    ck_assert_str_eq(pipeline_of(&state, "t")->runs.pending_cause, "clean version 1");
    must(frozen(1));
    ck_assert_str_eq(state_of("prepare"), "IDLE");
    ck_assert_str_eq(state_of("t"), "TRAINING");
    ck_assert_str_eq(pipeline_of(&state, "t")->runs.cause, "clean version 1");
    must(frozen(1));
    ck_assert_uint_eq(actions.n, 0);
    /* While the training reads, nothing is written. */
    must(dataset("raw", 2));
    ck_assert_str_eq(state_of("prepare"), "IDLE");
    must(of_run(WEIR_ION_EVENT_FINISHED, "t"));
    ck_assert_str_eq(state_of("prepare"), "RUNNING");
}

END_TEST

START_TEST(a_preparation_without_news_starts_nothing)
{
    must_apply(DOC(PREPARE("") ", " TRAIN(""), DATA_LINK));
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "prepare", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FINISHED, "prepare"));
    must(frozen(1)); /* the same files: no new version, and no event of the dataset */
    ck_assert_str_eq(state_of("prepare"), "IDLE");
    ck_assert_str_eq(state_of("t"), "IDLE");
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 0);
}

END_TEST

START_TEST(what_a_run_wrote_for_another_dataset_is_not_frozen)
{
    must_apply(DOC(PREPARE(""), ""));
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "prepare", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_STARTED, "prepare"));
    must_apply(DOC("{name: prepare, type: preparation, dataset: raw, output: other, parameters: "
                   "{argv: [a]}}",
                   ""));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_STOP_TRAINING), 1);
    ck_assert_str_eq(state_of("prepare"), "IDLE");
    must(of_run(WEIR_ION_EVENT_CANCELLED, "prepare"));
    must(frozen(1));
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

/* ---- models that are measured ---------------------------------------------------------------- */

START_TEST(each_version_that_comes_is_measured_and_the_newest_again_on_new_data)
{
    must_apply(
        DOC(TRAIN("") ", {name: e, type: evaluation, dataset: held-out, triggers: [new-data]}",
            "{from: t, to: e}"));
    must(dataset("held-out", 1));
    ck_assert_str_eq(state_of("e"), "IDLE"); /* there is nothing to measure yet */
    ck_assert_int_eq(step((struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "e"}),
                     WEIR_ERR_CONFLICT);
    must(model(&arena, "t", 1));
    ck_assert_str_eq(state_of("e"), "RUNNING");
    ck_assert_str_eq(pipeline_of(&state, "e")->runs.cause, "model x.t version 1");
    must(model(&arena, "t", 1));
    ck_assert_uint_eq(actions.n, 0);
    must(model(&arena, "t", 3));
    must(of_run(WEIR_ION_EVENT_FINISHED, "e"));
    ck_assert_int_eq(pipeline_of(&state, "e")->runs.measured_version, 3);
    ck_assert_int_eq(pipeline_of(&state, "e")->runs.training, 2);
    must(of_run(WEIR_ION_EVENT_FINISHED, "e"));
    must(model(&arena, "t", 2)); /* older than what it knows */
    ck_assert_uint_eq(actions.n, 0);
    must(dataset("held-out", 2));
    ck_assert_str_eq(pipeline_of(&state, "e")->runs.cause, "held-out version 2");
    ck_assert_str_eq(state_of("e"), "RUNNING");
}

END_TEST

START_TEST(a_link_from_another_model_begins_anew)
{
    must_apply(DOC(EVALUATE, "{from: {model: a}, to: e}"));
    must(model_of(&arena, "a", NULL, 5, "a5"));
    must(of_run(WEIR_ION_EVENT_FINISHED, "e"));
    must_apply(DOC(EVALUATE, "{from: {model: b}, to: e}"));
    ck_assert_int_eq(pipeline_of(&state, "e")->runs.measured_version, 0);
    must(model_of(&arena, "b", NULL, 1, "b1"));
    ck_assert_str_eq(state_of("e"), "RUNNING");
}

END_TEST

/* ---- restart rules --------------------------------------------------------------------------- */

static void tick_at(int64_t at_ms)
{
    now_ms = at_ms - 1000;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK, .actor = "system"});
}

START_TEST(a_failure_is_answered_so_often_each_time_later_and_then_told)
{
    must_apply(DOC(PREPARE(", restart: {kind: on-failure, times: 2, backoff_s: 10}"), ""));
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "prepare", .actor = "ann"});
    for (int64_t i = 1; i <= 2; i++) {
        must(of_run(WEIR_ION_EVENT_FAILED, "prepare"));
        ck_assert_str_eq(alert(), "");
        ck_assert_str_eq(state_of("prepare"), "IDLE");
        ck_assert_int_eq(pipeline_of(&state, "prepare")->restart_ms, now_ms + 10000 * i);
        ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), now_ms + 10000 * i);
        tick_at(now_ms + 10000 * i - 1);
        ck_assert_str_eq(state_of("prepare"), "IDLE");
        tick_at(now_ms + 1);
        ck_assert_str_eq(state_of("prepare"), "RUNNING");
    }
    ck_assert_str_eq(pipeline_of(&state, "prepare")->runs.cause,
                     "restart on-failure, after failure 2 in a row");
    must(of_run(WEIR_ION_EVENT_FAILED, "prepare"));
    ck_assert_str_eq(alert(), "warning pipeline_failed");
    ck_assert_int_eq(pipeline_of(&state, "prepare")->restart_ms, 0);
}

END_TEST

START_TEST(who_is_cancelled_is_not_started_again_and_a_success_forgets_failures)
{
    must_apply(DOC(TRAIN(", restart: on-failure"), ""));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FAILED, "t"));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"});
    ck_assert_int_eq(pipeline_of(&state, "t")->restart_ms, 0); /* it runs */
    must(of_run(WEIR_ION_EVENT_CANCELLED, "t"));
    ck_assert_int_eq(pipeline_of(&state, "t")->restart_ms, 0);
    ck_assert_int_eq(pipeline_of(&state, "t")->n_failures, 1);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FINISHED, "t"));
    ck_assert_int_eq(pipeline_of(&state, "t")->n_failures, 0);
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), INT64_MAX);
}

END_TEST

START_TEST(always_follows_every_end_and_ends_with_its_rule)
{
    must_apply(DOC(TRAIN(", restart: {kind: always, backoff_s: 5}"), ""));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FINISHED, "t"));
    tick_at(now_ms + 5000);
    ck_assert_str_eq(state_of("t"), "TRAINING");
    must(of_run(WEIR_ION_EVENT_FAILED, "t"));
    ck_assert_str_eq(alert(), "- training_failed"); /* it may go on like that for ever */
    /* The clock is set back: it is not put off. */
    now_ms -= 3600000;
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), now_ms);
    must_apply(DOC(TRAIN(""), ""));
    tick_at(now_ms + 1000);
    ck_assert_str_eq(state_of("t"), "IDLE");
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), INT64_MAX);
}

END_TEST

START_TEST(replicas_start_again_by_their_rule)
{
    must_apply(DOC("{name: p, type: prediction, source: {kind: http}, restart: {kind: on-failure,"
                   " times: 1, backoff_s: 2}}",
                   "{from: {model: a}, to: p, policy: always-update}"));
    must(model_of(&arena, "a", NULL, 1, "a1"));
    must(of_run(WEIR_ION_EVENT_STARTED, "p"));
    must(of_run(WEIR_ION_EVENT_FAILED, "p"));
    ck_assert_str_eq(state_of("p"), "WAITING");
    tick_at(now_ms + 2000);
    ck_assert_str_eq(state_of("p"), "DEPLOYING");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 1);
    must(of_run(WEIR_ION_EVENT_STARTED, "p"));
    must(of_run(WEIR_ION_EVENT_FAILED, "p"));
    ck_assert_int_eq(pipeline_of(&state, "p")->restart_ms, 0);
}

END_TEST

START_TEST(what_fails_for_good_is_told_as_the_document_says)
{
    must_apply(DOC(TRAIN(", critical: true") ", " PREPARE(", critical: true"), ""));
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FAILED, "t"));
    ck_assert_str_eq(alert(), "critical pipeline_failed");
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "prepare", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FINISHED, "prepare"));
    must(of_run(WEIR_ION_EVENT_FAILED, "prepare")); /* no version could be made */
    ck_assert_str_eq(state_of("prepare"), "IDLE");
    ck_assert_str_eq(alert(), "critical pipeline_failed");
    must((struct weir_ion_event){
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "prepare", .actor = "ann"});
    must(of_run(WEIR_ION_EVENT_FINISHED, "prepare"));
    must(frozen(1));
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_RESOLVE), 1);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ion_graph");
    TCase *tcase = tcase_create("graphs");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, what_is_wrong_in_a_graph_is_named_by_its_place, 0,
                        sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, a_cycle_that_time_bounds_is_read);
    tcase_add_test(tcase, what_is_prepared_is_frozen_and_starts_the_training);
    tcase_add_test(tcase, a_preparation_without_news_starts_nothing);
    tcase_add_test(tcase, what_a_run_wrote_for_another_dataset_is_not_frozen);
    tcase_add_test(tcase, each_version_that_comes_is_measured_and_the_newest_again_on_new_data);
    tcase_add_test(tcase, a_link_from_another_model_begins_anew);
    tcase_add_test(tcase, a_failure_is_answered_so_often_each_time_later_and_then_told);
    tcase_add_test(tcase, who_is_cancelled_is_not_started_again_and_a_success_forgets_failures);
    tcase_add_test(tcase, always_follows_every_end_and_ends_with_its_rule);
    tcase_add_test(tcase, replicas_start_again_by_their_rule);
    tcase_add_test(tcase, what_fails_for_good_is_told_as_the_document_says);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
