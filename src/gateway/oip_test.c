/* Messages are encoded here by hand, after open_inference_grpc.proto. */
#include "gateway/oip.h"

#include "base/json.h"
#include "base/test_main.h"

#include <string.h>

static struct weir_buf message;
static struct weir_arena arena;

static void set_up(void)
{
    weir_buf_init(&message, 1 << 20);
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_buf_fini(&message);
    weir_arena_fini(&arena);
}

static struct weir_protobuf written(void)
{
    ck_assert_int_eq(message.status, WEIR_OK);
    return (struct weir_protobuf){(uint8_t *)message.data, (uint8_t *)message.data + message.len};
}

/* An input with its name, type and shape; end it with weir_protobuf_end. */
static size_t begin_input(const char *name, const char *datatype, const uint64_t *shape, size_t n)
{
    size_t begun = weir_protobuf_begin(&message, 5);
    weir_protobuf_put_text(&message, 1, name);
    weir_protobuf_put_text(&message, 2, datatype);
    weir_protobuf_put_packed(&message, 3, shape, n);
    return begun;
}

static void put_input(const char *name, const char *datatype)
{
    weir_protobuf_end(&message, begin_input(name, datatype, (const uint64_t[]){1, 2}, 2));
}

static json_t *json_of(const struct oip_infer *infer)
{
    ck_assert_uint_eq(infer->pieces[0].iov_len, infer->json_bytes);
    json_t *json = json_loadb(infer->pieces[0].iov_base, infer->json_bytes, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static void expect_json(const json_t *actual, const char *expected)
{
    json_t *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(actual, JSON_ENCODE_ANY);
    ck_assert_msg(json_equal(actual, wanted), "%s, not %s", text, expected);
    free(text);
    json_decref(wanted);
}

START_TEST(a_request_with_raw_tensors_is_passed_on_without_a_copy)
{
    struct oip_infer infer;
    const float x[] = {1, 2};
    weir_protobuf_put_text(&message, 1, "cats");
    weir_protobuf_put_text(&message, 2, "12");
    weir_protobuf_put_text(&message, 3, "id 1");
    size_t entry = weir_protobuf_begin(&message, 4);
    weir_protobuf_put_text(&message, 1, "priority");
    size_t value = weir_protobuf_begin(&message, 2);
    weir_protobuf_put_varint(&message, 2, 3);
    weir_protobuf_end(&message, value);
    weir_protobuf_end(&message, entry);
    put_input("a", "FP32");
    put_input("b", "INT64");
    size_t output = weir_protobuf_begin(&message, 6);
    weir_protobuf_put_text(&message, 1, "y");
    weir_protobuf_end(&message, output);
    weir_protobuf_put_bytes(&message, 7, x, sizeof x);
    weir_protobuf_put_bytes(&message, 7, "0123456789abcdef", 16);
    ck_assert_int_eq(oip_read_infer(written(), 1000, &arena, &infer, NULL), WEIR_OK);
    ck_assert_str_eq(infer.model.name, "cats");
    ck_assert_int_eq(infer.model.version, 12);
    ck_assert_uint_eq(infer.n_pieces, 3);
    ck_assert_uint_eq(infer.body_bytes, infer.json_bytes + 24);
    const char *begin = message.data, *end = message.data + message.len;
    ck_assert((char *)infer.pieces[1].iov_base > begin && (char *)infer.pieces[2].iov_base < end);
    ck_assert_mem_eq(infer.pieces[1].iov_base, x, sizeof x);
    json_t *json = json_of(&infer);
    expect_json(json,
                "{\"id\":\"id 1\",\"parameters\":{\"priority\":3,\"binary_data_output\":true},"
                "\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1,2],"
                "\"parameters\":{\"binary_data_size\":8}},"
                "{\"name\":\"b\",\"datatype\":\"INT64\",\"shape\":[1,2],"
                "\"parameters\":{\"binary_data_size\":16}}],"
                "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":true}}]}");
    json_decref(json);
}

END_TEST

START_TEST(typed_contents_become_the_same_bytes)
{
    struct oip_infer infer;
    const float x[] = {1.5f, -2};
    const int16_t y[] = {-3, 7};
    size_t input = begin_input("a", "FP32", (const uint64_t[]){2}, 1);
    size_t contents = weir_protobuf_begin(&message, 5);
    weir_protobuf_put_bytes(&message, 6, x, sizeof x); /* packed fixed32 */
    weir_protobuf_end(&message, contents);
    weir_protobuf_end(&message, input);
    input = begin_input("b", "INT16", (const uint64_t[]){2}, 1);
    contents = weir_protobuf_begin(&message, 5);
    weir_protobuf_put_varint(&message, 2, (uint64_t)-3); /* not packed: allowed as well */
    weir_protobuf_put_varint(&message, 2, 7);
    weir_protobuf_end(&message, contents);
    weir_protobuf_end(&message, input);
    input = begin_input("c", "BYTES", (const uint64_t[]){2}, 1);
    contents = weir_protobuf_begin(&message, 5);
    weir_protobuf_put_text(&message, 8, "hi");
    weir_protobuf_put_text(&message, 8, "");
    weir_protobuf_end(&message, contents);
    weir_protobuf_end(&message, input);
    ck_assert_int_eq(oip_read_infer(written(), 1000, &arena, &infer, NULL), WEIR_OK);
    ck_assert_uint_eq(infer.pieces[1].iov_len, sizeof x);
    ck_assert_mem_eq(infer.pieces[1].iov_base, x, sizeof x);
    ck_assert_uint_eq(infer.pieces[2].iov_len, sizeof y);
    ck_assert_mem_eq(infer.pieces[2].iov_base, y, sizeof y);
    ck_assert_uint_eq(infer.pieces[3].iov_len, 10);
    ck_assert_mem_eq(infer.pieces[3].iov_base, "\2\0\0\0hi\0\0\0\0", 10);
}

END_TEST

static weir_status read_again(void)
{
    struct oip_infer infer;
    struct weir_error err = {0};
    weir_status status = oip_read_infer(written(), 64, &arena, &infer, &err);
    ck_assert(status == WEIR_OK || err.message[0] != '\0');
    weir_buf_reset(&message);
    return status;
}

START_TEST(what_makes_no_sense_is_refused)
{
    put_input("a", "FP32"); /* two inputs, one raw */
    put_input("b", "FP32");
    weir_protobuf_put_bytes(&message, 7, "x", 1);
    ck_assert_int_eq(read_again(), WEIR_ERR_INVALID);
    size_t input = begin_input("a", "FP32", NULL, 0); /* both */
    weir_protobuf_put_bytes(&message, 5, "", 0);
    weir_protobuf_end(&message, input);
    weir_protobuf_put_bytes(&message, 7, "x", 1);
    ck_assert_int_eq(read_again(), WEIR_ERR_INVALID);
    put_input("a", "FP16"); /* has no typed contents */
    ck_assert_int_eq(read_again(), WEIR_ERR_INVALID);
    input = begin_input("a", "INT64", NULL, 0); /* of another type */
    weir_protobuf_put_bytes(&message, 5, "\x32\x04\0\0\0\0", 6);
    weir_protobuf_end(&message, input);
    ck_assert_int_eq(read_again(), WEIR_ERR_INVALID);
    weir_protobuf_put_text(&message, 2, "latest");
    ck_assert_int_eq(read_again(), WEIR_ERR_INVALID);
    weir_protobuf_put_text(&message, 3, "\xff\xfe");
    ck_assert_int_eq(read_again(), WEIR_ERR_INVALID);
    put_input("a", "FP32");
    static const char big[65] = "";
    weir_protobuf_put_bytes(&message, 7, big, sizeof big);
    ck_assert_int_eq(read_again(), WEIR_ERR_LIMIT);
    weir_protobuf_put_varint(&message, 1, 5);
    ck_assert_int_eq(read_again(), WEIR_ERR_CORRUPT);
    (void)weir_buf_append(&message, "\x0a\xff", 2);
    ck_assert_int_eq(read_again(), WEIR_ERR_CORRUPT);
}

END_TEST

static void expect_field(struct weir_protobuf *at, uint32_t number, const char *bytes, size_t len)
{
    struct weir_protobuf_field field;
    ck_assert_int_eq(weir_protobuf_next(at, &field, NULL), WEIR_OK);
    ck_assert_uint_eq(field.number, number);
    ck_assert_uint_eq(weir_protobuf_len(&field.bytes), len);
    ck_assert_mem_eq(field.bytes.at, bytes, len);
}

START_TEST(answers_become_messages)
{
    static const char json[] =
        "{\"model_name\":\"cats\",\"model_version\":\"3\",\"id\":\"7\",\"outputs\":[{\"name\":"
        "\"y\","
        "\"datatype\":\"FP32\",\"shape\":[1,2],\"parameters\":{\"binary_data_size\":8}}]}";
    char body[sizeof json + 8];
    memcpy(body, json, sizeof json - 1);
    memcpy(body + sizeof json - 1, "ABCDEFGH", 8);
    int64_t n = sizeof json - 1;
    ck_assert_int_eq(oip_write_infer(body, (size_t)n + 8, n, &message, NULL), WEIR_OK);
    struct weir_protobuf at = written();
    expect_field(&at, 1, "cats", 4);
    expect_field(&at, 2, "3", 1);
    expect_field(&at, 3, "7", 1);
    expect_field(&at, 5, "\x0a\1y\x12\4FP32\x1a\2\1\2", 13);
    expect_field(&at, 6, "ABCDEFGH", 8);
    ck_assert_ptr_eq(at.at, at.end);
    ck_assert_int_eq(oip_write_infer(body, (size_t)n + 7, n, &message, NULL), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(oip_write_infer(body, (size_t)n + 8, n + 9, &message, NULL), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(oip_write_infer("[]", 2, -1, &message, NULL), WEIR_ERR_CORRUPT);
    weir_buf_reset(&message);
    static const char metadata[] =
        "{\"name\":\"cats\",\"versions\":[\"3\"],\"platform\":\"onnx\","
        "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1]}]}";
    ck_assert_int_eq(oip_write_metadata(metadata, sizeof metadata - 1, &message, NULL), WEIR_OK);
    at = written();
    expect_field(&at, 1, "cats", 4);
    expect_field(&at, 2, "3", 1);
    expect_field(&at, 3, "onnx", 4);
    expect_field(&at, 4, "\x0a\1x\x12\4FP32\x1a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 21);
}

END_TEST

START_TEST(configuration_and_statistics_become_messages)
{
    static const char config[] =
        "{\"name\":\"m\",\"backend\":\"onnx\",\"max_batch_size\":8,"
        "\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[3]}]}";
    static const char statistics[] = "{\"model_stats\":[{\"name\":\"m\",\"inference_count\":2,"
                                     "\"batch_stats\":[{\"batch_size\":2}]}]}";
    ck_assert_int_eq(oip_write_config(config, sizeof config - 1, &message, NULL), WEIR_OK);
    struct weir_protobuf at = written();
    /* {name = "m", max_batch_size = 8, input = {name, data_type = 11, dims = [3]}, backend = "onnx"} */
    expect_field(&at, 1, "\x0a\1m\x20\x08\x2a\x08\x0a\1x\x10\x0b\x22\1\3\x8a\1\4onnx", 22);
    weir_buf_reset(&message);
    ck_assert_int_eq(oip_write_statistics(statistics, sizeof statistics - 1, &message, NULL),
                     WEIR_OK);
    at = written();
    /* Durations of nothing are messages of no bytes. */
    expect_field(&at, 1,
                 "\x0a\1m\x20\2\x32\x0c\x0a\0\x12\0\x1a\0\x22\0\x2a\0\x32\0"
                 "\x3a\x08\x08\2\x12\0\x1a\0\x22\0",
                 29);
    struct weir_error err;
    ck_assert_int_eq(oip_write_config("[]", 2, &message, &err), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(oip_write_statistics("x", 1, &message, &err), WEIR_ERR_CORRUPT);
}

END_TEST

WEIR_TEST_MAIN_WITH("oip", set_up, tear_down,
                    a_request_with_raw_tensors_is_passed_on_without_a_copy,
                    configuration_and_statistics_become_messages,
                    typed_contents_become_the_same_bytes, what_makes_no_sense_is_refused,
                    answers_become_messages)
