#include "layers.h"

#include "vector.h"

#include <string.h>

weir_status fast_max_pool_forward(const struct op *op, const struct op_tile *tile)
{
    size_t in = op_elems(op->in[0]), out = op_elems(op->out);
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        int32_t *winners = tile->is_training ? op->winners + ((size_t)tile->first + n) * out : NULL;
        vector_kernels()->max_pool(tile->x[0] + n * in, op->in[0], op->out, &op->pool,
                                   tile->y + n * out, winners);
    }
    return WEIR_OK;
}

weir_status fast_max_pool_backward(const struct op *op, const struct op_tile *tile)
{
    size_t in = op_elems(op->in[0]), out = op_elems(op->out);
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        real *dx = tile->dx[0] + n * in;
        if (!tile->dx_adds[0]) {
            memset(dx, 0, in * sizeof(real));
        }
        vector_kernels()->max_pool_backward(tile->dy + n * out,
                                            op->winners + ((size_t)tile->first + n) * out,
                                            op->in[0], op->out, &op->pool, dx);
    }
    return WEIR_OK;
}

/* Rows [*first, *end) of the input that window `o` covers. */
static void window(int32_t o, const struct weir_pool_params *p, int32_t limit, int32_t *first,
                   int32_t *end)
{
    *first = WEIR_MAX(o * p->stride - p->pad, 0);
    *end = WEIR_MIN(o * p->stride - p->pad + p->kernel, limit);
}

/* to (+)= factor * from. */
static void add_scaled(const real *from, real factor, real *restrict to, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        to[k] += factor * from[k];
    }
}

/* Average pooling of one image: every cell has an equal share of every window it is in. */
static void spread(const struct op *op, const real *from, real *to, bool is_backward)
{
    size_t c = (size_t)op->out.c;
    for (int32_t oh = 0; oh < op->out.h; oh++) {
        for (int32_t ow = 0; ow < op->out.w; ow++) {
            size_t out = ((size_t)oh * (size_t)op->out.w + (size_t)ow) * c;
            int32_t h0, h1, w0, w1;
            window(oh, &op->pool, op->in[0].h, &h0, &h1);
            window(ow, &op->pool, op->in[0].w, &w0, &w1);
            real share = (real)(1 / op_pool_cells(op, oh, ow));
            for (int32_t h = h0; h < h1; h++) {
                for (int32_t w = w0; w < w1; w++) {
                    size_t cell = ((size_t)h * (size_t)op->in[0].w + (size_t)w) * c;
                    add_scaled(from + (is_backward ? out : cell), share,
                               to + (is_backward ? cell : out), c);
                }
            }
        }
    }
}

weir_status fast_avg_pool_forward(const struct op *op, const struct op_tile *tile)
{
    size_t in = op_elems(op->in[0]), out = op_elems(op->out);
    memset(tile->y, 0, (size_t)tile->n * out * sizeof(real));
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        spread(op, tile->x[0] + n * in, tile->y + n * out, false);
    }
    return WEIR_OK;
}

weir_status fast_avg_pool_backward(const struct op *op, const struct op_tile *tile)
{
    size_t in = op_elems(op->in[0]), out = op_elems(op->out);
    if (tile->dx[0] && !tile->dx_adds[0]) {
        memset(tile->dx[0], 0, (size_t)tile->n * in * sizeof(real));
    }
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        spread(op, tile->dy + n * out, tile->dx[0] + n * in, true);
    }
    return WEIR_OK;
}

/* Channels whose sums are held at once, in double. */
enum { BLOCK = 64 };

weir_status fast_global_pool_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c = (size_t)op->in[0].c, hw = (size_t)op->in[0].h * (size_t)op->in[0].w;
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        for (size_t first = 0; first < c; first += BLOCK) {
            double sums[BLOCK] = {0};
            size_t n_channels = WEIR_MIN(c - first, (size_t)BLOCK);
            for (size_t p = 0; p < hw; p++) {
                const real *x = tile->x[0] + (n * hw + p) * c + first;
                for (size_t k = 0; k < n_channels; k++) {
                    sums[k] += x[k];
                }
            }
            for (size_t k = 0; k < n_channels; k++) {
                tile->y[n * c + first + k] = (real)(sums[k] / (double)hw);
            }
        }
    }
    return WEIR_OK;
}

weir_status fast_global_pool_backward(const struct op *op, const struct op_tile *tile)
{
    size_t c = (size_t)op->in[0].c, hw = (size_t)op->in[0].h * (size_t)op->in[0].w;
    size_t n_pixels = tile->dx[0] ? (size_t)tile->n * hw : 0;
    if (tile->dx[0] && !tile->dx_adds[0]) {
        memset(tile->dx[0], 0, n_pixels * c * sizeof(real));
    }
    for (size_t p = 0; p < n_pixels; p++) {
        add_scaled(tile->dy + p / hw * c, 1 / (real)hw, tile->dx[0] + p * c, c);
    }
    return WEIR_OK;
}
