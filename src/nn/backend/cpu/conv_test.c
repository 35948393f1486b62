/*
 * Each convolution and linear of oneDNN alone, against sums in double over the same rounded inputs
 * and weights. Tolerances: in f32 4e-6 of the largest element. In bf16 the error of a tensor is its
 * own rounding and no more, and weight gradients are as exact as in f32.
 */
#include "nn/backend/reference/kernels.h"
#include "nn/backend/test_backends.h"
#include "nn/nn.h"

#include "base/rng.h"
#include "base/test_main.h"

#include "dnn/dnn.h"
#include <math.h>

enum { BATCH = 4 };

/* An op with its tensors: as the back-end has them, and in f32. */
struct conv_fixture {
    struct op op;
    size_t n_x, n_y;
    float *x, *dy, *got_y, *got_dx;
    uint16_t *short_x, *short_y, *short_dy, *short_dx;
    void *scratch, *packed_weights, *context;
    float *gradients[2], *expected_gradients[2];
};

static void fill(struct weir_rng *rng, float *values, size_t n, bool is_rounded)
{
    for (size_t i = 0; i < n; i++) {
        float value = (float)weir_rng_normal(rng);
        values[i] = is_rounded ? bf16_to_f32(bf16_from_f32(value)) : value;
    }
}

static void add_param(struct conv_fixture *b, struct weir_rng *rng, int place, size_t n)
{
    struct op_param *p = &b->op.params[place];
    p->n_elems = n;
    p->value = calloc(n, sizeof(float));
    b->gradients[place] = calloc(n, sizeof(float));
    b->expected_gradients[place] = calloc(n, sizeof(float));
    fill(rng, p->value, n, false);
}

static uint16_t *shorten(const float *values, size_t n)
{
    uint16_t *to = calloc(n, sizeof(uint16_t));
    for (size_t i = 0; i < n; i++) {
        to[i] = bf16_from_f32(values[i]);
    }
    return to;
}

static struct conv_fixture make_bench(struct op form, enum weir_precision type,
                                      enum weir_convolution convolution, uint64_t seed)
{
    struct conv_fixture b = {.op = form};
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 3);
    struct op *op = &b.op;
    op->n_in = 1;
    op->type = type;
    op->convolution = convolution;
    op->is_channels_last = true;
    op->batch = BATCH;
    op->gradient_batch = BATCH;
    op->n_slices = 1;
    op->conv.groups = WEIR_MAX(op->conv.groups, 1);
    op->conv.dilation = WEIR_MAX(op->conv.dilation, 1);
    b.n_x = BATCH * op_elems(op->in[0]);
    b.n_y = BATCH * op_elems(op->out);
    b.x = calloc(b.n_x, sizeof(float));
    b.got_dx = calloc(b.n_x, sizeof(float));
    b.dy = calloc(b.n_y, sizeof(float));
    b.got_y = calloc(b.n_y, sizeof(float));
    fill(&rng, b.x, b.n_x, true);
    fill(&rng, b.dy, b.n_y, true);
    b.short_x = shorten(b.x, b.n_x);
    b.short_dy = shorten(b.dy, b.n_y);
    b.short_y = calloc(b.n_y, sizeof(uint16_t));
    b.short_dx = calloc(b.n_x, sizeof(uint16_t));
    size_t n_per_k =
        op->kind == LAYER_LINEAR
            ? op_elems(op->in[0])
            : (size_t)(op->in[0].c / op->conv.groups * op->conv.kernel_h * op->conv.kernel_w);
    add_param(&b, &rng, OP_WEIGHT, (size_t)op->conv.k * n_per_k);
    if (op->conv.has_bias) {
        add_param(&b, &rng, OP_BIAS, (size_t)op->conv.k);
    }
    return b;
}

static void free_bench(struct conv_fixture *b)
{
    void *const all[] = {b->x,
                         b->dy,
                         b->got_y,
                         b->got_dx,
                         b->short_x,
                         b->short_y,
                         b->short_dy,
                         b->short_dx,
                         b->scratch,
                         b->packed_weights,
                         b->gradients[0],
                         b->gradients[1],
                         b->expected_gradients[0],
                         b->expected_gradients[1],
                         b->op.params[0].value,
                         b->op.params[1].value};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        free(all[i]);
    }
}

/* A tensor of the back-end's type. */
static real *tensor(const struct conv_fixture *b, float *wide, uint16_t *narrow)
{
    return b->op.type == WEIR_PRECISION_F32 ? wide : (real *)(void *)narrow;
}

static void bind_gradients(struct conv_fixture *b, float *const gradients[2])
{
    for (int i = 0; i < 2; i++) {
        b->op.params[i].gradient = b->op.params[i].value ? gradients[i] : NULL;
    }
}

static void pack(const struct conv_fixture *b, bool is_backward)
{
    if (b->op.packed_bytes > 0) {
        memset(b->packed_weights, 0xff, b->op.packed_bytes);
        weir_onednn_backend.kernels[b->op.kind].pack(&b->op, is_backward, b->packed_weights);
    }
}

/* dx added to itself is twice dx, in either type: for convolutions to the last bit. Linears of few
 * images add each term to what is there. */
static void expect_doubled(struct conv_fixture *b, struct op_tile tile, const char *what)
{
    float *once = calloc(b->n_x, sizeof(float));
    bool is_short = b->op.type == WEIR_PRECISION_BF16;
    double largest = 0;
    for (size_t i = 0; i < b->n_x; i++) {
        once[i] = is_short ? bf16_to_f32(b->short_dx[i]) : b->got_dx[i];
        largest = fmax(largest, fabs((double)once[i]));
    }
    double tolerance = b->op.kind == LAYER_LINEAR ? 4e-6 * largest : 0;
    tile.dx_adds[0] = true;
    ck_assert_int_eq(weir_onednn_backend.kernels[b->op.kind].backward(&b->op, &tile), WEIR_OK);
    for (size_t i = 0; i < b->n_x; i++) {
        float twice = is_short ? bf16_to_f32(b->short_dx[i]) : b->got_dx[i];
        ck_assert_msg(fabs((double)twice - 2 * (double)once[i]) <= tolerance,
                      "%s, dx %zu: %.9g, added %.9g", what, i, (double)once[i], (double)twice);
        if (is_short) {
            b->short_dx[i] = bf16_from_f32(once[i]);
        } else {
            b->got_dx[i] = once[i];
        }
    }
    free(once);
}

static void run_onednn(struct conv_fixture *b, const char *what)
{
    const struct weir_backend *backend = &weir_onednn_backend;
    const struct op_kernels *kernels = &backend->kernels[b->op.kind];
    struct weir_error err = {0};
    size_t scratch_bytes = 0;
    backend->enter_thread();
    const struct weir_net_config config = {.precision = b->op.type};
    ck_assert_int_eq(backend->open(&config, 1, &b->context, &err), WEIR_OK);
    ck_assert_msg(backend->prepare(b->context, &b->op, (int32_t[]){BATCH}, 1, true, &scratch_bytes,
                                   &err) == WEIR_OK,
                  "%s: %s", what, err.message);
    b->scratch = aligned_alloc(64, (scratch_bytes + 64) / 64 * 64);
    b->op.packed_bytes = backend->packed_bytes(&b->op);
    b->packed_weights = aligned_alloc(64, (b->op.packed_bytes + 64) / 64 * 64);
    const struct op_tile tile = {.n = BATCH,
                                 .x = {tensor(b, b->x, b->short_x)},
                                 .y = tensor(b, b->got_y, b->short_y),
                                 .dy = tensor(b, b->dy, b->short_dy),
                                 .dx = {tensor(b, b->got_dx, b->short_dx)},
                                 .is_training = true,
                                 .packed_weights = b->packed_weights,
                                 .scratch = b->scratch};
    memset(b->got_dx, 0xff, b->n_x * sizeof(float));
    memset(b->short_dx, 0xff, b->n_x * sizeof(uint16_t));
    bind_gradients(b, b->gradients);
    ck_assert_int_eq(kernels->refresh(&b->op, 0, b->scratch), WEIR_OK);
    pack(b, false);
    ck_assert_int_eq(kernels->forward(&b->op, &tile), WEIR_OK);
    pack(b, true);
    ck_assert_int_eq(kernels->backward(&b->op, &tile), WEIR_OK);
    expect_doubled(b, tile, what);
    ck_assert_int_eq(kernels->weight_gradient(&b->op, &tile), WEIR_OK);
    backend->release(&b->op);
    backend->close(b->context);
    for (size_t i = 0; b->op.type == WEIR_PRECISION_BF16 && i < b->n_y; i++) {
        b->got_y[i] = bf16_to_f32(b->short_y[i]);
    }
    for (size_t i = 0; b->op.type == WEIR_PRECISION_BF16 && i < b->n_x; i++) {
        b->got_dx[i] = bf16_to_f32(b->short_dx[i]);
    }
}

/* |got - expected| <= half a unit of its last place, and a share of the largest for the sum's. */
static void expect(const float *got, const float *expected, size_t n, bool is_rounded,
                   const char *what, const char *part)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
    }
    for (size_t i = 0; i < n; i++) {
        double tolerance =
            4e-6 * largest + (is_rounded ? 0x1.01p-8 * fabs((double)expected[i]) : 0);
        double d = fabs((double)got[i] - (double)expected[i]);
        if (!(d <= tolerance)) {
            ck_abort_msg("%s, %s, element %zu: %.9g, expected %.9g", what, part, i, (double)got[i],
                         (double)expected[i]);
        }
    }
}

static void compare_form(struct op form, enum weir_precision type,
                         enum weir_convolution convolution, const char *what)
{
    struct conv_fixture b = make_bench(form, type, convolution, 5);
    bool is_rounded = b.op.type == WEIR_PRECISION_BF16, is_conv = b.op.kind == LAYER_CONV;
    float *y = calloc(b.n_y, sizeof(float)), *dx = calloc(b.n_x, sizeof(float));
    const struct op_tile tile = {
        .n = BATCH, .x = {b.x}, .y = y, .dy = b.dy, .dx = {dx}, .is_training = true};
    run_onednn(&b, what);
    bind_gradients(&b, b.expected_gradients);
    ck_assert_int_eq((is_conv ? REF(conv_forward) : REF(linear_forward))(&b.op, &tile), WEIR_OK);
    ck_assert_int_eq((is_conv ? REF(conv_backward) : REF(linear_backward))(&b.op, &tile), WEIR_OK);
    ck_assert_int_eq(
        (is_conv ? REF(conv_weight_gradient) : REF(linear_weight_gradient))(&b.op, &tile), WEIR_OK);
    expect(b.got_y, y, b.n_y, is_rounded, what, "y");
    expect(b.got_dx, dx, b.n_x, is_rounded, what, "dx");
    expect(b.gradients[0], b.expected_gradients[0], b.op.params[0].n_elems, false, what,
           "gradient of weights");
    expect(b.gradients[1], b.expected_gradients[1], b.op.params[1].n_elems, false, what,
           "gradient of biases");
    free(y);
    free(dx);
    free_bench(&b);
}

static void compare(struct op form, const char *what)
{
    for (int i = 1; i < N_FORMS; i += 2) {
        if (has_form(i)) {
            compare_form(form, form_precision(i), WEIR_CONVOLUTION_DIRECT, what);
        }
    }
    compare_form(form, WEIR_PRECISION_F32, other_convolution(), what);
}

static void compare_padded(struct weir_shape in, int32_t k, int32_t kernel, int32_t stride,
                           int32_t groups, int32_t dilation, int32_t pad)
{
    char what[96];
    int32_t reach = (kernel - 1) * dilation + 1;
    struct op op = {
        .kind = LAYER_CONV,
        .in = {in},
        .out = {k, (in.h + 2 * pad - reach) / stride + 1, (in.w + 2 * pad - reach) / stride + 1},
        .conv = {.k = k,
                 .kernel_h = kernel,
                 .kernel_w = kernel,
                 .stride = stride,
                 .pad_h = pad,
                 .pad_w = pad,
                 .has_bias = (in.c + k) % 2 == 0,
                 .groups = groups,
                 .dilation = dilation}};
    snprintf(what, sizeof(what), "%d -> %d, kernel %d, stride %d, %d groups, dilation %d, pad %d",
             in.c, k, kernel, stride, groups, dilation, pad);
    compare(op, what);
}

static void compare_conv(int32_t c, int32_t k, int32_t kernel, int32_t stride, int32_t groups,
                         int32_t dilation)
{
    compare_padded((struct weir_shape){c, 13, 11}, k, kernel, stride, groups, dilation,
                   ((kernel - 1) * dilation + 1) / 2);
}

static const int32_t odd_channels[] = {1, 2, 3, 17, 19, 33};
static const int32_t odd_kernels[] = {1, 3, 7};

START_TEST(convolutions_of_odd_shapes)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(odd_channels); i++) {
        for (size_t j = 0; j < WEIR_ARRAY_LEN(odd_channels); j++) {
            for (size_t s = 0; s < WEIR_ARRAY_LEN(odd_kernels); s++) {
                if ((i + j + s) % WEIR_TEST_TIMES(1, 5) != 0) {
                    continue;
                }
                compare_conv(odd_channels[i], odd_channels[j], odd_kernels[s],
                             1 + (int32_t)(i + j + s) % 2, 1, 1);
            }
        }
    }
}

END_TEST

/* Where kernels of our own lay out weights, and turn them round where that pays. */
START_TEST(convolutions_of_whole_vectors_of_channels)
{
    static const int32_t forms[][5] = {/* c, k, kernel, stride, pad */
                                       {32, 48, 1, 1, 0}, {64, 16, 1, 2, 0}, {16, 80, 1, 3, 0},
                                       {32, 32, 3, 1, 1}, {48, 32, 3, 1, 0}, {16, 64, 5, 1, 1},
                                       {64, 32, 3, 2, 1}, {32, 16, 1, 1, 1}, {80, 96, 3, 1, 2},
                                       {32, 16, 7, 1, 3}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        compare_padded((struct weir_shape){forms[i][0], 13, 11}, forms[i][1], forms[i][2],
                       forms[i][3], 1, 1, forms[i][4]);
    }
}

END_TEST

/* Turned round on every processor; the pictures are small, as the reference is slow. */
START_TEST(convolutions_of_many_weights)
{
    compare_padded((struct weir_shape){208, 5, 3}, 224, 3, 1, 1, 1, 1);
    compare_padded((struct weir_shape){224, 4, 6}, 208, 3, 1, 1, 1, 0);
}

END_TEST

START_TEST(convolutions_in_groups_and_with_gaps)
{
    static const int32_t forms[][5] = {{17, 17, 1, 17, 1}, {32, 32, 2, 32, 1}, {3, 6, 1, 3, 1},
                                       {12, 8, 2, 4, 1},   {32, 32, 1, 2, 1},  {5, 7, 1, 1, 2},
                                       {16, 16, 2, 1, 3},  {6, 9, 2, 3, 2},    {16, 16, 1, 16, 2}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        compare_conv(forms[i][0], forms[i][1], 3, forms[i][2], forms[i][3], forms[i][4]);
    }
}

END_TEST

START_TEST(linears_of_vectors_and_of_grey_pictures)
{
    for (int i = 0; i < 12; i++) {
        char what[64];
        int32_t n = odd_channels[i % 6], k = odd_channels[(i + 2) % 6];
        struct weir_shape vector = {n, 1, 1}, picture = {1, n, 5};
        struct op op = {.kind = LAYER_LINEAR,
                        .in = {i < 6 ? vector : picture},
                        .out = {k, 1, 1},
                        .conv = {.k = k, .has_bias = i % 2 == 0}};
        snprintf(what, sizeof(what), "linear %d x %d -> %d", n, i < 6 ? 1 : 5, k);
        compare(op, what);
    }
}

END_TEST

/* As on an older processor: Check runs each test in a process of its own. */
START_TEST(a_processor_without_bf16_is_told_so)
{
    struct weir_error err = {0};
    void *context = NULL;
    if (dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) != dnnl_success) {
        return; /* built without the choice, or not forked */
    }
    const struct weir_net_config config = {.precision = WEIR_PRECISION_BF16};
    ck_assert_int_eq(weir_onednn_backend.open(&config, 1, &context, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "bf16") != NULL, "%s", err.message);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {convolutions_of_odd_shapes,
                                  convolutions_of_whole_vectors_of_channels,
                                  convolutions_of_many_weights,
                                  convolutions_in_groups_and_with_gaps,
                                  linears_of_vectors_and_of_grey_pictures,
                                  a_processor_without_bf16_is_told_so};
    size_t n = IS_THREAD_SANITIZED ? 0 : WEIR_ARRAY_LEN(tests);
    return n == 0 ? 77 : weir_test_run(weir_test_suite("conv", tests, n));
}
