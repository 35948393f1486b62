#include "codec.h"

#include "base/test_main.h"
#include "stream.h"

#include <string.h>

enum { PAYLOAD_TYPE = 96 };

/* One packet of JPEG, with tables of quality 75, and what is made of it. */
static void put_jpeg(struct rtsp_stream *stream, uint16_t number, uint32_t offset, uint8_t q,
                     const uint8_t *rest, size_t n_rest, bool has_marker)
{
    uint8_t bytes[2048] = {0x80, (uint8_t)(26 | has_marker << 7), (uint8_t)(number >> 8),
                           (uint8_t)number};
    const uint8_t head[] = {
        0, (uint8_t)(offset >> 16), (uint8_t)(offset >> 8), (uint8_t)offset, 1, q, 8, 6};
    memcpy(bytes + 12, head, sizeof head);
    memcpy(bytes + 12 + sizeof head, rest, n_rest);
    ck_assert_int_eq(rtsp_stream_offer(stream, bytes, 12 + sizeof head + n_rest, 1), WEIR_OK);
}

static const uint8_t *find(const struct weir_rtsp_unit *unit, uint8_t marker)
{
    const uint8_t begin[] = {0xff, marker};
    return memmem(unit->bytes, unit->n_bytes, begin, sizeof begin);
}

START_TEST(jpeg_files_get_their_headers)
{
    /* the first values of libjpeg's tables at these qualities */
    static const struct {
        uint8_t q, luma[8], chroma[8];
    } rows[] = {
        {20, {40, 28, 30, 35, 30, 25, 40, 35}, {43, 45, 45, 60, 53, 60, 118, 65}},
        {50, {16, 11, 12, 14, 12, 10, 16, 14}, {17, 18, 18, 24, 21, 24, 47, 26}},
        {90, {3, 2, 2, 3, 2, 2, 3, 3}, {3, 4, 4, 5, 4, 5, 9, 5}},
    };

    static const uint8_t scan[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    rtsp_stream_init(stream, WEIR_RTSP_JPEG, 26, 0);
    uint16_t number = UINT16_MAX - 2;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        put_jpeg(stream, number++, 0, rows[i].q, scan, 5, false);
        put_jpeg(stream, number++, 5, rows[i].q, scan + 5, 4, true);
        ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_OK);
        const uint8_t *tables = find(&unit, 0xdb), *frame = find(&unit, 0xc0);
        ck_assert_mem_eq(tables + 5, rows[i].luma, 8);
        ck_assert_mem_eq(tables + 5 + 65, rows[i].chroma, 8);
        ck_assert_uint_eq(frame[6], 48);
        ck_assert_uint_eq(frame[8], 64);
        ck_assert_mem_eq(unit.bytes + unit.n_bytes - 2 - sizeof scan, scan, sizeof scan);
        ck_assert_uint_eq(unit.bytes[unit.n_bytes - 1], 0xd9);
        ck_assert(unit.is_key && unit.n_lost_before == 0);
    }
    /* a part that is missing, then a whole picture */
    put_jpeg(stream, number++, 0, 50, scan, 5, false);
    number++;
    put_jpeg(stream, number++, 7, 50, scan, 2, true);
    put_jpeg(stream, number++, 0, 50, scan, sizeof scan, true);
    ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_OK);
    ck_assert_uint_eq(unit.n_lost_before, 3);
    /* a part that does not follow the one before it, though no packet is missing */
    put_jpeg(stream, number++, 0, 50, scan, 5, false);
    put_jpeg(stream, number++, 6, 50, scan, 2, true);
    ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_ERR_TIMEOUT);
    rtsp_stream_fini(stream);
    free(stream);
}

END_TEST

/* Tables that come with a picture hold for later ones of the same number, unless it is 255. */
START_TEST(jpeg_tables_come_with_the_picture)
{
    uint8_t given[4 + 128 + 2] = {0, 0, 0, 128}, kept[4 + 2] = {0};
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    rtsp_stream_init(stream, WEIR_RTSP_JPEG, 26, 0);
    memset(given + 4, 7, 128);
    put_jpeg(stream, 1, 0, 200, given, sizeof given, true);
    put_jpeg(stream, 2, 0, 200, kept, sizeof kept, true);
    put_jpeg(stream, 3, 0, 201, kept, sizeof kept, true);
    put_jpeg(stream, 4, 0, 255, given, sizeof given, true);
    put_jpeg(stream, 5, 0, 255, kept, sizeof kept, true);
    static const uint64_t lost[] = {0, 0, 1};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(lost); i++) {
        ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_OK);
        ck_assert_uint_eq(find(&unit, 0xdb)[5 + 63], 7);
        ck_assert_uint_eq(unit.n_lost_before, lost[i]);
    }
    ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_ERR_TIMEOUT);
    given[1] = 1;
    put_jpeg(stream, 6, 0, 255, given, sizeof given, true);
    ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "16 bits"));
    rtsp_stream_fini(stream);
    free(stream);
}

END_TEST

START_TEST(packets_that_are_not_supported_are_named)
{
    static const struct {
        enum weir_rtsp_codec codec;
        uint8_t type;
        const char *name;
    } rows[] = {{WEIR_RTSP_H264, 25, "STAP-B"},
                {WEIR_RTSP_H264, 26, "MTAP16"},
                {WEIR_RTSP_H264, 27, "MTAP24"},
                {WEIR_RTSP_H264, 29, "FU-B"},
                {WEIR_RTSP_H265, 50 << 1, "PACI"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        struct rtsp_stream *stream = calloc(1, sizeof *stream);
        struct weir_rtsp_unit unit;
        struct weir_error err = {0};
        uint8_t bytes[20] = {0x80, PAYLOAD_TYPE};
        bytes[12] = rows[i].type;
        rtsp_stream_init(stream, rows[i].codec, PAYLOAD_TYPE, 0);
        ck_assert_int_eq(rtsp_stream_offer(stream, bytes, sizeof bytes, 1), WEIR_OK);
        ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(err.message, rows[i].name) != NULL, "%s", err.message);
        rtsp_stream_fini(stream);
        free(stream);
    }
}

END_TEST

WEIR_TEST_MAIN("rtsp_codec", jpeg_files_get_their_headers, jpeg_tables_come_with_the_picture,
               packets_that_are_not_supported_are_named)
