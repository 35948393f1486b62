/**
 * Tensor: elements of one type in row-major order, with up to WEIR_TENSOR_RANK_MAX dimensions.
 *
 *     struct weir_tensor *x;
 *     WEIR_TRY(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, (int64_t[]){3, 4}, &x, err));
 *     float *at = x->data;
 *     weir_tensor_release(x);
 *
 * Types are those of ONNX, with its names and numbers (onnx.proto, TensorProto.DataType). In memory
 * every element has whole bytes: one of two or four bits lies in the low bits of a byte, a string is
 * a struct weir_tensor_string. Floats narrower than f32 are their bits.
 *
 * Threads: the elements belong to one thread at a time. References are counted atomically.
 */
#ifndef WEIR_TENSOR_TENSOR_H
#define WEIR_TENSOR_TENSOR_H

#include "base/macros.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_TENSOR_RANK_MAX 8

enum weir_dtype {
    WEIR_DTYPE_NONE,

#define X(name, number, bytes, bits, class) WEIR_DTYPE_##name = (number),
#include "tensor/dtype.def"
#undef X
    WEIR_DTYPE_END
};

enum weir_dtype_class {
    WEIR_DTYPE_IS_FLOAT,
    WEIR_DTYPE_IS_SIGNED,
    WEIR_DTYPE_IS_UNSIGNED,
    WEIR_DTYPE_IS_BOOL,
    WEIR_DTYPE_IS_COMPLEX,
    WEIR_DTYPE_IS_STRING,
};

/** A string element. The tensor that owns it frees it. */
struct weir_tensor_string {
    char *bytes; /**< Not ended by NUL; NULL if it is empty. */
    size_t len;
};

struct weir_tensor {
    enum weir_dtype dtype;
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    size_t n_elems;            /**< Product of dims; 1 for a scalar. */
    void *data;                /**< n_elems elements, aligned to 64 bytes. */
    struct weir_tensor *owner; /**< Whose memory data is, for a view; else NULL. */
    _Atomic int n_references;
};

/** "FLOAT", "INT64" …; "NONE" for what is no type. */
const char *weir_dtype_name(enum weir_dtype dtype);
/** The type with this number; NONE if there is none. */
enum weir_dtype weir_dtype_of(int64_t number);
enum weir_dtype_class weir_dtype_class(enum weir_dtype dtype);
/** Bytes of an element in memory; of a string those of its struct. */
size_t weir_dtype_bytes(enum weir_dtype dtype);
/** Bits of an element in a file or message: 4 where two share a byte. 0: strings. */
size_t weir_dtype_bits(enum weir_dtype dtype);

/** Product of dims. LIMIT if it is too large for memory of elem_bytes each, INVALID if a dimension
 *  is negative. */
weir_status weir_tensor_count(int32_t rank, const int64_t *dims, size_t elem_bytes, size_t *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** A tensor whose elements are zero (strings: empty). INVALID, LIMIT, NOMEM. */
weir_status weir_tensor_create(enum weir_dtype dtype, int32_t rank, const int64_t *dims,
                               struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** The same elements under other dimensions, as many. It refers to `tensor`, and may be written
 *  where that may. INVALID if the count differs. */
weir_status weir_tensor_view(struct weir_tensor *tensor, int32_t rank, const int64_t *dims,
                             struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** One more reference; returns the tensor. */
struct weir_tensor *weir_tensor_retain(struct weir_tensor *tensor);
/** One reference less; the last frees it. NULL is accepted. */
void weir_tensor_release(struct weir_tensor *tensor);

/** Copies n elements, strings with their bytes, to elements that hold nothing. NOMEM. */
weir_status weir_elems_copy(enum weir_dtype dtype, void *to, const void *from,
                            size_t n) WEIR_MUST_CHECK;

/** "2x3x4"; "scalar". */
#define WEIR_TENSOR_TEXT_BYTES 168
const char *weir_tensor_dims_text(int32_t rank, const int64_t *dims,
                                  char out[WEIR_TENSOR_TEXT_BYTES]);

#endif
