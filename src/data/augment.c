#include "data/augment_private.h"

#include "data/image_private.h"

#include <math.h>
#include <string.h>

#define AUGMENT_COUNTER 0x41 /* keeps these Philox counters apart from those of the order */
#define PAD_PIXELS      4
#define CURVE_STEPS     256
#define GRID_ROWS       5
#define GRID_COLS       4

static const char *const names[] = {"none", "flip", "shift-flip", "face", "photo"};
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
                          "augment \"%s\": expected none, flip, shift-flip, face or photo", name);
}

static size_t planes_len(const struct weir_input *input)
{
    return (size_t)input->c * (size_t)input->h * (size_t)input->w;
}

size_t weir_augment_scratch_len(const struct weir_input *input)
{
    /* The resized picture, and the elastic grid's weights for each column. */
    return planes_len(input) + (size_t)input->w * GRID_COLS;
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

/* ---- face --------------------------------------------------------------------------------- */

/**
 * Where an output pixel comes from. Positions run from -1 to 1 over the picture, both ways.
 * Source = matrix * position + offset + displacement, the last interpolated from the grid, whose
 * outer points lie on the outer pixels.
 */
struct face_warp {
    float xx, xy, x0, yx, yy, y0;
    float grid_x[GRID_ROWS][GRID_COLS], grid_y[GRID_ROWS][GRID_COLS];
};

static struct face_warp random_warp(const struct weir_input *input, struct weir_rng *rng)
{
    float angle = augment_between(rng, -12, 12) * (float)M_PI / 180;
    float scale = expf(augment_between(rng, -0.12f, 0.12f)),
          aspect = expf(augment_between(rng, -0.08f, 0.08f));
    float shear = augment_between(rng, -0.06f, 0.06f);
    float cosine = cosf(angle) * scale, sine = sinf(angle) * scale;
    float ratio = (float)input->h / (float)input->w; /* so that a rotation is one in pixels */
    struct face_warp warp = {.xx = cosine * aspect,
                             .xy = (shear - sine) * ratio,
                             .yx = sine / ratio,
                             .yy = cosine / aspect};
    warp.x0 = augment_between(rng, -0.1f, 0.1f);
    warp.y0 = augment_between(rng, -0.1f, 0.1f);
    for (int row = 0; row < GRID_ROWS; row++) {
        for (int col = 0; col < GRID_COLS; col++) {
            warp.grid_x[row][col] = (float)(0.03 * weir_rng_normal(rng));
            warp.grid_y[row][col] = (float)(0.03 * weir_rng_normal(rng));
        }
    }
    return warp;
}

/** Weights of n points for place i of len, by cubic convolution with a = -3/4 (Keys, 1981; as
 *  PyTorch's bicubic); points beyond the ends are the end points. */
static void grid_weights(int i, int len, int n, float *out_weights)
{
    float place = len > 1 ? (float)i * (float)(n - 1) / (float)(len - 1) : 0;
    int left = WEIR_MIN((int)place, n - 2);
    memset(out_weights, 0, (size_t)n * sizeof *out_weights);
    for (int k = left - 1; k <= left + 2; k++) {
        float d = fabsf(place - (float)k);
        float near = (1.25f * d - 2.25f) * d * d + 1;
        float far = ((-0.75f * d + 3.75f) * d - 6) * d + 3;
        out_weights[WEIR_MIN(WEIR_MAX(k, 0), n - 1)] += d <= 1 ? near : d < 2 ? far : 0;
    }
}

/** The grid's displacement in row y, still by column. */
static void grid_row(const struct face_warp *warp, int y, int h, float out_x[GRID_COLS],
                     float out_y[GRID_COLS])
{
    float weights[GRID_ROWS];
    grid_weights(y, h, GRID_ROWS, weights);
    for (int col = 0; col < GRID_COLS; col++) {
        out_x[col] = out_y[col] = 0;
        for (int row = 0; row < GRID_ROWS; row++) {
            out_x[col] += weights[row] * warp->grid_x[row][col];
            out_y[col] += weights[row] * warp->grid_y[row][col];
        }
    }
}

/** Pixel (u, v) of all channels, bilinear, edges clamped; `to` has the planes' distances too. */
static void sample(const struct weir_input *input, const float *from, float u, float v, float *to)
{
    int w = input->w, h = input->h;
    size_t plane = (size_t)h * (size_t)w;
    u = fminf(fmaxf(u, 0), (float)(w - 1));
    v = fminf(fmaxf(v, 0), (float)(h - 1));
    int left = (int)u, top = (int)v;
    int right = WEIR_MIN(left + 1, w - 1), bottom = WEIR_MIN(top + 1, h - 1);
    float fu = u - (float)left, fv = v - (float)top;
    for (int c = 0; c < input->c; c++, from += plane, to += plane) {
        float upper = from[top * w + left] * (1 - fu) + from[top * w + right] * fu;
        float lower = from[bottom * w + left] * (1 - fu) + from[bottom * w + right] * fu;
        *to = upper * (1 - fv) + lower * fv;
    }
}

static void warp_face(const struct weir_input *input, const float *from,
                      const struct face_warp *warp, float *column_weights, float *to)
{
    int w = input->w, h = input->h;
    for (int x = 0; x < w; x++) {
        grid_weights(x, w, GRID_COLS, column_weights + x * GRID_COLS);
    }
    for (int y = 0; y < h; y++) {
        float row_x[GRID_COLS], row_y[GRID_COLS], py = augment_position(y, h);
        grid_row(warp, y, h, row_x, row_y);
        for (int x = 0; x < w; x++, to++) {
            float px = augment_position(x, w);
            float u = warp->xx * px + warp->xy * py + warp->x0;
            float v = warp->yx * px + warp->yy * py + warp->y0;
            for (int col = 0; col < GRID_COLS; col++) {
                u += column_weights[x * GRID_COLS + col] * row_x[col];
                v += column_weights[x * GRID_COLS + col] * row_y[col];
            }
            sample(input, from, ((u + 1) * (float)w - 1) / 2, ((v + 1) * (float)h - 1) / 2, to);
        }
    }
}

/** value^gamma on the 0..1 scale, through a table. */
static void change_gamma(float *values, size_t n, float gamma)
{
    float curve[CURVE_STEPS + 1];
    for (int i = 0; i <= CURVE_STEPS; i++) {
        curve[i] = 255 * powf((float)i / CURVE_STEPS, gamma);
    }
    for (size_t i = 0; i < n; i++) {
        float place = fminf(fmaxf(values[i], 0), 255) * CURVE_STEPS / 255;
        int step = WEIR_MIN((int)place, CURVE_STEPS - 1);
        values[i] = curve[step] + (curve[step + 1] - curve[step]) * (place - (float)step);
    }
}

/** Light from a side: a factor that is 1 in the middle. */
static void change_light(const struct weir_input *input, float *planes, struct weir_rng *rng)
{
    float across = augment_between(rng, -0.15f, 0.15f), down = augment_between(rng, -0.15f, 0.15f);
    for (int c = 0; c < input->c; c++) {
        for (int y = 0; y < input->h; y++) {
            float row = 1 + down * augment_position(y, input->h);
            for (int x = 0; x < input->w; x++) {
                *planes++ *= row + across * augment_position(x, input->w);
            }
        }
    }
}

/** The sum of a word's four bytes is nearly normal (Irwin-Hall), deviation 147.8. */
static void add_noise(const struct weir_input *input, float *planes, float deviation,
                      struct weir_rng *rng)
{
    size_t plane = (size_t)input->h * (size_t)input->w;
    for (int c = 0; c < input->c; c++) {
        float factor = deviation * 255 * input->std[c] / 147.8f;
        for (size_t i = 0; i < plane; i++) {
            uint32_t word = weir_rng_u32(rng);
            uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
            *planes++ += ((float)sum - 510) * factor;
        }
    }
}

static void change_face(const struct weir_input *input, float *scratch, struct weir_rng *rng,
                        float *out)
{
    size_t n = planes_len(input);
    struct face_warp warp = random_warp(input, rng);
    warp_face(input, scratch, &warp, scratch + n, out);
    change_gamma(out, n, expf(augment_between(rng, -0.2f, 0.2f)));
    change_light(input, out, rng);
    if (augment_happens(rng, 0.5f)) {
        augment_erase(input, out, rng);
    }
    add_noise(input, out, augment_between(rng, 0, 0.2f), rng);
}

/** A rectangle of one grey; it may reach over the edge. */
void augment_erase(const struct weir_input *input, float *planes, struct weir_rng *rng)
{
    float cx = augment_between(rng, -1, 1), cy = augment_between(rng, -1, 1);
    float half_w = augment_between(rng, 0.1f, 0.35f), half_h = augment_between(rng, 0.1f, 0.35f);
    float grey = augment_between(rng, 0, 255);
    for (int c = 0; c < input->c; c++) {
        for (int y = 0; y < input->h; y++) {
            bool is_row = fabsf(augment_position(y, input->h) - cy) < half_h;
            for (int x = 0; x < input->w; x++, planes++) {
                if (is_row && fabsf(augment_position(x, input->w) - cx) < half_w) {
                    *planes = grey;
                }
            }
        }
    }
}

/** The policies that change the resized picture. */
static weir_status change_resized(enum weir_augment augment, const struct weir_image *image,
                                  const struct weir_input *input, float *scratch,
                                  struct weir_rng *rng, float *out)
{
    WEIR_TRY(image_to_planes(image, input, scratch));
    if (augment == WEIR_AUGMENT_FACE) {
        change_face(input, scratch, rng, out);
        return WEIR_OK;
    }
    bool is_flipped = augment_happens(rng, 0.5f);
    int reach = augment == WEIR_AUGMENT_SHIFT_FLIP ? PAD_PIXELS : 0;
    int dx = (int)weir_rng_below(rng, 2 * (uint64_t)reach + 1) - reach;
    int dy = (int)weir_rng_below(rng, 2 * (uint64_t)reach + 1) - reach;
    shift(input, scratch, dx, dy, is_flipped, out);
    return WEIR_OK;
}

weir_status weir_augment_apply(enum weir_augment augment, struct weir_augment_key key,
                               const struct weir_image *image, const struct weir_input *input,
                               float *scratch, float *out, struct weir_error *err)
{
    if (augment == WEIR_AUGMENT_NONE) {
        return weir_image_to_tensor(image, input, out, err);
    }
    WEIR_TRY(weir_input_check(input, err));
    struct weir_rng rng = rng_of(key);
    weir_status status = augment == WEIR_AUGMENT_PHOTO
                             ? augment_photo(image, input, &rng, out)
                             : change_resized(augment, image, input, scratch, &rng, out);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "no memory to resize to %d x %d", input->w, input->h);
    }
    image_normalise_planes(input, out);
    return WEIR_OK;
}
