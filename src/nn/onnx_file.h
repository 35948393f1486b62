/**
 * ONNX file: a trained net for other programs, as an ONNX model (onnx.ai) of opset 13.
 *
 * The model has one input, "input" [batch, C, H, W], and one output, "output" [batch, K]: logits, or
 * the embedding of a net that ends in a margin loss. The batch is free. Every layer becomes the
 * operator of its definition, in inference form: dropout is left out, batch norms keep their running
 * statistics. Parameters keep their names.
 *
 *     struct weir_buf buf;
 *     weir_buf_init(&buf, WEIR_ONNX_FILE_MAX_BYTES);
 *     WEIR_TRY(weir_net_file_export_onnx(file, texts, n_texts, &buf, err));
 */
#ifndef WEIR_NN_ONNX_FILE_H
#define WEIR_NN_ONNX_FILE_H

#include "base/buf.h"
#include "nn/net_file.h"

/** Protocol buffers end at 2 GiB. */
#define WEIR_ONNX_FILE_MAX_BYTES (((size_t)1 << 31) - 1)

/** A text that the model carries (metadata_props). */
struct weir_onnx_file_text {
    const char *key, *text;
};

/**
 * Appends the model to `out`.
 *
 * @param texts  n_texts, borrowed.
 * @return As weir_net_file_create_net; LIMIT if `out` may not hold so much. `out` holds a part on
 *         error.
 * Cost: three times the weights in memory.
 */
weir_status weir_net_file_export_onnx(const struct weir_net_file *file,
                                      const struct weir_onnx_file_text *texts, size_t n_texts,
                                      struct weir_buf *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
