/*
 * Winograd's convolutions against sums in double. Tolerances, over the largest element and over the
 * root of the mean square of all: 8e-6 and 4e-6. The worst seen is half of that, of 512 terms. What
 * is convolved is as in a network, behind a ReLU: not around zero, where errors would cancel.
 */
#include "winograd_private.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TOLERANCE 8e-6
#define RMS_TOLERANCE     4e-6

enum { FACE_W = 92, FACE_H = 112 }; /* of a picture of ORL */

/* A convolution with its tensors, results and the right ones. */
struct winograd_fixture {
    struct winograd_form form;
    size_t n_x, n_y, n_kernels;
    float *x, *dy, *kernels, *bias, *y, *dx, *d_kernels, *d_bias;
    double *right_y, *right_dx, *right_kernels, *right_bias;
};

static float *floats(size_t n)
{
    float *at = calloc(n, sizeof(*at));
    ck_assert_ptr_nonnull(at);
    return at;
}

static void fill(struct weir_rng *rng, float *values, size_t n, float scale, bool has_relu)
{
    for (size_t i = 0; i < n; i++) {
        float value = scale * (float)weir_rng_normal(rng);
        values[i] = has_relu && value < 0 ? 0 : value;
    }
}

static struct winograd_fixture make_bench(struct winograd_form form, uint64_t seed)
{
    struct winograd_fixture b = {.form = form};
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    b.n_x = (size_t)form.n * (size_t)form.h * (size_t)form.w * (size_t)form.c;
    b.n_y = (size_t)form.n * (size_t)form.out_h * (size_t)form.out_w * (size_t)form.k;
    b.n_kernels = 9 * (size_t)form.c * (size_t)form.k;
    b.x = floats(b.n_x);
    b.dx = floats(b.n_x);
    b.dy = floats(b.n_y);
    b.y = floats(b.n_y);
    b.kernels = floats(b.n_kernels);
    b.d_kernels = floats(b.n_kernels);
    b.bias = floats((size_t)form.k);
    b.d_bias = floats((size_t)form.k);
    b.right_y = calloc(b.n_y, sizeof(double));
    b.right_dx = calloc(b.n_x, sizeof(double));
    b.right_kernels = calloc(b.n_kernels, sizeof(double));
    b.right_bias = calloc((size_t)form.k, sizeof(double));
    fill(&rng, b.x, b.n_x, 1, true);
    fill(&rng, b.dy, b.n_y, 1, false);
    fill(&rng, b.kernels, b.n_kernels, sqrtf(2 / (9 * (float)form.c)), false);
    fill(&rng, b.bias, (size_t)form.k, 0.1F, false);
    return b;
}

static void free_bench(struct winograd_fixture *b)
{
    void *const all[] = {b->x,       b->dy,       b->kernels,       b->bias,
                         b->y,       b->dx,       b->d_kernels,     b->d_bias,
                         b->right_y, b->right_dx, b->right_kernels, b->right_bias};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        free(all[i]);
    }
}

/* Adds what output `y` at (h, w) of a picture takes from each pixel, and gives to each gradient. */
static void add_pixel(struct winograd_fixture *b, int32_t n, int32_t h, int32_t w, size_t y,
                      size_t k)
{
    const struct winograd_form *f = &b->form;
    for (int32_t tap = 0; tap < 9; tap++) {
        int32_t at_h = h + tap / 3 - f->pad_h, at_w = w + tap % 3 - f->pad_w;
        if (at_h < 0 || at_w < 0 || at_h >= f->h || at_w >= f->w) {
            continue;
        }
        size_t x = (size_t)((n * f->h + at_h) * f->w + at_w) * (size_t)f->c;
        for (size_t c = 0; c < (size_t)f->c; c++) {
            size_t i = (k * (size_t)f->c + c) * 9 + (size_t)tap;
            b->right_y[y] += (double)b->x[x + c] * (double)b->kernels[i];
            b->right_dx[x + c] += (double)b->dy[y] * (double)b->kernels[i];
            b->right_kernels[i] += (double)b->dy[y] * (double)b->x[x + c];
        }
    }
}

static void compute_right(struct winograd_fixture *b)
{
    const struct winograd_form *f = &b->form;
    size_t n_k = (size_t)f->k;
    for (size_t y = 0; y < b->n_y; y++) {
        int32_t pixel = (int32_t)(y / n_k), picture = f->out_h * f->out_w;
        add_pixel(b, pixel / picture, pixel % picture / f->out_w, pixel % f->out_w, y, y % n_k);
        b->right_y[y] += (double)b->bias[y % n_k];
        b->right_bias[y % n_k] += (double)b->dy[y];
    }
}

static void *scratch_of(size_t n_bytes)
{
    void *scratch = aligned_alloc(64, winograd_round_up(n_bytes, 64));
    ck_assert_ptr_nonnull(scratch);
    memset(scratch, 0xff, n_bytes); /* NaN: nothing may be read before it is written */
    return scratch;
}

/* From x to y, or flipped from dy to dx. */
static void convolve(const struct winograd_fixture *b, bool is_flipped,
                     struct winograd_convolution job)
{
    const struct winograd_form *f = &b->form;
    job.form = *f;
    if (is_flipped) {
        job.form = (struct winograd_form){.n = f->n,
                                          .c = f->k,
                                          .h = f->out_h,
                                          .w = f->out_w,
                                          .k = f->c,
                                          .out_h = f->h,
                                          .out_w = f->w,
                                          .pad_h = 2 - f->pad_h,
                                          .pad_w = 2 - f->pad_w};
    }
    float *points = scratch_of(winograd_points_bytes(job.form.c, job.form.k));
    winograd_kernels()->kernels(b->kernels, f->k, f->c, is_flipped, points);
    job.points = points;
    job.scratch = scratch_of(winograd_scratch_bytes(&job.form));
    winograd_kernels()->convolve(&job);
    free(job.scratch);
    free(points);
}

static void run(struct winograd_fixture *b)
{
    convolve(b, false, (struct winograd_convolution){.x = b->x, .bias = b->bias, .y = b->y});
    convolve(b, true, (struct winograd_convolution){.x = b->dy, .y = b->dx});
    struct winograd_gradient job = {.form = b->form,
                                    .x = b->x,
                                    .dy = b->dy,
                                    .d_kernels = b->d_kernels,
                                    .d_bias = b->d_bias,
                                    .scratch =
                                        scratch_of(winograd_gradient_scratch_bytes(&b->form))};
    winograd_kernels()->gradient(&job);
    free(job.scratch);
}

static void expect(const float *got, const double *right, size_t n, const char *what,
                   const char *part)
{
    double largest = 0, worst = 0, squares = 0, errors = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - right[i]);
        largest = fmax(largest, fabs(right[i]));
        worst = d <= worst ? worst : d; /* NaN becomes the worst */
        squares += right[i] * right[i];
        errors += d * d;
    }
    ck_assert_msg(worst <= LARGEST_TOLERANCE * largest &&
                      errors <= RMS_TOLERANCE * RMS_TOLERANCE * squares,
                  "%s, %s: %.2g of the largest, rms %.2g", what, part, worst / largest,
                  sqrt(errors / squares));
}

static void compare(struct winograd_fixture *b, const char *what)
{
    compute_right(b);
    run(b);
    expect(b->y, b->right_y, b->n_y, what, "y");
    expect(b->dx, b->right_dx, b->n_x, what, "dx");
    expect(b->d_kernels, b->right_kernels, b->n_kernels, what, "gradient of kernels");
    expect(b->d_bias, b->right_bias, (size_t)b->form.k, what, "gradient of biases");
    free_bench(b);
}

static struct winograd_form form_of(int32_t n, int32_t c, int32_t k, int32_t h, int32_t w,
                                    int32_t pad)
{
    return (struct winograd_form){.n = n,
                                  .c = c,
                                  .h = h,
                                  .w = w,
                                  .k = k,
                                  .out_h = h + 2 * pad - 2,
                                  .out_w = w + 2 * pad - 2,
                                  .pad_h = pad,
                                  .pad_w = pad};
}

START_TEST(all_three_directions_are_right_for_odd_shapes)
{
    /* pictures, channels in and out, height, width, padding */
    static const int32_t shapes[][6] = {
        {1, 1, 1, 3, 3, 0},     {1, 1, 1, 1, 1, 1},    {2, 3, 5, 7, 9, 0},   {1, 16, 32, 8, 8, 1},
        {2, 17, 33, 13, 11, 1}, {1, 31, 48, 4, 5, 2},  {3, 48, 96, 6, 5, 1}, {1, 64, 64, 30, 26, 2},
        {5, 40, 24, 7, 7, 1},   {1, 96, 160, 12, 3, 1}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shapes); i++) {
        const int32_t *s = shapes[i];
        char what[96];
        snprintf(what, sizeof(what), "%d of %d x %d, %d -> %d channels, padding %d", s[0], s[3],
                 s[4], s[1], s[2], s[5]);
        struct winograd_fixture b = make_bench(form_of(s[0], s[1], s[2], s[3], s[4], s[5]), 3 + i);
        compare(&b, what);
    }
}

END_TEST

START_TEST(sums_over_many_channels_and_patches_are_right)
{
    struct winograd_fixture b = make_bench(form_of(1, 512, 32, 14, 14, 1), 1);
    compare(&b, "512 -> 32 channels");
    b = make_bench(form_of(1, 32, 512, 14, 14, 1), 2);
    compare(&b, "32 -> 512 channels");
    b = make_bench(form_of(6, 32, 32, 40, 40, 1), 3);
    compare(&b, "600 patches");
}

END_TEST

/* A photograph's first layer: 32 kernels of 3x3 over one channel, then a ReLU. */
static void fill_from_photograph(struct winograd_fixture *b, const uint8_t *pixels)
{
    struct weir_rng rng;
    float kernels[32][9];
    weir_rng_init(&rng, 9, 0);
    fill(&rng, &kernels[0][0], sizeof(kernels) / sizeof(float), 0.5F, false);
    for (size_t i = 0; i < b->n_x; i++) {
        size_t k = i % 32, h = i / 32 / (size_t)b->form.w, w = i / 32 % (size_t)b->form.w;
        float sum = 0;
        for (size_t tap = 0; tap < 9; tap++) {
            size_t at = (h + tap / 3) * FACE_W + w + tap % 3;
            sum += kernels[k][tap] * (float)pixels[at] / 255;
        }
        b->x[i] = fmaxf(sum, 0);
    }
}

START_TEST(activations_of_a_photograph_are_within_tolerance)
{
    const char *data = getenv("WEIR_SHARED_DATA");
    char path[4096];
    uint8_t file[2 * FACE_W * FACE_H];
    size_t len = 0;
    if (!data) {
        return;
    }
    snprintf(path, sizeof(path), "%s/orl_faces/s1/1.pgm", data);
    if (weir_file_read_into(path, file, sizeof(file), &len, NULL) == WEIR_OK) {
        ck_assert_uint_gt(len, FACE_W * FACE_H);
        struct winograd_fixture b = make_bench(form_of(1, 32, 64, FACE_H - 2, FACE_W - 2, 1), 4);
        fill_from_photograph(&b, file + len - FACE_W * FACE_H); /* behind the header */
        compare(&b, "a photograph behind a convolution and a ReLU");
    }
}

END_TEST

START_TEST(a_picture_has_the_same_bits_alone_and_in_a_batch)
{
    struct winograd_form form = form_of(5, 24, 40, 10, 7, 1);
    struct winograd_fixture b = make_bench(form, 8),
                            one = make_bench(form_of(1, 24, 40, 10, 7, 1), 8);
    size_t n_x = one.n_x, n_y = one.n_y;
    convolve(&b, false, (struct winograd_convolution){.x = b.x, .y = b.y});
    memcpy(one.kernels, b.kernels, b.n_kernels * sizeof(float));
    memcpy(one.x, b.x + 3 * n_x, n_x * sizeof(float));
    convolve(&one, false, (struct winograd_convolution){.x = one.x, .y = one.y});
    ck_assert_mem_eq(one.y, b.y + 3 * n_y, n_y * sizeof(float));
    free_bench(&b);
    free_bench(&one);
}

END_TEST

START_TEST(results_take_in_what_is_added_and_lose_what_is_negative)
{
    struct winograd_fixture b = make_bench(form_of(1, 20, 20, 9, 9, 1), 6);
    convolve(&b, false, (struct winograd_convolution){.x = b.x, .bias = b.bias, .y = b.y});
    float *plain = floats(b.n_y);
    memcpy(plain, b.y, b.n_y * sizeof(float));
    memcpy(b.y, b.x, b.n_y * sizeof(float));
    convolve(&b, false,
             (struct winograd_convolution){
                 .x = b.x, .bias = b.bias, .added = b.y, .has_relu = true, .y = b.y});
    for (size_t j = 0; j < b.n_y; j++) {
        ck_assert_float_eq(b.y[j], fmaxf(plain[j] + b.x[j], 0));
    }
    free(plain);
    free_bench(&b);
}

END_TEST

START_TEST(nan_reaches_what_reads_it_and_no_other_picture)
{
    struct winograd_fixture b = make_bench(form_of(2, 16, 16, 9, 9, 1), 7);
    b.x[(4 * 9 + 4) * 16 + 3] = NAN;
    convolve(&b, false, (struct winograd_convolution){.x = b.x, .has_relu = true, .y = b.y});
    for (size_t j = 0; j < b.n_y; j++) {
        size_t h = j / 16 / 9, w = j / 16 % 9;
        bool reads = h >= 3 && h <= 5 && w >= 3 && w <= 5;
        ck_assert(!reads || isnan(b.y[j]));
        ck_assert(j < b.n_y / 2 || !isnan(b.y[j]));
    }
    free_bench(&b);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {all_three_directions_are_right_for_odd_shapes,
                                  sums_over_many_channels_and_patches_are_right,
                                  activations_of_a_photograph_are_within_tolerance,
                                  a_picture_has_the_same_bits_alone_and_in_a_batch,
                                  results_take_in_what_is_added_and_lose_what_is_negative,
                                  nan_reaches_what_reads_it_and_no_other_picture};
    return winograd_kernels()
               ? weir_test_run(weir_test_suite("winograd", tests, WEIR_ARRAY_LEN(tests)))
               : 77;
}
