/* Netpbm's PGM and PPM, text (P2, P3) and binary (P5, P6): pgm(5), ppm(5). */
#include "data/image_private.h"

#include <stdio.h>

struct reader {
    const uint8_t *at, *end;
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/** Skip white space and comments ("#" to the end of the line), then read a number. */
static bool read_number(struct reader *reader, uint32_t *out)
{
    while (reader->at < reader->end && (is_space(*reader->at) || *reader->at == '#')) {
        if (*reader->at == '#') {
            while (reader->at < reader->end && *reader->at != '\n' && *reader->at != '\r') {
                reader->at++;
            }
        } else {
            reader->at++;
        }
    }
    uint32_t value = 0;
    const uint8_t *first = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') {
        if (value > 10000000) {
            return false;
        }
        value = value * 10 + (uint32_t)(*reader->at++ - '0');
    }
    *out = value;
    return reader->at > first;
}

static uint8_t scale(uint32_t value, uint32_t max)
{
    return max == 255 ? (uint8_t)value : (uint8_t)((value * 255 + max / 2) / max);
}

static weir_status read_text(struct reader *reader, size_t n, uint32_t max, uint8_t *out,
                             struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t value;
        if (!read_number(reader, &value)) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "PNM: no number where value %zu of %zu is due", i + 1, n);
        }
        if (value > max) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "PNM: value %u is above the maximum %u",
                                  value, max);
        }
        out[i] = scale(value, max);
    }
    return WEIR_OK;
}

static weir_status read_binary(struct reader *reader, size_t n, uint32_t max, uint8_t *out,
                               struct weir_error *err)
{
    const uint8_t *at = reader->at;
    for (size_t i = 0; i < n; i++) {
        uint32_t value = *at++;
        if (max > 255) {
            value = value << 8 | *at++;
        }
        if (value > max) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "PNM: value %u is above the maximum %u",
                                  value, max);
        }
        out[i] = scale(value, max);
    }
    return WEIR_OK;
}

weir_status image_pnm_decode(const uint8_t *data, size_t size,
                             const struct weir_image_limits *limits, struct weir_image *out,
                             struct weir_error *err)
{
    bool is_text = data[1] == '2' || data[1] == '3';
    int channels = data[1] == '2' || data[1] == '5' ? 1 : 3;
    struct reader reader = {data + 2, data + size};
    uint32_t width, height, max;
    if (!read_number(&reader, &width) || !read_number(&reader, &height) ||
        !read_number(&reader, &max) || max < 1 || max > 65535) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "PNM: no width, height and maximum (1 to 65535) in the header");
    }
    WEIR_TRY(image_check_size(width, height, limits, err));
    if (reader.at >= reader.end || !is_space(*reader.at)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "PNM: no white space behind the maximum");
    }
    reader.at++;
    // Before memory is taken: n values need so many bytes ("0 " or one or two bytes each).
    size_t n = (size_t)width * height * (size_t)channels;
    size_t needed = is_text ? 2 * n - 1 : max > 255 ? 2 * n : n;
    size_t there = (size_t)(reader.end - reader.at);
    if (there < needed) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "PNM: truncated: %zu bytes of pixels, %zu are needed", there, needed);
    }
    struct weir_image made;
    WEIR_TRY(weir_image_init(&made, (int)width, (int)height, channels, err));
    weir_status status = is_text ? read_text(&reader, n, max, made.pixels, err)
                                 : read_binary(&reader, n, max, made.pixels, err);
    if (status != WEIR_OK) {
        weir_image_fini(&made);
        return status;
    }
    *out = made;
    return WEIR_OK;
}

weir_status image_pnm_encode(const struct weir_image *image, struct weir_buf *buf)
{
    WEIR_TRY(weir_buf_printf(buf, "P%c\n%d %d\n255\n", image->channels == 1 ? '5' : '6',
                             image->width, image->height));
    size_t n = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    return weir_buf_append(buf, image->pixels, n);
}
