/** What conv_prepare.c makes and conv.c runs. For conv*.c. */
#ifndef WEIR_NN_ONEDNN_CONV_PRIVATE_H
#define WEIR_NN_ONEDNN_CONV_PRIVATE_H

#include "conv.h"
#include "nn/backend/cpu/vector/vector.h"
#include "nn/backend/cpu/wgrad/wgrad.h"
#include "nn/backend/cpu/winograd/winograd.h"
#include "nn/backend/slab.h"
#include "primitive.h"
#include "relayout.h"

/* Weights in the layout of a primitive. */
struct weight_copy {
    struct primitive reorder; /* from the slab's row-major ones; unless: */
    relayout_fn relayout;
    struct relayout relayout_layout;
    void *memory; /* of the context; NULL: row-major ones are read */
    size_t n_bytes;
    dnnl_memory_desc_t layout;
    bool is_wanted;
    bool is_flipped; /* of kernels turned round; there is a relayout then */
};

/* The primitives of one size of tile, or of one band. A missing one (NULL inside) is Weir's
 * reference kernel. */
struct tile_primitives {
    int32_t n;
    struct primitive forward, backward;
    /* Of forward, where its shape wants another layout than the first tile's. */
    struct weight_copy own_weights;
};

/* What oneDNN is told about n images of an op. */
struct conv_shapes {
    dnnl_memory_desc_t src, weights, dst;
    dnnl_dims_t strides, dilates, pads, end_pads;
};

enum conv_direction { CONV_FORWARD, CONV_BACKWARD, CONV_WEIGHTS };

struct conv_state {
    struct dnn_context *context;
    struct tile_primitives *tiles; /* by size of tile, or by band */
    int32_t n_tiles;
    const struct wgrad_kernels *wgrad; /* makes the weight gradient; NULL: weight_gradient */
    struct primitive weight_gradient, gradient_reorder;
    size_t gradient_bytes; /* of the weight gradient in its primitive's layout; 0: row-major */
    relayout_fn gradient_relayout; /* from there to row-major; NULL: gradient_reorder */
    struct relayout gradient_layout;
    /* The weight gradient is one product of matrices, of so many bytes of x if its
     * stride leaves some out; else 0: of x as it is. */
    size_t picked_bytes;
    struct weight_copy forward_weights, backward_weights;
    bool is_backward_shared; /* backward reads forward_weights */
    /* … which refresh_backward has written for it, in its own layout. */
    bool is_backward_in_place;
    /* backward is a forward primitive of the turned kernels (conv_backward.c); of a 1x1 with a
     * stride it makes the pixels of dx that the kernel meets. */
    bool is_backward_flipped;
    /* An op with a batch norm has its weights multiplied with the norm's scale: row-major, where no
     * reorder takes them from scratch at once. */
    struct slab rows;
    /* With layers behind it (conv_has_tail): k values each of the bias with the norm's shift in it,
     * and of the scale and shift for an op that oneDNN cannot do. */
    float *tail_bias, *tail_scale, *tail_shift;
    /* By Winograd, in all directions; then there are no primitives. NULL: by oneDNN. */
    const struct winograd_kernels *winograd;
    struct slab points; /* of weights, for forward; not in training, which derives them */
    dnnl_memory_desc_t plain_weights, bias;
};

/* Are layers behind it done in the same pass? */
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

/* conv_prepare.c: the parts that conv_backward.c needs too. */
weir_status conv_make_shapes(const struct op *op, int32_t n, enum conv_direction direction,
                             struct conv_shapes *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status conv_create(const struct conv_state *state, const struct op *op,
                        const struct conv_shapes *shapes, enum conv_direction direction,
                        const struct primitive *hint, struct primitive *p,
                        struct weir_error *err) WEIR_MUST_CHECK;
/* Row-major weights into the layout a primitive asked for, if it is another. */
weir_status conv_make_copy(const struct conv_state *state, const dnnl_memory_desc_t *layout,
                           struct weight_copy *copy, struct weir_error *err) WEIR_MUST_CHECK;
/* … where memory is there already. */
weir_status conv_make_reorder(const struct conv_state *state, struct weight_copy *copy,
                              struct weir_error *err) WEIR_MUST_CHECK;
/* conv_layout.c: the copy of ours into the layout, or of gradients from it; NULL: none. */
relayout_fn conv_find_relayout(const dnnl_memory_desc_t *layout, bool is_flipped,
                               struct relayout *out);
relayout_fn conv_find_relayout_back(const dnnl_memory_desc_t *layout, struct relayout *out);

/* conv_backward.c: the primitives of dx for all tiles, whose forward ones are there. */
weir_status conv_prepare_backward(struct conv_state *state, const struct op *op,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/* conv_winograd.c: is this op one for Winograd, and what it then does instead. */
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

/* What a call for n images keeps in scratch besides the primitive's own. */
static inline size_t conv_dx_bytes(const struct op *op, int32_t n)
{
    return conv_round_up((size_t)n * op_elems(op->in[0]) * conv_elem_bytes(op));
}

#endif
