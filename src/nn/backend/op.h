/**
 * A planned layer ("op") and what its kernels are handed. Back-ends are tables of these kernels.
 *
 * A tile is a run of images of one op. All pointers in a tile point at its first image, in the
 * back-end's layout (NCHW or NHWC; the same for vectors), and at elements of the op's type: where
 * it is bf16 and the back-end keeps bf16 as such, they are uint16_t. Everything a kernel may write
 * is either in the tile, or belongs to the tile's slice (row i_slice of `partials`), so tiles of
 * different slices run at the same time. Sums over the batch are made by the combine kernels, in
 * slice order.
 *
 * The reference kernels are compiled a second time with WEIR_REAL_IS_DOUBLE by their own test.
 */
#ifndef WEIR_NN_OP_H
#define WEIR_NN_OP_H

#include "nn/graph/graph.h"

#include <string.h>

#ifdef WEIR_REAL_IS_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#define BATCH_NORM_MOMENTUM 0.1
#define L2_NORM_EPS         1e-12
#define LAYER_NORM_EPS      1e-5
#define PRELU_INITIAL       0.25f

/** Parameters an op may have, by place in op.params. */
enum { OP_WEIGHT, OP_BIAS, OP_RUNNING_MEAN, OP_RUNNING_VAR, OP_MAX_PARAMS };

struct op_param {
    real *value;    /**< In the weight slab, plain row-major; NULL if the op has none. */
    real *gradient; /**< In the gradient slab; NULL if not trainable or not training. */
    size_t n_elems;
    int32_t index; /**< Row of the parameter table. */
};

/** Sums of one slice that the loss adds up. */
struct op_loss {
    double loss;
    int32_t n_correct, n_labelled;
};

/** Rows of a picture that are computed by themselves. */
struct op_row_tile {
    int32_t first_in, n_in; /**< Of in[0]; of other inputs the same as of out. */
    int32_t first_out, n_out;
    int32_t pad_top, pad_bottom; /**< CONV: what pad_h is for these rows. */
};

struct op {
    enum layer_kind kind;
    char name[LAYER_NAME_MAX_BYTES];
    int32_t n_in;
    struct weir_shape in[LAYER_MAX_INPUTS], out;
    struct weir_conv_params conv;
    struct weir_pool_params pool;
    double eps; /**< BATCH_NORM. */
    float rate, scale, margin;
    double smoothing; /**< SOFTMAX_LOSS: part of a label that all classes share, in training. */
    int32_t n_classes;
    /** Layers behind it that are done in the same pass: of BATCH_NORM, and in nets that are not for
     *  training of CONV and LINEAR. */
    bool has_relu;
    bool has_residual; /**< in[1] is added before the ReLU. Of CONV it may be the memory of y. */
    /** CONV, LINEAR: the batch norm between it and those, to be folded into weights and bias. */
    const struct op *norm;
    bool is_folded; /**< BATCH_NORM: one like that. Holds parameters; no kernel of it is called. */
    /** CONV, training: refresh_backward is called between forward and backward of every step, and
     *  refresh before the next forward: what both read of the parameters may share memory. */
    bool refreshes_backward;
    /** CONV, training: bytes of what it derives from its weights for forward, and again for
     * backward, in memory that the plan lends it from just before (derive) until its task is done.
     */
    size_t packed_bytes;
    bool is_channels_last;
    enum weir_precision type; /**< Of its tensors; CAST: of y, and x is of the other one. */
    enum weir_convolution convolution; /**< CONV: what the net was asked for. */
    int32_t batch, n_slices;
    int32_t gradient_batch; /**< Images of a call of weight_gradient. */
    /** CONV, LINEAR: its parameters are updated where their gradients are made, by so many fillers;
     *  0: they are not. */
    int32_t n_updates;
    /** LINEAR, if n_updates: the gradient is made so many rows at a time and never kept; 0: it is
     *  made whole. */
    int32_t update_rows;
    /** LINEAR, if update_rows, of one image: a row of the gradient is x times the row's dy. */
    bool is_rank_one;
    int32_t n_batched_slices; /**< Slices that one tile takes; 0: one. */
    /** A tile is an image's band of rows, of which kernels are handed an op (op_of_row_tile); 0: whole
     *  images. */
    int32_t n_row_tiles;
    struct op_row_tile *row_tiles;

    struct op_param params[OP_MAX_PARAMS];
    /** BATCH_NORM, PRELU: n_slices rows of n_partials doubles, each written by its slice's tile. */
    double *partials;
    int32_t n_partials;
    /** BATCH_NORM: the rows below, C each. MARGIN_LOSS: the class weights over their norms, then
     *  the norms. */
    real *saved;
    /** MAX_POOL, training: which cell of the window won, per output element in its layout. */
    int32_t *argmax;
    /** MARGIN_LOSS: batch rows of n_classes: cosines, then the loss's gradient by them. */
    real *scores;
    uint64_t dropout_key;
    uint64_t dropout_first; /**< DROPOUT: place of image 0 in the batch of all workers. */
    void *state;            /**< The back-end's own. */
};

/** Rows of `saved` of a batch norm. */
enum {
    BN_MEAN,
    BN_INV_STD,
    BN_SCALE, /**< Of inference: y = scale * x + shift. */
    BN_SHIFT,
    BN_MEAN_G, /**< Backward: means of dy, and of dy times the normalised x. */
    BN_MEAN_GX,
    BN_BATCH_SCALE, /**< A back-end's own: the same two of training … */
    BN_BATCH_SHIFT,
    BN_X_FACTOR, /**< … and dx = batch scale * dy + factor * x + shift. */
    BN_DX_SHIFT,
    BN_SAVED_ROWS
};

struct op_tile {
    int32_t i_thread, i_slice;
    int32_t i_row_tile; /**< If the op has bands. */
    int32_t first, n;   /**< Images first .. first + n of the batch. */
    const real *x[LAYER_MAX_INPUTS];
    real *y;
    const real *dy;
    real *dx[LAYER_MAX_INPUTS];     /**< NULL: nobody wants it. May be the memory of dy. */
    bool dx_adds[LAYER_MAX_INPUTS]; /**< Add to what is there instead of overwriting it. */
    bool is_training;
    uint64_t step;         /**< Dropout. */
    const int32_t *labels; /**< Losses: of these images. */
    double inv_n_labelled; /**< Losses: 1 / labelled images over which gradients are a mean. */
    struct op_loss *loss;  /**< Losses: row of the slice. */
    void *packed_weights;  /**< What derive has written for this pass, if op->packed_bytes. */
    void *scratch;         /**< Of this thread, as many bytes as any op's prepare asked for. */
};

typedef weir_status (*op_tile_fn)(const struct op *op, const struct op_tile *tile);
typedef weir_status (*op_batch_fn)(const struct op *op);

/** Kernels of one kind of layer. NULL: there is nothing to do in that phase. */
struct op_kernels {
    op_tile_fn forward;           /**< y from x. */
    op_tile_fn forward_sums;      /**< BATCH_NORM in training: partial sums of x. */
    op_batch_fn forward_combine;  /**< … and the statistics from them; running statistics. */
    op_tile_fn backward_sums;     /**< BATCH_NORM: partial sums of dy. */
    op_batch_fn backward_combine; /**< … and the parameter gradients from them. */
    op_tile_fn backward;          /**< dx (and row i_slice of partials) from dy, x, y. */
    /** Parameter gradients; the tile is the whole batch, or gradient_batch images of it. */
    op_tile_fn weight_gradient;
    /** Renew what is derived from the parameters. */
    weir_status (*refresh)(const struct op *op, int32_t i_thread, void *scratch);
    /** The same for backward alone, if op->refreshes_backward. */
    weir_status (*refresh_backward)(const struct op *op, int32_t i_thread, void *scratch);
    /** What forward, or backward, reads instead of the weights: op->packed_bytes to `to`. */
    void (*pack)(const struct op *op, bool is_backward, void *to);
};

struct weir_backend {
    const char *name;
    bool is_channels_last;
    bool can_fuse;     /**< Understands has_relu, has_residual, norm and bands. */
    bool has_winograd; /**< Understands convolution. */
    /** Is reading its weights so much of a linear's or convolution's work that it should take
     *  several slices at a time (op.n_batched_slices)? NULL: none does. */
    bool (*batches_slices)(const struct op *op);
    /** Tensors of bf16 lie in memory as f32: kernels need not know them, the net rounds what they
     *  have written. */
    bool keeps_f32;
    const struct op_kernels *kernels; /**< By layer_kind. */
    /** Rows of a linear's gradient that are best made in one call of weight_gradient if they are
     *  used at once: of an op of fewer outputs, with those outputs' dy. 0, or NULL: all of them. */
    int32_t (*gradient_rows)(const struct op *op);
    /** In f32 a linear's gradient of one image is products rounded once, as they are. */
    bool is_rank_one;
    /** What op->packed_bytes should be; NULL: 0. */
    size_t (*packed_bytes)(const struct op *op);
    /** What all ops of a net share; both NULL: nothing. Comes before any prepare. */
    weir_status (*open)(int32_t n_threads, enum weir_precision precision, void **out_context,
                        struct weir_error *err);
    void (*close)(void *context);
    /**
     * Make op->state for these sizes of tiles (one to three, each > 0) and say how much scratch the
     * kernels want. NULL: no op has any. Scratch is 64-byte aligned. A state half made is left for
     * release, which is called once for every op.
     */
    weir_status (*prepare)(void *context, struct op *op, const int32_t *tile_sizes,
                           int32_t n_tile_sizes, bool is_training, size_t *out_scratch_bytes,
                           struct weir_error *err);
    void (*release)(struct op *op);
    /** In each thread before its first kernel, and in create's thread before open; NULL: none. */
    void (*enter_thread)(void);
};

/** The op as it is for a band: a picture of so many rows, with that one band. Not to be released.
 */
static inline struct op op_of_row_tile(const struct op *op, int32_t i_row_tile)
{
    struct op part = *op;
    const struct op_row_tile *row_tile = &op->row_tiles[i_row_tile];
    for (int32_t j = 0; j < part.n_in; j++) {
        part.in[j].h = j == 0 ? row_tile->n_in : row_tile->n_out;
    }
    part.out.h = row_tile->n_out;
    part.conv.pad_h = row_tile->pad_top;
    part.n_row_tiles = 1;
    part.row_tiles += i_row_tile;
    return part;
}

/** Place of element (n, c, h, w) of a tensor in the op's layout. */
static inline size_t op_at(const struct op *op, struct weir_shape s, int32_t n, int32_t c,
                           int32_t h, int32_t w)
{
    size_t image = (size_t)n * (size_t)s.c * (size_t)s.h * (size_t)s.w;
    if (op->is_channels_last) {
        return image + ((size_t)h * (size_t)s.w + (size_t)w) * (size_t)s.c + (size_t)c;
    }
    return image + ((size_t)c * (size_t)s.h + (size_t)h) * (size_t)s.w + (size_t)w;
}

/** What an average pool divides window (oh, ow) by. */
static inline double op_pool_divisor(const struct op *op, int32_t oh, int32_t ow)
{
    const struct weir_pool_params *p = &op->pool;
    int32_t beyond = p->is_pad_excluded ? 0 : p->pad;
    int32_t h = oh * p->stride - p->pad, w = ow * p->stride - p->pad;
    int32_t n_h = WEIR_MIN(h + p->kernel, op->in[0].h + beyond) - WEIR_MAX(h, -beyond);
    int32_t n_w = WEIR_MIN(w + p->kernel, op->in[0].w + beyond) - WEIR_MAX(w, -beyond);
    return (double)n_h * n_w;
}

/** bf16 is the upper half of an f32, rounded to nearest even; NaN stays NaN. */
static inline uint16_t bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if (value != value) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float bf16_to_f32(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

static inline size_t op_elems(struct weir_shape s)
{
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

#endif
