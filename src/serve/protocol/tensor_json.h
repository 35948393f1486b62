/**
 * Tensors in JSON: nested arrays of numbers, booleans or strings, read into elements and written of
 * them, without a tree.
 *
 *     struct tensor_fill fill;
 *     tensor_fill_init(&fill, WEIR_DTYPE_FLOAT, arena);
 *     status = tensor_fill_value(&fill, &scan);        [[1, 2], [3, 4]]  → 2x2
 *     status = tensor_fill_take(&fill, &tensor, err);
 *     tensor_fill_fini(&fill);
 *
 * Numbers are taken as elements of the given type: what does not fit into an integer type is
 * INVALID; null is NaN where there is one. Strings are elements of STRING, as they are or as
 * {"b64": "…"}. Arrays of one depth must all be as long.
 *
 * Memory: at most 16 bytes an element, and every element takes at least two bytes of the text.
 */
#ifndef WEIR_SERVE_TENSOR_JSON_H
#define WEIR_SERVE_TENSOR_JSON_H

#include "base/buf.h"
#include "base/json_scan.h"
#include "tensor/tensor.h"

struct tensor_fill {
    enum weir_dtype dtype;
    struct weir_arena *arena; /**< Of texts on the way. */
    char *data;
    size_t n_elems, room_bytes;
    int32_t rank; /**< -1: not known yet. */
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    bool has_dim[WEIR_TENSOR_RANK_MAX];
    int64_t n_rows; /**< By tensor_fill_row. */
};

void tensor_fill_init(struct tensor_fill *fill, enum weir_dtype dtype, struct weir_arena *arena);
void tensor_fill_fini(struct tensor_fill *fill);

/** Reads a value: the whole tensor. NOMEM, or the scan's error. */
weir_status tensor_fill_value(struct tensor_fill *fill,
                              struct weir_json_scan *scan) WEIR_MUST_CHECK;

/** Reads one row more of a tensor whose first dimension counts them; all have the first's shape. */
weir_status tensor_fill_row(struct tensor_fill *fill, struct weir_json_scan *scan) WEIR_MUST_CHECK;

/** Has all that was read, by _value or by _row. */
weir_status tensor_fill_take(struct tensor_fill *fill, struct weir_tensor **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The same with these dimensions, if as many elements, in one array or in nested ones of these
 *  dimensions, were read. `what` names the tensor in errors. */
weir_status tensor_fill_take_as(struct tensor_fill *fill, const char *what, int32_t rank,
                                const int64_t *dims, struct weir_tensor **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** "[…]" of n elements from the first on, in one array. */
void tensor_json_put_flat(struct weir_buf *out, const struct weir_tensor *tensor, size_t first,
                          size_t n);

/** Nested arrays of the tensor's dimensions; a scalar is its element. */
void tensor_json_put_nested(struct weir_buf *out, const struct weir_tensor *tensor);

/** The same of the row i of the first dimension. */
void tensor_json_put_row(struct weir_buf *out, const struct weir_tensor *tensor, int64_t i_row);

/** A JSON string of these bytes, with its quotes. What is not UTF-8 becomes U+FFFD. */
void json_put_text(struct weir_buf *out, const char *bytes, size_t len);

#endif
