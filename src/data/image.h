/**
 * Pictures: 8-bit grey or RGB in memory, decoded from and encoded to PGM/PPM, PNG and JPEG.
 *
 * The decoder goes by content, never by name, and trusts nothing: dimensions are limited before any
 * memory is taken, a truncated or damaged file is CORRUPT with a sentence, also where the library
 * would have filled the rest with grey. All functions may run on many threads at once.
 */
#ifndef WEIR_DATA_IMAGE_H
#define WEIR_DATA_IMAGE_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Limits of a picture: per side, in pixels, and as a file. More is WEIR_ERR_LIMIT. */
#define WEIR_IMAGE_MAX_SIDE       16384
#define WEIR_IMAGE_MAX_PIXELS     (64u << 20)
#define WEIR_IMAGE_MAX_FILE_BYTES (64u << 20)

/** What one picture may cost to decode: memory by its pixels, time by its pixels times scans (a
 *  progressive JPEG is a pass over all pixels per scan; writers make ten). */
struct weir_image_limits {
    uint64_t max_pixels; /**< At most WEIR_IMAGE_MAX_PIXELS. */
    int max_scans;
};

/** For pictures that a person put there: training data, photos of a gallery. */
extern const struct weir_image_limits weir_image_limits_file;

/** For frames of cameras, that others wait behind: 16 Mi pixels, 32 scans. */
extern const struct weir_image_limits weir_image_limits_frame;

enum weir_image_format {
    WEIR_IMAGE_FORMAT_UNKNOWN,
    WEIR_IMAGE_FORMAT_PNM, /**< P2, P3, P5, P6 */
    WEIR_IMAGE_FORMAT_PNG,
    WEIR_IMAGE_FORMAT_JPEG,
};

struct weir_image {
    int width, height; /**< At least 1 in a decoded picture. */
    int channels;      /**< 1 grey or 3 RGB. */
    uint8_t *pixels;   /**< height × width × channels bytes, no padding. */
    bool is_view; /**< pixels belong to someone else: read only, weir_image_fini leaves them. */
};

/** Take zeroed memory. @return NOMEM; INVALID or LIMIT for a shape outside the limits. */
weir_status weir_image_init(struct weir_image *image, int width, int height, int channels,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Free the pixels (not those of a view) and zero the struct. NULL and a zeroed image are accepted.
 */
void weir_image_fini(struct weir_image *image);

/** What the first bytes say. 8 bytes are enough. */
enum weir_image_format weir_image_sniff(const void *data, size_t size);

/**
 * Decode a picture.
 *
 * PGM/PPM with any maxval up to 65535 is scaled to 0..255 with rounding; 16-bit PNG is cut to 8
 * bits; palettes are expanded; an alpha channel is dropped; CMYK JPEG is converted to RGB. A JPEG or PNG
 * whose EXIF says that the camera was turned comes upright, as people see it; damaged EXIF says nothing.
 * @param[out] out  New picture, free it with weir_image_fini. Written only on success.
 * @return UNSUPPORTED if the bytes are no picture of a known kind, CORRUPT if damaged or truncated,
 *         LIMIT, NOMEM.
 */
weir_status weir_image_decode(const void *data, size_t size, struct weir_image *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The same, within limits of the caller's. weir_image_decode takes weir_image_limits_file. */
weir_status weir_image_decode_within(const void *data, size_t size,
                                     const struct weir_image_limits *limits, struct weir_image *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Read and decode a file; errors name the path. As weir_image_decode, and NOT_FOUND, DENIED, IO.
 */
weir_status weir_image_load(const char *path, struct weir_image *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Encode, appending to `buf` (whose maximum then bounds the result: LIMIT).
 * PNM gives P5 or P6. `quality` 1..100 is JPEG's, ignored by the others. `buf` may hold a part of
 * the output on error.
 */
weir_status weir_image_encode(const struct weir_image *image, enum weir_image_format format,
                              int quality, struct weir_buf *buf,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Bilinear resize. Pixel centres at +0.5, edges clamped; when shrinking, the triangle widens to
 * cover all source pixels (anti-aliased, as PIL's BILINEAR, within one grey level). Cost: two
 * passes; about 2 · (scale + 1) multiplications per output value and pass.
 */
weir_status weir_image_resize(const struct weir_image *image, int width, int height,
                              struct weir_image *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Copy the rectangle at (x, y). @return INVALID if it does not lie inside the picture. */
weir_status weir_image_crop(const struct weir_image *image, int x, int y, int width, int height,
                            struct weir_image *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Copy mirrored left-right. */
weir_status weir_image_mirror(const struct weir_image *image, struct weir_image *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Copy as 1 channel (ITU-R BT.601 luma, as JPEG and PIL) or 3 (grey repeated). */
weir_status weir_image_convert(const struct weir_image *image, int channels, struct weir_image *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** What a network takes: C×H×W floats, (value / 255 − mean[c]) / std[c]. */
struct weir_input {
    int c, h, w;           /**< c is 1 or 3. */
    float mean[3], std[3]; /**< On the 0..1 scale, per channel; std must be > 0. */
};

/** @return INVALID with a sentence if a shape or std is unusable. */
weir_status weir_input_check(const struct weir_input *input,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The one way from a picture to a network's input, for evaluation and for serving alike: channels
 * converted, resized to h × w (aspect ratio not kept: crop first if it matters), normalised.
 * @param[out] out  c · h · w floats of the caller.
 */
weir_status weir_image_to_tensor(const struct weir_image *image, const struct weir_input *input,
                                 float *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
