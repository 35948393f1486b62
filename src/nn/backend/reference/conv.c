#include "kernels.h"

/* Channels that an output channel reads, and output channels of a group. */
static int32_t group_in(const struct op *op)
{
    return op->in[0].c / op->conv.groups;
}

static int32_t group_out(const struct op *op)
{
    return op->out.c / op->conv.groups;
}

/* Weight (k, c, kh, kw) of a convolution, c in its group; rows of the weight slab are O, I, H, W.
 */
static size_t weight_at(const struct op *op, int32_t k, int32_t c, int32_t i, int32_t j)
{
    const struct weir_conv_params *p = &op->conv;
    return (size_t)((((int64_t)k * group_in(op) + c) * p->kernel_h + i) * p->kernel_w + j);
}

static bool is_inside(struct weir_shape s, int32_t h, int32_t w)
{
    return h >= 0 && h < s.h && w >= 0 && w < s.w;
}

static double conv_one(const struct op *op, const struct op_tile *tile, int32_t n, int32_t k,
                       int32_t oh, int32_t ow)
{
    const struct weir_conv_params *p = &op->conv;
    const real *bias = op->params[OP_BIAS].value;
    double sum = bias ? bias[k] : 0;
    int32_t first = k / group_out(op) * group_in(op);
    for (int32_t c = 0; c < group_in(op); c++) {
        for (int32_t i = 0; i < p->kernel_h; i++) {
            for (int32_t j = 0; j < p->kernel_w; j++) {
                int32_t h = oh * p->stride - p->pad_h + i * p->dilation;
                int32_t w = ow * p->stride - p->pad_w + j * p->dilation;
                if (is_inside(op->in[0], h, w)) {
                    sum += ref_weight(op, weight_at(op, k, c, i, j)) *
                           tile->x[0][op_at(op, op->in[0], n, first + c, h, w)];
                }
            }
        }
    }
    return sum;
}

weir_status REF(conv_forward)(const struct op *op, const struct op_tile *tile)
{
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t k = 0; k < op->out.c; k++) {
            for (int32_t oh = 0; oh < op->out.h; oh++) {
                for (int32_t ow = 0; ow < op->out.w; ow++) {
                    tile->y[op_at(op, op->out, n, k, oh, ow)] =
                        (real)conv_one(op, tile, n, k, oh, ow);
                }
            }
        }
    }
    return WEIR_OK;
}

/* Sum over every output (k, oh, ow) whose window covers input (c, h, w). */
static double conv_backward_one(const struct op *op, const struct op_tile *tile, int32_t n,
                                int32_t c, int32_t h, int32_t w)
{
    const struct weir_conv_params *p = &op->conv;
    double sum = 0;
    int32_t group = c / group_in(op), in_group = c % group_in(op);
    for (int32_t i = 0; i < p->kernel_h; i++) {
        for (int32_t j = 0; j < p->kernel_w; j++) {
            int32_t th = h + p->pad_h - i * p->dilation, tw = w + p->pad_w - j * p->dilation;
            if (th % p->stride != 0 || tw % p->stride != 0 ||
                !is_inside(op->out, th / p->stride, tw / p->stride) || th < 0 || tw < 0) {
                continue;
            }
            for (int32_t k = group * group_out(op); k < (group + 1) * group_out(op); k++) {
                sum += ref_weight(op, weight_at(op, k, in_group, i, j)) *
                       tile->dy[op_at(op, op->out, n, k, th / p->stride, tw / p->stride)];
            }
        }
    }
    return sum;
}

weir_status REF(conv_backward)(const struct op *op, const struct op_tile *tile)
{
    if (!tile->dx[0]) {
        return WEIR_OK;
    }
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t c = 0; c < op->in[0].c; c++) {
            for (int32_t h = 0; h < op->in[0].h; h++) {
                for (int32_t w = 0; w < op->in[0].w; w++) {
                    ref_put(tile, 0, op_at(op, op->in[0], n, c, h, w),
                            conv_backward_one(op, tile, n, c, h, w));
                }
            }
        }
    }
    return WEIR_OK;
}

static double weight_gradient_one(const struct op *op, const struct op_tile *tile, int32_t k,
                                  int32_t c, int32_t i, int32_t j)
{
    const struct weir_conv_params *p = &op->conv;
    double sum = 0;
    int32_t channel = k / group_out(op) * group_in(op) + c;
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t oh = 0; oh < op->out.h; oh++) {
            for (int32_t ow = 0; ow < op->out.w; ow++) {
                int32_t h = oh * p->stride - p->pad_h + i * p->dilation;
                int32_t w = ow * p->stride - p->pad_w + j * p->dilation;
                if (is_inside(op->in[0], h, w)) {
                    sum += (double)tile->dy[op_at(op, op->out, n, k, oh, ow)] *
                           tile->x[0][op_at(op, op->in[0], n, channel, h, w)];
                }
            }
        }
    }
    return sum;
}

static void bias_gradient(const struct op *op, const struct op_tile *tile)
{
    if (!op->params[OP_BIAS].gradient) {
        return;
    }
    for (int32_t k = 0; k < op->out.c; k++) {
        double sum = 0;
        for (int32_t n = 0; n < tile->n; n++) {
            for (int32_t oh = 0; oh < op->out.h; oh++) {
                for (int32_t ow = 0; ow < op->out.w; ow++) {
                    sum += tile->dy[op_at(op, op->out, n, k, oh, ow)];
                }
            }
        }
        op->params[OP_BIAS].gradient[k] = (real)sum;
    }
}

weir_status REF(conv_weight_gradient)(const struct op *op, const struct op_tile *tile)
{
    const struct weir_conv_params *p = &op->conv;
    for (int32_t k = 0; k < op->out.c; k++) {
        for (int32_t c = 0; c < group_in(op); c++) {
            for (int32_t i = 0; i < p->kernel_h; i++) {
                for (int32_t j = 0; j < p->kernel_w; j++) {
                    op->params[OP_WEIGHT].gradient[weight_at(op, k, c, i, j)] =
                        (real)weight_gradient_one(op, tile, k, c, i, j);
                }
            }
        }
    }
    bias_gradient(op, tile);
    return WEIR_OK;
}

/* ---- linear: inputs are flattened in C, H, W order whatever the layout ---------------------- */

/* Where flat input feature `f` of image n lies. */
static size_t feature_at(const struct op *op, int32_t n, int32_t f)
{
    struct weir_shape in = op->in[0];
    int32_t hw = in.h * in.w;
    return op_at(op, in, n, f / hw, f % hw / in.w, f % in.w);
}

weir_status REF(linear_forward)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_features = (int32_t)op_elems(op->in[0]);
    const real *bias = op->params[OP_BIAS].value;
    for (int32_t n = 0; n < tile->n; n++) {
        for (int32_t k = 0; k < op->out.c; k++) {
            double sum = bias ? bias[k] : 0;
            for (int32_t f = 0; f < n_features; f++) {
                sum += ref_weight(op, (size_t)k * (size_t)n_features + (size_t)f) *
                       tile->x[0][feature_at(op, n, f)];
            }
            tile->y[op_at(op, op->out, n, k, 0, 0)] = (real)sum;
        }
    }
    return WEIR_OK;
}

weir_status REF(linear_backward)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_features = (int32_t)op_elems(op->in[0]);
    for (int32_t n = 0; tile->dx[0] && n < tile->n; n++) {
        for (int32_t f = 0; f < n_features; f++) {
            double sum = 0;
            for (int32_t k = 0; k < op->out.c; k++) {
                sum += ref_weight(op, (size_t)k * (size_t)n_features + (size_t)f) *
                       tile->dy[op_at(op, op->out, n, k, 0, 0)];
            }
            ref_put(tile, 0, feature_at(op, n, f), sum);
        }
    }
    return WEIR_OK;
}

weir_status REF(linear_weight_gradient)(const struct op *op, const struct op_tile *tile)
{
    int32_t n_features = (int32_t)op_elems(op->in[0]);
    for (int32_t k = 0; k < op->out.c; k++) {
        for (int32_t f = 0; f < n_features; f++) {
            double sum = 0;
            for (int32_t n = 0; n < tile->n; n++) {
                sum += (double)tile->dy[op_at(op, op->out, n, k, 0, 0)] *
                       tile->x[0][feature_at(op, n, f)];
            }
            op->params[OP_WEIGHT].gradient[(size_t)k * (size_t)n_features + (size_t)f] = (real)sum;
        }
    }
    bias_gradient(op, tile);
    return WEIR_OK;
}
