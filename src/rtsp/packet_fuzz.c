/*
 * Any bytes as packets of a stream: the first byte says the codec and whether packets are waited for; then packets, each
 * after its length in two bytes (of which the highest bit says RTCP). What is given is not empty, keeps its bounds, and
 * its times do not go back.
 */
#include "stream.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct last {
    int64_t media_us, wall_ms;
    uint32_t epoch;
};

static weir_status take_all(struct rtsp_stream *stream, uint64_t now_ns, struct last *last)
{
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    weir_status status;
    while ((status = rtsp_stream_take(stream, now_ns, &unit, &err)) == WEIR_OK) {
        bool is_same = unit.epoch == last->epoch;
        if (unit.n_bytes == 0 || unit.n_bytes > WEIR_RTSP_UNIT_MAX_BYTES ||
            unit.media_us < last->media_us || unit.epoch < last->epoch ||
            (is_same && last->wall_ms != 0 && unit.wall_ms != 0 && unit.wall_ms < last->wall_ms)) {
            abort();
        }
        *last = (struct last){unit.media_us, unit.wall_ms, unit.epoch};
    }
    if (status == WEIR_ERR_UNSUPPORTED && err.message[0] == '\0') {
        abort();
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    struct last last = {0};
    if (stream == NULL || size == 0) {
        free(stream);
        return 0;
    }
    rtsp_stream_init(stream, data[0] % WEIR_ARRAY_LEN(rtsp_codecs), 96,
                     (data[0] & 0x80) != 0 ? 50000000 : 0);
    uint64_t now_ns = 1;
    weir_status status = WEIR_ERR_TIMEOUT;
    for (size_t i = 1; i + 2 <= size && status == WEIR_ERR_TIMEOUT;) {
        bool is_report = (data[i] & 0x80) != 0;
        size_t n = (size_t)(data[i] & 0x7f) << 8 | data[i + 1];
        i += 2;
        n = n < size - i ? n : size - i;
        if (is_report) {
            rtsp_stream_report(stream, data + i, n, 0);
        } else if (rtsp_stream_offer(stream, data + i, n, now_ns) != WEIR_OK) {
            abort();
        }
        status = take_all(stream, now_ns, &last);
        i += n;
        now_ns += 10000000;
    }
    (void)take_all(stream, now_ns + 1000000000, &last);
    rtsp_stream_fini(stream);
    free(stream);
    return 0;
}
