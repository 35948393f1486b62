/* Protocols as pure functions: bytes to tensors and back, for models of any ports. */
#include "serve/protocol/oip_tensor.h"
#include "serve/protocol/protocol_private.h"
#include "serve/protocol/tensor_json.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_signature signature;
static struct infer infer;
static struct weir_error err;
static const struct protocol *protocol;
static const struct protocol_route *route;
static struct protocol_answer answer;

#define MANY                                                                                       \
    "{\"format\":\"onnx\",\"executor\":\"onnx\",\"why\":\"\",\"inputs\":["                         \
    "{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[-1,2]},"                                     \
    "{\"name\":\"b\",\"datatype\":\"INT64\",\"shape\":[-1,1]},"                                    \
    "{\"name\":\"s\",\"datatype\":\"BYTES\",\"shape\":[-1]}],\"outputs\":["                        \
    "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]},"                                     \
    "{\"name\":\"n\",\"datatype\":\"INT64\",\"shape\":[-1]}],"                                     \
    "\"is_batched\":true,\"picture\":null,\"output_kind\":\"tensor\",\"labels\":null}"

static void start(void)
{
    weir_arena_init(&arena, 0);
    protocol_answer_init(&answer);
    memset(&infer, 0, sizeof infer);
}

static void stop(void)
{
    infer_fini(&infer);
    protocol_answer_fini(&answer);
    weir_arena_fini(&arena);
}

static void use_signature(const char *text)
{
    ck_assert_msg(weir_signature_parse(text, strlen(text), "test", &arena, &signature, &err) ==
                      WEIR_OK,
                  "%s", err.message);
}

static weir_status find_route(const char *method, const char *path,
                              struct protocol_request *request)
{
    static char *segments[16];
    size_t n = 0;
    char *copy = weir_arena_strdup(&arena, path), *rest = copy, *part;
    while ((part = strsep(&rest, "/")) != NULL) {
        if (part[0] != '\0') {
            segments[n++] = part;
        }
    }
    return protocol_find(method, segments, n, request, &protocol, &route, &err);
}

/* Reads a request at an address; bytes behind the JSON may follow. */
static weir_status read_bytes(const char *path, const void *body, size_t len, int64_t json_bytes)
{
    struct protocol_request request = {
        .json_bytes = json_bytes, .body = body, .body_len = len, .arena = &arena};
    ck_assert_msg(find_route("POST", path, &request) == WEIR_OK, "%s: %s", path, err.message);
    infer_fini(&infer);
    infer = (struct infer){.model = "m", .version = 2, .signature = &signature, .arena = &arena};
    return route->read(&request, &infer, &err);
}

static weir_status read_json(const char *path, const char *body)
{
    return read_bytes(path, body, strlen(body), -1);
}

static const char *nested(const struct weir_tensor *tensor)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    tensor_json_put_nested(&buf, tensor);
    const char *text = weir_arena_memdup(&arena, buf.data, buf.len);
    weir_buf_fini(&buf);
    return text;
}

START_TEST(every_datatype_is_read_from_json_and_from_bytes)
{
    static const struct {
        const char *datatype, *json, *written;
        const void *bytes;
        size_t n_bytes;
    } cases[] = {
        {"BOOL", "[true,false]", "[true,false]", "\1\0", 2},
        {"UINT8", "[1,255]", "[1,255]", "\x01\xff", 2},
        {"UINT16", "[1,65535]", "[1,65535]", "\x01\0\xff\xff", 4},
        {"UINT32", "[1,4294967295]", "[1,4294967295]", "\x01\0\0\0\xff\xff\xff\xff", 8},
        {"UINT64", "[1,18446744073709551615]", "[1,18446744073709551615]",
         "\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16},
        {"INT8", "[1,-1]", "[1,-1]", "\x01\xff", 2},
        {"INT16", "[1,-1]", "[1,-1]", "\x01\0\xff\xff", 4},
        {"INT32", "[1,-1]", "[1,-1]", "\x01\0\0\0\xff\xff\xff\xff", 8},
        {"INT64", "[1,-1]", "[1,-1]", "\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16},
        {"FP16", "[1,-2]", "[1.0,-2.0]", "\x00\x3c\x00\xc0", 4},
        {"BF16", "[1,-2]", "[1.0,-2.0]", "\x80\x3f\x00\xc0", 4},
        {"FP32", "[1,-2]", "[1.0,-2.0]", "\0\0\x80\x3f\0\0\0\xc0", 8},
        {"FP64", "[1,-2]", "[1.0,-2.0]", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0", 16},
        {"BYTES", "[\"ab\",\"\"]", "[\"ab\",\"\"]", "\2\0\0\0ab\0\0\0\0", 10},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        char text[512], body[512];
        (void)snprintf(text, sizeof text,
                       "{\"format\":\"onnx\",\"executor\":\"onnx\",\"why\":\"\",\"inputs\":["
                       "{\"name\":\"x\",\"datatype\":\"%s\",\"shape\":[2]}],\"outputs\":["
                       "{\"name\":\"y\",\"datatype\":\"%s\",\"shape\":[2]}],\"is_batched\":false,"
                       "\"picture\":null,\"output_kind\":\"tensor\",\"labels\":null}",
                       cases[i].datatype, cases[i].datatype);
        use_signature(text);
        (void)snprintf(
            body, sizeof body,
            "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"%s\",\"data\":%s}]}",
            cases[i].datatype, cases[i].json);
        ck_assert_msg(read_json("/v2/models/m/infer", body) == WEIR_OK, "%s", err.message);
        ck_assert_str_eq(nested(infer.in[0]), cases[i].written);

        int len = snprintf(body, sizeof body,
                           "{\"inputs\":[{\"parameters\":{\"binary_data_size\":%zu},\"name\":\"x\","
                           "\"shape\":[2],\"datatype\":\"%s\"}]}",
                           cases[i].n_bytes, cases[i].datatype);
        memcpy(body + len, cases[i].bytes, cases[i].n_bytes);
        ck_assert_msg(read_bytes("/v2/models/m/infer", body, (size_t)len + cases[i].n_bytes, len) ==
                          WEIR_OK,
                      "%s: %s", cases[i].datatype, err.message);
        ck_assert_str_eq(nested(infer.in[0]), cases[i].written);

        struct weir_buf raw;
        weir_buf_init(&raw, 1024);
        oip_raw_write(&raw, infer.in[0]);
        ck_assert_uint_eq(raw.len, cases[i].n_bytes);
        ck_assert_uint_eq(oip_raw_bytes(infer.in[0]), raw.len);
        ck_assert_int_eq(memcmp(raw.data, cases[i].bytes, raw.len), 0);
        weir_buf_fini(&raw);
    }
}

END_TEST

START_TEST(several_inputs_come_in_each_form)
{
    static const struct {
        const char *path, *body;
    } cases[] = {
        {"/v2/models/m/infer",
         "{\"inputs\":[{\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":[\"p\",\"q\"]}"
         ","
         "{\"name\":\"b\",\"shape\":[2,1],\"datatype\":\"INT64\",\"data\":[[5],[6]]},"
         "{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}"},
        {"/v1/models/m:predict", "{\"instances\":[{\"a\":[1,2],\"b\":[5],\"s\":\"p\"},"
                                 "{\"s\":{\"b64\":\"cQ==\"},\"b\":[6],\"a\":[3,4]}]}"},
        {"/v1/models/m/versions/2:predict",
         "{\"inputs\":{\"a\":[[1,2],[3,4]],\"b\":[[5],[6]],\"s\":[\"p\",\"q\"]}}"},
        {"/models/m/invocations", "{\"dataframe_split\":{\"columns\":[\"b\",\"s\",\"a\"],\"data\":["
                                  "[5,\"p\",[1,2]],[6,\"q\",[3,4]]]}}"},
        {"/models/m/invocations", "{\"dataframe_records\":[{\"a\":[1,2],\"b\":5,\"s\":\"p\"},"
                                  "{\"a\":[3,4],\"b\":6,\"s\":\"q\"}]}"},
        {"/models/m/versions/2/invocations",
         "{\"inputs\":{\"a\":[[1,2],[3,4]],\"b\":[5,6],\"s\":[\"p\",\"q\"]},\"params\":{}}"},
    };

    use_signature(MANY);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_msg(read_json(cases[i].path, cases[i].body) == WEIR_OK, "%s: %s", cases[i].body,
                      err.message);
        ck_assert_int_eq(infer.n_rows, 2);
        ck_assert_str_eq(nested(infer.in[0]), "[[1.0,2.0],[3.0,4.0]]");
        ck_assert_str_eq(nested(infer.in[1]), "[[5],[6]]");
        ck_assert_str_eq(nested(infer.in[2]), "[\"p\",\"q\"]");
    }
}

END_TEST

START_TEST(inputs_that_do_not_fit_together_are_refused)
{
    static const struct {
        const char *path, *body, *sentence;
    } cases[] = {
        {"/v1/models/m:predict", "{\"instances\":[{\"a\":[1,2],\"b\":[5]}]}", "'s' is missing"},
        {"/v1/models/m:predict",
         "{\"instances\":[{\"a\":[1,2],\"b\":[5],\"s\":\"p\"},{\"a\":[1,2],\"b\":[5]}]}",
         "batch of"},
        {"/v1/models/m:predict", "{\"instances\":[[1,2]]}", "each of the model's inputs"},
        {"/v1/models/m:predict", "{\"instances\":[],\"inputs\":{}}", "not both"},
        {"/v1/models/m:predict", "{\"inputs\":{\"a\":[[1,2]],\"a\":[[1,2]]}}", "each input once"},
        {"/models/m/invocations", "{\"dataframe_split\":{\"columns\":[\"a\",\"z\"],\"data\":[]}}",
         "no input"},
        {"/models/m/invocations",
         "{\"dataframe_split\":{\"columns\":[\"a\",\"b\",\"s\"],\"data\":[[[1,2],5]]}}",
         "as many values"},
        {"/models/m/invocations", "{\"inputs\":{},\"instances\":[]}", "one of"},
        {"/v2/models/m/infer",
         "{\"inputs\":[{\"name\":\"s\",\"shape\":[1],\"datatype\":\"BYTES\",\"parameters\":{"
         "\"binary_data_size\":4}}]}",
         "0 bytes are left"},
        {"/v2/models/m/infer",
         "{\"inputs\":[{\"name\":\"a\",\"shape\":[1,2],\"datatype\":\"FP32\"}]}",
         "no \\\"data\\\""},
        {"/v2/models/m/infer", "{\"inputs\":[{\"shape\":[1,2],\"datatype\":\"FP32\"}]}",
         "no \"name\""},
        {"/v2/models/m/infer",
         "{\"inputs\":[{\"name\":\"a\",\"shape\":[-1,2],\"datatype\":\"FP32\"}]}", "from 0 on"},
        {"/v2/models/m/infer", "{\"outputs\":[{\"name\":\"y\"},{\"name\":\"y\"}]}", "twice"},
        {"/v2/models/m/infer",
         "{\"inputs\":[{\"name\":\"a\",\"parameters\":{\"shared_memory_region\":\"r\"}}]}",
         "no shared memory"},
    };

    use_signature(MANY);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        const char *sentence =
            strcmp(cases[i].sentence, "no \\\"data\\\"") == 0 ? "no \"data\"" : cases[i].sentence;
        ck_assert_int_ne(read_json(cases[i].path, cases[i].body), WEIR_OK);
        ck_assert_msg(strstr(err.message, sentence) != NULL, "%s: %s", cases[i].body, err.message);
    }
}

END_TEST

/* y = [[1, 0.5], [-1, 0]], n = [7, 8] */
static void make_outputs(struct weir_tensor *out[2])
{
    static const float y[] = {1, 0.5f, -1, 0};
    static const int64_t n[] = {7, 8};
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, (int64_t[]){2, 2}, &out[0], NULL),
                     WEIR_OK);
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_INT64, 1, (int64_t[]){2}, &out[1], NULL),
                     WEIR_OK);
    memcpy(out[0]->data, y, sizeof y);
    memcpy(out[1]->data, n, sizeof n);
}

START_TEST(several_outputs_are_written_in_each_form)
{
#define ROWS "\"a\":[[1,2],[3,4]],\"b\":[[5],[6]],\"s\":[\"p\",\"q\"]"

    static const struct {
        const char *path, *body, *written;
    } cases[] = {
        {"/v1/models/m:predict",
         "{\"instances\":[{\"a\":[1,2],\"b\":[5],\"s\":\"p\"},{\"a\":[1,2],\"b\":[5],\"s\":\"p\"}]"
         "}",
         "{\"predictions\":[{\"y\":[1.0,0.5],\"n\":7},{\"y\":[-1.0,0.0],\"n\":8}]}"},
        {"/v1/models/m:predict", "{\"inputs\":{" ROWS "}}",
         "{\"outputs\":{\"y\":[[1.0,0.5],[-1.0,0.0]],\"n\":[7,8]}}"},
        {"/models/m/invocations", "{\"inputs\":{" ROWS "}}",
         "{\"predictions\":{\"y\":[[1.0,0.5],[-1.0,0.0]],\"n\":[7,8]}}"},
        {"/v2/models/m/infer",
         "{\"id\":\"1\",\"inputs\":[{\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":["
         "\"p\",\"q\"]},{\"name\":\"b\",\"shape\":[2,1],\"datatype\":\"INT64\",\"data\":[[5],[6]]},"
         "{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}],\"outputs\":["
         "{\"name\":\"n\"},{\"name\":\"y\",\"parameters\":{\"classification\":1}}]}",
         "{\"model_name\":\"m\",\"model_version\":\"2\",\"id\":\"1\",\"outputs\":[{\"name\":\"n\","
         "\"datatype\":\"INT64\",\"shape\":[2],\"data\":[7,8]},{\"name\":\"y\",\"datatype\":"
         "\"BYTES\","
         "\"shape\":[2,1],\"data\":[\"1.000000:0\",\"0.000000:1\"]}]}"},
    };

#undef ROWS
    struct weir_tensor *out[2];
    use_signature(MANY);
    make_outputs(out);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_msg(read_json(cases[i].path, cases[i].body) == WEIR_OK, "%s", err.message);
        infer.out = out;
        protocol_answer_fini(&answer);
        protocol_answer_init(&answer);
        route->write(&infer, &answer);
        ck_assert_str_eq(answer.body.data, cases[i].written);
        ck_assert_int_eq(answer.json_bytes, -1);
    }
    weir_tensor_release(out[0]);
    weir_tensor_release(out[1]);
}

END_TEST

START_TEST(addresses_find_their_protocol)
{
    static const struct {
        const char *method, *path, *protocol, *model;
        int64_t version;
        weir_status status;
    } cases[] = {
        {"GET", "/v2", "oip", NULL, 0, WEIR_OK},
        {"GET", "/v2/models/stats", "triton", NULL, 0, WEIR_OK},
        {"GET", "/v2/models/a", "oip", "a", 0, WEIR_OK},
        {"GET", "/v2/models/a/versions/12/config", "triton", "a", 12, WEIR_OK},
        {"POST", "/v1/models/a:b:predict", "tensorflow", "a:b", 0, WEIR_OK},
        {"POST", "/v1/models/a/versions/3:predict", "tensorflow", "a", 3, WEIR_OK},
        {"GET", "/v1/models", "kserve", NULL, 0, WEIR_OK},
        {"POST", "/models/a/invocations", "mlflow", "a", 0, WEIR_OK},
        {"POST", "/v2/systemsharedmemory/region/x/register", "triton", NULL, 0, WEIR_OK},
        {"POST", "/v1/models/:predict", "tensorflow", NULL, 0, WEIR_ERR_INVALID},
        {"GET", "/v2/models/a/versions/0", "oip", "a", 0, WEIR_ERR_INVALID},
        {"GET", "/v2/models/a/versions/99999999999999999999", "oip", "a", 0, WEIR_ERR_INVALID},
        {"DELETE", "/v2/models/a", "oip", NULL, 0, WEIR_ERR_INVALID},
        {"GET", "/", "oip", NULL, 0, WEIR_ERR_NOT_FOUND},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct protocol_request request = {.arena = &arena};
        ck_assert_msg(find_route(cases[i].method, cases[i].path, &request) == cases[i].status, "%s",
                      cases[i].path);
        ck_assert_str_eq(protocol->name, cases[i].protocol);
        if (cases[i].model != NULL) {
            ck_assert_str_eq(request.model, cases[i].model);
        }
        ck_assert_int_eq(request.version, cases[i].version);
    }
}

END_TEST

START_TEST(the_table_of_protocols_is_whole)
{
    for (size_t i = 0; i < n_protocols; i++) {
        ck_assert_ptr_nonnull(protocols[i]->doc);
        ck_assert_ptr_nonnull(protocols[i]->error);
        for (size_t k = 0; k < protocols[i]->n_routes; k++) {
            const struct protocol_route *one = &protocols[i]->routes[k];
            ck_assert_int_eq(one->pattern[0], '/');
            ck_assert((one->read == NULL) == (one->write == NULL));
            int n_ways = (one->read != NULL) + (one->answer != NULL) + (one->says != NULL) +
                         (one->lacks != NULL);
            ck_assert_int_eq(n_ways, 1);
        }
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("protocols", start, stop, every_datatype_is_read_from_json_and_from_bytes,
                    several_inputs_come_in_each_form, inputs_that_do_not_fit_together_are_refused,
                    several_outputs_are_written_in_each_form, addresses_find_their_protocol,
                    the_table_of_protocols_is_whole)
