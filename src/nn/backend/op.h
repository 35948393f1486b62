/**
 * Op: a planned layer, what its kernels are handed, and the table of kernels that is a back-end.
 *
 * A tile is a run of images of one op. All pointers in a tile point at its first image, in the
 * back-end's layout (NCHW or NHWC; the same for vectors). Elements have the op's type. They are
 * uint16_t where the type is bf16 or fp16 and the back-end keeps it as such.
 *
 * Threads: tiles of different slices run at the same time. A kernel writes only to its tile and to
 * what belongs to the tile's slice (row i_slice of `partials`). The combine kernels take sums over
 * the batch in slice order.
 *
 * The reference kernels are compiled a second time with WEIR_REAL_IS_DOUBLE, by their own test.
 */
#ifndef WEIR_NN_OP_H
#define WEIR_NN_OP_H

#include "base/half.h"
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

/** Parameters of an op, by slot in op.params. */
enum { OP_WEIGHT, OP_BIAS, OP_RUNNING_MEAN, OP_RUNNING_VAR, OP_MAX_PARAMS };

struct op_param {
    real *value;    /**< In the weight slab, row-major; NULL if the op has none. */
    real *gradient; /**< In the gradient slab; NULL if not trainable or not training. */
    size_t n_elems;
    int32_t index; /**< Row of the parameter table. */
};

/** Sums of one slice, which the loss adds up. */
struct op_loss {
    double loss;
    int32_t n_correct, n_labelled;
};

/** A row tile: rows of an image that are computed alone. */
struct op_row_tile {
    int32_t first_in, n_in; /**< Rows of in[0]; of other inputs, the rows of out. */
    int32_t first_out, n_out;
    int32_t pad_top, pad_bottom; /**< CONV: padding above and below these rows. */
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
    double smoothing; /**< SOFTMAX_LOSS, training: part of the target that all classes share. */
    int32_t n_classes;
    int32_t n_values;                   /**< DETECT_LOSS. */
    float initial_factor, initial_bias; /**< CONV; factor 0: 1. */
    /** The layers behind it are done in the same pass: behind BATCH_NORM, and behind CONV and
     *  LINEAR in nets that are not for training. */
    bool has_relu;
    bool has_residual; /**< in[1] is added before the ReLU. For CONV it may be the memory of y. */
    /** CONV, LINEAR: the batch norm behind it, which is folded into weights and bias. */
    const struct op *norm;
    bool is_folded; /**< BATCH_NORM: folded so. It holds parameters; no kernel of it is called. */
    /** BATCH_NORM with a ReLU, training: backward does not read y: the back-end knows where it is 0. */
    bool knows_sign;
    bool wants_dx; /**< Training: backward makes the gradient of in[0]. */
    bool adds_dx;  /**< Training: and adds it to what is there. */
    /** CONV, training: every step calls refresh_backward between forward and backward, and refresh
     *  before the next forward. So both copies of the weights may share memory. */
    bool refreshes_backward;
    /** CONV, training: bytes of packed weights, for forward and again for backward. The plan lends
     *  the memory from just before the pack task until the task that reads them is done. */
    size_t packed_bytes;
    bool is_channels_last;
    enum weir_precision type;          /**< Of its tensors. CAST: of y; x has the other type. */
    enum weir_convolution convolution; /**< CONV: what the net was asked for. */
    int32_t batch, n_slices;
    int32_t gradient_batch; /**< Images of one call of weight_gradient. */
    /** CONV, LINEAR: deferred tasks that make its gradients and update its parameters at once; 0:
     *  its parameters are updated behind backward. */
    int32_t n_updates;
    /** LINEAR with n_updates: the gradient is made so many rows at a time and is not kept; 0: it is
     *  made whole. */
    int32_t update_rows;
    /** LINEAR with update_rows, one image: the gradient has rank one; row k is x * dy[k]. */
    bool is_rank_one;
    int32_t n_batched_slices; /**< Slices that one tile takes; 0: one. */
    /** A tile is a row tile of an image, and kernels are handed op_of_row_tile; 0: whole images. */
    int32_t n_row_tiles;
    struct op_row_tile *row_tiles;

    struct op_param params[OP_MAX_PARAMS];
    /** BATCH_NORM, PRELU: n_slices rows of n_partials doubles. A slice's tile writes its row. */
    double *partials;
    int32_t n_partials;
    /** BATCH_NORM: BN_SAVED_ROWS rows of C. MARGIN_LOSS: the class weights divided by their norms,
     *  then the norms. */
    real *saved;
    /** MAX_POOL, training: position of the window's maximum, per output element in its layout. */
    int32_t *argmax;
    /** MARGIN_LOSS: n_classes values per image: cosines, then the loss's gradient by them. */
    real *scores;
    uint64_t dropout_key;
    uint64_t dropout_first; /**< DROPOUT: position of image 0 in the batch of all workers. */
    void *state;            /**< The back-end's own. */
};

/** Rows of `saved` of a batch norm. */
enum {
    BN_MEAN,
    BN_INV_STD,
    BN_SCALE, /**< Inference: y = scale * x + shift. */
    BN_SHIFT,
    BN_MEAN_G,      /**< Backward: mean of dy. */
    BN_MEAN_GX,     /**< Backward: mean of dy times the normalised x. */
    BN_BATCH_SCALE, /**< Training, for back-ends: y = scale * x + shift. */
    BN_BATCH_SHIFT,
    BN_X_FACTOR, /**< Training, for back-ends: dx = batch scale * dy + factor * x + shift. */
    BN_DX_SHIFT,
    BN_SAVED_ROWS
};

/** What a kernel reads and writes in one call. */
struct op_tile {
    int32_t i_thread, i_slice;
    int32_t i_row_tile; /**< If the op has row tiles. */
    int32_t first, n;   /**< Images first .. first + n of the batch. */
    const real *x[LAYER_MAX_INPUTS];
    real *y;
    const real *dy;
    real *dx[LAYER_MAX_INPUTS];     /**< NULL: not wanted. May be the memory of dy. */
    bool dx_adds[LAYER_MAX_INPUTS]; /**< Add to what is there instead of overwriting it. */
    bool is_training;
    uint64_t step;         /**< Dropout. */
    const int32_t *labels; /**< Losses: of these images. */
    const float *targets;  /**< DETECT_LOSS: as long as x. */
    double inv_n_labelled; /**< Losses: 1 / number of images that gradients are a mean over. */
    struct op_loss *loss;  /**< Losses: the slice's row. */
    void *packed_weights;  /**< What `pack` wrote for this pass; NULL if !op->packed_bytes. */
    void *scratch;         /**< Of this thread: the most that any op's prepare asked for. */
};

typedef weir_status (*op_tile_fn)(const struct op *op, const struct op_tile *tile);
typedef weir_status (*op_batch_fn)(const struct op *op);

/** Kernels of one kind of layer. NULL: nothing to do in that phase. */
struct op_kernels {
    op_tile_fn forward;           /**< y from x. */
    op_tile_fn forward_sums;      /**< BATCH_NORM, training: partial sums of x. */
    op_batch_fn forward_combine;  /**< BATCH_NORM, training: statistics from the partial sums. */
    op_tile_fn backward_sums;     /**< BATCH_NORM: partial sums of dy. */
    op_batch_fn backward_combine; /**< BATCH_NORM: parameter gradients from them. */
    op_tile_fn backward;          /**< dx, and row i_slice of partials, from dy, x, y. */
    /** Parameter gradients. The tile is the whole batch, or gradient_batch images of it. */
    op_tile_fn weight_gradient;
    /** Makes the back-end's copies of the parameters again. */
    weir_status (*refresh)(const struct op *op, int32_t i_thread, void *scratch);
    /** The same for what backward alone reads, if op->refreshes_backward. */
    weir_status (*refresh_backward)(const struct op *op, int32_t i_thread, void *scratch);
    /** Writes packed weights for forward, or for backward, to `to` (op->packed_bytes). */
    void (*pack)(const struct op *op, bool is_backward, void *to);
};

struct gpu;
struct weir_optimizer_config;

/** What changes from step to step, for back-ends whose kernels run later than they are called. */
struct backend_step {
    uint64_t step, first_image;
    double inv_n_labelled;
    int32_t n_images;
};

/** Defaults of weir_net_config.loss_scale and loss_scale_steps: PyTorch's. */
#define BACKEND_LOSS_SCALE       65536.0F
#define BACKEND_LOSS_SCALE_STEPS 2000

/** Elements that have one byte in backend_update.is_decayed. Parameters start at a multiple of it. */
#define BACKEND_DECAY_ELEMS 16

/** An update of weights by the rule of `config` (optimizer.h), without norms. Memory is the kernels'. */
struct backend_update {
    const struct weir_optimizer_config *config;
    float *weights;
    const float *gradients;
    float *states[2]; /**< In the optimiser's order; NULL: the rule has fewer. */
    const unsigned char *is_decayed;
    bool is_scaled; /**< fp16: the gradients have the loss scale. */
    size_t n_elems;
    double learning_rate;
    uint64_t step; /**< From 0. */
};

struct gpu_probe; /* cuda/gpu.h */

/** A back-end. It is constant and shared by all nets. */
struct weir_backend {
    const char *name;
    bool is_channels_last;
    bool can_fuse;     /**< Its kernels know has_relu, has_residual, norm and row tiles. */
    bool has_winograd; /**< Its kernels know `convolution`. */
    bool knows_signs;  /**< It sets op.knows_sign: its batch norms remember where their ReLU cut. */
    bool has_tf32;     /**< It can round factors of products in f32 (WEIR_PRECISION_TF32). */
    bool has_fp16;     /**< Its tensors can be IEEE halves, with a loss scale. */
    /** Should the linear or convolution take several slices at a time (op.n_batched_slices),
     *  because reading its weights is much of its work? NULL: none should. */
    bool (*batches_slices)(const struct op *op);
    /** Tensors of bf16 and fp16 lie in memory as f32. Kernels need not know these; the net rounds what
     *  they have written. */
    bool keeps_f32;
    const struct op_kernels *kernels; /**< By layer_kind. */
    /** Rows of a linear's gradient that one call of weight_gradient should make if they are used at
     *  once. The call gets an op of so many outputs, with those outputs' dy. 0, or NULL: all
     *  rows. */
    int32_t (*gradient_rows)(const struct op *op);
    /** In f32 a linear's gradient of one image is x * dy[k], rounded once. */
    bool is_rank_one;
    /** What op->packed_bytes should be. NULL: 0. */
    size_t (*packed_bytes)(const struct op *op);
    /** Makes what all ops of a net share; called before any prepare. open and close are both NULL
     *  if there is nothing. */
    weir_status (*open)(const struct weir_net_config *config, int32_t n_threads, void **out_context,
                        struct weir_error *err);
    void (*close)(void *context);
    /**
     * The GPU on which tensors lie. NULL: in the processor's memory. With a GPU:
     *   - pointers in ops and tiles are addresses on it; kernels only queue work, in order;
     *   - a net has one slice and one thread, and deferred tasks run where they are opened;
     *   - what a tile says of the step (step, inv_n_labelled) holds for the first run alone, as runs
     *     are recorded: set_step says it, before each run. The loss counts its n_images.
     */
    struct gpu *(*gpu)(void *context);
    weir_status (*set_step)(void *context, const struct backend_step *step);
    /** Can `update` do this rule? Queues the update. */
    bool (*has_rule)(const char *name);
    weir_status (*update)(void *context, const struct backend_update *update);
    /** Queues `to` = or += `from`, n f32 elements. */
    weir_status (*add)(void *context, float *to, const float *from, size_t n_elems, bool adds);
    /** gpu_ops.probe of the GPUs that nets lie on. */
    weir_status (*probe)(int32_t index, struct gpu_probe *out, struct weir_error *err);
    /* The loss scale, of a net that trains in fp16 (weir_loss_scale): its rule is kept by `update`. */
    /** Queues the division of n gradients by the scale, for somebody else than `update`. */
    weir_status (*unscale)(void *context, float *gradients, size_t n_elems);
    /** Queues the end of a step whose update was made, or left out, elsewhere. */
    weir_status (*note_update)(void *context, bool is_finite);
    /** Copies it from or to the GPU, and waits. */
    weir_status (*get_scale)(void *context, struct weir_loss_scale *out);
    weir_status (*set_scale)(void *context, const struct weir_loss_scale *scale);
    /**
     * Makes op->state for these sizes of tiles (one to three, each > 0) and tells how much scratch
     * the kernels want. Scratch is aligned to 64 bytes. NULL: no op has a state. After a failure
     * the half-made state is left for release.
     */
    weir_status (*prepare)(void *context, struct op *op, const int32_t *tile_sizes,
                           int32_t n_tile_sizes, bool is_training, size_t *out_scratch_bytes,
                           struct weir_error *err);
    /** Frees op->state. Called once for every op. */
    void (*release)(struct op *op);
    /** Called in each thread before its first kernel, and in the creating thread before open. NULL:
     *  not needed. */
    void (*enter_thread)(void);
};

/** The op of one row tile: an image of so many rows, with that one row tile. Borrows from op; not
 *  to be released. */
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

/** Index of element (n, c, h, w) of a tensor in the op's layout. */
static inline size_t op_at(const struct op *op, struct weir_shape s, int32_t n, int32_t c,
                           int32_t h, int32_t w)
{
    size_t image = (size_t)n * (size_t)s.c * (size_t)s.h * (size_t)s.w;
    if (op->is_channels_last) {
        return image + ((size_t)h * (size_t)s.w + (size_t)w) * (size_t)s.c + (size_t)c;
    }
    return image + ((size_t)c * (size_t)s.h + (size_t)h) * (size_t)s.w + (size_t)w;
}

/** What an average pool divides the sum of window (oh, ow) by. */
static inline double op_pool_divisor(const struct op *op, int32_t oh, int32_t ow)
{
    const struct weir_pool_params *p = &op->pool;
    int32_t beyond = p->is_pad_excluded ? 0 : p->pad;
    int32_t h = oh * p->stride - p->pad, w = ow * p->stride - p->pad;
    int32_t n_h = WEIR_MIN(h + p->kernel, op->in[0].h + beyond) - WEIR_MAX(h, -beyond);
    int32_t n_w = WEIR_MIN(w + p->kernel, op->in[0].w + beyond) - WEIR_MAX(w, -beyond);
    return (double)n_h * n_w;
}

/** The upper half of an f32, rounded to nearest even. NaN stays NaN. */
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

/** As the type keeps it. */
static inline float op_rounded(enum weir_precision type, float value)
{
    return type == WEIR_PRECISION_BF16  ? bf16_to_f32(bf16_from_f32(value))
           : type == WEIR_PRECISION_F16 ? weir_half_to_f32(weir_half_from_f32(value))
                                        : value;
}

static inline size_t op_elems(struct weir_shape s)
{
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

#endif
