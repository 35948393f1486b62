#include "batch/row.h"

#include "base/json.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const labels[] = {"cat", "a \"dog\", wet", "eel"};
static struct serve_port port = {.name = "y", .dtype = WEIR_DTYPE_FLOAT, .rank = 2};
static struct weir_signature signature = {.outputs = &port,
                                          .n_outputs = 1,
                                          .is_batched = true,
                                          .output_kind = SIGNATURE_LOGITS,
                                          .labels = labels,
                                          .n_labels = 3};
static struct weir_arena arena;
static struct weir_buf text;
static struct weir_tensor *outputs[1];
static struct weir_error err;

static void set_up(void)
{
    static const float values[] = {0, 0, 0, 1, 3, 2};
    weir_arena_init(&arena, 0);
    weir_buf_init(&text, 1 << 20);
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, (int64_t[]){2, 3}, &outputs[0], &err),
                     WEIR_OK);
    memcpy(outputs[0]->data, values, sizeof values);
}

static void tear_down(void)
{
    weir_tensor_release(outputs[0]);
    weir_buf_fini(&text);
    weir_arena_fini(&arena);
}

START_TEST(a_classifiers_row_has_the_likeliest_classes)
{
    const struct row_form form = {.signature = &signature, .n_top = 2, .has_values = true};
    json_t *row;
    row_write(&form, "a/\"1\".png", outputs, 1, &arena, &text);
    ck_assert_int_eq(text.data[text.len - 1], '\n');
    ck_assert_int_eq(weir_json_parse(text.data, text.len, "row", &row, &err), WEIR_OK);
    ck_assert_str_eq(json_string_value(json_object_get(row, "file")), "a/\"1\".png");
    ck_assert_str_eq(json_string_value(json_object_get(row, "label")), labels[1]);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "class")), 1);
    double sum = exp(1) + exp(3) + exp(2);
    ck_assert_double_eq_tol(json_real_value(json_object_get(row, "probability")), exp(3) / sum,
                            1e-6);
    const json_t *top = json_object_get(row, "top");
    ck_assert_uint_eq(json_array_size(top), 2);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(top, 1), "label")), "eel");
    const json_t *values = json_object_get(json_object_get(row, "outputs"), "y");
    ck_assert_uint_eq(json_array_size(values), 3);
    ck_assert_double_eq(json_number_value(json_array_get(values, 2)), 2);
    json_decref(row);
}

END_TEST

START_TEST(another_models_row_has_its_values)
{
    struct weir_signature other = signature;
    const struct row_form form = {.signature = &other, .n_top = 1};
    other.output_kind = SIGNATURE_EMBEDDING;
    ((float *)outputs[0]->data)[1] = NAN;
    row_write(&form, "f", outputs, 0, &arena, &text);
    ck_assert_str_eq(text.data, "{\"file\":\"f\",\"outputs\":{\"y\":[0,null,0]}}\n");
}

END_TEST

START_TEST(integers_keep_every_digit)
{
    static const struct {
        enum weir_dtype dtype;
        uint64_t bits;
        const char *text;
    } cases[] = {
        {WEIR_DTYPE_INT64, ((uint64_t)1 << 53) + 1, "9007199254740993"},
        {WEIR_DTYPE_INT64, (uint64_t)1 << 63, "-9223372036854775808"},
        {WEIR_DTYPE_UINT64, UINT64_MAX, "18446744073709551615"},
        {WEIR_DTYPE_INT32, UINT32_MAX, "-1"},
        {WEIR_DTYPE_INT8, 0x80, "-128"},
        {WEIR_DTYPE_BOOL, 1, "1"},
    };

    struct weir_signature other = signature;
    const struct row_form form = {.signature = &other, .n_top = 1};
    other.output_kind = SIGNATURE_EMBEDDING;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        char expected[128];
        struct weir_tensor *whole;
        ck_assert_int_eq(weir_tensor_create(cases[i].dtype, 2, (int64_t[]){1, 1}, &whole, &err),
                         WEIR_OK);
        memcpy(whole->data, &cases[i].bits, weir_dtype_bytes(cases[i].dtype));
        text.len = 0;
        row_write(&form, "f", &whole, 0, &arena, &text);
        (void)snprintf(expected, sizeof expected, "{\"file\":\"f\",\"outputs\":{\"y\":[%s]}}\n",
                       cases[i].text);
        ck_assert_str_eq(text.data, expected);
        weir_tensor_release(whole);
    }
}

END_TEST

START_TEST(csv_quotes_what_it_must)
{
    const struct row_form form = {.signature = &signature, .n_top = 2, .is_csv = true};
    int64_t n, n_errors;
    row_write_head(&form, &text);
    row_write(&form, "a,b\n.png", outputs, 1, &arena, &text);
    row_write_error(&form, "c.png", "cut \"off\"\nhere", &text);
    ck_assert_str_eq(text.data, "file,class,label,probability,class_2,label_2,probability_2,error\n"
                                "\"a,b\n.png\",1,\"a \"\"dog\"\", wet\",0.665241,2,eel,0.244728,\n"
                                "c.png,,,,,,,\"cut \"\"off\"\" here\"\n");
    ck_assert_int_eq(row_count(true, text.data, text.len, &n, &n_errors, &err), WEIR_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(n_errors, 1);
    ck_assert_int_eq(row_count(true, text.data, text.len - 1, &n, &n_errors, &err),
                     WEIR_ERR_CORRUPT);
    ck_assert_int_eq(row_count(true, "", 0, &n, &n_errors, &err), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(rows_are_counted_with_their_errors)
{
    const struct row_form form = {.signature = &signature, .n_top = 1};
    int64_t n, n_errors;
    row_write(&form, "error", outputs, 0, &arena, &text);
    row_write_error(&form, "b", "", &text);
    ck_assert_int_eq(row_count(false, text.data, text.len, &n, &n_errors, &err), WEIR_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(n_errors, 1);
    ck_assert_int_eq(row_count(false, text.data, text.len - 3, &n, &n_errors, &err),
                     WEIR_ERR_CORRUPT);
    ck_assert_int_eq(row_count(false, "{\n", 2, &n, &n_errors, &err), WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN_WITH("row", set_up, tear_down, a_classifiers_row_has_the_likeliest_classes,
                    another_models_row_has_its_values, integers_keep_every_digit,
                    csv_quotes_what_it_must, rows_are_counted_with_their_errors)
