/* Bilinear resampling as a separable filter: for each output coordinate a run of source pixels and
 * their weights. The triangle is one source pixel wide when enlarging and as wide as the scale when
 * shrinking, which makes it an anti-aliasing filter (the construction of PIL's Resample.c). */
#include "data/image_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct taps {
    int *first, *n; /**< Per output coordinate: run of source pixels … */
    float *weights; /**< … and max_n weights each, which sum to 1. */
    int max_n;
};

static void taps_fini(struct taps *taps)
{
    free(taps->first);
    free(taps->n);
    free(taps->weights);
}

static weir_status taps_init(struct taps *taps, int from, int to)
{
    double scale = (double)from / to, support = scale > 1 ? scale : 1;
    taps->max_n = (int)ceil(support) * 2 + 1;
    taps->first = malloc((size_t)to * sizeof *taps->first);
    taps->n = malloc((size_t)to * sizeof *taps->n);
    taps->weights = malloc((size_t)to * (size_t)taps->max_n * sizeof *taps->weights);
    if (taps->first == NULL || taps->n == NULL || taps->weights == NULL) {
        taps_fini(taps);
        return WEIR_ERR_NOMEM;
    }
    for (int i = 0; i < to; i++) {
        double centre = (i + 0.5) * scale;
        int first = WEIR_MAX(0, (int)(centre - support + 0.5));
        int end = WEIR_MIN(from, (int)(centre + support + 0.5));
        float *weights = taps->weights + (size_t)i * (size_t)taps->max_n;
        double sum = 0;
        for (int j = first; j < end; j++) {
            double weight = fmax(0, 1 - fabs((j + 0.5 - centre) / support));
            weights[j - first] = (float)weight;
            sum += weight;
        }
        for (int j = first; j < end; j++) {
            weights[j - first] = (float)(weights[j - first] / sum);
        }
        taps->first[i] = first;
        taps->n[i] = end - first;
    }
    return WEIR_OK;
}

/** One source line to `width` output pixels. */
static void resample_line(const uint8_t *from, int channels, const struct taps *taps, int width,
                          float *to)
{
    for (int x = 0; x < width; x++) {
        const float *weights = taps->weights + (size_t)x * (size_t)taps->max_n;
        const uint8_t *pixel = from + (size_t)taps->first[x] * (size_t)channels;
        for (int c = 0; c < channels; c++) {
            float sum = 0;
            for (int j = 0; j < taps->n[x]; j++) {
                sum += weights[j] * pixel[j * channels + c];
            }
            *to++ = sum;
        }
    }
}

/** Output line y from the horizontally resampled lines. */
static void combine_lines(const float *lines, size_t row, const struct taps *taps, int y, float *to)
{
    const float *weights = taps->weights + (size_t)y * (size_t)taps->max_n;
    memset(to, 0, row * sizeof *to);
    for (int j = 0; j < taps->n[y]; j++) {
        const float *line = lines + (size_t)(taps->first[y] + j) * row;
        for (size_t i = 0; i < row; i++) {
            to[i] += weights[j] * line[i];
        }
    }
}

/** Bilinear resize to `out`: height × width × image->channels floats on the 0..255 scale. */
static weir_status resample(const struct weir_image *image, int width, int height, float *out)
{
    size_t row = (size_t)width * (size_t)image->channels;
    size_t source_row = (size_t)image->width * (size_t)image->channels;
    if (width == image->width && height == image->height) {
        for (size_t i = 0; i < row * (size_t)height; i++) {
            out[i] = image->pixels[i];
        }
        return WEIR_OK;
    }
    struct taps across = {0}, down = {0};
    WEIR_TRY(taps_init(&across, image->width, width));
    weir_status status = taps_init(&down, image->height, height);
    if (status != WEIR_OK) {
        taps_fini(&across);
        return status;
    }
    float *lines = malloc((size_t)image->height * row * sizeof *lines);
    if (lines == NULL) {
        status = WEIR_ERR_NOMEM;
    } else {
        for (int y = 0; y < image->height; y++) {
            resample_line(image->pixels + (size_t)y * source_row, image->channels, &across, width,
                          lines + (size_t)y * row);
        }
        for (int y = 0; y < height; y++) {
            combine_lines(lines, row, &down, y, out + (size_t)y * row);
        }
    }
    free(lines);
    taps_fini(&across);
    taps_fini(&down);
    return status;
}

weir_status weir_image_resize(const struct weir_image *image, int width, int height,
                              struct weir_image *out, struct weir_error *err)
{
    struct weir_image made;
    WEIR_TRY(weir_image_init(&made, width, height, image->channels, err));
    size_t n = (size_t)width * (size_t)height * (size_t)image->channels;
    float *values = malloc(n * sizeof *values);
    weir_status status = values == NULL ? WEIR_ERR_NOMEM : resample(image, width, height, values);
    if (status != WEIR_OK) {
        free(values);
        weir_image_fini(&made);
        return weir_error_set(err, status, "no memory to resize to %d x %d", width, height);
    }
    for (size_t i = 0; i < n; i++) {
        made.pixels[i] = (uint8_t)fminf(255, values[i] + 0.5f); // weights are never negative
    }
    free(values);
    *out = made;
    return WEIR_OK;
}

weir_status weir_input_check(const struct weir_input *input, struct weir_error *err)
{
    if ((input->c != 1 && input->c != 3) || input->h < 1 || input->w < 1 ||
        input->h > WEIR_IMAGE_MAX_SIDE || input->w > WEIR_IMAGE_MAX_SIDE) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "network input %d x %d x %d: expected 1 or 3 channels and sides "
                              "from 1 to %d",
                              input->c, input->h, input->w, WEIR_IMAGE_MAX_SIDE);
    }
    for (int c = 0; c < input->c; c++) {
        if (!isfinite(input->mean[c]) || !isfinite(input->std[c]) || input->std[c] <= 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "network input: channel %d has mean %g and std %g; std must be "
                                  "above 0",
                                  c, (double)input->mean[c], (double)input->std[c]);
        }
    }
    return WEIR_OK;
}

/** h × w RGB floats to one plane of luma or three of colour. */
static void split_colours(const float *pixels, int c, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++, pixels += 3) {
        if (c == 1) {
            out[i] = 0.299f * pixels[0] + 0.587f * pixels[1] + 0.114f * pixels[2];
        } else {
            out[i] = pixels[0];
            out[n + i] = pixels[1];
            out[2 * n + i] = pixels[2];
        }
    }
}

weir_status image_to_planes(const struct weir_image *image, const struct weir_input *input,
                            float *out)
{
    size_t n = (size_t)input->h * (size_t)input->w;
    if (image->channels == 1) {
        WEIR_TRY(resample(image, input->w, input->h, out));
        for (int c = 1; c < input->c; c++) {
            memcpy(out + (size_t)c * n, out, n * sizeof *out);
        }
        return WEIR_OK;
    }
    WEIR_AUTO(weir_auto_free) float *pixels = malloc(n * 3 * sizeof *pixels);
    if (pixels == NULL) {
        return WEIR_ERR_NOMEM;
    }
    WEIR_TRY(resample(image, input->w, input->h, pixels));
    split_colours(pixels, input->c, n, out);
    return WEIR_OK;
}

void image_normalise_planes(const struct weir_input *input, float *planes)
{
    size_t n = (size_t)input->h * (size_t)input->w;
    for (int c = 0; c < input->c; c++, planes += n) {
        float factor = 1 / (255 * input->std[c]), offset = -input->mean[c] / input->std[c];
        for (size_t i = 0; i < n; i++) {
            planes[i] = planes[i] * factor + offset;
        }
    }
}

weir_status weir_image_to_tensor(const struct weir_image *image, const struct weir_input *input,
                                 float *out, struct weir_error *err)
{
    WEIR_TRY(weir_input_check(input, err));
    weir_status status = image_to_planes(image, input, out);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "no memory to resize to %d x %d", input->w, input->h);
    }
    image_normalise_planes(input, out);
    return WEIR_OK;
}
