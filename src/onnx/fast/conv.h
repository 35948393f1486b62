/** Conv: a convolution that is being prepared. */
#ifndef WEIR_ONNX_FAST_CONV_H
#define WEIR_ONNX_FAST_CONV_H

#include "product.h"

#include "onnx/ops/window.h"

struct conv {
    struct tail tail;
    struct window window;
    bool is_turned; /**< ConvTranspose. */
    int64_t groups;
    size_t n_channels;
    const struct weir_tensor *x, *w;
    const float *bias;
    int64_t y_dims[WEIR_TENSOR_RANK_MAX];
    int64_t w_dims[WEIR_TENSOR_RANK_MAX]; /**< With groups, if there are several. */
    int32_t w_rank;
    struct weir_dnn_layout bias_md, w_md; /**< As the model has them. */
};

/** Prepares it by Winograd's filtering (wino.h), if the layouts that oneDNN would use are the right
 *  ones for that, and it pays. *out_has: is it done? */
weir_status conv_add_wino(struct fast_plan *plan, const struct fast_link *link, struct conv *conv,
                          const_dnnl_primitive_desc_t desc, bool *out_has,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Prepares a transposed convolution with a kernel as large as its stride by products, if its input lies so that this
 *  pays; with all of the tail. *out_has: is it done? */
weir_status conv_add_apart(struct fast_plan *plan, size_t step, const struct conv *conv,
                           bool *out_has, struct weir_error *err) WEIR_MUST_CHECK;

#endif
