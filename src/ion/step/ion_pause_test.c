/* Pipelines that are paused, and go on. */
#include "ion/step/ion_play.h"

static struct weir_ion_event asked(enum weir_ion_event_type type, const char *pipeline)
{
    return (struct weir_ion_event){
        .type = type, .actor = "ann", .pipeline = pipeline, .times = 3, .training = 1};
}

/* "t" and "p" with its first model and its replicas. */
static void set_up(void)
{
    begin_ion(1000000);
    must(applied(&arena, "always-update", "{new_data: true}", 1));
    must(model(&arena, "t", 1));
    struct weir_ion_event started = asked(WEIR_ION_EVENT_STARTED, "p");
    started.job = "j1";
    must(started);
}

static size_t n_told(const char *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < actions.n; i++) {
        n += actions.items[i].type == WEIR_ION_ACTION_EVENT &&
             strcmp(actions.items[i].kind, kind) == 0;
    }
    return n;
}

START_TEST(replicas_stop_and_what_the_link_chooses_meanwhile_serves_when_it_goes_on)
{
    must(asked(WEIR_ION_EVENT_PAUSE, "p"));
    const struct weir_ion_pipeline *p = pipeline_of(&state, "p");
    ck_assert_str_eq(p->state, "WAITING");
    ck_assert_str_eq(p->state_reason, "paused by ann");
    ck_assert_str_eq(p->paused_by, "ann");
    ck_assert_int_eq(p->paused_ms, now_ms);
    ck_assert_str_eq(find_action(WEIR_ION_ACTION_STOP_PREDICTION)->job, "j1");
    ck_assert_uint_eq(n_told("pipeline_paused"), 1);
    ck_assert_ptr_null(pipeline_of(&state, "t")->paused_by);
    ck_assert_str_eq(weir_ion_candidate_shown(&state, serving(&state, "t:p")), "PAUSED");
    struct weir_ion_event ended = asked(WEIR_ION_EVENT_CANCELLED, "p");
    ended.job = "j1";
    must(ended);
    must(model(&arena, "t", 2));
    ck_assert_int_eq(serving(&state, "t:p")->version, 2);
    ck_assert_ptr_null(find_action(WEIR_ION_ACTION_START_PREDICTION));
    ck_assert_str_eq(pipeline_of(&state, "p")->state_reason, "paused by ann");
    must(asked(WEIR_ION_EVENT_RESUME, NULL));
    ck_assert_ptr_nonnull(find_action(WEIR_ION_ACTION_START_PREDICTION));
    ck_assert_uint_eq(n_told("pipeline_resumed"), 1);
    p = pipeline_of(&state, "p");
    ck_assert_str_eq(p->state, "DEPLOYING");
    ck_assert_ptr_null(p->state_reason);
    ck_assert_int_eq(p->paused_ms, 0);
    ck_assert_ptr_nonnull(strstr(p->service.deployment, "t-v2"));
}

END_TEST

/* The start of its replicas waits in the outbox still. */
START_TEST(what_was_about_to_start_does_not)
{
    struct weir_ion_event started = asked(WEIR_ION_EVENT_STARTED, "p");
    must(asked(WEIR_ION_EVENT_PAUSE, "p"));
    started.job = "j2";
    must(started);
    ck_assert_ptr_null(pipeline_of(&state, "p")->job);
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

static struct weir_ion_event people(const char *name, int64_t version)
{
    struct weir_ion_dataset *dataset = WEIR_ARENA_NEW(&arena, struct weir_ion_dataset);
    *dataset = (struct weir_ion_dataset){name, version, "/d", "d", "b", 0, 0, 0};
    return (struct weir_ion_event){
        .type = WEIR_ION_EVENT_DATASET, .datasets = dataset, .n_datasets = 1};
}

START_TEST(a_training_runs_to_its_end_and_one_more_begins_when_it_goes_on)
{
    must(asked(WEIR_ION_EVENT_TRIGGER, "t"));
    must(asked(WEIR_ION_EVENT_PAUSE, "t"));
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "TRAINING");
    ck_assert_ptr_null(find_action(WEIR_ION_ACTION_STOP_TRAINING));
    must(people("faces", 1));
    must(people("faces", 2));
    must(asked(WEIR_ION_EVENT_FINISHED, "t"));
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
    ck_assert_str_eq(pipeline_of(&state, "t")->state_reason, "paused by ann");
    must(asked(WEIR_ION_EVENT_TRIGGER, "t"));
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, 1);
    must(asked(WEIR_ION_EVENT_RESUME, "t"));
    ck_assert_int_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->number, 2);
    ck_assert_str_eq(pipeline_of(&state, "t")->runs.cause_by,
                     "ann"); /* who asked while it was paused */
    ck_assert_ptr_null(pipeline_of(&state, "t")->state_reason);
    struct weir_ion_event ended = asked(WEIR_ION_EVENT_FINISHED, "t");
    ended.training = 2;
    must(ended);
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
}

END_TEST

START_TEST(a_row_of_trainings_goes_on_where_it_was)
{
    must(asked(WEIR_ION_EVENT_RUN, NULL));
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.runs_left, 2);
    must(asked(WEIR_ION_EVENT_PAUSE, "t"));
    must(asked(WEIR_ION_EVENT_FINISHED, "t"));
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.runs_left, 2);
    ck_assert_ptr_null(find_action(WEIR_ION_ACTION_START_TRAINING));
    must(asked(WEIR_ION_EVENT_RESUME, NULL));
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.runs_left, 1);
    ck_assert_int_eq(find_action(WEIR_ION_ACTION_START_TRAINING)->number, 2);
    ck_assert_str_eq(pipeline_of(&state, "t")->runs.cause_by, "ann");
    /* a failure ends it, paused or not */
    must(asked(WEIR_ION_EVENT_PAUSE, "t"));
    struct weir_ion_event failed = asked(WEIR_ION_EVENT_FAILED, "t");
    failed.training = 2;
    must(failed);
    ck_assert_int_eq(pipeline_of(&state, "t")->runs.runs_left, 0);
    must(asked(WEIR_ION_EVENT_RESUME, NULL));
    ck_assert_ptr_null(find_action(WEIR_ION_ACTION_START_TRAINING));
}

END_TEST

START_TEST(what_is_paused_already_or_not_there_is_refused)
{
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_PAUSE, "q")), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_RESUME, "p")), WEIR_ERR_CONFLICT);
    must(asked(WEIR_ION_EVENT_PAUSE, "p"));
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_PAUSE, "p")), WEIR_ERR_CONFLICT);
    must(asked(WEIR_ION_EVENT_PAUSE, NULL)); /* the others */
    ck_assert_uint_eq(n_told("pipeline_paused"), 1);
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_PAUSE, NULL)), WEIR_ERR_CONFLICT);
    ck_assert_str_eq(err.message, "ION \"x\" is paused already");
    must(asked(WEIR_ION_EVENT_DELETED, NULL));
    ck_assert_int_eq(step(asked(WEIR_ION_EVENT_RESUME, NULL)), WEIR_ERR_CONFLICT);
    must(applied(&arena, "always-update", "{}", 1));
    ck_assert_ptr_null(pipeline_of(&state, "p")->paused_by);
    ck_assert_str_eq(pipeline_of(&state, "p")->state, "DEPLOYING");
}

END_TEST

/* Other replicas or another source start replicas anew, but not those of a pipeline that is paused. */
START_TEST(another_document_does_not_let_it_go_on)
{
    must(asked(WEIR_ION_EVENT_PAUSE, "p"));
    must(applied(&arena, "always-update", "{new_data: true}", 2));
    ck_assert_str_eq(pipeline_of(&state, "p")->paused_by, "ann");
    ck_assert_str_eq(pipeline_of(&state, "p")->state, "WAITING");
    ck_assert_ptr_null(find_action(WEIR_ION_ACTION_START_PREDICTION));
    must(asked(WEIR_ION_EVENT_RESUME, "p"));
    ck_assert_ptr_nonnull(find_action(WEIR_ION_ACTION_START_PREDICTION));
}

END_TEST

WEIR_TEST_MAIN_WITH("ion_pause", set_up, tear_down,
                    replicas_stop_and_what_the_link_chooses_meanwhile_serves_when_it_goes_on,
                    what_was_about_to_start_does_not,
                    a_training_runs_to_its_end_and_one_more_begins_when_it_goes_on,
                    a_row_of_trainings_goes_on_where_it_was,
                    what_is_paused_already_or_not_there_is_refused,
                    another_document_does_not_let_it_go_on)
