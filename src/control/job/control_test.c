/** The control plane's transactions: what one noun's event does to the others. */
#include "control/job/control_fixture.h"

#include "base/file.h"

#include <stdlib.h>

static struct control_fixture fixture;

static void set_up(void)
{
    control_fixture_make(&fixture);
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

#define TRAINING "{\"model\":\"lenet\",\"dataset\":\"faces\",\"workers\":1}"
#define COMMAND  "{\"argv\":[\"true\"]}"

/* ---- jobs ------------------------------------------------------------------------------------ */

START_TEST(a_command_that_ends_well_succeeds)
{
    char *job = make_job(&fixture, "c", "command", COMMAND);
    ck_assert_str_eq(job_record(&fixture, job).state, "PENDING");
    size_t n_before = n_published(&fixture, "jobs");
    play(&fixture, job, 0);
    ck_assert_str_eq(job_record(&fixture, job).state, "SUCCEEDED");
    ck_assert_uint_eq(n_published(&fixture, "jobs"), n_before + 3);
    ck_assert_uint_eq(count_records(&fixture, &weir_alert_resource), 0);
    ck_assert_uint_eq(count_records(&fixture, &weir_run_resource), 1); /* tracked all the same */
}

END_TEST

START_TEST(a_failure_is_an_alert_that_the_next_success_resolves)
{
    play(&fixture, make_job(&fixture, "c", "command", COMMAND), 1);
    ck_assert_str_eq(alert_state(&fixture, "job_failed:default/c"), "open");
    ck_assert_uint_eq(n_published(&fixture, "alerts"), 1);
    play(&fixture, make_job(&fixture, "other", "command", COMMAND), 0);
    ck_assert_str_eq(alert_state(&fixture, "job_failed:default/c"), "open");
    play(&fixture, make_job(&fixture, "c", "command", COMMAND), 0);
    ck_assert_str_eq(alert_state(&fixture, "job_failed:default/c"), "resolved");
}

END_TEST

START_TEST(a_run_ends_as_its_job_does)
{
    static const struct {
        int64_t exit_code;
        bool is_cancelled;
        const char *state, *status;
    } ends[] = {{0, false, "SUCCEEDED", "FINISHED"},
                {2, false, "FAILED", "FAILED"},
                {0, true, "CANCELLED", "KILLED"}};

    char *job = make_job(&fixture, "t", "train", TRAINING);
    struct weir_run run;
    const char *id = job_record(&fixture, job).run;
    REQUIRE(find_record(&fixture, &weir_run_resource, id, &run));
    ck_assert_str_eq(run.status, "SCHEDULED");
    ck_assert_str_eq(run.job, job);
    ck_assert_int_eq(run.dataset_version, 1);
    place(&fixture, job);
    runs(&fixture, job, 0);
    REQUIRE(find_record(&fixture, &weir_run_resource, id, &run));
    ck_assert_str_eq(run.status, "RUNNING");
    fixture.now_ms = 7000;
    if (ends[_i].is_cancelled) {
        struct weir_job_event cancel = {.type = WEIR_JOB_EVENT_CANCEL, .text = "ann"};
        ck_assert_int_eq(try_job_event(&fixture, job, cancel), WEIR_OK);
    }
    exits(&fixture, job, 0, ends[_i].exit_code);
    ck_assert_str_eq(job_record(&fixture, job).state, ends[_i].state);
    REQUIRE(find_record(&fixture, &weir_run_resource, id, &run));
    ck_assert_str_eq(run.status, ends[_i].status);
    ck_assert_int_eq(run.finished_ms, 7000);
}

END_TEST

START_TEST(a_job_that_is_over_cannot_be_cancelled)
{
    char *job = make_job(&fixture, "c", "command", COMMAND);
    struct weir_job_event cancel = {.type = WEIR_JOB_EVENT_CANCEL, .text = "ann"};
    play(&fixture, job, 0);
    ck_assert_int_eq(try_job_event(&fixture, job, cancel), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(try_job_event(&fixture, "none", cancel), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(a_gang_whose_node_is_lost_starts_again)
{
    char *job = make_job(&fixture, "t", "train", TRAINING);
    struct weir_job_event lost = {.type = WEIR_JOB_EVENT_NODE_LOST, .node = "n"};
    place(&fixture, job);
    runs(&fixture, job, 0);
    ck_assert_int_eq(try_job_event(&fixture, job, lost), WEIR_OK);
    struct weir_job record = job_record(&fixture, job);
    ck_assert_msg(strcmp(record.state, "RESTARTING") == 0 || strcmp(record.state, "PENDING") == 0,
                  "%s", record.state);
    fixture.now_ms = record.due_ms + 60000;
    struct weir_job_event tick = {.type = WEIR_JOB_EVENT_TICK};
    ck_assert_int_eq(try_job_event(&fixture, job, tick), WEIR_OK);
    play(&fixture, job, 0);
    record = job_record(&fixture, job);
    ck_assert_str_eq(record.state, "SUCCEEDED");
    ck_assert_int_eq(record.attempt, 2);
}

END_TEST

START_TEST(a_wrong_specification_leaves_nothing)
{
    static const struct {
        const char *kind, *spec;
        weir_status status;
        const char *says;
    } wrong[] = {
        {"train", "{\"model\":\"lenet\",\"dataset\":\"face\"}", WEIR_ERR_NOT_FOUND, "faces"},
        {"train", "{\"model\":\"lenett\",\"dataset\":\"faces\"}", WEIR_ERR_INVALID, "lenet"},
        {"train", "{\"model\":\"lenet\",\"dataset\":\"faces\",\"workers\":-1}", WEIR_ERR_INVALID,
         "workers"},
        {"command", "{\"argv\":[]}", WEIR_ERR_INVALID, "argv"},
        {"command", "{\"argv\":[\"true\"],\"datasets\":[\"none\"]}", WEIR_ERR_NOT_FOUND, "none"},
        {"train", "{\"model\":\"face-embed\",\"dataset\":\"faces\",\"detector\":\"nobody\"}",
         WEIR_ERR_NOT_FOUND, "$.spec.detector: "},
        {"ray", "{}", WEIR_ERR_UNSUPPORTED, "ray"},
    };
    struct make_job make = {"w", wrong[_i].kind, wrong[_i].spec, NULL};
    weir_status status = try_turn(&fixture, make_job_in, &make, false);
    ck_assert_msg(status == wrong[_i].status, "%s: %s", weir_status_name(status),
                  fixture.err.message);
    ck_assert_msg(strstr(fixture.err.message, wrong[_i].says) != NULL, "%s", fixture.err.message);
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), 0);
    ck_assert_uint_eq(count_records(&fixture, &weir_run_resource), 0);
    ck_assert_uint_eq(n_published(&fixture, "jobs"), 0);
}

END_TEST

START_TEST(a_detector_becomes_the_version_that_it_names)
{
    static const char spec[] = "{\"model\":\"face-embed\",\"dataset\":\"faces\",\"detector\":"
                               "\"x.t\",\"align\":\"{\\\"by\\\":\\\"box\\\"}\"}";
    void *tasks;
    (void)register_model(&fixture, "m1", NULL);
    char *job = make_job(&fixture, "c", "train", spec);
    struct weir_job record = job_record(&fixture, job);
    ck_assert_msg(strstr(record.spec, "\"detector\":\"x.t/1\"") != NULL, "%s", record.spec);
    ck_assert_ptr_null(strstr(record.spec, "detector_blob")); /* Its tasks have that. */
    ck_assert_uint_eq(list_records(&fixture, &weir_task_resource, &tasks), 1);
    const char *definition = ((const struct weir_task *)tasks)[0].definition;
    ck_assert_ptr_nonnull(strstr(definition, "detector_blob\\\":\\\"b10b"));
    (void)register_model(&fixture, "m2", NULL);
    job = make_job(&fixture, "d", "train", spec);
    ck_assert_ptr_nonnull(strstr(job_record(&fixture, job).spec, "\"detector\":\"x.t/2\""));
}

END_TEST

/* ---- IONs ------------------------------------------------------------------------------------ */

START_TEST(a_trigger_becomes_one_job_however_often_its_action_fails)
{
    apply(&fixture, "always-update", 1);
    size_t n_jobs = count_records(&fixture, &weir_job_resource);
    carry_out(&fixture, 0);
    trigger(&fixture);
    ck_assert_uint_eq(carry_out(&fixture, 3), 1);
    struct weir_ion_pipeline t = pipeline_record(&fixture, "t");
    ck_assert_str_eq(t.state, "TRAINING");
    struct weir_job job = job_record(&fixture, t.job);
    ck_assert_str_eq(job.kind, "train");
    ck_assert_str_eq(job.ion, "x");
    ck_assert_str_eq(job.pipeline, "t");
    ck_assert_int_eq(job.training, t.runs.training);
    ck_assert_str_eq(job.run, t.runs.run);
    ck_assert_uint_ge(count_records(&fixture, &weir_job_resource), n_jobs + 1);
    size_t n_after = count_records(&fixture, &weir_job_resource);
    ck_assert_uint_eq(carry_out(&fixture, 0), 0);
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), n_after);
}

END_TEST

/* Apply, trigger, and carry out: the job of the training. */
static char *start_training(const char *policy)
{
    apply(&fixture, policy, 1);
    trigger(&fixture);
    carry_out(&fixture, 0);
    return pipeline_record(&fixture, "t").job;
}

START_TEST(a_model_is_offered_to_its_ion_once)
{
    char *job = start_training("always-update");
    place(&fixture, job);
    runs(&fixture, job, 0);
    const char *run = job_record(&fixture, job).run;
    ck_assert_int_eq(register_model(&fixture, "m1", run).version, 1);
    size_t n_events = count_records(&fixture, &weir_event_resource);
    ck_assert_int_eq(register_model(&fixture, "m1", run).version, 1);
    ck_assert_uint_eq(count_records(&fixture, &weir_event_resource), n_events);
    struct weir_ion_state state = ion_state(&fixture);
    ck_assert_uint_eq(state.n_candidates, 1);
    ck_assert_ptr_nonnull(serving(&state, "t:p"));
    exits(&fixture, job, 0, 0);
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "IDLE");
    ck_assert_int_eq(pipeline_record(&fixture, "p").service.deployment_revision, 1);
}

END_TEST

START_TEST(a_model_without_a_run_is_nobodys_candidate)
{
    start_training("always-update");
    ck_assert_int_eq(register_model(&fixture, "m1", NULL).version, 1);
    ck_assert_uint_eq(ion_state(&fixture).n_candidates, 0);
    struct registration unknown = {.id = "m2", .run = "none"};
    ck_assert_int_eq(try_turn(&fixture, register_in, &unknown, false), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(a_model_without_a_run_comes_to_links_that_begin_at_it)
{
    struct weir_arena *arena = &fixture.store.arena;
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(
        arena,
        "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: lenet},"
        " {name: p, type: prediction, source: {kind: http}},"
        " {name: q, type: prediction, source: {kind: http}}],"
        " links: [{from: {model: x.t}, to: p, policy: always-update},"
        " {from: {model: other}, to: q, policy: always-update}]}",
        &text);
    event.document = text;
    turn(&fixture, apply_in, &event);
    ck_assert_int_eq(register_model(&fixture, "m1", NULL).version, 1);
    struct weir_ion_state state = ion_state(&fixture);
    ck_assert_uint_eq(state.n_candidates, 1);
    ck_assert_str_eq(serving(&state, "model/x.t:p")->model_version, "m1");
    /* Of its own training too, and once. */
    trigger(&fixture);
    carry_out(&fixture, 0);
    char *job = pipeline_record(&fixture, "t").job;
    place(&fixture, job);
    runs(&fixture, job, 0);
    register_model(&fixture, "m2", job_record(&fixture, job).run);
    state = ion_state(&fixture);
    ck_assert_uint_eq(state.n_candidates, 2);
    ck_assert_str_eq(serving(&state, "model/x.t:p")->model_version, "m2");
    ck_assert_ptr_null(serving(&state, "model/other:q"));
}

END_TEST

START_TEST(a_training_that_fails_is_told_by_its_ion)
{
    char *job = start_training("manual");
    /* Exits of 1 are tried again as often as the ION says; 2 says that a second try cannot help. */
    play(&fixture, job, 2);
    ck_assert_str_eq(job_record(&fixture, job).state, "FAILED");
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "IDLE");
    ck_assert_str_eq(alert_state(&fixture, "training_failed:x:t"), "open");
    ck_assert_str_eq(alert_state(&fixture, "job_failed"), "");
    trigger(&fixture);
    carry_out(&fixture, 0);
    char *next = pipeline_record(&fixture, "t").job;
    place(&fixture, next);
    runs(&fixture, next, 0);
    (void)register_model(&fixture, "m1", job_record(&fixture, next).run);
    exits(&fixture, next, 0, 0);
    ck_assert_str_eq(alert_state(&fixture, "training_failed:x:t"), "resolved");
}

END_TEST

static weir_status remove_dataset_in(struct control *control, struct weir_txn *txn, void *context,
                                     struct weir_error *err)
{
    (void)control;
    WEIR_TRY(weir_txn_delete(txn, &weir_dataset_version_resource, "faces-1", err));
    return weir_txn_delete(txn, &weir_dataset_resource, context, err);
}

START_TEST(replicas_ask_for_the_gpus_of_their_ion)
{
    static const struct {
        const char *replicas;
        int64_t n_accelerators;
    } cases[] = {{"1", 0}, {"2, gpus: 3", 3}};

    apply_as(&fixture, "always-update", cases[_i].replicas);
    trigger(&fixture);
    carry_out(&fixture, 0);
    char *training = pipeline_record(&fixture, "t").job;
    place(&fixture, training);
    runs(&fixture, training, 0);
    (void)register_model(&fixture, "m1", job_record(&fixture, training).run);
    carry_out(&fixture, 0);
    struct weir_job job = job_record(&fixture, pipeline_record(&fixture, "p").job);
    json_t *spec = json_loads(job.spec, 0, NULL);
    ck_assert_str_eq(job.kind, "predict");
    const json_t *resources = json_object_get(spec, "resources");
    ck_assert_int_eq(json_integer_value(json_object_get(resources, "accelerators")),
                     cases[_i].n_accelerators);
    json_decref(spec);
}

END_TEST

static weir_status leave_in(struct control *control, struct weir_txn *txn, void *context,
                            struct weir_error *err)
{
    static const char *const projects[] = {"default", "other"};
    const char *dir = context;
    MUST(
        weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "other"}, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(projects); i++) {
        char *id = weir_arena_printf(control->arena, "of-%s", projects[i]);
        const struct weir_job job = {.id = id,
                                     .name = "x.p",
                                     .project = (char *)projects[i],
                                     .kind = "predict",
                                     .state = "CANCELLED",
                                     .ion = "x",
                                     .pipeline = "p",
                                     .spec = "{}",
                                     .created_ms = 1};
        MUST(weir_txn_insert(txn, &weir_job_resource, &job, err));
        MUST(weir_dir_make(weir_arena_printf(control->arena, "%s/replicas", dir), 0700, err));
        MUST(weir_dir_make(weir_arena_printf(control->arena, "%s/replicas/%s-0", dir, id), 0700,
                           err));
    }
    return WEIR_OK;
}

/* An ION was of another project once, and what was decided then is not this one's. */
START_TEST(a_replica_gets_folders_of_those_before_it_in_its_project)
{
    char dir[] = "/tmp/weir-control-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    fixture.state_dir = dir;
    apply_as(&fixture, "always-update", "1");
    turn(&fixture, leave_in, dir);
    trigger(&fixture);
    carry_out(&fixture, 0);
    char *training = pipeline_record(&fixture, "t").job;
    place(&fixture, training);
    runs(&fixture, training, 0);
    (void)register_model(&fixture, "m1", job_record(&fixture, training).run);
    carry_out(&fixture, 0);
    void *tasks;
    const char *told = NULL, *job = pipeline_record(&fixture, "p").job;
    for (size_t n = list_records(&fixture, &weir_task_resource, &tasks); n > 0; n--) {
        const struct weir_task *task = (struct weir_task *)tasks + n - 1;
        told = strcmp(task->job, job) == 0 ? task->definition : told;
    }
    ck_assert_msg(strstr(told, "/replicas/of-default-0") != NULL, "%s", told);
    ck_assert_msg(strstr(told, "of-other") == NULL, "%s", told);
    fixture.state_dir = NULL;
    ck_assert_int_eq(weir_dir_remove(dir, &fixture.err), WEIR_OK);
}

END_TEST

START_TEST(a_training_that_cannot_be_made_has_failed)
{
    apply(&fixture, "manual", 1);
    carry_out(&fixture, 0);
    size_t n_jobs = count_records(&fixture, &weir_job_resource);
    turn(&fixture, remove_dataset_in, "faces");
    trigger(&fixture);
    carry_out(&fixture, 0);
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), n_jobs);
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "IDLE");
    ck_assert_str_eq(alert_state(&fixture, "training_failed:x:t"), "open");
}

END_TEST

struct execution {
    const char *kind, *payload;
};

static weir_status execute_in(struct control *control, struct weir_txn *txn, void *context,
                              struct weir_error *err)
{
    const struct execution *execution = context;
    return control_execute(control, txn, execution->kind, execution->payload, err);
}

START_TEST(an_action_that_became_pointless_does_nothing)
{
    static const struct execution pointless[] = {
        {"start_training", "{\"ion\":\"x\",\"pipeline\":\"t\",\"training\":9}"},
        {"start_training", "{\"ion\":\"x\",\"pipeline\":\"gone\",\"training\":1}"},
        {"start_prediction", "{\"ion\":\"x\",\"pipeline\":\"gone\"}"},
        {"stop_training", "{\"ion\":\"x\",\"pipeline\":\"t\",\"training\":1}"},
        {"stop_training", "{\"ion\":\"x\",\"pipeline\":\"t\",\"job\":\"none\"}"},
        {"stop_prediction", "{\"ion\":\"x\",\"pipeline\":\"p\",\"job\":\"none\"}"},
    };
    start_training("always-update");
    size_t n_jobs = count_records(&fixture, &weir_job_resource);
    size_t n_events = count_records(&fixture, &weir_event_resource);
    turn(&fixture, execute_in, (void *)&pointless[_i]);
    ck_assert_uint_eq(count_records(&fixture, &weir_job_resource), n_jobs);
    ck_assert_uint_eq(count_records(&fixture, &weir_event_resource), n_events);
}

END_TEST

START_TEST(an_action_that_nobody_knows_is_an_error)
{
    static const struct {
        struct execution execution;
        weir_status status;
    } wrong[] = {
        {{"dance", "{\"ion\":\"x\",\"pipeline\":\"t\"}"}, WEIR_ERR_INTERNAL},
        {{"start_training", "{\"pipeline\":\"t\"}"}, WEIR_ERR_INTERNAL},
        {{"start_training", "{\"ion\":\"none\",\"pipeline\":\"t\"}"}, WEIR_ERR_NOT_FOUND},
        {{"start_training", "{\"ion\":"}, WEIR_ERR_INVALID},
    };

    apply(&fixture, "manual", 1);
    ck_assert_int_eq(try_turn(&fixture, execute_in, (void *)&wrong[_i].execution, false),
                     wrong[_i].status);
}

END_TEST

START_TEST(a_deleted_ion_stops_its_jobs)
{
    char *job = start_training("always-update");
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_DELETED, .actor = "ann"};
    (void)register_model(&fixture, "m1", job_record(&fixture, job).run);
    carry_out(&fixture, 0);
    const char *replicas = pipeline_record(&fixture, "p").job;
    ck_assert_ptr_nonnull(replicas);
    turn(&fixture, ion_event_in, &event);
    carry_out(&fixture, 1);
    ck_assert_str_eq(job_record(&fixture, job).state, "CANCELLED");
    ck_assert_str_eq(job_record(&fixture, replicas).state, "CANCELLED");
}

END_TEST

struct new_version {
    int64_t version;
    const char *dataset;
};

static weir_status dataset_changed_in(struct control *control, struct weir_txn *txn, void *context,
                                      struct weir_error *err)
{
    const struct new_version *new_version = context;
    struct weir_dataset dataset;
    WEIR_TRY(weir_txn_get(txn, &weir_dataset_resource, new_version->dataset, control->arena,
                          &dataset, err));
    struct weir_dataset_version version = {
        .version = new_version->version, .digest = "d2", .blob = "b2"};
    return control_dataset_changed(control, txn, &dataset, &version, err);
}

START_TEST(only_ions_that_use_a_dataset_hear_of_its_new_version)
{
    apply(&fixture, "always-update", 1);
    turn(&fixture, dataset_changed_in, &(struct new_version){2, "people"});
    ck_assert_int_eq(pipeline_record(&fixture, "p").service.gallery.version, 2);
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.dataset_version, 1);
    turn(&fixture, dataset_changed_in, &(struct new_version){5, "faces"});
    ck_assert_int_eq(pipeline_record(&fixture, "p").service.gallery.version, 2);
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.dataset_version, 5);
}

END_TEST

static weir_status raise_unreadable_in(struct control *control, struct weir_txn *txn, void *context,
                                       struct weir_error *err)
{
    return control_raise_unreadable(control, txn, context, "it is too large", err);
}

static weir_status abandon_in(struct control *control, struct weir_txn *txn, void *context,
                              struct weir_error *err)
{
    return control_ion_abandon(control, txn, context, err);
}

START_TEST(what_cannot_be_read_is_named_and_can_be_given_up)
{
    char *job = start_training("always-update");
    turn(&fixture, raise_unreadable_in, "ion/x");
    ck_assert_str_eq(alert_state(&fixture, "unreadable:ion/x"), "open");
    turn(&fixture, abandon_in, "x");
    ck_assert_str_eq(alert_state(&fixture, "unreadable:ion/x"), "resolved");
    ck_assert_str_eq(job_record(&fixture, job).state, "CANCELLED");
    ck_assert_int_eq(try_turn(&fixture, abandon_in, "none", false), WEIR_ERR_NOT_FOUND);
}

END_TEST

#define N(array) (int)(sizeof(array) / sizeof((array)[0]))

int main(void)
{
    const struct weir_test_loop loops[] = {
        {a_command_that_ends_well_succeeds, 0},
        {a_failure_is_an_alert_that_the_next_success_resolves, 0},
        {a_run_ends_as_its_job_does, 3},
        {a_job_that_is_over_cannot_be_cancelled, 0},
        {a_gang_whose_node_is_lost_starts_again, 0},
        {a_wrong_specification_leaves_nothing, 7},
        {a_detector_becomes_the_version_that_it_names, 0},
        {a_trigger_becomes_one_job_however_often_its_action_fails, 0},
        {a_model_is_offered_to_its_ion_once, 0},
        {a_model_without_a_run_is_nobodys_candidate, 0},
        {a_model_without_a_run_comes_to_links_that_begin_at_it, 0},
        {a_training_that_fails_is_told_by_its_ion, 0},
        {replicas_ask_for_the_gpus_of_their_ion, 2},
        {a_replica_gets_folders_of_those_before_it_in_its_project, 0},
        {a_training_that_cannot_be_made_has_failed, 0},
        {an_action_that_became_pointless_does_nothing, 6},
        {an_action_that_nobody_knows_is_an_error, 4},
        {a_deleted_ion_stops_its_jobs, 0},
        {only_ions_that_use_a_dataset_hear_of_its_new_version, 0},
        {what_cannot_be_read_is_named_and_can_be_given_up, 0},
    };
    Suite *suite = suite_create("control");
    TCase *tcase = tcase_create("control");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (int i = 0; i < N(loops); i++) {
        tcase_add_loop_test(tcase, loops[i].test, 0, loops[i].n_loops > 0 ? loops[i].n_loops : 1);
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
