/**
 * The inside of a graph: a list of layers. Layer i makes value i. Every layer comes after those it
 * reads, because builders accept only values that exist.
 */
#ifndef WEIR_NN_GRAPH_H
#define WEIR_NN_GRAPH_H

#include "nn/nn.h"

enum layer_kind {
    LAYER_INPUT,
    LAYER_CONV,
    LAYER_BATCH_NORM,
    LAYER_RELU,
    LAYER_RELU6,
    LAYER_PRELU,
    LAYER_MAX_POOL,
    LAYER_AVG_POOL,
    LAYER_GLOBAL_POOL,
    LAYER_LINEAR,
    LAYER_ADD,
    LAYER_CONCAT,
    LAYER_DROPOUT,
    LAYER_L2_NORMALISE,
    LAYER_FLATTEN,
    LAYER_SCALE,
    LAYER_LAYER_NORM,
    LAYER_SOFTMAX_LOSS,
    LAYER_MARGIN_LOSS,
    LAYER_DETECT_LOSS,
    LAYER_CAST, /**< Between f32 and bf16. The planner adds it; no graph has it. */
    LAYER_KIND_COUNT
};

/** Values that a concat may read; also the size of the tables in op.h. */
#define LAYER_MAX_INPUTS     16
#define LAYER_NAME_MAX_BYTES 96
#define BATCH_NORM_EPS       1e-5

struct graph_layer {
    enum layer_kind kind;
    char name[LAYER_NAME_MAX_BYTES];
    int32_t n_in;
    weir_value_t in[LAYER_MAX_INPUTS];
    bool is_trained;              /**< It has parameters, or a value that it reads is trained. */
    struct weir_shape out;        /**< Of a loss: its input's. */
    struct weir_conv_params conv; /**< CONV (groups, dilation > 0), LINEAR (k, has_bias). */
    struct weir_pool_params pool;
    float initial_factor, initial_bias; /**< CONV: of its initial weights; factor 0: 1. */
    double eps;                         /**< BATCH_NORM. */
    float rate;                         /**< DROPOUT. */
    float scale;                        /**< MARGIN_LOSS, DETECT_LOSS, SCALE. */
    float margin;                       /**< MARGIN_LOSS. */
    int32_t n_classes;                  /**< MARGIN_LOSS. */
    int32_t n_values;                   /**< DETECT_LOSS: numbers that a square has. */
};

struct weir_graph {
    struct graph_layer *layers;
    int32_t n_layers;
    size_t capacity;
    weir_value_t input, loss; /**< -1 while there is none. */
    struct weir_error first;  /**< First failure of a builder; WEIR_OK if there is none. */
};

/** "conv", "batch_norm" …: for error sentences. Static. */
const char *layer_kind_text(enum layer_kind kind);

/** Elements of one image of this shape. */
int64_t shape_elems(struct weir_shape shape);

/** Is it a loss, which ends a graph? */
bool layer_is_loss(enum layer_kind kind);

/** The value the net puts out: the loss's input, or the last value if there is no loss. */
weir_value_t graph_output(const struct weir_graph *graph);

#endif
