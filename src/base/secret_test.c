#include "base/secret.h"

#include "base/test_main.h"

#include <string.h>

#define PATHS "env.* source.token pipelines.*.source.token"

static json_t *parsed(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(value);
    return value;
}

static void expect(json_t *value, const char *wanted)
{
    json_t *other = parsed(wanted);
    ck_assert_msg(json_equal(value, other), "%s", json_dumps(value, 0));
    json_decref(other);
    json_decref(value);
}

START_TEST(values_are_hidden_and_keys_are_not)
{
    static const char *const cases[][2] = {
        {"{\"env\":{\"A\":\"1\",\"B\":\"\"},\"argv\":[\"x\"]}",
         "{\"env\":{\"A\":\"***\",\"B\":\"***\"},\"argv\":[\"x\"]}"},
        {"{\"source\":{\"kind\":\"http\",\"token\":\"t\"}}",
         "{\"source\":{\"kind\":\"http\",\"token\":\"***\"}}"},
        {"{\"pipelines\":[{\"name\":\"a\"},{\"source\":{\"token\":\"t\",\"path\":\"p\"}}]}",
         "{\"pipelines\":[{\"name\":\"a\"},{\"source\":{\"token\":\"***\",\"path\":\"p\"}}]}"},
        {"{\"env\":[\"a\",{\"b\":1}],\"source\":\"token\"}",
         "{\"env\":[\"***\",\"***\"],\"source\":\"token\"}"},
        {"{\"env\":null,\"source\":{\"token\":null}}",
         "{\"env\":null,\"source\":{\"token\":null}}"},
        {"{\"environment\":{\"A\":\"1\"}}", "{\"environment\":{\"A\":\"1\"}}"},
        {"[1]", "[1]"},
        {"\"env\"", "\"env\""},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        json_t *value = parsed(cases[i][0]);
        weir_secrets_mask(value, PATHS);
        ck_assert(weir_secrets_are_masked(value, PATHS) == (strstr(cases[i][1], "***") != NULL));
        expect(value, cases[i][1]);
    }
    json_t *value = parsed(cases[0][0]);
    weir_secrets_mask(value, NULL);
    expect(value, cases[0][0]);
}

END_TEST

START_TEST(masks_that_come_back_get_what_is_stored)
{
    json_t *stored = parsed("{\"env\":{\"A\":\"1\",\"B\":\"2\"},\"pipelines\":["
                            "{\"name\":\"x\",\"source\":{\"token\":\"tx\"}},"
                            "{\"name\":\"y\",\"source\":{\"token\":\"ty\"}}]}");
    /* Another order, one new value, one place without a mask. */
    json_t *value = parsed("{\"env\":{\"A\":\"***\",\"B\":\"new\"},\"pipelines\":["
                           "{\"name\":\"y\",\"source\":{\"token\":\"***\"}},"
                           "{\"name\":\"x\",\"source\":{\"token\":\"***\"},\"note\":\"***\"}]}");
    ck_assert_int_eq(weir_secrets_restore(value, stored, PATHS, "$", NULL), WEIR_OK);
    expect(value, "{\"env\":{\"A\":\"1\",\"B\":\"new\"},\"pipelines\":["
                  "{\"name\":\"y\",\"source\":{\"token\":\"ty\"}},"
                  "{\"name\":\"x\",\"source\":{\"token\":\"tx\"},\"note\":\"***\"}]}");
    json_decref(stored);
}

END_TEST

START_TEST(a_mask_for_nothing_is_refused_with_its_place)
{
    static const struct {
        const char *value, *stored, *place;
    } cases[] = {
        {"{\"env\":{\"A\":\"***\"}}", NULL, "$.env.A: "},
        {"{\"env\":{\"A\":\"***\"}}", "{\"env\":{\"B\":\"1\"}}", "$.env.A: "},
        {"{\"env\":{\"A\":\"***\"}}", "{\"env\":{\"A\":null}}", "$.env.A: "},
        {"{\"pipelines\":[{\"name\":\"new\",\"source\":{\"token\":\"***\"}}]}",
         "{\"pipelines\":[{\"name\":\"old\",\"source\":{\"token\":\"1\"}}]}",
         "$.pipelines[0].source.token: "},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_error err;
        json_t *value = parsed(cases[i].value);
        json_t *stored = cases[i].stored != NULL ? parsed(cases[i].stored) : NULL;
        ck_assert_int_eq(weir_secrets_restore(value, stored, PATHS, "$", &err), WEIR_ERR_INVALID);
        ck_assert_int_eq(strncmp(err.message, cases[i].place, strlen(cases[i].place)), 0);
        json_decref(value);
        json_decref(stored);
    }
}

END_TEST

WEIR_TEST_MAIN("secret", values_are_hidden_and_keys_are_not,
               masks_that_come_back_get_what_is_stored,
               a_mask_for_nothing_is_refused_with_its_place)
