#include "onnx_write.h"

#include "base/protobuf.h"

/* Numbers of fields in onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_PROPERTY = 14,
    OPSET_VERSION = 2,
    PROPERTY_KEY = 1,
    PROPERTY_VALUE = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE_ELEM = 1,
    TENSOR_TYPE_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_NAME = 2,
};

enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 }; /* AttributeProto.AttributeType */

#define IR_VERSION 7
#define OPSET      13

size_t onnx_begin_node(struct weir_buf *buf, const char *type, const char *name)
{
    size_t begun = weir_protobuf_begin(buf, GRAPH_NODE);
    weir_protobuf_put_text(buf, NODE_NAME, name);
    weir_protobuf_put_text(buf, NODE_TYPE, type);
    return begun;
}

void onnx_put_input(struct weir_buf *buf, const char *name)
{
    weir_protobuf_put_text(buf, NODE_INPUT, name);
}

void onnx_put_output(struct weir_buf *buf, const char *name)
{
    weir_protobuf_put_text(buf, NODE_OUTPUT, name);
}

static size_t begin_attribute(struct weir_buf *buf, const char *name, int type)
{
    size_t begun = weir_protobuf_begin(buf, NODE_ATTRIBUTE);
    weir_protobuf_put_text(buf, ATTRIBUTE_NAME, name);
    weir_protobuf_put_varint(buf, ATTRIBUTE_TYPE, (uint64_t)type);
    return begun;
}

void onnx_put_int(struct weir_buf *buf, const char *name, int64_t value)
{
    size_t begun = begin_attribute(buf, name, TYPE_INT);
    weir_protobuf_put_varint(buf, ATTRIBUTE_INT, (uint64_t)value);
    weir_protobuf_end(buf, begun);
}

void onnx_put_float(struct weir_buf *buf, const char *name, float value)
{
    size_t begun = begin_attribute(buf, name, TYPE_FLOAT);
    weir_protobuf_put_float(buf, ATTRIBUTE_FLOAT, value);
    weir_protobuf_end(buf, begun);
}

void onnx_put_ints(struct weir_buf *buf, const char *name, const int64_t *values, size_t n)
{
    size_t begun = begin_attribute(buf, name, TYPE_INTS);
    for (size_t i = 0; i < n; i++) {
        weir_protobuf_put_varint(buf, ATTRIBUTE_INTS, (uint64_t)values[i]);
    }
    weir_protobuf_end(buf, begun);
}

void onnx_end(struct weir_buf *buf, size_t begun)
{
    weir_protobuf_end(buf, begun);
}

void onnx_put_initializer(struct weir_buf *buf, const char *name, int type, const int64_t *dims,
                          size_t rank, const void *data, size_t bytes)
{
    size_t begun = weir_protobuf_begin(buf, GRAPH_INITIALIZER);
    for (size_t i = 0; i < rank; i++) {
        weir_protobuf_put_varint(buf, TENSOR_DIMS, (uint64_t)dims[i]);
    }
    weir_protobuf_put_varint(buf, TENSOR_TYPE, (uint64_t)type);
    weir_protobuf_put_text(buf, TENSOR_NAME, name);
    weir_protobuf_put_bytes(buf, TENSOR_RAW, data, bytes);
    weir_protobuf_end(buf, begun);
}

void onnx_put_port(struct weir_buf *buf, bool is_input, const char *name, const int64_t *dims,
                   size_t rank)
{
    size_t port = weir_protobuf_begin(buf, is_input ? GRAPH_INPUT : GRAPH_OUTPUT);
    weir_protobuf_put_text(buf, VALUE_NAME, name);
    size_t type = weir_protobuf_begin(buf, VALUE_TYPE);
    size_t tensor = weir_protobuf_begin(buf, TYPE_TENSOR);
    weir_protobuf_put_varint(buf, TENSOR_TYPE_ELEM, ONNX_FLOAT);
    size_t shape = weir_protobuf_begin(buf, TENSOR_TYPE_SHAPE);
    for (size_t i = 0; i < rank; i++) {
        size_t dim = weir_protobuf_begin(buf, SHAPE_DIM);
        if (i == 0) {
            weir_protobuf_put_text(buf, DIM_NAME, "batch");
        } else {
            weir_protobuf_put_varint(buf, DIM_VALUE, (uint64_t)dims[i]);
        }
        weir_protobuf_end(buf, dim);
    }
    weir_protobuf_end(buf, shape);
    weir_protobuf_end(buf, tensor);
    weir_protobuf_end(buf, type);
    weir_protobuf_end(buf, port);
}

void onnx_put_model(struct weir_buf *buf, const struct weir_buf *graph)
{
    weir_protobuf_put_varint(buf, MODEL_IR_VERSION, IR_VERSION);
    weir_protobuf_put_text(buf, MODEL_PRODUCER, "weir");
    weir_protobuf_put_text(buf, MODEL_PRODUCER_VERSION, WEIR_VERSION);
    size_t opset = weir_protobuf_begin(buf, MODEL_OPSET);
    weir_protobuf_put_varint(buf, OPSET_VERSION, OPSET);
    weir_protobuf_end(buf, opset);
    size_t begun = weir_protobuf_begin(buf, MODEL_GRAPH);
    weir_protobuf_put_text(buf, GRAPH_NAME, "weir");
    (void)weir_buf_append(buf, graph->data, graph->len);
    weir_protobuf_end(buf, begun);
}

void onnx_put_property(struct weir_buf *buf, const char *key, const char *text)
{
    size_t begun = weir_protobuf_begin(buf, MODEL_PROPERTY);
    weir_protobuf_put_text(buf, PROPERTY_KEY, key);
    weir_protobuf_put_text(buf, PROPERTY_VALUE, text);
    weir_protobuf_end(buf, begun);
}
