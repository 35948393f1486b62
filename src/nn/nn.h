/**
 * nn: networks as graphs, planned once, then trained and run without allocating.
 *
 * Three nouns. A `weir_graph` is a list of layers over values (images N×C×H×W or vectors N×C); it
 * is built by C functions (below), by a zoo function (zoo.h) or from a declarative file
 * (model_file.h), and holds shapes only. A `weir_net` is a graph planned for a batch size, a
 * back-end and a number of threads: it owns three slabs — weights, weight gradients, activations
 * laid out by lifetime — and a static task graph that its own threads execute, image slice by image
 * slice. An `optimizer` (optimizer.h) turns gradients into new weights.
 *
 *     struct weir_graph *graph;  weir_zoo_build("lenet", &shape, 10, &graph, err);
 *     struct weir_net *net;      weir_net_create(graph, &(struct weir_net_config){.batch = 32,
 *                                    .n_threads = 2, .is_training = true}, &net, err);
 *     weir_net_init_weights(net, seed);
 *     for each batch: fill weir_net_input(net), weir_net_labels(net);
 *                     weir_net_step(net, step, NULL, NULL, &result);
 *                     weir_optimizer_update(...);
 *
 * Dimensions: N images of a batch, C channels, H rows, W columns, K output channels. Input, output,
 * parameters and their gradients are f32, plain NCHW / KCHW row-major; what a back-end keeps inside
 * is its own affair. Results are the same, bit for bit, for any number of threads: work is cut into
 * image slices fixed by the batch alone, and every sum is taken in slice order.
 *
 * With WEIR_PRECISION_BF16, activations and their gradients are kept as bfloat16 (f32 without its
 * lower 16 bits, rounded to nearest even) and convolutions and linears multiply bfloat16 copies of
 * the weights, with sums in f32. Parameters and their gradients, statistics of norms, losses and
 * what l2_normalise and layer_norm compute stay f32. A step moves half the memory and is about
 * twice as fast; a loss differs from f32's by some tenths of a percent.
 *
 * Threads: a graph or net is used by one thread at a time; the net's own threads never call back,
 * except weir_net_bucket_fn, weir_net_apply_fn, weir_net_update_fn and weir_net_fetch_fn. The
 * calling thread works too (n_threads counts it), and is left set to one OpenMP thread by the
 * oneDNN back-end. Errors: NOMEM, INVALID (shapes that do not fit: err names the layer).
 */
#ifndef WEIR_NN_NN_H
#define WEIR_NN_NN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- graph ------------------------------------------------------------------------------- */

struct weir_shape {
    int32_t c, h, w; /**< Per image; vectors have h = w = 1. */
};

/** A value of a graph (what a layer makes), by number. Negative: a builder call before failed. */
typedef int32_t weir_value_t;

struct weir_graph;

/** Empty graph. NULL only if memory is out. */
struct weir_graph *weir_graph_create(void);
void weir_graph_destroy(struct weir_graph *graph);

/**
 * Builders. Each adds one layer called `name` (unique; parameters are "<name>.weight",
 * "<name>.bias",
 * "<name>.running_mean", "<name>.running_var", as in PyTorch) and returns the value it makes. The
 * first failure (shape, duplicate name, memory) is kept in the graph and every later call returns
 * -1: build, then ask weir_graph_check once.
 */
weir_value_t weir_graph_input(struct weir_graph *graph, struct weir_shape shape);

struct weir_conv_params {
    int32_t k; /**< Output channels. */
    int32_t kernel_h, kernel_w, stride, pad_h, pad_w;
    bool has_bias;
    /** Channels in so many equal groups, each convolved by itself; divides channels and k; 0 = 1.
     * As many as there are channels: depthwise. Weights are k x channels / groups x h x w. */
    int32_t groups;
    int32_t dilation; /**< Cells from one of the kernel to the next; 0 = 1. */
};

struct weir_pool_params {
    int32_t kernel, stride, pad;
    /** A last window that is only partly inside counts too, if it begins inside (or in the padding
     *  before); false: it is left out. */
    bool is_ceil;
    /** Average pooling: divide by the cells of the picture only; false: by padded ones too, as
     *  PyTorch's default is. */
    bool is_pad_excluded;
};

weir_value_t weir_graph_conv(struct weir_graph *graph, const char *name, weir_value_t x,
                             const struct weir_conv_params *params);
/** Batch normalisation over N,H,W per channel; eps 1e-5, running statistics with momentum 0.1. */
weir_value_t weir_graph_batch_norm(struct weir_graph *graph, const char *name, weir_value_t x);
/** The same with another eps in (0, 1), which is added to the variance. */
weir_value_t weir_graph_batch_norm_eps(struct weir_graph *graph, const char *name, weir_value_t x,
                                       double eps);
weir_value_t weir_graph_relu(struct weir_graph *graph, const char *name, weir_value_t x);
/** min(max(x, 0), 6); the gradient passes strictly between. */
weir_value_t weir_graph_relu6(struct weir_graph *graph, const char *name, weir_value_t x);
/** One learned slope per channel, initial 0.25. */
weir_value_t weir_graph_prelu(struct weir_graph *graph, const char *name, weir_value_t x);
weir_value_t weir_graph_max_pool(struct weir_graph *graph, const char *name, weir_value_t x,
                                 const struct weir_pool_params *params);
weir_value_t weir_graph_avg_pool(struct weir_graph *graph, const char *name, weir_value_t x,
                                 const struct weir_pool_params *params);
weir_value_t weir_graph_global_pool(struct weir_graph *graph, const char *name, weir_value_t x);
/** Fully connected; an image is flattened in C,H,W order. */
weir_value_t weir_graph_linear(struct weir_graph *graph, const char *name, weir_value_t x,
                               int32_t k, bool has_bias);
weir_value_t weir_graph_add(struct weir_graph *graph, const char *name, weir_value_t a,
                            weir_value_t b);
/** Along C; at most 16 values of equal height and width. */
weir_value_t weir_graph_concat(struct weir_graph *graph, const char *name, const weir_value_t *xs,
                               int32_t n_xs);
/** Inverted dropout; the mask is a pure function of (seed, step, layer, image, element). */
weir_value_t weir_graph_dropout(struct weir_graph *graph, const char *name, weir_value_t x,
                                float rate);
weir_value_t weir_graph_l2_normalise(struct weir_graph *graph, const char *name, weir_value_t x);
/** An image as one vector, in C,H,W order; at most 2^20 elements. */
weir_value_t weir_graph_flatten(struct weir_graph *graph, const char *name, weir_value_t x);
/** factor * x. */
weir_value_t weir_graph_scale(struct weir_graph *graph, const char *name, weir_value_t x,
                              float factor);
/** Each image by itself to mean 0 and variance 1 over C,H,W (Ba, Kiros and Hinton, 2016, without
 *  gain and bias); eps 1e-5. No parameters. */
weir_value_t weir_graph_layer_norm(struct weir_graph *graph, const char *name, weir_value_t x);

/** Ends the graph: mean softmax cross-entropy of logits against integer labels. */
void weir_graph_softmax_loss(struct weir_graph *graph, const char *name, weir_value_t logits);
/**
 * Ends the graph: additive angular margin (ArcFace, Deng et al., CVPR 2019): logits
 * scale*cos(theta + margin*[class is the label]) of the L2-normalised embedding against
 * L2-normalised class weights "<name>.weight" [n_classes × C], then softmax cross-entropy.
 * The net's output is the normalised embedding (a layer "<name>.embedding" is added unless
 * `embedding` is already made by l2_normalise). Images count as correct by the cosine without the
 * margin. Where theta + margin > pi, cos(theta) - margin * sin(margin) takes its place.
 */
void weir_graph_margin_loss(struct weir_graph *graph, const char *name, weir_value_t embedding,
                            int32_t n_classes, float scale, float margin);

/** WEIR_OK, or the first failure of a builder with its sentence. */
weir_status weir_graph_check(const struct weir_graph *graph,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** What the net puts out at inference: logits or the embedding. Per image. */
struct weir_shape weir_graph_output_shape(const struct weir_graph *graph);
struct weir_shape weir_graph_input_shape(const struct weir_graph *graph);
bool weir_graph_is_embedding(const struct weir_graph *graph);
/** Classes the loss knows (columns of logits, or rows of the margin weights). */
int32_t weir_graph_n_classes(const struct weir_graph *graph);
/** Trainable parameters / multiply-adds of convolutions and linear layers for one image: of one
 * forward pass / of a training step, which are as many again for the gradients of weights, and for
 * those of inputs but where no parameter stands before the layer. */
int64_t weir_graph_n_parameters(const struct weir_graph *graph);
int64_t weir_graph_n_macs(const struct weir_graph *graph);
int64_t weir_graph_n_step_macs(const struct weir_graph *graph);

/* ---- net --------------------------------------------------------------------------------- */

/** What activations and their gradients are kept in; see the essay above. */
enum weir_precision { WEIR_PRECISION_F32, WEIR_PRECISION_BF16 };

/** "f32", "bf16". Static. */
const char *weir_precision_text(enum weir_precision precision);
/** @return INVALID naming the words there are. */
weir_status weir_precision_parse(const char *text, enum weir_precision *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * How 3x3 convolutions with a stride of 1 are computed in f32. Winograd's products are a quarter,
 * errors several times those of direct sums: 1e-6 of a result's size, where direct sums have 3e-7.
 * AUTO uses Winograd where it is faster by the shape, on processors with AVX-512; WINOGRAD wherever
 * it is possible.
 */
enum weir_convolution { WEIR_CONVOLUTION_AUTO, WEIR_CONVOLUTION_DIRECT, WEIR_CONVOLUTION_WINOGRAD };

/** "auto", "direct", "winograd". Static. */
const char *weir_convolution_text(enum weir_convolution convolution);
/** @return INVALID naming the words there are. */
weir_status weir_convolution_parse(const char *text, enum weir_convolution *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Back-ends: tables of kernels. "reference": slow and obvious, every other is tested against it.
 */
struct weir_backend;
extern const struct weir_backend weir_reference_backend;
extern const struct weir_backend weir_onednn_backend;

/** By name ("reference", "onednn"); NULL if there is none. */
const struct weir_backend *weir_backend_find(const char *name);

#define WEIR_NET_ROW_TILES_MAX 16

struct weir_net_config {
    int32_t batch;
    int32_t n_threads; /**< Own threads; 0 = one per CPU this process may use. */
    int32_t
        n_slices; /**< Image slices of a batch; 0 = min(batch, 16). Part of the result's bits. */
    /** Inference: pictures are cut into so many bands of rows, which threads compute at the same
     *  time: the way to use several for one picture. At most WEIR_NET_ROW_TILES_MAX; 0 = 1: whole
     *  pictures. Part of the result's bits. */
    int32_t n_row_tiles;
    /** Parts of a batch that a convolution's or a linear layer's gradients are made of: each part
     *  by itself, then added in order. With as many parts as another training has workers, the sum
     *  has the bits of that training's all-reduce. Divides the batch; 0 = 1. Costs the memory of
     *  the largest such gradient per thread if it is more than 1. */
    int32_t n_gradient_parts;
    bool is_training; /**< false: no gradients, batch norm from running statistics. */
    /** Training: keep every value that backward reads. false: those that cost one pass over memory
     *  to make (batch norms, rectifiers, joins) are made again in backward, which takes about half
     *  the memory of a residual net's activations; and backward's copies of a convolution's weights
     *  take the place of forward's, where a stage lies between. The bits are the same either way.
     */
    bool keeps_all;
    uint64_t seed; /**< Of dropout. */
    /** Softmax loss in training: a label counts as 1 - label_smoothing + label_smoothing / classes,
     *  every other class as label_smoothing / classes (Szegedy et al., CVPR 2016, section 7;
     * PyTorch's CrossEntropyLoss). [0, 1); weir_net_forward measures without it. */
    double label_smoothing;
    /** Training: the net takes weir_net_step_and_update instead of weir_net_step, and updates
     *  parameters of convolutions and linears where their gradients are made, while the backward
     *  pass goes on. Gradients of linears are then nowhere in memory whole, and nobody gets to see
     *  any: alloc_gradients is NULL. The bits are those of a step and an update after it. */
    bool updates_in_backward;
    /** Place of the net's first image in the batch of all workers: a dropout mask is that of the
     *  whole batch, however many workers share it. */
    uint32_t first_image;
    /** bf16 with oneDNN needs a processor with AVX-512 and its bfloat16 instructions. */
    enum weir_precision precision;
    /** Of oneDNN; the reference is direct, bf16 too. Part of the result's bits. */
    enum weir_convolution convolution;
    const struct weir_backend *backend; /**< NULL = oneDNN. */
    /**
     * Where the gradient slab comes from (shared or registered memory of `comm`); NULL = own
     * memory. Called once with the bytes wanted; gives 64-byte aligned zeroed memory that outlives
     * the net.
     */
    void *(*alloc_gradients)(void *context, size_t size_bytes);
    /** The same for the weights, running statistics included: others may write them between steps.
     */
    void *(*alloc_weights)(void *context, size_t size_bytes);
    void *alloc_context;
};

struct weir_net;

/**
 * Plan the graph and take all memory and threads it will need. The graph may be destroyed after.
 * Weights are zero until weir_net_init_weights or the caller writes them.
 * @return INVALID (a broken graph, named; an output that is an image; training without a loss;
 * batch, n_slices, n_threads or label_smoothing out of range), UNSUPPORTED (label_smoothing with
 * a loss that is no softmax; n_row_tiles in training or of the reference; bf16 on a processor without
 * it, or of a layer that has no fast kernel in it; WEIR_CONVOLUTION_WINOGRAD with bf16, the
 * reference, or a processor without AVX-512), LIMIT, NOMEM (also if alloc_gradients or
 * alloc_weights gave NULL). Cost: milliseconds (the first in a process 30 more), and the memory of
 * weir_net_memory_bytes.
 */
weir_status weir_net_create(const struct weir_graph *graph, const struct weir_net_config *config,
                            struct weir_net **out, struct weir_error *err) WEIR_MUST_CHECK;
void weir_net_destroy(struct weir_net *net);

/** He-normal convolutions and linears (PyTorch's ResNet rule), ones and zeros for norms; a pure
 *  function of (seed, parameter name). */
void weir_net_init_weights(struct weir_net *net, uint64_t seed);

/** Batch input, N×C×H×W f32, to be filled by the caller before a step. Owned by the net. */
float *weir_net_input(struct weir_net *net);
/** N labels in [0, n_classes). A label of -1 leaves the image out of loss and gradients. */
int32_t *weir_net_labels(struct weir_net *net);
/** N×C output of the last forward or step (logits or embeddings). Owned by the net. */
const float *weir_net_output(const struct weir_net *net);
int32_t weir_net_batch(const struct weir_net *net);
/** All memory the net has taken: slabs, scratch, weights' copies excepted. */
size_t weir_net_memory_bytes(const struct weir_net *net);

struct weir_step_result {
    double loss;       /**< Mean over the labelled images, 0 if there is none; NaN stays NaN. */
    int32_t n_correct; /**< Images whose largest logit is their label. */
    int32_t n_labelled;
};

/**
 * Called once per gradient range when it is complete, during backward, by one of the net's threads,
 * in the order of the slab (backward order): start reducing gradients[first, first + n_elems) now.
 * Must not block.
 */
typedef void (*weir_net_bucket_fn)(void *context, size_t first_elem, size_t n_elems);

/**
 * Forward and backward of one batch; gradients of the *mean* loss over labelled images are left in
 * the gradient slab. `step` numbers the step (dropout). ready may be NULL.
 * Running statistics are updated. Allocates nothing. @return WEIR_OK; INVALID if a label is out of
 * range or the net is not for training, or updates in backward (nothing is changed then); INTERNAL
 * if a kernel failed (gradients are undefined then, and ready may have been called).
 */
weir_status weir_net_step(struct weir_net *net, uint64_t step, weir_net_bucket_fn on_bucket,
                          void *bucket_context, struct weir_step_result *out) WEIR_MUST_CHECK;

/** Gradients of elements [first_elem, first_elem + n_elems): that of first_elem + i is
 *  scale * values[i], rounded once. (Of one image a row of a linear's is its input, scaled.) */
struct weir_gradients {
    const float *values;
    float scale;
    size_t first_elem, n_elems;
};

/** New values for the weights that these are the gradients of. */
typedef void (*weir_net_apply_fn)(void *context, const struct weir_gradients *gradients);

/**
 * weir_net_step and the update of the weights in one, of a net with updates_in_backward: `apply` is
 * called for ranges that together are the trainable part of the slab (which may be cut anywhere,
 * and leave out the gaps between parameters), by the net's threads at the same time, each range
 * when its gradients are complete and nobody reads the old weights any more; for most while the
 * backward pass still runs. Then does as weir_net_weights_changed. What it computes for an element
 * must depend on that element and its gradient alone.
 *
 * The loss is known before the backward pass begins: if it is not a finite number, apply is not
 * called, weights are left as they were, and the result tells. Gradients that are not finite
 * although the loss is go to apply like others.
 * @return As weir_net_step; INVALID too if the net was not planned with updates_in_backward.
 * After INTERNAL weights are undefined.
 */
weir_status weir_net_step_and_update(struct weir_net *net, uint64_t step, weir_net_apply_fn apply,
                                     void *apply_context,
                                     struct weir_step_result *out) WEIR_MUST_CHECK;

/**
 * Forward only, inference form (running statistics, no dropout), for the first n images (n <=
 * batch). `result` may be NULL; if not, labels are read. Images are computed in whole slices: the
 * cost is that of n rounded up. @return INVALID if n or a label is out of range, or a result is
 * wanted of a graph without a loss.
 */
weir_status weir_net_forward(struct weir_net *net, int32_t n,
                             struct weir_step_result *result) WEIR_MUST_CHECK;

/** Dropout of the steps from now on is that of images from this place on in the batch of all
 *  workers: for a batch that is computed in several runs. Between steps. */
void weir_net_set_first_image(struct weir_net *net, uint32_t first_image);

/** Gradients of the steps from now on are those of the sum of the losses over n, the labelled
 * images of all workers and runs, so that theirs only have to be added up; 0, as at first: over the
 * net's own, of the mean. Losses are told as ever. Between steps. */
void weir_net_set_n_labelled(struct weir_net *net, int64_t n);

/** Size the ready ranges: a range is closed when it holds at least this many bytes. Default 1 MiB.
 */
void weir_net_set_bucket_bytes(struct weir_net *net, size_t bucket_bytes);

/* ---- parameters -------------------------------------------------------------------------- */

struct weir_param {
    const char *name; /**< "conv1.weight". Owned by the net. */
    int32_t dims[4];
    int32_t n_dims;
    size_t first_elem; /**< Place in the weight slab, and in the gradient slab if trainable. */
    size_t n_elems;
    bool is_trainable; /**< false: running statistics (they lie behind all trainable ones). */
    bool is_decayed;   /**< Weight decay applies: weights of convolutions and linears, not norms or
                          biases. */
};

/**
 * All parameters, in slab order: the trainable ones from the last layer to the first, then the
 * running statistics. Equal for every net of a graph, whatever its back-end, batch or purpose, so
 * that a weight slab can be copied from one net to another. Each starts at a multiple of 16
 * elements; the gaps are zero and stay zero under any optimiser.
 */
const struct weir_param *weir_net_params(const struct weir_net *net, size_t *out_n);
/** The slabs: plain row-major f32. A net that is not for training, or updates in backward, has no
 *  gradients: NULL, 0 elements. Write weights between steps, then call weir_net_weights_changed.
 */
float *weir_net_weights(struct weir_net *net, size_t *out_n_elems);
float *weir_net_gradients(struct weir_net *net, size_t *out_n_elems);
/** Elements of the trainable part of the slab. */
size_t weir_net_n_trainable_elems(const struct weir_net *net);
/** Tell the back-end that weights were written, so that it renews its re-laid-out copies; uses the
 *  net's threads. Without it the next step or forward mixes old and new weights. */
void weir_net_weights_changed(struct weir_net *net);

/** New values for weights [first_elem, first_elem + n_elems), from the gradients there. */
typedef void (*weir_net_update_fn)(void *context, size_t first_elem, size_t n_elems);

/**
 * Calls fn for ranges that together are the trainable part of the slab (which may be cut inside a
 * parameter), by all of the net's threads at the same time. Whoever wrote weights calls
 * weir_net_weights_changed when all are written.
 */
void weir_net_run_ranges(struct weir_net *net, weir_net_update_fn fn, void *context);

/** weir_net_run_ranges, then weir_net_weights_changed. */
void weir_net_update(struct weir_net *net, weir_net_update_fn fn, void *context);

/** One layer's new weights are wanted: write weights [first_elem, first_elem + n_elems), as soon as
 *  they are there. May block. */
typedef weir_status (*weir_net_fetch_fn)(void *context, size_t first_elem, size_t n_elems);

/**
 * New weights are on their way, instead of written: the next step asks for each layer's just before
 * its forward pass reads them, and renews what the back-end keeps of them; while layers at the back
 * are still awaited those at the front compute. weir_net_forward asks for all first. Between steps;
 * of a net for training. Until all have been asked for, the slab holds some old and some new.
 * @param fn  Called once for each layer that has trainable parameters, by the net's threads, for
 * several layers at the same time. What it returns if not WEIR_OK, the step returns; which layers
 * are new is then undefined. `context` is borrowed until all have been asked for. What was expected
 * before and not asked for is forgotten.
 */
void weir_net_set_pending_weights(struct weir_net *net, weir_net_fetch_fn fn, void *context);

/** Ask for all layers that were not asked for yet, with all of the net's threads: the slab is whole
 *  again. At once if nothing is expected. @return What fn did. */
weir_status weir_net_wait_weights(struct weir_net *net) WEIR_MUST_CHECK;

#endif
