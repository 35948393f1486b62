/* Lineage and model cards as routes: what they say, and to whom. That it is right is control/lineage/lineage_test.c's. */
#include "api/lineage_fixture.h"

#include "base/test_main.h"

#include <string.h>

#define DECISION API "/decisions/d0"
#define DATA     API "/datasets/staff/versions/1"
#define VERSION  API "/models/face/versions/1"

static void set_up(void)
{
    callers_open();
    lineage_fill();
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

/* Lineage crosses nouns: a role that may read decisions alone sees none of it. */
START_TEST(who_may_not_read_all_that_it_crosses_is_told_what_is_missing)
{
    char some[BEARER_BYTES];
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"looker\",\"rights\":[\"decisions read\","
                "\"models read\",\"datasets read\"]}");
    make_caller("liz", "member", ",\"project\":\"blue\"", some);
    EXPECT(200, "PUT " API "/projects/blue/members/user/liz\n\n{\"role\":\"looker\"}");
    static const char *const paths[] = {DECISION "/lineage", DATA "/lineage", DATA "/decisions",
                                        VERSION "/lineage",  VERSION "/card", VERSION "/decisions"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(paths); i++) {
        EXPECT_STATUS(404, ask_as(some, "GET %s", paths[i]));
        ck_assert_ptr_nonnull(strstr(said_text("error.message"), "read runs"));
    }
    EXPECT_STATUS(200, ask_as(some, "GET " DECISION));
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
    EXPECT_ERROR(400, "is none of json, markdown", "GET " VERSION "/card?format=pdf");
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
    ck_assert_ptr_nonnull(strstr(text, "> For **doors** &#91;x&#93;(y)\n"));
    ck_assert_ptr_nonnull(strstr(text, "looks \\| right"));
    ck_assert_ptr_nonnull(strstr(text, "| accuracy | 0.75 |"));
    free(text);
}

END_TEST

WEIR_TEST_MAIN_WITH("lineage routes", set_up, callers_close,
                    a_decision_leads_back_to_data_code_people_and_policies,
                    a_dataset_version_leads_forward_to_every_decision,
                    a_model_version_leads_both_ways,
                    who_may_not_read_all_that_it_crosses_is_told_what_is_missing,
                    a_card_says_what_is_known_and_what_is_not, a_card_is_a_file_of_markdown)
