/* What programs tell about themselves: kept once, in the form of its kind; and alerts that they raise. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define DOOR API "/ions/door"

static void set_up(void)
{
    callers_open();
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\","
                "\"type\":\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"}],"
                "\"links\":[]}");
}

START_TEST(values_have_the_form_of_their_kind)
{
    static const struct {
        const char *kind, *right, *wrong;
    } forms[] = {
        {"number", "1.5", "\"1.5\""},
        {"text", "\"a\"", "[]"},
        {"lines", "{\"a\":1,\"b\":2}", "{\"a\":\"1\"}"},
        {"bars", "{\"labels\":[\"a\"],\"values\":[1]}", "{\"labels\":[\"a\"],\"values\":[1,2]}"},
        {"table", "{\"columns\":[\"a\"],\"rows\":[[1],[\"x\"]]}",
         "{\"columns\":[\"a\"],\"rows\":[[1,2]]}"},
        {"graph", "{\"x\":[1,2],\"y\":{\"a\":[3,4]}}", "{\"x\":[1,2],\"y\":{\"a\":[3]}}"},
        {"heat-map", "{\"rows\":[\"a\"],\"columns\":[\"b\"],\"cells\":[[1]]}",
         "{\"rows\":[\"a\"],\"columns\":[\"b\"],\"cells\":[[1],[2]]}"},
        {"distribution", "{\"edges\":[0,1,2],\"counts\":[3,4]}",
         "{\"edges\":[0,1],\"counts\":[3,4]}"},
        {"distribution", "{\"counts\":{\"cat\":3}}", "{\"counts\":{}}"},
        {"opaque", "[[{}]]", NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        EXPECT(200,
               "POST " DOOR "/statistics\n\n{\"statistics\":[{\"name\":\"s\",\"kind\":\"%s\","
               "\"value\":%s}]}",
               forms[i].kind, forms[i].right);
        ck_assert_int_eq(json_integer_value(said("stored")), 1);
        if (forms[i].wrong != NULL) {
            EXPECT_ERROR(400, "$.statistics[0]: $.value",
                         "POST " DOOR "/statistics\n\n{\"statistics\":[{\"name\":\"s\","
                         "\"kind\":\"%s\",\"value\":%s}]}",
                         forms[i].kind, forms[i].wrong);
        }
    }
    EXPECT_ERROR(400, "no kind of statistic",
                 "POST " DOOR "/statistics\n\n{\"statistics\":[{\"name\":\"s\",\"kind\":\"pie\","
                 "\"value\":1}]}");
    EXPECT(200, "GET " DOOR "/statistics?kind=distribution");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    EXPECT(404, "POST " API "/ions/none/statistics\n\n{\"statistics\":[]}");
}

END_TEST

START_TEST(the_same_again_is_stored_once_and_a_wrong_one_leaves_none)
{
    static const char two[] = "POST " DOOR "/statistics\n\n{\"statistics\":["
                              "{\"id\":\"a\",\"name\":\"s\",\"kind\":\"number\",\"value\":1},"
                              "{\"id\":\"b\",\"name\":\"s\",\"kind\":\"number\",\"value\":2}]}";
    EXPECT(200, "%s", two);
    ck_assert_int_eq(json_integer_value(said("stored")), 2);
    EXPECT(200, "%s", two);
    ck_assert_int_eq(json_integer_value(said("stored")), 0);
    EXPECT_ERROR(400, "$.statistics[1]",
                 "POST " DOOR "/statistics\n\n{\"statistics\":["
                 "{\"id\":\"c\",\"name\":\"s\",\"kind\":\"number\",\"value\":1},"
                 "{\"id\":\"d\",\"name\":\"s\",\"kind\":\"number\",\"value\":null}]}");
    EXPECT(200, "GET " DOOR "/statistics?name=s");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_double_eq(json_number_value(said("items.0.value")), 2);
}

END_TEST

START_TEST(what_is_told_to_be_ill_is_an_alert_until_it_is_told_to_be_well)
{
    static const char told[] = "POST " DOOR "/told\n\n{\"about\":\"%s\",\"title\":\"lens\","
                               "\"message\":\"fog\",\"is_healthy\":%s}";
    EXPECT(204, told, "data", "false");
    EXPECT(204, told, "data", "false");
    EXPECT(204, told, "system", "false");
    EXPECT(200, "GET " API "/alerts?kind=told&state=open");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_str_eq(said_text("items.0.subject"), "ion/door");
    EXPECT(204, told, "data", "true");
    EXPECT(204, told, "data", "true");
    EXPECT(200, "GET " API "/alerts?kind=told&state=open");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_ptr_nonnull(strstr(said_text("items.0.message"), "system: lens: fog"));
    EXPECT(400, told, "weather", "false");
    EXPECT(400, told, "data", "\"no\"");
    EXPECT(404, "POST " API "/ions/none/told\n\n{\"about\":\"data\",\"title\":\"a\","
                "\"is_healthy\":true}");
}

END_TEST

START_TEST(an_identifier_says_something_within_its_ion_alone)
{
    static const char one[] = "POST " API "/ions/%s/statistics\n\n{\"statistics\":[{\"id\":\"a\","
                              "\"name\":\"s\",\"kind\":\"number\",\"value\":1,"
                              "\"time_ms\":null}]}";
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"gate\",\"pipelines\":[{\"name\":\"learn\","
                "\"type\":\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"}],"
                "\"links\":[]}");
    EXPECT(200, one, "door");
    ck_assert_int_eq(json_integer_value(said("stored")), 1);
    EXPECT(200, one, "gate");
    ck_assert_int_eq(json_integer_value(said("stored")), 1);
    EXPECT(200, one, "gate");
    ck_assert_int_eq(json_integer_value(said("stored")), 0);
}

END_TEST

static size_t n_open(void)
{
    EXPECT(200, "GET " API "/alerts?kind=told&state=open");
    return json_array_size(said("items"));
}

START_TEST(what_is_told_again_or_late_changes_nothing)
{
    static const char at[] = "POST " DOOR "/told\n\n{\"about\":\"data\",\"title\":\"lens\","
                             "\"is_healthy\":%s,\"time_ms\":%d}";
    EXPECT(204, at, "false", 1000);
    EXPECT(204, at, "false", 1000);
    ck_assert_uint_eq(n_open(), 1);
    ck_assert_int_eq(json_integer_value(said("items.0.count")), 1);
    EXPECT(204, at, "true", 900); /* it was well before it was not */
    ck_assert_uint_eq(n_open(), 1);
    EXPECT(204, at, "true", 2000);
    ck_assert_uint_eq(n_open(), 0);
    EXPECT(204, at, "false", 1000);
    EXPECT(204, at, "false", 1500);
    EXPECT(204, at, "true", 2000);
    ck_assert_uint_eq(n_open(), 0);
    EXPECT(204, at, "false", 2001);
    ck_assert_uint_eq(n_open(), 1);
    EXPECT(204, "POST " DOOR "/told\n\n{\"about\":\"data\",\"title\":\"lens\","
                "\"is_healthy\":true}");
    ck_assert_uint_eq(n_open(), 0);
    EXPECT(400, at, "false", -1);
}

END_TEST

START_TEST(titles_are_plain_and_not_without_end)
{
    static const char told[] = "POST " DOOR "/told\n\n{\"about\":\"data\",\"title\":\"%s\","
                               "\"is_healthy\":%s}";
    char title[16];
    EXPECT_ERROR(400, "control characters", told, "a\\u001b[31m", "false");
    for (int i = 0; i < 100; i++) {
        (void)snprintf(title, sizeof title, "t%d", i);
        EXPECT(204, told, title, "false");
    }
    EXPECT(204, told, "t7", "false");
    EXPECT_ERROR(413, "told and not over", told, "one more", "false");
    EXPECT(204, told, "t7", "true");
    EXPECT(204, told, "one more", "false");
}

END_TEST

WEIR_TEST_MAIN_WITH("statistic", set_up, callers_close, values_have_the_form_of_their_kind,
                    the_same_again_is_stored_once_and_a_wrong_one_leaves_none,
                    what_is_told_to_be_ill_is_an_alert_until_it_is_told_to_be_well,
                    an_identifier_says_something_within_its_ion_alone,
                    what_is_told_again_or_late_changes_nothing,
                    titles_are_plain_and_not_without_end)
