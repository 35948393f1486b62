/**
 * Model: an ONNX file as it lies on disk (onnx.proto of ONNX 1.16 and later), read into structs.
 *
 * Everything is copied, into the model's arena or into tensors. Nothing is interpreted but tensors: an
 * initializer is a tensor with its elements.
 *
 * Everything read is bounded: nodes, names, nesting and elements. What is wrong is CORRUPT or
 * INVALID with a sentence that says where.
 */
#ifndef WEIR_ONNX_MODEL_H
#define WEIR_ONNX_MODEL_H

#include "base/arena.h"
#include "tensor/tensor.h"

#define ONNX_NODES_MAX   100000
#define ONNX_NESTING_MAX 8 /* Graphs in attributes of graphs. */
#define ONNX_OPSETS_MAX  16
#define ONNX_NAME_MAX    1024
#define ONNX_NAME_SHOWN  80 /* Of a name, in messages. */

/** A text. */
struct onnx_bytes {
    const char *at;
    size_t len;
};

enum onnx_attribute_type {
    ONNX_ATTRIBUTE_NONE,
    ONNX_ATTRIBUTE_FLOAT,
    ONNX_ATTRIBUTE_INT,
    ONNX_ATTRIBUTE_STRING,
    ONNX_ATTRIBUTE_TENSOR,
    ONNX_ATTRIBUTE_GRAPH,
    ONNX_ATTRIBUTE_FLOATS,
    ONNX_ATTRIBUTE_INTS,
    ONNX_ATTRIBUTE_STRINGS,
    ONNX_ATTRIBUTE_TENSORS,
    ONNX_ATTRIBUTE_GRAPHS,
};

struct onnx_attribute {
    const char *name;
    enum onnx_attribute_type type;
    float f;
    int64_t i;
    struct onnx_bytes s;
    struct weir_tensor *tensor;
    struct onnx_graph *graph;
    size_t n; /**< Of floats, ints or strings. */
    const float *floats;
    const int64_t *ints;
    const struct onnx_bytes *strings;
};

struct onnx_node {
    const char *name;       /**< "" if it has none. */
    const char *type;       /**< "Conv" */
    const char *domain;     /**< "": ONNX's own. */
    const char **in, **out; /**< Names of values; "": left out. */
    size_t n_in, n_out;
    struct onnx_attribute *attributes;
    size_t n_attributes;
};

/** A named value with its type, as far as the file tells. */
struct onnx_value {
    const char *name;
    enum weir_dtype dtype; /**< NONE: no tensor (a sequence, an optional, a map). */
    bool has_shape;
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX];        /**< -1: free. */
    const char *symbols[WEIR_TENSOR_RANK_MAX]; /**< Of free dimensions: "batch"; or "". */
};

struct onnx_initializer {
    const char *name;
    struct weir_tensor *tensor;
};

struct onnx_graph {
    const char *name;
    struct onnx_node *nodes;
    size_t n_nodes;
    struct onnx_initializer *initializers;
    size_t n_initializers;
    struct onnx_value *inputs, *outputs;
    size_t n_inputs, n_outputs;
};

struct onnx_opset {
    const char *domain;
    int64_t version;
};

struct onnx_model {
    struct weir_arena arena;
    int64_t ir_version;
    const char *producer;
    struct onnx_opset opsets[ONNX_OPSETS_MAX];
    size_t n_opsets;
    struct onnx_graph graph;
    struct weir_tensor **tensors; /**< All there are, to be released with the model. */
    size_t n_tensors, tensors_cap;
};

/** Read a model from bytes, which are not needed any more then. UNSUPPORTED: external data, sparse
 *  tensors, functions of its own. */
weir_status onnx_model_read(const void *bytes, size_t n, struct onnx_model **out,
                            struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void onnx_model_free(struct onnx_model *model);

/** Read one TensorProto, as the files input_0.pb of ONNX's test cases are. The caller releases it. */
weir_status onnx_tensor_read(const void *bytes, size_t n, struct weir_tensor **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
