#include "kernels.h"

#include "base/rng.h"

#include <string.h>

static size_t n_elems(const struct op *op, const struct op_tile *tile)
{
    return (size_t)tile->n * op_elems(op->out);
}

weir_status REF(input_forward)(const struct op *op, const struct op_tile *tile)
{
    const real *from = tile->x[0];
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->out.c; c++) {
            for (int32_t h = 0; h < op->out.h; h++) {
                for (int32_t w = 0; w < op->out.w; w++) {
                    tile->y[op_at(op, op->out, n, c, h, w)] = *from++;
                }
            }
        }
    }
    return WEIR_OK;
}

weir_status REF(cast_forward)(const struct op *op, const struct op_tile *tile)
{
    memcpy(tile->y, tile->x[0], n_elems(op, tile) * sizeof(real));
    return WEIR_OK;
}

weir_status REF(cast_backward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; tile->dx[0] && i < n_elems(op, tile); i++) {
        ref_put(tile, 0, i, (double)tile->dy[i]);
    }
    return WEIR_OK;
}

weir_status REF(relu_forward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        /* "not negative" so that NaN passes */
        tile->y[i] = tile->x[0][i] < 0 ? 0 : tile->x[0][i];
    }
    return WEIR_OK;
}

weir_status REF(relu_backward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; tile->dx[0] && i < n_elems(op, tile); i++) {
        ref_put(tile, 0, i, tile->y[i] > 0 ? (double)tile->dy[i] : 0);
    }
    return WEIR_OK;
}

weir_status REF(relu6_forward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        real x = tile->x[0][i];
        real floored = x < 0 ? 0 : x;
        tile->y[i] = floored > 6 ? 6 : floored;
    }
    return WEIR_OK;
}

weir_status REF(relu6_backward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; tile->dx[0] && i < n_elems(op, tile); i++) {
        ref_put(tile, 0, i, tile->y[i] > 0 && tile->y[i] < 6 ? (double)tile->dy[i] : 0);
    }
    return WEIR_OK;
}

/* Channel of element i of the tile. */
static int32_t channel_of(const struct op *op, size_t i)
{
    if (op->is_channels_last) {
        return (int32_t)(i % (size_t)op->out.c);
    }
    return (int32_t)(i % op_elems(op->out) / ((size_t)op->out.h * (size_t)op->out.w));
}

weir_status REF(prelu_forward)(const struct op *op, const struct op_tile *tile)
{
    const real *slope = op->params[OP_WEIGHT].value;
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        real x = tile->x[0][i];
        tile->y[i] = x < 0 ? slope[channel_of(op, i)] * x : x;
    }
    return WEIR_OK;
}

weir_status REF(prelu_backward)(const struct op *op, const struct op_tile *tile)
{
    const real *slope = op->params[OP_WEIGHT].value;
    double *row = op->partials + (size_t)tile->i_slice * (size_t)op->n_partials;
    memset(row, 0, (size_t)op->n_partials * sizeof(*row));
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        double x = tile->x[0][i], dy = tile->dy[i];
        int32_t c = channel_of(op, i);
        row[c] += x < 0 ? dy * x : 0;
        if (tile->dx[0]) {
            ref_put(tile, 0, i, x < 0 ? (double)slope[c] * dy : dy);
        }
    }
    return WEIR_OK;
}

weir_status REF(prelu_weight_gradient)(const struct op *op, const struct op_tile *tile)
{
    (void)tile;
    for (int32_t c = 0; c < op->n_partials; c++) {
        double sum = 0;
        for (int32_t s = 0; s < op->n_slices; s++) {
            sum += op->partials[(size_t)s * (size_t)op->n_partials + (size_t)c];
        }
        op->params[OP_WEIGHT].gradient[c] = (real)sum;
    }
    return WEIR_OK;
}

/* Factor of element `i` of image `image` (in C, H, W order): 0, or 1/(1 - rate). The same for every
 * layout and back-end: four elements share one Philox block. */
static double dropout_factor(const struct op *op, uint64_t step, size_t image, size_t i)
{
    uint64_t at = (op->dropout_first + image) * op_elems(op->out) + i;
    uint32_t words[4];
    weir_philox(op->dropout_key, step, at / 4, words);
    double uniform = (double)(words[at % 4] >> 8) * 0x1p-24;
    return uniform < (double)op->rate ? 0 : 1 / (1 - (double)op->rate);
}

/* to = from * factor for every element of the tile; adds where asked. */
static void drop(const struct op *op, const struct op_tile *tile, const real *from,
                 bool is_backward)
{
    struct weir_shape s = op->out;
    for (int32_t n = 0; n < tile->n; n++) {
        for (size_t i = 0; i < op_elems(s); i++) {
            int32_t hw = s.h * s.w, c = (int32_t)i / hw, h = (int32_t)i % hw / s.w;
            size_t at = op_at(op, s, n, c, h, (int32_t)i % s.w);
            double factor = dropout_factor(op, tile->step, (size_t)(tile->first + n), i);
            double value = factor * (double)from[at];
            if (is_backward) {
                ref_put(tile, 0, at, value);
            } else {
                tile->y[at] = (real)value;
            }
        }
    }
}

weir_status REF(dropout_forward)(const struct op *op, const struct op_tile *tile)
{
    if (tile->is_training) {
        drop(op, tile, tile->x[0], false);
    } else if (tile->y != tile->x[0]) {
        memcpy(tile->y, tile->x[0], n_elems(op, tile) * sizeof(real));
    }
    return WEIR_OK;
}

weir_status REF(dropout_backward)(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0]) {
        drop(op, tile, tile->dy, true);
    }
    return WEIR_OK;
}

weir_status REF(add_forward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        tile->y[i] = tile->x[0][i] + tile->x[1][i];
    }
    return WEIR_OK;
}

weir_status REF(add_backward)(const struct op *op, const struct op_tile *tile)
{
    /* The second first: dx[0] may be the memory of dy, which is then no longer needed as it was. */
    for (int32_t i_in = 1; i_in >= 0; i_in--) {
        for (size_t i = 0; tile->dx[i_in] && i < n_elems(op, tile); i++) {
            ref_put(tile, i_in, i, tile->dy[i]);
        }
    }
    return WEIR_OK;
}

weir_status REF(concat_forward)(const struct op *op, const struct op_tile *tile)
{
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t i_in = 0, first_c = 0; i_in < op->n_in; first_c += op->in[i_in++].c) {
            for (int32_t c = 0; c < op->in[i_in].c; c++) {
                for (int32_t h = 0; h < op->out.h; h++) {
                    for (int32_t w = 0; w < op->out.w; w++) {
                        tile->y[op_at(op, op->out, n, first_c + c, h, w)] =
                            tile->x[i_in][op_at(op, op->in[i_in], n, c, h, w)];
                    }
                }
            }
        }
    }
    return WEIR_OK;
}

/* Last input first, as the planner expects: a value concatenated with itself is then added to. */
weir_status REF(concat_backward)(const struct op *op, const struct op_tile *tile)
{
    int32_t first_c = op->out.c;
    for (int32_t i_in = op->n_in - 1; i_in >= 0; i_in--) {
        struct weir_shape in = op->in[i_in];
        first_c -= in.c;
        for (int32_t n = 0; tile->dx[i_in] && n < tile->n; n++) {
            for (int32_t c = 0; c < in.c; c++) {
                for (int32_t h = 0; h < in.h; h++) {
                    for (int32_t w = 0; w < in.w; w++) {
                        ref_put(tile, i_in, op_at(op, in, n, c, h, w),
                                tile->dy[op_at(op, op->out, n, first_c + c, h, w)]);
                    }
                }
            }
        }
    }
    return WEIR_OK;
}

/* Place in the image of element i of its vector. */
static size_t unflattened(const struct op *op, size_t i)
{
    struct weir_shape in = op->in[0];
    size_t w = (size_t)in.w, hw = (size_t)in.h * w;
    return op_at(op, in, 0, (int32_t)(i / hw), (int32_t)(i % hw / w), (int32_t)(i % w));
}

weir_status REF(flatten_forward)(const struct op *op, const struct op_tile *tile)
{
    size_t len = op_elems(op->out);
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        for (size_t i = 0; i < len; i++) {
            tile->y[n * len + i] = tile->x[0][n * len + unflattened(op, i)];
        }
    }
    return WEIR_OK;
}

weir_status REF(flatten_backward)(const struct op *op, const struct op_tile *tile)
{
    size_t len = op_elems(op->out);
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        for (size_t i = 0; i < len; i++) {
            ref_put(tile, 0, n * len + unflattened(op, i), (double)tile->dy[n * len + i]);
        }
    }
    return WEIR_OK;
}

weir_status REF(scale_forward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; i < n_elems(op, tile); i++) {
        tile->y[i] = (real)((double)op->scale * (double)tile->x[0][i]);
    }
    return WEIR_OK;
}

weir_status REF(scale_backward)(const struct op *op, const struct op_tile *tile)
{
    for (size_t i = 0; tile->dx[0] && i < n_elems(op, tile); i++) {
        ref_put(tile, 0, i, (double)op->scale * (double)tile->dy[i]);
    }
    return WEIR_OK;
}
