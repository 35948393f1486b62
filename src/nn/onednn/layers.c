#include "layers.h"

#include "../reference/kernels.h"
#include "base/rng.h"
#include "vector.h"

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

/* N, C, H, W of the caller into N, H, W, C. */
weir_status fast_input_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c = (size_t)op->out.c, hw = (size_t)op->out.h * (size_t)op->out.w;
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        const real *from = tile->x[0] + n * c * hw;
        real *to = tile->y + n * c * hw;
        for (size_t k = 0; k < c; k++) {
            for (size_t p = 0; p < hw; p++) {
                to[p * c + k] = from[k * hw + p];
            }
        }
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
    vector_kernels()->norm_sums(tile->x[0], n_pixels(op, tile), n_channels(op), row,
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

weir_status fast_norm_forward(const struct op *op, const struct op_tile *tile)
{
    vector_kernels()->norm_apply(
        tile->x[0], op->has_residual ? tile->x[1] : NULL, tile->y, n_pixels(op, tile),
        n_channels(op), saved(op, tile->is_training ? BN_BATCH_SCALE : BN_SCALE),
        saved(op, tile->is_training ? BN_BATCH_SHIFT : BN_SHIFT), op->has_relu);
    return WEIR_OK;
}

weir_status fast_norm_backward_sums(const struct op *op, const struct op_tile *tile)
{
    double *row = partial_row(op, tile), *products = row + n_channels(op);
    vector_kernels()->norm_backward_sums(tile->dy, op->has_relu ? tile->y : NULL, tile->x[0],
                                         n_pixels(op, tile), n_channels(op), saved(op, BN_MEAN),
                                         row, products);
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
                                      .residual_adds = tile->dx_adds[1]};
    vector_kernels()->norm_backward(&job);
    return WEIR_OK;
}

/* ---- element-wise -----------------------------------------------------------------------------
 */

weir_status fast_relu_forward(const struct op *op, const struct op_tile *tile)
{
    vector_kernels()->relu(tile->x[0], tile->y, n_elems(op, tile));
    return WEIR_OK;
}

weir_status fast_relu_backward(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0]) {
        vector_kernels()->relu_backward(tile->dy, tile->y, tile->dx[0], tile->dx_adds[0],
                                        n_elems(op, tile));
    }
    return WEIR_OK;
}

weir_status fast_relu6_forward(const struct op *op, const struct op_tile *tile)
{
    size_t n = n_elems(op, tile);
    const real *x = tile->x[0];
    real *y = tile->y;
    for (size_t i = 0; i < n; i++) {
        real floored = x[i] < 0 ? 0 : x[i];
        y[i] = floored > 6 ? 6 : floored;
    }
    return WEIR_OK;
}

weir_status fast_relu6_backward(const struct op *op, const struct op_tile *tile)
{
    size_t n = tile->dx[0] ? n_elems(op, tile) : 0;
    const real *y = tile->y, *dy = tile->dy;
    real *dx = tile->dx[0];
    for (size_t i = 0; i < n; i++) {
        real passed = y[i] > 0 && y[i] < 6 ? dy[i] : 0;
        dx[i] = tile->dx_adds[0] ? dx[i] + passed : passed;
    }
    return WEIR_OK;
}

weir_status fast_prelu_forward(const struct op *op, const struct op_tile *tile)
{
    vector_kernels()->prelu(tile->x[0], op->params[OP_WEIGHT].value, tile->y, n_pixels(op, tile),
                            n_channels(op));
    return WEIR_OK;
}

weir_status fast_prelu_backward(const struct op *op, const struct op_tile *tile)
{
    vector_kernels()->prelu_backward(tile->dy, tile->x[0], op->params[OP_WEIGHT].value, tile->dx[0],
                                     tile->dx_adds[0], n_pixels(op, tile), n_channels(op),
                                     partial_row(op, tile));
    return WEIR_OK;
}

weir_status fast_add_forward(const struct op *op, const struct op_tile *tile)
{
    vector_kernels()->add(tile->x[0], tile->x[1], tile->y, n_elems(op, tile));
    return WEIR_OK;
}

/* dx (+)= dy; nothing to do where the planner gave both the same memory. */
static void pass_gradient(const struct op_tile *tile, int32_t i_in, size_t n)
{
    real *dx = tile->dx[i_in];
    if (dx && tile->dx_adds[i_in]) {
        vector_kernels()->add(dx, tile->dy, dx, n);
    } else if (dx && dx != tile->dy) {
        memcpy(dx, tile->dy, n * sizeof(real));
    }
}

weir_status fast_add_backward(const struct op *op, const struct op_tile *tile)
{
    for (int32_t i_in = 1; i_in >= 0; i_in--) {
        pass_gradient(tile, i_in, n_elems(op, tile));
    }
    return WEIR_OK;
}

/* to = from * factor over vectors: a Philox block serves four elements (see the reference). */
static void drop_vectors(const struct op *op, const struct op_tile *tile, const real *from,
                         real *to)
{
    uint64_t first = (op->dropout_first + (uint64_t)tile->first) * op_elems(op->out);
    uint64_t block_at = UINT64_MAX;
    uint32_t words[4] = {0};
    real factor = (real)(1 / (1 - (double)op->rate));
    uint32_t threshold = (uint32_t)((double)op->rate * 0x1p24);
    /* a 24-bit number is below rate * 2^24 exactly if it is below the next whole number */
    threshold += (double)threshold < (double)op->rate * 0x1p24;
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        uint64_t at = first + i;
        if (at / 4 != block_at) {
            block_at = at / 4;
            weir_philox(op->dropout_key, tile->step, block_at, words);
        }
        to[i] = words[at % 4] >> 8 < threshold ? 0 : from[i] * factor;
    }
}

static bool is_vector(const struct op *op)
{
    return op->out.h == 1 && op->out.w == 1;
}

weir_status fast_dropout_forward(const struct op *op, const struct op_tile *tile)
{
    if (!tile->is_training || !is_vector(op)) {
        return REF(dropout_forward)(op, tile);
    }
    drop_vectors(op, tile, tile->x[0], tile->y);
    return WEIR_OK;
}

weir_status fast_dropout_backward(const struct op *op, const struct op_tile *tile)
{
    if (!tile->dx[0] || tile->dx_adds[0] || !is_vector(op)) {
        return REF(dropout_backward)(op, tile);
    }
    drop_vectors(op, tile, tile->dy, tile->dx[0]);
    return WEIR_OK;
}

/* ---- joining channels -------------------------------------------------------------------------
 */

weir_status fast_concat_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c_out = (size_t)op->out.c, first_c = 0, n = n_pixels(op, tile);
    for (int32_t i_in = 0; i_in < op->n_in; i_in++) {
        size_t c = (size_t)op->in[i_in].c;
        for (size_t p = 0; p < n; p++) {
            memcpy(tile->y + p * c_out + first_c, tile->x[i_in] + p * c, c * sizeof(real));
        }
        first_c += c;
    }
    return WEIR_OK;
}

/* Last input first, as the planner expects (a value joined with itself is added to then). */
weir_status fast_concat_backward(const struct op *op, const struct op_tile *tile)
{
    size_t c_out = (size_t)op->out.c, first_c = c_out, n = n_pixels(op, tile);
    for (int32_t i_in = op->n_in - 1; i_in >= 0; i_in--) {
        size_t c = (size_t)op->in[i_in].c;
        first_c -= c;
        for (size_t p = 0; tile->dx[i_in] && p < n; p++) {
            const real *from = tile->dy + p * c_out + first_c;
            real *to = tile->dx[i_in] + p * c;
            if (tile->dx_adds[i_in]) {
                vector_kernels()->add(to, from, to, c);
            } else {
                memcpy(to, from, c * sizeof(real));
            }
        }
    }
    return WEIR_OK;
}

/* ---- images as vectors ------------------------------------------------------------------------
 */

/* rows x cols values of `from` into cols x rows of `to`; adds where asked. */
static void transpose(const real *from, size_t rows, size_t cols, bool adds, real *restrict to)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t k = 0; k < cols; k++) {
            real *at = to + k * rows + r;
            *at = adds ? *at + from[r * cols + k] : from[r * cols + k];
        }
    }
}

weir_status fast_flatten_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c = n_channels(op), len = op_elems(op->out);
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        transpose(tile->x[0] + n * len, len / c, c, false, tile->y + n * len);
    }
    return WEIR_OK;
}

weir_status fast_flatten_backward(const struct op *op, const struct op_tile *tile)
{
    size_t c = n_channels(op), len = op_elems(op->out);
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        transpose(tile->dy + n * len, c, len / c, tile->dx_adds[0], tile->dx[0] + n * len);
    }
    return WEIR_OK;
}

weir_status fast_scale_forward(const struct op *op, const struct op_tile *tile)
{
    size_t n = n_elems(op, tile);
    for (size_t i = 0; i < n; i++) {
        tile->y[i] = op->scale * tile->x[0][i];
    }
    return WEIR_OK;
}

weir_status fast_scale_backward(const struct op *op, const struct op_tile *tile)
{
    size_t n = tile->dx[0] ? n_elems(op, tile) : 0;
    real *dx = tile->dx[0];
    for (size_t i = 0; i < n; i++) {
        dx[i] = op->scale * tile->dy[i] + (tile->dx_adds[0] ? dx[i] : 0);
    }
    return WEIR_OK;
}
