#include "model.h"

#include "model_private.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 30)

weir_status read_name(struct reader *reader, const struct weir_protobuf *bytes, const char **out,
                      struct weir_error *err)
{
    size_t len = weir_protobuf_len(bytes);
    if (len > ONNX_NAME_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a name of %zu bytes: %d are the most", len,
                              ONNX_NAME_MAX);
    }
    if (len > 0 && memchr(bytes->at, '\0', len) != NULL) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "a name holds a zero byte");
    }
    *out = len > 0 ? weir_arena_memdup(&reader->model->arena, bytes->at, len) : "";
    return WEIR_OK;
}

weir_status count_fields(struct weir_protobuf bytes, uint32_t number, size_t *out,
                         struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    size_t n = 0;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        n += field.number == number && field.type == WEIR_PROTOBUF_BYTES;
    }
    *out = n;
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* ---- values --------------------------------------------------------------------------------- */

static weir_status read_dim(struct reader *reader, struct weir_protobuf bytes,
                            struct onnx_value *value, struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    if (value->rank == WEIR_TENSOR_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "more than %d dimensions",
                              WEIR_TENSOR_RANK_MAX);
    }
    int32_t i = value->rank++;
    value->dims[i] = -1;
    value->symbols[i] = "";
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == DIM_VALUE && field.type == WEIR_PROTOBUF_VARINT) {
            value->dims[i] = (int64_t)field.value > 0 ? (int64_t)field.value : -1;
        } else if (field.number == DIM_SYMBOL && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_name(reader, &field.bytes, &value->symbols[i], err));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status read_shape(struct reader *reader, struct weir_protobuf bytes,
                              struct onnx_value *value, struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    value->has_shape = true;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == SHAPE_DIM && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_dim(reader, field.bytes, value, err));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status read_tensor_type(struct reader *reader, struct weir_protobuf bytes,
                                    struct onnx_value *value, struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == TENSOR_TYPE_DTYPE && field.type == WEIR_PROTOBUF_VARINT) {
            value->dtype = weir_dtype_of((int64_t)field.value);
        } else if (field.number == TENSOR_TYPE_SHAPE && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_shape(reader, field.bytes, value, err));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* A type that is no tensor leaves the dtype at NONE. */
static weir_status read_type(struct reader *reader, struct weir_protobuf bytes,
                             struct onnx_value *value, struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == TYPE_TENSOR && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_tensor_type(reader, field.bytes, value, err));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

weir_status read_value(struct reader *reader, struct weir_protobuf bytes, struct onnx_value *value,
                       struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    value->name = "";
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == VALUE_NAME && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_name(reader, &field.bytes, &value->name, err));
        } else if (field.number == VALUE_TYPE && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_type(reader, field.bytes, value, err));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* ---- graphs --------------------------------------------------------------------------------- */

static weir_status make_room(struct reader *reader, struct weir_protobuf bytes,
                             struct onnx_graph *graph, struct weir_error *err)
{
    struct weir_arena *arena = &reader->model->arena;
    size_t n_nodes, n_initializers, n_inputs, n_outputs;
    WEIR_TRY(count_fields(bytes, GRAPH_NODE, &n_nodes, err));
    WEIR_TRY(count_fields(bytes, GRAPH_INITIALIZER, &n_initializers, err));
    WEIR_TRY(count_fields(bytes, GRAPH_INPUT, &n_inputs, err));
    WEIR_TRY(count_fields(bytes, GRAPH_OUTPUT, &n_outputs, err));
    reader->n_nodes += n_nodes;
    if (reader->n_nodes > ONNX_NODES_MAX ||
        n_initializers + n_inputs + n_outputs > ONNX_NODES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d nodes or values", ONNX_NODES_MAX);
    }
    graph->nodes = WEIR_ARENA_ARRAY(arena, n_nodes, struct onnx_node);
    graph->initializers = WEIR_ARENA_ARRAY(arena, n_initializers, struct onnx_initializer);
    graph->inputs = WEIR_ARENA_ARRAY(arena, n_inputs, struct onnx_value);
    graph->outputs = WEIR_ARENA_ARRAY(arena, n_outputs, struct onnx_value);
    return weir_arena_check(arena, "an ONNX model", err);
}

static weir_status take_graph_field(struct reader *reader, const struct weir_protobuf_field *field,
                                    struct onnx_graph *graph, struct weir_error *err)
{
    switch (field->number) {
    case GRAPH_NODE:
        return read_node(reader, field->bytes, &graph->nodes[graph->n_nodes++], err);
    case GRAPH_NAME:
        return read_name(reader, &field->bytes, &graph->name, err);
    case GRAPH_INITIALIZER: {
        struct onnx_initializer *to = &graph->initializers[graph->n_initializers++];
        return read_tensor(reader, field->bytes, &to->name, &to->tensor, err);
    }
    case GRAPH_INPUT:
        return read_value(reader, field->bytes, &graph->inputs[graph->n_inputs++], err);
    case GRAPH_OUTPUT:
        return read_value(reader, field->bytes, &graph->outputs[graph->n_outputs++], err);
    case GRAPH_SPARSE_INITIALIZER:
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "sparse initializers are not supported");
    default:
        return weir_arena_check(&reader->model->arena, "an ONNX model", err);
    }
}

weir_status read_graph(struct reader *reader, struct weir_protobuf bytes, struct onnx_graph *graph,
                       struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    if (++reader->depth > ONNX_NESTING_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "graphs are nested more than %d deep",
                              ONNX_NESTING_MAX);
    }
    graph->name = "";
    WEIR_TRY(make_room(reader, bytes, graph, err));
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(take_graph_field(reader, &field, graph, err));
        }
    }
    reader->depth--;
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* ---- the file ------------------------------------------------------------------------------- */

static weir_status read_opset(struct reader *reader, struct weir_protobuf bytes,
                              struct weir_error *err)
{
    struct onnx_model *model = reader->model;
    struct weir_protobuf_field field;
    weir_status status;
    if (model->n_opsets == ONNX_OPSETS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more than %d sets of operators",
                              ONNX_OPSETS_MAX);
    }
    struct onnx_opset *opset = &model->opsets[model->n_opsets++];
    opset->domain = "";
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == OPSET_DOMAIN && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_name(reader, &field.bytes, &opset->domain, err));
        } else if (field.number == OPSET_VERSION && field.type == WEIR_PROTOBUF_VARINT) {
            opset->version = (int64_t)field.value;
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status read_model(struct reader *reader, struct weir_protobuf bytes,
                              struct weir_error *err)
{
    struct onnx_model *model = reader->model;
    struct weir_protobuf_field field;
    weir_status status;
    bool has_graph = false;
    model->producer = "";
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.number == MODEL_IR_VERSION && field.type == WEIR_PROTOBUF_VARINT) {
            model->ir_version = (int64_t)field.value;
        } else if (field.number == MODEL_PRODUCER && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_name(reader, &field.bytes, &model->producer, err));
        } else if (field.number == MODEL_OPSET && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(read_opset(reader, field.bytes, err));
        } else if (field.number == MODEL_FUNCTIONS) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "it defines operators of its own (functions): inline them, as "
                                  "onnx.inliner does");
        } else if (field.number == MODEL_GRAPH && field.type == WEIR_PROTOBUF_BYTES) {
            if (has_graph) {
                return weir_error_set(err, WEIR_ERR_CORRUPT, "it has two graphs");
            }
            has_graph = true;
            WEIR_TRY(read_graph(reader, field.bytes, &model->graph, err));
        }
    }
    if (status != WEIR_ERR_END) {
        return status;
    }
    return has_graph && model->n_opsets > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "it has no %s: this is no ONNX model",
                                has_graph ? "set of operators" : "graph");
}

weir_status onnx_model_read(const void *bytes, size_t n, struct onnx_model **out,
                            struct weir_error *err)
{
    const uint8_t *at = bytes;
    struct onnx_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    weir_arena_init(&model->arena, ARENA_BYTES);
    struct reader reader = {.model = model};
    weir_status status = read_model(&reader, (struct weir_protobuf){at, at + n}, err);
    if (status != WEIR_OK) {
        onnx_model_free(model);
        return status;
    }
    *out = model;
    return WEIR_OK;
}

void onnx_model_free(struct onnx_model *model)
{
    if (model != NULL) {
        for (size_t i = 0; i < model->n_tensors; i++) {
            weir_tensor_release(model->tensors[i]);
        }
        free(model->tensors);
        weir_arena_fini(&model->arena);
        free(model);
    }
}
