/* Comparisons: told by the task of a measuring job, found by who reviews the version. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define DOOR    API "/ions/door"
#define RUN     "00000000-0000-4000-8000-0000000000d1"
#define RUN_OF  API "/runs/" RUN
#define JOB     "00000000-0000-4000-8000-0000000000b1"
#define TASK    "00000000-0000-4000-8000-0000000000a1"
#define PICTURE "\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""
#define FIGURES                                                                                    \
    "\"n_samples\":40,\"n_errors\":0,\"accuracy\":0.9,\"live_accuracy\":0.8,\"p_value\":0.1,"      \
    "\"better\":0,\"n_live_right\":1,\"n_candidate_right\":5,\"n_both_wrong\":1,"                  \
    "\"confusions\":[{\"label\":\"nut\",\"answer\":\"bolt\",\"n\":1,\"live_n\":4}]"
#define ROWS                                                                                       \
    "\"disagreements\":["                                                                          \
    "{\"kind\":\"live-right\",\"file\":\"nut/1.png\"," PICTURE ",\"label\":\"nut\",\"answer\":"    \
    "\"bolt\",\"score\":0.9,\"live_answer\":\"nut\",\"live_score\":0.6},"                          \
    "{\"kind\":\"candidate-right\",\"file\":\"nut/2.png\"," PICTURE ",\"label\":\"nut\","          \
    "\"answer\":\"nut\",\"score\":0.7,\"live_answer\":\"bolt\",\"live_score\":null},"              \
    "{\"kind\":\"both-wrong\",\"file\":\"gear/3.png\"," PICTURE ",\"label\":\"gear\","             \
    "\"answer\":\"nut\",\"score\":0.7,\"live_answer\":\"bolt\",\"live_score\":0.5}]"

static char task[BEARER_BYTES];

static weir_status push_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const char *id = context;
    struct weir_arena arena;
    struct weir_model_version version = {.id = (char *)id,
                                         .model = "sorter",
                                         .blob = "00",
                                         .signature =
                                             "{\"picture\":{},\"output_kind\":\"logits\"}"};
    struct weir_model_version out;
    weir_arena_init(&arena, 0);
    weir_status status = weir_model_register(txn, &version, "default", 1, &arena, &out, NULL, err);
    weir_arena_fini(&arena);
    return status;
}

static void push(const char *id)
{
    struct weir_error err = {0};
    must(weir_store_write(callers.fixture.store, push_in, (void *)id, &err), &err);
}

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"held-out\"}");
    push("00000000-0000-4000-8000-0000000000c1");
    push("00000000-0000-4000-8000-0000000000c2");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":["
                "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"}}],"
                "\"links\":[{\"from\":{\"model\":\"sorter\"},\"to\":\"see\",\"policy\":\"manual\","
                "\"default\":\"sorter@1\"}]}");
    ck_assert_int_eq(json_integer_value(said("links.0.wanted_version")), 1);
    ck_assert_int_eq(json_integer_value(said("links.0.pending_versions.0")), 2);
}

static void place(const char *spec)
{
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "measure", .node = "n", .spec = spec, .run = RUN});
    task_bearer(TASK, task);
}

static void tell(void)
{
    place("{\"model\":\"sorter@v2\",\"live\":\"sorter@v1\",\"dataset\":\"held-out@v1\"}");
    EXPECT_STATUS(204, ask_as(task, "PUT " RUN_OF "/comparison\n\n{" FIGURES "," ROWS "}"));
    EXPECT_STATUS(204, ask_as(task, "PUT " RUN_OF "/comparison\n\n{" FIGURES "," ROWS "}"));
}

START_TEST(who_reviews_sees_what_the_two_disagree_on)
{
    char vic[BEARER_BYTES];
    make_caller("vic", "approver", "", vic);
    tell();
    EXPECT_STATUS(200, ask_as(vic, "GET " DOOR "/comparison"));
    ck_assert_str_eq(said_text("comparison.run"), RUN);
    ck_assert_str_eq(said_text("comparison.model"), "sorter");
    ck_assert_int_eq(json_integer_value(said("comparison.version")), 2);
    ck_assert_int_eq(json_integer_value(said("comparison.live_version")), 1);
    ck_assert_str_eq(said_text("comparison.dataset"), "held-out");
    ck_assert_int_eq(json_integer_value(said("comparison.n_kept")), 3);
    ck_assert_int_eq(json_integer_value(said("comparison.confusions.0.live_n")), 4);
    ck_assert(json_is_null(said("why")));
    EXPECT_STATUS(200, ask_as(vic, "GET " DOOR "/disagreements?limit=2"));
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_str_eq(said_text("items.0.kind"), "live-right");
    ck_assert_uint_eq(strlen(said_text("items.0.sha256")), 64);
    char *next = strdup(said_text("next"));
    EXPECT_STATUS(200, ask_as(vic, "GET " DOOR "/disagreements?limit=2&cursor=%s", next));
    free(next);
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.file"), "gear/3.png");
    ck_assert(json_is_null(said("next")));
    EXPECT(200, "GET " DOOR "/disagreements?link=model/sorter:see&version=2&kind=candidate-right");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert(json_is_null(said("items.0.live_score")));
    EXPECT(200, "GET " RUN_OF "/disagreements?kind=both-wrong");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " RUN_OF "/comparison");
    ck_assert_int_eq(json_integer_value(said("comparison.n_samples")), 40);
    EXPECT_ERROR(400, "live-right, candidate-right or both-wrong",
                 "GET " DOOR "/disagreements?kind=best");
}

END_TEST

static void expect_none(const char *target, const char *why)
{
    EXPECT(200, "GET %s", target);
    ck_assert_msg(strstr(said_text("why"), why) != NULL, "%s: %s", target, said_text("why"));
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    ck_assert(said("comparison") == NULL || json_is_null(said("comparison")));
}

START_TEST(who_sees_none_is_told_why_and_how_to_get_some)
{
    expect_none(DOOR "/disagreements", "no samples were compared: version 2 of sorter was not "
                                       "measured beside version 1, which serves");
    expect_none(DOOR "/disagreements?version=1", "beside version 1 of sorter nothing serves");
    expect_none(DOOR "/comparison", "the policy evaluate before manual");
    EXPECT_ERROR(404, "no version 9", "GET " DOOR "/comparison?version=9");
    EXPECT_ERROR(404, "has no link \"a:b\"", "GET " DOOR "/comparison?link=a:b");
    place("{\"model\":\"sorter@v2\",\"dataset\":\"held-out@v1\"}");
    expect_none(RUN_OF "/disagreements", "compared no samples");
    expect_none(RUN_OF "/comparison", "compared no samples");
    EXPECT(404, "GET " API "/runs/none/comparison");
    EXPECT(404, "GET " API "/ions/none/disagreements");
}

END_TEST

START_TEST(only_the_task_that_measures_two_tells)
{
    place("{\"model\":\"sorter@v2\",\"dataset\":\"held-out@v1\"}");
    EXPECT_STATUS(409, ask_as(task, "PUT " RUN_OF "/comparison\n\n{" FIGURES "," ROWS "}"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "compares nothing"));
    EXPECT_STATUS(403, ask_as(task, "PUT " API "/runs/other/comparison\n\n{" FIGURES "," ROWS "}"));
}

END_TEST

START_TEST(a_comparison_of_wrong_form_is_refused_whole)
{
    static const struct {
        const char *body, *part;
    } wrong[] = {
        {"{" FIGURES "}", "$.disagreements: expected an array"},
        {"{" FIGURES ",\"disagreements\":[{}]}", "$.disagreements[0]"},
        {"{" FIGURES ",\"disagreements\":[{\"kind\":\"both-wrong\",\"file\":\"a/b\",\"label\":"
         "\"nut\",\"answer\":\"nut\",\"live_answer\":\"bolt\"}]}",
         "candidate-right is expected"},
        {"{\"confusions\":[{\"label\":1}],\"disagreements\":[]}", "$.confusions"},
        {"{" FIGURES ",\"model\":\"mine\",\"disagreements\":[]}", "model"},
    };

    place("{\"model\":\"sorter@v2\",\"live\":\"sorter@v1\",\"dataset\":\"held-out@v1\"}");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_STATUS(400, ask_as(task, "PUT " RUN_OF "/comparison\n\n%s", wrong[i].body));
        ck_assert_msg(strstr(said_text("error.message"), wrong[i].part) != NULL, "%s",
                      said_text("error.message"));
    }
    expect_none(RUN_OF "/comparison", "compared no samples");
}

END_TEST

/* Pictures are named by their digest to those only who see the dataset. */
START_TEST(pictures_of_a_dataset_that_one_does_not_see_stay_unknown)
{
    char mia[BEARER_BYTES];
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"data\"}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"secret\",\"project\":\"data\"}");
    make_caller("mia", "member", "", mia);
    EXPECT(200, "PUT " API "/projects/default/members/user/mia\n\n{\"role\":\"approver\"}");
    place("{\"model\":\"sorter@v2\",\"live\":\"sorter@v1\",\"dataset\":\"secret@v1\"}");
    EXPECT_STATUS(204, ask_as(task, "PUT " RUN_OF "/comparison\n\n{" FIGURES "," ROWS "}"));
    EXPECT_STATUS(200, ask_as(mia, "GET " DOOR "/disagreements"));
    ck_assert_uint_eq(json_array_size(said("items")), 3);
    ck_assert(json_is_null(said("items.0.sha256")));
    EXPECT(200, "GET " DOOR "/disagreements");
    ck_assert(json_is_string(said("items.0.sha256")));
}

END_TEST

WEIR_TEST_MAIN_WITH("comparison_routes", set_up, callers_close,
                    who_reviews_sees_what_the_two_disagree_on,
                    who_sees_none_is_told_why_and_how_to_get_some,
                    only_the_task_that_measures_two_tells,
                    a_comparison_of_wrong_form_is_refused_whole,
                    pictures_of_a_dataset_that_one_does_not_see_stay_unknown)
