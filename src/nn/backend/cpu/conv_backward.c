/* Which primitives make dx, and from what copy of the weights. */
#include "conv_private.h"

/* The copy of the weights that backward reads. It takes the place of forward's copy if it is
 * refreshed before every backward. */
static weir_status make_backward_copy(struct conv_state *state, const struct op *op,
                                      const struct weir_dnn_layout *layout, struct weir_error *err)
{
    const struct weight_copy *forward = &state->forward_weights;
    size_t dense_bytes = state->plain_weights.n_bytes / sizeof(float) * conv_elem_bytes(op);
    /* Not every copy writes what pads a layout. */
    bool is_dense = forward->n_bytes == dense_bytes && layout->n_bytes == dense_bytes;
    state->backward_weights.is_flipped = state->is_backward_flipped;
    if (!op->refreshes_backward || !forward->memory || !is_dense ||
        weir_dnn_layout_equal(layout, &state->plain_weights)) {
        return conv_make_copy(state, layout, &state->backward_weights, err);
    }
    state->is_backward_in_place = true;
    state->backward_weights.layout = *layout;
    state->backward_weights.is_wanted = true;
    return conv_make_reorder(state, &state->backward_weights, err);
}

static weir_status choose_copy(struct conv_state *state, const struct op *op,
                               const struct weir_dnn_layout *layout, struct weir_error *err)
{
    state->is_backward_shared = !state->is_backward_flipped && state->forward_weights.is_wanted &&
                                weir_dnn_layout_equal(layout, &state->forward_weights.layout);
    if (!state->is_backward_shared) {
        return make_backward_copy(state, op, layout, err);
    }
    state->backward_weights.layout = *layout;
    state->backward_weights.is_wanted = true;
    return WEIR_OK;
}

/* The primitive of the first size chooses the weights' layout, later ones take it. */
static weir_status prepare_tile(struct conv_state *state, const struct op *op,
                                struct tile_primitives *t, struct weir_error *err)
{
    struct conv_shapes s;
    if (!t->forward.desc) {
        return WEIR_OK;
    }
    WEIR_TRY(conv_make_shapes(op, t->n, CONV_BACKWARD, &s, err));
    if (state->backward_weights.is_wanted) {
        s.weights = state->backward_weights.layout;
    }
    WEIR_TRY(conv_create(state, op, &s, CONV_BACKWARD, &t->forward, &t->backward, err));
    if (!t->backward.primitive) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout layout = primitive_layout(&t->backward, dnnl_query_weights_md);
    if (!state->backward_weights.is_wanted) {
        WEIR_TRY(choose_copy(state, op, &layout, err));
    }
    const struct primitive_arg args[] = {
        {DNNL_ARG_DIFF_SRC, &s.src}, {DNNL_ARG_WEIGHTS, &layout}, {DNNL_ARG_DIFF_DST, &s.dst}};
    return primitive_attach(state->context, &t->backward, args, 3, err);
}

/* dx is a convolution too: of dy, with flipped kernels, and with the rest of their reach as
 * padding. For a 1x1 with a stride it makes the pixels of dx that the kernel meets. */
static bool can_flip(const struct op *op)
{
    const struct weir_conv_params *p = &op->conv;
    int32_t reach_h = (p->kernel_h - 1) * p->dilation, reach_w = (p->kernel_w - 1) * p->dilation;
    bool is_pixel = p->kernel_h == 1 && p->kernel_w == 1 && p->pad_h == 0 && p->pad_w == 0;
    return op->kind == LAYER_CONV && p->groups == 1 && op->n_row_tiles == 0 &&
           p->pad_h <= reach_h && p->pad_w <= reach_w && (p->stride == 1 || is_pixel);
}

/* Without matrix registers, the fewest weights for which flipping pays. */
enum { FLIPPED_WEIGHTS = 3 << 17 };

/*
 * oneDNN 2.6 uses matrix registers better in forward primitives: on one Sapphire Rapids core, one
 * image, 1024 -> 256 at 14 x 14 takes 0.07 instead of 0.13 ms, 3x3 of 256 there 0.13 instead of
 * 0.19, 1024 -> 2048 with a stride 0.17 instead of 0.92.
 *
 * With vectors, backward primitives are as fast, except for large kernels in bf16. On one Zen 5
 * core, 16 images, flipped and not: 3x3 of 512 at 7 x 7 7.4 and 9.3 ms, of 256 at 14 x 14 7.2 and
 * 7.8, of 128 at 28 x 28 7.3 and 7.1. For 1x1 there is no difference.
 */
static bool pays_to_flip(const struct op *op)
{
    size_t n_taps = (size_t)op->conv.kernel_h * (size_t)op->conv.kernel_w;
    size_t n_weights = (size_t)op->conv.k * (size_t)op->in[0].c * n_taps;
    bool is_large = n_taps > 1 && n_weights >= FLIPPED_WEIGHTS;
    return dnn_is_memory_far() || (op->type == WEIR_PRECISION_BF16 && is_large);
}

static struct op flip(const struct op *op)
{
    struct op flipped = {.kind = LAYER_CONV, .n_in = 1, .conv = op->conv, .type = op->type};
    flipped.in[0] = op->out;
    flipped.out = (struct weir_shape){op->in[0].c, op->in[0].h, op->in[0].w};
    if (op->conv.stride > 1) {
        flipped.out.h = op->out.h;
        flipped.out.w = op->out.w;
    }
    flipped.conv.k = op->in[0].c;
    flipped.conv.stride = 1;
    flipped.conv.pad_h = (op->conv.kernel_h - 1) * op->conv.dilation - op->conv.pad_h;
    flipped.conv.pad_w = (op->conv.kernel_w - 1) * op->conv.dilation - op->conv.pad_w;
    flipped.conv.has_bias = false;
    return flipped;
}

/* Leaves t->backward without a primitive if there is none that takes the first one's layout, or no
 * copy into it. */
static weir_status prepare_flipped(struct conv_state *state, const struct op *op,
                                   struct tile_primitives *t, struct weir_error *err)
{
    const struct op flipped = flip(op);
    struct conv_shapes s;
    struct relayout relayout;
    WEIR_TRY(conv_make_shapes(&flipped, t->n, CONV_FORWARD, &s, err));
    if (state->backward_weights.is_wanted) {
        s.weights = state->backward_weights.layout;
    }
    WEIR_TRY(conv_create(state, &flipped, &s, CONV_FORWARD, NULL, &t->backward, err));
    if (!t->backward.primitive) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout layout = primitive_layout(&t->backward, dnnl_query_weights_md);
    if (!conv_find_relayout(&layout, true, &relayout)) {
        primitive_destroy(&t->backward);
        return WEIR_OK;
    }
    state->backward_weights.layout = layout;
    state->backward_weights.is_wanted = true;
    const struct primitive_arg args[] = {
        {DNNL_ARG_DST, &s.dst}, {DNNL_ARG_WEIGHTS, &layout}, {DNNL_ARG_SRC, &s.src}};
    return primitive_attach(state->context, &t->backward, args, 3, err);
}

/* Flips all tiles, or none. */
static weir_status try_flipped(struct conv_state *state, const struct op *op,
                               struct weir_error *err)
{
    bool is_done = true;
    for (int32_t i = 0; i < state->n_tiles && is_done; i++) {
        WEIR_TRY(prepare_flipped(state, op, &state->tiles[i], err));
        is_done = state->tiles[i].backward.primitive != NULL;
    }
    if (is_done) {
        const struct weir_dnn_layout layout = state->backward_weights.layout;
        state->is_backward_flipped = true;
        return choose_copy(state, op, &layout, err);
    }
    for (int32_t i = 0; i < state->n_tiles; i++) {
        primitive_destroy(&state->tiles[i].backward);
    }
    state->backward_weights = (struct weight_copy){.is_wanted = false};
    return WEIR_OK;
}

weir_status conv_prepare_backward(struct conv_state *state, const struct op *op,
                                  struct weir_error *err)
{
    if (can_flip(op) && pays_to_flip(op)) {
        WEIR_TRY(try_flipped(state, op, err));
    }
    for (int32_t i = 0; i < state->n_tiles && !state->is_backward_flipped; i++) {
        WEIR_TRY(prepare_tile(state, op, &state->tiles[i], err));
    }
    return WEIR_OK;
}
