/**
 * Writes the messages of onnx.proto into a buffer: nodes and initializers of a graph. Failures stay
 * in the buffer's status.
 *
 *     size_t node = onnx_begin_node(buf, "Conv", "conv1");
 *     onnx_put_input(buf, "input");
 *     onnx_put_output(buf, "conv1:out");
 *     onnx_put_ints(buf, "strides", (int64_t[]){2, 2}, 2);
 *     onnx_end(buf, node);
 */
#ifndef WEIR_NN_ONNX_WRITE_H
#define WEIR_NN_ONNX_WRITE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONNX_FLOAT 1 /* TensorProto.DataType */
#define ONNX_INT64 7

size_t onnx_begin_node(struct weir_buf *buf, const char *type, const char *name);
void onnx_put_input(struct weir_buf *buf, const char *name);
void onnx_put_output(struct weir_buf *buf, const char *name);
void onnx_put_int(struct weir_buf *buf, const char *name, int64_t value);
void onnx_put_float(struct weir_buf *buf, const char *name, float value);
void onnx_put_ints(struct weir_buf *buf, const char *name, const int64_t *values, size_t n);
void onnx_end(struct weir_buf *buf, size_t begun);

/** An initializer of the graph; `bytes` are its elements, little endian. */
void onnx_put_initializer(struct weir_buf *buf, const char *name, int type, const int64_t *dims,
                          size_t rank, const void *data, size_t bytes);

/** The graph's input (is_input) or output: f32, with a free first dimension called "batch". */
void onnx_put_port(struct weir_buf *buf, bool is_input, const char *name, const int64_t *dims,
                   size_t rank);

/** The model around a graph's bytes: IR version 7, opset 13. */
void onnx_put_model(struct weir_buf *buf, const struct weir_buf *graph);
/** A text that the model carries. */
void onnx_put_property(struct weir_buf *buf, const char *key, const char *text);

#endif
