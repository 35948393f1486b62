#include "codec.h"

const struct rtsp_codec *const rtsp_codecs[3] = {
    [WEIR_RTSP_H264] = &rtsp_codec_h264,
    [WEIR_RTSP_H265] = &rtsp_codec_h265,
    [WEIR_RTSP_JPEG] = &rtsp_codec_jpeg,
};

void rtsp_unit_begin(struct rtsp_unit *unit)
{
    weir_buf_reset(&unit->bytes);
    unit->has_picture = unit->is_key = unit->begins = unit->is_skipped = unit->is_in_fragment =
        false;
    unit->jpeg.n_scan = 0;
}

weir_status rtsp_unit_put_nal(struct rtsp_unit *unit, const uint8_t *nal, size_t n)
{
    static const uint8_t start[] = {0, 0, 0, 1};
    (void)weir_buf_append(&unit->bytes, start, sizeof start);
    return weir_buf_append(&unit->bytes, nal, n);
}

weir_status rtsp_unit_put_all(struct rtsp_unit *unit, const uint8_t *bytes, size_t n,
                              weir_status (*put)(struct rtsp_unit *unit, const uint8_t *nal,
                                                 size_t n))
{
    while (n > 0) {
        size_t n_nal = n < 2 ? 0 : (size_t)bytes[0] << 8 | bytes[1];
        if (n_nal == 0 || n_nal > n - 2) {
            return WEIR_ERR_CORRUPT;
        }
        WEIR_TRY(put(unit, bytes + 2, n_nal));
        bytes += 2 + n_nal;
        n -= 2 + n_nal;
    }
    return WEIR_OK;
}
