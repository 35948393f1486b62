/**
 * nn: networks as graphs, planned once, then trained and run without allocating.
 *
 * Three nouns:
 *
 *   weir_graph      A list of layers over values (images N×C×H×W or vectors N×C). It holds shapes
 *                   only. The functions below build one, or zoo.h, or a file (model_file.h).
 *   weir_net        A graph planned for a batch size, a back-end and a number of threads. It owns
 *                   three slabs of memory (weights, weight gradients, activations) and a static
 *                   schedule of tasks, which its own threads execute.
 *   weir_optimizer  It turns gradients into new weights (optimizer.h).
 *
 * Example:
 *
 *     struct weir_graph *graph;
 *     weir_zoo_build("lenet", &shape, 10, &graph, err);
 *     struct weir_net *net;
 *     struct weir_net_config config = {.batch = 32, .n_threads = 2, .is_training = true};
 *     weir_net_create(graph, &config, &net, err);
 *     weir_net_init_weights(net, seed);
 *     for each batch:
 *         fill weir_net_input(net) and weir_net_labels(net);
 *         weir_net_step(net, step, NULL, NULL, &result);
 *         weir_optimizer_update_net(optimizer, net, weir_net_gradients(net, NULL), lr, step);
 *
 * Dimensions: N images of a batch, C channels, H rows, W columns, K output channels.
 *
 * Types: input, output, parameters and their gradients are f32, row-major NCHW and KCHW. A back-end
 * may keep other layouts inside. With WEIR_PRECISION_BF16, activations and their gradients are
 * bfloat16 (the upper 16 bits of an f32, rounded to nearest even). Convolutions and linears then
 * multiply bfloat16 copies of the weights and add up in f32. Parameters and their gradients,
 * statistics of norms, losses, and what l2_normalise and layer_norm compute stay f32. A step moves
 * half the memory and is about twice as fast. The loss differs from f32's by some tenths of a
 * percent. WEIR_PRECISION_F16 does the same with IEEE halves, on GPUs; see weir_loss_scale.
 *
 * Determinism: the result has the same bits for any number of threads. Work is cut into image
 * slices that depend on the batch alone, and every sum is taken in slice order.
 *
 * Threads: one thread at a time uses a graph or a net. The thread that calls a step works too, and
 * n_threads counts it. The oneDNN back-end leaves that thread set to one OpenMP thread. The net's
 * threads call the caller back in four cases only: weir_net_bucket_fn, weir_net_apply_fn,
 * weir_net_update_fn, weir_net_fetch_fn.
 *
 * Errors: NOMEM, and INVALID for shapes that do not fit; err names the layer.
 */
#ifndef WEIR_NN_NN_H
#define WEIR_NN_NN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- graph ------------------------------------------------------------------------------- */

/** Shape of one image; a vector has h = w = 1. */
struct weir_shape {
    int32_t c, h, w;
};

/** Number of a value of a graph, which is what a layer makes. Negative: a builder call failed. */
typedef int32_t weir_value_t;

struct weir_graph;

/** An empty graph. The caller owns it. NULL if memory is out. */
struct weir_graph *weir_graph_create(void);
/** Frees the graph. NULL is accepted. Nets made from it stay valid. */
void weir_graph_destroy(struct weir_graph *graph);

/*
 * Builders. Each adds one layer called `name` and returns the value that the layer makes. `name` is
 * copied. It is unique in the graph. Parameters are called "<name>.weight", "<name>.bias",
 * "<name>.running_mean" and "<name>.running_var", as in PyTorch.
 *
 * The graph keeps the first failure (shape, duplicate name, memory), and every later builder
 * returns -1. So the caller builds without checks and asks weir_graph_check once.
 */

/** Adds the input: one image of this shape. A graph has one. */
weir_value_t weir_graph_input(struct weir_graph *graph, struct weir_shape shape);

/** Settings of a convolution. */
struct weir_conv_params {
    int32_t k; /**< Output channels. */
    int32_t kernel_h, kernel_w, stride, pad_h, pad_w;
    bool has_bias;
    /** The channels are cut into so many equal groups, and each group is convolved alone. Divides
     *  channels and k; 0 = 1; as many as channels = depthwise. Weights: k × channels/groups × h ×
     *  w. */
    int32_t groups;
    int32_t dilation; /**< Pixels from one kernel tap to the next; 0 = 1. */
};

/** Settings of a pool. */
struct weir_pool_params {
    int32_t kernel, stride, pad;
    /** true: a last window that is partly outside counts if it begins inside, or in the padding
     *  before the image. false: it is left out. */
    bool is_ceil;
    /** Average pool. true: divide by the number of real pixels. false: padded pixels count too, as
     *  PyTorch does by default. */
    bool is_pad_excluded;
};

/** Convolution (cross-correlation, as everywhere in deep learning). */
weir_value_t weir_graph_conv(struct weir_graph *graph, const char *name, weir_value_t x,
                             const struct weir_conv_params *params);
/** Batch normalisation over N, H, W per channel (Ioffe and Szegedy, ICML 2015). eps is 1e-5;
 *  running statistics have momentum 0.1. */
weir_value_t weir_graph_batch_norm(struct weir_graph *graph, const char *name, weir_value_t x);
/** The same with another eps, 0 < eps < 1. eps is added to the variance. */
weir_value_t weir_graph_batch_norm_eps(struct weir_graph *graph, const char *name, weir_value_t x,
                                       double eps);
/** The layer that makes x, a convolution, begins with weights that are `factor` times what they were, and with this bias: so that
 *  outputs begin near a known value. 0 < factor <= 1. */
void weir_graph_set_initial(struct weir_graph *graph, weir_value_t x, float factor, float bias);
/** max(x, 0). */
weir_value_t weir_graph_relu(struct weir_graph *graph, const char *name, weir_value_t x);
/** min(max(x, 0), 6). The gradient passes where 0 < x < 6. */
weir_value_t weir_graph_relu6(struct weir_graph *graph, const char *name, weir_value_t x);
/** x if x > 0, else slope * x. One learned slope per channel, initially 0.25 (He et al., ICCV
 *  2015). */
weir_value_t weir_graph_prelu(struct weir_graph *graph, const char *name, weir_value_t x);
/** Largest element of each window. */
weir_value_t weir_graph_max_pool(struct weir_graph *graph, const char *name, weir_value_t x,
                                 const struct weir_pool_params *params);
/** Mean of each window. */
weir_value_t weir_graph_avg_pool(struct weir_graph *graph, const char *name, weir_value_t x,
                                 const struct weir_pool_params *params);
/** Mean over H and W: C×1×1. */
weir_value_t weir_graph_global_pool(struct weir_graph *graph, const char *name, weir_value_t x);
/** Fully connected layer with k outputs. An image is flattened in C, H, W order. */
weir_value_t weir_graph_linear(struct weir_graph *graph, const char *name, weir_value_t x,
                               int32_t k, bool has_bias);
/** a + b, of equal shapes. */
weir_value_t weir_graph_add(struct weir_graph *graph, const char *name, weir_value_t a,
                            weir_value_t b);
/** Concatenation along C of at most 16 values of equal height and width. `xs` is borrowed. */
weir_value_t weir_graph_concat(struct weir_graph *graph, const char *name, const weir_value_t *xs,
                               int32_t n_xs);
/** Inverted dropout, in training only. The mask is a pure function of (seed, step, layer, image,
 *  element). */
weir_value_t weir_graph_dropout(struct weir_graph *graph, const char *name, weir_value_t x,
                                float rate);
/** x / |x| of each image. */
weir_value_t weir_graph_l2_normalise(struct weir_graph *graph, const char *name, weir_value_t x);
/** An image as one vector in C, H, W order, of at most 2^20 elements. */
weir_value_t weir_graph_flatten(struct weir_graph *graph, const char *name, weir_value_t x);
/** factor * x. */
weir_value_t weir_graph_scale(struct weir_graph *graph, const char *name, weir_value_t x,
                              float factor);
/** Each image to mean 0 and variance 1 over C, H, W (Ba, Kiros and Hinton, arXiv 1607.06450,
 *  without gain and bias). eps is 1e-5. It has no parameters. */
weir_value_t weir_graph_layer_norm(struct weir_graph *graph, const char *name, weir_value_t x);

/** Ends the graph with a loss: mean softmax cross-entropy of logits against integer labels. */
void weir_graph_softmax_loss(struct weir_graph *graph, const char *name, weir_value_t logits);
/**
 * Ends the graph with a loss: additive angular margin (ArcFace, Deng et al., CVPR 2019).
 *
 * The logits are scale * cos(theta + margin * [class is the label]), where theta is the angle
 * between the L2-normalised embedding and the class's L2-normalised row of "<name>.weight"
 * [n_classes × C]. Softmax cross-entropy follows. Where theta + margin > pi,
 * cos(theta) - margin * sin(margin) takes the logit's place.
 *
 * The net's output is the normalised embedding. The graph adds a layer "<name>.embedding" for it,
 * unless l2_normalise made `embedding`. An image counts as correct by its cosines without margin.
 */
void weir_graph_margin_loss(struct weir_graph *graph, const char *name, weir_value_t embedding,
                            int32_t n_classes, float scale, float margin);

/**
 * Ends the graph with a loss: is something in this square of the picture, and where.
 *
 * The vector x has n_values numbers of each square, C / n_values squares: first the scores of all, as logits, then the other
 * numbers in any order. It is compared with the targets of the image (weir_net_targets), as many numbers; a NaN there leaves its
 * number out. Scores: the penalty-reduced focal loss (alpha 2, beta 4) of CenterNet (Zhou et al., arXiv 1904.07850), where the target is 1 in
 * the middle of a thing and less beside it. The others: smooth L1, times scale. The loss of an image is the sum.
 *
 * Labels: 0, or -1 to leave the image out. An image counts as correct if all scores with the target 1 are above 0, and none with 0.
 */
void weir_graph_detect_loss(struct weir_graph *graph, const char *name, weir_value_t x,
                            int32_t n_values, float scale);

/** @return WEIR_OK, or the first failure of a builder with its sentence. */
weir_status weir_graph_check(const struct weir_graph *graph,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Shape of the net's output at inference: logits or the embedding, per image. */
struct weir_shape weir_graph_output_shape(const struct weir_graph *graph);
struct weir_shape weir_graph_input_shape(const struct weir_graph *graph);
/** Does the graph end in a margin loss, so that its output is an embedding? */
bool weir_graph_is_embedding(const struct weir_graph *graph);
/** Does it end in a detect loss, so that it learns from weir_net_targets? */
bool weir_graph_is_detector(const struct weir_graph *graph);
/** Classes of the loss: columns of the logits, or rows of the margin's weights. */
int32_t weir_graph_n_classes(const struct weir_graph *graph);
/** Trainable parameters. */
int64_t weir_graph_n_parameters(const struct weir_graph *graph);
/** Multiply-adds of convolutions and linears in the forward pass of one image. */
int64_t weir_graph_n_macs(const struct weir_graph *graph);
/** The same of a training step. Weight gradients cost as many again, and so do input gradients,
 *  except where no layer before has parameters. */
int64_t weir_graph_n_step_macs(const struct weir_graph *graph);

/* ---- net --------------------------------------------------------------------------------- */

/** Type of activations and their gradients; see "Types" above. */
enum weir_precision {
    WEIR_PRECISION_F32,
    WEIR_PRECISION_BF16,
    WEIR_PRECISION_TF32, /**< f32 in memory; GPUs round factors of products to 10 bits of fraction. */
    WEIR_PRECISION_F16   /**< IEEE half, on GPUs; gradients are scaled, see weir_loss_scale. */
};

/** "f32", "bf16", "tf32", "fp16". Static. */
const char *weir_precision_text(enum weir_precision precision);
/** @return INVALID, naming the words there are. */
weir_status weir_precision_parse(const char *text, enum weir_precision *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Algorithm of 3×3 convolutions with stride 1 in f32.
 *
 *   AUTO      Winograd for the shapes where it is faster, on processors with AVX-512; else direct.
 *   DIRECT    Sums of products. The error is about 3e-7 of a result's size.
 *   WINOGRAD  Winograd's minimal filtering wherever it is possible. It needs a quarter of the
 *             multiplications. The error is about 1e-6 of a result's size.
 */
enum weir_convolution { WEIR_CONVOLUTION_AUTO, WEIR_CONVOLUTION_DIRECT, WEIR_CONVOLUTION_WINOGRAD };

/** "auto", "direct", "winograd". @return INVALID, naming the words there are. */
weir_status weir_convolution_parse(const char *text, enum weir_convolution *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** A back-end: a table of kernels (backend/op.h). "reference" is slow and obvious, and every other
 *  back-end is tested against it. */
struct weir_backend;
extern const struct weir_backend weir_reference_backend;
extern const struct weir_backend weir_onednn_backend;
extern const struct weir_backend weir_cuda_backend; /**< NVIDIA GPUs. */

/** The back-end of this name ("reference", "onednn", "cuda"); NULL if there is none. */
const struct weir_backend *weir_backend_find(const char *name);
/** Do its tensors lie on a GPU? NULL is onednn. */
bool weir_backend_is_on_gpu(const struct weir_backend *backend);

#define WEIR_NET_ROW_TILES_MAX 16

/** What a graph is planned for. 0 of a field is its default. On a GPU the batch is computed whole:
 *  n_threads, n_slices, n_row_tiles and n_gradient_parts mean nothing. */
struct weir_net_config {
    int32_t batch;     /**< Images, 1 to 65536. */
    int32_t n_threads; /**< Threads, the caller's included; 0 = one per CPU this process may use. */
    /** Image slices of a batch; 0 = min(batch, 16). The bits of the result depend on it. */
    int32_t n_slices;
    /** Inference: each image's rows are cut into so many row tiles, which threads compute at the
     *  same time. This is how several threads share one image. At most WEIR_NET_ROW_TILES_MAX; 0
     *  is 1. The bits of the result depend on it. */
    int32_t n_row_tiles;
    /** Training: gradients of convolutions and linears are made of so many parts of the batch, each
     *  part alone, and added in order. With as many parts as another training has workers, the sum
     *  has the bits of that training's all-reduce. Divides the batch; 0 = 1. More than 1 costs the
     *  memory of the largest such gradient per thread. */
    int32_t n_gradient_parts;
    bool is_training; /**< false: no gradients; batch norm uses the running statistics. */
    /** Training: keep every value that backward reads. false: backward makes cheap values (batch
     *  norms, rectifiers, additions) again, and its copy of a convolution's weights takes the place
     *  of forward's. This halves the activations of a residual net. The bits are the same. */
    bool keeps_all;
    uint64_t seed; /**< Of dropout. */
    /** Softmax loss in training: the label's target is 1 - s + s / n_classes, that of every other
     *  class s / n_classes (Szegedy et al., CVPR 2016, section 7; PyTorch's CrossEntropyLoss). In
     *  [0, 1). weir_net_forward measures the loss without it. */
    double label_smoothing;
    /** Training: the net takes weir_net_step_and_update instead of weir_net_step. It updates the
     *  parameters of a convolution or linear as soon as it has made their gradients, during
     *  backward. No caller sees the gradients, so alloc_gradients must be NULL. The bits are those
     *  of a step followed by an update. */
    bool updates_in_backward;
    /** Position of the net's first image in the batch of all workers. A dropout mask depends on the
     *  position, so workers that share a batch drop what one worker would. */
    uint32_t first_image;
    /** bf16 with oneDNN needs a processor with AVX-512 and its bfloat16 instructions. */
    enum weir_precision precision;
    /** Training in fp16: the loss scale of the first step, 0 is 65536; and after how many good steps it
     *  doubles, 0 is 2000 (see weir_loss_scale). */
    float loss_scale;
    int32_t loss_scale_steps;
    /** For oneDNN in f32; everything else is direct. The bits of the result depend on it. */
    enum weir_convolution convolution;
    const struct weir_backend *backend; /**< NULL = oneDNN. */
    /** With cuda: which of the GPUs that this process may use (CUDA_VISIBLE_DEVICES), modulo their
     *  number. */
    int32_t gpu;
    /** With cuda: the most memory that the net may take there; 0: what the agent has given the job
     *  ($WEIR_DEVICE_MEMORY, bytes), else all there is. */
    size_t gpu_memory_bytes;
    /**
     * Allocates the gradient slab (shared or registered memory of comm); NULL = the net's own
     * memory. It is called once, in weir_net_create, with alloc_context. It returns zeroed memory,
     * aligned to 64 bytes, that outlives the net; or NULL if there is none.
     */
    void *(*alloc_gradients)(void *context, size_t size_bytes);
    /** The same for the weights, running statistics included. Others may write them between
     *  steps. */
    void *(*alloc_weights)(void *context, size_t size_bytes);
    void *alloc_context;
};

struct weir_net;

/**
 * Plans the graph and takes all memory and threads that the net will need. Weights are zero until
 * weir_net_init_weights or the caller writes them.
 *
 * @param graph   Borrowed until the call returns.
 * @param config  Copied; the back-end and the memory it gave must outlive the net.
 * @param out     The caller owns the net. Written only on success.
 * @return INVALID: a broken graph (the layer is named), an output that is an image, training
 *             without a loss, a field of config out of range.
 *         UNSUPPORTED: cuda without a GPU or its libraries (named); updates_in_backward on a GPU;
 *             training with a detect loss on one;
 *             tf32 or fp16 without one; label_smoothing with a loss other than softmax; n_row_tiles in training or
 *             with the reference; bf16 on a processor without it, or with a layer that has no fast
 *             kernel for it; WEIR_CONVOLUTION_WINOGRAD with bf16, with the reference, or on a
 *             processor without AVX-512.
 *         LIMIT: a layer is too large for this batch.
 *         NOMEM: also if alloc_gradients or alloc_weights returned NULL.
 * Cost: milliseconds (the first net of a process 30 more), and weir_net_memory_bytes.
 */
weir_status weir_net_create(const struct weir_graph *graph, const struct weir_net_config *config,
                            struct weir_net **out, struct weir_error *err) WEIR_MUST_CHECK;
/** Stops the net's threads and frees its memory. NULL is accepted. */
void weir_net_destroy(struct weir_net *net);

/**
 * Writes initial weights: He-normal for convolutions and linears (He et al., ICCV 2015, in the form
 * of PyTorch's ResNet), ones and zeros for norms. They are a pure function of (seed, parameter
 * name). The back-end's copies are refreshed.
 */
void weir_net_init_weights(struct weir_net *net, uint64_t seed);

/** The batch's input, N×C×H×W f32. The caller asks for it and fills it before a step. The net owns
 *  it. On a GPU a step without a new call computes with the last batch, which is there already. */
float *weir_net_input(struct weir_net *net);
/** N labels in [0, n_classes). A label of -1 leaves the image out of loss and gradients. */
int32_t *weir_net_labels(struct weir_net *net);
/** N×C targets of a detect loss, which the caller fills before a step, as the labels; NULL: the net has another loss. */
float *weir_net_targets(struct weir_net *net);
/** N×C output of the last forward or step: logits or embeddings. The net owns it. */
const float *weir_net_output(const struct weir_net *net);
int32_t weir_net_batch(const struct weir_net *net);
/** Memory the net has taken: slabs and scratch, without the back-end's copies of weights. */
size_t weir_net_memory_bytes(const struct weir_net *net);

/** What a step or a forward pass measured. */
struct weir_step_result {
    double loss;       /**< Mean over the labelled images; 0 if there is none. NaN stays NaN. */
    int32_t n_correct; /**< Images whose largest logit is their label's. */
    int32_t n_labelled;
};

/** Fills weir_net_input and weir_net_labels with the next batch. @return false: it has none yet. It must
 *  not call the net otherwise. */
typedef bool (*weir_net_fill_fn)(void *context);

/**
 * On a GPU, weir_net_step calls fn from now on, in the caller's thread, when the step is queued and
 * before it waits for it: so the next batch is filled and copied to the GPU while the step computes. The
 * next step takes it, unless weir_net_input was called since. NULL: nothing is called. A net without a
 * GPU never calls it. Call it between steps.
 */
void weir_net_set_fill_ahead(struct weir_net *net, weir_net_fill_fn fn, void *context);

/**
 * A gradient bucket is complete: elements [first_elem, first_elem + n_elems) of the gradient slab.
 * Start reducing it now.
 *
 * The net calls it once per bucket during backward, in the order of the slab, which is backward
 * order. Threads: one of the net's threads at a time. It must not block.
 */
typedef void (*weir_net_bucket_fn)(void *context, size_t first_elem, size_t n_elems);

/**
 * Forward and backward of one batch. It leaves gradients of the mean loss over the labelled images
 * in the gradient slab and updates the running statistics. It allocates nothing.
 *
 * @param step       Number of the step; dropout depends on it.
 * @param on_bucket  Called for each complete bucket; NULL: for none. A GPU's come when the step is
 *                   done.
 * @param out        May be NULL: on a GPU the call then returns when the step is queued
 *                   (weir_net_wait).
 * @return INVALID: a label is out of range, the net is not for training, or it updates in backward;
 *             nothing has changed then.
 *         What a weir_net_fetch_fn returned: see weir_net_set_pending_weights.
 *         INTERNAL: a kernel failed; gradients are undefined, and on_bucket may have been called.
 */
weir_status weir_net_step(struct weir_net *net, uint64_t step, weir_net_bucket_fn on_bucket,
                          void *bucket_context, struct weir_step_result *out) WEIR_MUST_CHECK;

/**
 * Gradients of elements [first_elem, first_elem + n_elems) of the weight slab. That of first_elem +
 * i is scale * values[i], rounded once. (With one image, a row of a linear's gradient is the input
 * scaled by one element of dy.)
 */
struct weir_gradients {
    const float *values;
    float scale;
    size_t first_elem, n_elems;
};

/** Writes new values for the weights that these are the gradients of. `gradients` is borrowed. */
typedef void (*weir_net_apply_fn)(void *context, const struct weir_gradients *gradients);

/**
 * A step and the update of the weights in one, for a net with updates_in_backward.
 *
 * The net's threads call `apply` for ranges that together are the trainable part of the slab.
 * Ranges may be cut anywhere and may leave out the gaps between parameters. Several threads call it
 * at the same time. A range comes when its gradients are complete and no task reads the old weights
 * any more; most come while backward still runs. What apply computes for an element must depend on
 * that element and its gradient alone. The back-end's copies are refreshed.
 *
 * The loss is known before backward begins. If it is not a finite number, apply is not called,
 * weights stay as they were, and the result tells. Gradients that are not finite although the loss
 * is go to apply like others.
 *
 * @return As weir_net_step; INVALID if the net was planned without updates_in_backward. After
 *         INTERNAL the weights are undefined.
 */
weir_status weir_net_step_and_update(struct weir_net *net, uint64_t step, weir_net_apply_fn apply,
                                     void *apply_context,
                                     struct weir_step_result *out) WEIR_MUST_CHECK;

/**
 * Forward pass of the first n images in inference form: running statistics, no dropout.
 *
 * @param n       0 to the batch. The cost is that of n rounded up to whole slices.
 * @param result  NULL: labels are not read.
 * @return INVALID: n or a label is out of range, or a result is wanted of a graph without a loss.
 *         Others as weir_net_step.
 */
weir_status weir_net_forward(struct weir_net *net, int32_t n,
                             struct weir_step_result *result) WEIR_MUST_CHECK;

/** Queues weir_net_forward without a result. The output is there after weir_net_wait. Without a GPU it
 *  is there at once. */
weir_status weir_net_begin_forward(struct weir_net *net, int32_t n) WEIR_MUST_CHECK;

/** Returns when all that was queued on a GPU is done; without one, at once. @return INTERNAL: it has
 *  failed, and the net is not to be used any more. */
weir_status weir_net_wait(struct weir_net *net) WEIR_MUST_CHECK;

/** Are the weights, gradients and optimiser's state that were fetched from a GPU the newest? To be asked
 *  before they are saved. Without a GPU they are. @return INTERNAL: the GPU has failed, and they may be old. */
weir_status weir_net_check_copies(struct weir_net *net, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The loss scale of a training in fp16. Gradients below 2^-24 would be 0 in fp16: so the loss's gradient
 * is multiplied by `scale`, a power of two, and the weights' gradients are divided by it again (Micikevicius
 * et al., ICLR 2018). An update whose gradients are not all finite is left out, and the scale halves;
 * after weir_net_config.loss_scale_steps good updates in a row it doubles. These are the rules of
 * PyTorch's GradScaler, but that the scale stays within 2^-24 and 2^40.
 *
 * weir_optimizer_update_net keeps the rule. On the GPU it decides and updates without the processor.
 * Whoever updates weights by other means looks for gradients that are not finite by himself.
 */
struct weir_loss_scale {
    float scale;
    uint32_t n_good;    /**< Updates since the scale changed. */
    uint64_t n_skipped; /**< Updates that were left out. */
};

/** Waits for what is queued, and tells the loss scale of the next step. A net that does not train in
 *  fp16 has {1, 0, 0}. */
struct weir_loss_scale weir_net_loss_scale(struct weir_net *net);
/** Goes on with a saved one. It does nothing to a net that does not train in fp16. Call it between steps.
 *  @return INVALID: the scale is not a number > 0. */
weir_status weir_net_set_loss_scale(struct weir_net *net,
                                    const struct weir_loss_scale *scale) WEIR_MUST_CHECK;

/** Sets config.first_image for the steps from now on: for a batch that is computed in several runs.
 *  Call it between steps. */
void weir_net_set_first_image(struct weir_net *net, uint32_t first_image);

/**
 * Sets the number that the steps from now on divide gradients by: n, the labelled images of all
 * workers and runs. The gradients of all then only have to be added up. 0, the default: the net's
 * own labelled images. Results report the net's own mean loss either way. Call it between steps.
 */
void weir_net_set_n_labelled(struct weir_net *net, int64_t n);

/** Sets the size of gradient buckets: a bucket is closed when it holds at least so many bytes.
 *  Default 1 MiB. Call it between steps. */
void weir_net_set_bucket_bytes(struct weir_net *net, size_t bucket_bytes);

/* ---- parameters -------------------------------------------------------------------------- */

/** One parameter tensor, or one running statistic. */
struct weir_param {
    const char *name; /**< "conv1.weight". The net owns it. */
    int32_t dims[4];
    int32_t n_dims;
    size_t first_elem; /**< Position in the weight slab, and in the gradient slab if trainable. */
    size_t n_elems;
    bool is_trainable; /**< false: a running statistic. These lie behind all trainable ones. */
    bool is_decayed;   /**< Weight decay applies: weights of convolutions and linears, no biases and
                            no norms. */
};

/**
 * All parameters in slab order: the trainable ones from the last layer to the first, then the
 * running statistics. The net owns the array.
 *
 * The order and positions are the same for every net of a graph, whatever its back-end, batch or
 * purpose. So a weight slab can be copied from one net to another. Each parameter starts at a
 * multiple of 16 elements. The gaps are zero and stay zero under every optimiser.
 */
const struct weir_param *weir_net_params(const struct weir_net *net, size_t *out_n);
/** The weight slab, f32. Write it between steps, then call weir_net_weights_changed. The net owns
 *  it. out_n_elems may be NULL. On a GPU it is a copy: ask for it again before reading or writing,
 *  as it is fetched then; running statistics are there after each step that had a result. */
float *weir_net_weights(struct weir_net *net, size_t *out_n_elems);
/** The gradient slab, f32. NULL and 0 elements if the net is not for training or updates in
 *  backward. The net owns it. out_n_elems may be NULL. On a GPU it is a copy, which the call
 *  fetches: ask again after each step. */
float *weir_net_gradients(struct weir_net *net, size_t *out_n_elems);
/** Elements of the trainable part of the weight slab. */
size_t weir_net_n_trainable_elems(const struct weir_net *net);
/** Refreshes the back-end's copies after the caller has written weights, with the net's threads.
 *  Without it the next step or forward mixes old and new weights. */
void weir_net_weights_changed(struct weir_net *net);

/** The same if running statistics alone were written, as the last step or weir_net_weights gave them. */
void weir_net_statistics_changed(struct weir_net *net);

/** Writes new values for weights [first_elem, first_elem + n_elems) from the gradients there. */
typedef void (*weir_net_update_fn)(void *context, size_t first_elem, size_t n_elems);

/**
 * Calls fn for ranges that together are the trainable part of the slab. A range may be cut inside a
 * parameter. All of the net's threads call fn at the same time. If fn writes weights, the caller
 * calls weir_net_weights_changed afterwards. Call it between steps.
 */
void weir_net_run_ranges(struct weir_net *net, weir_net_update_fn fn, void *context);

/** weir_net_run_ranges, then weir_net_weights_changed. */
void weir_net_update(struct weir_net *net, weir_net_update_fn fn, void *context);

/** Fetches one layer's pending weights: writes weights [first_elem, first_elem + n_elems). It may
 *  block until they are there. */
typedef weir_status (*weir_net_fetch_fn)(void *context, size_t first_elem, size_t n_elems);

/**
 * Makes all weights pending: new ones are on their way, and fn fetches them layer by layer.
 *
 * The next step fetches each layer's weights just before its forward pass reads them, and refreshes
 * the back-end's copies of them. Layers at the front compute while weights of layers at the back
 * are still on their way. weir_net_forward fetches all weights first. Until all are fetched, the
 * slab holds some old and some new weights. Weights that were pending before and not fetched are
 * forgotten. Call it between steps, for a net for training.
 *
 * @param fn       Called once for each layer that has trainable parameters, by the net's threads,
 *                 for several layers at the same time. If it fails, the step returns its status,
 *                 and it is undefined which layers are new.
 * @param context  Borrowed until all weights are fetched.
 */
void weir_net_set_pending_weights(struct weir_net *net, weir_net_fetch_fn fn, void *context);

/** Fetches all weights that are still pending, with all of the net's threads, and returns when the
 *  slab is whole. It returns at once if none is pending. @return What fn returned. */
weir_status weir_net_wait_weights(struct weir_net *net) WEIR_MUST_CHECK;

#endif
