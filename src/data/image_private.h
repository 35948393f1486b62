/** What image.c asks of each format, and the float resampler: internal to data. */
#ifndef WEIR_DATA_IMAGE_PRIVATE_H
#define WEIR_DATA_IMAGE_PRIVATE_H

#include "data/image.h"

/** Are these dimensions within the limits? @return CORRUPT for nothing, LIMIT for too much. */
weir_status image_check_size(uint64_t width, uint64_t height,
                             const struct weir_image_limits *limits, struct weir_error *err);

weir_status image_pnm_decode(const uint8_t *data, size_t size,
                             const struct weir_image_limits *limits, struct weir_image *out,
                             struct weir_error *err);
weir_status image_png_decode(const uint8_t *data, size_t size,
                             const struct weir_image_limits *limits, struct weir_image *out,
                             struct weir_error *err);
weir_status image_jpeg_decode(const uint8_t *data, size_t size,
                              const struct weir_image_limits *limits, struct weir_image *out,
                              struct weir_error *err);

/** How the picture in this file is to be turned: 1 as it is, 2 to 8 as EXIF has it. Also of what is damaged. */
int image_orientation(enum weir_image_format format, const uint8_t *data, size_t size);

/** Turn it upright. @return NOMEM; the picture is then as it was. */
weir_status image_turn(struct weir_image *image, int orientation,
                       struct weir_error *err) WEIR_MUST_CHECK;

weir_status image_pnm_encode(const struct weir_image *image, struct weir_buf *buf);
weir_status image_png_encode(const struct weir_image *image, struct weir_buf *buf,
                             struct weir_error *err);
weir_status image_jpeg_encode(const struct weir_image *image, int quality, struct weir_buf *buf,
                              struct weir_error *err);

/** Picture as c × h × w floats on the 0..255 scale: resized, channels converted. */
weir_status image_to_planes(const struct weir_image *image, const struct weir_input *input,
                            float *out);

/** 0..255 to (value / 255 − mean) / std, in place. */
void image_normalise_planes(const struct weir_input *input, float *planes);

#endif
