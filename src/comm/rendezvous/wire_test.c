#include "comm/rendezvous/wire.h"

#include "base/test_main.h"
#include "comm/rendezvous/address.h"

static size_t frame_of(enum wire_type type, const void *payload, size_t len, uint8_t *out)
{
    wire_frame_header(type, len, out);
    memcpy(out + WIRE_HEADER_BYTES, payload, len);
    return WIRE_HEADER_BYTES + len;
}

START_TEST(a_frame_is_read_back_and_any_shorter_prefix_asks_for_more)
{
    uint8_t bytes[64];
    size_t len = frame_of(WIRE_DATA, "hello", 5, bytes), used = 0;
    struct wire_frame frame;
    for (size_t n = 0; n < len; n++) {
        ck_assert_int_eq(wire_frame_parse(bytes, n, 100, &frame, &used), WEIR_ERR_END);
    }
    bytes[len] = 0xff; /* the next frame's first byte is not this one's business */
    ck_assert_int_eq(wire_frame_parse(bytes, len + 1, 100, &frame, &used), WEIR_OK);
    ck_assert_uint_eq(used, len);
    ck_assert_int_eq(frame.type, WIRE_DATA);
    ck_assert_uint_eq(frame.len, 5);
    ck_assert_mem_eq(frame.payload, "hello", 5);
}

END_TEST

START_TEST(too_long_unknown_and_foreign_frames_are_refused_by_their_header)
{
    struct wire_frame frame;
    size_t used = 0;
    uint8_t bytes[WIRE_HEADER_BYTES];
    wire_frame_header(WIRE_JOIN, 101, bytes);
    ck_assert_int_eq(wire_frame_parse(bytes, sizeof bytes, 100, &frame, &used), WEIR_ERR_LIMIT);
    wire_frame_header((enum wire_type)99, 1, bytes);
    ck_assert_int_eq(wire_frame_parse(bytes, sizeof bytes, 100, &frame, &used), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(wire_frame_parse((const uint8_t *)"GET / HT", 8, 100, &frame, &used),
                     WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(a_join_message_survives_the_trip_and_no_cut_of_it_parses)
{
    struct wire_join join = {.rank = 3, .size = 9, .n_servers = 2, .attempt = 7, .job_id = "j-1"};
    memset(join.nonce, 0x5a, sizeof join.nonce);
    memset(join.mac, 0xa5, sizeof join.mac);
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_join_write(&writer, &join);
    wire_put_bytes(&writer, join.mac, sizeof join.mac);
    struct wire_join back;
    memset(&back, 0, sizeof back);
    ck_assert_int_eq(wire_join_parse(bytes, writer.len, &back), WEIR_OK);
    ck_assert_uint_eq(back.rank, 3);
    ck_assert_uint_eq(back.size, 9);
    ck_assert_uint_eq(back.n_servers, 2);
    ck_assert_uint_eq(back.attempt, 7);
    ck_assert_str_eq(back.job_id, "j-1");
    ck_assert_mem_eq(back.nonce, join.nonce, sizeof join.nonce);
    ck_assert_mem_eq(back.mac, join.mac, sizeof join.mac);
    for (size_t n = 0; n < writer.len; n++) {
        ck_assert_int_eq(wire_join_parse(bytes, n, &back), WEIR_ERR_CORRUPT);
    }
    ck_assert_int_eq(wire_join_parse(bytes, writer.len + 1, &back), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(a_problem_that_claims_success_is_damaged)
{
    struct wire_problem problem = {.status = WEIR_OK, .rank = 1, .text = "fine"}, back;
    uint8_t bytes[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_problem_write(&writer, &problem);
    ck_assert_int_eq(wire_problem_parse(bytes, writer.len, &back), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(a_writer_that_is_full_writes_nothing_more)
{
    uint8_t bytes[6] = {0};
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_put_u32(&writer, 0x01020304);
    wire_put_u32(&writer, 5);
    wire_put_bytes(&writer, "x", 1);
    ck_assert(writer.is_bad);
    ck_assert_uint_eq(writer.len, 4);
    ck_assert_mem_eq(bytes, "\x04\x03\x02\x01\0\0", 6);
}

END_TEST

START_TEST(a_published_notice_is_read_back)
{
    struct weir_buf text;
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    struct address_notice notice = {.boot_id = "b", .n_addresses = 2}, back;
    memset(notice.instance, 0xab, sizeof notice.instance);
    (void)snprintf(notice.addresses[0], ADDRESS_TEXT_BYTES, "127.0.0.1:4000");
    (void)snprintf(notice.addresses[1], ADDRESS_TEXT_BYTES, "[fd00::1]:4000");
    address_notice_write(&notice, &text);
    ck_assert_int_eq(text.status, WEIR_OK);
    ck_assert_int_eq(address_notice_parse(text.data, text.len, &back), WEIR_OK);
    ck_assert_int_eq(back.n_addresses, 2);
    ck_assert_str_eq(back.boot_id, "b");
    ck_assert_str_eq(back.addresses[1], "[fd00::1]:4000");
    ck_assert_mem_eq(back.instance, notice.instance, sizeof notice.instance);
    ck_assert_int_eq(address_notice_parse(text.data, text.len - 1, &back), WEIR_ERR_CORRUPT);
    weir_buf_fini(&text);
}

END_TEST

START_TEST(a_notice_of_the_end_is_read_back)
{
    struct weir_buf text;
    const struct address_notice notice = {.is_over = true};
    struct address_notice back;
    weir_buf_init(&text, ADDRESS_NOTICE_MAX_BYTES);
    address_notice_write(&notice, &text);
    ck_assert_int_eq(address_notice_parse(text.data, text.len, &back), WEIR_OK);
    ck_assert(back.is_over);
    ck_assert_int_eq(address_notice_parse(text.data, text.len - 1, &back), WEIR_ERR_CORRUPT);
    weir_buf_fini(&text);
}

END_TEST

START_TEST(addresses_are_split_at_the_port)
{
    static const struct {
        const char *text, *host, *port;
    } good[] = {{"a.example:1", "a.example", "1"}, {"[::1]:65535", "::1", "65535"}};

    static const char *const bad[] = {"", ":1", "a", "a:", "a:b", "a:123456", "[]:1"};
    char host[256], port[16];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_int_eq(address_split(good[i].text, host, sizeof host, port, sizeof port),
                         WEIR_OK);
        ck_assert_str_eq(host, good[i].host);
        ck_assert_str_eq(port, good[i].port);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(address_split(bad[i], host, sizeof host, port, sizeof port),
                         WEIR_ERR_INVALID);
    }
}

END_TEST

WEIR_TEST_MAIN("wire", a_frame_is_read_back_and_any_shorter_prefix_asks_for_more,
               too_long_unknown_and_foreign_frames_are_refused_by_their_header,
               a_join_message_survives_the_trip_and_no_cut_of_it_parses,
               a_problem_that_claims_success_is_damaged, a_writer_that_is_full_writes_nothing_more,
               a_published_notice_is_read_back, a_notice_of_the_end_is_read_back,
               addresses_are_split_at_the_port)
