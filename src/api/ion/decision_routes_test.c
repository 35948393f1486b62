/* Whose decisions a task may hand in: its own, those of a replica before it, and nobody else's. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "job/former.h"
#include "store/stmt.h"

#define JOB(n)  "00000000-0000-4000-8000-0000000000b" #n
#define TASK(n) "00000000-0000-4000-8000-0000000000a" #n
#define ABC     "abc"
#define SHA     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char bearer[BEARER_BYTES];
static int n_decided;

static weir_status run_sql(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

static void sql(const char *text)
{
    struct weir_error err;
    must(weir_store_write(callers.fixture.store, run_sql, (void *)text, &err), &err);
}

static void make_ion(const char *name)
{
    EXPECT(
        200,
        "POST " API "/ions\n\n{\"name\":\"%s\",\"pipelines\":[{\"name\":\"learn\",\"type\":"
        "\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},{\"name\":\"see\",\"type\":"
        "\"prediction\",\"source\":{\"kind\":\"http\"},\"gallery\":{\"dataset\":\"staff\"}},"
        "{\"name\":\"look\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"},"
        "\"gallery\":{\"dataset\":\"staff\"}}],\"links\":[{\"from\":\"learn\",\"to\":\"see\"},"
        "{\"from\":\"learn\",\"to\":\"look\"}]}",
        name);
}

static void place(const char *job, const char *task, const char *ion, const char *pipeline,
                  const char *state)
{
    place_job(&(struct placed_job){.id = job,
                                   .task = task,
                                   .kind = "predict",
                                   .node = "n",
                                   .state = state,
                                   .ion = ion,
                                   .pipeline = pipeline});
}

/* Job 1 runs; 2 was before it. */
static void set_up(void)
{
    callers_open();
    n_decided = 0;
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    make_ion("door");
    make_ion("gate");
    place(JOB(2), TASK(2), "door", "see", "CANCELLED");
    place(JOB(1), TASK(1), "door", "see", "RUNNING");
    task_bearer(TASK(1), bearer);
}

static int hand_in(const char *as, const char *ion, const char *pipeline, const char *replica,
                   int frame, const char *image)
{
    return ask_as(as,
                  "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"d%d\",\"ion\":\"%s\","
                  "\"pipeline\":\"%s\",\"replica\":\"%s\",\"camera\":\"c\",\"frame\":%d,"
                  "\"verdict\":\"deny\"%s%s%s}]}",
                  n_decided++, ion, pipeline, replica, frame, *image != '\0' ? ",\"image\":\"" : "",
                  image, *image != '\0' ? "\"" : "");
}

START_TEST(what_a_replica_before_it_left_is_handed_in_once)
{
    EXPECT_STATUS(200, hand_in(bearer, "door", "see", JOB(1) "-0", 1, ""));
    EXPECT_STATUS(200, hand_in(bearer, "door", "see", JOB(2) "-0", 2, ""));
    ck_assert_int_eq(json_integer_value(said("stored")), 1);
    for (int i = 0; i < 2; i++) { /* by whomever, and under another number of its own */
        EXPECT_STATUS(200,
                      hand_in(bearer, "door", "see", i == 0 ? JOB(2) "-0" : JOB(1) "-0", 2, ""));
        ck_assert_int_eq(json_integer_value(said("stored")), 0);
        ck_assert_int_eq(json_integer_value(said("duplicates")), 1);
    }
}

END_TEST

START_TEST(nothing_is_handed_in_for_another_ion_pipeline_project_or_for_what_runs)
{
    place(JOB(3), TASK(3), "gate", "see", "CANCELLED");
    place(JOB(4), TASK(4), "door", "look", "CANCELLED");
    place(JOB(5), TASK(5), "door", "see", "RUNNING");
    place(JOB(6), TASK(6), "door", "see", "CANCELLED");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"other\"}");
    sql("UPDATE jobs SET project = 'other' WHERE id = '" JOB(6) "'");
    static const char *const of[][3] = {
        {"gate", "see", JOB(3) "-0"},  {"door", "see", JOB(3) "-0"}, {"door", "look", JOB(4) "-0"},
        {"door", "see", JOB(4) "-0"},  {"door", "see", JOB(5) "-0"}, {"door", "see", JOB(6) "-0"},
        {"door", "see", JOB(7) "-0"},  {"door", "see", "-0"},        {"door", "see", ""},
        {"gate", "look", JOB(2) "-0"}, {"gate", "see", JOB(1) "-0"},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(of); i++) {
        EXPECT_STATUS(403, hand_in(bearer, of[i][0], of[i][1], of[i][2], (int)i, ""));
    }
    EXPECT(200, "GET " API "/decisions");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

/* Whoever sees the decision sees its picture: it must not be a file of others, named by its SHA-256. */
START_TEST(a_picture_that_is_named_is_one_that_the_project_has_sent)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"other\"}");
    EXPECT(200, "PUT " API "/blobs/" SHA "?project=other\n\n" ABC);
    EXPECT_STATUS(200, hand_in(bearer, "door", "see", JOB(1) "-0", 1, SHA));
    EXPECT(404, "GET " API "/decisions/d0/image");
    EXPECT_STATUS(200, ask_as(bearer, "PUT " API "/blobs/" SHA "\n\n" ABC));
    EXPECT_STATUS(200, hand_in(bearer, "door", "see", JOB(1) "-0", 2, SHA));
    EXPECT(200, "GET " API "/decisions/d1/image");
}

END_TEST

static weir_status keep(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_hash(context, hash);
    return weir_former_keep(txn, hash, 1, err);
}

static void keep_former(void)
{
    struct weir_error err;
    must(weir_store_write(callers.fixture.store, keep, (void *)"weir_shared", &err), &err);
}

START_TEST(the_token_that_tasks_shared_hands_in_what_those_decide_and_nothing_else)
{
    static const char shared[] = "Bearer weir_shared";
    place(JOB(8), TASK(8), "gate", "see", "RUNNING"); /* begun since, with a token of its own */
    keep_former();
    EXPECT_STATUS(401, hand_in(shared, "door", "see", JOB(1) "-0", 1, ""));
    sql("INSERT INTO former_attempts VALUES ('" TASK(1) "', 1)");
    sql("INSERT INTO former_attempts VALUES ('" TASK(2) "', 1)");
    keep_former();
    EXPECT_STATUS(200, ask_as(shared, "PUT " API "/blobs/" SHA "\n\n" ABC));
    EXPECT_STATUS(200, hand_in(shared, "door", "see", JOB(1) "-0", 1, SHA));
    EXPECT(200, "GET " API "/decisions/d1/image");
    static const char *const of[][3] = {{"door", "see", JOB(2) "-0"},
                                        {"door", "look", JOB(1) "-0"},
                                        {"gate", "see", JOB(1) "-0"},
                                        {"gate", "see", JOB(8) "-0"},
                                        {"door", "see", ""}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(of); i++) {
        EXPECT_STATUS(403, hand_in(shared, of[i][0], of[i][1], of[i][2], 9, ""));
    }
    EXPECT_STATUS(403, ask_as(shared, "POST " API "/decisions\n\n{\"decisions\":[]}"));
    EXPECT_STATUS(401, hand_in("Bearer weir_share", "door", "see", JOB(1) "-0", 9, ""));
    EXPECT_STATUS(401, ask_as(shared, "GET " API "/blobs/" SHA));
    EXPECT_STATUS(401, ask_as(shared, "GET " API "/session"));
    EXPECT_STATUS(401, ask_as(shared, "POST " API "/health-reports\n\n{}"));
    EXPECT_STATUS(401, ask_as(shared, "GET /api/2.0/mlflow/runs/get?run_id=r"));
    sql("UPDATE tasks SET attempt = 2 WHERE id = '" TASK(1) "'"); /* begun anew */
    EXPECT_STATUS(401, hand_in(shared, "door", "see", JOB(1) "-0", 2, ""));
    EXPECT_STATUS(401, ask_as(shared, "PUT " API "/blobs/" SHA "\n\n" ABC));
}

END_TEST

WEIR_TEST_MAIN_WITH("decision_routes", set_up, callers_close,
                    what_a_replica_before_it_left_is_handed_in_once,
                    nothing_is_handed_in_for_another_ion_pipeline_project_or_for_what_runs,
                    a_picture_that_is_named_is_one_that_the_project_has_sent,
                    the_token_that_tasks_shared_hands_in_what_those_decide_and_nothing_else)
