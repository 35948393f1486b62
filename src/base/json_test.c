#include "base/json.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_error err;

/* YAML beside the JSON it must mean (checked with python3-yaml's core-schema loader). */
static const struct {
    const char *yaml, *json;
} pairs[] = {
    {"a: 1\nb: [x, 2.5, true, null, ~]\n", "{\"a\":1,\"b\":[\"x\",2.5,true,null,null]}"},
    {"- {n: -3, h: 0x10}\n- 'true'\n- \"1\"\n", "[{\"n\":-3,\"h\":16},\"true\",\"1\"]"},
    {"text: |\n  two\n  lines\n", "{\"text\":\"two\\nlines\\n\"}"},
    {"v: 1.2.3\nw: 1e3\nx: +\ny: .5\n", "{\"v\":\"1.2.3\",\"w\":1000.0,\"x\":\"+\",\"y\":0.5}"},
    {"key: {}\nempty: []\nnone:\n", "{\"key\":{},\"empty\":[],\"none\":null}"},
    {"t: 0 0 3 * * *\nbig: 9223372036854775807\n",
     "{\"t\":\"0 0 3 * * *\",\"big\":9223372036854775807}"},
};

START_TEST(yaml_means_the_same_as_its_json)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        json_t *yaml, *json;
        ck_assert_msg(weir_yaml_parse(pairs[i].yaml, strlen(pairs[i].yaml), "t", false, &yaml,
                                      &err) == WEIR_OK,
                      "%s", err.message);
        ck_assert_int_eq(weir_json_parse(pairs[i].json, strlen(pairs[i].json), "t", &json, &err),
                         WEIR_OK);
        char *text = json_dumps(yaml, JSON_ENCODE_ANY);
        ck_assert_msg(json_equal(yaml, json), "%s -> %s", pairs[i].yaml, text);
        free(text);
        json_decref(yaml);
        json_decref(json);
    }
}

END_TEST

static const struct {
    const char *yaml, *why;
} wrong[] = {
    {"a: 1\na: 2\n", "line 2"},
    {"a: &x 1\n", "anchors"},
    {"a: *x\n", "aliases"},
    {"a: !!int 3\n", "tags"},
    {"a: [1, 2\n", "line"},
    {"? [a]\n: 1\n", "key must be"},
    {"a: 1\n---\nb: 2\n", "one document"},
    {"", "one document"},
    {"a: \"\\0\"\n", "NUL"},
};

START_TEST(what_we_do_not_read_is_refused_with_its_line)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        json_t *value = NULL;
        weir_status status =
            weir_yaml_parse(wrong[i].yaml, strlen(wrong[i].yaml), "f.yaml", false, &value, &err);
        ck_assert_msg(status == WEIR_ERR_INVALID, "accepted: %s", wrong[i].yaml);
        ck_assert_ptr_null(value);
        ck_assert_msg(strstr(err.message, wrong[i].why) != NULL, "%s: %s", wrong[i].yaml,
                      err.message);
    }
}

END_TEST

/* Values and keys of a tree, counted one by one. */
static size_t n_values(const json_t *value)
{
    size_t n = 1, i;
    const char *key;
    json_t *child;
    if (json_is_array(value)) {
        json_array_foreach(value, i, child)
        {
            n += n_values(child);
        }
    }
    json_object_foreach((json_t *)value, key, child)
    {
        n += 1 + n_values(child);
    }
    return n;
}

START_TEST(the_count_is_never_less_than_the_values)
{
    static const char *const texts[] = {
        "1",
        "[]",
        "[[],[],[]]",
        "{\"a\":1,\"b\":[1,2,{\"c\":null}]}",
        "[\"a,b:[{\",\"\\\"[,\\\\\",{}]",
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        json_t *value;
        ck_assert_int_eq(weir_json_parse(texts[i], strlen(texts[i]), "test", &value, NULL),
                         WEIR_OK);
        size_t n = n_values(value), count = weir_json_count(texts[i], strlen(texts[i]));
        ck_assert_uint_ge(count, n);
        ck_assert_uint_le(count, 2 * n + 1); /* and of that order: text is not counted */
        json_decref(value);
    }
    ck_assert_uint_ge(weir_json_count("[[[[", 4), 4);
    ck_assert_uint_ge(weir_json_count("\"\\", 2), 1); /* cut within an escape */
}

END_TEST

START_TEST(depth_is_bounded_in_both)
{
    char deep[401];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    deep[400] = '\0';
    json_t *value = NULL;
    ck_assert_int_eq(weir_yaml_parse(deep, 400, "t", false, &value, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_json_parse(deep, 400, "t", &value, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_null(value);
}

END_TEST

START_TEST(many_documents_come_as_an_array)
{
    static const char text[] = "a: 1\n---\nb: 2\n";
    json_t *value;
    ck_assert_int_eq(weir_yaml_parse(text, strlen(text), "t", true, &value, &err), WEIR_OK);
    ck_assert_uint_eq(json_array_size(value), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(value, 1), "b")), 2);
    json_decref(value);
}

END_TEST

START_TEST(json_errors_name_source_line_and_column)
{
    json_t *value;
    ck_assert_int_eq(weir_json_parse("{\n \"a\": ?}", 10, "body", &value, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strncmp(err.message, "body: line 2, column", 20) == 0, "%s", err.message);
    ck_assert_int_eq(weir_json_parse("{\"a\":1,\"a\":2}", 13, "body", &value, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN("json", yaml_means_the_same_as_its_json, the_count_is_never_less_than_the_values,
               what_we_do_not_read_is_refused_with_its_line, depth_is_bounded_in_both,
               many_documents_come_as_an_array, json_errors_name_source_line_and_column)
