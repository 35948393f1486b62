#include "demo/rtp_jpeg.h"

#include <string.h>

enum {
    CHANNEL_BYTES = 4,
    RTP_BYTES = 12,
    HEADER_BYTES = 8,
    TABLES_HEADER_BYTES = 4,
    TABLE_BYTES = 64,
    PAYLOAD_BYTES = 1400, /* a packet's part of the scan */
    PAYLOAD_TYPE = 26,
    TYPE_420 = 1,
    Q_GIVEN_EACH = 255, /* tables come with each picture */
    SIDE_MAX = 2040,
    MARKER = 0x80, /* the picture's last packet */
};

enum { SOI = 0xd8, EOI = 0xd9, DQT = 0xdb, SOF0 = 0xc0, SOS = 0xda };

/* What of a file goes into packets. */
struct parts {
    int width, height;
    const uint8_t *tables[2], *scan;
    size_t n_scan;
};

static unsigned read_u16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static void take_tables(const uint8_t *body, size_t n, struct parts *out)
{
    for (; n > TABLE_BYTES; body += 1 + TABLE_BYTES, n -= 1 + TABLE_BYTES) {
        if (body[0] < 2) {
            out->tables[body[0]] = body + 1;
        }
    }
}

/* Three components of 8 bits, of which the first has four blocks to one of each other. */
static void take_frame(const uint8_t *body, size_t n, struct parts *out)
{
    if (n >= 15 && body[0] == 8 && body[5] == 3 && body[7] == 0x22 && body[10] == 0x11 &&
        body[13] == 0x11) {
        out->height = (int)read_u16(body + 1);
        out->width = (int)read_u16(body + 3);
    }
}

static bool find_parts(const uint8_t *jpeg, size_t n, struct parts *out)
{
    size_t at = 2;
    *out = (struct parts){0};
    if (n < 6 || jpeg[0] != 0xff || jpeg[1] != SOI || jpeg[n - 1] != EOI) {
        return false;
    }
    while (out->scan == NULL && at + 4 < n && jpeg[at] == 0xff) {
        unsigned marker = jpeg[at + 1];
        size_t len = read_u16(jpeg + at + 2);
        const uint8_t *body = jpeg + at + 4;
        at += 2 + len;
        if (len < 2 || at + 2 > n) {
            return false;
        }
        if (marker == DQT) {
            take_tables(body, len - 2, out);
        } else if (marker == SOF0) {
            take_frame(body, len - 2, out);
        } else if (marker == SOS) {
            out->scan = jpeg + at;
            out->n_scan = n - at - 2;
        }
    }
    return out->scan != NULL && out->n_scan > 0 && out->tables[0] != NULL &&
           out->tables[1] != NULL && out->width > 0 && out->width % 16 == 0 &&
           out->height % 16 == 0 && out->width <= SIDE_MAX && out->height <= SIDE_MAX;
}

static void put_head(struct rtp_jpeg *rtp, const struct parts *parts, uint32_t time, size_t offset,
                     size_t n_part, struct weir_buf *out)
{
    bool is_first = offset == 0, is_last = offset + n_part == parts->n_scan;
    size_t n_tables = is_first ? TABLES_HEADER_BYTES + 2 * TABLE_BYTES : 0;
    size_t n_packet = RTP_BYTES + HEADER_BYTES + n_tables + n_part;
    unsigned number = rtp->n_sent++;
    const uint8_t head[CHANNEL_BYTES + RTP_BYTES + HEADER_BYTES] = {
        '$',
        rtp->channel,
        (uint8_t)(n_packet >> 8),
        (uint8_t)n_packet,
        0x80,
        (uint8_t)(PAYLOAD_TYPE | (is_last ? MARKER : 0)),
        (uint8_t)(number >> 8),
        (uint8_t)number,
        (uint8_t)(time >> 24),
        (uint8_t)(time >> 16),
        (uint8_t)(time >> 8),
        (uint8_t)time,
        (uint8_t)(rtp->source >> 24),
        (uint8_t)(rtp->source >> 16),
        (uint8_t)(rtp->source >> 8),
        (uint8_t)rtp->source,
        0,
        (uint8_t)(offset >> 16),
        (uint8_t)(offset >> 8),
        (uint8_t)offset,
        TYPE_420,
        Q_GIVEN_EACH,
        (uint8_t)(parts->width / 8),
        (uint8_t)(parts->height / 8),
    };
    static const uint8_t tables_head[TABLES_HEADER_BYTES] = {0, 0, 0, 2 * TABLE_BYTES};
    (void)weir_buf_append(out, head, sizeof head);
    if (is_first) {
        (void)weir_buf_append(out, tables_head, sizeof tables_head);
        (void)weir_buf_append(out, parts->tables[0], TABLE_BYTES);
        (void)weir_buf_append(out, parts->tables[1], TABLE_BYTES);
    }
}

weir_status rtp_jpeg_put(struct rtp_jpeg *rtp, const void *jpeg, size_t n, uint32_t time,
                         struct weir_buf *out, struct weir_error *err)
{
    struct parts parts;
    if (!find_parts(jpeg, n, &parts)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "RTP carries baseline JPEG of 4:2:0 whose sides are multiples of 16, "
                              "2040 at most");
    }
    for (size_t offset = 0; offset < parts.n_scan; offset += PAYLOAD_BYTES) {
        size_t n_part = WEIR_MIN((size_t)PAYLOAD_BYTES, parts.n_scan - offset);
        put_head(rtp, &parts, time, offset, n_part, out);
        (void)weir_buf_append(out, parts.scan + offset, n_part);
    }
    return out->status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, out->status, "a picture of %zu bytes is not sent", n);
}
