/* H.265 in packets of RTP: RFC 7798, without decoding order numbers. */
#include "codec.h"

#include <string.h>

enum {
    NAL_RASL_FIRST = 8, /* pictures that are sent behind a CRA and shown before it */
    NAL_RASL_LAST = 9,
    NAL_SLICE_LAST = 31,
    NAL_KEY_FIRST = 16, /* BLA, IDR, CRA */
    NAL_KEY_LAST = 21,
    NAL_LAST = 47,
    AGGREGATION = 48,
    FRAGMENT = 49,
    PACI = 50,
    HEADER_BYTES = 2,
};

static unsigned type_of(const uint8_t *nal)
{
    return nal[0] >> 1 & 0x3f;
}

static weir_status look_at(struct rtsp_unit *unit, const uint8_t *nal, size_t n)
{
    unsigned type = type_of(nal);
    if ((nal[0] & 0x80) != 0 || type > NAL_LAST) {
        return WEIR_ERR_CORRUPT;
    }
    bool is_slice = type <= NAL_SLICE_LAST;
    if (unit->bytes.len == 0) {
        /* first_slice_segment_in_pic_flag; or what stands before slices */
        unit->begins = !is_slice || (n > HEADER_BYTES && (nal[HEADER_BYTES] & 0x80) != 0);
    }
    unit->has_picture = unit->has_picture || is_slice;
    unit->is_skipped = unit->is_skipped || (type >= NAL_RASL_FIRST && type <= NAL_RASL_LAST);
    unit->is_key = unit->is_key || (type >= NAL_KEY_FIRST && type <= NAL_KEY_LAST);
    return WEIR_OK;
}

static weir_status put(struct rtsp_unit *unit, const uint8_t *nal, size_t n)
{
    if (n < HEADER_BYTES) {
        return WEIR_ERR_CORRUPT;
    }
    WEIR_TRY(look_at(unit, nal, n));
    return rtsp_unit_put_nal(unit, nal, n);
}

static weir_status take_fragment(struct rtsp_unit *unit, const uint8_t *p, size_t n)
{
    enum { START = 0x80, END = 0x40 };

    if (n < HEADER_BYTES + 2) {
        return WEIR_ERR_CORRUPT;
    }
    bool is_start = (p[HEADER_BYTES] & START) != 0;
    if (is_start == unit->is_in_fragment) {
        return WEIR_ERR_CORRUPT;
    }
    unit->is_in_fragment = (p[HEADER_BYTES] & END) == 0;
    if (is_start) {
        uint8_t begin[] = {(uint8_t)((p[0] & 0x81) | (p[HEADER_BYTES] & 0x3f) << 1), p[1], p[3]};
        WEIR_TRY(look_at(unit, begin, sizeof begin));
        WEIR_TRY(rtsp_unit_put_nal(unit, begin, HEADER_BYTES));
    }
    return weir_buf_append(&unit->bytes, p + HEADER_BYTES + 1, n - HEADER_BYTES - 1);
}

static weir_status take(struct rtsp_unit *unit, const uint8_t *p, size_t n, struct weir_error *err)
{
    unsigned type = type_of(p);
    if (type == PACI) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends H.265 in packets of kind PACI, which is not "
                              "supported: set it to H.264");
    }
    if (n <= HEADER_BYTES || (type != FRAGMENT && unit->is_in_fragment)) {
        return WEIR_ERR_CORRUPT;
    }
    switch (type) {
    case FRAGMENT:
        return take_fragment(unit, p, n);
    case AGGREGATION:
        return rtsp_unit_put_all(unit, p + HEADER_BYTES, n - HEADER_BYTES, put);
    default:
        return put(unit, p, n);
    }
}

const struct rtsp_codec rtsp_codec_h265 = {.name = "H265", .take = take};
