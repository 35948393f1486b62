#include "data/augment_private.h"

#include "data/image_private.h"

#include <math.h>

#define MIN_AREA    0.25f
#define MAX_RATIO   (4.0f / 3)
#define CROP_TRIES  10
#define COLOUR_STEP 0.4f

struct part {
    int x, y, width, height;
};

/** A random part; of a picture so narrow that none fits, the largest in the middle that does. */
static struct part random_part(const struct weir_image *image, struct weir_rng *rng)
{
    int width = image->width, height = image->height;
    for (int i = 0; i < CROP_TRIES; i++) {
        float area = (float)width * (float)height * augment_between(rng, MIN_AREA, 1);
        float ratio = expf(augment_between(rng, -logf(MAX_RATIO), logf(MAX_RATIO)));
        int w = (int)lroundf(sqrtf(area * ratio)), h = (int)lroundf(sqrtf(area / ratio));
        if (w > 0 && h > 0 && w <= width && h <= height) {
            return (struct part){(int)weir_rng_below(rng, (uint64_t)(width - w + 1)),
                                 (int)weir_rng_below(rng, (uint64_t)(height - h + 1)), w, h};
        }
    }
    float ratio = (float)width / (float)height;
    int w = ratio > MAX_RATIO ? (int)lroundf((float)height * MAX_RATIO) : width;
    int h = ratio < 1 / MAX_RATIO ? (int)lroundf((float)width * MAX_RATIO) : height;
    return (struct part){(width - w) / 2, (height - h) / 2, w, h};
}

static void flip(const struct weir_input *input, float *planes)
{
    for (int row = 0; row < input->c * input->h; row++, planes += input->w) {
        for (int x = 0; x < input->w / 2; x++) {
            float kept = planes[x];
            planes[x] = planes[input->w - 1 - x];
            planes[input->w - 1 - x] = kept;
        }
    }
}

/** Luma of BT.601, as everywhere in this domain. */
static float luma_at(const struct weir_input *input, const float *planes, size_t i)
{
    size_t plane = (size_t)input->h * (size_t)input->w;
    return input->c == 1
               ? planes[i]
               : 0.299f * planes[i] + 0.587f * planes[plane + i] + 0.114f * planes[2 * plane + i];
}

static float clamp(float value)
{
    return fminf(fmaxf(value, 0), 255);
}

enum colour_change { BRIGHTNESS, CONTRAST, SATURATION, COLOUR_CHANGE_COUNT };

/** value = factor * value + (1 - factor) * black, the mean luma, or the pixel's own luma. */
static void change_colour(enum colour_change change, const struct weir_input *input, float factor,
                          float *planes)
{
    size_t plane = (size_t)input->h * (size_t)input->w;
    float mean = 0;
    for (size_t i = 0; change == CONTRAST && i < plane; i++) {
        mean += luma_at(input, planes, i) / (float)plane;
    }
    for (size_t i = 0; i < plane; i++) {
        float towards = change == SATURATION ? luma_at(input, planes, i) : mean;
        for (int c = 0; c < input->c; c++) {
            float *value = &planes[(size_t)c * plane + i];
            *value = clamp(factor * *value + (1 - factor) * towards);
        }
    }
}

static void change_colours(const struct weir_input *input, struct weir_rng *rng, float *planes)
{
    enum colour_change order[COLOUR_CHANGE_COUNT] = {BRIGHTNESS, CONTRAST, SATURATION};

    for (size_t n = COLOUR_CHANGE_COUNT; n > 0; n--) {
        size_t i = (size_t)weir_rng_below(rng, n);
        enum colour_change change = order[i];
        order[i] = order[n - 1];
        change_colour(change, input, augment_between(rng, 1 - COLOUR_STEP, 1 + COLOUR_STEP),
                      planes);
    }
}

weir_status augment_photo(const struct weir_image *image, const struct weir_input *input,
                          struct weir_rng *rng, float *out)
{
    struct part part = random_part(image, rng);
    struct weir_image crop = {0};
    WEIR_TRY(weir_image_crop(image, part.x, part.y, part.width, part.height, &crop, NULL));
    weir_status status = image_to_planes(&crop, input, out);
    weir_image_fini(&crop);
    WEIR_TRY(status);
    if (augment_happens(rng, 0.5f)) {
        flip(input, out);
    }
    change_colours(input, rng, out);
    if (augment_happens(rng, 0.25f)) {
        augment_erase(input, out, rng);
    }
    return WEIR_OK;
}
