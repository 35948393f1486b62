/* Runs, metrics, models and blobs. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "base/uuid.h"

#define RUN     API "/runs/run-1"
#define BLOB_X  "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" /* of "x" */
#define BLOB_NO "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ID_1    "00000000-0000-4000-8000-0000000000c1"
#define ID_2    "00000000-0000-4000-8000-0000000000c2"
#define JOB     "00000000-0000-4000-8000-0000000000b1"
#define TASK    "00000000-0000-4000-8000-0000000000a1"

static char task[BEARER_BYTES];

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    place_job(&(struct placed_job){.id = JOB,
                                   .task = TASK,
                                   .kind = "train",
                                   .node = "n",
                                   .run = "run-1",
                                   .spec = "{\"model_name\":\"face\"}"});
    task_bearer(TASK, task);
}

START_TEST(a_run_is_updated_as_far_as_it_is_named)
{
    EXPECT(200, "PATCH " RUN "\n\n{\"summary\":{\"accuracy\":0.5}}");
    ck_assert_str_eq(said_text("status"), "RUNNING");
    ck_assert(json_is_null(said("finished_ms")));
    EXPECT(200, "PATCH " RUN "\n\n{\"status\":\"FINISHED\"}");
    EXPECT(200, "GET " RUN);
    ck_assert_str_eq(said_text("status"), "FINISHED");
    ck_assert_double_eq(json_real_value(said("summary.accuracy")), 0.5);
    ck_assert(json_is_string(said("finished_ms")));
    EXPECT_ERROR(400, "$.status", "PATCH " RUN "\n\n{\"status\":\"DONE\"}");
    EXPECT(404, "PATCH " API "/runs/none\n\n{\"status\":\"FINISHED\"}");
    EXPECT(404, "GET " API "/runs/none");
}

END_TEST

START_TEST(metrics_are_stored_once_and_read_in_order)
{
    for (int i = 0; i < 2; i++) { /* the same again changes nothing */
        EXPECT(204, "POST " RUN "/metrics\n\n{\"metrics\":["
                    "{\"key\":\"loss\",\"step\":2,\"value\":0.25},"
                    "{\"key\":\"loss\",\"step\":1,\"value\":0.5},"
                    "{\"key\":\"epoch\",\"step\":1,\"value\":1},"
                    "{\"key\":\"bad\",\"step\":1,\"value\":null}]}");
    }
    EXPECT(200, "GET " RUN "/metrics?key=loss");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_int_eq(json_integer_value(said("items.0.step")), 1);
    ck_assert_double_eq(json_real_value(said("items.1.value")), 0.25);
    EXPECT(200, "GET " RUN "/metrics?key=loss&after_step=1");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " RUN "/metrics");
    ck_assert_uint_eq(json_array_size(said("items")), 4);
    EXPECT(200, "GET " RUN); /* its last measurements beside its fields */
    ck_assert_double_eq(json_real_value(said("loss")), 0.25);
    ck_assert_double_eq(json_real_value(said("epoch")), 1);
    ck_assert(json_is_null(said("accuracy")));
    ck_assert(json_is_null(said("metrics.bad")));
    ck_assert(json_is_null(said("registered")));
    EXPECT(400, "GET " RUN "/metrics?after_step=x");
    EXPECT(404, "POST " API "/runs/none/metrics\n\n{\"metrics\":[{\"key\":\"a\",\"step\":1,"
                "\"value\":1}]}");
}

END_TEST

START_TEST(metrics_of_wrong_form_are_refused_whole)
{
    EXPECT_ERROR(400, "$.metrics[1]",
                 "POST " RUN "/metrics\n\n{\"metrics\":["
                 "{\"key\":\"a\",\"step\":1,\"value\":1},{\"step\":1,\"value\":1}]}");
    EXPECT_ERROR(400, "$.metrics[0].colour",
                 "POST " RUN "/metrics\n\n{\"metrics\":[{\"key\":\"a\",\"colour\":1}]}");
    EXPECT_ERROR(400, "$.metrics[0].value: missing",
                 "POST " RUN "/metrics\n\n{\"metrics\":[{\"key\":\"a\",\"step\":1}]}");
    EXPECT(200, "GET " RUN "/metrics");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(runs_are_listed_by_what_they_are_of)
{
    EXPECT(200, "GET " API "/runs?job=" JOB);
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " API "/runs?status=FAILED");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "GET " API "/runs?project=default&status=RUNNING");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_ptr_nonnull(said("items.0.metrics"));
}

END_TEST

START_TEST(a_blob_is_what_its_name_says)
{
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
    ck_assert_str_eq(said_text("sha256"), BLOB_X);
    ck_assert_int_eq(json_integer_value(said("bytes")), 1);
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
    EXPECT(422, "PUT " API "/blobs/" BLOB_X "\n\ny");
    EXPECT(400, "PUT " API "/blobs/..%%2f..%%2fx\n\nx");
    EXPECT(200, "GET " API "/blobs/" BLOB_X);
    ck_assert_str_eq(said_header("Content-Type"), "application/octet-stream");
    EXPECT(404, "GET " API "/blobs/" BLOB_NO);
    ck_assert_int_ge(ask("GET " API "/blobs/..%%2fweir.db"), 400);
}

END_TEST

/** Register a version as a task does. */
static int enter(const char *model, const char *id, const char *more)
{
    return ask_as(task,
                  "POST " API "/models/%s/versions\n\n{\"id\":\"%s\",\"run\":\"run-1\","
                  "\"blob\":\"" BLOB_X "\"%s}",
                  model, id, more);
}

START_TEST(a_model_version_is_registered_once)
{
    EXPECT_STATUS(409, enter("face", ID_1, "")); /* the file is not there yet */
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
    EXPECT_STATUS(409, enter("face", ID_1, "")); /* nor has its project sent it */
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "?project=default\n\nx");
    EXPECT_STATUS(200, enter("face", ID_1, ",\"metrics\":{\"accuracy\":0.9}"));
    ck_assert_int_eq(json_integer_value(said("version")), 1);
    ck_assert_int_eq(json_integer_value(said("bytes")), 1);
    EXPECT_STATUS(200, enter("face", ID_1, "")); /* the answer was lost, say */
    ck_assert_int_eq(json_integer_value(said("version")), 1);
    ck_assert_double_eq(json_real_value(said("metrics.accuracy")), 0.9);
    EXPECT_STATUS(200, enter("face", ID_2, ""));
    ck_assert_int_eq(json_integer_value(said("version")), 2);
    EXPECT(200, "GET " API "/models/face/versions");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_int_eq(json_integer_value(said("items.0.version")), 2); /* newest first */
    EXPECT(200, "GET " RUN);
    ck_assert_str_eq(said_text("registered.model"), "face");
    ck_assert_int_ge(json_integer_value(said("registered.version")), 1);
    EXPECT(200, "GET " API "/models/face/versions/1");
    ck_assert_str_eq(said_text("id"), ID_1);
    EXPECT(200, "GET " RUN "/lineage");
    ck_assert_uint_eq(json_array_size(said("versions")), 2);
    ck_assert_int_eq(json_integer_value(said("versions.0.version")), 1); /* the oldest first */
    ck_assert_double_eq(json_real_value(said("versions.0.metrics.accuracy")), 0.9);
    ck_assert(json_is_array(said("versions.0.deployments")));
    EXPECT(204, "DELETE " API "/models/face/versions/1");
    EXPECT(204, "DELETE " API "/models/face/versions/2");
    EXPECT(200, "GET " RUN "/lineage");
    ck_assert_uint_eq(json_array_size(said("versions")), 0);
    EXPECT(404, "GET " API "/runs/none/lineage");
    EXPECT(200, "GET " RUN); /* no way leads to what was deleted */
    ck_assert(json_is_null(said("registered")));
    EXPECT(404, "GET " API "/models/face/versions/3");
    EXPECT(400, "GET " API "/models/face/versions/0");
    EXPECT(400, "GET " API "/models/face/versions/one");
    EXPECT(404, "GET " API "/models/none/versions");
}

END_TEST

START_TEST(models_and_versions_are_described_tagged_and_staged)
{
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "?project=default\n\nx");
    EXPECT_STATUS(200, enter("face", ID_1, ""));
    EXPECT_STATUS(200, enter("face", ID_2, ""));
    EXPECT(200, "PATCH " API "/models/face\n\n{\"description\":\"doors\",\"tags\":{\"team\":\"a\","
                "\"gone\":\"x\"}}");
    EXPECT(200, "PATCH " API "/models/face\n\n{\"tags\":{\"gone\":null}}");
    EXPECT(200, "GET " API "/models/face");
    ck_assert_str_eq(said_text("description"), "doors");
    ck_assert_str_eq(said_text("tags.team"), "a");
    ck_assert_uint_eq(json_object_size(said("tags")), 1);
    EXPECT(200, "PATCH " API "/models/face\n\n{\"description\":null}");
    ck_assert(json_is_null(said("description")));
    EXPECT(200, "PATCH " API "/models/face/versions/1\n\n{\"stage\":\"production\"}");
    ck_assert_str_eq(said_text("stage"), "Production");
    EXPECT(200, "PATCH " API "/models/face/versions/2\n\n{\"stage\":\"Production\","
                "\"archive_others\":true,\"description\":\"night\",\"tags\":{\"k\":\"v\"}}");
    ck_assert_str_eq(said_text("stage"), "Production");
    ck_assert_str_eq(said_text("description"), "night");
    ck_assert_str_eq(said_text("tags.k"), "v");
    EXPECT(200, "GET " API "/models/face/versions/1");
    ck_assert_str_eq(said_text("stage"), "Archived");
    EXPECT_ERROR(400, "$.stage", "PATCH " API "/models/face/versions/1\n\n{\"stage\":\"live\"}");
    EXPECT_ERROR(400, "$.archive_others",
                 "PATCH " API "/models/face/versions/1\n\n{\"archive_others\":true}");
    EXPECT_ERROR(400, "$.archive_others",
                 "PATCH " API "/models/face/versions/1\n\n{\"stage\":\"None\","
                 "\"archive_others\":true}");
    EXPECT_ERROR(400, "$.tags.k", "PATCH " API "/models/face\n\n{\"tags\":{\"k\":1}}");
    EXPECT_ERROR(400, "$.colour", "PATCH " API "/models/face\n\n{\"colour\":1}");
    EXPECT(404, "PATCH " API "/models/none\n\n{\"tags\":{}}");
    EXPECT(404, "PATCH " API "/models/face/versions/3\n\n{\"tags\":{}}");
}

END_TEST

START_TEST(a_description_is_the_tag_that_mlflows_page_shows)
{
    EXPECT(200, "POST " API "/experiments\n\n{\"name\":\"noted\",\"description\":\"why\"}");
    ck_assert_str_eq(json_string_value(json_object_get(said("tags"), "mlflow.note.content")),
                     "why");
    EXPECT(200, "PATCH " RUN "\n\n{\"description\":\"a try\",\"tags\":{\"k\":\"v\"}}");
    EXPECT(200, "GET " RUN);
    ck_assert_str_eq(json_string_value(json_object_get(said("tags"), "mlflow.note.content")),
                     "a try");
    EXPECT(200, "PATCH " RUN "\n\n{\"description\":null}");
    EXPECT(200, "GET " RUN);
    ck_assert_uint_eq(json_object_size(said("tags")), 1);
    EXPECT_ERROR(400, "$.description", "PATCH " RUN "\n\n{\"description\":1}");
}

END_TEST

START_TEST(a_task_registers_under_its_jobs_name_only)
{
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
    EXPECT_STATUS(403, enter("other", ID_1, ""));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "model_name"));
    EXPECT(404, "GET " API "/models/other");
    EXPECT(200, "POST " API "/models/other/versions\n\n{\"id\":\"" ID_1 "\",\"blob\":\"" BLOB_X
                "\"}"); /* people may */
    EXPECT(400,
           "POST " API "/models/a:b/versions\n\n{\"id\":\"" ID_2 "\",\"blob\":\"" BLOB_X "\"}");
    EXPECT_ERROR(400, "$.id",
                 "POST " API "/models/other/versions\n\n{\"id\":\"7\",\"blob\":"
                 "\"" BLOB_X "\"}");
    EXPECT_ERROR(400, "$.blob",
                 "POST " API "/models/other/versions\n\n{\"id\":\"" ID_2 "\","
                 "\"blob\":7}");
}

END_TEST

/* ---- experiments, and runs from outside ------------------------------------------------------- */

START_TEST(experiments_are_made_changed_deleted_and_restored)
{
    EXPECT(200, "POST " API "/experiments\n\n{\"name\":\"digits\",\"tags\":{\"team\":\"a\"}}");
    int id = (int)json_integer_value(said("id"));
    ck_assert_str_eq(said_text("project"), "default");
    ck_assert_str_eq(said_text("tags.team"), "a");
    EXPECT(409, "POST " API "/experiments\n\n{\"name\":\"digits\"}");
    EXPECT_ERROR(400, "$.name", "POST " API "/experiments\n\n{}");
    EXPECT(200, "PATCH " API "/experiments/%d\n\n{\"name\":\"numbers\",\"tags\":{\"team\":null}}",
           id);
    ck_assert_uint_eq(json_object_size(said("tags")), 0);
    EXPECT(200, "GET " API "/experiments?filter=name%%3D%%27numbers%%27");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT_ERROR(400, "character 1", "GET " API "/experiments?filter=color%%3D%%27x%%27");
    EXPECT(204, "DELETE " API "/experiments/%d", id);
    EXPECT(409, "DELETE " API "/experiments/%d", id);
    EXPECT(200, "GET " API "/experiments?view=deleted");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "POST " API "/experiments/%d/restore\n\n{}", id);
    ck_assert(json_is_null(said("deleted_ms")));
    EXPECT(404, "GET " API "/experiments/999");
    EXPECT_ERROR(400, "view", "GET " API "/experiments?view=some");
}

END_TEST

START_TEST(a_run_from_outside_is_found_by_what_it_says_of_itself)
{
    EXPECT(200, "POST " API "/runs\n\n{\"name\":\"mine\",\"experiment\":\"digits\",\"params\":"
                "{\"lr\":0.5},\"tags\":{\"team\":\"a\",\"gone\":\"x\"}}");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    ck_assert_str_eq(said_text("experiment_name"), "digits");
    ck_assert_str_eq(said_text("params.lr"), "0.5");
    ck_assert_str_eq(said_text("kind"), "external");
    EXPECT(200, "PATCH " API "/runs/%s\n\n{\"name\":\"ours\",\"tags\":{\"gone\":null}}", id);
    EXPECT(409, "PATCH " API "/runs/%s\n\n{\"params\":{\"lr\":1}}", id);
    EXPECT(204,
           "POST " API
           "/runs/%s/metrics\n\n{\"metrics\":[{\"key\":\"acc\",\"step\":1,\"value\":0.9},"
           "{\"key\":\"loss\",\"step\":1,\"value\":2}]}",
           id);
    EXPECT(200, "GET " API "/runs?filter=metrics.acc%%3E0.5%%20and%%20params.lr%%3D%%270.5%%27"
                "&order=metrics.acc%%20DESC&columns=metrics.acc,tags.*");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.name"), "ours");
    ck_assert_uint_eq(json_object_size(said("items.0.metrics")), 1);
    ck_assert_uint_eq(json_object_size(said("items.0.params")), 0);
    ck_assert_uint_eq(json_object_size(said("items.0.tags")), 1);
    EXPECT(200, "GET " API "/runs/summary?filter=metrics.acc%%3E0.5");
    ck_assert_int_eq(json_integer_value(said("n")), 1);
    ck_assert_str_eq(said_text("metrics.0"), "acc");
    ck_assert_str_eq(said_text("metrics.1"), "loss");
    ck_assert_str_eq(said_text("params.0"), "lr");
    ck_assert_uint_eq(json_array_size(said("tags")), 1);
    EXPECT(200, "GET " API "/runs/groups?by=params.lr&metric=loss&filter=metrics.acc%%3E0.5");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.value"), "0.5");
    ck_assert_int_eq(json_integer_value(said("items.0.n_runs")), 1);
    ck_assert_double_eq(json_real_value(said("items.0.mean")), 2);
    ck_assert(json_is_null(said("next")));
    EXPECT(200, "GET " API "/runs/groups?by=params.lr&limit=1"); /* the first have none */
    ck_assert(json_is_null(said("items.0.value")) && json_is_null(said("items.0.least")));
    EXPECT(200, "GET " API "/runs/groups?by=params.lr&limit=1&cursor=%s", said_text("next"));
    ck_assert_str_eq(said_text("items.0.value"), "0.5");
    EXPECT_ERROR(400, "grouped by", "GET " API "/runs/groups?by=metrics.loss");
    EXPECT_ERROR(400, "missing", "GET " API "/runs/groups");
    EXPECT(200, "PATCH " API "/runs/%s\n\n{\"lifecycle\":\"deleted\"}", id);
    EXPECT(200, "GET " API "/runs/summary?filter=metrics.acc%%3E0.5");
    ck_assert_int_eq(json_integer_value(said("n")), 0);
    EXPECT(200, "GET " API "/runs?filter=metrics.acc%%3E0.5");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "GET " API "/runs?filter=metrics.acc%%3E0.5&view=all");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT_ERROR(400, "$.lifecycle", "PATCH " API "/runs/%s\n\n{\"lifecycle\":\"gone\"}", id);
    EXPECT_ERROR(400, "filter, character", "GET " API "/runs/summary?filter=metrics.acc");
    EXPECT_ERROR(400, "filter, character", "GET " API "/runs?filter=metrics.acc");
    EXPECT_ERROR(400, "order, character", "GET " API "/runs?order=color");
    EXPECT(200, "GET " API "/runs?order=color\nX-Weir-Draft: 1\n");
    ck_assert_str_eq(said_header("X-Weir-Status"), "400");
    EXPECT_ERROR(400, "a page begins by one of them", "GET " API "/runs?skip=1&cursor=x");
    EXPECT(200, "GET " API "/runs?skip=1");
    ck_assert_uint_eq(json_array_size(said("items")), 0); /* there is one */
    EXPECT(404, "GET " API "/runs?experiment=77");
}

END_TEST

START_TEST(parameters_that_a_program_logged_are_told_from_those_of_its_job)
{
    char id[WEIR_UUID_BYTES];
    EXPECT(200, "POST " API "/jobs\n\n{\"name\":\"prog\",\"kind\":\"command\",\"spec\":{\"argv\":"
                "[\"true\"],\"env\":{\"A\":\"1\"}}}");
    (void)snprintf(id, sizeof id, "%s", said_text("run"));
    EXPECT(200, "PATCH " API "/runs/%s\n\n{\"params\":{\"width\":\"3\",\"depth\":\"2\"}}", id);
    EXPECT(200, "GET " API "/runs/summary");
    ck_assert_uint_eq(json_array_size(said("logged_params")), 2);
    ck_assert_str_eq(said_text("logged_params.0"), "depth");
    ck_assert_str_eq(said_text("logged_params.1"), "width");
    ck_assert_str_eq(said_text("params.0"), "argv");
    ck_assert_uint_gt(json_array_size(said("params")), 2);
    /* What one program logs is its own, though the job of another was started with one of that name. */
    EXPECT(200, "POST " API "/runs\n\n{\"name\":\"ours\",\"params\":{\"argv\":\"x\"}}");
    EXPECT(200, "GET " API "/runs/summary");
    ck_assert_str_eq(said_text("logged_params.0"), "argv");
    ck_assert_uint_eq(json_array_size(said("logged_params")), 3);
}

END_TEST

START_TEST(a_curve_is_answered_with_as_many_points_as_are_asked_for)
{
    for (int i = 0; i < 50; i++) {
        EXPECT(204,
               "POST " RUN "/metrics\n\n{\"metrics\":[{\"key\":\"c\",\"step\":%d,\"value\":%d}]}",
               i, i);
    }
    EXPECT(200, "GET " RUN "/metrics?key=c&max_points=8");
    size_t n = json_array_size(said("items"));
    ck_assert(n >= 4 && n <= 8);
    ck_assert_int_eq(json_integer_value(said("items.0.step")), 0);
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(said("items"), n - 1), "step")), 49);
    EXPECT_ERROR(400, "name a key", "GET " RUN "/metrics?max_points=8");
    EXPECT_ERROR(400, "max_points", "GET " RUN "/metrics?key=c&max_points=1");
}

END_TEST

WEIR_TEST_MAIN_WITH("track_routes", set_up, callers_close, a_run_is_updated_as_far_as_it_is_named,
                    metrics_are_stored_once_and_read_in_order,
                    metrics_of_wrong_form_are_refused_whole, runs_are_listed_by_what_they_are_of,
                    experiments_are_made_changed_deleted_and_restored,
                    a_run_from_outside_is_found_by_what_it_says_of_itself,
                    parameters_that_a_program_logged_are_told_from_those_of_its_job,
                    a_curve_is_answered_with_as_many_points_as_are_asked_for,
                    a_blob_is_what_its_name_says, a_model_version_is_registered_once,
                    a_task_registers_under_its_jobs_name_only,
                    models_and_versions_are_described_tagged_and_staged,
                    a_description_is_the_tag_that_mlflows_page_shows)
