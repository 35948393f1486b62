/* What is written is read back as it was; python3-yaml, which reads YAML 1.1, is asked by cluster_manifest's test. */
#include "base/yaml_write.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

static struct weir_error err;

static char *written(const json_t *value, bool multi)
{
    struct weir_buf buf;
    weir_buf_init(&buf, (size_t)1 << 20);
    ck_assert_int_eq(weir_yaml_write(value, multi, &buf), WEIR_OK);
    return weir_buf_detach(&buf, NULL);
}

static void assert_comes_back(const json_t *value, bool multi)
{
    WEIR_AUTO(weir_json_auto_free) json_t *back = NULL;
    WEIR_AUTO(weir_auto_free) char *text = written(value, multi);
    ck_assert_msg(weir_yaml_parse(text, strlen(text), "t", multi, &back, &err) == WEIR_OK,
                  "%s:\n%s", err.message, text);
    WEIR_AUTO(weir_auto_free) char *json = json_dumps(value, JSON_ENCODE_ANY);
    ck_assert_msg(json_equal(value, back), "%s\nis written\n%s", json, text);
}

START_TEST(it_is_written_as_people_write_it)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *value = json_pack("{s:s,s:{s:s,s:i,s:f,s:b,s:n},s:[s,s],s:[],s:{}}", "kind", "Service",
                              "spec", "storage", "20Gi", "port", 8470, "part", 0.1, "is", 1, "no",
                              "args", "server", "--listen=0.0.0.0:8470", "none", "nothing");
    WEIR_AUTO(weir_auto_free) char *text = written(value, false);
    ck_assert_str_eq(text, "kind: Service\nspec:\n  storage: \"20Gi\"\n  port: 8470\n  part: 0.1\n"
                           "  is: true\n  \"no\": null\nargs:\n- server\n"
                           "- \"--listen=0.0.0.0:8470\"\nnone: []\nnothing: {}\n");
}

END_TEST

START_TEST(texts_that_look_like_something_else_stay_texts)
{
    static const char *const texts[] = {"",
                                        "true",
                                        "No",
                                        "y",
                                        "~",
                                        "null",
                                        "1",
                                        "-1",
                                        "0x10",
                                        "1e3",
                                        ".5",
                                        "1_000",
                                        "1:30",
                                        "=",
                                        "<<",
                                        "- a",
                                        "a: b",
                                        "a #b",
                                        "#",
                                        "*a",
                                        "&a",
                                        "!a",
                                        "|",
                                        ">",
                                        "'",
                                        "\"",
                                        "%a",
                                        "@a",
                                        "`",
                                        " a",
                                        "a ",
                                        "a\nb",
                                        "\n",
                                        "\ta",
                                        "a\\b",
                                        "---",
                                        "...",
                                        "{a}",
                                        "[a]",
                                        "\x01",
                                        "\x7f",
                                        "ä",
                                        "😀",
                                        "a\r",
                                        "?",
                                        "2026-1-1",
                                        "0o17",
                                        ".inf",
                                        ".nan",
                                        "\xc2\x85",
                                        "a\n\n",
                                        "\n a",
                                        ",",
                                        "a, b",
                                        "é: è",
                                        "Null",
                                        "\xef\xbb\xbf",
                                        "\xe2\x80\xa8"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        WEIR_AUTO(weir_json_auto_free)
        json_t *value = json_pack("{s:[s]}", texts[i], texts[i]);
        assert_comes_back(value, false);
    }
}

END_TEST

/* Any text of UTF-8 without NUL, mostly of what means something to YAML. */
static json_t *random_text(struct weir_rng *rng)
{
    static const char *const parts[] = {
        "a",  "B",    "0",  "1", ".",  "-", " ", ":",    ": ",       " #",
        "\n", "\t",   "\"", "'", "\\", "{", "]", "true", "\xc3\xa4", "\xf0\x9f\x98\x80",
        "\r", "\x1b", "&",  "*", "!",  "%", "@", "|",    ">",        "?"};
    char text[64] = "";
    for (uint64_t n = weir_rng_below(rng, 9); n > 0; n--) {
        strncat(text, parts[weir_rng_below(rng, WEIR_ARRAY_LEN(parts))],
                sizeof text - strlen(text) - 1);
    }
    return json_string(text);
}

static json_t *random_value(struct weir_rng *rng, int depth)
{
    static const double reals[] = {0.1, -0.0, 1e300, 5e-324, 1.0 / 3, 100, 123456789.125, 1e21};
    json_t *value;
    switch (weir_rng_below(rng, depth < 5 ? 8 : 6)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(weir_rng_below(rng, 2));
    case 2:
        return json_integer((json_int_t)weir_rng_below(rng, UINT64_MAX));
    case 3:
        return json_real(reals[weir_rng_below(rng, WEIR_ARRAY_LEN(reals))]);
    case 4:
    case 5:
        return random_text(rng);
    case 6:
        value = json_array();
        for (uint64_t n = weir_rng_below(rng, 4); n > 0; n--) {
            json_array_append_new(value, random_value(rng, depth + 1));
        }
        return value;
    default:
        value = json_object();
        for (uint64_t n = weir_rng_below(rng, 4); n > 0; n--) {
            json_t *key = random_text(rng);
            json_object_set_new(value, json_string_value(key), random_value(rng, depth + 1));
            json_decref(key);
        }
        return value;
    }
}

START_TEST(whatever_is_written_comes_back)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int i = 0; i < 3000; i++) {
        WEIR_AUTO(weir_json_auto_free) json_t *one = random_value(&rng, 0);
        WEIR_AUTO(weir_json_auto_free)
        json_t *many = json_pack("[O,o,o]", one, random_value(&rng, 2), random_value(&rng, 2));
        assert_comes_back(one, false);
        assert_comes_back(many, true);
    }
}

END_TEST

START_TEST(a_buffer_that_is_full_is_said)
{
    struct weir_buf buf;
    WEIR_AUTO(weir_json_auto_free) json_t *value = json_pack("[s,s]", "many bytes", "are these");
    weir_buf_init(&buf, 8);
    ck_assert_int_eq(weir_yaml_write(value, false, &buf), WEIR_ERR_LIMIT);
    weir_buf_fini(&buf);
}

END_TEST

WEIR_TEST_MAIN("yaml_write", it_is_written_as_people_write_it,
               texts_that_look_like_something_else_stay_texts, whatever_is_written_comes_back,
               a_buffer_that_is_full_is_said)
