/** What the files of convolutions share: op_conv_plan.c makes it, op_conv.c runs it. */
#ifndef WEIR_NN_CUDA_OP_CONV_H
#define WEIR_NN_CUDA_OP_CONV_H

#include "context.h"

struct cuda_conv {
    struct cuda_op op;
    struct weir_conv_params conv; /* of a linear too */
    struct weir_shape in, out;
    enum gpu_type type;
    bool is_direct; /* tensors as they are; the directions without a plan by kernels of ours */
    bool is_depthwise;
    struct gpu_block_args blocks; /* n > 0: the library gets blocks of pixels */
    int32_t packed_c, packed_k;   /* of a group's input; of the output */
    struct gpu_plan *forward, *input_gradient, *weight_gradient;
    bool is_fused; /* forward does bias, residual and ReLU too */
    bool can_add;  /* input_gradient adds */
    size_t workspace_bytes;
    void *packed;                            /* weights, on the GPU */
    float *bias;                             /* packed_k values; NULL: none */
    void *typed_bias;                        /* in the op's type */
    size_t x_bytes, y_bytes, gradient_bytes; /* scratch: x, y, packed gradient */
};

static inline const struct cuda_conv *conv_of(const struct op *op)
{
    return op->state;
}

static inline bool has_epilogue(const struct op *op, const struct cuda_conv *conv)
{
    return conv->bias || op->has_residual || op->has_relu;
}

static inline bool has_blocks(const struct cuda_conv *conv)
{
    return conv->blocks.n > 0;
}

static inline bool copies_x(const struct cuda_conv *conv)
{
    return !conv->is_direct && (has_blocks(conv) || conv->packed_c != conv->in.c);
}

static inline bool copies_y(const struct cuda_conv *conv)
{
    return !conv->is_direct && conv->packed_k != conv->out.c;
}

/* Channels of x as the library sees it. */
static inline int32_t library_c(const struct cuda_conv *conv)
{
    return conv->is_direct ? conv->in.c : conv->packed_c;
}

static inline size_t weight_elems(const struct cuda_conv *conv)
{
    size_t n = (size_t)conv->packed_k * (size_t)conv->packed_c;
    return has_blocks(conv)
               ? n * (size_t)conv->blocks.block_kernel_h * (size_t)conv->blocks.block_kernel_w
               : n * (size_t)conv->conv.kernel_h * (size_t)conv->conv.kernel_w;
}

static inline uint64_t n_pixels(const struct op *op, struct weir_shape shape)
{
    return (uint64_t)op->batch * (uint64_t)shape.h * (uint64_t)shape.w;
}

static inline struct gpu_direct_args direct_args(const struct op *op)
{
    const struct cuda_conv *conv = conv_of(op);
    return (struct gpu_direct_args){.weights = conv->packed,
                                    .n = op->batch,
                                    .c = conv->in.c,
                                    .h = conv->in.h,
                                    .w = conv->in.w,
                                    .k = conv->out.c,
                                    .out_h = conv->out.h,
                                    .out_w = conv->out.w,
                                    .kernel_h = conv->conv.kernel_h,
                                    .kernel_w = conv->conv.kernel_w,
                                    .stride = conv->conv.stride,
                                    .pad_h = conv->conv.pad_h,
                                    .pad_w = conv->conv.pad_w,
                                    .dilation = conv->conv.dilation,
                                    .groups = conv->conv.groups};
}

#endif
