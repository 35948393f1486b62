/* The oracle is the encoding's own description: the byte strings stand in
 * protobuf.dev/programming-guides/encoding. */
#include "base/protobuf.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static void expect_bytes(const struct weir_buf *buf, const char *bytes, size_t len)
{
    ck_assert_int_eq(buf->status, WEIR_OK);
    ck_assert_uint_eq(buf->len, len);
    ck_assert_mem_eq(buf->data, bytes, len);
}

START_TEST(it_writes_what_the_guide_shows)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 10);
    weir_protobuf_put_varint(&buf, 1, 150);
    expect_bytes(&buf, "\x08\x96\x01", 3);
    weir_buf_reset(&buf);
    weir_protobuf_put_text(&buf, 2, "testing");
    expect_bytes(&buf, "\x12\x07testing", 9);
    weir_buf_reset(&buf);
    size_t begun = weir_protobuf_begin(&buf, 3);
    weir_protobuf_put_varint(&buf, 1, 150);
    weir_protobuf_end(&buf, begun);
    expect_bytes(&buf, "\x1a\x03\x08\x96\x01", 5);
    weir_buf_reset(&buf);
    weir_protobuf_put_packed(&buf, 6, (const uint64_t[]){3, 270, 86942}, 3);
    expect_bytes(&buf, "\x32\x06\x03\x8e\x02\x9e\xa7\x05", 8);
    weir_buf_fini(&buf);
}

END_TEST

START_TEST(what_is_written_reads_the_same)
{
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    printf("seed %llu\n", (unsigned long long)seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    uint64_t values[300];
    for (int i = 0; i < 300; i++) {
        values[i] = weir_rng_u64(&rng) >> weir_rng_below(&rng, 64);
    }
    size_t outer = weir_protobuf_begin(&buf, 77);
    weir_protobuf_put_packed(&buf, 1, values, 300);
    for (int i = 0; i < 300; i++) {
        weir_protobuf_put_varint(&buf, 2, values[i]);
        weir_protobuf_put_fixed64(&buf, 3, values[i]);
    }
    weir_protobuf_end(&buf, outer);
    struct weir_protobuf message = {(uint8_t *)buf.data, (uint8_t *)buf.data + buf.len};
    struct weir_protobuf_field field;
    ck_assert_int_eq(weir_protobuf_next(&message, &field, NULL), WEIR_OK);
    ck_assert_uint_eq(field.number, 77);
    ck_assert_int_eq(weir_protobuf_next(&message, &(struct weir_protobuf_field){0}, NULL),
                     WEIR_ERR_END);
    struct weir_protobuf inner = field.bytes;
    ck_assert_int_eq(weir_protobuf_next(&inner, &field, NULL), WEIR_OK);
    uint64_t value;
    for (int i = 0; i < 300; i++) {
        ck_assert_int_eq(weir_protobuf_number(&field, WEIR_PROTOBUF_VARINT, &value, NULL), WEIR_OK);
        ck_assert_uint_eq(value, values[i]);
    }
    for (int i = 0; i < 600; i++) {
        ck_assert_int_eq(weir_protobuf_next(&inner, &field, NULL), WEIR_OK);
        ck_assert_uint_eq(field.number, 2 + (unsigned)i % 2);
        ck_assert_uint_eq(field.value, values[i / 2]);
    }
    ck_assert_int_eq(weir_protobuf_next(&inner, &field, NULL), WEIR_ERR_END);
    weir_buf_fini(&buf);
}

END_TEST

START_TEST(a_float_reads_the_same)
{
    static const float values[] = {0, -1.5f, 3.25e-30f, 6.5e30f};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(values); i++) {
        struct weir_buf buf;
        struct weir_protobuf_field field;
        weir_buf_init(&buf, 64);
        weir_protobuf_put_float(&buf, 7, values[i]);
        struct weir_protobuf whole = {.at = (const uint8_t *)buf.data,
                                      .end = (const uint8_t *)buf.data + buf.len};
        ck_assert_int_eq(weir_protobuf_next(&whole, &field, NULL), WEIR_OK);
        ck_assert(field.number == 7 && field.type == WEIR_PROTOBUF_FIXED32);
        ck_assert(weir_protobuf_float(field.value) == values[i]);
        weir_buf_fini(&buf);
    }
}

END_TEST

START_TEST(a_full_buffer_is_found_in_the_end)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 16);
    size_t begun = weir_protobuf_begin(&buf, 1);
    weir_protobuf_put_text(&buf, 2, "more than sixteen bytes");
    weir_protobuf_end(&buf, begun);
    ck_assert_int_eq(buf.status, WEIR_ERR_LIMIT);
    weir_buf_fini(&buf);
}

END_TEST

WEIR_TEST_MAIN("protobuf", it_writes_what_the_guide_shows, what_is_written_reads_the_same,
               a_float_reads_the_same, a_full_buffer_is_found_in_the_end)
