/** One layer, or the loss, of a model file: which types there are, which settings each has, how
 *  they are read, and how they become a layer of a graph. For model_file.c. */
#ifndef WEIR_NN_MODEL_LAYER_H
#define WEIR_NN_MODEL_LAYER_H

#include "base/json.h"
#include "nn/nn.h"

/* Short enough that a graph can add ".embedding" (graph.h allows 95 bytes). */
#define MODEL_NAME_MAX_BYTES 80
/* Most values that weir_graph_concat reads. */
#define MODEL_FROM_MAX 16
/** settings.k that stands for the number of classes. */
#define MODEL_K_CLASSES 0

struct model_settings {
    int64_t k, stride;
    int64_t kernel[2], pad[2]; /**< h, w */
    int64_t groups, dilation, values;
    bool bias, ceil, count_pad;
    double rate, scale, margin, factor, eps, initial, initial_bias;
};

struct model_layer_type;

struct model_layer {
    const struct model_layer_type *type;
    char name[MODEL_NAME_MAX_BYTES + 1];
    int32_t from[MODEL_FROM_MAX]; /**< 0 is the input, i + 1 layer i. */
    int32_t n_from;
    struct model_settings settings;
};

/** Position in a file, for messages: "lenet.yaml: $.layers[3]". */
struct model_place {
    const char *what, *path;
    struct weir_error *err;
};

/** @return INVALID: "what: path.key: expected …, got …". key "": the position itself. got NULL: "is
 *  missing". */
weir_status model_expected(const struct model_place *place, const char *key, const char *expected,
                           const json_t *got);

/** Reads type, name and settings of a layer, or of the loss. The caller reads `from`. A layer
 *  without a name is called after its type and i_layer ("relu_3"), the loss after its type. */
weir_status model_layer_read(const json_t *object, bool is_loss, size_t i_layer,
                             const struct model_place *place, struct model_layer *out);

/** How many values it reads. */
void model_layer_arity(const struct model_layer *layer, int32_t *out_min, int32_t *out_max);

/** "conv", "softmax" … Static. */
const char *model_layer_type_name(const struct model_layer *layer);

/** Does it have a setting that is the number of classes? */
bool model_layer_needs_classes(const struct model_layer *layer);

/** Adds the layer to the graph, which keeps failures. @return The value it makes; -1 for a loss or
 *  a failure. */
weir_value_t model_layer_add(const struct model_layer *layer, struct weir_graph *graph,
                             const weir_value_t *xs, int32_t n_classes);

#endif
