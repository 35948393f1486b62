#include "layers.h"

#include "base/rng.h"
#include "nn/backend/cpu/vector/vector.h"
#include "nn/backend/reference/kernels.h"
#include "primitive.h"

#include <math.h>
#include <string.h>

static size_t n_elems(const struct op *op, const struct op_tile *tile)
{
    return (size_t)tile->n * op_elems(op->out);
}

static size_t n_pixels(const struct op *op, const struct op_tile *tile)
{
    return (size_t)tile->n * (size_t)op->in[0].h * (size_t)op->in[0].w;
}

static size_t n_channels(const struct op *op)
{
    return (size_t)op->in[0].c;
}

static const struct vector_kernels *kernels(const struct op *op)
{
    return vector_kernels(op->type);
}

/* The caller's N, C, H, W of f32 into N, H, W, C. */
weir_status fast_input_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c = (size_t)op->out.c, hw = (size_t)op->out.h * (size_t)op->out.w;
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        kernels(op)->input(tile->x[0] + n * c * hw, c, hw, vector_at(op, tile->y, n * c * hw));
    }
    return WEIR_OK;
}

/* Converts between bf16 and f32; op->type is the type of y. */
static const struct vector_kernels *of_bf16(void)
{
    return vector_kernels(WEIR_PRECISION_BF16);
}

weir_status fast_cast_forward(const struct op *op, const struct op_tile *tile)
{
    if (op->type == WEIR_PRECISION_F32) {
        of_bf16()->to_f32(tile->x[0], tile->y, false, n_elems(op, tile));
    } else {
        of_bf16()->from_f32(tile->x[0], tile->y, false, n_elems(op, tile));
    }
    return WEIR_OK;
}

weir_status fast_cast_backward(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0] && op->type == WEIR_PRECISION_F32) {
        of_bf16()->from_f32(tile->dy, tile->dx[0], tile->dx_adds[0], n_elems(op, tile));
    } else if (tile->dx[0]) {
        of_bf16()->to_f32(tile->dy, tile->dx[0], tile->dx_adds[0], n_elems(op, tile));
    }
    return WEIR_OK;
}

/* ---- batch norm, with the add and ReLU behind it --------------------------------------------- */

static double *partial_row(const struct op *op, const struct op_tile *tile)
{
    return op->partials + (size_t)tile->i_slice * (size_t)op->n_partials;
}

static real *saved(const struct op *op, int row)
{
    return op->saved + (size_t)row * n_channels(op);
}

weir_status fast_norm_sums(const struct op *op, const struct op_tile *tile)
{
    double *row = partial_row(op, tile);
    kernels(op)->norm_sums(tile->x[0], n_pixels(op, tile), n_channels(op), row,
                           row + n_channels(op));
    return WEIR_OK;
}

weir_status fast_norm_combine(const struct op *op)
{
    WEIR_TRY(REF(batch_norm_combine)(op));
    for (size_t k = 0; k < n_channels(op); k++) {
        double scale = (double)op->params[OP_WEIGHT].value[k] * (double)saved(op, BN_INV_STD)[k];
        saved(op, BN_BATCH_SCALE)[k] = (real)scale;
        saved(op, BN_BATCH_SHIFT)[k] =
            (real)((double)op->params[OP_BIAS].value[k] - scale * (double)saved(op, BN_MEAN)[k]);
    }
    return WEIR_OK;
}

/* Of so many bytes the caches keep little until the next op reads them (a Xeon's second one: 2 MB).
 * ResNet-50 in f32: 1,340 instead of 1,381 ms a step there; from 1 MB on it is no faster. */
#define PAST_MIN_BYTES ((size_t)2 << 20)

/* Should an op's output be written past them? */
static bool is_past(const struct op *op, const struct op_tile *tile)
{
    size_t n_bytes = n_elems(op, tile) * kernels(op)->elem_bytes;
    return n_bytes >= PAST_MIN_BYTES && dnn_is_memory_far();
}

weir_status fast_norm_forward(const struct op *op, const struct op_tile *tile)
{
    bool is_beside = tile->y != tile->x[0] && (!op->has_residual || tile->y != tile->x[1]);
    kernels(op)->norm_apply(tile->x[0], op->has_residual ? tile->x[1] : NULL, tile->y,
                            n_pixels(op, tile), n_channels(op),
                            saved(op, tile->is_training ? BN_BATCH_SCALE : BN_SCALE),
                            saved(op, tile->is_training ? BN_BATCH_SHIFT : BN_SHIFT), op->has_relu,
                            is_beside && is_past(op, tile));
    return WEIR_OK;
}

weir_status fast_norm_backward_sums(const struct op *op, const struct op_tile *tile)
{
    double *row = partial_row(op, tile), *products = row + n_channels(op);
    kernels(op)->norm_backward_sums(tile->dy, op->has_relu ? tile->y : NULL, tile->x[0],
                                    n_pixels(op, tile), n_channels(op), saved(op, BN_MEAN), row,
                                    products);
    for (size_t k = 0; k < n_channels(op); k++) {
        products[k] *= (double)saved(op, BN_INV_STD)[k];
    }
    return WEIR_OK;
}

weir_status fast_norm_backward_combine(const struct op *op)
{
    WEIR_TRY(REF(batch_norm_backward_combine)(op));
    for (size_t k = 0; k < n_channels(op); k++) {
        double scale = saved(op, BN_BATCH_SCALE)[k], inv_std = saved(op, BN_INV_STD)[k];
        double factor = -scale * inv_std * (double)saved(op, BN_MEAN_GX)[k];
        saved(op, BN_X_FACTOR)[k] = (real)factor;
        saved(op, BN_DX_SHIFT)[k] = (real)(-scale * (double)saved(op, BN_MEAN_G)[k] -
                                           factor * (double)saved(op, BN_MEAN)[k]);
    }
    return WEIR_OK;
}

weir_status fast_norm_backward(const struct op *op, const struct op_tile *tile)
{
    const struct norm_gradient job = {.dy = tile->dy,
                                      .y = op->has_relu ? tile->y : NULL,
                                      .x = tile->x[0],
                                      .n_pixels = n_pixels(op, tile),
                                      .c = n_channels(op),
                                      .scale = saved(op, BN_BATCH_SCALE),
                                      .x_factor = saved(op, BN_X_FACTOR),
                                      .shift = saved(op, BN_DX_SHIFT),
                                      .dx = tile->dx[0],
                                      .residual_dx = op->has_residual ? tile->dx[1] : NULL,
                                      .adds = tile->dx_adds[0],
                                      .residual_adds = tile->dx_adds[1],
                                      .is_past = is_past(op, tile)};
    kernels(op)->norm_backward(&job);
    return WEIR_OK;
}

/* ---- element-wise ------------------------------------------------------------------------- */

static float ceiling(const struct op *op)
{
    return op->kind == LAYER_RELU6 ? 6 : INFINITY;
}

weir_status fast_relu_forward(const struct op *op, const struct op_tile *tile)
{
    kernels(op)->relu(tile->x[0], tile->y, ceiling(op), n_elems(op, tile));
    return WEIR_OK;
}

weir_status fast_relu_backward(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0]) {
        kernels(op)->relu_backward(tile->dy, tile->y, tile->dx[0], tile->dx_adds[0], ceiling(op),
                                   n_elems(op, tile));
    }
    return WEIR_OK;
}

weir_status fast_prelu_forward(const struct op *op, const struct op_tile *tile)
{
    kernels(op)->prelu(tile->x[0], op->params[OP_WEIGHT].value, tile->y, n_pixels(op, tile),
                       n_channels(op));
    return WEIR_OK;
}

weir_status fast_prelu_backward(const struct op *op, const struct op_tile *tile)
{
    kernels(op)->prelu_backward(tile->dy, tile->x[0], op->params[OP_WEIGHT].value, tile->dx[0],
                                tile->dx_adds[0], n_pixels(op, tile), n_channels(op),
                                partial_row(op, tile));
    return WEIR_OK;
}

weir_status fast_add_forward(const struct op *op, const struct op_tile *tile)
{
    kernels(op)->add(tile->x[0], tile->x[1], tile->y, n_elems(op, tile));
    return WEIR_OK;
}

/* dx (+)= dy; nothing to do where the planner gave both the same memory. */
static void pass_gradient(const struct op *op, const struct op_tile *tile, int32_t i_in, size_t n)
{
    real *dx = tile->dx[i_in];
    if (dx && tile->dx_adds[i_in]) {
        kernels(op)->add(dx, tile->dy, dx, n);
    } else if (dx && dx != tile->dy) {
        memcpy(dx, tile->dy, n * kernels(op)->elem_bytes);
    }
}

weir_status fast_add_backward(const struct op *op, const struct op_tile *tile)
{
    for (int32_t i_in = 1; i_in >= 0; i_in--) {
        pass_gradient(op, tile, i_in, n_elems(op, tile));
    }
    return WEIR_OK;
}

/* Place of element i of a tile, in memory order, in the C, H, W order of images that masks have. */
static uint64_t mask_place(const struct op *op, size_t i)
{
    size_t c = (size_t)op->out.c, hw = (size_t)op->out.h * (size_t)op->out.w;
    size_t image = i / (c * hw), in_image = i % (c * hw);
    return image * c * hw + in_image % c * hw + in_image / c;
}

/* Factors worked out at a time. */
enum { DROP_BLOCK = 64 };

/* to (+)= from * factor, 0 or 1 / (1 - rate): a Philox block serves four elements of an image in
 * C, H, W order (see the reference). */
static void drop(const struct op *op, const struct op_tile *tile, const real *from, real *to,
                 bool adds)
{
    uint64_t first = (op->dropout_first + (uint64_t)tile->first) * op_elems(op->out);
    uint64_t block_at = UINT64_MAX;
    uint32_t words[4] = {0};
    float factors[DROP_BLOCK], factor = (float)(1 / (1 - (double)op->rate));
    uint32_t threshold = (uint32_t)((double)op->rate * 0x1p24);
    bool is_vector = op->out.h == 1 && op->out.w == 1;
    size_t total = n_elems(op, tile);
    /* a 24-bit number is below rate * 2^24 exactly if it is below the next whole number */
    threshold += (double)threshold < (double)op->rate * 0x1p24;
    for (size_t i = 0; i < total; i += DROP_BLOCK) {
        size_t n = WEIR_MIN(total - i, (size_t)DROP_BLOCK);
        for (size_t j = 0; j < n; j++) {
            uint64_t at = first + (is_vector ? i + j : mask_place(op, i + j));
            if (at / 4 != block_at) {
                block_at = at / 4;
                weir_philox(op->dropout_key, tile->step, block_at, words);
            }
            factors[j] = words[at % 4] >> 8 < threshold ? 0 : factor;
        }
        kernels(op)->multiply(vector_at(op, from, i), factors, vector_at(op, to, i), adds, n);
    }
}

weir_status fast_dropout_forward(const struct op *op, const struct op_tile *tile)
{
    if (tile->is_training) {
        drop(op, tile, tile->x[0], tile->y, false);
    } else if (tile->y != tile->x[0]) {
        memcpy(tile->y, tile->x[0], n_elems(op, tile) * kernels(op)->elem_bytes);
    }
    return WEIR_OK;
}

weir_status fast_dropout_backward(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0]) {
        drop(op, tile, tile->dy, tile->dx[0], tile->dx_adds[0]);
    }
    return WEIR_OK;
}

/* ---- concatenation -------------------------------------------------------------------------- */

weir_status fast_concat_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c_out = (size_t)op->out.c, first_c = 0, n = n_pixels(op, tile);
    for (int32_t i_in = 0; i_in < op->n_in; i_in++) {
        size_t c = (size_t)op->in[i_in].c;
        for (size_t p = 0; p < n; p++) {
            memcpy(vector_at(op, tile->y, p * c_out + first_c), vector_at(op, tile->x[i_in], p * c),
                   c * kernels(op)->elem_bytes);
        }
        first_c += c;
    }
    return WEIR_OK;
}

/* Last input first, as the planner expects: a value concatenated with itself is then added to. */
weir_status fast_concat_backward(const struct op *op, const struct op_tile *tile)
{
    size_t c_out = (size_t)op->out.c, first_c = c_out, n = n_pixels(op, tile);
    for (int32_t i_in = op->n_in - 1; i_in >= 0; i_in--) {
        size_t c = (size_t)op->in[i_in].c;
        first_c -= c;
        for (size_t p = 0; tile->dx[i_in] && p < n; p++) {
            const void *from = vector_at(op, tile->dy, p * c_out + first_c);
            void *to = vector_at(op, tile->dx[i_in], p * c);
            if (tile->dx_adds[i_in]) {
                kernels(op)->add(to, from, to, c);
            } else {
                memcpy(to, from, c * kernels(op)->elem_bytes);
            }
        }
    }
    return WEIR_OK;
}

/* ---- images as vectors -------------------------------------------------------------------- */

weir_status fast_flatten_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c = n_channels(op), len = op_elems(op->out);
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        kernels(op)->transpose(vector_at(op, tile->x[0], n * len), len / c, c, false,
                               vector_at(op, tile->y, n * len));
    }
    return WEIR_OK;
}

weir_status fast_flatten_backward(const struct op *op, const struct op_tile *tile)
{
    size_t c = n_channels(op), len = op_elems(op->out);
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        kernels(op)->transpose(vector_at(op, tile->dy, n * len), c, len / c, tile->dx_adds[0],
                               vector_at(op, tile->dx[0], n * len));
    }
    return WEIR_OK;
}

weir_status fast_scale_forward(const struct op *op, const struct op_tile *tile)
{
    kernels(op)->scale(tile->x[0], op->scale, tile->y, false, n_elems(op, tile));
    return WEIR_OK;
}

weir_status fast_scale_backward(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0]) {
        kernels(op)->scale(tile->dy, op->scale, tile->dx[0], tile->dx_adds[0], n_elems(op, tile));
    }
    return WEIR_OK;
}
