/** Reading a model: what its files share. */
#ifndef WEIR_ONNX_MODEL_PRIVATE_H
#define WEIR_ONNX_MODEL_PRIVATE_H

#include "base/protobuf.h"
#include "model.h"

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

weir_status read_graph(struct reader *reader, struct weir_protobuf bytes, struct onnx_graph *out,
                       struct weir_error *err) WEIR_MUST_CHECK;

weir_status read_node(struct reader *reader, struct weir_protobuf bytes, struct onnx_node *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** How often a field comes in a message, at most: for arrays. */
weir_status count_fields(struct weir_protobuf bytes, uint32_t number, size_t *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
