#include "kernels.h"

#include <math.h>
#include <string.h>

/* Rows [*first, *end) of the input that window `o` covers. */
static void window(int32_t o, const struct weir_pool_params *p, int32_t limit, int32_t *first,
                   int32_t *end)
{
    *first = WEIR_MAX(o * p->stride - p->pad, 0);
    *end = WEIR_MIN(o * p->stride - p->pad + p->kernel, limit);
}

/* Position of a window's maximum as h * W + w. It is the first of equals; NaN counts as the
 * largest. */
static int32_t find_max(const struct op *op, const struct op_tile *tile, int32_t n, int32_t c,
                        int32_t oh, int32_t ow)
{
    int32_t h0, h1, w0, w1;
    window(oh, &op->pool, op->in[0].h, &h0, &h1);
    window(ow, &op->pool, op->in[0].w, &w0, &w1);
    int32_t best_at = h0 * op->in[0].w + w0;
    real best = tile->x[0][op_at(op, op->in[0], n, c, h0, w0)];
    for (int32_t h = h0; h < h1; h++) {
        for (int32_t w = w0; w < w1; w++) {
            real x = tile->x[0][op_at(op, op->in[0], n, c, h, w)];
            if (x > best || isnan(x)) {
                best = x;
                best_at = h * op->in[0].w + w;
            }
        }
    }
    return best_at;
}

weir_status REF(max_pool_forward)(const struct op *op, const struct op_tile *tile)
{
    int32_t *argmax =
        tile->is_training ? op->argmax + (size_t)tile->first * op_elems(op->out) : NULL;
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->out.c; c++) {
            for (int32_t oh = 0; oh < op->out.h; oh++) {
                for (int32_t ow = 0; ow < op->out.w; ow++) {
                    int32_t at = find_max(op, tile, n, c, oh, ow);
                    size_t to = op_at(op, op->out, n, c, oh, ow);
                    tile->y[to] =
                        tile->x[0][op_at(op, op->in[0], n, c, at / op->in[0].w, at % op->in[0].w)];
                    if (argmax) {
                        argmax[to] = at;
                    }
                }
            }
        }
    }
    return WEIR_OK;
}

/* Backward passes of pooling scatter: start from zero unless there is something to add to. */
static void clear_dx(const struct op *op, const struct op_tile *tile)
{
    if (!tile->dx_adds[0]) {
        memset(tile->dx[0], 0, (size_t)tile->n * op_elems(op->in[0]) * sizeof(real));
    }
}

weir_status REF(max_pool_backward)(const struct op *op, const struct op_tile *tile)
{
    if (!tile->dx[0]) {
        return WEIR_OK;
    }
    const int32_t *argmax = op->argmax + (size_t)tile->first * op_elems(op->out);
    clear_dx(op, tile);
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->out.c; c++) {
            for (int32_t oh = 0; oh < op->out.h; oh++) {
                for (int32_t ow = 0; ow < op->out.w; ow++) {
                    size_t from = op_at(op, op->out, n, c, oh, ow);
                    int32_t at = argmax[from];
                    tile->dx[0][op_at(op, op->in[0], n, c, at / op->in[0].w, at % op->in[0].w)] +=
                        tile->dy[from];
                }
            }
        }
    }
    return WEIR_OK;
}

weir_status REF(avg_pool_forward)(const struct op *op, const struct op_tile *tile)
{
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->out.c; c++) {
            for (int32_t oh = 0; oh < op->out.h; oh++) {
                for (int32_t ow = 0; ow < op->out.w; ow++) {
                    int32_t h0, h1, w0, w1;
                    window(oh, &op->pool, op->in[0].h, &h0, &h1);
                    window(ow, &op->pool, op->in[0].w, &w0, &w1);
                    double sum = 0;
                    for (int32_t h = h0; h < h1; h++) {
                        for (int32_t w = w0; w < w1; w++) {
                            sum += tile->x[0][op_at(op, op->in[0], n, c, h, w)];
                        }
                    }
                    tile->y[op_at(op, op->out, n, c, oh, ow)] =
                        (real)(sum / op_pool_divisor(op, oh, ow));
                }
            }
        }
    }
    return WEIR_OK;
}

weir_status REF(avg_pool_backward)(const struct op *op, const struct op_tile *tile)
{
    if (!tile->dx[0]) {
        return WEIR_OK;
    }
    clear_dx(op, tile);
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->out.c; c++) {
            for (int32_t oh = 0; oh < op->out.h; oh++) {
                for (int32_t ow = 0; ow < op->out.w; ow++) {
                    int32_t h0, h1, w0, w1;
                    window(oh, &op->pool, op->in[0].h, &h0, &h1);
                    window(ow, &op->pool, op->in[0].w, &w0, &w1);
                    double share =
                        tile->dy[op_at(op, op->out, n, c, oh, ow)] / op_pool_divisor(op, oh, ow);
                    for (int32_t h = h0; h < h1; h++) {
                        for (int32_t w = w0; w < w1; w++) {
                            tile->dx[0][op_at(op, op->in[0], n, c, h, w)] += (real)share;
                        }
                    }
                }
            }
        }
    }
    return WEIR_OK;
}

weir_status REF(global_pool_forward)(const struct op *op, const struct op_tile *tile)
{
    double area = (double)op->in[0].h * op->in[0].w;
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->in[0].c; c++) {
            double sum = 0;
            for (int32_t h = 0; h < op->in[0].h; h++) {
                for (int32_t w = 0; w < op->in[0].w; w++) {
                    sum += tile->x[0][op_at(op, op->in[0], n, c, h, w)];
                }
            }
            tile->y[op_at(op, op->out, n, c, 0, 0)] = (real)(sum / area);
        }
    }
    return WEIR_OK;
}

weir_status REF(global_pool_backward)(const struct op *op, const struct op_tile *tile)
{
    double area = (double)op->in[0].h * op->in[0].w;
    for (int32_t n = 0; tile->dx[0] && n < tile->n; n++) {
        for (int32_t c = 0; c < op->in[0].c; c++) {
            double share = tile->dy[op_at(op, op->out, n, c, 0, 0)] / area;
            for (int32_t h = 0; h < op->in[0].h; h++) {
                for (int32_t w = 0; w < op->in[0].w; w++) {
                    ref_put(tile, 0, op_at(op, op->in[0], n, c, h, w), share);
                }
            }
        }
    }
    return WEIR_OK;
}
