/**
 * Tests: a detector, an ONNX file of convolutions that finds squares of 16 pixels of its input that are bright.
 */
#ifndef WEIR_FIND_DETECTOR_FIXTURE_H
#define WEIR_FIND_DETECTOR_FIXTURE_H

#include "base/buf.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define FIXTURE_KERNEL 16
#define FIXTURE_STRIDE 4

static inline void fixture_put_tensor(struct weir_buf *buf, const char *name, const float *values,
                                      const uint64_t *dims, size_t rank, size_t n)
{
    size_t at = weir_protobuf_begin(buf, 5);
    for (size_t i = 0; i < rank; i++) {
        weir_protobuf_put_varint(buf, 1, dims[i]);
    }
    weir_protobuf_put_varint(buf, 2, 1); /* FLOAT */
    weir_protobuf_put_text(buf, 8, name);
    weir_protobuf_put_bytes(buf, 9, values, n * sizeof *values);
    weir_protobuf_end(buf, at);
}

static inline void fixture_put_ints(struct weir_buf *buf, const char *name, const uint64_t *values,
                                    size_t n)
{
    size_t at = weir_protobuf_begin(buf, 5);
    weir_protobuf_put_text(buf, 1, name);
    for (size_t i = 0; i < n; i++) {
        weir_protobuf_put_varint(buf, 8, values[i]);
    }
    weir_protobuf_put_varint(buf, 20, 7); /* INTS */
    weir_protobuf_end(buf, at);
}

/* n channels: weight and bias of each are the same for all its inputs. */
static inline void fixture_put_conv(struct weir_buf *buf, const char *out, uint64_t n, float weight,
                                    const float *biases)
{
    static float weights[10 * 3 * FIXTURE_KERNEL * FIXTURE_KERNEL];
    char w[16], b[16];
    size_t n_weights = (size_t)n * 3 * FIXTURE_KERNEL * FIXTURE_KERNEL;
    const uint64_t side[2] = {FIXTURE_KERNEL, FIXTURE_KERNEL},
                   strides[2] = {FIXTURE_STRIDE, FIXTURE_STRIDE};
    const uint64_t pads[4] = {6, 6, 6, 6};
    (void)snprintf(w, sizeof w, "%s_w", out);
    (void)snprintf(b, sizeof b, "%s_b", out);
    for (size_t i = 0; i < n_weights; i++) {
        weights[i] = weight;
    }
    size_t node = weir_protobuf_begin(buf, 1);
    weir_protobuf_put_text(buf, 1, "x");
    weir_protobuf_put_text(buf, 1, w);
    weir_protobuf_put_text(buf, 1, b);
    weir_protobuf_put_text(buf, 2, out);
    weir_protobuf_put_text(buf, 4, "Conv");
    fixture_put_ints(buf, "kernel_shape", side, 2);
    fixture_put_ints(buf, "strides", strides, 2);
    fixture_put_ints(buf, "pads", pads, 4);
    weir_protobuf_end(buf, node);
    fixture_put_tensor(buf, w, weights, (const uint64_t[]){n, 3, FIXTURE_KERNEL, FIXTURE_KERNEL}, 4,
                       n_weights);
    fixture_put_tensor(buf, b, biases, (const uint64_t[]){n}, 1, (size_t)n);
}

/* A ValueInfo of floats, N × channels × H × W. */
static inline void fixture_put_port(struct weir_buf *buf, uint32_t field, const char *name,
                                    uint64_t channels)
{
    static const char *const free_dims[4] = {"N", NULL, "H", "W"};
    size_t value = weir_protobuf_begin(buf, field);
    weir_protobuf_put_text(buf, 1, name);
    size_t type = weir_protobuf_begin(buf, 2), tensor = weir_protobuf_begin(buf, 1);
    weir_protobuf_put_varint(buf, 1, 1); /* FLOAT */
    size_t shape = weir_protobuf_begin(buf, 2);
    for (size_t i = 0; i < 4; i++) {
        char text[32];
        size_t dim = weir_protobuf_begin(buf, 1);
        (void)snprintf(text, sizeof text, "%s%s", name, free_dims[i] != NULL ? free_dims[i] : "");
        if (free_dims[i] == NULL) {
            weir_protobuf_put_varint(buf, 1, channels);
        } else {
            weir_protobuf_put_text(buf, 2, field == 11 ? free_dims[i] : text);
        }
        weir_protobuf_end(buf, dim);
    }
    weir_protobuf_end(buf, shape);
    weir_protobuf_end(buf, tensor);
    weir_protobuf_end(buf, type);
    weir_protobuf_end(buf, value);
}

/* Outputs of the kind "centernet": the mean brightness around each cell, and boxes of 16 pixels. */
static inline void detector_fixture_write(const char *path)
{
    static const float zeros[10];
    const float sizes[2] = {logf(4), logf(4)};
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    weir_protobuf_put_varint(&buf, 1, 7); /* ir_version */
    size_t graph = weir_protobuf_begin(&buf, 7);
    fixture_put_conv(&buf, "heat", 1, 1.0f / (3 * 255 * FIXTURE_KERNEL * FIXTURE_KERNEL), zeros);
    fixture_put_conv(&buf, "scale", 2, 0, sizes);
    fixture_put_conv(&buf, "offset", 2, 0, zeros);
    fixture_put_conv(&buf, "lm", 10, 0, zeros);
    weir_protobuf_put_text(&buf, 2, "g");
    fixture_put_port(&buf, 11, "x", 3);
    fixture_put_port(&buf, 12, "heat", 1);
    fixture_put_port(&buf, 12, "scale", 2);
    fixture_put_port(&buf, 12, "offset", 2);
    fixture_put_port(&buf, 12, "lm", 10);
    weir_protobuf_end(&buf, graph);
    size_t opset = weir_protobuf_begin(&buf, 8);
    weir_protobuf_put_varint(&buf, 2, 13);
    weir_protobuf_end(&buf, opset);
    ck_assert_int_eq(buf.status, WEIR_OK);
    ck_assert_int_eq(weir_file_write_atomic(path, buf.data, buf.len, 0644, NULL), WEIR_OK);
    weir_buf_fini(&buf);
}

#endif
