/* What the one-pass reader takes is what the parser would have read; what it does not take is left. */
#include "mlflow/call.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct mlflow_batch *scan(const char *text, struct weir_arena *arena)
{
    const struct weir_http_request request = {.body = text, .body_len = strlen(text)};
    return mlflow_scan_batch(&request, arena);
}

/* A body of one metric, and values in the member's place. */
START_TEST(what_is_taken_is_what_jansson_reads)
{
    static const char *const values[] = {
        "0",    "-0",    "1",  "-1",   "1.5", "-2.25e-3",         "1e5", "1E+5",  "01",      "1.",
        ".5",   "+1",    "1e", "0x10", "NaN", "Infinity",         "nan", "inf",   "\"NaN\"", "null",
        "true", "1e999", "-",  "",     "[1]", "9007199254740993", "1 2", "\"5\"", "1e-400",
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        char text[256];
        struct weir_arena arena;
        struct weir_error err;
        json_t *tree = NULL;
        weir_arena_init(&arena, 0);
        (void)snprintf(
            text, sizeof text,
            "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":%s, \"timestamp\":1}]}",
            values[i]);
        struct mlflow_batch *batch = scan(text, &arena);
        weir_status status = weir_json_parse(text, strlen(text), "x", &tree, &err);
        const json_t *value =
            json_object_get(json_array_get(json_object_get(tree, "metrics"), 0), "value");
        if (batch != NULL) {
            ck_assert_msg(status == WEIR_OK && json_is_number(value), "%s", values[i]);
            ck_assert_double_eq(batch->metrics[0].value, json_number_value(value));
        } else {
            ck_assert_msg(!json_is_number(value), "%s was not taken", values[i]);
        }
        json_decref(tree);
        weir_arena_fini(&arena);
    }
}

END_TEST

START_TEST(all_members_are_read_in_any_order)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct mlflow_batch *batch =
        scan(" { \"tags\" : [ ], "
             "\"metrics\":[{\"step\":-7,\"timestamp\":5,\"value\":1.5,\"key\":\"a/b\"},\n"
             "{\"key\":\"a/b\",\"value\":2,\"timestamp\":6}],\"params\":[],\"run_id\":\"abc\"} ",
             &arena);
    ck_assert_ptr_nonnull(batch);
    ck_assert_str_eq(batch->run_id, "abc");
    ck_assert_uint_eq(batch->n, 2);
    ck_assert_str_eq(batch->metrics[0].key, "a/b");
    ck_assert_int_eq(batch->metrics[0].step, -7);
    ck_assert_int_eq(batch->metrics[1].step, 0);
    ck_assert_int_eq(batch->metrics[1].time_ms, 6);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(anything_else_is_left_to_the_parser)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{\"run_id\":\"r\"}",
        "{\"run_id\":\"r\",\"metrics\":[]}",
        "{\"run_id\":\"\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"../m\",\"value\":1,\"timestamp\":1}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\\n\",\"value\":1,\"timestamp\":1}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":-1}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1.5}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":"
        "99999999999999999999}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1,\"value\":2}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1}],\"tags\":[{"
        "\"key\":\"t\"}]}",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1}]",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1}]}x",
        "{\"run_id\":\"r\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1},]}",
        "{\"run_id\":\"r\",\"x\":1,\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1}]}",
        "{\"run_id\":\"\xff\",\"metrics\":[{\"key\":\"m\",\"value\":1,\"timestamp\":1}]}",
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        ck_assert_msg(scan(texts[i], &arena) == NULL, "%s", texts[i]);
        weir_arena_fini(&arena);
    }
}

END_TEST

/* A body cut anywhere, or with a byte changed: nothing is read behind its end (asan), and what is taken
 * parses. */
START_TEST(damaged_bodies_do_no_harm)
{
    static const char whole[] = "{\"run_id\":\"r1\",\"metrics\":[{\"key\":\"m\",\"value\":-1.25e3,"
                                "\"timestamp\":15,\"step\":2},{\"key\":\"n\",\"value\":0,"
                                "\"timestamp\":16}],\"params\":[]}";
    struct weir_rng rng;
    weir_rng_init(&rng, 3, 0);
    for (int i = 0; i < 20000; i++) {
        char text[sizeof whole];
        struct weir_arena arena;
        struct weir_error err;
        json_t *tree = NULL;
        memcpy(text, whole, sizeof whole);
        if (i % 2 == 0) {
            text[weir_rng_below(&rng, sizeof whole)] = '\0';
        } else {
            text[weir_rng_below(&rng, sizeof whole - 1)] = (char)(1 + weir_rng_below(&rng, 126));
        }
        weir_arena_init(&arena, 0);
        if (scan(text, &arena) != NULL) {
            ck_assert_msg(weir_json_parse(text, strlen(text), "x", &tree, &err) == WEIR_OK, "%s",
                          text);
            json_decref(tree);
        }
        weir_arena_fini(&arena);
    }
}

END_TEST

WEIR_TEST_MAIN("batch", what_is_taken_is_what_jansson_reads, all_members_are_read_in_any_order,
               anything_else_is_left_to_the_parser, damaged_bodies_do_no_harm)
