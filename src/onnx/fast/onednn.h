/** Onednn: oneDNN's descriptors, as the files of fast/ need them. */
#ifndef WEIR_ONNX_FAST_ONEDNN_H
#define WEIR_ONNX_FAST_ONEDNN_H

#include "fast_private.h"

#include <float.h>

/** Translates oneDNN's status. */
weir_status onednn_check(dnnl_status_t status, const char *what,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Is it a type that oneDNN computes with here? */
bool onednn_has_dtype(enum weir_dtype dtype);
dnnl_data_type_t onednn_dtype(enum weir_dtype dtype);

/** Row-major order; a scalar has one dimension. */
struct weir_dnn_layout onednn_plain(enum weir_dtype dtype, int32_t rank, const int64_t *dims);
/** Whatever order suits. */
struct weir_dnn_layout onednn_any(dnnl_data_type_t type, int32_t rank, const int64_t *dims);
bool onednn_is_plain(const struct weir_dnn_layout *md);
/** Row-major order instead of another that is the same, as of blocked channels of one pixel. */
struct weir_dnn_layout onednn_simple(const struct weir_dnn_layout *md);
/** Are there channels that are only there to fill a block? */
bool onednn_is_padded(const struct weir_dnn_layout *md);

/** A step behind a product. */
struct onednn_act {
    dnnl_alg_kind_t alg;
    float alpha, beta;
};

/** Attributes: user scratchpad, then a sum with the destination, then activations. NULL: failed. */
dnnl_primitive_attr_t onednn_attr(bool has_sum, const struct onednn_act *acts, size_t n_acts);

/**
 * Creates a primitive descriptor; the attributes are destroyed. *out is NULL and the status OK where
 * oneDNN has no code, or only its slow reference.
 */
weir_status onednn_desc(const struct fast *fast, const struct weir_dnn_op *op,
                        dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** The layout that a primitive has chosen; it lies in the plan's arena. */
const struct weir_dnn_layout *onednn_query(struct fast_plan *plan, const_dnnl_primitive_desc_t desc,
                                           dnnl_query_t what);

#endif
