/*
 * The reference kernels, compiled for double precision, against central differences: every gradient
 * of every layer. With h = 1e-5 the difference quotient is exact to about 1e-9 for these sizes;
 * asserted is 1e-7 of the largest gradient of the tensor.
 */
#define WEIR_REAL_IS_DOUBLE
// NOLINTBEGIN(bugprone-suspicious-include)
#include "conv.c"
#include "elementwise.c"
#include "loss.c"
#include "norm.c"
#include "pool.c"
#include "table.c"
// NOLINTEND(bugprone-suspicious-include)

#include "base/test_main.h"

#define STEP      1e-5
#define TOLERANCE 1e-7
#define N_IMAGES  4
#define N_SLICES  2

/* One op with its memory. The function checked is sum(dy * y), or the loss. */
struct gradient_fixture {
    struct op op;
    double *x[2], *dx[2], *y, *dy;
    int32_t labels[N_IMAGES];
    float *targets;
    double inv_n_labelled;
    struct op_loss losses[N_SLICES];
};

static double *random_values(struct weir_rng *rng, size_t n)
{
    double *values = calloc(n, sizeof(*values));
    for (size_t i = 0; i < n; i++) {
        values[i] = weir_rng_normal(rng);
    }
    return values;
}

static void add_param(struct gradient_fixture *b, struct weir_rng *rng, int place, size_t n)
{
    struct op_param *p = &b->op.params[place];
    p->value = random_values(rng, n);
    p->gradient = calloc(n, sizeof(double));
    p->n_elems = n;
}

static struct gradient_fixture make_bench(const struct op *form, uint64_t seed)
{
    struct gradient_fixture b = {.op = *form};
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 1);
    struct op *op = &b.op;
    op->batch = N_IMAGES;
    op->n_slices = N_SLICES;
    op->n_in = op->n_in ? op->n_in : 1;
    for (int32_t i = 0; i < op->n_in; i++) {
        b.x[i] = random_values(&rng, N_IMAGES * op_elems(op->in[i]));
        b.dx[i] = calloc(N_IMAGES * op_elems(op->in[i]), sizeof(double));
    }
    /* Cosines must stay inside (-1, 1), as those of unit vectors do. */
    for (size_t i = 0; op->kind == LAYER_MARGIN_LOSS && i < N_IMAGES * op_elems(op->in[0]); i++) {
        b.x[0][i] *= 0.2;
    }
    b.y = calloc(N_IMAGES * op_elems(op->out), sizeof(double));
    b.dy = random_values(&rng, N_IMAGES * op_elems(op->out));
    size_t channels = (size_t)op->in[0].c, k = (size_t)op->conv.k;
    switch (op->kind) {
    case LAYER_CONV:
        add_param(&b, &rng, OP_WEIGHT,
                  k * channels * (size_t)op->conv.kernel_h * (size_t)op->conv.kernel_w);
        add_param(&b, &rng, OP_BIAS, k);
        break;
    case LAYER_LINEAR:
        add_param(&b, &rng, OP_WEIGHT, k * op_elems(op->in[0]));
        add_param(&b, &rng, OP_BIAS, k);
        break;
    case LAYER_BATCH_NORM:
        add_param(&b, &rng, OP_WEIGHT, channels);
        add_param(&b, &rng, OP_BIAS, channels);
        op->params[OP_RUNNING_MEAN].value = calloc(channels, sizeof(double));
        op->params[OP_RUNNING_VAR].value = calloc(channels, sizeof(double));
        break;
    case LAYER_PRELU:
        add_param(&b, &rng, OP_WEIGHT, channels);
        break;
    case LAYER_MARGIN_LOSS:
        add_param(&b, &rng, OP_WEIGHT, (size_t)op->n_classes * channels);
        break;
    default:
        break;
    }
    size_t n_saved = (size_t)WEIR_MAX(op->n_classes, BN_SAVED_ROWS) * (channels + 1);
    op->saved = calloc(n_saved, sizeof(double));
    op->n_partials = (int32_t)channels * (op->kind == LAYER_BATCH_NORM ? 2 : 1);
    op->partials = calloc(N_SLICES * (size_t)op->n_partials, sizeof(double));
    op->argmax = calloc(N_IMAGES * op_elems(op->out), sizeof(int32_t));
    op->scores = calloc(N_IMAGES * (size_t)WEIR_MAX(op->n_classes, 1), sizeof(double));
    for (int32_t i = 0; i < N_IMAGES; i++) {
        b.labels[i] = i == 1 ? -1 : i; /* one image without a label */
    }
    b.inv_n_labelled = 1.0 / (N_IMAGES - 1);
    b.targets = calloc(N_IMAGES * op_elems(op->in[0]), sizeof(float));
    for (size_t i = 0; i < N_IMAGES * op_elems(op->in[0]); i++) {
        /* Ones, numbers below, beyond both bends of smooth L1, and some that leave theirs out. */
        b.targets[i] = i % 5 == 0 ? NAN : i % 5 == 1 ? 1 : weir_rng_f32(&rng) * 0.9F;
    }
    return b;
}

static void free_bench(struct gradient_fixture *b)
{
    for (int32_t i = 0; i < b->op.n_in; i++) {
        free(b->x[i]);
        free(b->dx[i]);
    }
    for (int place = 0; place < OP_MAX_PARAMS; place++) {
        free(b->op.params[place].value);
        free(b->op.params[place].gradient);
    }
    free(b->y);
    free(b->dy);
    free(b->op.saved);
    free(b->op.partials);
    free(b->op.argmax);
    free(b->op.scores);
    free(b->targets);
}

static struct op_tile tile_of(struct gradient_fixture *b, int32_t first, int32_t n, int32_t i_slice)
{
    struct op_tile tile = {.i_slice = i_slice,
                           .first = first,
                           .n = n,
                           .y = b->y + (size_t)first * op_elems(b->op.out),
                           .dy = b->dy + (size_t)first * op_elems(b->op.out),
                           .is_training = true,
                           .step = 3,
                           .labels = b->labels + first,
                           .targets = b->targets + (size_t)first * op_elems(b->op.in[0]),
                           .inv_n_labelled = b->inv_n_labelled,
                           .loss = &b->losses[i_slice]};
    for (int32_t i = 0; i < b->op.n_in; i++) {
        tile.x[i] = b->x[i] + (size_t)first * op_elems(b->op.in[i]);
        tile.dx[i] = b->dx[i] + (size_t)first * op_elems(b->op.in[i]);
    }
    return tile;
}

/* The uneven slices 1 + 3: sums over slices must not depend on the cut. */
static void over_slices(struct gradient_fixture *b, op_tile_fn fn)
{
    for (int32_t s = 0; fn && s < N_SLICES; s++) {
        struct op_tile tile = tile_of(b, s == 0 ? 0 : 1, s == 0 ? 1 : N_IMAGES - 1, s);
        ck_assert_int_eq(fn(&b->op, &tile), WEIR_OK);
    }
}

static bool is_loss_kind(enum layer_kind kind)
{
    return kind == LAYER_SOFTMAX_LOSS || kind == LAYER_MARGIN_LOSS || kind == LAYER_DETECT_LOSS;
}

static double evaluate(struct gradient_fixture *b)
{
    const struct op_kernels *k = &REF(kernels)[b->op.kind];
    if (k->refresh) {
        ck_assert_int_eq(k->refresh(&b->op, 0, NULL), WEIR_OK);
    }
    over_slices(b, k->forward_sums);
    if (k->forward_combine) {
        ck_assert_int_eq(k->forward_combine(&b->op), WEIR_OK);
    }
    over_slices(b, k->forward);
    if (is_loss_kind(b->op.kind)) {
        return (b->losses[0].loss + b->losses[1].loss) * b->inv_n_labelled;
    }
    double sum = 0;
    for (size_t i = 0; i < N_IMAGES * op_elems(b->op.out); i++) {
        sum += b->y[i] * b->dy[i];
    }
    return sum;
}

static void run_backward(struct gradient_fixture *b)
{
    const struct op_kernels *k = &REF(kernels)[b->op.kind];
    over_slices(b, k->backward_sums);
    if (k->backward_combine) {
        ck_assert_int_eq(k->backward_combine(&b->op), WEIR_OK);
    }
    over_slices(b, k->backward);
    if (k->weight_gradient) {
        struct op_tile whole = tile_of(b, 0, N_IMAGES, 0);
        ck_assert_int_eq(k->weight_gradient(&b->op, &whole), WEIR_OK);
    }
}

static void compare(struct gradient_fixture *b, double *values, const double *gradient, size_t n,
                    const char *what)
{
    double largest = 1e-3;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(gradient[i]));
    }
    for (size_t i = 0; i < n; i++) {
        double old = values[i];
        values[i] = old + STEP;
        double above = evaluate(b);
        values[i] = old - STEP;
        double below = evaluate(b);
        values[i] = old;
        double expected = (above - below) / (2 * STEP);
        ck_assert_msg(fabs(expected - gradient[i]) <= TOLERANCE * largest,
                      "%s of %s, element %zu: kernel says %.12g, differences say %.12g", what,
                      layer_kind_text(b->op.kind), i, gradient[i], expected);
    }
}

static double *copy_of(const double *values, size_t n)
{
    double *copy = calloc(n, sizeof(*copy));
    memcpy(copy, values, n * sizeof(*copy));
    return copy;
}

static void check_gradients(const struct op *form, uint64_t seed)
{
    for (int is_channels_last = 0; is_channels_last < 2; is_channels_last++) {
        struct gradient_fixture b = make_bench(form, seed);
        b.op.is_channels_last = is_channels_last;
        evaluate(&b);
        run_backward(&b);
        for (int32_t i = 0; i < b.op.n_in; i++) {
            size_t n = N_IMAGES * op_elems(b.op.in[i]);
            double *gradient = copy_of(b.dx[i], n);
            compare(&b, b.x[i], gradient, n, "dx");
            free(gradient);
        }
        for (int place = 0; place <= OP_BIAS; place++) {
            struct op_param *p = &b.op.params[place];
            if (p->value) {
                double *gradient = copy_of(p->gradient, p->n_elems);
                compare(&b, p->value, gradient, p->n_elems, place ? "bias" : "weight");
                free(gradient);
            }
        }
        free_bench(&b);
    }
}

static const struct {
    struct weir_shape in, out;
    struct weir_conv_params conv; /* k, kernel, stride, pads, bias, groups, dilation */
    uint64_t seed;
} convs[] = {
    {{3, 5, 4}, {2, 3, 2}, {2, 3, 3, 2, 1, 1, true, 1, 1}, 11},
    {{2, 4, 5}, {3, 4, 3}, {3, 1, 3, 1, 0, 0, true, 1, 1}, 12},
    /* depthwise with two outputs a channel; two groups, taps two apart */
    {{3, 5, 4}, {6, 3, 2}, {6, 3, 3, 2, 1, 1, true, 3, 1}, 41},
    {{4, 6, 5}, {2, 6, 3}, {2, 3, 2, 1, 2, 0, true, 2, 2}, 42},
};

START_TEST(convolutions)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(convs); i++) {
        check_gradients(&(struct op){.kind = LAYER_CONV,
                                     .in = {convs[i].in},
                                     .out = convs[i].out,
                                     .conv = convs[i].conv},
                        convs[i].seed);
    }
}

END_TEST

START_TEST(linears)
{
    check_gradients(&(struct op){.kind = LAYER_LINEAR,
                                 .in = {{3, 2, 4}},
                                 .out = {5, 1, 1},
                                 .conv = {.k = 5, .has_bias = true}},
                    13);
}

END_TEST

START_TEST(batch_norm_over_the_whole_batch)
{
    check_gradients(
        &(struct op){
            .kind = LAYER_BATCH_NORM, .eps = BATCH_NORM_EPS, .in = {{3, 3, 2}}, .out = {3, 3, 2}},
        14);
    check_gradients(
        &(struct op){.kind = LAYER_BATCH_NORM, .eps = 0.1, .in = {{3, 3, 2}}, .out = {3, 3, 2}},
        43);
}

END_TEST

START_TEST(rectifiers)
{
    check_gradients(&(struct op){.kind = LAYER_RELU, .in = {{3, 3, 2}}, .out = {3, 3, 2}}, 15);
    check_gradients(&(struct op){.kind = LAYER_RELU6, .in = {{3, 3, 2}}, .out = {3, 3, 2}}, 44);
    check_gradients(&(struct op){.kind = LAYER_PRELU, .in = {{3, 3, 2}}, .out = {3, 3, 2}}, 16);
}

END_TEST

START_TEST(pools)
{
    check_gradients(&(struct op){.kind = LAYER_MAX_POOL,
                                 .in = {{2, 6, 5}},
                                 .out = {2, 3, 3},
                                 .pool = {.kernel = 3, .stride = 2, .pad = 1}},
                    17);
    check_gradients(&(struct op){.kind = LAYER_AVG_POOL,
                                 .in = {{2, 6, 5}},
                                 .out = {2, 3, 3},
                                 .pool = {.kernel = 3, .stride = 2, .pad = 1}},
                    18);
    check_gradients(
        &(struct op){
            .kind = LAYER_AVG_POOL,
            .in = {{2, 6, 5}},
            .out = {2, 4, 3},
            .pool = {.kernel = 3, .stride = 2, .pad = 1, .is_ceil = true, .is_pad_excluded = true}},
        45);
    check_gradients(&(struct op){.kind = LAYER_AVG_POOL,
                                 .in = {{2, 6, 5}},
                                 .out = {2, 4, 3},
                                 .pool = {.kernel = 3, .stride = 2, .pad = 1, .is_ceil = true}},
                    46);
    check_gradients(&(struct op){.kind = LAYER_MAX_POOL,
                                 .in = {{2, 6, 5}},
                                 .out = {2, 3, 2},
                                 .pool = {.kernel = 3, .stride = 2, .is_ceil = true}},
                    47);
    check_gradients(&(struct op){.kind = LAYER_GLOBAL_POOL, .in = {{3, 4, 3}}, .out = {3, 1, 1}},
                    19);
}

END_TEST

START_TEST(concatenates)
{
    check_gradients(
        &(struct op){.kind = LAYER_ADD, .n_in = 2, .in = {{2, 3, 2}, {2, 3, 2}}, .out = {2, 3, 2}},
        20);
    check_gradients(
        &(struct op){
            .kind = LAYER_CONCAT, .n_in = 2, .in = {{2, 3, 2}, {3, 3, 2}}, .out = {5, 3, 2}},
        21);
}

END_TEST

START_TEST(dropout_and_normalisation)
{
    check_gradients(
        &(struct op){.kind = LAYER_DROPOUT, .rate = 0.4f, .in = {{3, 2, 2}}, .out = {3, 2, 2}}, 22);
    check_gradients(&(struct op){.kind = LAYER_L2_NORMALISE, .in = {{6, 1, 1}}, .out = {6, 1, 1}},
                    23);
    check_gradients(&(struct op){.kind = LAYER_LAYER_NORM, .in = {{3, 3, 2}}, .out = {3, 3, 2}},
                    25);
}

END_TEST

START_TEST(flattening_and_scaling)
{
    check_gradients(&(struct op){.kind = LAYER_FLATTEN, .in = {{3, 2, 4}}, .out = {24, 1, 1}}, 26);
    check_gradients(
        &(struct op){.kind = LAYER_SCALE, .scale = -1.75f, .in = {{3, 2, 2}}, .out = {3, 2, 2}},
        27);
}

END_TEST

START_TEST(losses)
{
    check_gradients(
        &(struct op){
            .kind = LAYER_SOFTMAX_LOSS, .in = {{5, 1, 1}}, .out = {5, 1, 1}, .n_classes = 5},
        24);
    check_gradients(&(struct op){.kind = LAYER_SOFTMAX_LOSS,
                                 .in = {{5, 1, 1}},
                                 .out = {5, 1, 1},
                                 .n_classes = 5,
                                 .smoothing = 0.3},
                    25);
    struct op margin = {.kind = LAYER_MARGIN_LOSS,
                        .in = {{6, 1, 1}},
                        .out = {6, 1, 1},
                        .n_classes = 5,
                        .scale = 4,
                        .margin = 0.4f};
    check_gradients(&margin, 31);
    struct op detect = {.kind = LAYER_DETECT_LOSS,
                        .in = {{24, 1, 1}},
                        .out = {24, 1, 1},
                        .n_classes = 1,
                        .n_values = 3,
                        .scale = 0.7F};
    check_gradients(&detect, 32);
}

END_TEST

START_TEST(a_smoothed_label_is_part_of_every_class_in_training_only)
{
    enum { K = 5 };

    const double smoothing = 0.3;
    const struct op form = {.kind = LAYER_SOFTMAX_LOSS,
                            .in = {{K, 1, 1}},
                            .out = {K, 1, 1},
                            .n_classes = K,
                            .smoothing = smoothing};
    struct gradient_fixture b = make_bench(&form, 26);
    double soft = 0, hard = 0;
    for (int32_t n = 0; n < N_IMAGES; n++) {
        double all = 0;
        for (int32_t k = 0; k < K; k++) {
            all += exp(b.x[0][n * K + k]);
        }
        for (int32_t k = 0; b.labels[n] >= 0 && k < K; k++) {
            double minus_log = -log(exp(b.x[0][n * K + k]) / all);
            bool is_label = k == b.labels[n];
            soft += minus_log * (smoothing / K + (is_label ? 1 - smoothing : 0));
            hard += is_label ? minus_log : 0;
        }
    }
    struct op_tile tile = tile_of(&b, 0, N_IMAGES, 0);
    ck_assert_int_eq(REF(softmax_loss_forward)(&b.op, &tile), WEIR_OK);
    ck_assert_double_eq_tol(tile.loss->loss, soft, 1e-12);
    tile.is_training = false;
    ck_assert_int_eq(REF(softmax_loss_forward)(&b.op, &tile), WEIR_OK);
    ck_assert_double_eq_tol(tile.loss->loss, hard, 1e-12);
    free_bench(&b);
}

END_TEST

/* The formulas as the papers print them, over the images with a label. */
START_TEST(a_detect_loss_is_the_focal_loss_and_smooth_l1)
{
    enum { C = 24, SCORES = 8 };

    const struct op form = {.kind = LAYER_DETECT_LOSS,
                            .in = {{C, 1, 1}},
                            .out = {C, 1, 1},
                            .n_classes = 1,
                            .n_values = C / SCORES,
                            .scale = 0.7F};
    struct gradient_fixture b = make_bench(&form, 33);
    double expected = 0;
    for (int32_t n = 0; n < N_IMAGES; n++) {
        for (int32_t i = 0; b.labels[n] >= 0 && i < C; i++) {
            double x = b.x[0][n * C + i], t = (double)b.targets[n * C + i], p = 1 / (1 + exp(-x));
            double far = fabs(x - t);
            if (isnan(t)) {
                continue;
            }
            if (i < SCORES) {
                expected -= t == 1 ? pow(1 - p, 2) * log(p) : pow(1 - t, 4) * p * p * log(1 - p);
            } else {
                expected += (double)form.scale * (far < 1 ? far * far / 2 : far - 0.5);
            }
        }
    }
    struct op_tile tile = tile_of(&b, 0, N_IMAGES, 0);
    ck_assert_int_eq(REF(detect_loss_forward)(&b.op, &tile), WEIR_OK);
    ck_assert_double_eq_tol(tile.loss->loss, expected, 1e-10);
    ck_assert_int_eq(tile.loss->n_labelled, N_IMAGES - 1);
    /* Logits far beyond where exp overflows stay numbers. */
    b.x[0][1] = 800;
    b.x[0][2] = -800;
    ck_assert_int_eq(REF(detect_loss_forward)(&b.op, &tile), WEIR_OK);
    ck_assert(isfinite(tile.loss->loss));
    free_bench(&b);
}

END_TEST

WEIR_TEST_MAIN("gradient", convolutions, linears, batch_norm_over_the_whole_batch, rectifiers,
               pools, concatenates, dropout_and_normalisation, flattening_and_scaling, losses,
               a_smoothed_label_is_part_of_every_class_in_training_only,
               a_detect_loss_is_the_focal_loss_and_smooth_l1)
