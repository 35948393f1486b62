/**
 * safetensors: reads and writes the file format of weights (github.com/huggingface/safetensors).
 *
 * A file is a u64 (little-endian) header length, a JSON header, and the tensors' bytes:
 *
 *     {"__metadata__":{"key":"text"…},
 *      "conv1.weight":{"dtype":"F32","shape":[32,1,5,5],"data_offsets":[0,3200]}…}
 *
 * Offsets count from the end of the header. Data is little-endian and row-major. This library
 * writes F32 tensors in the order given. It pads the header with spaces so that data begins at a
 * multiple of 8.
 *
 * A file that is read is treated as hostile. Before open returns, it checks the header's length and
 * form, every shape against its bytes, and that the tensors cover the data exactly: no overlap, no
 * hole, no bytes behind. Anything else is CORRUPT, and the message says what and where. The header
 * and an index stay in memory (at most WEIR_SAFETENSORS_HEADER_MAX bytes of JSON). Tensors are read
 * on request, so a reader never holds the whole file.
 *
 * Threads: one thread at a time uses a reader.
 */
#ifndef WEIR_NN_SAFETENSORS_H
#define WEIR_NN_SAFETENSORS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Largest JSON header read or written. It is enough for more than a hundred thousand tensors;
 *  known networks have a few thousand. */
#define WEIR_SAFETENSORS_HEADER_MAX ((size_t)16 << 20)
#define WEIR_SAFETENSORS_DIMS_MAX   8

/* ---- writing ----------------------------------------------------------------------------- */

/** A tensor to write. All pointers are borrowed. n_dims 0 is a scalar. */
struct weir_safetensors_tensor {
    const char *name; /**< UTF-8, not empty, not "__metadata__". */
    int64_t dims[WEIR_SAFETENSORS_DIMS_MAX];
    int32_t n_dims;
    const float *data; /**< Product of dims elements. */
};

/** One entry of the metadata: UTF-8 text; keys are unique. */
struct weir_safetensors_text {
    const char *key;
    const char *text;
};

/**
 * Makes the bytes of a file. The caller frees *out_bytes.
 *
 * @return INVALID (a name given twice or not UTF-8, a negative dimension), LIMIT (header), NOMEM.
 */
weir_status weir_safetensors_encode(const struct weir_safetensors_tensor *tensors, size_t n_tensors,
                                    const struct weir_safetensors_text *metadata, size_t n_metadata,
                                    void **out_bytes, size_t *out_len,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Writes a file atomically and durably: a crash leaves the old file or the new one.
 *
 * @return As weir_safetensors_encode and weir_file_write_atomic.
 *
 * Cost: one copy of the tensors in memory.
 */
weir_status weir_safetensors_write(const char *path, const struct weir_safetensors_tensor *tensors,
                                   size_t n_tensors, const struct weir_safetensors_text *metadata,
                                   size_t n_metadata, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- reading ----------------------------------------------------------------------------- */

/** A tensor of a file. The reader owns it. */
struct weir_safetensors_entry {
    const char *name;
    const char *dtype; /**< "F32", "F16", "BF16" … as in the file. Static. */
    int64_t dims[WEIR_SAFETENSORS_DIMS_MAX];
    int32_t n_dims;
    uint64_t n_elems;
    uint64_t first_byte, n_bytes; /**< Position in the file. */
};

struct weir_safetensors;

/**
 * Opens a file and checks its header. The caller owns *out.
 *
 * @return NOT_FOUND, DENIED, IO, INVALID (not a regular file); CORRUPT (see above); LIMIT (header
 *         over its maximum); UNSUPPORTED (an unknown dtype, or more than 8 dimensions); NOMEM.
 */
weir_status weir_safetensors_open(const char *path, struct weir_safetensors **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The same for a file in memory, borrowed until close. `what` names it in errors. */
weir_status weir_safetensors_open_memory(const void *bytes, size_t len, const char *what,
                                         struct weir_safetensors **out,
                                         struct weir_error *err) WEIR_MUST_CHECK;
void weir_safetensors_close(struct weir_safetensors *file);

/** All tensors, in the order of their bytes. */
const struct weir_safetensors_entry *weir_safetensors_entries(const struct weir_safetensors *file,
                                                              size_t *out_n);

/** The tensor of this name, or NULL. */
const struct weir_safetensors_entry *weir_safetensors_find(const struct weir_safetensors *file,
                                                           const char *name);

/** A text of the metadata; NULL if there is none. The reader owns it. */
const char *weir_safetensors_metadata(const struct weir_safetensors *file, const char *key);

/**
 * Reads a whole tensor as f32. F16 and BF16 are converted exactly.
 *
 * @param n_elems  Elements that `out` has room for; the tensor must have as many.
 * @return NOT_FOUND (no such tensor), INVALID (n_elems differs), UNSUPPORTED (another dtype,
 *         named), IO, CORRUPT (the file has become shorter). `out` is undefined on error.
 */
weir_status weir_safetensors_read_f32(const struct weir_safetensors *file, const char *name,
                                      float *out, size_t n_elems,
                                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
