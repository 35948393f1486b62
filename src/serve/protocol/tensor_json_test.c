#include "serve/protocol/tensor_json.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static struct weir_arena arena;

static void start(void)
{
    weir_arena_init(&arena, 0);
}

static void stop(void)
{
    weir_arena_fini(&arena);
}

/* NULL, and the sentence in err, if the text is no tensor of this type. */
static struct weir_tensor *read_tensor(enum weir_dtype dtype, const char *text,
                                       struct weir_error *err)
{
    struct tensor_fill fill;
    struct weir_json_scan scan;
    struct weir_tensor *tensor = NULL;
    weir_json_scan_init(&scan, text, strlen(text), err);
    tensor_fill_init(&fill, dtype, &arena);
    weir_status status = tensor_fill_value(&fill, &scan);
    if (status == WEIR_OK) {
        status = weir_json_scan_end(&scan);
    }
    if (status == WEIR_OK) {
        status = tensor_fill_take(&fill, &tensor, err);
    }
    tensor_fill_fini(&fill);
    return status == WEIR_OK ? tensor : NULL;
}

static const char *write_nested(const struct weir_tensor *tensor)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 26);
    tensor_json_put_nested(&buf, tensor);
    ck_assert_int_eq(buf.status, WEIR_OK);
    const char *text = weir_arena_memdup(&arena, buf.data, buf.len);
    weir_buf_fini(&buf);
    return text;
}

START_TEST(nested_arrays_are_read_and_written_as_they_were)
{
    static const struct {
        enum weir_dtype dtype;
        const char *text;
    } cases[] = {
        {WEIR_DTYPE_FLOAT, "[[1.0,2.5],[-3.0,0.1]]"},
        {WEIR_DTYPE_FLOAT, "[1.0e-10,1.5e+20,123456.0,0.00012,16777216.0,3.4028235e+38]"},
        {WEIR_DTYPE_DOUBLE, "[0.1,1e+300,3.141592653589793,2.0]"},
        {WEIR_DTYPE_INT64, "[[[9223372036854775807,-9223372036854775808]]]"},
        {WEIR_DTYPE_UINT64, "[18446744073709551615,0]"},
        {WEIR_DTYPE_INT8, "[-128,127]"},
        {WEIR_DTYPE_BOOL, "[true,false]"},
        {WEIR_DTYPE_STRING, "[\"a\",\"\\\"\\\\ü\",\"\"]"},
        {WEIR_DTYPE_FLOAT, "[[],[]]"},
        {WEIR_DTYPE_FLOAT, "[NaN,Infinity,-Infinity]"},
        {WEIR_DTYPE_FLOAT16, "[0.5,65504.0]"},
        {WEIR_DTYPE_FLOAT, "7.0"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_error err = {0};
        struct weir_tensor *tensor = read_tensor(cases[i].dtype, cases[i].text, &err);
        ck_assert_msg(tensor != NULL, "%s: %s", cases[i].text, err.message);
        ck_assert_str_eq(write_nested(tensor), cases[i].text);
        weir_tensor_release(tensor);
    }
}

END_TEST

START_TEST(other_ways_to_write_the_same_are_read)
{
    struct weir_error err;
    struct weir_tensor *tensor = read_tensor(WEIR_DTYPE_INT32, " [ 3.0 , 1e2 ,\n-0 ] ", &err);
    ck_assert_str_eq(write_nested(tensor), "[3,100,0]");
    weir_tensor_release(tensor);
    tensor = read_tensor(WEIR_DTYPE_BOOL, "[1,0,true]", &err);
    ck_assert_str_eq(write_nested(tensor), "[true,false,true]");
    weir_tensor_release(tensor);
    tensor =
        read_tensor(WEIR_DTYPE_STRING, "[{\"b64\":\"/w==\"},\"\\u00e4\\ud83d\\ude00\\n\"]", &err);
    ck_assert_str_eq(write_nested(tensor), "[{\"b64\":\"/w==\"},\"ä😀\\u000a\"]");
    weir_tensor_release(tensor);
    tensor = read_tensor(WEIR_DTYPE_FLOAT, "[null]", &err);
    ck_assert_str_eq(write_nested(tensor), "[NaN]");
    weir_tensor_release(tensor);
}

END_TEST

START_TEST(what_is_no_tensor_is_refused_with_its_place)
{
    static const struct {
        enum weir_dtype dtype;
        const char *text, *message;
    } cases[] = {
        {WEIR_DTYPE_FLOAT, "[[1,2],[3]]", "arrays of one depth of equal length"},
        {WEIR_DTYPE_FLOAT, "[1,[2]]", "elements at one depth"},
        {WEIR_DTYPE_FLOAT, "[1,]", "a number"},
        {WEIR_DTYPE_FLOAT, "[1 2]", "',' or ']'"},
        {WEIR_DTYPE_FLOAT, "[01]", "a number"},
        {WEIR_DTYPE_FLOAT, "[1.]", "a number"},
        {WEIR_DTYPE_FLOAT, "[1e]", "a number"},
        {WEIR_DTYPE_FLOAT, "[-]", "a number"},
        {WEIR_DTYPE_FLOAT, "[\"1\"]", "a number"},
        {WEIR_DTYPE_FLOAT, "[1", "',' or ']'"},
        {WEIR_DTYPE_FLOAT, "[1]]", "nothing more"},
        {WEIR_DTYPE_FLOAT, "[[[[[[[[[1]]]]]]]]]", "at most 8 dimensions"},
        {WEIR_DTYPE_UINT8, "[256]", "fits into UINT8"},
        {WEIR_DTYPE_UINT8, "[-1]", "fits into UINT8"},
        {WEIR_DTYPE_INT64, "[9223372036854775808]", "fits into INT64"},
        {WEIR_DTYPE_UINT64, "[18446744073709551616]", "an integer"},
        {WEIR_DTYPE_INT32, "[1.5]", "an integer"},
        {WEIR_DTYPE_INT32, "[NaN]", "an integer"},
        {WEIR_DTYPE_BOOL, "[2]", "true or false"},
        {WEIR_DTYPE_STRING, "[1]", "a string"},
        {WEIR_DTYPE_STRING, "[\"\\ud800\"]", "escapes"},
        {WEIR_DTYPE_STRING, "[\"\xff\"]", "UTF-8"},
        {WEIR_DTYPE_STRING, "[{\"b64\":\"?\"}]", "base64"},
        {WEIR_DTYPE_STRING, "[{\"c\":\"?\"}]", "b64"},
        {WEIR_DTYPE_STRING, "[\"a", "the string's end"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_error err = {0};
        ck_assert_msg(read_tensor(cases[i].dtype, cases[i].text, &err) == NULL, "%s",
                      cases[i].text);
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s: %s", cases[i].text,
                      err.message);
    }
}

END_TEST

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

START_TEST(each_f32_comes_back_and_the_c_library_reads_the_same)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 0);
    for (int i = 0; i < WEIR_TEST_TIMES(300000, 30000); i++) {
        float value = f32_of(weir_rng_u32(&rng));
        struct weir_tensor *tensor, *again;
        struct weir_error err;
        if (i < 512) {
            value =
                f32_of((uint32_t)i << 23 | (i % 3 == 0 ? 0 : 0x7fffff)); /* edges of exponents */
        }
        if (!isfinite(value)) {
            continue;
        }
        ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 0, NULL, &tensor, NULL), WEIR_OK);
        *(float *)tensor->data = value;
        const char *text = write_nested(tensor);
        ck_assert_msg(strtof(text, NULL) == value, "%a: %s", (double)value, text);
        again = read_tensor(WEIR_DTYPE_FLOAT, text, &err);
        ck_assert_msg(*(float *)again->data == value, "%a: %s", (double)value, text);
        weir_tensor_release(tensor);
        weir_tensor_release(again);
    }
}

END_TEST

START_TEST(doubles_are_read_as_the_c_library_reads_them)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 2, 0);
    for (int i = 0; i < WEIR_TEST_TIMES(200000, 20000); i++) {
        char text[64];
        struct weir_json_scan scan;
        struct weir_json_number number;
        struct weir_error err;
        (void)snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64 "e%d", weir_rng_below(&rng, 1000),
                       weir_rng_u64(&rng) >> weir_rng_below(&rng, 60),
                       (int)weir_rng_below(&rng, 660) - 330);
        weir_json_scan_init(&scan, text, strlen(text), &err);
        ck_assert_int_eq(weir_json_scan_number(&scan, true, &number), WEIR_OK);
        ck_assert_msg(number.value == strtod(text, NULL), "%s", text);
        weir_json_scan_init(&scan, text, strlen(text), &err);
        ck_assert_int_eq(weir_json_scan_number(&scan, false, &number), WEIR_OK);
        ck_assert_msg((float)number.value == (float)strtod(text, NULL), "%s", text);
    }
}

END_TEST

START_TEST(jansson_reads_what_is_written_and_skips_as_far)
{
    static const char *texts[] = {"{\"a\":[1,{\"b\":[]},\"x\\\"]\"],\"c\":{}}",
                                  "[[],[[]],{}]",
                                  "\"a\\\\\"",
                                  "-1.5e3",
                                  "true",
                                  "null",
                                  "[{\"a\":{\"b\":1}},2]"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        char text[128];
        struct weir_json_scan scan;
        struct weir_json_text span;
        struct weir_error err = {0};
        (void)snprintf(text, sizeof text, "[%s,7]", texts[i]);
        weir_json_scan_init(&scan, text, strlen(text), &err);
        ck_assert_int_eq(weir_json_scan_enter(&scan, '['), WEIR_OK);
        ck_assert(weir_json_scan_element(&scan));
        ck_assert_msg(weir_json_scan_skip(&scan, &span) == WEIR_OK, "%s: %s", text, err.message);
        ck_assert_uint_eq(span.len, strlen(texts[i]));
        ck_assert(weir_json_scan_element(&scan));
        ck_assert_int_eq(weir_json_scan_skip(&scan, NULL), WEIR_OK);
        ck_assert(!weir_json_scan_element(&scan));
        ck_assert_int_eq(weir_json_scan_end(&scan), WEIR_OK);
    }
}

END_TEST

START_TEST(the_shape_that_a_request_says_is_checked)
{
    static const struct {
        const char *text, *message;
        int64_t dims[2];
    } cases[] = {
        {"[1,2,3,4]", NULL, {2, 2}},
        {"[[1,2],[3,4]]", NULL, {2, 2}},
        {"[1,2,3]", "x: its shape 2x2 has 4 elements, its data 3", {2, 2}},
        {"[[1,2],[3,4]]", "nested otherwise", {1, 4}},
        {"[]", NULL, {0, 2}},
        {"[1]", "", {1LL << 40, 1LL << 40}},
        {"[1]", "", {-1, 1}},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct tensor_fill fill;
        struct weir_json_scan scan;
        struct weir_error err = {0};
        struct weir_tensor *tensor = NULL;
        weir_json_scan_init(&scan, cases[i].text, strlen(cases[i].text), &err);
        tensor_fill_init(&fill, WEIR_DTYPE_FLOAT, &arena);
        ck_assert_int_eq(tensor_fill_value(&fill, &scan), WEIR_OK);
        weir_status status = tensor_fill_take_as(&fill, "x", 2, cases[i].dims, &tensor, &err);
        ck_assert_int_eq(status == WEIR_OK, cases[i].message == NULL);
        ck_assert(cases[i].message == NULL || strstr(err.message, cases[i].message) != NULL);
        weir_tensor_release(tensor);
        tensor_fill_fini(&fill);
    }
}

END_TEST

START_TEST(a_picture_of_numbers_takes_milliseconds)
{
    struct weir_buf buf;
    struct weir_rng rng;
    struct weir_error err;
    weir_buf_init(&buf, 64 << 20);
    weir_rng_init(&rng, 3, 0);
    (void)weir_buf_puts(&buf, "[");
    for (int i = 0; i < 150528; i++) {
        (void)weir_buf_printf(&buf, i > 0 ? ",%.17g" : "%.17g", weir_rng_normal(&rng));
    }
    (void)weir_buf_puts(&buf, "]");
    uint64_t start_ns = weir_mono_ns();
    struct weir_tensor *tensor = read_tensor(WEIR_DTYPE_FLOAT, buf.data, &err);
    uint64_t read_ns = weir_mono_ns() - start_ns;
    ck_assert_uint_eq(tensor->n_elems, 150528);
    const char *text = write_nested(tensor);
    uint64_t both_ns = weir_mono_ns() - start_ns;
    printf("150,528 numbers, %zu KB: read in %.2f ms, written (%zu KB) in %.2f ms\n",
           buf.len / 1000, (double)read_ns / 1e6, strlen(text) / 1000,
           (double)(both_ns - read_ns) / 1e6);
    weir_tensor_release(tensor);
    weir_buf_fini(&buf);
}

END_TEST

WEIR_TEST_MAIN_WITH("tensors in JSON", start, stop, nested_arrays_are_read_and_written_as_they_were,
                    other_ways_to_write_the_same_are_read,
                    what_is_no_tensor_is_refused_with_its_place,
                    each_f32_comes_back_and_the_c_library_reads_the_same,
                    doubles_are_read_as_the_c_library_reads_them,
                    jansson_reads_what_is_written_and_skips_as_far,
                    the_shape_that_a_request_says_is_checked,
                    a_picture_of_numbers_takes_milliseconds)
