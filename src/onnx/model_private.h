/** Reading a model: what its files share. */
#ifndef WEIR_ONNX_MODEL_PRIVATE_H
#define WEIR_ONNX_MODEL_PRIVATE_H

#include "base/protobuf.h"
#include "model.h"

/* Fields of ModelProto, OperatorSetIdProto, GraphProto, ValueInfoProto, TypeProto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_FUNCTIONS = 25,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13,
    GRAPH_SPARSE_INITIALIZER = 15,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE_DTYPE = 1,
    TENSOR_TYPE_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_SYMBOL = 2,
};

struct reader {
    struct onnx_model *model;
    int depth; /* of graphs in attributes */
    size_t n_nodes;
};

/** A copy with a NUL. INVALID if it holds one itself, or is too long. */
weir_status read_name(struct reader *reader, const struct weir_protobuf *bytes, const char **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** A TensorProto and its name (NULL: not wanted). The model keeps the reference. */
weir_status read_tensor(struct reader *reader, struct weir_protobuf bytes, const char **out_name,
                        struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** A ValueInfoProto. */
weir_status read_value(struct reader *reader, struct weir_protobuf bytes, struct onnx_value *value,
                       struct weir_error *err) WEIR_MUST_CHECK;

weir_status read_graph(struct reader *reader, struct weir_protobuf bytes, struct onnx_graph *out,
                       struct weir_error *err) WEIR_MUST_CHECK;

weir_status read_node(struct reader *reader, struct weir_protobuf bytes, struct onnx_node *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** How often a field comes in a message, at most: for arrays. */
weir_status count_fields(struct weir_protobuf bytes, uint32_t number, size_t *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
