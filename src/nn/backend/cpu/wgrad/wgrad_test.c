/*
 * Weight gradients of our own against the reference's sums in double over the same rounded tensors:
 * 2e-6 of the largest element. Shapes have rests in every direction: channels, pixels of a panel,
 * cells that lie in the padding always or at the rims.
 */
#include "nn/backend/reference/kernels.h"
#include "wgrad.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

#define GUARD 1e30f

struct wgrad_case {
    int32_t c, k, h, w, kernel_h, kernel_w, stride, dilation, pad, batch;
};

static const struct wgrad_case forms[] = {
    /* many panels; one pixel; an odd number of pixels */
    {64, 64, 30, 30, 1, 1, 1, 1, 0, 3},
    {16, 16, 1, 1, 1, 1, 1, 1, 0, 1},
    {32, 24, 5, 5, 1, 1, 1, 1, 0, 3},
    /* rests of channels: of a tile's rows, of its two vectors, of a block */
    {17, 19, 13, 11, 1, 1, 1, 1, 0, 3},
    {33, 16, 13, 11, 1, 1, 2, 1, 0, 3},
    {48, 31, 9, 10, 1, 1, 3, 1, 0, 2},
    {40, 57, 6, 7, 3, 3, 1, 1, 1, 5},
    /* kernels that are not square, strides, gaps, padding of all sizes */
    {16, 20, 15, 12, 3, 3, 2, 1, 1, 3},
    {20, 16, 14, 14, 7, 1, 1, 1, 3, 2},
    {18, 22, 11, 16, 1, 5, 2, 1, 2, 2},
    {16, 16, 9, 9, 3, 3, 1, 3, 3, 3},
    {16, 16, 8, 9, 5, 5, 3, 2, 4, 4},
    {24, 16, 2, 2, 3, 3, 1, 1, 1, 7},
    {16, 24, 1, 1, 5, 5, 1, 1, 2, 4}, /* all cells but one lie in the padding */
    {16, 16, 7, 7, 3, 3, 1, 1, 0, 2},
    /* images that do not fit in the cache together, and pairs of them */
    {64, 48, 20, 20, 3, 3, 1, 1, 1, 5},
    {32, 16, 40, 44, 3, 3, 1, 1, 1, 3},
    /* more channels than are packed at once: of dy, of x, of x's stride phases */
    {16, 530, 4, 4, 3, 3, 1, 1, 1, 3},
    {530, 16, 4, 5, 3, 3, 1, 1, 1, 2},
    {140, 20, 9, 9, 3, 3, 2, 1, 1, 3},
};

static struct op make_op(const struct wgrad_case *f, enum weir_precision type)
{
    int32_t reach_h = (f->kernel_h - 1) * f->dilation + 1;
    int32_t reach_w = (f->kernel_w - 1) * f->dilation + 1;
    struct op op = {.kind = LAYER_CONV,
                    .n_in = 1,
                    .in = {{f->c, f->h, f->w}},
                    .out = {f->k, (f->h + 2 * f->pad - reach_h) / f->stride + 1,
                            (f->w + 2 * f->pad - reach_w) / f->stride + 1},
                    .conv = {.k = f->k,
                             .kernel_h = f->kernel_h,
                             .kernel_w = f->kernel_w,
                             .stride = f->stride,
                             .pad_h = f->pad,
                             .pad_w = f->pad,
                             .groups = 1,
                             .dilation = f->dilation},
                    .type = type,
                    .is_channels_last = true,
                    .batch = f->batch,
                    .gradient_batch = f->batch};
    op.params[OP_WEIGHT].n_elems =
        (size_t)f->c * (size_t)f->k * (size_t)f->kernel_h * (size_t)f->kernel_w;
    return op;
}

static const struct wgrad_case linears[] = {
    /* elements of an image in c; rests of both sides, of a panel of images, of a pair of them */
    {64, 32, 1, 1, .batch = 8}, {784, 128, 1, 1, .batch = 33}, {1, 1, 1, 1, .batch = 1},
    {35, 10, 1, 1, .batch = 7}, {100, 37, 1, 1, .batch = 400}, {15, 9, 1, 1, .batch = 193},
};

static struct op make_linear(const struct wgrad_case *f, enum weir_precision type)
{
    struct op op = {.kind = LAYER_LINEAR,
                    .n_in = 1,
                    .in = {{f->c, 1, 1}},
                    .out = {f->k, 1, 1},
                    .conv = {.k = f->k, .has_bias = true},
                    .type = type,
                    .is_channels_last = true,
                    .batch = f->batch,
                    .gradient_batch = f->batch};
    op.params[OP_WEIGHT].n_elems = (size_t)f->c * (size_t)f->k;
    op.params[OP_BIAS].n_elems = (size_t)f->k;
    return op;
}

/* Values rounded to f32 or, for an op in bf16, to bf16. */
static float *make_tensor(struct weir_rng *rng, size_t n, uint16_t **out_short)
{
    float *wide = calloc(n, sizeof(float));
    *out_short = calloc(n, sizeof(uint16_t));
    for (size_t i = 0; i < n; i++) {
        (*out_short)[i] = bf16_from_f32((float)weir_rng_normal(rng));
        wide[i] = bf16_to_f32((*out_short)[i]);
    }
    return wide;
}

static void expect(const float *got, const float *expected, size_t n, int i_form)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
    }
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)got[i] - (double)expected[i]) <= 2e-6 * largest)) {
            ck_abort_msg("form %d, element %zu: %.9g, expected %.9g", i_form, i, (double)got[i],
                         (double)expected[i]);
        }
    }
}

static void compare(const struct wgrad_kernels *kernels, struct op op, int i_form)
{
    enum weir_precision type = op.type;
    struct weir_rng rng;
    weir_rng_init(&rng, 11, (uint64_t)i_form);
    size_t n_weights = op.params[OP_WEIGHT].n_elems, n = n_weights + op.params[OP_BIAS].n_elems;
    size_t batch = (size_t)op.batch;
    size_t scratch_bytes = kernels->scratch_bytes(&op);
    uint16_t *short_x, *short_dy;
    float *x = make_tensor(&rng, batch * op_elems(op.in[0]), &short_x);
    float *dy = make_tensor(&rng, batch * op_elems(op.out), &short_dy);
    float *expected = calloc(n, sizeof(float)), *got = calloc(n + 1, sizeof(float));
    char *scratch = aligned_alloc(64, scratch_bytes + 64);
    const struct op_tile wide = {.n = op.batch, .x = {x}, .dy = dy};
    struct op_tile tile = wide;
    if (type == WEIR_PRECISION_BF16) {
        tile.x[0] = (real *)(void *)short_x;
        tile.dy = (real *)(void *)short_dy;
    }
    /* What is in memory before must not matter, and nothing beyond may be touched. */
    memset(scratch, 0xff, scratch_bytes + 64);
    memset(got, 0xff, n * sizeof(float));
    got[n] = GUARD;
    tile.scratch = scratch;
    op.params[OP_WEIGHT].gradient = got;
    op.params[OP_BIAS].gradient = op.conv.has_bias ? got + n_weights : NULL;
    kernels->run(&op, &tile);
    op.params[OP_WEIGHT].gradient = expected;
    op.params[OP_BIAS].gradient = op.conv.has_bias ? expected + n_weights : NULL;
    ck_assert_int_eq(op.kind == LAYER_CONV ? REF(conv_weight_gradient)(&op, &wide)
                                           : REF(linear_weight_gradient)(&op, &wide),
                     WEIR_OK);
    expect(got, expected, n, i_form);
    ck_assert(got[n] == GUARD);
    for (size_t i = 0; i < 64; i++) {
        ck_assert(scratch[scratch_bytes + i] == (char)0xff);
    }
    void *const all[] = {x, dy, short_x, short_dy, expected, got, scratch};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        free(all[i]);
    }
}

START_TEST(gradients_are_the_references_in_f32)
{
    if (wgrad_is_supported(&wgrad_kernels_v4)) {
        compare(&wgrad_kernels_v4, make_op(&forms[_i], WEIR_PRECISION_F32), _i);
    }
}

END_TEST

START_TEST(linears_gradients_are_the_references_in_f32)
{
    if (wgrad_is_supported(&wgrad_kernels_v4)) {
        compare(&wgrad_kernels_v4, make_linear(&linears[_i], WEIR_PRECISION_F32), _i);
    }
}

END_TEST

START_TEST(gradients_are_the_references_in_bf16)
{
    if (wgrad_is_supported(&wgrad_kernels_bf16)) {
        compare(&wgrad_kernels_bf16, make_op(&forms[_i], WEIR_PRECISION_BF16), _i);
    }
}

END_TEST

START_TEST(linears_gradients_are_the_references_in_bf16)
{
    if (wgrad_is_supported(&wgrad_kernels_bf16)) {
        compare(&wgrad_kernels_bf16, make_linear(&linears[_i], WEIR_PRECISION_BF16), _i);
    }
}

END_TEST

START_TEST(gradients_are_the_references_in_bf16_with_tiles)
{
    if (wgrad_is_supported(&wgrad_kernels_amx)) {
        compare(&wgrad_kernels_amx, make_op(&forms[_i], WEIR_PRECISION_BF16), _i);
    }
}

END_TEST

/* wgrad_amx_emulated.c */
extern const struct wgrad_kernels wgrad_kernels_amx_emulated;

START_TEST(gradients_are_the_references_with_emulated_tiles)
{
    compare(&wgrad_kernels_amx_emulated, make_op(&forms[_i], WEIR_PRECISION_BF16), _i);
}

END_TEST

START_TEST(what_they_cannot_do_is_left_to_others)
{
    struct op op = make_op(&forms[0], WEIR_PRECISION_F32);
    ck_assert_ptr_eq(wgrad_choose(&op), &wgrad_kernels_v4);
    op.conv.groups = 2;
    ck_assert_ptr_null(wgrad_choose(&op));
    op.conv.groups = 1;
    op.conv.has_bias = true;
    ck_assert_ptr_null(wgrad_choose(&op));
    op.conv.has_bias = false;
    op.in[0].c = 3;
    ck_assert_ptr_null(wgrad_choose(&op));
    op.in[0].c = 64;
    op.kind = LAYER_PRELU;
    ck_assert_ptr_null(wgrad_choose(&op));
    op = make_linear(&linears[4], WEIR_PRECISION_F32); /* many images */
    ck_assert_ptr_null(wgrad_choose(&op));
}

END_TEST

START_TEST(in_bf16_the_machine_decides)
{
    struct op few = make_op(&forms[6], WEIR_PRECISION_BF16); /* 3x3 of few channels */
    struct op linear = make_linear(&linears[4], WEIR_PRECISION_BF16);
    const struct wgrad_kernels *bf16 = &wgrad_kernels_bf16, *tiles = &wgrad_kernels_amx;
    ck_assert_ptr_eq(wgrad_choose(&few), wgrad_is_supported(tiles)  ? tiles
                                         : wgrad_is_supported(bf16) ? bf16
                                                                    : NULL);
    ck_assert_ptr_eq(wgrad_choose(&linear), wgrad_is_supported(bf16) ? bf16 : NULL);
}

END_TEST

int main(void)
{
    if (!wgrad_is_supported(&wgrad_kernels_v4)) {
        return 77; /* no AVX-512: oneDNN makes all weight gradients */
    }
    Suite *suite = suite_create("product");
    TCase *tests = tcase_create("product");
    int n = (int)WEIR_ARRAY_LEN(forms);
    tcase_set_timeout(tests, 60); /* the reference in a sanitizer's build */
    tcase_add_loop_test(tests, gradients_are_the_references_in_f32, 0, n);
    tcase_add_loop_test(tests, gradients_are_the_references_in_bf16, 0, n);
    tcase_add_loop_test(tests, gradients_are_the_references_in_bf16_with_tiles, 0, n);
    tcase_add_loop_test(tests, gradients_are_the_references_with_emulated_tiles, 0, n);
    n = (int)WEIR_ARRAY_LEN(linears);
    tcase_add_loop_test(tests, linears_gradients_are_the_references_in_f32, 0, n);
    tcase_add_loop_test(tests, linears_gradients_are_the_references_in_bf16, 0, n);
    tcase_add_test(tests, what_they_cannot_do_is_left_to_others);
    tcase_add_test(tests, in_bf16_the_machine_decides);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
