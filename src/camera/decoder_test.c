/* Pictures that come without a word of their size before them, as over HTTP. */
#include "decoder.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

#define MAX_PIXELS 10000

static struct weir_rng rng;

/* The beginning of a JPEG: segments of other kinds, fill bytes, and its frame's head. @return Bytes. */
static size_t write_jpeg(uint8_t bytes[4096], int width, int height)
{
    static const uint8_t kinds[] = {0xe0, 0xdb, 0xc4, 0xfe};
    static const uint8_t frames[] = {0xc0, 0xc1, 0xc2};
    size_t n = 0;
    bytes[n++] = 0xff;
    bytes[n++] = 0xd8;
    for (uint32_t i = weir_rng_below(&rng, 5); i > 0; i--) {
        size_t len = 2 + weir_rng_below(&rng, 600);
        bytes[n++] = 0xff;
        for (uint32_t k = weir_rng_below(&rng, 3); k > 0; k--) {
            bytes[n++] = 0xff;
        }
        bytes[n++] = kinds[weir_rng_below(&rng, WEIR_ARRAY_LEN(kinds))];
        memset(bytes + n, 0xc0, len); /* looks like a frame's head */
        bytes[n] = (uint8_t)(len >> 8);
        bytes[n + 1] = (uint8_t)len;
        n += len;
    }
    const uint8_t head[] = {0xff,
                            frames[weir_rng_below(&rng, 3)],
                            0,
                            11,
                            8,
                            (uint8_t)(height >> 8),
                            (uint8_t)height,
                            (uint8_t)(width >> 8),
                            (uint8_t)width,
                            1,
                            1,
                            0x11,
                            0};
    memcpy(bytes + n, head, sizeof head);
    return n + sizeof head;
}

START_TEST(a_jpeg_that_is_too_large_is_refused_with_its_size)
{
    const struct camera_stream stream = {.codec = AV_CODEC_ID_MJPEG, .is_intra = true};
    struct camera_decoder *decoder;
    struct weir_error err;
    uint8_t bytes[4096 + AV_INPUT_BUFFER_PADDING_SIZE] = {0};
    char size[64];
    av_log_set_level(AV_LOG_QUIET);
    ck_assert_int_eq(camera_decoder_open(&stream, MAX_PIXELS, false, &decoder, &err), WEIR_OK);
    for (int i = 0; i < 500; i++) {
        int width = 1 + (int)weir_rng_below(&rng, i % 2 == 0 ? 200 : 65535);
        int height = 1 + (int)weir_rng_below(&rng, i % 2 == 0 ? 200 : 65535);
        const struct camera_unit unit = {
            .bytes = bytes, .n_bytes = write_jpeg(bytes, width, height), .is_key = true};
        bool is_large = (int64_t)width * height > MAX_PIXELS;
        weir_status status = camera_decoder_put(decoder, &unit, i, true, &err);
        ck_assert_msg(status == (is_large ? WEIR_ERR_LIMIT : WEIR_OK), "%d × %d: %d", width, height,
                      status);
        (void)snprintf(size, sizeof size, "%d × %d pixels", width, height);
        ck_assert(!is_large || strstr(err.message, size) != NULL);
    }
    camera_decoder_close(decoder);
}

END_TEST

int main(void)
{
    (void)test_seed(&rng);
    const struct weir_test_loop tests[] = {{a_jpeg_that_is_too_large_is_refused_with_its_size, 0}};
    return weir_test_run(weir_test_loops("camera_decoder", tests, WEIR_ARRAY_LEN(tests)));
}
