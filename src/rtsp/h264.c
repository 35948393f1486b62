/* H.264 in packets of RTP: RFC 6184, the single NAL unit mode and the non-interleaved mode. */
#include "codec.h"

#include <string.h>

enum {
    NAL_SLICE = 1,
    NAL_IDR = 5,
    NAL_SEI = 6,
    NAL_SPS = 7,
    NAL_DELIMITER = 9,
    NAL_LAST = 23,
    STAP_A = 24,
    FU_A = 28,
    SEI_RECOVERY_POINT = 6,
};

/* Is there a recovery point? A camera that refreshes its picture in strips has no other key. */
static bool has_recovery_point(const uint8_t *p, size_t n)
{
    size_t i = 1;
    while (i + 2 < n) {
        size_t type = 0, size = 0;
        for (; i < n && p[i] == 0xff; i++) {
            type += 0xff;
        }
        type += i < n ? p[i++] : 0;
        for (; i < n && p[i] == 0xff; i++) {
            size += 0xff;
        }
        size += i < n ? p[i++] : 0;
        if (type == SEI_RECOVERY_POINT) {
            return true;
        }
        i += size;
    }
    return false;
}

/* What a NAL unit, of which the first n bytes are there, says of the picture. */
static weir_status look_at(struct rtsp_unit *unit, const uint8_t *nal, size_t n)
{
    unsigned type = nal[0] & 0x1f;
    if ((nal[0] & 0x80) != 0 || type == 0 || type > NAL_LAST) {
        return WEIR_ERR_CORRUPT;
    }
    bool is_slice = type >= NAL_SLICE && type <= NAL_IDR;
    if (unit->bytes.len == 0) {
        /* first_mb_in_slice is 0, one bit that is set; or what stands before slices */
        bool is_first_slice = is_slice && n > 1 && (nal[1] & 0x80) != 0;
        unit->begins = is_first_slice || (type >= NAL_SEI && type <= NAL_DELIMITER);
    }
    unit->has_picture = unit->has_picture || is_slice;
    unit->is_key =
        unit->is_key || type == NAL_IDR || (type == NAL_SEI && has_recovery_point(nal, n));
    return WEIR_OK;
}

static weir_status put(struct rtsp_unit *unit, const uint8_t *nal, size_t n)
{
    WEIR_TRY(look_at(unit, nal, n));
    return rtsp_unit_put_nal(unit, nal, n);
}

static weir_status take_fragment(struct rtsp_unit *unit, const uint8_t *p, size_t n)
{
    enum { START = 0x80, END = 0x40 };

    if (n < 3) {
        return WEIR_ERR_CORRUPT;
    }
    bool is_start = (p[1] & START) != 0;
    if (is_start == unit->is_in_fragment) {
        return WEIR_ERR_CORRUPT;
    }
    unit->is_in_fragment = (p[1] & END) == 0;
    if (!is_start) {
        return weir_buf_append(&unit->bytes, p + 2, n - 2);
    }
    uint8_t begin[64] = {(uint8_t)((p[0] & 0xe0) | (p[1] & 0x1f))};
    size_t n_begin = WEIR_MIN(n - 2, sizeof begin - 1);
    memcpy(begin + 1, p + 2, n_begin);
    WEIR_TRY(look_at(unit, begin, n_begin + 1));
    WEIR_TRY(rtsp_unit_put_nal(unit, begin, 1));
    return weir_buf_append(&unit->bytes, p + 2, n - 2);
}

static weir_status take(struct rtsp_unit *unit, const uint8_t *p, size_t n, struct weir_error *err)
{
    static const char *const others[] = {
        [25] = "STAP-B", [26] = "MTAP16", [27] = "MTAP24", [29] = "FU-B"};
    unsigned type = p[0] & 0x1f;
    if (type < WEIR_ARRAY_LEN(others) && others[type] != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera sends H.264 in packets of kind %s (the interleaved "
                              "mode), which is not supported: set packetization mode 1",
                              others[type]);
    }
    if (type != FU_A && unit->is_in_fragment) {
        return WEIR_ERR_CORRUPT;
    }
    switch (type) {
    case FU_A:
        return take_fragment(unit, p, n);
    case STAP_A:
        return rtsp_unit_put_all(unit, p + 1, n - 1, put);
    default:
        return put(unit, p, n);
    }
}

const struct rtsp_codec rtsp_codec_h264 = {.name = "H264", .take = take};
