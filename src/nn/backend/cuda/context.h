/**
 * What the files of this back-end share: the context of a net, and how ops queue kernels.
 *
 * A net on a GPU has one slice, the whole batch, and one thread, which queues a kernel for each
 * task. Scratch memory is on the GPU and is shared by all tasks, which run one after the other.
 */
#ifndef WEIR_NN_CUDA_CONTEXT_H
#define WEIR_NN_CUDA_CONTEXT_H

#include "gpu.h"
#include "kernels.h"
#include "nn/backend/op.h"

struct cuda_context {
    struct gpu *gpu;
    bool allows_tf32;
    enum gpu_type half;         /**< Of a net with halves, which. */
    struct gpu_step *step;      /**< On the GPU. */
    struct gpu_step *host_step; /**< Pinned. */
    struct gpu_scale *scale;    /**< On the GPU; NULL: the net does not train in fp16. */
    int32_t n_scale_steps;      /**< weir_net_config.loss_scale_steps. */
};

/** op->state of every op; other states begin with it. */
struct cuda_op {
    struct cuda_context *context;
    struct gpu_loss *image_losses; /**< Losses. On the GPU. */
    void *signs;                   /**< Batch norms with a ReLU: where y is positive (kernels.h). */
};

static inline const struct cuda_op *cuda_op_of(const struct op *op)
{
    return op->state;
}

/** Type that the op's kernels are compiled for. */
static inline enum gpu_type cuda_type(const struct op *op)
{
    return op->type == WEIR_PRECISION_F16    ? GPU_F16
           : op->type == WEIR_PRECISION_BF16 ? GPU_BF16
                                             : GPU_F32;
}

/** Elements that a thread of such kernels takes at once. */
static inline int32_t cuda_vec(enum gpu_type type)
{
    return gpu_is_half(type) ? 8 : 4;
}

static inline size_t cuda_elem_bytes(enum gpu_type type)
{
    return gpu_is_half(type) ? 2 : 4;
}

static inline size_t cuda_align(size_t size_bytes)
{
    return (size_bytes + 255) / 256 * 256;
}

/** Blocks for n threads, each of which takes more if that is too many. */
static inline uint32_t cuda_blocks(uint64_t n)
{
    uint64_t n_blocks = (n + GPU_BLOCK - 1) / GPU_BLOCK;
    return (uint32_t)WEIR_MAX(WEIR_MIN(n_blocks, (uint64_t)8192), (uint64_t)1);
}

weir_status cuda_launch(const struct op *op, enum gpu_kernel kernel, enum gpu_type type,
                        uint32_t grid_x, uint32_t grid_y, const void *args, size_t args_bytes);

/** Queues a kernel of `n_threads` threads that the op's type is compiled for. */
#define CUDA_RUN(op, kernel, n_threads, args)                                                      \
    cuda_launch(op, GPU_KERNEL_##kernel, cuda_type(op), cuda_blocks(n_threads), 1, &(args),        \
                sizeof(args))

/* ---- kernels over rows (kernels/common.cu) ---------------------------------------------------- */

/** How the rows of C channels are divided among blocks. */
struct cuda_rows {
    bool is_vector; /**< C is a multiple of the vector; else NAME_1 is to be called. */
    uint32_t grid_x, grid_y;
};

/** @param is_sum  The blocks write partial sums, of which there should be few. */
struct cuda_rows cuda_rows(enum gpu_type type, uint64_t n_rows, int32_t n_channels, bool is_sum);

/** Scratch for partial sums of rows of this op's input or output. */
size_t cuda_partial_bytes(enum gpu_type type, uint64_t n_rows, int32_t n_channels);

/** Queues NAME or NAME_1. args->n_rows and c are set. */
#define CUDA_RUN_ROWS(op, kernel, rows, args)                                                      \
    cuda_launch(op, (rows).is_vector ? GPU_KERNEL_##kernel : GPU_KERNEL_##kernel##_1,              \
                cuda_type(op), (rows).grid_x, (rows).grid_y, &(args), sizeof(args))

/** Queues the end of n_blocks partial sums of each channel. */
weir_status cuda_end_columns(const struct op *op, const void *partials, uint32_t n_blocks,
                             int32_t n_channels, float *gradient);

/** Queues the sum of dy's rows for each channel, and its end in `gradient`. */
weir_status cuda_column_sums(const struct op *op, const void *dy, uint64_t n_rows,
                             int32_t n_channels, void *scratch, float *gradient);

/* ---- ops, by file ----------------------------------------------------------------------------- */

/* op_layers.c */
weir_status cuda_input_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_cast_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_cast_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_relu_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_relu_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_prelu_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_prelu_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_prelu_weight_gradient(const struct op *op, const struct op_tile *tile);
weir_status cuda_dropout_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_dropout_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_add_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_add_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_concat_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_concat_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_flatten_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_flatten_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_scale_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_scale_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_l2_normalise_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_l2_normalise_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_layer_norm_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_layer_norm_backward(const struct op *op, const struct op_tile *tile);

/* op_pool.c */
weir_status cuda_max_pool_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_max_pool_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_avg_pool_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_avg_pool_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_global_pool_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_global_pool_backward(const struct op *op, const struct op_tile *tile);

/* op_norm.c */
/** Bytes of cuda_op.signs. */
size_t cuda_sign_bytes(const struct op *op);
weir_status cuda_norm_sums(const struct op *op, const struct op_tile *tile);
weir_status cuda_norm_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_norm_backward_sums(const struct op *op, const struct op_tile *tile);
weir_status cuda_norm_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_norm_refresh(const struct op *op, int32_t i_thread, void *scratch);
/** The sums were combined where they were made. */
weir_status cuda_combine_nothing(const struct op *op);

/* op_conv.c, op_conv_plan.c: convolutions and linears. */
weir_status cuda_conv_prepare(struct cuda_context *context, struct op *op, bool is_training,
                              size_t *out_scratch_bytes, struct weir_error *err);
void cuda_conv_release(struct op *op);
weir_status cuda_conv_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_conv_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_conv_weight_gradient(const struct op *op, const struct op_tile *tile);
weir_status cuda_conv_refresh(const struct op *op, int32_t i_thread, void *scratch);

/* op_depthwise.c: convolutions with as many groups as channels, for op_conv.c. Weights are R×S×C. */
/** Whole vectors of channels, and not more of them than kernels count. */
bool cuda_is_depthwise(const struct gpu_direct_args *args, enum gpu_type type);
weir_status cuda_depthwise_forward(const struct op *op, const struct gpu_direct_args *args);
weir_status cuda_depthwise_backward(const struct op *op, const struct gpu_direct_args *args);
/** To the slab's order in args->out. @param scratch  cuda_depthwise_scratch_bytes. */
weir_status cuda_depthwise_gradient(const struct op *op, const struct gpu_direct_args *args,
                                    void *scratch);
size_t cuda_depthwise_scratch_bytes(const struct gpu_direct_args *args, enum gpu_type type);

/* update.c: weir_backend.has_rule, .update and .add. */
bool cuda_has_rule(const char *name);
weir_status cuda_update(void *context, const struct backend_update *update);
/** weir_backend.add. */
weir_status cuda_add(void *context, float *to, const float *from, size_t n_elems, bool adds);

/* loss_scale.c: the same of weir_backend's loss scale. */
/** Training in fp16: memory for it, with the config's scale. */
weir_status cuda_scale_make(struct cuda_context *context, const struct weir_net_config *config,
                            struct weir_error *err);
void cuda_scale_free(struct cuda_context *context);
weir_status cuda_unscale(void *context, float *gradients, size_t n_elems);
weir_status cuda_note_update(void *context, bool is_finite);
weir_status cuda_get_scale(void *context, struct weir_loss_scale *out);
weir_status cuda_set_scale(void *context, const struct weir_loss_scale *scale);
/** Before and after an update: looks whether all gradients are finite; the scale of the next step. */
weir_status cuda_scale_check(struct cuda_context *context, const float *gradients, size_t n_elems);
weir_status cuda_scale_move(struct cuda_context *context);

/* op_loss.c */
weir_status cuda_softmax_loss_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_softmax_loss_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_margin_loss_refresh(const struct op *op, int32_t i_thread, void *scratch);
weir_status cuda_margin_loss_forward(const struct op *op, const struct op_tile *tile);
weir_status cuda_margin_loss_backward(const struct op *op, const struct op_tile *tile);
weir_status cuda_margin_loss_weight_gradient(const struct op *op, const struct op_tile *tile);

#endif
