/**
 * Argument structures of the kernels (kernels.cu), read by the C compiler and by NVRTC alike.
 *
 * Tensors are N×H×W×C, as rows of C elements ("rows": N*H*W of them). Elements have the type that
 * the kernel was compiled for. Pointers are addresses on the GPU. A NULL pointer says that there is
 * no such tensor. `adds` says that the result is added to what is there.
 */
#ifndef WEIR_NN_CUDA_KERNELS_H
#define WEIR_NN_CUDA_KERNELS_H

/* NVRTC has no headers of the C library. */
typedef unsigned long long gpu_u64;

/** Rows of op.saved of a batch norm, as in op.h. */
enum {
    GPU_BN_MEAN,
    GPU_BN_INV_STD,
    GPU_BN_SCALE,
    GPU_BN_SHIFT,
    GPU_BN_MEAN_G,
    GPU_BN_MEAN_GX,
    GPU_BN_BATCH_SCALE,
    GPU_BN_BATCH_SHIFT,
    GPU_BN_X_FACTOR,
    GPU_BN_DX_SHIFT
};

enum { GPU_RULE_SGD, GPU_RULE_RMSPROP, GPU_RULE_ADAM, GPU_RULE_ADAMW };

/** What changes from step to step, in memory of the GPU. A recorded step reads it there. */
struct gpu_step {
    gpu_u64 step, first_image;
    double inv_n_labelled;
    int n_images; /**< Losses count no others. */
    int unused;
};

/** The loss scale (weir_loss_scale). A recorded step reads it here. */
struct gpu_scale {
    float scale;
    unsigned n_good;
    gpu_u64 n_skipped;
    int is_spoilt; /**< A gradient of this step is not finite. */
    int unused;
};

/** As op_loss. */
struct gpu_loss {
    double loss;
    int n_correct, n_labelled;
};

/** Element by element. */
struct gpu_flat_args {
    const void *x, *y, *dy;
    void *out;
    gpu_u64 n; /**< Elements. */
    float limit, scale;
    int adds;
    /* Dropout. */
    const struct gpu_step *step;
    gpu_u64 key;
    gpu_u64 image_elems;
    int c, hw;
    float rate;
};

/** Row by row, with values for each channel. */
struct gpu_rows_args {
    const void *x, *dy, *residual;
    void *out, *out_residual;
    /** Of y before the ReLU: a bit for each element, a byte for each vector. */
    unsigned char *signs;
    const float *scale, *shift; /**< out = scale * x + shift; NULL: 1, 0. */
    const float *slope;         /**< PReLU. */
    float *saved;               /**< Batch norm: rows of op.saved. */
    const float *pivot;         /**< Sums: what x is taken from, so that squares do not cancel. */
    float *partials;            /**< Sums: of blocks. */
    gpu_u64 n_rows;
    int c;
    int has_relu;
    int adds, adds_residual;
};

/** What sums over rows become. */
struct gpu_combine_args {
    const float *partials; /**< n_blocks × 2 × c. */
    int n_blocks, c;
    double n_rows, eps, momentum;
    const float *weight, *bias;
    float *saved, *running_mean, *running_var;
    float *weight_gradient, *bias_gradient;
};

/** Images N×C×H×W to N×H×W×C; vectors to images; channels to more or fewer channels. */
struct gpu_copy_args {
    const void *from;
    void *to;
    gpu_u64 n_rows; /**< Pixels of the batch. */
    int c_from, c_to, at_from, at_to, n_c, hw;
    int adds;
};

struct gpu_pool_args {
    const void *x, *dy;
    void *out;
    int *argmax;
    int n, c, h, w, out_h, out_w, kernel, stride, pad, is_pad_excluded, adds;
};

/** Direct convolutions, in groups or of any number of channels. Weights are K×R×S×(C/groups). */
struct gpu_direct_args {
    const void *x, *weights, *dy;
    void *out;
    int n, c, h, w, k, out_h, out_w, kernel_h, kernel_w, stride, pad_h, pad_w, dilation, groups;
    int adds;
    /* Depthwise: weights are R×S×C. */
    const float *bias; /**< Forward; NULL: none. */
    float *partials;   /**< Weight gradients: n_blocks × R×S × C. */
    int has_relu, n_blocks;
};

/** Weights: f32 K×C×R×S in the slab; packed K×R×S×C with more channels, of the kernel's type. */
struct gpu_pack_args {
    const float *slab;
    void *packed;
    float *gradient;
    const void *packed_gradient;
    int k, c, rs, packed_k, packed_c;
    /* A batch norm behind it, folded: all NULL if there is none. */
    const float *gamma, *beta, *mean, *var, *bias;
    float *out_bias;      /**< packed_k values for kernels of ours. */
    void *out_bias_typed; /**< The same in the kernel's type, for the library. */
    double eps;
};

/** A picture whose blocks of 2×2 pixels are pixels of four times the channels (row of the block, column,
 *  channel), for convolutions with stride 2: tap r of a kernel is tap (r - pad) / 2 of the blocks',
 *  rounded down, counted from `first`, and row (r - pad) % 2 of its block. The first block is the one
 *  at `first`: the padding is part of them. */
struct gpu_block_args {
    const void *x; /**< N×H×W×C. */
    void *out;     /**< N×block_h×block_w×packed_c. */
    int n, h, w, c, block_h, block_w, packed_c;
    int kernel_h, kernel_w, pad_h, pad_w, first_h, first_w, block_kernel_h, block_kernel_w;
    struct gpu_pack_args weights;
};

struct gpu_vector_args {
    const float *x, *dy;
    float *out;
    int n, len;
    int adds;
};

struct gpu_loss_args {
    const float *x; /**< Logits, or embeddings. */
    const int *labels;
    float *dx;
    const struct gpu_step *step;
    const struct gpu_scale *scale_of_loss; /**< NULL: 1. */
    struct gpu_loss *losses;               /**< One an image. */
    struct gpu_loss *sum;
    int n, n_classes, dim;
    int is_training, adds;
    float smoothing, scale, margin;
    float *scores;        /**< n × n_classes. */
    float *saved;         /**< Margin: unit rows of the weights, then their norms. */
    const float *weights; /**< Margin: n_classes × dim. */
    float *gradient;
};

struct gpu_update_args {
    float *weights;
    const float *gradients;
    float *state1, *state2;
    const unsigned char *is_decayed; /**< One byte for each 16 elements. */
    const struct gpu_scale *scale;   /**< Spoilt: nothing is updated. NULL: there is none. */
    gpu_u64 n;
    int rule, is_nesterov;
    int is_scaled; /**< The gradients are to be divided by the scale. */
    float lr, decay, momentum, alpha, beta1, beta2, epsilon;
    float rest_alpha, rest1, rest2; /**< 1 - alpha, 1 - beta1, 1 - beta2, rounded once. */
    float correction1, correction2; /**< adam: lr/(1-b1^t), sqrt(1-b2^t). */
};

/** Of gradients, and of the loss scale behind an update. */
struct gpu_scale_args {
    float *gradients;
    struct gpu_scale *scale;
    gpu_u64 n;
    int n_steps;   /**< Good ones until the scale doubles. */
    int is_spoilt; /**< The processor has found a gradient that is not finite. */
};

#endif
