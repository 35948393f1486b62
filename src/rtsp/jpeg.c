/*
 * JPEG in packets of RTP: RFC 2435. The camera sends the scan alone, and numbers for the rest: size, subsampling and
 * quantisation. The file's headers are made of them, with the Huffman tables of the standard (ITU-T T.81, annex K).
 */
#include "codec.h"

#include <string.h>

enum {
    MAIN_HEADER_BYTES = 8,
    RESTART_HEADER_BYTES = 4,
    TABLES_HEADER_BYTES = 4,
    TABLE_BYTES = 64,
    TYPE_420 = 1,       /* 0 is 4:2:2 */
    TYPE_RESTART = 64,  /* added to the type: there are restart markers */
    Q_GIVEN = 128,      /* from here on the tables come with the picture */
    Q_GIVEN_EACH = 255, /* with each picture */
};

// clang-format off
/* The contents of DHT: luma DC, luma AC, chroma DC, chroma AC. */
static const uint8_t huffman[] = {
    0x00, 0x00, 0x01, 0x05, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x00, 0x02,
    0x01, 0x03, 0x03, 0x02, 0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00, 0x00, 0x01, 0x7d, 0x01, 0x02,
    0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
    0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33,
    0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a,
    0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53,
    0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73,
    0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92,
    0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9,
    0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
    0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4,
    0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
    0x01, 0x00, 0x03, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x11, 0x00, 0x02,
    0x01, 0x02, 0x04, 0x04, 0x03, 0x04, 0x07, 0x05, 0x04, 0x04, 0x00, 0x01, 0x02, 0x77, 0x00, 0x01,
    0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22,
    0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62,
    0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28,
    0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a,
    0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a,
    0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
    0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5,
    0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3,
    0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
};

/* Quantisation at quality 50, in zig-zag order; of the chroma, what follows is as the last one. */
static const uint8_t luma[TABLE_BYTES] = {
        16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40,
        26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
        56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87,
        95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
};
static const uint8_t chroma[] = {
        17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99,
};

// clang-format on

/* What the first bytes of a packet say. */
struct header {
    uint32_t offset;
    unsigned type, q, width, height, restart_interval;
};

static void make_tables(struct rtsp_jpeg *jpeg, unsigned q)
{
    unsigned scale = q < 50 ? 5000 / q : 200 - 2 * q;
    for (unsigned i = 0; i < 2 * TABLE_BYTES; i++) {
        unsigned base =
            i < TABLE_BYTES ? luma[i] : chroma[WEIR_MIN(i - TABLE_BYTES, sizeof chroma - 1)];
        unsigned value = (base * scale + 50) / 100;
        jpeg->tables[i] = (uint8_t)WEIR_MAX(1, WEIR_MIN(value, 255));
    }
}

/* The tables of a picture, at its first packet. *p goes on behind them. */
static weir_status take_tables(struct rtsp_jpeg *jpeg, unsigned q, const uint8_t **p, size_t *n,
                               struct weir_error *err)
{
    if (q > 0 && q < 100) {
        make_tables(jpeg, q);
        jpeg->q = (uint8_t)q;
        return WEIR_OK;
    }
    if (q < Q_GIVEN || *n < TABLES_HEADER_BYTES) {
        return WEIR_ERR_CORRUPT;
    }
    size_t n_tables = (size_t)(*p)[2] << 8 | (*p)[3];
    if ((*p)[1] != 0 && n_tables > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends JPEG with quantisation tables of 16 bits, which "
                              "are not supported: set it to H.264");
    }
    *p += TABLES_HEADER_BYTES;
    *n -= TABLES_HEADER_BYTES;
    if (n_tables == 0) {
        return q != Q_GIVEN_EACH && jpeg->q == q ? WEIR_OK : WEIR_ERR_CORRUPT;
    }
    if (n_tables > *n || (n_tables != TABLE_BYTES && n_tables < sizeof jpeg->tables)) {
        return WEIR_ERR_CORRUPT;
    }
    memcpy(jpeg->tables, *p, TABLE_BYTES);
    memcpy(jpeg->tables + TABLE_BYTES, *p + (n_tables == TABLE_BYTES ? 0 : TABLE_BYTES),
           TABLE_BYTES);
    jpeg->q = (uint8_t)q;
    *p += n_tables;
    *n -= n_tables;
    return WEIR_OK;
}

/* All that stands before the scan. */
static weir_status put_headers(struct weir_buf *out, const struct rtsp_jpeg *jpeg,
                               const struct header *header)
{
    enum { SOI = 0xd8, DRI = 0xdd, DQT = 0xdb, SOF0 = 0xc0, DHT = 0xc4, SOS = 0xda };

    const uint8_t begin[] = {0xff, SOI};
    const uint8_t restart[] = {0xff,
                               DRI,
                               0,
                               4,
                               (uint8_t)(header->restart_interval >> 8),
                               (uint8_t)header->restart_interval};
    const uint8_t quantisation[] = {0xff, DQT, 0, 2 + 2 * (1 + TABLE_BYTES)};
    const uint8_t frame[] = {0xff,
                             SOF0,
                             0,
                             17,
                             8,
                             (uint8_t)(header->height >> 8),
                             (uint8_t)header->height,
                             (uint8_t)(header->width >> 8),
                             (uint8_t)header->width,
                             3,
                             1,
                             header->type % TYPE_RESTART == TYPE_420 ? 0x22 : 0x21,
                             0,
                             2,
                             0x11,
                             1,
                             3,
                             0x11,
                             1,
                             0xff,
                             DHT,
                             (2 + sizeof huffman) >> 8,
                             (2 + sizeof huffman) & 0xff};
    static const uint8_t scan[] = {0xff, SOS, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0};
    (void)weir_buf_append(out, begin, sizeof begin);
    if (header->restart_interval > 0) {
        (void)weir_buf_append(out, restart, sizeof restart);
    }
    (void)weir_buf_append(out, quantisation, sizeof quantisation);
    for (uint8_t i = 0; i < 2; i++) {
        (void)weir_buf_append(out, &i, 1);
        (void)weir_buf_append(out, jpeg->tables + (size_t)i * TABLE_BYTES, TABLE_BYTES);
    }
    (void)weir_buf_append(out, frame, sizeof frame);
    (void)weir_buf_append(out, huffman, sizeof huffman);
    return weir_buf_append(out, scan, sizeof scan);
}

static weir_status begin_picture(struct rtsp_unit *unit, struct header *header, const uint8_t **p,
                                 size_t *n, struct weir_error *err)
{
    WEIR_TRY(take_tables(&unit->jpeg, header->q, p, n, err));
    if (header->width == 0 || header->height == 0) {
        header->width = (unsigned)unit->jpeg.width;
        header->height = (unsigned)unit->jpeg.height;
    }
    if (header->width == 0 || header->height == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends JPEG pictures with a side of more than 2040 pixels "
                              "and does not say how large they are: set a smaller size, or H.264");
    }
    unit->has_picture = unit->is_key = unit->begins = true;
    return put_headers(&unit->bytes, &unit->jpeg, header);
}

static weir_status take(struct rtsp_unit *unit, const uint8_t *p, size_t n, struct weir_error *err)
{
    if (n < MAIN_HEADER_BYTES) {
        return WEIR_ERR_CORRUPT;
    }
    struct header header = {.offset = (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3],
                            .type = p[4],
                            .q = p[5],
                            .width = 8u * p[6],
                            .height = 8u * p[7]};
    p += MAIN_HEADER_BYTES;
    n -= MAIN_HEADER_BYTES;
    bool has_restarts = header.type >= TYPE_RESTART;
    if (header.type % TYPE_RESTART > TYPE_420 || header.type >= 2 * TYPE_RESTART ||
        (has_restarts && n < RESTART_HEADER_BYTES)) {
        return WEIR_ERR_CORRUPT;
    }
    if (has_restarts) {
        header.restart_interval = (unsigned)p[0] << 8 | p[1];
        p += RESTART_HEADER_BYTES;
        n -= RESTART_HEADER_BYTES;
    }
    if (header.offset != unit->jpeg.n_scan || (header.offset > 0) != unit->has_picture) {
        return WEIR_ERR_CORRUPT;
    }
    if (header.offset == 0) {
        WEIR_TRY(begin_picture(unit, &header, &p, &n, err));
    }
    unit->jpeg.n_scan += (uint32_t)n;
    return weir_buf_append(&unit->bytes, p, n);
}

/* Some cameras leave the end marker out. */
static weir_status end(struct rtsp_unit *unit)
{
    static const uint8_t eoi[] = {0xff, 0xd9};
    const struct weir_buf *bytes = &unit->bytes;
    bool has_end = unit->jpeg.n_scan >= sizeof eoi &&
                   memcmp(bytes->data + bytes->len - sizeof eoi, eoi, sizeof eoi) == 0;
    return has_end ? WEIR_OK : weir_buf_append(&unit->bytes, eoi, sizeof eoi);
}

const struct rtsp_codec rtsp_codec_jpeg = {
    .name = "JPEG", .is_alone = true, .take = take, .end = end};
