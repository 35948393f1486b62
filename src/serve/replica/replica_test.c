/* A whole replica without a server, driven over HTTP in every protocol. */
#include "serve/replica/test_replica.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/rng.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define NET_ELEMS 144 /* 3 x 8 x 6 */

static struct test_replica t;
static float pixels[4 * NET_ELEMS];

static void start(void)
{
    struct weir_rng rng;
    test_replica_files(&t);
    test_replica_start(&t);
    weir_rng_init(&rng, 5, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(pixels); i++) {
        pixels[i] = (float)weir_rng_normal(&rng);
    }
}

static void stop(void)
{
    test_replica_stop(&t);
}

static const json_t *at(const char *member)
{
    return json_object_get(t.json, member);
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL ? text : "";
}

/* Numbers of nested arrays, one after the other. */
static size_t flatten(const json_t *value, double *out, size_t n)
{
    if (json_is_number(value)) {
        out[n] = json_number_value(value);
        return n + 1;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        n = flatten(json_array_get(value, i), out, n);
    }
    return n;
}

static void expect_numbers(const json_t *value, const struct weir_tensor *wanted)
{
    double numbers[64];
    ck_assert_uint_eq(flatten(value, numbers, 0), wanted->n_elems);
    for (size_t i = 0; i < wanted->n_elems; i++) {
        double expected = (double)((const float *)wanted->data)[i];
        ck_assert_double_le(fabs(numbers[i] - expected), 1e-5 * (1 + fabs(expected)));
    }
}

static struct weir_tensor *net_answer(int64_t n_rows)
{
    return test_replica_oracle(t.net_path, 4, (int64_t[]){n_rows, 3, 8, 6}, pixels);
}

/* n values as JSON, flat. */
static void put_values(struct weir_buf *out, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_printf(out, i > 0 ? ",%.9g" : "%.9g", (double)values[i]);
    }
}

START_TEST(the_open_inference_protocol_describes_and_answers)
{
    struct weir_buf body;
    ck_assert_int_eq(test_replica_get(&t, "/v2"), 200);
    ck_assert_str_eq(text_of(t.json, "name"), "weir");
    ck_assert_int_eq(test_replica_get(&t, "/v2/health/live"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/v2/health/ready"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/net/ready"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/net/versions/3/ready"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/net"), 200);
    const json_t *input = json_array_get(at("inputs"), 0);
    ck_assert_str_eq(text_of(input, "name"), "input");
    ck_assert_str_eq(text_of(input, "datatype"), "FP32");
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(input, "shape"), 0)), -1);
    ck_assert_str_eq(json_string_value(json_array_get(at("versions"), 0)), "3");

    weir_buf_init(&body, 1 << 20);
    (void)weir_buf_puts(&body, "{\"id\":\"a\\\"1\",\"inputs\":[{\"data\":[");
    put_values(&body, pixels, 2 * NET_ELEMS);
    (void)weir_buf_puts(&body, "],\"name\":\"input\",\"shape\":[2,3,8,6],\"datatype\":\"FP32\"}]}");
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/net/infer", body.data), 200);
    weir_buf_fini(&body);
    ck_assert_str_eq(text_of(t.json, "model_version"), "3");
    ck_assert_str_eq(text_of(t.json, "id"), "a\"1");
    char version[8], times[256];
    ck_assert(weir_http_reply_header(&t.reply, "Weir-Times", times, sizeof times));
    ck_assert_ptr_eq(strstr(times, "read;dur="), times);
    ck_assert_ptr_nonnull(strstr(times, ", compute;dur="));
    ck_assert(weir_http_reply_header(&t.reply, "Weir-Model-Version", version, sizeof version));
    ck_assert_str_eq(version, "3");
    char output[16];
    ck_assert(weir_http_reply_header(&t.reply, "Weir-Output", output, sizeof output));
    struct weir_tensor *wanted = net_answer(2);
    expect_numbers(json_object_get(json_array_get(at("outputs"), 0), "data"), wanted);
    weir_tensor_release(wanted);
}

END_TEST

START_TEST(binary_tensors_go_both_ways)
{
    static const char json[] =
        "{\"inputs\":[{\"name\":\"input\",\"shape\":[1,3,8,6],\"datatype\":\"FP32\","
        "\"parameters\":{\"binary_data_size\":576}}],"
        "\"outputs\":[{\"name\":\"output\",\"parameters\":{\"binary_data\":true}}]}";
    char body[sizeof json + 576], header[64], json_len[16];
    size_t len = sizeof json - 1;
    memcpy(body, json, len);
    memcpy(body + len, pixels, 576);
    (void)snprintf(header, sizeof header, "Inference-Header-Content-Length: %zu", len);
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/net/versions/3/infer",
                                       "application/octet-stream", header, body, len + 576),
                     200);
    ck_assert(weir_http_reply_header(&t.reply, "Inference-Header-Content-Length", json_len,
                                     sizeof json_len));
    size_t at_raw = (size_t)strtoul(json_len, NULL, 10);
    ck_assert_uint_eq(t.reply.body.len, at_raw + 3 * sizeof(float));
    struct weir_tensor *wanted = net_answer(1);
    for (size_t i = 0; i < 3; i++) {
        float value;
        memcpy(&value, t.reply.body.data + at_raw + i * sizeof value, sizeof value);
        ck_assert_float_le(fabsf(value - ((const float *)wanted->data)[i]), 1e-5f);
    }
    weir_tensor_release(wanted);
    /* Bytes that are too few, and too many. */
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/net/infer", NULL, header, body, len + 575),
                     400);
    (void)snprintf(header, sizeof header, "Inference-Header-Content-Length: %zu", len + 9999);
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/net/infer", NULL, header, body, len + 576),
                     400);
}

END_TEST

START_TEST(classes_are_named_by_the_models_labels)
{
    struct weir_buf body;
    weir_buf_init(&body, 1 << 20);
    (void)weir_buf_puts(&body, "{\"inputs\":[{\"name\":\"input\",\"shape\":[1,3,8,6],\"datatype\":"
                               "\"FP32\",\"data\":[");
    put_values(&body, pixels, NET_ELEMS);
    (void)weir_buf_puts(&body, "]}],\"outputs\":[{\"name\":\"output\",\"parameters\":{"
                               "\"classification\":2}}]}");
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/net/infer", body.data), 200);
    weir_buf_fini(&body);
    const json_t *output = json_array_get(at("outputs"), 0);
    ck_assert_str_eq(text_of(output, "datatype"), "BYTES");
    struct weir_tensor *wanted = net_answer(1);
    const float *values = wanted->data;
    size_t best = values[1] > values[0] ? 1 : 0;
    best = values[2] > values[best] ? 2 : best;
    char expected[64];
    (void)snprintf(expected, sizeof expected, "%f:%zu:%s", (double)values[best], best,
                   test_labels[best]);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(output, "data"), 0)),
                     expected);
    weir_tensor_release(wanted);
}

END_TEST

/* A picture of the net's size is stretched to itself: the input is its values, by mean and std. */
START_TEST(a_picture_is_answered_with_labels)
{
    static const float mean[] = {0.5f, 0.25f, 0.125f}, std[] = {0.25f, 0.5f, 0.75f};
    unsigned char picture[11 + NET_ELEMS];
    float values[NET_ELEMS];
    char body[2048], text[512];
    memcpy(picture, "P6 6 8 255\n", 11);
    for (int i = 0; i < NET_ELEMS; i++) {
        picture[11 + i] = (unsigned char)(i * 89 % 256);
        values[i % 3 * 48 + i / 3] = ((float)picture[11 + i] / 255 - mean[i % 3]) / std[i % 3];
    }
    struct weir_tensor *wanted =
        test_replica_oracle(t.net_path, 4, (int64_t[]){1, 3, 8, 6}, values);
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/net/infer?top=2", "image/x-portable-pixmap",
                                       NULL, picture, sizeof picture),
                     200);
    expect_numbers(json_object_get(json_array_get(at("outputs"), 0), "data"), wanted);
    ck_assert_uint_eq(json_array_size(at("labels")), 2);
    double sum = 0, best = 0;
    for (size_t i = 0; i < 3; i++) {
        double e = exp((double)((const float *)wanted->data)[i]);
        sum += e;
        best = e > best ? e : best;
    }
    const json_t *first = json_array_get(at("labels"), 0);
    ck_assert_double_le(fabs(json_number_value(json_object_get(first, "probability")) - best / sum),
                        1e-4);

    /* The same inside of JSON. */
    weir_base64_encode(picture, sizeof picture, text);
    (void)snprintf(body, sizeof body, "{\"instances\":[{\"b64\":\"%s\"},{\"b64\":\"%s\"}]}", text,
                   text);
    ck_assert_int_eq(test_replica_post(&t, "/v1/models/net:predict", body), 200);
    ck_assert_uint_eq(json_array_size(at("predictions")), 2);
    expect_numbers(json_array_get(at("predictions"), 1), wanted);
    weir_tensor_release(wanted);

    /* Damaged, of no kind, of sides that would take gigabytes, and for a model that takes none. */
    ck_assert_int_eq(
        test_replica_call(&t, "/v2/models/net/infer", "image/jpeg", NULL, "\xff\xd8\xff\xe0", 4),
        422);
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/net/infer", "image/png", NULL, "hello", 5),
                     400);
    int status = test_replica_call(&t, "/v2/models/net/infer", "image/png", NULL,
                                   "P6 65000 65000 255\n", 19);
    ck_assert_msg(status == 413 || status == 422, "%d %s", status, t.reply.body.data);
    ck_assert_int_eq(
        test_replica_call(&t, "/v2/models/relu/infer", "image/png", NULL, picture, sizeof picture),
        400);
}

END_TEST

START_TEST(tritons_questions_are_answered)
{
    static const char infer[] =
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[2,4],\"datatype\":\"FP32\","
        "\"data\":[[1,-2,3,-4],[5,6,-7,8]]}]}";
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/relu/infer", infer), 200);
    ck_assert_int_eq(test_replica_post(&t, "/v2/repository/index", "{}"), 200);
    ck_assert_uint_eq(json_array_size(t.json), 2);
    ck_assert_str_eq(text_of(json_array_get(t.json, 0), "state"), "READY");
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/net/config"), 200);
    ck_assert_int_eq(json_integer_value(at("max_batch_size")), 8);
    ck_assert_uint_eq(json_array_size(json_object_get(json_array_get(at("input"), 0), "dims")), 3);
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/relu/versions/1/stats"), 200);
    const json_t *stats = json_array_get(at("model_stats"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(stats, "inference_count")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(stats, "execution_count")), 1);
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/stats"), 200);
    ck_assert_uint_eq(json_array_size(at("model_stats")), 2);

    ck_assert_int_eq(test_replica_post(&t, "/v2/repository/models/relu/unload", "{}"), 200);
    ck_assert_int_ge(test_replica_post(&t, "/v2/models/relu/infer", infer), 400);
    ck_assert_int_eq(test_replica_post(&t, "/v2/repository/models/relu/load", "{}"), 200);
    ck_assert_int_eq(test_replica_post(&t, "/v2/models/relu/infer", infer), 200);
    ck_assert_int_eq(test_replica_post(&t, "/v2/repository/models/none/load", "{}"), 404);
    ck_assert_int_eq(test_replica_get(&t, "/v2/systemsharedmemory/status"), 200);
    ck_assert_int_eq(test_replica_post(&t, "/v2/systemsharedmemory/region/a/register", "{}"), 501);
}

END_TEST

START_TEST(tensorflow_servings_rows_and_columns_are_answered)
{
    struct weir_tensor *wanted = test_replica_oracle(t.relu_path, 2, (int64_t[]){2, 4},
                                                     (float[]){1, -2, 3, -4, 5, 6, -7, 8});
    ck_assert_int_eq(test_replica_get(&t, "/v1/models/relu"), 200);
    const json_t *status = json_array_get(at("model_version_status"), 0);
    ck_assert_str_eq(text_of(status, "state"), "AVAILABLE");
    ck_assert_int_eq(test_replica_get(&t, "/v1/models/relu/versions/1/metadata"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/v1/models"), 200);
    ck_assert_uint_eq(json_array_size(at("models")), 2);
    ck_assert_int_eq(test_replica_post(&t, "/v1/models/relu:predict",
                                       "{\"instances\":[[1,-2,3,-4],[5,6,-7,8]]}"),
                     200);
    ck_assert_uint_eq(json_array_size(at("predictions")), 2);
    expect_numbers(at("predictions"), wanted);
    ck_assert_int_eq(test_replica_post(&t, "/v1/models/relu/versions/1:predict",
                                       "{\"signature_name\":\"serving_default\",\"instances\":["
                                       "{\"x\":[1,-2,3,-4]},{\"x\":[5,6,-7,8]}]}"),
                     200);
    expect_numbers(at("predictions"), wanted);
    ck_assert_int_eq(test_replica_post(&t, "/v1/models/relu:predict",
                                       "{\"inputs\":{\"x\":[[1,-2,3,-4],[5,6,-7,8]]}}"),
                     200);
    expect_numbers(at("outputs"), wanted);
    weir_tensor_release(wanted);
    ck_assert_int_eq(test_replica_post(&t, "/v1/models/relu:classify", "{\"examples\":[]}"), 501);
    ck_assert_int_eq(test_replica_post(&t, "/v1/models/nobody:predict", "{\"instances\":[]}"), 404);
}

END_TEST

START_TEST(mlflows_tables_are_answered)
{
    static const char *const bodies[] = {
        "{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"c\",\"d\"],"
        "\"data\":[[1,-2,3,-4],[5,6,-7,8]]}}",
        "{\"dataframe_split\":{\"data\":[[1,-2,3,-4],[5,6,-7,8]],\"index\":[0,1],"
        "\"columns\":[0,1,2,3]}}",
        "{\"dataframe_records\":[{\"a\":1,\"b\":-2,\"c\":3,\"d\":-4},"
        "{\"a\":5,\"b\":6,\"c\":-7,\"d\":8}]}",
        "{\"dataframe_records\":[{\"x\":[1,-2,3,-4]},{\"x\":[5,6,-7,8]}]}",
        "{\"instances\":[[1,-2,3,-4],[5,6,-7,8]]}",
        "{\"inputs\":{\"x\":[[1,-2,3,-4],[5,6,-7,8]]}}",
    };
    struct weir_tensor *wanted = test_replica_oracle(t.relu_path, 2, (int64_t[]){2, 4},
                                                     (float[]){1, -2, 3, -4, 5, 6, -7, 8});
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bodies); i++) {
        int status = test_replica_post(&t, "/models/relu/invocations", bodies[i]);
        ck_assert_msg(status == 200, "%s: %s", bodies[i], t.reply.body.data);
        expect_numbers(at("predictions"), wanted);
    }
    weir_tensor_release(wanted);
    ck_assert_int_eq(test_replica_call(&t, "/invocations", "application/json",
                                       "Weir-Deployment: relu", bodies[4], strlen(bodies[4])),
                     200);
    ck_assert_int_eq(test_replica_post(&t, "/invocations", bodies[4]), 400);
    ck_assert_str_eq(text_of(t.json, "error_code"), "BAD_REQUEST");
    ck_assert_int_eq(test_replica_get(&t, "/ping"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/health"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/models/relu/ping"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/models/nobody/ping"), 404);
    ck_assert_int_eq(test_replica_get(&t, "/version"), 200);
}

END_TEST

START_TEST(wrong_requests_get_a_sentence_and_the_replica_stays)
{
    static const struct {
        const char *path, *body, *sentence;
        int status;
    } cases[] = {
        {"/v2/models/net/infer", "", "no body", 400},
        {"/v2/models/net/infer", "{", "JSON", 400},
        {"/v2/models/net/infer", "[]", "an object", 400},
        {"/v2/models/net/infer", "{}", "'input' is missing", 400},
        {"/v2/models/net/infer",
         "{\"inputs\":[{\"name\":\"y\",\"shape\":[1],\"datatype\":\"FP32\","
         "\"data\":[1]}]}",
         "no input 'y'", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":"
         "\"INT64\",\"data\":[1,2,3,4]}]}",
         "x", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":"
         "\"FP33\",\"data\":[1,2,3,4]}]}",
         "datatype", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,5],\"datatype\":"
         "\"FP32\",\"data\":[1,2,3,4,5]}]}",
         "x", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":"
         "\"FP32\",\"data\":[1,2,3]}]}",
         "4 elements, its data 3", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[4611686018427387904,4],"
         "\"datatype\":\"FP32\",\"data\":[1]}]}",
         "", 413},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1099511627776,4],"
         "\"datatype\":\"FP32\",\"data\":[1]}]}",
         "", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[0,4],\"datatype\":"
         "\"FP32\",\"data\":[]}]}",
         "no rows", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":"
         "\"FP32\",\"data\":[\"a\",2,3,4]}]}",
         "a number", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":"
         "\"FP32\",\"data\":[1,2,3,4]}],\"outputs\":[{\"name\":\"z\"}]}",
         "no output 'z'", 400},
        {"/v2/models/relu/infer",
         "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":"
         "\"FP32\",\"data\":[1,2,3,4]},{\"name\":\"x\",\"shape\":[1,4],"
         "\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}",
         "twice", 400},
        {"/v2/models/relu/infer",
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "object",
         400},
        {"/v2/models/nobody/infer", "{}", "no model nobody", 404},
        {"/v2/models/relu/versions/9/infer", "{}", "no version 9", 404},
        {"/v2/models/relu/versions/x/infer", "{}", "a number", 400},
        {"/v2/nothing", "{}", "no such address", 404},
        {"/v2/models/relu", "{}", "use GET", 400},
        {"/v1/models/relu:predict", "{}", "instances", 400},
        {"/v1/models/relu:predict", "{\"instances\":[[1,2],[3]]}", "equal length", 400},
        {"/v1/models/relu:predict", "{\"instances\":[{\"z\":1}]}", "no input 'z'", 400},
        {"/v1/models/relu:predict", "{\"signature_name\":\"other\",\"instances\":[]}",
         "serving_default", 400},
        {"/models/relu/invocations", "{\"dataframe_split\":{\"columns\":[\"a\"]}}", "data", 400},
        {"/models/relu/invocations", "{\"dataframe_records\":[{\"a\":1},{\"b\":2}]}",
         "the same members", 400},
        {"/models/relu/invocations", "{}", "none of dataframe_split", 400},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        int status = test_replica_post(&t, cases[i].path, cases[i].body);
        ck_assert_msg(status == cases[i].status &&
                          strstr(t.reply.body.data, cases[i].sentence) != NULL,
                      "%s %s: %d %s", cases[i].path, cases[i].body, status, t.reply.body.data);
        ck_assert_msg(t.json != NULL, "%s", t.reply.body.data);
    }
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/relu/infer", "application/json",
                                       "Content-Encoding: br", "x", 1),
                     415);
    ck_assert_int_eq(test_replica_call(&t, "/v2/models/relu/infer", "application/json",
                                       "Content-Encoding: gzip", "x", 1),
                     400);
    ck_assert_int_eq(test_replica_get(&t, "/v2/health/ready"), 200);
}

END_TEST

START_TEST(metrics_have_tritons_names)
{
    ck_assert_int_eq(
        test_replica_post(&t, "/v1/models/relu:predict", "{\"instances\":[[1,2,3,4]]}"), 200);
    ck_assert_int_eq(test_replica_get(&t, "/metrics"), 200);
    ck_assert_ptr_nonnull(strstr(
        t.reply.body.data, "\nnv_inference_request_success{model=\"relu\",version=\"1\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(t.reply.body.data, "\nnv_inference_count{model=\"net\""));
    ck_assert_ptr_nonnull(strstr(t.reply.body.data, "weir_serve_request_seconds_bucket{"));
}

END_TEST

/* ---- under load ------------------------------------------------------------------------------ */

#define N_CLIENTS 8

static atomic_bool is_over;
static atomic_int n_right, n_wrong;

static char relu_url[128];

/* Each client has numbers of its own, and looks whether the answer is of these. */
static void *ask_until_over(void *context)
{
    struct weir_http_client *client;
    struct weir_error err;
    char body[128], expected[64];
    int number = (int)(intptr_t)context;
    (void)snprintf(body, sizeof body, "{\"instances\":[[%d,-1,%d,0]]}", number, number + 1);
    (void)snprintf(expected, sizeof expected, "{\"predictions\":[[%d.0,0.0,%d.0,0.0]]}", number,
                   number + 1);
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &client, &err),
                     WEIR_OK);
    while (!is_over) {
        struct weir_http_reply reply;
        const struct weir_http_call call = {.method = "POST",
                                            .url = relu_url,
                                            .content_type = "application/json",
                                            .body = body,
                                            .body_len = strlen(body),
                                            .timeout_ms = 30000};
        if (weir_http_client_call(client, &call, &reply, &err) != WEIR_OK) {
            n_wrong++;
            continue;
        }
        if (reply.http_status == 200 && strcmp(reply.body.data, expected) == 0) {
            n_right++;
        } else {
            n_wrong++;
        }
        weir_http_reply_fini(&reply);
    }
    weir_http_client_close(client);
    return NULL;
}

/* A thread may begin when the replica is gone already: it is told the address before. */
static void start_asking(pthread_t threads[N_CLIENTS])
{
    is_over = false;
    n_right = n_wrong = 0;
    (void)snprintf(relu_url, sizeof relu_url, "http://127.0.0.1:%d/v1/models/relu:predict",
                   serve_replica_port(t.replica));
    for (intptr_t i = 0; i < N_CLIENTS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_until_over, (void *)(i * 10)), 0);
    }
}

START_TEST(no_request_fails_while_the_version_is_loaded_anew)
{
    pthread_t threads[N_CLIENTS];
    start_asking(threads);
    for (int i = 0; i < WEIR_TEST_TIMES(100, 10); i++) {
        ck_assert_int_eq(test_replica_post(&t, "/v2/repository/models/relu/load", "{}"), 200);
    }
    is_over = true;
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d answers while the version was loaded 100 times\n", (int)n_right);
    ck_assert_int_eq(n_wrong, 0);
    ck_assert_int_gt(n_right, 0);
}

END_TEST

START_TEST(a_replica_that_stops_answers_what_it_has_begun)
{
    pthread_t threads[N_CLIENTS];
    start_asking(threads);
    while (n_right < 50) {
        (void)usleep(1000); /* only to leave the processor to the server */
    }
    is_over = true; /* each has one request left at most */
    serve_replica_stop(t.replica, 5000);
    t.replica = NULL;
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_le(n_wrong, N_CLIENTS); /* those that had not begun */
}

END_TEST

WEIR_TEST_MAIN_WITH("replica", start, stop, the_open_inference_protocol_describes_and_answers,
                    binary_tensors_go_both_ways, classes_are_named_by_the_models_labels,
                    a_picture_is_answered_with_labels, tritons_questions_are_answered,
                    tensorflow_servings_rows_and_columns_are_answered, mlflows_tables_are_answered,
                    wrong_requests_get_a_sentence_and_the_replica_stays, metrics_have_tritons_names,
                    no_request_fails_while_the_version_is_loaded_anew,
                    a_replica_that_stops_answers_what_it_has_begun)
