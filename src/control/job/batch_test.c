/* Batch predictions: what names in a specification become when the job is made. */
#include "control/alias.h"
#include "control/job/control_fixture.h"

#include "base/test_main.h"
#include "control/deploy.h"

static struct control_fixture fixture;

#define PICTURE "\"inputs\":[{\"name\":\"x\"}],\"picture\":{\"input\":\"x\"}"

struct pushed {
    const char *id, *model, *signature;
};

static weir_status push_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    const struct pushed *pushed = context;
    struct weir_model_version out, version = {.id = (char *)pushed->id,
                                              .model = (char *)pushed->model,
                                              .blob = (char *)pushed->id,
                                              .signature = (char *)pushed->signature};
    return control_model_register(control, txn, &version, &out, err);
}

static weir_status alias_in(struct control *control, struct weir_txn *txn, void *context,
                            struct weir_error *err)
{
    return control_alias_set(control, txn, "digits", context, 1, err);
}

static void set_up(void)
{
    static const struct pushed all[] = {
        {"d1", "digits", "{\"output_kind\":\"logits\",\"labels\":[\"0\"]," PICTURE "}"},
        {"d2", "digits", "{\"output_kind\":\"logits\"," PICTURE "}"},
        {"e1", "faces.model", "{\"output_kind\":\"embedding\"," PICTURE "}"},
        {"t1", "tensors", "{\"picture\":null,\"inputs\":[{\"name\":\"x\"}]}"},
        {"o1", "old", NULL},
    };
    control_fixture_make(&fixture);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        turn(&fixture, push_in, (void *)&all[i]);
    }
    turn(&fixture, alias_in, (char *)"stable");
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

static weir_status create_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    struct weir_job job;
    json_t *spec = json_loads(context, 0, NULL);
    REQUIRE(spec != NULL);
    const struct control_job wanted = {
        .id = "j1", .name = "b", .project = "default", .kind = "batch", .spec = spec};
    weir_status status = control_job_create(control, txn, &wanted, &job, err);
    json_decref(spec);
    return status;
}

static json_t *task_spec(int64_t rank)
{
    json_t *spec = NULL;
    struct weir_task *tasks;
    void *items;
    size_t n = list_records(&fixture, &weir_task_resource, &items);
    tasks = items;
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].rank == rank) {
            json_t *definition = json_loads(tasks[i].definition, 0, NULL);
            spec = json_loads(json_string_value(json_object_get(
                                  json_object_get(definition, "files"), "spec.json")),
                              0, NULL);
            json_decref(definition);
        }
    }
    ck_assert_ptr_nonnull(spec);
    return spec;
}

static void expect_text(const json_t *object, const char *member, const char *text)
{
    ck_assert_msg(json_is_string(json_object_get(object, member)), "%s", member);
    ck_assert_str_eq(json_string_value(json_object_get(object, member)), text);
}

START_TEST(versions_are_chosen_when_the_job_is_made)
{
    turn(&fixture, create_in,
         (char *)"{\"model\":\"digits@stable\",\"dataset\":\"faces\",\"tasks\":2,\"top\":3}");
    struct weir_job job = job_record(&fixture, "j1");
    WEIR_AUTO(weir_json_auto_free) json_t *spec = json_loads(job.spec, 0, NULL);
    expect_text(spec, "model", "digits@v1");
    expect_text(spec, "dataset", "faces@v1");
    ck_assert_uint_eq(json_object_size(spec),
                      4); /* a restart is handed what a person could write */
    WEIR_AUTO(weir_json_auto_free) json_t *task = task_spec(1);
    expect_text(task, "blob", "d1");
    expect_text(task, "manifest", "b1");
    expect_text(task, "data", "/data/faces");
    expect_text(task, "run", job.run);
    ck_assert_int_eq(json_integer_value(json_object_get(task, "rank")), 1);
    ck_assert_uint_eq(
        json_array_size(json_object_get(json_object_get(task, "signature"), "labels")), 1);
    struct weir_run run;
    ck_assert(find_record(&fixture, &weir_run_resource, job.run, &run));
    ck_assert_str_eq(run.kind, "batch");
    ck_assert_str_eq(run.dataset, "faces");
    ck_assert_int_eq(run.dataset_version, 1);
}

END_TEST

START_TEST(without_a_version_the_newest_is_meant)
{
    turn(&fixture, create_in, (char *)"{\"model\":\"digits\",\"dataset\":\"faces@v1\"}");
    WEIR_AUTO(weir_json_auto_free) json_t *task = task_spec(0);
    expect_text(task, "model", "digits@v2");
    expect_text(task, "blob", "d2");
}

END_TEST

START_TEST(what_cannot_be_predicted_is_refused_with_a_sentence)
{
    static const struct {
        const char *spec, *sentence;
        weir_status status;
    } cases[] = {
        {"{\"model\":\"digit\",\"dataset\":\"faces\"}", "did you mean \"digits\"?",
         WEIR_ERR_NOT_FOUND},
        {"{\"model\":\"digits@v9\",\"dataset\":\"faces\"}", "there are v", WEIR_ERR_NOT_FOUND},
        {"{\"model\":\"digits@\",\"dataset\":\"faces\"}", "NAME@ALIAS", WEIR_ERR_INVALID},
        {"{\"model\":\"old\",\"dataset\":\"faces\"}", "push its file again", WEIR_ERR_UNSUPPORTED},
        {"{\"model\":\"tensors\",\"dataset\":\"faces\"}", "takes no picture", WEIR_ERR_UNSUPPORTED},
        {"{\"model\":\"faces.model\",\"dataset\":\"faces\",\"format\":\"csv\"}", "take jsonl",
         WEIR_ERR_UNSUPPORTED},
        {"{\"model\":\"digits\",\"dataset\":\"face\"}", "did you mean \"faces\"?",
         WEIR_ERR_NOT_FOUND},
        {"{\"model\":\"digits\",\"dataset\":\"faces@v7\"}", "no version 7", WEIR_ERR_NOT_FOUND},
        {"{\"model\":\"digits\",\"dataset\":\"faces@best\"}", "expected a number",
         WEIR_ERR_INVALID},
        {"{\"model\":\"digits\",\"dataset\":\"faces\",\"blob\":\"x\"}", "blob", WEIR_ERR_INVALID},
        {"{\"model\":\"digits\",\"dataset\":\"faces\",\"output\":\"/s/blobs\"}",
         "Weir's own folder", WEIR_ERR_INVALID},
        {"{\"model\":\"digits\",\"dataset\":\"faces\",\"output\":\"out\"}", "absolute path",
         WEIR_ERR_INVALID},
        {"{\"model\":\"digits\",\"dataset\":\"faces\",\"format\":\"xml\"}", "\"jsonl\" or \"csv\"",
         WEIR_ERR_INVALID},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        weir_status status = try_turn(&fixture, create_in, (char *)cases[i].spec, false);
        ck_assert_msg(status == cases[i].status, "%s: %s: %s", cases[i].spec,
                      weir_status_name(status), fixture.err.message);
        ck_assert_msg(strstr(fixture.err.message, cases[i].sentence) != NULL, "%s",
                      fixture.err.message);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("batch", set_up, tear_down, versions_are_chosen_when_the_job_is_made,
                    without_a_version_the_newest_is_meant,
                    what_cannot_be_predicted_is_refused_with_a_sentence)
