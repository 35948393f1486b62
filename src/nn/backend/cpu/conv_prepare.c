#include "conv_private.h"
#include "linear.h"

static weir_status describe(struct weir_dnn_layout *out, int n_dims, const dnnl_dims_t dims,
                            dnnl_data_type_t type, dnnl_format_tag_t tag, struct weir_error *err)
{
    return dnn_check(weir_dnn_layout_named(out, n_dims, dims, type, tag), "describing a tensor",
                     err);
}

static dnnl_data_type_t type_of(const struct op *op)
{
    return op->type == WEIR_PRECISION_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* Weight gradients are f32 for every type of tensor. */
static dnnl_data_type_t weights_type(const struct op *op, enum conv_direction direction)
{
    return direction == CONV_WEIGHTS ? dnnl_f32 : type_of(op);
}

/* Rows from which blocked weights pay for a linear's forward. */
#define BLOCKED_MIN_ROWS 8

/*
 * A linear reads vectors, or images of one channel. Its weights stay row-major, where oneDNN's
 * matrix product reads them as fast as blocked ones without a copy, except forward with many rows
 * (measured for 3136 -> 512, 16 rows: 0.49 ms blocked, 1.6 row-major; 4 rows: 0.13 and 0.19;
 * backward row-major always wins).
 */
static weir_status make_linear_shapes(const struct op *op, int32_t n, enum conv_direction direction,
                                      struct conv_shapes *out, struct weir_error *err)
{
    const dnnl_dim_t n_features = (dnnl_dim_t)op_elems(op->in[0]);
    const dnnl_dims_t src = {n, n_features}, dst = {n, op->conv.k};
    const dnnl_dims_t weights = {op->conv.k, n_features};
    WEIR_TRY(describe(&out->src, 2, src, type_of(op), dnnl_nc, err));
    WEIR_TRY(describe(&out->dst, 2, dst, type_of(op), dnnl_nc, err));
    bool is_blocked = direction == CONV_FORWARD && n >= BLOCKED_MIN_ROWS;
    return describe(&out->weights, 2, weights, weights_type(op, direction),
                    is_blocked ? dnnl_format_tag_any : dnnl_oi, err);
}

weir_status conv_make_shapes(const struct op *op, int32_t n, enum conv_direction direction,
                             struct conv_shapes *out, struct weir_error *err)
{
    if (op->kind == LAYER_LINEAR) {
        return make_linear_shapes(op, n, direction, out, err);
    }
    struct weir_shape in = op->in[0];
    const dnnl_dims_t src = {n, in.c, in.h, in.w}, dst = {n, op->out.c, op->out.h, op->out.w};
    int32_t groups = op->conv.groups;
    const dnnl_dims_t weights = {groups, op->conv.k / groups, in.c / groups, op->conv.kernel_h,
                                 op->conv.kernel_w};
    /* One group is a tensor of four sides, for which oneDNN has more kernels. */
    int n_ungrouped = groups == 1 ? 1 : 0;
    for (int i = 0; i < 2; i++) {
        out->strides[i] = op->conv.stride;
        out->dilates[i] = op->conv.dilation - 1;
        out->pads[i] = i == 0 ? op->conv.pad_h : op->conv.pad_w;
        out->end_pads[i] = out->pads[i];
    }
    if (op->n_row_tiles == 1) { /* op_of_row_tile */
        out->end_pads[0] = op->row_tiles->pad_bottom;
    }
    WEIR_TRY(describe(&out->src, 4, src, type_of(op), dnnl_nhwc, err));
    WEIR_TRY(describe(&out->dst, 4, dst, type_of(op), dnnl_nhwc, err));
    return describe(&out->weights, 5 - n_ungrouped, weights + n_ungrouped,
                    weights_type(op, direction), dnnl_format_tag_any, err);
}

weir_status conv_create(const struct conv_state *state, const struct op *op,
                        const struct conv_shapes *shapes, enum conv_direction direction,
                        const struct primitive *hint, struct primitive *p, struct weir_error *err)
{
    static const enum weir_dnn_kind kinds[2][3] = {
        {WEIR_DNN_CONV_FORWARD, WEIR_DNN_CONV_BACKWARD_DATA, WEIR_DNN_CONV_BACKWARD_WEIGHTS},
        {WEIR_DNN_LINEAR_FORWARD, WEIR_DNN_LINEAR_BACKWARD_DATA, WEIR_DNN_LINEAR_BACKWARD_WEIGHTS}};
    const struct weir_dnn_op desc = {.kind = kinds[op->kind == LAYER_LINEAR][direction],
                                     .is_training = true,
                                     .src = &shapes->src,
                                     .weights = &shapes->weights,
                                     .bias = conv_has_bias(op) ? &state->bias : NULL,
                                     .dst = &shapes->dst,
                                     .strides = shapes->strides,
                                     .dilates = shapes->dilates,
                                     .pads = shapes->pads,
                                     .end_pads = shapes->end_pads};
    bool is_forward = direction == CONV_FORWARD;
    const struct primitive_tail tail = {.has_sum = is_forward && op->has_residual,
                                        .has_relu = is_forward && op->has_relu};
    return primitive_create(state->context, &desc, hint, tail, p, err);
}

weir_status conv_make_reorder(const struct conv_state *state, struct weight_copy *copy,
                              struct weir_error *err)
{
    copy->relayout = conv_find_relayout(&copy->layout, copy->is_flipped, &copy->relayout_layout);
    if (copy->relayout) {
        return WEIR_OK;
    }
    WEIR_TRY(primitive_create_reorder(state->context, &state->plain_weights, &copy->layout,
                                      &copy->reorder, err));
    const struct primitive_arg args[] = {{DNNL_ARG_FROM, &state->plain_weights},
                                         {DNNL_ARG_TO, &copy->layout}};
    return primitive_attach(state->context, &copy->reorder, args, 2, err);
}

/* Row-major weights into the layout a primitive asked for, if it is another. */
weir_status conv_make_copy(const struct conv_state *state, const struct weir_dnn_layout *layout,
                           struct weight_copy *copy, struct weir_error *err)
{
    copy->layout = *layout;
    copy->is_wanted = true;
    if (weir_dnn_layout_equal(layout, &state->plain_weights)) {
        return WEIR_OK;
    }
    copy->n_bytes = layout->n_bytes;
    copy->memory = dnn_take(state->context, copy->n_bytes);
    if (!copy->memory) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    return conv_make_reorder(state, copy, err);
}

/* The forward primitive of the first size chooses the weights' layout, later ones take it. */
static weir_status prepare_tile(struct conv_state *state, const struct op *op, int32_t n,
                                struct tile_primitives *t, struct weir_error *err)
{
    struct conv_shapes s;
    t->n = n;
    if (linear_is_small(op, n)) {
        return WEIR_OK;
    }
    WEIR_TRY(conv_make_shapes(op, n, CONV_FORWARD, &s, err));
    if (state->forward_weights.is_wanted) {
        s.weights = state->forward_weights.layout;
    }
    WEIR_TRY(conv_create(state, op, &s, CONV_FORWARD, NULL, &t->forward, err));
    bool is_other = !t->forward.primitive && state->forward_weights.is_wanted;
    if (is_other) {
        primitive_destroy(&t->forward);
        WEIR_TRY(conv_make_shapes(op, n, CONV_FORWARD, &s, err));
        WEIR_TRY(conv_create(state, op, &s, CONV_FORWARD, NULL, &t->forward, err));
    }
    if (!t->forward.primitive) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout layout = primitive_layout(&t->forward, dnnl_query_weights_md);
    if (is_other || !state->forward_weights.is_wanted) {
        WEIR_TRY(conv_make_copy(state, &layout,
                                is_other ? &t->own_weights : &state->forward_weights, err));
    }
    const struct primitive_arg args[] = {{DNNL_ARG_SRC, &s.src},
                                         {DNNL_ARG_WEIGHTS, &layout},
                                         {DNNL_ARG_DST, &s.dst},
                                         {DNNL_ARG_BIAS, &state->bias}};
    return primitive_attach(state->context, &t->forward, args, conv_has_bias(op) ? 4 : 3, err);
}

/*
 * The weight gradient of a 1x1 convolution is one matrix product over pixels: dy' x. Its result is
 * row-major. oneDNN's matrix product is faster than its convolution, by a quarter where k is
 * several times c (f32: 64 -> 256 at 56 x 56, 16 images: 16.9 ms, 23.1 as a convolution). In bf16
 * it is not, on large images there (10.9 and 10.1; 512 -> 2048 at 7 x 7: 7.9 and 9.6). With a
 * stride, the pixels that count are copied first.
 */
static bool is_gemm(const struct op *op)
{
    const struct weir_conv_params *p = &op->conv;
    bool is_large = op->gradient_batch * op->out.h * op->out.w > 8192;
    return op->kind == LAYER_CONV && p->kernel_h == 1 && p->kernel_w == 1 && p->pad_h == 0 &&
           p->pad_w == 0 && p->groups == 1 &&
           (op->type == WEIR_PRECISION_F32 || op->conv.k <= op->in[0].c || !is_large);
}

/* For each tile size, or for each row tile. */
static weir_status prepare_tiles(struct conv_state *state, const struct op *op,
                                 const int32_t *tile_sizes, int32_t n_tile_sizes, bool is_training,
                                 struct weir_error *err)
{
    int32_t n = op->n_row_tiles > 0 ? op->n_row_tiles : n_tile_sizes;
    state->tiles = calloc((size_t)n, sizeof(*state->tiles));
    if (!state->tiles) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    for (int32_t i = 0; i < n; i++) {
        const struct op part = op->n_row_tiles > 0 ? op_of_row_tile(op, i) : *op;
        int32_t n_images = op->n_row_tiles > 0 ? 1 : tile_sizes[i];
        state->n_tiles = i + 1;
        WEIR_TRY(prepare_tile(state, &part, n_images, &state->tiles[i], err));
    }
    return is_training ? conv_prepare_backward(state, op, err) : WEIR_OK;
}

static weir_status prepare_weight_gradient(struct conv_state *state, const struct op *op,
                                           struct weir_error *err)
{
    struct conv_shapes s;
    struct primitive forward = {0};
    struct op wgrad = *op;
    int32_t n = op->gradient_batch;
    if (linear_has_small_gradient(op, n)) {
        return WEIR_OK;
    }
    state->wgrad = wgrad_choose(op);
    if (state->wgrad) {
        return WEIR_OK;
    }
    if (is_gemm(op)) {
        n *= op->out.h * op->out.w;
        wgrad.kind = LAYER_LINEAR;
        wgrad.in[0] = (struct weir_shape){op->in[0].c, 1, 1};
        wgrad.out = (struct weir_shape){op->out.c, 1, 1};
        if (op->conv.stride > 1) {
            state->picked_bytes =
                conv_round_up((size_t)n * (size_t)op->in[0].c * conv_elem_bytes(op));
        }
    }
    WEIR_TRY(conv_make_shapes(&wgrad, n, CONV_FORWARD, &s, err));
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(conv_create(state, &wgrad, &s, CONV_FORWARD, NULL, &forward, err), status,
                  destroy_forward);
    if (forward.desc) {
        WEIR_TRY_GOTO(conv_make_shapes(&wgrad, n, CONV_WEIGHTS, &s, err), status, destroy_forward);
        status =
            conv_create(state, &wgrad, &s, CONV_WEIGHTS, &forward, &state->weight_gradient, err);
    }
destroy_forward:
    primitive_destroy(&forward);
    if (status != WEIR_OK || !state->weight_gradient.primitive) {
        return status;
    }
    const struct weir_dnn_layout layout =
        primitive_layout(&state->weight_gradient, dnnl_query_diff_weights_md);
    const struct primitive_arg args[] = {{DNNL_ARG_SRC, &s.src},
                                         {DNNL_ARG_DIFF_WEIGHTS, &layout},
                                         {DNNL_ARG_DIFF_DST, &s.dst},
                                         {DNNL_ARG_DIFF_BIAS, &state->bias}};
    WEIR_TRY(primitive_attach(state->context, &state->weight_gradient, args,
                              op->conv.has_bias ? 4 : 3, err));
    bool is_plain = is_gemm(op) || weir_dnn_layout_equal(&layout, &state->plain_weights);
    state->gradient_bytes = is_plain ? 0 : conv_round_up(layout.n_bytes);
    if (!is_plain) {
        state->gradient_relayout = conv_find_relayout_back(&layout, &state->gradient_layout);
    }
    if (is_plain || state->gradient_relayout) {
        return WEIR_OK;
    }
    WEIR_TRY(primitive_create_reorder(state->context, &layout, &state->plain_weights,
                                      &state->gradient_reorder, err));
    const struct primitive_arg reorder_args[] = {{DNNL_ARG_FROM, &layout},
                                                 {DNNL_ARG_TO, &state->plain_weights}};
    return primitive_attach(state->context, &state->gradient_reorder, reorder_args, 2, err);
}

/* The largest need of any call of this op. */
static size_t scratch_bytes(const struct conv_state *state, const struct op *op)
{
    size_t most = 0;
    size_t rows = op->norm ? conv_round_up(op->params[OP_WEIGHT].n_elems * sizeof(float)) : 0;
    for (int32_t i = 0; i < state->n_tiles; i++) {
        const struct tile_primitives *t = &state->tiles[i];
        /* A gradient that is added to another is made in scratch first. So is the result of an op
         * that oneDNN cannot do, before the layers behind it. */
        size_t slow = t->forward.primitive ? 0 : (size_t)t->n * op_elems(op->out) * sizeof(float);
        most = WEIR_MAX(most, t->forward.scratch_bytes + slow);
        most = WEIR_MAX(most, conv_dx_bytes(op, t->n) + t->backward.scratch_bytes);
        most = WEIR_MAX(most, rows + t->own_weights.reorder.scratch_bytes);
    }
    most = WEIR_MAX(most, state->wgrad ? state->wgrad->scratch_bytes(op) : 0);
    most = WEIR_MAX(most, state->gradient_bytes + state->picked_bytes +
                              state->weight_gradient.scratch_bytes);
    most = WEIR_MAX(most, state->gradient_bytes + state->gradient_reorder.scratch_bytes);
    most = WEIR_MAX(most, rows + state->forward_weights.reorder.scratch_bytes);
    return WEIR_MAX(most, state->backward_weights.reorder.scratch_bytes);
}

/* In f32, Weir's reference kernels replace what oneDNN lacks. They have no bf16. */
static weir_status check_is_fast(const struct conv_state *state, const struct op *op,
                                 bool is_training, struct weir_error *err)
{
    bool is_fast = !is_training || state->wgrad || state->weight_gradient.primitive;
    for (int32_t i = 0; i < state->n_tiles; i++) {
        const struct tile_primitives *t = &state->tiles[i];
        is_fast = is_fast && t->forward.primitive && (!is_training || t->backward.primitive);
    }
    if (op->type == WEIR_PRECISION_F32 || is_fast) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "precision bf16: oneDNN has no fast kernel for %d -> %d channels of a "
                          "%d x %d kernel in %d groups on this processor; use f32",
                          op->in[0].c, op->out.c, op->conv.kernel_h, op->conv.kernel_w,
                          op->conv.groups);
}

static dnnl_format_tag_t plain_tag(const struct op *op)
{
    if (op->kind == LAYER_LINEAR) {
        return dnnl_oi;
    }
    return op->conv.groups == 1 ? dnnl_oihw : dnnl_goihw;
}

/* Memory for weights and biases that are not the parameters themselves. */
static weir_status prepare_tail(struct conv_state *state, const struct op *op,
                                struct weir_error *err)
{
    size_t k = (size_t)op->conv.k, n_bytes = op->params[OP_WEIGHT].n_elems * sizeof(float);
    bool is_read_plain = !state->forward_weights.memory;
    for (int32_t i = 0; i < state->n_tiles; i++) {
        const struct weight_copy *own = &state->tiles[i].own_weights;
        is_read_plain = is_read_plain || (own->is_wanted && !own->memory);
    }
    bool has_rows = op->norm && is_read_plain && !state->winograd;
    if (has_rows && !slab_map(&state->rows, n_bytes)) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    if (!conv_has_tail(op)) {
        return WEIR_OK;
    }
    state->tail_bias = calloc(3 * k, sizeof(float));
    if (!state->tail_bias) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    state->tail_scale = state->tail_bias + k;
    state->tail_shift = state->tail_bias + 2 * k;
    for (size_t i = 0; i < k; i++) {
        state->tail_scale[i] = 1;
    }
    return WEIR_OK;
}

weir_status conv_prepare(void *context, struct op *op, const int32_t *tile_sizes,
                         int32_t n_tile_sizes, bool is_training, size_t *out_scratch_bytes,
                         struct weir_error *err)
{
    if (op->kind != LAYER_CONV && op->kind != LAYER_LINEAR) {
        return WEIR_OK;
    }
    struct conv_state *state = calloc(1, sizeof(*state));
    if (!state) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    op->state = state;
    state->context = context;
    WEIR_TRY(conv_winograd_choose(state, op, err));
    if (state->winograd) {
        WEIR_TRY(prepare_tail(state, op, err));
        return conv_winograd_prepare(state, op, tile_sizes, n_tile_sizes, is_training,
                                     out_scratch_bytes, err);
    }
    struct conv_shapes s;
    WEIR_TRY(conv_make_shapes(op, 1, CONV_FORWARD, &s, err));
    WEIR_TRY(describe(&state->plain_weights, s.weights.ndims, s.weights.dims, dnnl_f32,
                      plain_tag(op), err));
    WEIR_TRY(describe(&state->bias, 1, (dnnl_dims_t){op->conv.k}, dnnl_f32, dnnl_x, err));
    WEIR_TRY(prepare_tiles(state, op, tile_sizes, n_tile_sizes, is_training, err));
    WEIR_TRY(prepare_tail(state, op, err));
    if (is_training) {
        WEIR_TRY(prepare_weight_gradient(state, op, err));
    }
    *out_scratch_bytes = scratch_bytes(state, op);
    return check_is_fast(state, op, is_training, err);
}
