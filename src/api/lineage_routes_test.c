/* Lineage and model cards as routes: what they say, and to whom. That it is right is control/lineage_test.c's. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "ion/decision.h"
#include "ion/ion.h"
#include "track/run.h"

#include <string.h>

#define DECISION API "/decisions/d0"
#define DATA     API "/datasets/staff/versions/1"
#define VERSION  API "/models/face/versions/1"

static char blue[BEARER_BYTES], red[BEARER_BYTES];

static weir_status add_track(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    int64_t number;
    const struct weir_dataset_version data = {.id = "dv",
                                              .dataset = "staff",
                                              .version = 1,
                                              .digest = "abc",
                                              .n_files = 3,
                                              .n_classes = 2,
                                              .created_by = "ann",
                                              .created_ms = now_ms};
    const struct weir_run run = {.id = "run-1",
                                 .name = "learn.1",
                                 .project = "blue",
                                 .kind = "train",
                                 .status = "FINISHED",
                                 .dataset = "staff",
                                 .dataset_version = 1,
                                 .parameters = "{\"epochs\":7}",
                                 .created_by = "bea",
                                 .created_ms = now_ms};
    const struct weir_run measure = {.id = "run-2",
                                     .name = "measure",
                                     .project = "blue",
                                     .kind = "measure",
                                     .status = "FINISHED",
                                     .dataset = "staff",
                                     .dataset_version = 1,
                                     .parameters = "{\"model\":\"face@v1\"}",
                                     .created_ms = now_ms};
    const struct weir_metric accuracy = {.key = "accuracy", .value = 0.75};
    const struct weir_model model = {.name = "face", .project = "blue", .created_ms = now_ms};
    const struct weir_model_version version = {.id = "mv",
                                               .model = "face",
                                               .version = 1,
                                               .run = "run-1",
                                               .blob = "b",
                                               .bytes = 9,
                                               .stage = "None",
                                               .description = "For **doors** [x](y)",
                                               .metrics = "{\"loss\":0.5}",
                                               .created_by = "bea",
                                               .created_ms = now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_dataset_version_resource, &data, err));
    WEIR_TRY(weir_run_insert(txn, &run, &number, err));
    WEIR_TRY(weir_run_insert(txn, &measure, &number, err));
    WEIR_TRY(weir_metrics_log(txn, number, &accuracy, 1, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_model_resource, &model, err));
    return weir_txn_insert(txn, &weir_model_version_resource, &version, err);
}

static weir_status add_served(struct weir_txn *txn, int64_t now_ms, struct weir_error *err)
{
    const struct weir_ion_candidate candidate = {.id = "c",
                                                 .ion = "door",
                                                 .link = "learn:see",
                                                 .model = "face",
                                                 .model_version = "mv",
                                                 .version = 1,
                                                 .blob = "b",
                                                 .state = "SERVING",
                                                 .served_seq = 1,
                                                 .served_ms = now_ms};
    const struct weir_policy_decision policy = {.id = "door:1",
                                                .ion = "door",
                                                .link = "learn:see",
                                                .candidate = "c",
                                                .model_version = "mv",
                                                .version = 1,
                                                .policy = "manual",
                                                .inputs = "{}",
                                                .rule = "a person approves",
                                                .verdict = "promote",
                                                .actor = "rev",
                                                .note = "looks | right",
                                                .time_ms = now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_ion_candidate_resource, &candidate, err));
    return weir_txn_insert(txn, &weir_policy_decision_resource, &policy, err);
}

static weir_status fill_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static char *const ids[] = {"d0", "d1", "d2"};
    int64_t now_ms = callers_now(&callers.clock);
    size_t n;
    (void)context;
    WEIR_TRY(add_track(txn, now_ms, err));
    WEIR_TRY(add_served(txn, now_ms, err));
    for (int64_t i = 0; i < 3; i++) {
        const struct weir_decision decision = {.id = ids[i],
                                               .ion = "door",
                                               .pipeline = "see",
                                               .camera = "north",
                                               .frame = i,
                                               .time_ms = now_ms + i,
                                               .verdict = "grant",
                                               .person = "ann",
                                               .model_version = 1};
        WEIR_TRY(weir_decisions_store(txn, &decision, 1, NULL, 0, &n, err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    struct weir_error err = {0};
    callers_open();
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"blue\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\",\"project\":\"blue\"}");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"door\",\"project\":\"blue\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"}],\"links\":[]}");
    must(weir_store_write(callers.fixture.store, fill_in, NULL, &err), &err);
    make_caller("bea", "member", ",\"project\":\"blue\"", blue);
    make_caller("rex", "member", ",\"project\":\"red\"", red);
    EXPECT(200, "PUT " API "/projects/blue/members/user/bea\n\n{\"role\":\"viewer\"}");
    EXPECT(200, "PUT " API "/projects/red/members/user/rex\n\n{\"role\":\"viewer\"}");
}

static int64_t number(const char *path)
{
    return (int64_t)json_integer_value(said(path));
}

START_TEST(a_decision_leads_back_to_data_code_people_and_policies)
{
    EXPECT_STATUS(200, ask_as(blue, "GET " DECISION "/lineage"));
    ck_assert_str_eq(said_text("decision.id"), "d0");
    ck_assert_str_eq(said_text("version.model"), "face");
    ck_assert_str_eq(said_text("place.policies.0.actor"), "rev");
    ck_assert_str_eq(said_text("runs.0.created_by"), "bea");
    ck_assert_str_eq(said_text("runs.0.parameters.epochs"), "7");
    ck_assert_str_eq(said_text("datasets.0.created_by"), "ann");
    ck_assert(json_is_true(said("is_certain")));
    EXPECT_STATUS(404, ask_as(red, "GET " DECISION "/lineage"));
    EXPECT_STATUS(404, ask_as(blue, "GET " API "/decisions/none/lineage"));
}

END_TEST

START_TEST(a_dataset_version_leads_forward_to_every_decision)
{
    EXPECT_STATUS(200, ask_as(blue, "GET " DATA "/lineage"));
    ck_assert_uint_eq(json_array_size(said("read_by")), 2);
    ck_assert_str_eq(said_text("versions.0.model"), "face");
    ck_assert_int_eq(number("places.0.decisions.n_made"), 3);
    EXPECT_STATUS(200, ask_as(blue, "GET " DATA "/decisions?limit=2"));
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_str_eq(said_text("items.0.id"), "d2"); /* newest first */
    char *next = strdup(said_text("next"));
    EXPECT_STATUS(200, ask_as(blue, "GET " DATA "/decisions?limit=2&cursor=%s", next));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.id"), "d0");
    ck_assert(json_is_null(said("next")));
    free(next);
    EXPECT_STATUS(400, ask_as(blue, "GET " DATA "/decisions?cursor=x"));
    EXPECT_STATUS(400, ask_as(blue, "GET " DATA "/decisions?limit=0"));
    EXPECT_STATUS(404, ask_as(red, "GET " DATA "/lineage"));
    EXPECT_STATUS(404, ask_as(red, "GET " DATA "/decisions"));
    EXPECT(404, "GET " API "/datasets/staff/versions/2/lineage");
    EXPECT(400, "GET " API "/datasets/staff/versions/x/lineage");
}

END_TEST

START_TEST(a_model_version_leads_both_ways)
{
    EXPECT_STATUS(200, ask_as(blue, "GET " VERSION "/lineage"));
    ck_assert_str_eq(said_text("version.created_by"), "bea");
    ck_assert_str_eq(said_text("datasets.0.dataset"), "staff");
    ck_assert_int_eq(number("places.0.decisions.n_kept"), 3);
    EXPECT_STATUS(200, ask_as(blue, "GET " VERSION "/decisions"));
    ck_assert_uint_eq(json_array_size(said("items")), 3);
    EXPECT_STATUS(404, ask_as(red, "GET " VERSION "/lineage"));
    EXPECT_STATUS(404, ask_as(red, "GET " VERSION "/decisions"));
    EXPECT(404, "GET " API "/models/face/versions/2/lineage");
}

END_TEST

static bool has_limit(const char *part)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)said("limits"), i, one)
    {
        if (strstr(json_string_value(one), part) != NULL) {
            return true;
        }
    }
    return false;
}

START_TEST(a_card_says_what_is_known_and_what_is_not)
{
    EXPECT(200, "POST " API "/feedback\n\n{\"decision\":\"d0\",\"truth\":\"ann\"}");
    EXPECT_STATUS(200, ask_as(blue, "GET " VERSION "/card"));
    ck_assert_str_eq(said_text("version.model"), "face");
    ck_assert_str_eq(said_text("data.dataset"), "staff");
    ck_assert_double_eq(json_real_value(said("evaluations.0.metrics.accuracy")), 0.75);
    ck_assert_int_eq(number("live.0.accuracy.n"), 1);
    ck_assert_str_eq(said_text("live.0.cameras.0.name"), "north");
    ck_assert_str_eq(said_text("lineage.places.0.policies.0.note"), "looks | right");
    ck_assert(has_limit("No validation was measured"));
    ck_assert(has_limit("What it takes and gives is not known"));
    ck_assert(has_limit("What code made it is not known"));
    ck_assert(has_limit("no baseline"));
    ck_assert(has_limit("No drift was measured"));
    ck_assert(!has_limit("not evaluated"));
    ck_assert(!has_limit("described"));
    EXPECT_STATUS(404, ask_as(red, "GET " VERSION "/card"));
    EXPECT(404, "GET " API "/models/none/versions/1/card");
    EXPECT_ERROR(400, "json or markdown", "GET " VERSION "/card?format=pdf");
}

END_TEST

START_TEST(a_card_is_a_file_of_markdown)
{
    EXPECT(200, "GET " VERSION "/card?format=markdown");
    ck_assert_str_eq(said_header("Content-Type"), "text/markdown; charset=utf-8");
    ck_assert_str_eq(said_header("Content-Disposition"), "attachment; filename=\"face-v1.md\"");
    const struct weir_http_response *response = &callers.x->response;
    char *text = strndup(response->body, response->body_len);
    ck_assert_ptr_nonnull(strstr(text, "# face v1\n"));
    ck_assert_ptr_nonnull(strstr(text, "> For **doors** \\[x\\](y)\n"));
    ck_assert_ptr_nonnull(strstr(text, "looks \\| right"));
    ck_assert_ptr_nonnull(strstr(text, "| accuracy | 0.75 |"));
    free(text);
}

END_TEST

WEIR_TEST_MAIN_WITH("lineage routes", set_up, callers_close,
                    a_decision_leads_back_to_data_code_people_and_policies,
                    a_dataset_version_leads_forward_to_every_decision,
                    a_model_version_leads_both_ways, a_card_says_what_is_known_and_what_is_not,
                    a_card_is_a_file_of_markdown)
