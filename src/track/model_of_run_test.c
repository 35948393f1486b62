/* Which file of a run is its model, and what a version made of it says. */
#include "track/model_of_run.h"

#include "base/test_main.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/run.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    int64_t number;
    const struct weir_run run = {.id = (char *)"r",
                                 .name = (char *)"r",
                                 .project = "default",
                                 .kind = "train",
                                 .status = "FINISHED",
                                 .dataset = "photos",
                                 .dataset_version = 3,
                                 .code_version = "abc",
                                 .parameters = "{\"epochs\":2,\"optimizer\":{\"name\":\"adam\"}}"};
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    MUST(weir_run_insert(txn, &run, &number, err));
    const struct weir_tag logged = {.key = "lr", .value = "0.1"};
    MUST(weir_run_parameters_put(txn, number, &logged, 1, err));
    const struct weir_metric metrics[] = {{.key = "loss", .step = 1, .value = 2},
                                          {.key = "loss", .step = 2, .value = 0.5},
                                          {.key = "broken", .step = 1, .value = NAN}};
    return weir_metrics_log(txn, number, metrics, WEIR_ARRAY_LEN(metrics), err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static void put(struct weir_txn *txn, const char *path, struct weir_error *err)
{
    const struct weir_artifact artifact = {
        .run = "r", .path = (char *)path, .blob = "abc", .bytes = 1, .created_by = "ann"};
    ck_assert_msg(weir_artifact_put(txn, &artifact, err) == WEIR_OK, "%s", err->message);
}

static void expect(struct weir_txn *txn, const char *folder, const char *path,
                   struct weir_error *err)
{
    struct weir_artifact file;
    const char *why;
    ck_assert_msg(weir_model_of_run_find(txn, "r", folder, &fixture.arena, &file, &why, err) ==
                      WEIR_OK,
                  "%s", err->message);
    ck_assert_ptr_null(why);
    ck_assert_str_eq(file.path, path);
}

static void expect_none(struct weir_txn *txn, const char *folder, const char *part,
                        struct weir_error *err)
{
    struct weir_artifact file;
    const char *why;
    ck_assert_msg(weir_model_of_run_find(txn, "r", folder, &fixture.arena, &file, &why, err) ==
                      WEIR_OK,
                  "%s", err->message);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, part));
}

/* Each is better than all that were put before it. */
static weir_status find(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    static const char *const better[] = {
        "x/z.safetensors",   "z.safetensors", "a.safetensors", "x/y/model.safetensors",
        "model.safetensors", "x/y/z.onnx",    "a.onnx",        "x/y/model.onnx",
        "x/model.onnx"};
    expect_none(txn, NULL, "no artifact", err);
    put(txn, "notes.txt", err);
    put(txn, ".onnx/x", err);
    put(txn, ".safetensors", err); /* an extension of nothing */
    expect_none(txn, "", "no ONNX or safetensors", err);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(better); i++) {
        put(txn, better[i], err);
        expect(txn, i % 2 ? "" : NULL, better[i], err);
    }
    expect(txn, "x/y", "x/y/model.onnx", err);
    expect(txn, "a.onnx", "a.onnx", err);
    expect_none(txn, "notes.txt", "no ONNX or safetensors", err);
    expect_none(txn, "../r", "no artifact", err);
    return WEIR_OK;
}

START_TEST(the_file_that_serves_best_is_found)
{
    fixture_write(&fixture, find, NULL);
}

END_TEST

static void expect_json(const char *text, const char *expected)
{
    json_t *found = json_loads(text, 0, NULL), *wanted = json_loads(expected, 0, NULL);
    ck_assert_msg(json_equal(found, wanted), "%s is not %s", text, expected);
    json_decref(found);
    json_decref(wanted);
}

static weir_status describe(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_run run;
    struct weir_model_version version = {0};
    MUST(weir_txn_get(txn, &weir_run_resource, "r", &fixture.arena, &run, err));
    MUST(weir_model_of_run_describe(txn, &run, &fixture.arena, &version, err));
    ck_assert_str_eq(version.run, "r");
    ck_assert_str_eq(version.dataset, "photos");
    ck_assert_int_eq(version.dataset_version, 3);
    ck_assert_str_eq(version.code_version, "abc");
    expect_json(version.metrics, "{\"loss\":0.5}");
    expect_json(version.parameters,
                "{\"epochs\":2,\"optimizer\":{\"name\":\"adam\"},\"lr\":\"0.1\"}");
    struct weir_model_version said = {.metrics = "{}",
                                      .parameters = "{}",
                                      .dataset = "others",
                                      .dataset_version = 1,
                                      .code_version = "v2"};
    MUST(weir_model_of_run_describe(txn, &run, &fixture.arena, &said, err));
    ck_assert_str_eq(said.metrics, "{}");
    ck_assert_str_eq(said.parameters, "{}");
    ck_assert_str_eq(said.dataset, "others");
    ck_assert_int_eq(said.dataset_version, 1);
    ck_assert_str_eq(said.code_version, "v2");
    return WEIR_OK;
}

START_TEST(a_version_says_what_the_run_knows_unless_it_says_otherwise)
{
    fixture_write(&fixture, describe, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("model_of_run", set_up, tear_down, the_file_that_serves_best_is_found,
                    a_version_says_what_the_run_knows_unless_it_says_otherwise)
