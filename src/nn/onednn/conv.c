#include "conv.h"

#include "../reference/kernels.h"
#include "../slab.h"
#include "primitive.h"
#include "vector.h"

/* The primitives of one size of tile. A missing one (NULL inside) is Weir's reference kernel. */
struct tile_primitives {
    int32_t n;
    struct primitive forward, backward;
};

/* Weights in the layout of a primitive. */
struct weight_copy {
    struct primitive reorder; /* from the slab's row-major ones */
    struct slab slab;
    dnnl_memory_desc_t layout;
    bool is_wanted;
};

struct conv_state {
    const struct dnn_context *context;
    struct tile_primitives tiles[2];
    int32_t n_tiles;
    struct primitive weight_gradient, gradient_reorder;
    size_t gradient_bytes; /* of the weight gradient in its primitive's layout */
    struct weight_copy forward_weights, backward_weights;
    bool is_backward_shared; /* backward reads forward_weights */
    /* A linear of images: its weights in the order of the channels-last image, row-major. */
    struct slab permuted;
    bool is_permuted;
    dnnl_memory_desc_t plain_weights, bias;
};

/* What oneDNN is told about n images of an op. */
struct conv_shapes {
    dnnl_memory_desc_t src, weights, dst;
    dnnl_dims_t strides, dilates, pads;
};

enum direction { FORWARD, BACKWARD, WEIGHTS };

static size_t round_up(size_t n)
{
    return (n + 63) / 64 * 64;
}

static weir_status describe(dnnl_memory_desc_t *out, int n_dims, const dnnl_dims_t dims,
                            dnnl_data_type_t type, dnnl_format_tag_t tag, struct weir_error *err)
{
    return dnn_check(dnnl_memory_desc_init_by_tag(out, n_dims, dims, type, tag),
                     "describing a tensor", err);
}

static size_t elem_bytes(const struct op *op)
{
    return vector_kernels(op->type)->elem_bytes;
}

static dnnl_data_type_t type_of(const struct op *op)
{
    return op->type == WEIR_PRECISION_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* Gradients of weights are f32 whatever the tensors are. */
static dnnl_data_type_t weights_type(const struct op *op, enum direction direction)
{
    return direction == WEIGHTS ? dnnl_f32 : type_of(op);
}

/* Is the order of an image's elements another one for the caller's weights? */
static bool must_permute(const struct op *op)
{
    struct weir_shape in = op->in[0];
    return op->kind == LAYER_LINEAR && in.c > 1 && (in.h > 1 || in.w > 1);
}

/* Rows from which a linear's forward product is worth blocked weights. */
#define BLOCKED_MIN_ROWS 8

/*
 * Images are flat vectors to a linear. Its weights stay row-major, where oneDNN's matrix product
 * reads them as fast as blocked ones without a copy, except forward with many rows (measured for
 * 3136 -> 512, 16 rows: 0.49 ms blocked, 1.6 row-major; 4 rows: 0.13 and 0.19; backward row-major
 * always wins).
 */
static weir_status make_linear_shapes(const struct op *op, int32_t n, enum direction direction,
                                      struct conv_shapes *out, struct weir_error *err)
{
    const dnnl_dim_t n_features = (dnnl_dim_t)op_elems(op->in[0]);
    const dnnl_dims_t src = {n, n_features}, dst = {n, op->conv.k};
    const dnnl_dims_t weights = {op->conv.k, n_features};
    WEIR_TRY(describe(&out->src, 2, src, type_of(op), dnnl_nc, err));
    WEIR_TRY(describe(&out->dst, 2, dst, type_of(op), dnnl_nc, err));
    bool is_blocked = direction == FORWARD && n >= BLOCKED_MIN_ROWS;
    return describe(&out->weights, 2, weights, weights_type(op, direction),
                    is_blocked ? dnnl_format_tag_any : dnnl_oi, err);
}

static weir_status make_shapes(const struct op *op, int32_t n, enum direction direction,
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
    }
    WEIR_TRY(describe(&out->src, 4, src, type_of(op), dnnl_nhwc, err));
    WEIR_TRY(describe(&out->dst, 4, dst, type_of(op), dnnl_nhwc, err));
    return describe(&out->weights, 5 - n_ungrouped, weights + n_ungrouped,
                    weights_type(op, direction), dnnl_format_tag_any, err);
}

/* All operation descriptors, of which each primitive uses one. */
union op_desc {
    dnnl_convolution_desc_t conv;
    dnnl_inner_product_desc_t linear;
};

static dnnl_status_t init_conv(const struct conv_state *state, const struct op *op,
                               const struct conv_shapes *s, enum direction direction,
                               dnnl_convolution_desc_t *desc)
{
    const dnnl_memory_desc_t *bias = op->conv.has_bias ? &state->bias : NULL;
    switch (direction) {
    case FORWARD:
        return dnnl_dilated_convolution_forward_desc_init(
            desc, dnnl_forward_training, dnnl_convolution_direct, &s->src, &s->weights, bias,
            &s->dst, s->strides, s->dilates, s->pads, s->pads);
    case BACKWARD:
        return dnnl_dilated_convolution_backward_data_desc_init(
            desc, dnnl_convolution_direct, &s->src, &s->weights, &s->dst, s->strides, s->dilates,
            s->pads, s->pads);
    default:
        return dnnl_dilated_convolution_backward_weights_desc_init(
            desc, dnnl_convolution_direct, &s->src, &s->weights, bias, &s->dst, s->strides,
            s->dilates, s->pads, s->pads);
    }
}

static dnnl_status_t init_linear(const struct conv_state *state, const struct op *op,
                                 const struct conv_shapes *s, enum direction direction,
                                 dnnl_inner_product_desc_t *desc)
{
    const dnnl_memory_desc_t *bias = op->conv.has_bias ? &state->bias : NULL;
    switch (direction) {
    case FORWARD:
        return dnnl_inner_product_forward_desc_init(desc, dnnl_forward_training, &s->src,
                                                    &s->weights, bias, &s->dst);
    case BACKWARD:
        return dnnl_inner_product_backward_data_desc_init(desc, &s->src, &s->weights, &s->dst);
    default:
        return dnnl_inner_product_backward_weights_desc_init(desc, &s->src, &s->weights, bias,
                                                             &s->dst);
    }
}

static weir_status create(const struct conv_state *state, const struct op *op,
                          const struct conv_shapes *shapes, enum direction direction,
                          const struct primitive *hint, struct primitive *p, struct weir_error *err)
{
    union op_desc desc;
    dnnl_status_t status = op->kind == LAYER_CONV
                               ? init_conv(state, op, shapes, direction, &desc.conv)
                               : init_linear(state, op, shapes, direction, &desc.linear);
    WEIR_TRY(dnn_check(status, "describing a convolution", err));
    return primitive_create(state->context, &desc, hint, p, err);
}

/* Row-major weights into the layout a primitive asked for, if it is another. */
static weir_status make_copy(const struct conv_state *state, const dnnl_memory_desc_t *layout,
                             struct weight_copy *copy, struct weir_error *err)
{
    copy->layout = *layout;
    copy->is_wanted = true;
    if (dnnl_memory_desc_equal(layout, &state->plain_weights)) {
        return WEIR_OK;
    }
    if (!slab_map(&copy->slab, dnnl_memory_desc_get_size(layout))) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    WEIR_TRY(primitive_create_reorder(state->context, &state->plain_weights, layout, &copy->reorder,
                                      err));
    const struct primitive_arg args[] = {{DNNL_ARG_FROM, &state->plain_weights},
                                         {DNNL_ARG_TO, layout}};
    return primitive_attach(state->context, &copy->reorder, args, 2, err);
}

/* Forward and backward primitives of the first size choose the weights' layout, later ones take it.
 */
static weir_status prepare_tile(struct conv_state *state, const struct op *op, int32_t n,
                                bool is_training, struct tile_primitives *t, struct weir_error *err)
{
    struct conv_shapes s;
    t->n = n;
    WEIR_TRY(make_shapes(op, n, FORWARD, &s, err));
    if (state->forward_weights.is_wanted) {
        s.weights = state->forward_weights.layout;
    }
    WEIR_TRY(create(state, op, &s, FORWARD, NULL, &t->forward, err));
    if (t->forward.primitive) {
        const dnnl_memory_desc_t *layout = primitive_layout(&t->forward, dnnl_query_weights_md);
        if (!state->forward_weights.is_wanted) {
            WEIR_TRY(make_copy(state, layout, &state->forward_weights, err));
        }
        const struct primitive_arg args[] = {{DNNL_ARG_SRC, &s.src},
                                             {DNNL_ARG_WEIGHTS, layout},
                                             {DNNL_ARG_DST, &s.dst},
                                             {DNNL_ARG_BIAS, &state->bias}};
        WEIR_TRY(
            primitive_attach(state->context, &t->forward, args, op->conv.has_bias ? 4 : 3, err));
    }
    if (!is_training || !t->forward.desc) {
        return WEIR_OK;
    }
    WEIR_TRY(make_shapes(op, n, BACKWARD, &s, err));
    if (state->backward_weights.is_wanted) {
        s.weights = state->backward_weights.layout;
    }
    WEIR_TRY(create(state, op, &s, BACKWARD, &t->forward, &t->backward, err));
    if (!t->backward.primitive) {
        return WEIR_OK;
    }
    const dnnl_memory_desc_t *layout = primitive_layout(&t->backward, dnnl_query_weights_md);
    if (!state->backward_weights.is_wanted) {
        state->is_backward_shared = state->forward_weights.is_wanted &&
                                    dnnl_memory_desc_equal(layout, &state->forward_weights.layout);
        if (state->is_backward_shared) {
            state->backward_weights.layout = *layout;
            state->backward_weights.is_wanted = true;
        } else {
            WEIR_TRY(make_copy(state, layout, &state->backward_weights, err));
        }
    }
    const struct primitive_arg args[] = {
        {DNNL_ARG_DIFF_SRC, &s.src}, {DNNL_ARG_WEIGHTS, layout}, {DNNL_ARG_DIFF_DST, &s.dst}};
    return primitive_attach(state->context, &t->backward, args, 3, err);
}

static weir_status prepare_weight_gradient(struct conv_state *state, const struct op *op,
                                           struct weir_error *err)
{
    struct conv_shapes s;
    struct primitive forward = {0};
    WEIR_TRY(make_shapes(op, op->gradient_batch, FORWARD, &s, err));
    weir_status status = create(state, op, &s, FORWARD, NULL, &forward, err);
    if (status == WEIR_OK && forward.desc) {
        status = make_shapes(op, op->gradient_batch, WEIGHTS, &s, err);
    }
    if (status == WEIR_OK && forward.desc) {
        status = create(state, op, &s, WEIGHTS, &forward, &state->weight_gradient, err);
    }
    primitive_destroy(&forward);
    if (status != WEIR_OK || !state->weight_gradient.primitive) {
        return status;
    }
    const dnnl_memory_desc_t *layout =
        primitive_layout(&state->weight_gradient, dnnl_query_diff_weights_md);
    const struct primitive_arg args[] = {{DNNL_ARG_SRC, &s.src},
                                         {DNNL_ARG_DIFF_WEIGHTS, layout},
                                         {DNNL_ARG_DIFF_DST, &s.dst},
                                         {DNNL_ARG_DIFF_BIAS, &state->bias}};
    WEIR_TRY(primitive_attach(state->context, &state->weight_gradient, args,
                              op->conv.has_bias ? 4 : 3, err));
    bool is_plain = dnnl_memory_desc_equal(layout, &state->plain_weights);
    state->gradient_bytes =
        is_plain && !state->is_permuted ? 0 : round_up(dnnl_memory_desc_get_size(layout));
    if (is_plain) {
        return WEIR_OK;
    }
    WEIR_TRY(primitive_create_reorder(state->context, layout, &state->plain_weights,
                                      &state->gradient_reorder, err));
    const struct primitive_arg reorder_args[] = {{DNNL_ARG_FROM, layout},
                                                 {DNNL_ARG_TO, &state->plain_weights}};
    return primitive_attach(state->context, &state->gradient_reorder, reorder_args, 2, err);
}

static void *row_major_weights(const struct conv_state *state, const struct op *op)
{
    return state->is_permuted ? state->permuted.base : (void *)op->params[OP_WEIGHT].value;
}

/* Weights as a primitive wants them: a copy, or row-major ones. */
static void *weights_for(const struct conv_state *state, const struct op *op,
                         const struct weight_copy *copy)
{
    return copy->slab.base ? copy->slab.base : row_major_weights(state, op);
}

/* The largest need of any call of this op. */
static size_t scratch_bytes(const struct conv_state *state, const struct op *op)
{
    size_t most = 0;
    for (int32_t i = 0; i < state->n_tiles; i++) {
        const struct tile_primitives *t = &state->tiles[i];
        /* A gradient that is added to what is there is made beside it first. */
        size_t beside = round_up((size_t)t->n * op_elems(op->in[0]) * elem_bytes(op));
        most = WEIR_MAX(most, t->forward.scratch_bytes);
        most = WEIR_MAX(most, beside + t->backward.scratch_bytes);
    }
    most = WEIR_MAX(most, state->gradient_bytes + state->weight_gradient.scratch_bytes);
    most = WEIR_MAX(most, state->gradient_bytes + state->gradient_reorder.scratch_bytes);
    most = WEIR_MAX(most, state->forward_weights.reorder.scratch_bytes);
    return WEIR_MAX(most, state->backward_weights.reorder.scratch_bytes);
}

/* Weir's reference kernels stand in for what oneDNN lacks in f32; they know no bf16. */
static weir_status check_is_fast(const struct conv_state *state, const struct op *op,
                                 bool is_training, struct weir_error *err)
{
    bool is_fast = !is_training || state->weight_gradient.primitive;
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
    struct conv_shapes s;
    WEIR_TRY(make_shapes(op, 1, FORWARD, &s, err));
    WEIR_TRY(describe(&state->plain_weights, s.weights.ndims, s.weights.dims, dnnl_f32,
                      plain_tag(op), err));
    WEIR_TRY(describe(&state->bias, 1, (dnnl_dims_t){op->conv.k}, dnnl_f32, dnnl_x, err));
    for (int32_t i = 0; i < n_tile_sizes; i++) {
        state->n_tiles = i + 1;
        WEIR_TRY(prepare_tile(state, op, tile_sizes[i], is_training, &state->tiles[i], err));
    }
    state->is_permuted = must_permute(op);
    size_t permuted_bytes = op->params[OP_WEIGHT].n_elems * sizeof(float);
    if (state->is_permuted && !slab_map(&state->permuted, permuted_bytes)) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    if (is_training) {
        WEIR_TRY(prepare_weight_gradient(state, op, err));
    }
    *out_scratch_bytes = scratch_bytes(state, op);
    return check_is_fast(state, op, is_training, err);
}

void conv_release(struct op *op)
{
    struct conv_state *state = op->state;
    if (!state) {
        return;
    }
    for (int32_t i = 0; i < state->n_tiles; i++) {
        primitive_destroy(&state->tiles[i].backward);
        primitive_destroy(&state->tiles[i].forward);
    }
    primitive_destroy(&state->weight_gradient);
    primitive_destroy(&state->gradient_reorder);
    primitive_destroy(&state->forward_weights.reorder);
    primitive_destroy(&state->backward_weights.reorder);
    slab_unmap(&state->forward_weights.slab);
    slab_unmap(&state->backward_weights.slab);
    slab_unmap(&state->permuted);
    free(state);
    op->state = NULL;
}

/* Rows of C x HW into rows of HW x C, or back. */
static void permute(const real *from, real *to, size_t n_rows, size_t n_from, size_t n_to)
{
    for (size_t k = 0; k < n_rows; k++, from += n_from * n_to, to += n_from * n_to) {
        for (size_t j = 0; j < n_to; j++) {
            for (size_t i = 0; i < n_from; i++) {
                to[j * n_from + i] = from[i * n_to + j];
            }
        }
    }
}

weir_status conv_refresh(const struct op *op, int32_t i_thread, void *scratch)
{
    const struct conv_state *state = op->state;
    size_t hw = (size_t)op->in[0].h * (size_t)op->in[0].w;
    if (state->is_permuted) {
        permute(op->params[OP_WEIGHT].value, (real *)(void *)state->permuted.base,
                (size_t)op->conv.k, (size_t)op->in[0].c, hw);
    }
    const struct weight_copy *const copies[] = {&state->forward_weights, &state->backward_weights};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(copies); i++) {
        if (copies[i]->reorder.primitive) {
            void *addresses[] = {row_major_weights(state, op), copies[i]->slab.base};
            WEIR_TRY(
                primitive_run(state->context, &copies[i]->reorder, i_thread, addresses, scratch));
        }
    }
    return WEIR_OK;
}

static const struct tile_primitives *find_tile(const struct conv_state *state, int32_t n)
{
    return &state->tiles[state->tiles[0].n == n ? 0 : 1];
}

/* oneDNN's arguments are not const, even those it only reads. */
static void *address(const real *p)
{
    return (void *)(uintptr_t)p;
}

weir_status conv_forward(const struct op *op, const struct op_tile *tile)
{
    const struct conv_state *state = op->state;
    const struct tile_primitives *t = find_tile(state, tile->n);
    if (!t->forward.primitive) {
        return op->kind == LAYER_CONV ? REF(conv_forward)(op, tile) : REF(linear_forward)(op, tile);
    }
    void *addresses[] = {address(tile->x[0]), weights_for(state, op, &state->forward_weights),
                         tile->y, op->params[OP_BIAS].value};
    return primitive_run(state->context, &t->forward, tile->i_thread, addresses, tile->scratch);
}

weir_status conv_backward(const struct op *op, const struct op_tile *tile)
{
    const struct conv_state *state = op->state;
    const struct tile_primitives *t = find_tile(state, tile->n);
    if (!t->backward.primitive) {
        return op->kind == LAYER_CONV ? REF(conv_backward)(op, tile)
                                      : REF(linear_backward)(op, tile);
    }
    size_t n_elems = (size_t)tile->n * op_elems(op->in[0]);
    bool is_beside = tile->dx_adds[0];
    real *dx = is_beside ? tile->scratch : tile->dx[0];
    char *scratch = (char *)tile->scratch + (is_beside ? round_up(n_elems * elem_bytes(op)) : 0);
    const struct weight_copy *copy =
        state->is_backward_shared ? &state->forward_weights : &state->backward_weights;
    void *addresses[] = {dx, weights_for(state, op, copy), address(tile->dy)};
    WEIR_TRY(primitive_run(state->context, &t->backward, tile->i_thread, addresses, scratch));
    if (is_beside) {
        vector_kernels(op->type)->add(tile->dx[0], dx, tile->dx[0], n_elems);
    }
    return WEIR_OK;
}

weir_status conv_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    const struct conv_state *state = op->state;
    if (!state->weight_gradient.primitive) {
        return op->kind == LAYER_CONV ? REF(conv_weight_gradient)(op, tile)
                                      : REF(linear_weight_gradient)(op, tile);
    }
    real *gradient = op->params[OP_WEIGHT].gradient;
    bool is_beside = state->gradient_reorder.primitive || state->is_permuted;
    char *scratch = (char *)tile->scratch + state->gradient_bytes;
    void *addresses[] = {address(tile->x[0]), is_beside ? tile->scratch : gradient,
                         address(tile->dy), op->params[OP_BIAS].gradient};
    WEIR_TRY(
        primitive_run(state->context, &state->weight_gradient, tile->i_thread, addresses, scratch));
    if (state->is_permuted) {
        size_t hw = (size_t)op->in[0].h * (size_t)op->in[0].w;
        permute(tile->scratch, gradient, (size_t)op->conv.k, hw, (size_t)op->in[0].c);
        return WEIR_OK;
    }
    if (!is_beside) {
        return WEIR_OK;
    }
    void *reorder_addresses[] = {tile->scratch, gradient};
    return primitive_run(state->context, &state->gradient_reorder, tile->i_thread,
                         reorder_addresses, scratch);
}
