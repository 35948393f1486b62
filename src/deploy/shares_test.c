/* Traffic shares: what is read from text and from JSON, against what stands there. */
#include "deploy/shares.h"

#include "base/test_main.h"

#include <string.h>

static const int64_t versions[] = {1, 3, 4};
static const struct weir_share_alias aliases[] = {{"stable", 3}, {"v9", 4}};
static const struct weir_share_model model = {"digits", versions, 3, aliases, 2};

static const struct {
    const char *json, *text;
} good[] = {
    {"\"v3=90,v4=10\"", "v3=90,v4=10"},
    {"\"4=10,3=90\"", "v3=90,v4=10"},
    {"\"v3=100\"", "v3=100"},
    {"\"stable=99.5,v9=0.5\"", "v3=99.5,v4=0.5"},
    {"\"v3=33.3333,v4=66.6667\"", "v3=33.3333,v4=66.6667"},
    {"\"v3=90%,V4=10%\"", "v3=90,v4=10"},
    {"[{\"version\":4,\"percent\":25},{\"version\":1,\"percent\":75.0}]", "v1=75,v4=25"},
};

START_TEST(shares_are_read_as_they_are_written)
{
    struct weir_shares shares;
    struct weir_error err = {0};
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    json_t *value = json_loads(good[_i].json, JSON_DECODE_ANY, NULL);
    weir_status status = weir_shares_read(&model, value, "--traffic", &shares, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(weir_shares_text(&shares, &arena), good[_i].text);
    json_t *again = weir_shares_to_json(&shares);
    struct weir_shares same;
    ck_assert_int_eq(weir_shares_read(&model, again, "t", &same, &err), WEIR_OK);
    ck_assert_int_eq(memcmp(&same, &shares, sizeof same), 0);
    json_decref(again);
    json_decref(value);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *json;
    weir_status status;
    const char *says;
} bad[] = {
    {"\"\"", WEIR_ERR_INVALID, "sum to 0, and must sum to 100"},
    {"\"v3=90\"", WEIR_ERR_INVALID, "sum to 90, and must"},
    {"\"v3=90,v4=11\"", WEIR_ERR_INVALID, "sum to 101"},
    {"\"v3=50,3=50\"", WEIR_ERR_INVALID, "v3 is named twice"},
    {"\"v3\"", WEIR_ERR_INVALID, "expected VERSION=PERCENT, as in v3=90,v4=10"},
    {"\"v3=\"", WEIR_ERR_INVALID, "expected VERSION=PERCENT"},
    {"\"=100\"", WEIR_ERR_INVALID, "expected VERSION=PERCENT"},
    {"\"v3=ninety\"", WEIR_ERR_INVALID, "share of v3 is no percentage"},
    {"\"v3=0,v4=100\"", WEIR_ERR_INVALID, "leave a version out"},
    {"\"v3=nan\"", WEIR_ERR_INVALID, "no percentage"},
    {"\"v3=1e300\"", WEIR_ERR_INVALID, "no percentage"},
    {"\"v3=-5,v4=105\"", WEIR_ERR_INVALID, "no percentage"},
    {"\"v7=100\"", WEIR_ERR_NOT_FOUND, "has no version 7; there are v4, v3, v1"},
    {"\"stabel=100\"", WEIR_ERR_NOT_FOUND, "did you mean \"stable\"?"},
    {"\"best=100\"", WEIR_ERR_NOT_FOUND, "has no alias \"best\""},
    {"\"v99999999999999999999=100\"", WEIR_ERR_NOT_FOUND, "no alias"},
    {"100", WEIR_ERR_INVALID, "expected \"v3=90,v4=10\""},
    {"[{\"version\":3}]", WEIR_ERR_INVALID, "t[0]: expected {\"version\""},
    {"[{\"version\":3,\"percent\":100,\"weight\":1}]", WEIR_ERR_INVALID, "t[0]: expected"},
};

START_TEST(what_is_no_share_is_refused_with_a_sentence)
{
    struct weir_shares shares;
    struct weir_error err = {0};
    json_t *value = json_loads(bad[_i].json, JSON_DECODE_ANY, NULL);
    ck_assert_int_eq(weir_shares_read(&model, value, "t", &shares, &err), bad[_i].status);
    ck_assert_msg(strstr(err.message, bad[_i].says) != NULL, "%s", err.message);
    json_decref(value);
}

END_TEST

START_TEST(a_model_without_versions_is_told_so)
{
    const struct weir_share_model none = {.name = "digits"};
    struct weir_error err = {0};
    int64_t version;
    ck_assert_int_eq(weir_share_version_read(&none, "v1", 2, "t", &version, &err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "has no version yet: `weir model push digits FILE`"));
}

END_TEST

WEIR_TEST_LOOPS_MAIN("deploy_shares", {shares_are_read_as_they_are_written, WEIR_ARRAY_LEN(good)},
                     {what_is_no_share_is_refused_with_a_sentence, WEIR_ARRAY_LEN(bad)},
                     {a_model_without_versions_is_told_so, 0})
