/* Models pushed, named, deployed and asked, as commands say it. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"

#include <string.h>

#define BLOB_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" /* of "x" */
#define TASK   "00000000-0000-4000-8000-0000000000a1"
#define JOB    "00000000-0000-4000-8000-0000000000b1"

static void put_file(const char *name, const char *text)
{
    ck_assert_int_eq(weir_file_write(name, text, strlen(text), 0600, NULL), WEIR_OK);
}

static void set_up(void)
{
    cli_open();
    ck_assert_int_eq(chdir(callers.fixture.dir), 0);
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    put_file("x.onnx", "\x08\x07xx");
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    cli_close();
}

START_TEST(a_model_is_pushed_with_labels_rule_and_alias)
{
    put_file("labels.txt", "cat\ndog\r\n\n");
    put_file("rule.yaml", "width: 28\nmean: [0.5]\n");
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx", "--labels", "labels.txt", "--preprocess",
                "rule.yaml", "--alias", "stable");
    ck_assert_ptr_nonnull(strstr(cli.out, "digits version 1, alias stable: 4 bytes, onnx, run by"));
    ck_assert_ptr_nonnull(strstr(cli.out, "Weir runs it"));
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx", "-ojson");
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "version")), 2);
    EXPECT_EXIT(0, "model", "alias", "digits", "best", "v2");
    EXPECT_EXIT(0, "model", "alias", "digits", "best", "stable"); /* where that one points */
    ck_assert_ptr_nonnull(strstr(cli.out, "digits@best is version 1"));
    EXPECT_EXIT(0, "get", "versions", "digits");
    ck_assert_ptr_nonnull(strstr(cli.out, "best, stable  -")); /* its aliases and deployments */
    ck_assert_ptr_nonnull(strstr(cli.out, "EXECUTOR"));
    EXPECT_EXIT(0, "describe", "version", "digits@best");
    ck_assert_ptr_nonnull(strstr(cli.out, "aliases              best, stable\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "labels               cat\n"));
    EXPECT_EXIT(0, "describe", "version", "digits", "-ojson"); /* the newest */
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "version")), 2);
    EXPECT_REFUSED(4, "digits", "describe", "version", "digits@v7");
    EXPECT_EXIT(0, "model", "alias", "digits", "best", "--delete");
    EXPECT_REFUSED(4, "has no alias", "model", "alias", "digits", "good", "best");
    EXPECT_EXIT(0, "model", "export", "digits@stable", "--file", "out.onnx");
    EXPECT_REFUSED(5, "--force", "model", "export", "digits", "--file", "out.onnx");
    EXPECT_REFUSED(2, "NAME@v3", "model", "export", "digits@");
}

END_TEST

START_TEST(a_model_is_pushed_from_what_a_run_left)
{
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "train", .node = "n", .run = "run-1", .spec = "{}"});
    EXPECT_REFUSED(4, "run run-1 has no model", "model", "push", "digits", "--run", "run-1");
    EXPECT(200, "PUT " API "/runs/run-1/artifacts/out/model.onnx\n\nx");
    EXPECT_REFUSED(2, "of which file?", "model", "push", "digits");
    EXPECT_REFUSED(4, "run", "model", "push", "digits", "--run", "none");
    EXPECT_REFUSED(4, "no artifact", "model", "push", "digits", "--run", "run-1", "elsewhere");
    put_file("labels.txt", "cat\ndog\n");
    EXPECT_EXIT(0, "model", "push", "digits", "--run", "run-1", "out", "--labels", "labels.txt",
                "-ojson");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "blob")), BLOB_X);
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "run")), "run-1");
    EXPECT_EXIT(0, "model", "push", "digits", "--run", "run-1", "--alias", "best");
    ck_assert_ptr_nonnull(strstr(cli.out, "digits version 2, alias best: 1 bytes, onnx"));
}

END_TEST

START_TEST(what_is_no_model_is_refused_with_what_is_missing)
{
    put_file("bad.onnx", "bad, and no model");
    EXPECT_REFUSED(2, "neither a model that Weir trained", "model", "push", "digits", "bad.onnx");
    EXPECT_REFUSED(4, "", "model", "push", "digits", "none.onnx");
    put_file("rule.yaml", "width: [");
    EXPECT_REFUSED(2, "rule.yaml", "model", "push", "digits", "x.onnx", "--preprocess",
                   "rule.yaml");
}

END_TEST

START_TEST(a_model_is_deployed_changed_and_undeployed)
{
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx");
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx");
    EXPECT_EXIT(0, "deploy", "digits", "--no-wait", "--replicas", "0..2", "--batch", "16",
                "--max-delay", "500us", "--cpus", "2", "--memory", "1GiB");
    ck_assert_ptr_nonnull(strstr(cli.out, "digits is DEPLOYING: traffic none, 0 of 0..2 replicas"));
    ck_assert_ptr_nonnull(strstr(cli.out, "/v2/models/digits/infer"));
    EXPECT_EXIT(0, "get", "deployments", "-ojson");
    const json_t *item = json_array_get(json_object_get(cli.json, "items"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(item, "delay_max_us")), 500);
    ck_assert_int_eq(json_integer_value(json_object_get(item, "batch_max")), 16);
    ck_assert_int_eq(json_integer_value(json_object_get(item, "memory_bytes")), 1 << 30);
    EXPECT_EXIT(0, "deploy", "digits", "--no-wait", "--traffic", "v1=90,v2=10", "--mirror", "v2");
    EXPECT_EXIT(0, "describe", "deployment", "digits");
    ck_assert_ptr_nonnull(strstr(cli.out, "ASKED %"));
    ck_assert_ptr_nonnull(strstr(cli.out, "digits-1"));
    EXPECT_EXIT(0, "get", "deployments");
    EXPECT_EXIT(0, "get", "versions", "digits");
    ck_assert_ptr_null(strpbrk(cli.out, "[]\""));
    EXPECT_REFUSED(9, "goes on", "deploy", "digits", "--timeout", "1s");
    EXPECT_EXIT(0, "undeploy", "digits");
    EXPECT_REFUSED(4, "no deployment", "undeploy", "digits");
}

END_TEST

START_TEST(what_is_proposed_is_what_the_model_takes)
{
    put_file("rule.yaml", "width: 28\n");
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx", "--preprocess", "rule.yaml");
    EXPECT_OUT("picture  yes: weir predict takes a picture");
    EXPECT_EXIT(0, "deploy", "digits", "--no-wait");
    EXPECT_OUT("try it   weir predict digits PICTURE");
    put_file("vector.onnx", "\x08\x07[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,2]}]");
    EXPECT_EXIT(0, "model", "push", "iris", "vector.onnx");
    EXPECT_OUT("picture  no: requests send tensors\n");
    EXPECT_EXIT(0, "deploy", "iris", "--no-wait");
    EXPECT_OUT("try it   weir predict iris request.json");
    EXPECT_OUT("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],");
    ck_assert_ptr_null(strstr(cli.out, "PICTURE"));
    put_file("text.onnx", "\x08\x07[{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[-1]}]");
    EXPECT_EXIT(0, "model", "push", "iris", "text.onnx");
    EXPECT_OUT("picture  no: requests send texts");
    EXPECT_EXIT(0, "deploy", "iris", "--traffic", "v1=40,v2=60", "--no-wait");
    EXPECT_OUT("\"data\":[\"a text\"]"); /* the version that gets most */
}

END_TEST

START_TEST(a_version_that_cannot_be_loaded_fails_the_command)
{
    char replica[BEARER_BYTES];
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx");
    EXPECT_EXIT(0, "deploy", "digits", "--no-wait");
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "serve", .node = "n", .replica = "digits-1"});
    task_bearer(TASK, replica);
    EXPECT_STATUS(204, ask_as(replica, "PUT " API "/deployments/digits/replicas/digits-1\n\n"
                                       "{\"url\":\"http://h:1\",\"versions\":[{\"version\":1,"
                                       "\"state\":\"FAILED\",\"reason\":\"no operator Foo\"}]}"));
    EXPECT_REFUSED(4, "there is no model \"digit\"", "deploy", "digit");
    EXPECT_EXIT(0, "describe", "deployment", "digits");
    ck_assert_ptr_nonnull(strstr(cli.out, "no operator Foo"));
}

END_TEST

START_TEST(what_makes_no_sense_is_refused_with_a_cure)
{
    EXPECT_EXIT(0, "model", "push", "digits", "x.onnx");
    EXPECT_REFUSED(2, "not both", "deploy", "digits@v1", "--traffic", "v1=100", "--no-wait");
    EXPECT_REFUSED(2, "5ms or 500us", "deploy", "digits", "--max-delay", "soon", "--no-wait");
    EXPECT_REFUSED(4, "there is v1", "deploy", "digits@v7", "--no-wait");
    EXPECT_REFUSED(4, "did you mean \"digits\"?", "deploy", "digit", "--no-wait");
    EXPECT_REFUSED(2, "expected A..B", "deploy", "digits", "--replicas", "3..1", "--no-wait");
}

END_TEST

START_TEST(a_picture_becomes_a_table_of_labels)
{
    put_file("a.png", "\x89PNG\r\n\x1a\n and so on");
    put_file("a.txt", "no picture");
    put_file("a.json", "{\"inputs\":[]}");
    cli.script_path = "/v2/models/digits";
    cli.script_status = 200;
    cli.script_body = "{\"model_name\":\"digits\",\"model_version\":\"1\",\"outputs\":[],"
                      "\"labels\":[{\"label\":\"cat\",\"probability\":0.75},"
                      "{\"label\":\"dog\",\"probability\":0.25}]}";
    EXPECT_EXIT(0, "predict", "digits", "a.png", "--top", "1");
    ck_assert_ptr_nonnull(strstr(cli.out, "PROBABILITY"));
    ck_assert_ptr_nonnull(strstr(cli.out, "cat"));
    ck_assert_ptr_nonnull(strstr(cli.out, "0.7500"));
    ck_assert_ptr_null(strstr(cli.out, "dog"));
    EXPECT_EXIT(0, "predict", "digits", "a.png", "a.png", "-ojson");
    ck_assert_uint_eq(json_array_size(cli.json), 2);
    cli.script_body = "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,2],"
                      "\"data\":[0.5,-1]}]}";
    EXPECT_EXIT(0, "predict", "digits", "a.json");
    ck_assert_ptr_nonnull(strstr(cli.out, "y FP32[1,2] 0.5 -1"));
    EXPECT_REFUSED(7, "neither a JPEG nor a PNG", "predict", "digits", "a.txt");
    EXPECT_REFUSED(4, "cannot read", "predict", "digits", "none.png");
}

END_TEST

WEIR_TEST_MAIN_WITH("serve", set_up, tear_down, a_model_is_pushed_with_labels_rule_and_alias,
                    a_model_is_pushed_from_what_a_run_left,
                    what_is_no_model_is_refused_with_what_is_missing,
                    a_model_is_deployed_changed_and_undeployed,
                    what_is_proposed_is_what_the_model_takes,
                    a_version_that_cannot_be_loaded_fails_the_command,
                    what_makes_no_sense_is_refused_with_a_cure, a_picture_becomes_a_table_of_labels)
