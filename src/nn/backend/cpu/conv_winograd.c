#include "conv_private.h"

static bool is_possible(const struct op *op)
{
    const struct weir_conv_params *p = &op->conv;
    return op->kind == LAYER_CONV && op->type == WEIR_PRECISION_F32 && p->kernel_h == 3 &&
           p->kernel_w == 3 && p->stride == 1 && p->groups == 1 && p->dilation == 1 &&
           p->pad_h <= 2 && p->pad_w <= 2; /* beyond, the gradient's own would be below 0 */
}

static bool pays(const struct op *op)
{
    return op->in[0].c >= 32 && op->conv.k >= 32;
}

static const struct winograd_kernels *kernels_for(const struct op *op)
{
    bool is_wanted = op->convolution == WEIR_CONVOLUTION_WINOGRAD ||
                     (op->convolution == WEIR_CONVOLUTION_AUTO && pays(op));
    return is_wanted && is_possible(op) ? winograd_kernels() : NULL;
}

size_t conv_packed_bytes(const struct op *op)
{
    int32_t c = op->in[0].c, k = op->conv.k;
    return kernels_for(op) ? WEIR_MAX(winograd_points_bytes(c, k), winograd_points_bytes(k, c)) : 0;
}

weir_status conv_winograd_choose(struct conv_state *state, const struct op *op,
                                 struct weir_error *err)
{
    state->winograd = kernels_for(op);
    if (op->convolution == WEIR_CONVOLUTION_WINOGRAD && !winograd_kernels()) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "convolution winograd: this processor has no AVX-512; use direct");
    }
    return WEIR_OK;
}

static struct winograd_form form_of(const struct op *op, int32_t n)
{
    return (struct winograd_form){.n = n,
                                  .c = op->in[0].c,
                                  .h = op->in[0].h,
                                  .w = op->in[0].w,
                                  .k = op->conv.k,
                                  .out_h = op->out.h,
                                  .out_w = op->out.w,
                                  .pad_h = op->conv.pad_h,
                                  .pad_w = op->conv.pad_w};
}

/* The gradient by x: from y's channels to x's, with flipped kernels. */
static struct winograd_form flipped_form_of(const struct op *op, int32_t n)
{
    return (struct winograd_form){.n = n,
                                  .c = op->conv.k,
                                  .h = op->out.h,
                                  .w = op->out.w,
                                  .k = op->in[0].c,
                                  .out_h = op->in[0].h,
                                  .out_w = op->in[0].w,
                                  .pad_h = 2 - op->conv.pad_h,
                                  .pad_w = 2 - op->conv.pad_w};
}

weir_status conv_winograd_prepare(struct conv_state *state, const struct op *op,
                                  const int32_t *tile_sizes, int32_t n_tile_sizes, bool is_training,
                                  size_t *out_scratch_bytes, struct weir_error *err)
{
    if (!is_training && !slab_map(&state->points, winograd_points_bytes(op->in[0].c, op->conv.k))) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    /* Refresh keeps there what a norm makes of the weights. */
    size_t most = op->norm ? op->params[OP_WEIGHT].n_elems * sizeof(real) : 0;
    for (int32_t i = 0; i < n_tile_sizes; i++) {
        struct winograd_form form = form_of(op, tile_sizes[i]);
        most = WEIR_MAX(most, winograd_scratch_bytes(&form));
        form = flipped_form_of(op, tile_sizes[i]);
        most = is_training ? WEIR_MAX(most, winograd_scratch_bytes(&form)) : most;
    }
    if (is_training) {
        struct winograd_form form = form_of(op, op->gradient_batch);
        most = WEIR_MAX(most, winograd_gradient_scratch_bytes(&form));
    }
    *out_scratch_bytes = conv_round_up(most);
    return WEIR_OK;
}

void conv_winograd_refresh(const struct conv_state *state, const struct op *op, const real *rows)
{
    if (state->points.base) {
        state->winograd->kernels(rows, op->conv.k, op->in[0].c, false,
                                 (float *)(void *)state->points.base);
    }
}

void conv_winograd_pack(const struct op *op, bool is_backward, void *to)
{
    const struct conv_state *state = op->state;
    state->winograd->kernels(op->params[OP_WEIGHT].value, op->conv.k, op->in[0].c, is_backward, to);
}

void conv_winograd_forward(const struct op *op, const struct op_tile *tile)
{
    const struct conv_state *state = op->state;
    state->winograd->convolve(&(struct winograd_convolution){
        .form = form_of(op, tile->n),
        .x = tile->x[0],
        .points = tile->packed_weights ? tile->packed_weights : (const void *)state->points.base,
        .bias = op->norm ? state->tail_bias : op->params[OP_BIAS].value,
        .added = op->has_residual ? tile->x[1] : NULL,
        .has_relu = op->has_relu,
        .y = tile->y,
        .scratch = tile->scratch});
}

void conv_winograd_backward(const struct op *op, const struct op_tile *tile)
{
    const struct conv_state *state = op->state;
    state->winograd->convolve(
        &(struct winograd_convolution){.form = flipped_form_of(op, tile->n),
                                       .x = tile->dy,
                                       .points = tile->packed_weights,
                                       .added = tile->dx_adds[0] ? tile->dx[0] : NULL,
                                       .y = tile->dx[0],
                                       .scratch = tile->scratch});
}

void conv_winograd_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    const struct conv_state *state = op->state;
    state->winograd->gradient(
        &(struct winograd_gradient){.form = form_of(op, tile->n),
                                    .x = tile->x[0],
                                    .dy = tile->dy,
                                    .d_kernels = op->params[OP_WEIGHT].gradient,
                                    .d_bias = op->params[OP_BIAS].gradient,
                                    .scratch = tile->scratch});
}
