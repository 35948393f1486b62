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
dnnl_memory_desc_t onednn_plain(enum weir_dtype dtype, int32_t rank, const int64_t *dims);
/** Whatever order suits. */
dnnl_memory_desc_t onednn_any(enum weir_dtype dtype, int32_t rank, const int64_t *dims);
bool onednn_is_plain(const dnnl_memory_desc_t *md);
/** Row-major order instead of another that is the same, as of blocked channels of one pixel. */
dnnl_memory_desc_t onednn_simple(const dnnl_memory_desc_t *md);
/** Are there channels that are only there to fill a block? */
bool onednn_is_padded(const dnnl_memory_desc_t *md);

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
weir_status onednn_desc(const struct fast *fast, const void *op_desc, dnnl_primitive_attr_t attr,
                        dnnl_primitive_desc_t *out, struct weir_error *err) WEIR_MUST_CHECK;
/** The same for what another function has made. */
weir_status onednn_desc_checked(dnnl_status_t status, dnnl_primitive_desc_t *desc,
                                struct weir_error *err) WEIR_MUST_CHECK;

static inline const dnnl_memory_desc_t *onednn_query(const_dnnl_primitive_desc_t desc,
                                                     dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(desc, what, 0);
}

#endif
