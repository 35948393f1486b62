/* How a camera was held: the orientation of EXIF (CIPA DC-008, tag 274), in the APP1 segment of a JPEG and the
 * chunk eXIf of a PNG. Nothing here is trusted, and nothing makes a good picture a bad one: what cannot be
 * read says nothing. */
#include "data/image_private.h"

#include <string.h>

#define UPRIGHT         1
#define TURNED_MAX      8
#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT      3
#define TYPE_LONG       4
#define ENTRY_BYTES     12

struct bytes {
    const uint8_t *at;
    size_t n;
};

static unsigned u16(const uint8_t *at, bool is_big)
{
    return is_big ? (unsigned)at[0] << 8 | at[1] : (unsigned)at[1] << 8 | at[0];
}

static uint32_t u32(const uint8_t *at, bool is_big)
{
    return is_big ? (uint32_t)u16(at, true) << 16 | u16(at + 2, true)
                  : (uint32_t)u16(at + 2, false) << 16 | u16(at, false);
}

/* The first directory of a TIFF. */
static int orientation_of(struct bytes tiff)
{
    bool is_big = tiff.n >= 8 && memcmp(tiff.at, "MM\0*", 4) == 0;
    if (tiff.n < 8 || (!is_big && memcmp(tiff.at, "II*\0", 4) != 0)) {
        return UPRIGHT;
    }
    size_t at = u32(tiff.at + 4, is_big);
    if (at > tiff.n || tiff.n - at < 2) {
        return UPRIGHT;
    }
    size_t n = WEIR_MIN((size_t)u16(tiff.at + at, is_big), (tiff.n - at - 2) / ENTRY_BYTES);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *entry = tiff.at + at + 2 + i * ENTRY_BYTES;
        unsigned type = u16(entry + 2, is_big);
        if (u16(entry, is_big) != TAG_ORIENTATION) {
            continue;
        }
        uint32_t value = type == TYPE_SHORT  ? u16(entry + 8, is_big)
                         : type == TYPE_LONG ? u32(entry + 8, is_big)
                                             : UPRIGHT;
        return value >= UPRIGHT && value <= TURNED_MAX ? (int)value : UPRIGHT;
    }
    return UPRIGHT;
}

/* Segments up to the first that pixels follow. */
static struct bytes find_in_jpeg(struct bytes file)
{
    static const uint8_t name[] = "Exif\0"; /* and a NUL */
    size_t at = 2;
    while (at + 4 <= file.n && file.at[at] == 0xff) {
        unsigned marker = file.at[at + 1];
        if (marker == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        size_t len = u16(file.at + at + 2, true);
        if (marker == 0xda || len < 2 || len > file.n - at - 2) {
            break;
        }
        if (marker == 0xe1 && len >= 2 + sizeof name && memcmp(file.at + at + 4, name, 6) == 0) {
            return (struct bytes){file.at + at + 4 + sizeof name, len - 2 - sizeof name};
        }
        at += 2 + len;
    }
    return (struct bytes){NULL, 0};
}

static struct bytes find_in_png(struct bytes file)
{
    size_t at = 8;
    while (file.n - at >= 12) {
        size_t len = u32(file.at + at, true);
        if (len > file.n - at - 12) {
            break;
        }
        if (memcmp(file.at + at + 4, "eXIf", 4) == 0) {
            return (struct bytes){file.at + at + 8, len};
        }
        at += 12 + len;
    }
    return (struct bytes){NULL, 0};
}

int image_orientation(enum weir_image_format format, const uint8_t *data, size_t size)
{
    const struct bytes file = {data, size};
    struct bytes tiff = {NULL, 0};
    if (format == WEIR_IMAGE_FORMAT_JPEG && size >= 2) {
        tiff = find_in_jpeg(file);
    } else if (format == WEIR_IMAGE_FORMAT_PNG && size >= 8) {
        tiff = find_in_png(file);
    }
    return orientation_of(tiff);
}

weir_status image_turn(struct weir_image *image, int orientation, struct weir_error *err)
{
    if (orientation == UPRIGHT) {
        return WEIR_OK;
    }
    bool is_across = orientation > 4; /* rows become columns */
    bool is_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool is_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    struct weir_image turned;
    WEIR_TRY(weir_image_init(&turned, is_across ? image->height : image->width,
                             is_across ? image->width : image->height, image->channels, err));
    size_t channels = (size_t)image->channels;
    uint8_t *to = turned.pixels;
    for (int y = 0; y < turned.height; y++) {
        for (int x = 0; x < turned.width; x++, to += channels) {
            int column = is_across ? y : x, row = is_across ? x : y;
            column = is_right ? image->width - 1 - column : column;
            row = is_below ? image->height - 1 - row : row;
            memcpy(to,
                   image->pixels + ((size_t)row * (size_t)image->width + (size_t)column) * channels,
                   channels);
        }
    }
    weir_image_fini(image);
    *image = turned;
    return WEIR_OK;
}
