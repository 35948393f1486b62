#include "framework/paths.h"

#include "base/test_main.h"
#include "framework/framework.h"

#include <string.h>

static weir_status check(const char *text, const char *project, struct weir_error *err)
{
    json_t *spec = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(spec);
    json_t *datasets = json_loads("{\"mine\":\"/var/lib/weir/datasets/mine\"}", 0, NULL);
    const struct weir_reach reach = {"/var/lib/weir", project, datasets};
    weir_status status = weir_framework_paths_check(&reach,
                                                    json_object_get(spec, "source") != NULL ||
                                                            json_object_get(spec, "sinks") != NULL
                                                        ? "predict"
                                                        : "train",
                                                    "$.spec", spec, err);
    json_decref(spec);
    json_decref(datasets);
    return status;
}

START_TEST(paths_in_weirs_own_folder_are_refused_but_for_what_was_looked_up_and_the_demo)
{
    static const char *const good[] = {
        "{\"data\":\"/srv/faces\",\"model\":\"lenet\",\"output\":\"model.safetensors\"}",
        "{\"data\":\"/var/lib/weir/datasets/mine\"}",
        "{\"data\":\"/var/lib/weird/faces\"}",
        ("{\"source\":{\"kind\":\"directory\",\"path\":\"/var/lib/weir/demo/frames\"},"
         "\"sinks\":[{\"kind\":\"jsonl\",\"path\":\"/srv/out.jsonl\"}]}"),
        "{\"source\":{\"kind\":\"http\"}}",
    };
    static const char *const bad[][2] = {
        {"{\"data\":\"/var/lib/weir\"}", "$.spec.data"},
        {"{\"data\":\"/var/lib/weir/blobs\"}", "$.spec.data"},
        {"{\"data\":\"/srv/../var/lib/weir/blobs\"}", "$.spec.data"},
        {"{\"data\":\"/var/lib/weir/datasets/..\"}", "$.spec.data"},
        {"{\"data\":\"/var/lib/weir/datasets/faces\"}", "$.spec.data"},
        {"{\"data\":\"//var/lib/./weir/datasets/faces\"}", "$.spec.data"},
        {"{\"data\":\"/var/lib/weir/datasets/mine/../faces\"}", "$.spec.data"},
        {"{\"data\":\"../../../../datasets/faces\"}", "$.spec.data"},
        {"{\"data\":\"/srv\",\"validation\":\"/var/lib/weir/datasets/faces\"}",
         "$.spec.validation"},
        {"{\"weights\":\"/var/lib/weir/datasets/faces/ada/1.png\"}", "$.spec.weights"},
        {"{\"weights\":\"file:///var/lib/weir/blobs/x\"}", "$.spec.weights"},
        {"{\"model\":\"/var/lib/weir/datasets/faces/a\"}", "$.spec.model"},
        {"{\"tuning\":\"/var/lib/weir/server.json\"}", "$.spec.tuning"},
        {"{\"output\":\"/var/lib/weir/datasets/mine\"}", "$.spec.output"},
        {"{\"data\":\"/var/lib/weir/datasets/\"}", "$.spec.data"},
        {"{\"output\":\"/var/lib/weir/datasets/faces\"}", "$.spec.output"},
        {"{\"checkpoint_dir\":\"/var/lib/weir/checkpoints/other\"}", "$.spec.checkpoint_dir"},
        {"{\"checkpoint-dir\":\"/var/lib/weir/checkpoints/other\"}", "$.spec.checkpoint_dir"},
        {"{\"rendezvous\":\"file:///var/lib/weir/rendezvous/x\"}", "$.spec.rendezvous"},
        {"{\"source\":{\"kind\":\"directory\",\"path\":\"/var/lib/weir/agent\"}}",
         "$.spec.source.path"},
        {"{\"sinks\":[{\"kind\":\"jsonl\",\"path\":\"/a\"},{\"kind\":\"jsonl\",\"path\":\"/var/lib/"
         "weir/weir.db\"}]}",
         "$.spec.sinks[1].path"},
    };
    struct weir_error err;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_msg(check(good[i], "default", &err) == WEIR_OK, "%s", good[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(check(bad[i][0], "default", &err) == WEIR_ERR_INVALID, "%s", bad[i][0]);
        ck_assert_msg(strncmp(err.message, bad[i][1], strlen(bad[i][1])) == 0, "%s", err.message);
    }
    /* The demo's folder is for the project that its ION is in. */
    ck_assert_int_eq(check(good[3], "beta", &err), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_definition_says_what_its_task_reads_and_writes)
{
    json_t *spec = json_loads("{\"data\":\"/srv/faces\",\"model\":\"lenet\",\"rendezvous\":"
                              "\"file:///s/rendezvous/j\",\"checkpoint_dir\":\"/s/checkpoints/j\"}",
                              0, NULL);
    json_t *datasets = json_loads("{\"faces\":\"/s/datasets/faces\"}", 0, NULL);
    json_t *definition = json_object();
    const struct weir_launch_job job = {.shared_dir = "/s", .datasets = datasets};
    paths_describe(&weir_job_train, &job, spec, definition);
    json_t *expected = json_loads("{\"state\":\"/s\",\"paths\":["
                                  "{\"path\":\"/srv/faces\",\"access\":\"read\"},"
                                  "{\"path\":\"/s/rendezvous/j\",\"access\":\"write\"},"
                                  "{\"path\":\"/s/checkpoints/j\",\"access\":\"write\"},"
                                  "{\"path\":\"/s/datasets/faces\",\"access\":\"read\"}],"
                                  "\"folders\":[\"datasets/faces\"]}",
                                  0, NULL);
    ck_assert(json_equal(definition, expected));
    json_decref(spec);
    json_decref(datasets);
    json_decref(definition);
    json_decref(expected);
}

END_TEST

WEIR_TEST_MAIN("framework paths",
               paths_in_weirs_own_folder_are_refused_but_for_what_was_looked_up_and_the_demo,
               a_definition_says_what_its_task_reads_and_writes)
