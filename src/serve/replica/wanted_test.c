#include "serve/replica/wanted.h"

#include "base/test_main.h"

#include <string.h>

#define BLOB "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static weir_status parse(const char *text, struct wanted *out, struct weir_error *err)
{
    json_t *json;
    ck_assert_int_eq(weir_json_parse(text, strlen(text), "test", &json, err), WEIR_OK);
    weir_status status = wanted_parse(json, out, err);
    json_decref(json);
    return status;
}

START_TEST(what_is_wanted_is_read_with_its_defaults)
{
    static struct wanted wanted;
    struct weir_error err;
    ck_assert_int_eq(parse("{\"revision\":7,\"batch_max\":16,\"delay_max_us\":2000,\"versions\":["
                           "{\"version\":3,\"blob\":\"" BLOB "\",\"bytes\":5},"
                           "{\"version\":4,\"blob\":\"" BLOB "\",\"golden\":\"" BLOB
                           "\"}],\"live\":[3],\"new\":1}",
                           &wanted, &err),
                     WEIR_OK);
    ck_assert_int_eq(wanted.revision, 7);
    ck_assert_int_eq(wanted.rules.batch_max, 16);
    ck_assert_uint_eq(wanted.rules.delay_ns, 2000000);
    ck_assert_uint_eq(wanted.rules.queue_max, 256);
    ck_assert_uint_eq(wanted.n_versions, 2);
    ck_assert_int_eq(wanted.versions[1].number, 4);
    ck_assert_str_eq(wanted.versions[0].blob, BLOB);
    ck_assert_str_eq(wanted.versions[0].golden, "");
    ck_assert_str_eq(wanted.versions[1].golden, BLOB);
    ck_assert_int_eq(parse("{\"revision\":0}", &wanted, &err), WEIR_OK);
    ck_assert_uint_eq(wanted.n_versions, 0);
}

END_TEST

START_TEST(what_is_wrong_is_refused_with_its_place)
{
    static const char *const cases[][2] = {
        {"[]", "$.versions"},
        {"{\"versions\":{}}", "$.versions"},
        {"{\"batch_max\":0}", "$.batch_max"},
        {"{\"queue_max\":\"a\"}", "$.queue_max"},
        {"{\"versions\":[{\"blob\":\"" BLOB "\"}]}", "$.versions[0].version"},
        {"{\"versions\":[{\"version\":1,\"blob\":\"../../etc/passwd\"}]}", "$.versions[0].blob"},
        {"{\"versions\":[{\"version\":1}]}", "$.versions[0].blob"},
        {"{\"versions\":[{\"version\":1,\"blob\":\"" BLOB "\",\"golden\":\"../x\"}]}",
         "$.versions[0].golden"},
    };
    static struct wanted wanted;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_error err;
        ck_assert_int_eq(parse(cases[i][0], &wanted, &err), WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, cases[i][1]) != NULL, "%s: %s", cases[i][0], err.message);
    }
}

END_TEST

WEIR_TEST_MAIN("wanted", what_is_wanted_is_read_with_its_defaults,
               what_is_wrong_is_refused_with_its_place)
