/**
 * Dnn: the C API of oneDNN, of its versions 2 (Debian 12) and 3 (Debian 13), where these differ: the layout of a tensor,
 * and the description of an operation. For the rest callers include oneDNN's own header, which this one does.
 *
 * In version 2 a layout is a struct that anybody may read, and an operation has a struct of its own; in version 3 a layout
 * is an object behind a pointer, and an operation is described by the call that prepares it. Here a layout is a value, with
 * what Weir reads of it, and one struct describes every operation. layout_v2.c and op_v2.c, or layout_v3.c and op_v3.c, are
 * compiled.
 *
 * All functions may be called by any thread; they allocate, and belong where a net is prepared.
 */
#ifndef WEIR_DNN_DNN_H
#define WEIR_DNN_DNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of oneDNN's own record of a layout, the larger of both versions. */
#define WEIR_DNN_NATIVE_BYTES 1024

/**
 * How a tensor lies in memory. Owns nothing: it is copied by assignment. All zeros: no layout.
 * Blocks: element (i0, i1, …) lies in a block of its own sizes[0] × sizes[1] × … elements along the dimensions indexes[0],
 * indexes[1], …, from the outermost to the innermost; strides count elements from one block to the next.
 */
struct weir_dnn_layout {
    int ndims;
    dnnl_dims_t dims, padded_dims; /**< padded_dims: with what fills the last block. */
    dnnl_data_type_t data_type;
    bool is_blocked; /**< It has strides and blocks; else it is oneDNN's choice, or its secret. */
    bool has_extra;  /**< It begins elsewhere, or holds more than elements. */
    dnnl_dims_t strides;
    int n_blocks;
    dnnl_dims_t block_sizes, block_indexes;
    size_t n_bytes; /**< Of a tensor of it; 0: not known yet. */

    union {
        uint8_t bytes[WEIR_DNN_NATIVE_BYTES];
        max_align_t aligned;
    } native; /**< oneDNN's own record. */
};

/** A layout by oneDNN's name for it. On an error *out is all zeros. */
dnnl_status_t weir_dnn_layout_named(struct weir_dnn_layout *out, int ndims, const int64_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag);
/** A layout by strides, in elements. */
dnnl_status_t weir_dnn_layout_strided(struct weir_dnn_layout *out, int ndims, const int64_t *dims,
                                      dnnl_data_type_t type, const int64_t *strides);
/** The layout whose dimension permutation[i] is dimension i of `from`. */
dnnl_status_t weir_dnn_layout_permuted(struct weir_dnn_layout *out,
                                       const struct weir_dnn_layout *from, const int *permutation);

/** The same order of elements of another type. @return unimplemented: the layout has blocks, or no strides. */
static inline dnnl_status_t weir_dnn_layout_retyped(struct weir_dnn_layout *out,
                                                    const struct weir_dnn_layout *from,
                                                    dnnl_data_type_t type)
{
    return from->is_blocked && !from->has_extra && from->n_blocks == 0
               ? weir_dnn_layout_strided(out, from->ndims, from->dims, type, from->strides)
               : dnnl_unimplemented;
}

/** What a primitive has chosen ("dnnl_query_weights_md" …). All zeros: it has none such. */
struct weir_dnn_layout weir_dnn_layout_of(const_dnnl_primitive_desc_t desc, dnnl_query_t what);
bool weir_dnn_layout_equal(const struct weir_dnn_layout *a, const struct weir_dnn_layout *b);

/** A memory object. @param data  The tensor, or DNNL_MEMORY_NONE, or DNNL_MEMORY_ALLOCATE. */
dnnl_status_t weir_dnn_memory(dnnl_memory_t *out, const struct weir_dnn_layout *layout,
                              dnnl_engine_t engine, void *data);

enum weir_dnn_kind {
    WEIR_DNN_CONV_FORWARD,
    WEIR_DNN_DECONV_FORWARD, /**< Weights are of outputs, then inputs, as those of a convolution. */
    WEIR_DNN_CONV_BACKWARD_DATA,
    WEIR_DNN_CONV_BACKWARD_WEIGHTS,
    WEIR_DNN_LINEAR_FORWARD, /**< oneDNN's inner product. */
    WEIR_DNN_LINEAR_BACKWARD_DATA,
    WEIR_DNN_LINEAR_BACKWARD_WEIGHTS,
    WEIR_DNN_MATMUL,
    WEIR_DNN_BINARY, /**< src and weights are its two operands. */
    WEIR_DNN_ELTWISE,
    WEIR_DNN_BATCH_NORM,
    WEIR_DNN_POOL,
    WEIR_DNN_SOFTMAX,
    WEIR_DNN_LRN,
    WEIR_DNN_REORDER, /**< From src to dst. */
};

/**
 * An operation. Members that its kind has not are ignored. Backward, src, weights and dst are of the gradients.
 */
struct weir_dnn_op {
    enum weir_dnn_kind kind;
    bool is_training; /**< Forward keeps what backward needs. */
    dnnl_alg_kind_t alg;
    const struct weir_dnn_layout *src, *weights, *bias, *dst; /**< bias NULL: none. */
    const int64_t *strides, *dilates, *pads, *end_pads;       /**< Of convolutions and pools. */
    const int64_t *kernel;                                    /**< Of pools. */
    int axis;                                                 /**< Of a softmax. */
    int64_t size;                                             /**< Of the neighbourhood of LRN. */
    float alpha, beta, k;                                     /**< Of an eltwise, and of LRN. */
    float epsilon;                                            /**< Of a batch norm. */
    unsigned flags;                                           /**< Of a batch norm. */
};

/**
 * Prepares a primitive for the operation.
 * @param attr  Stays the caller's; NULL: none.
 * @param hint  The forward primitive of a backward one; else NULL.
 * @return What oneDNN says; unimplemented where it has no code. *out is set on success alone.
 */
dnnl_status_t weir_dnn_describe(const struct weir_dnn_op *op, dnnl_engine_t engine,
                                const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *out);

/** The next step behind an operation: add what the destination held before. */
dnnl_status_t weir_dnn_append_sum(dnnl_post_ops_t ops);
/** The next step behind an operation: an activation. */
dnnl_status_t weir_dnn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha,
                                      float beta);

#endif
