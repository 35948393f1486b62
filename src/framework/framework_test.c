#include "framework/framework.h"

#include "base/kind_laws.h"
#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;
static struct weir_launch *launches;
static size_t n_launches;
static struct weir_job_request request;

static weir_status plan(const char *kind, const char *spec_text)
{
    json_t *spec = json_loads(spec_text, 0, NULL);
    ck_assert_ptr_nonnull(spec);
    struct weir_launch_job job = {.id = "j1",
                                  .kind = kind,
                                  .spec = spec,
                                  .shared_dir = "/s",
                                  .server_url = "http://h:1",
                                  .secret = "ab"};
    weir_status status = weir_framework_plan(&job, &arena, &launches, &n_launches, &request, &err);
    json_decref(spec);
    return status;
}

/* Member `name` of the spec.json of task i, as text. */
static const char *spec_member(size_t i, const char *name)
{
    json_t *definition = json_loads(launches[i].definition, 0, NULL);
    const char *text =
        json_string_value(json_object_get(json_object_get(definition, "files"), "spec.json"));
    json_t *spec = json_loads(text, 0, NULL);
    char *copy = weir_json_text(json_object_get(spec, name), &arena);
    json_decref(spec);
    json_decref(definition);
    return copy;
}

START_TEST(job_kinds_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_job_kinds);
    for (size_t i = 0; i < weir_job_kinds.n_kinds; i++) {
        const struct weir_job_ops *ops = weir_job_ops_of(weir_job_kinds.kinds[i]->name);
        ck_assert(ops != NULL && ops->check != NULL && ops->plan != NULL && ops->max_restarts >= 0);
    }
    ck_assert_ptr_null(weir_job_ops_of("dance"));
}

END_TEST

START_TEST(a_training_is_a_gang_of_workers_then_servers)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(plan("train", "{\"model\":\"lenet\",\"workers\":2,\"parameter_servers\":1}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 3);
    ck_assert_str_eq(launches[1].role, "worker");
    ck_assert_str_eq(launches[2].role, "parameter_server");
    ck_assert_int_eq(launches[1].cpu_millis, 1000);
    ck_assert_str_eq(spec_member(1, "rank"), "1");
    ck_assert_str_eq(spec_member(2, "role"), "\"parameter_server\"");
    ck_assert_str_eq(spec_member(0, "rendezvous"), "\"env://WEIR_RENDEZVOUS\"");
    ck_assert_ptr_nonnull(strstr(launches[1].definition, "\"needs_folder\":true"));
    ck_assert_ptr_nonnull(strstr(launches[1].definition, "tcp://{{0|@address:@port}}"));
    ck_assert_str_eq(spec_member(0, "checkpoint_dir"), "\"/s/checkpoints/j1\"");
    ck_assert_str_eq(spec_member(0, "model"), "\"lenet\"");
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(the_model_of_a_tracked_training_is_kept_unless_it_goes_elsewhere)
{
    static const struct {
        const char *spec, *output;
    } cases[] = {
        {"{\"model\":\"lenet\",\"run\":\"r\"}", "\"output/model.safetensors\""},
        {"{\"model\":\"lenet\",\"run\":\"r\",\"elastic\":true}", "\"output/model.safetensors\""},
        {"{\"model\":\"lenet\",\"run\":\"r\",\"model_name\":\"digits\"}", NULL},
        {"{\"model\":\"lenet\",\"run\":\"r\",\"output\":\"m.safetensors\"}", "\"m.safetensors\""},
        {"{\"model\":\"lenet\"}", NULL},
    };

    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(plan("train", cases[i].spec), WEIR_OK);
        if (cases[i].output != NULL) {
            ck_assert_str_eq(spec_member(0, "output"), cases[i].output);
        } else {
            ck_assert_ptr_null(strstr(launches[0].definition, "model.safetensors"));
        }
    }
    ck_assert_int_eq(plan("train", "{\"model\":\"lenet\",\"run\":\"r\",\"workers\":2}"), WEIR_OK);
    ck_assert_ptr_nonnull(strstr(launches[0].definition, "output/model.safetensors"));
    ck_assert_ptr_null(strstr(launches[1].definition, "output/")); /* all have the same weights */
    weir_arena_fini(&arena);
}

END_TEST

/* A command whose one file has this many bytes. */
static weir_status plan_with_file(size_t file_bytes, int n_tasks)
{
    char *file = weir_arena_alloc(&arena, file_bytes + 1);
    memset(file, 'x', file_bytes);
    return plan("command", weir_arena_printf(
                               &arena, "{\"argv\":[\"a\"],\"tasks\":%d,\"files\":{\"f\":\"%s\"}}",
                               n_tasks, file));
}

START_TEST(tasks_times_text_is_bounded)
{
    weir_arena_init(&arena, 0);
    size_t most = WEIR_FRAMEWORK_TEXT_MAX_BYTES / 64 - 256;
    ck_assert_int_eq(plan_with_file(most, 64), WEIR_OK);
    ck_assert_uint_eq(n_launches, 64);
    ck_assert_int_eq(plan_with_file(most, 66), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "66 tasks"));
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(tasks_of_a_batch_prediction_are_equal_and_start_each_on_its_own)
{
    weir_arena_init(&arena, 0);
    WEIR_AUTO(weir_json_auto_free)
    json_t *spec =
        json_loads("{\"model\":\"m@v1\",\"dataset\":\"d@v1\",\"tasks\":3,\"output\":\"/out\","
                   "\"resources\":{\"cpus\":2}}",
                   0, NULL);
    WEIR_AUTO(weir_json_auto_free) json_t *pinned = json_loads("{\"blob\":\"b\"}", 0, NULL);
    struct weir_launch_job job = {
        .id = "j1", .kind = "batch", .spec = spec, .pinned = pinned, .shared_dir = "/s"};
    ck_assert_int_eq(weir_framework_plan(&job, &arena, &launches, &n_launches, &request, &err),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 3);
    ck_assert(request.is_array);
    ck_assert_int_eq(launches[2].cpu_millis, 2000);
    ck_assert_str_eq(spec_member(2, "rank"), "2");
    ck_assert_str_eq(spec_member(2, "threads"), "2");
    ck_assert_str_eq(spec_member(2, "blob"), "\"b\"");
    ck_assert_ptr_nonnull(
        strstr(launches[0].definition, "{\"path\":\"/out\",\"access\":\"write\"}"));
    ck_assert_ptr_nonnull(strstr(launches[0].definition, "batch-predict"));
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(an_elastic_training_is_one_task_that_starts_its_workers)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(plan("train", "{\"model\":\"lenet\",\"workers\":3,\"elastic\":true}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 1);
    ck_assert_str_eq(launches[0].role,
                     "command"); /* which a worker's options take for: a launcher */
    ck_assert_int_eq(launches[0].cpu_millis, 3000);
    ck_assert_str_eq(spec_member(0, "workers"), "3");
    ck_assert_str_eq(spec_member(0, "checkpoint_dir"), "\"/s/checkpoints/j1\"");
    ck_assert_ptr_null(strstr(launches[0].definition, "rank"));
    ck_assert_int_eq(plan("train", "{\"model\":\"lenet\",\"workers\":3,\"elastic\":false}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 3);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_command_keeps_its_words)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"sh\",\"-c\",\"exit 3\"],\"tasks\":2,"
                                     "\"memory_max_bytes\":4194304}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 2);
    ck_assert_int_eq(launches[1].memory_bytes, 4194304);
    json_t *definition = json_loads(launches[1].definition, 0, NULL);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(definition, "argv"), 2)),
                     "exit 3");
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(definition, "env"), "WEIR_RANK")), "1");
    json_decref(definition);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_cannot_be_started_says_why)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(plan("ray", "{}"), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(plan("dance", "{}"), WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("train", "{\"workers\":0}"), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "$.spec.workers: expected an integer from 1 to 1024");
    ck_assert_int_eq(plan("train", "{\"workers\":1000,\"parameter_servers\":1000}"),
                     WEIR_ERR_LIMIT);
    ck_assert_int_eq(plan("command", "{\"argv\":[]}"), WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("command", "{\"argv\":[1]}"), WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"x\"],\"env\":\"A=b\"}"), WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"x\"],\"files\":{\"a\":1}}"), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "$.spec.files.a: expected a string: put the value into quotes");
    ck_assert_int_eq(plan("command", "{\"argv\":[\"./a\"],\"files\":{\"b\":\"#!/bin/sh\"}}"),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "none of the job's files"));
    ck_assert_int_eq(plan("command", "{\"argv\":[\"./d/a\"],\"files\":{\"d/a\":\"echo\"}}"),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "does not begin with \"#!\""));
    ck_assert_int_eq(plan("command", "{\"argv\":[\"./d/a\"],\"files\":{\"d/a\":\"#!/bin/sh\"}}"),
                     WEIR_OK);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"/usr/bin/a\"]}"), WEIR_OK);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"../a\"]}"), WEIR_OK);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"x\"],\"memory_max_bytes\":-1}"),
                     WEIR_ERR_INVALID);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("framework", job_kinds_keep_the_laws_of_registries,
               a_training_is_a_gang_of_workers_then_servers,
               the_model_of_a_tracked_training_is_kept_unless_it_goes_elsewhere,
               tasks_of_a_batch_prediction_are_equal_and_start_each_on_its_own,
               an_elastic_training_is_one_task_that_starts_its_workers, a_command_keeps_its_words,
               what_cannot_be_started_says_why, tasks_times_text_is_bounded)
