#include "data/augment.h"

#include "base/rng.h"
#include "data/image_private.h"

#include <math.h>
#include <string.h>

#define AUGMENT_COUNTER 0x41 /* keeps these Philox counters apart from those of the order */
#define PAD_PIXELS      4
#define CURVE_STEPS     256

static const char *const names[] = {"none", "flip", "shift-flip", "face"};
_Static_assert(WEIR_ARRAY_LEN(names) == WEIR_AUGMENT_COUNT, "one name per policy");

const char *weir_augment_name(enum weir_augment augment)
{
    return (unsigned)augment < WEIR_AUGMENT_COUNT ? names[augment] : NULL;
}

weir_status weir_augment_from_name(const char *name, enum weir_augment *out, struct weir_error *err)
{
    for (unsigned i = 0; i < WEIR_AUGMENT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum weir_augment)i;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "augment \"%s\": expected none, flip, shift-flip or face", name);
}

size_t weir_augment_scratch_len(const struct weir_input *input)
{
    return (size_t)input->c * (size_t)input->h * (size_t)input->w;
}

static struct weir_rng rng_of(struct weir_augment_key key)
{
    uint32_t random[4];
    weir_philox(key.seed, (uint64_t)AUGMENT_COUNTER << 56 ^ key.epoch, key.sample, random);
    struct weir_rng rng;
    weir_rng_init(&rng, random[0] | (uint64_t)random[1] << 32,
                  random[2] | (uint64_t)random[3] << 32);
    return rng;
}

static float between(struct weir_rng *rng, float low, float high)
{
    return low + (high - low) * weir_rng_f32(rng);
}

static bool happens(struct weir_rng *rng, float probability)
{
    return weir_rng_f32(rng) < probability;
}

/** Copy moved by whole pixels and maybe mirrored; what comes from outside is black. */
static void shift(const struct weir_input *input, const float *from, int dx, int dy,
                  bool is_flipped, float *to)
{
    size_t plane = (size_t)input->h * (size_t)input->w;
    for (int c = 0; c < input->c; c++, from += plane) {
        for (int y = 0; y < input->h; y++) {
            int source_y = y + dy;
            for (int x = 0; x < input->w; x++) {
                int source_x = (is_flipped ? input->w - 1 - x : x) + dx;
                bool is_inside =
                    source_x >= 0 && source_x < input->w && source_y >= 0 && source_y < input->h;
                *to++ = is_inside ? from[source_y * input->w + source_x] : 0;
            }
        }
    }
}

/** Source position = matrix · output position + offset, in pixels. */
struct affine {
    float xx, xy, x0, yx, yy, y0;
};

static struct affine random_affine(const struct weir_input *input, struct weir_rng *rng)
{
    float angle = between(rng, -12, 12) * (float)M_PI / 180;
    float scale = between(rng, 0.88f, 1.12f);
    float dx = between(rng, -0.06f, 0.06f) * (float)input->w;
    float dy = between(rng, -0.06f, 0.06f) * (float)input->h;
    float mirror = happens(rng, 0.5f) ? -1 : 1;
    float cosine = cosf(angle) / scale, sine = sinf(angle) / scale;
    struct affine a = {.xx = mirror * cosine, .xy = -sine, .yx = mirror * sine, .yy = cosine};
    // The centre of the output comes from the centre of the source, moved by (dx, dy).
    float cx = (float)(input->w - 1) / 2, cy = (float)(input->h - 1) / 2;
    a.x0 = cx + dx - a.xx * cx - a.xy * cy;
    a.y0 = cy + dy - a.yx * cx - a.yy * cy;
    return a;
}

static void warp(const struct weir_input *input, const float *from, const struct affine *a,
                 float *to)
{
    int w = input->w, h = input->h;
    size_t plane = (size_t)h * (size_t)w;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++, to++) {
            float u = a->xx * (float)x + a->xy * (float)y + a->x0;
            float v = a->yx * (float)x + a->yy * (float)y + a->y0;
            u = fminf(fmaxf(u, 0), (float)(w - 1));
            v = fminf(fmaxf(v, 0), (float)(h - 1));
            int left = (int)u, top = (int)v;
            int right = WEIR_MIN(left + 1, w - 1), bottom = WEIR_MIN(top + 1, h - 1);
            float fu = u - (float)left, fv = v - (float)top;
            for (int c = 0; c < input->c; c++) {
                const float *p = from + (size_t)c * plane;
                float upper = p[top * w + left] * (1 - fu) + p[top * w + right] * fu;
                float lower = p[bottom * w + left] * (1 - fu) + p[bottom * w + right] * fu;
                to[(size_t)c * plane] = upper * (1 - fv) + lower * fv;
            }
        }
    }
}

/** Brightness, contrast about the picture's own mean, gamma: one curve over 0..255. */
static void relight(float *values, size_t n, struct weir_rng *rng)
{
    float brightness = between(rng, 0.75f, 1.25f), contrast = between(rng, 0.75f, 1.3f);
    float gamma = between(rng, 0.75f, 1.35f), mean = 0;
    for (size_t i = 0; i < n; i++) {
        mean += values[i];
    }
    mean /= (float)n;
    float curve[CURVE_STEPS + 1];
    for (int i = 0; i <= CURVE_STEPS; i++) {
        float value = (((float)i * 255 / CURVE_STEPS - mean) * contrast + mean) * brightness;
        value = fminf(fmaxf(value / 255, 0), 1);
        curve[i] = 255 * powf(value, gamma);
    }
    for (size_t i = 0; i < n; i++) {
        float place = fminf(fmaxf(values[i], 0), 255) * CURVE_STEPS / 255;
        int step = WEIR_MIN((int)place, CURVE_STEPS - 1);
        values[i] = curve[step] + (curve[step + 1] - curve[step]) * (place - (float)step);
    }
}

/** One plane with the binomial kernel 1 2 1 in both directions, edges clamped. */
static void blur_plane(const float *from, int h, int w, float *to)
{
    for (int y = 0; y < h; y++) {
        const float *rows[] = {from + WEIR_MAX(y - 1, 0) * w, from + y * w,
                               from + WEIR_MIN(y + 1, h - 1) * w};
        for (int x = 0; x < w; x++) {
            int left = WEIR_MAX(x - 1, 0), right = WEIR_MIN(x + 1, w - 1);
            float sum = 0;
            for (int k = 0; k < 3; k++) {
                float line = rows[k][left] + 2 * rows[k][x] + rows[k][right];
                sum += k == 1 ? 2 * line : line;
            }
            *to++ = sum / 16;
        }
    }
}

static void blur(const struct weir_input *input, float *planes, float *scratch)
{
    size_t plane = (size_t)input->h * (size_t)input->w;
    memcpy(scratch, planes, plane * (size_t)input->c * sizeof *planes);
    for (int c = 0; c < input->c; c++) {
        blur_plane(scratch + (size_t)c * plane, input->h, input->w, planes + (size_t)c * plane);
    }
}

/** Sensor noise: the sum of a word's four bytes is nearly normal (Irwin-Hall), deviation 147.8. */
static void add_noise(float *values, size_t n, float deviation, struct weir_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t word = weir_rng_u32(rng);
        uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
        values[i] += ((float)sum - 510) * (deviation / 147.8f);
    }
}

/** A rectangle of 2..15 % of the area, sides 1:2 to 2:1, set to the mean (0 once normalised). */
static void erase(const struct weir_input *input, float *planes, struct weir_rng *rng)
{
    float area = between(rng, 0.02f, 0.15f) * (float)input->h * (float)input->w;
    float aspect = expf(between(rng, -0.693f, 0.693f));
    int h = WEIR_MIN(input->h, WEIR_MAX(1, (int)sqrtf(area * aspect)));
    int w = WEIR_MIN(input->w, WEIR_MAX(1, (int)sqrtf(area / aspect)));
    int top = (int)weir_rng_below(rng, (uint64_t)(input->h - h) + 1);
    int left = (int)weir_rng_below(rng, (uint64_t)(input->w - w) + 1);
    for (int c = 0; c < input->c; c++) {
        for (int y = top; y < top + h; y++) {
            float *line = planes + ((size_t)c * (size_t)input->h + (size_t)y) * (size_t)input->w;
            for (int x = left; x < left + w; x++) {
                line[x] = 255 * input->mean[c];
            }
        }
    }
}

static void change_face(const struct weir_input *input, float *scratch, struct weir_rng *rng,
                        float *out)
{
    size_t n = weir_augment_scratch_len(input);
    struct affine affine = random_affine(input, rng);
    warp(input, scratch, &affine, out);
    relight(out, n, rng);
    if (happens(rng, 0.2f)) {
        blur(input, out, scratch);
    }
    if (happens(rng, 0.3f)) {
        add_noise(out, n, between(rng, 0, 10), rng);
    }
    if (happens(rng, 0.25f)) {
        erase(input, out, rng);
    }
}

weir_status weir_augment_apply(enum weir_augment augment, struct weir_augment_key key,
                               const struct weir_image *image, const struct weir_input *input,
                               float *scratch, float *out, struct weir_error *err)
{
    if (augment == WEIR_AUGMENT_NONE) {
        return weir_image_to_tensor(image, input, out, err);
    }
    WEIR_TRY(weir_input_check(input, err));
    weir_status status = image_to_planes(image, input, scratch);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "no memory to resize to %d x %d", input->w, input->h);
    }
    struct weir_rng rng = rng_of(key);
    if (augment == WEIR_AUGMENT_FACE) {
        change_face(input, scratch, &rng, out);
    } else {
        bool is_flipped = happens(&rng, 0.5f);
        int reach = augment == WEIR_AUGMENT_SHIFT_FLIP ? PAD_PIXELS : 0;
        int dx = (int)weir_rng_below(&rng, 2 * (uint64_t)reach + 1) - reach;
        int dy = (int)weir_rng_below(&rng, 2 * (uint64_t)reach + 1) - reach;
        shift(input, scratch, dx, dy, is_flipped, out);
    }
    image_normalise_planes(input, out);
    return WEIR_OK;
}
