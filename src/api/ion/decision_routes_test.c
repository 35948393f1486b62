/* Whose decisions a task may hand in: its own, those of a replica before it, and nobody else's. */
#include "api/caller_fixture.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "http/server_private.h"
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

/* ---- passages -------------------------------------------------------------------------------- */

#define N_PASSAGES 30
#define FRAMES_MAX 12
#define ID         "00000000-0000-4000-8000-0000000%05d"

/* What was handed in of a passage. */
struct filmed {
    char picture[400], frames[FRAMES_MAX][400];
    size_t n_picture, n_bytes[FRAMES_MAX], n, i_best;
    bool has_film;
};

static size_t fill(struct weir_rng *rng, char *out, size_t least)
{
    size_t n = least + weir_rng_below(rng, 400 - least);
    for (size_t i = 0; i < n; i++) {
        out[i] = (char)weir_rng_below(rng, 256);
    }
    return n;
}

/* {"frames": …}, and all pictures of them one behind the other. */
static json_t *make_passage(struct weir_rng *rng, struct filmed *one, struct weir_buf *film)
{
    json_t *frames = json_array();
    one->n = 1 + weir_rng_below(rng, FRAMES_MAX);
    one->i_best = weir_rng_below(rng, one->n);
    one->n_picture = fill(rng, one->picture, 1);
    for (size_t i = 0; i < one->n; i++) {
        bool is_kept = i != one->i_best && weir_rng_below(rng, 3) > 0;
        one->n_bytes[i] = is_kept ? fill(rng, one->frames[i], 1) : 0;
        (void)weir_buf_append(film, one->frames[i], one->n_bytes[i]);
        json_array_append_new(frames, json_pack("{s:s,s:f,s:n,s:b,s:n,s:{s:i,s:i,s:i,s:i},s:b,s:i}",
                                                "time_ms", "2026-01-01T00:00:00Z", "score", 0.5,
                                                "person", "counts", 1, "why", "box", "x", 1, "y", 2,
                                                "w", 3, "h", 4, "is_best", i == one->i_best,
                                                "bytes", (int)one->n_bytes[i]));
    }
    return json_pack("{s:s,s:[{s:s,s:f}],s:o}", "id", "1-1", "nearest", "person", "ada", "score",
                     0.25, "frames", frames);
}

/* A JSON text of bytes in base64. */
static json_t *text_of(const void *bytes, size_t len)
{
    static char text[WEIR_BASE64_TEXT_BYTES(1 << 14)];
    ck_assert_uint_le(len, 1 << 14);
    return json_string(weir_base64_encode(bytes, len, text));
}

/* How a film may go wrong on its way: 1 it is gone, 2 it is cut off. */
static void hand_in_film(struct weir_rng *rng, int number, int how, struct filmed *one)
{
    struct weir_buf film;
    char id[40];
    (void)snprintf(id, sizeof id, ID, number);
    weir_buf_init(&film, 1 << 16);
    json_t *passage = make_passage(rng, one, &film);
    json_t *decision =
        json_pack("{s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:o,s:o}", "id", id, "ion", "door", "pipeline",
                  "see", "camera", "c", "frame", number, "key", id, "verdict", "unknown", "passage",
                  passage, "picture", text_of(one->picture, one->n_picture));
    one->has_film = how == 0 && film.len > 0;
    if (how != 1 && film.len > 0) {
        json_object_set_new(decision, "film", text_of(film.data, film.len - (how == 2)));
    }
    json_t *body = json_pack("{s:[o]}", "decisions", decision);
    char *text = json_dumps(body, JSON_COMPACT);
    EXPECT(200, "POST " API "/decisions\n\n%s", text);
    ck_assert_int_eq(json_integer_value(said("stored")), 1);
    free(text);
    json_decref(body);
    weir_buf_fini(&film);
}

static void check_body(const char *wanted, size_t len)
{
    const struct weir_http_response *response = &callers.x->response;
    ck_assert_uint_eq(response->body_len, len);
    ck_assert_mem_eq(response->body, wanted, len);
}

static void check_film(int number, const struct filmed *one)
{
    bool has_picture[FRAMES_MAX];
    EXPECT(200, "GET " API "/decisions/" ID, number);
    ck_assert_str_eq(said_text("passage.nearest.0.person"), "ada");
    ck_assert_uint_eq(json_array_size(said("passage.frames")), one->n);
    for (size_t i = 0; i < one->n; i++) {
        const json_t *frame = json_array_get(said("passage.frames"), i);
        has_picture[i] = json_is_true(json_object_get(frame, "has_picture"));
    }
    EXPECT(200, "GET " API "/decisions/" ID "/image", number);
    check_body(one->picture, one->n_picture);
    for (size_t i = 0; i < one->n; i++) {
        bool is_best = i == one->i_best,
             is_there = is_best || (one->has_film && one->n_bytes[i] > 0);
        ck_assert_int_eq(has_picture[i], is_there);
        EXPECT(is_there ? 200 : 404, "GET " API "/decisions/" ID "/frames/%zu", number, i);
        if (is_there) {
            check_body(is_best ? one->picture : one->frames[i],
                       is_best ? one->n_picture : one->n_bytes[i]);
        }
    }
    EXPECT_ERROR(404, "has no frame", "GET " API "/decisions/" ID "/frames/%zu", number, one->n);
    EXPECT_ERROR(404, "has no frame", "GET " API "/decisions/" ID "/frames/-1", number);
}

START_TEST(each_frame_of_a_passage_has_its_own_picture_and_the_decision_has_its)
{
    const uint64_t seed = 20266;
    static struct filmed films[N_PASSAGES];
    struct weir_rng rng;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < N_PASSAGES; i++) {
        hand_in_film(&rng, i, i % 5 < 3 ? 0 : i % 5 - 2, &films[i]);
    }
    for (int i = 0; i < N_PASSAGES; i++) {
        check_film(i, &films[i]);
    }
}

END_TEST

START_TEST(what_no_replica_says_of_a_passage_is_refused_and_an_older_one_says_less)
{
    static const char *const wrong[][2] = {
        {"3", "$.decisions[0].passage: expected an object"},
        {"{\"frames\":3}", "passage.frames: expected an array of at most 12"},
        {"{\"frames\":[{}]}", "passage.frames[0]"},
        {"{\"frames\":[{\"time_ms\":\"t\",\"counts\":true,\"is_best\":true,\"bytes\":-1,\"box\":{"
         "\"x\":1,"
         "\"y\":1,\"w\":1,\"h\":1}}]}",
         "passage.frames[0]"},
        {"{\"nearest\":[{\"person\":\"\\u0001\",\"score\":1}]}", "passage.nearest[0]"},
        {"{\"nearest\":[{},{},{},{},{},{}]}", "passage.nearest: expected an array of at most 5"},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_ERROR(400, wrong[i][1],
                     "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"x\",\"ion\":\"door\","
                     "\"pipeline\":\"see\",\"camera\":\"c\",\"frame\":1,\"verdict\":\"deny\","
                     "\"passage\":%s}]}",
                     wrong[i][0]);
    }
    EXPECT(
        200,
        "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"x\",\"ion\":\"door\","
        "\"pipeline\":\"see\",\"camera\":\"c\",\"frame\":1,\"verdict\":\"deny\",\"passage\":"
        "{\"id\":\"7\",\"n_frames\":2,\"refused\":{}}},{\"id\":\"y\",\"ion\":\"door\",\"pipeline\":"
        "\"see\",\"camera\":\"c\",\"frame\":2,\"verdict\":\"deny\",\"passage\":null}]}");
    EXPECT(200, "GET " API "/decisions/x");
    ck_assert_int_eq(json_integer_value(said("passage.n_frames")), 2);
    EXPECT_ERROR(404, "has no picture", "GET " API "/decisions/x/frames/0");
    EXPECT(200, "GET " API "/passages"); /* y is of one frame */
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.id"), "x");
}

END_TEST

/* Every n-th of what was handed in, newest first, in pages. */
static void check_list(const char *query, int n_all, bool (*is_in)(int number))
{
    char cursor[256] = "";
    int number = n_all - 1;
    do {
        EXPECT(200, "GET " API "/passages?limit=7%s%s%s", query,
               cursor[0] != '\0' ? "&cursor=" : "", cursor);
        for (size_t i = 0; i < json_array_size(said("items")); i++) {
            while (!is_in(number)) {
                number--;
            }
            ck_assert_int_eq(
                json_integer_value(json_object_get(json_array_get(said("items"), i), "frame")),
                number--);
        }
        (void)snprintf(cursor, sizeof cursor, "%s", said_text("next"));
    } while (cursor[0] != '\0');
    while (number >= 0) {
        ck_assert(!is_in(number--));
    }
}

static bool is_passage(int number)
{
    return number % 3 != 0;
}

static bool is_denied(int number)
{
    return is_passage(number) && number % 7 == 0;
}

static bool is_at_second(int number)
{
    return is_passage(number) && number % 2 == 1;
}

static bool is_bobs(int number)
{
    return is_passage(number) && number % 5 == 0;
}

START_TEST(passages_are_listed_newest_first_as_they_are_asked_for)
{
    for (int i = 0; i < 100; i++) {
        EXPECT(
            200,
            "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"" ID "\",\"ion\":\"door\","
            "\"pipeline\":\"see\",\"camera\":\"%s\",\"frame\":%d,\"time_ms\":%d,\"verdict\":\"%s\","
            "\"person\":\"%s\",\"passage\":%s}]}",
            i, i % 2 == 0 ? "one" : "two", i, 1000 + i, i % 7 == 0 ? "deny" : "grant",
            i % 5 == 0 ? "bob" : "ada", is_passage(i) ? "{\"id\":\"1\"}" : "null");
    }
    check_list("", 100, is_passage);
    check_list("&ion=door", 100, is_passage);
    check_list("&ion=door&verdict=deny", 100, is_denied);
    check_list("&ion=door&camera=two", 100, is_at_second);
    check_list("&person=bob", 100, is_bobs);
    check_list("&since=1970-01-01T00:00:01.000Z", 100, is_passage);
    EXPECT(200, "GET " API "/passages?after=98&limit=5");
    ck_assert_uint_eq(json_array_size(said("items")),
                      1); /* seq 99 is frame 98; 100 is no passage's */
    EXPECT(200, "GET " API "/passages?ion=nobodys");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("decision_routes", set_up, callers_close,
                    each_frame_of_a_passage_has_its_own_picture_and_the_decision_has_its,
                    what_no_replica_says_of_a_passage_is_refused_and_an_older_one_says_less,
                    passages_are_listed_newest_first_as_they_are_asked_for,
                    what_a_replica_before_it_left_is_handed_in_once,
                    nothing_is_handed_in_for_another_ion_pipeline_project_or_for_what_runs,
                    a_picture_that_is_named_is_one_that_the_project_has_sent,
                    the_token_that_tasks_shared_hands_in_what_those_decide_and_nothing_else)
