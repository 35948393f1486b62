/** Tensors as the Open Inference Protocol has them, in JSON or in Triton's binary form. */
#ifndef WEIR_SERVE_PROTOCOL_OIP_TENSOR_H
#define WEIR_SERVE_PROTOCOL_OIP_TENSOR_H

#include "base/buf.h"
#include "base/json_scan.h"
#include "serve/signature.h"

/** The raw bytes behind the JSON, given out to inputs in their order. */
struct oip_raw {
    const char *at;
    size_t left;
};

/** What one element of "inputs" said. */
struct oip_tensor {
    const char *name;
    struct weir_tensor *tensor; /**< A reference. */
};

/**
 * Reads {"name", "shape", "datatype", "parameters", "data"}, members in any order.
 * @param raw  NULL: there are no binary tensors.
 * @return INVALID, naming the tensor; LIMIT, NOMEM.
 */
weir_status oip_tensor_read(struct weir_json_scan *scan, struct weir_arena *arena,
                            struct oip_raw *raw, struct oip_tensor *out) WEIR_MUST_CHECK;

/** Elements from their bytes: little endian; of strings, a length of 4 bytes before each. The
 *  tensor's strings are copied. INVALID: the bytes are not just as many. */
weir_status oip_raw_read(const char *name, enum weir_dtype dtype, int32_t rank, const int64_t *dims,
                         const char *bytes, size_t n_bytes, struct weir_tensor **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Bytes that oip_raw_write appends. */
size_t oip_raw_bytes(const struct weir_tensor *tensor);
void oip_raw_write(struct weir_buf *out, const struct weir_tensor *tensor);

#endif
