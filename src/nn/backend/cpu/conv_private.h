/** The state of a convolution or linear: conv_prepare.c makes it, conv.c runs it. */
#ifndef WEIR_NN_CPU_CONV_PRIVATE_H
#define WEIR_NN_CPU_CONV_PRIVATE_H

#include "conv.h"
#include "nn/backend/cpu/vector/vector.h"
#include "nn/backend/cpu/wgrad/wgrad.h"
#include "nn/backend/cpu/winograd/winograd.h"
#include "nn/backend/slab.h"
#include "primitive.h"
#include "relayout.h"

/* A copy of the weights in the layout of a primitive. */
struct weight_copy {
    struct primitive reorder; /* copies from the slab's row-major weights; not used if there is a
                                 relayout */
    relayout_fn relayout;
    struct relayout relayout_layout;
    void *memory; /* owned by the context; NULL: the row-major weights are read */
    size_t n_bytes;
    struct weir_dnn_layout layout;
    bool is_wanted;
    bool is_flipped; /* of flipped kernels; then there is a relayout */
};

/* The primitives of one tile size, or of one row tile. Where one is missing (NULL inside), Weir's
 * reference kernel takes its place. */
struct tile_primitives {
    int32_t n;
    struct primitive forward, backward;
    /* For forward, if its shape wants another layout than the first tile's. */
    struct weight_copy own_weights;
};

/* The descriptors of n images of an op. */
struct conv_shapes {
    struct weir_dnn_layout src, weights, dst;
    dnnl_dims_t strides, dilates, pads, end_pads;
};

enum conv_direction { CONV_FORWARD, CONV_BACKWARD, CONV_WEIGHTS };

struct conv_state {
    struct dnn_context *context;
    struct tile_primitives *tiles; /* by tile size, or by row tile */
    int32_t n_tiles;
    const struct wgrad_kernels *wgrad; /* our own weight-gradient GEMM; NULL: the primitive below */
    struct primitive weight_gradient, gradient_reorder;
    size_t gradient_bytes;         /* of the gradient in the primitive's layout; 0: row-major */
    relayout_fn gradient_relayout; /* from that layout to row-major; NULL: gradient_reorder */
    struct relayout gradient_layout;
    /* If the weight gradient is one matrix product and the stride leaves pixels out: bytes of the
     * pixels that count. Else 0: x is read as it is. */
    size_t picked_bytes;
    struct weight_copy forward_weights, backward_weights;
    bool is_backward_shared; /* backward reads forward_weights */
    /* refresh_backward writes backward's layout over forward_weights. */
    bool is_backward_in_place;
    /* backward is a forward primitive of the flipped kernels (conv_backward.c). For a 1x1 with a
     * stride it makes the pixels of dx that the kernel meets. */
    bool is_backward_flipped;
    /* With a folded batch norm: the weights times the norm's scale, row-major, where no reorder
     * takes them from scratch at once. */
    struct slab rows;
    /* With layers behind it (conv_has_tail): k biases with the norm's shift in them, and k scales
     * and shifts for an op that oneDNN cannot do. */
    float *tail_bias, *tail_scale, *tail_shift;
    /* Not NULL: Winograd does all directions, and there are no primitives. */
    const struct winograd_kernels *winograd;
    struct slab points; /* kernels at their points, for inference; training packs them instead */
    struct weir_dnn_layout plain_weights, bias;
};

/* Are layers behind the op done in the same pass? */
static inline bool conv_has_tail(const struct op *op)
{
    return op->norm || op->has_relu || op->has_residual;
}

static inline bool conv_has_bias(const struct op *op)
{
    return op->conv.has_bias || op->norm;
}

static inline size_t conv_round_up(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

static inline size_t conv_elem_bytes(const struct op *op)
{
    return vector_kernels(op->type)->elem_bytes;
}

/* conv_prepare.c: the parts that conv_backward.c uses too. */
weir_status conv_make_shapes(const struct op *op, int32_t n, enum conv_direction direction,
                             struct conv_shapes *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status conv_create(const struct conv_state *state, const struct op *op,
                        const struct conv_shapes *shapes, enum conv_direction direction,
                        const struct primitive *hint, struct primitive *p,
                        struct weir_error *err) WEIR_MUST_CHECK;
/* Prepares a copy into the layout a primitive asked for, if that is not row-major. */
weir_status conv_make_copy(const struct conv_state *state, const struct weir_dnn_layout *layout,
                           struct weight_copy *copy, struct weir_error *err) WEIR_MUST_CHECK;
/* The same for a copy whose memory exists already. */
weir_status conv_make_reorder(const struct conv_state *state, struct weight_copy *copy,
                              struct weir_error *err) WEIR_MUST_CHECK;
/* conv_layout.c: our own copy into the layout, or of gradients from it; NULL: there is none. */
relayout_fn conv_find_relayout(const struct weir_dnn_layout *layout, bool is_flipped,
                               struct relayout *out);
relayout_fn conv_find_relayout_back(const struct weir_dnn_layout *layout, struct relayout *out);

/* conv_backward.c: makes the primitives of dx for all tiles, after their forward ones. */
weir_status conv_prepare_backward(struct conv_state *state, const struct op *op,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/* conv_winograd.c: decides whether Winograd does this op, and does it then. */
weir_status conv_winograd_choose(struct conv_state *state, const struct op *op,
                                 struct weir_error *err) WEIR_MUST_CHECK;
weir_status conv_winograd_prepare(struct conv_state *state, const struct op *op,
                                  const int32_t *tile_sizes, int32_t n_tile_sizes, bool is_training,
                                  size_t *out_scratch_bytes,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void conv_winograd_refresh(const struct conv_state *state, const struct op *op, const real *rows);
void conv_winograd_pack(const struct op *op, bool is_backward, void *to);
void conv_winograd_forward(const struct op *op, const struct op_tile *tile);
void conv_winograd_backward(const struct op *op, const struct op_tile *tile);
void conv_winograd_weight_gradient(const struct op *op, const struct op_tile *tile);

/* Scratch of a call for n images, besides the primitive's own. */
static inline size_t conv_dx_bytes(const struct op *op, int32_t n)
{
    return conv_round_up((size_t)n * op_elems(op->in[0]) * conv_elem_bytes(op));
}

#endif
