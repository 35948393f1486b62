/**
 * Quant: steps of quantised models. What DequantizeLinear makes is not computed where it is not
 * needed: a value then only knows its bytes, scale and zero point (fast_lazy). Convolutions and
 * products of such values by constants that come from bytes too run in whole numbers (qproduct.h),
 * with what follows: an activation, QuantizeLinear.
 */
#ifndef WEIR_ONNX_FAST_QUANT_H
#define WEIR_ONNX_FAST_QUANT_H

#include "onednn.h"
#include "op.h"

/** Pixels with channels last, for four dimensions; else row-major order. */
struct weir_dnn_layout quant_layout(enum weir_dtype dtype, int32_t rank, const int64_t *dims);

/** Sets *out_taken where the step's input is lazy and the rest fits; else leaves it at 0. */
weir_status quant_prepare_conv(struct fast_plan *plan, const struct fast_link *link,
                               size_t *out_taken, struct weir_error *err) WEIR_MUST_CHECK;
weir_status quant_prepare_gemm(struct fast_plan *plan, const struct fast_link *link,
                               size_t *out_taken, struct weir_error *err) WEIR_MUST_CHECK;
weir_status quant_prepare_add(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err) WEIR_MUST_CHECK;

/** A scale and a zero point for the whole tensor, both constant. */
struct quant_scale {
    enum weir_dtype dtype; /**< UINT8 or INT8. */
    float scale;
    int32_t zero;
};

/** Reads them from inputs of a step; zero may be left out. False: they are not such. */
bool quant_read(const struct fast_plan *plan, const struct onnx_step *step, size_t i_scale,
                struct quant_scale *out);

/** What follows a product in a chain: an activation that is a range, then QuantizeLinear. */
struct quant_tail {
    size_t n_taken;
    bool is_quantised;
    struct quant_scale y;
    float low, high; /**< Of the numbers before they are quantised. */
    int32_t out;
};

void quant_tail_read(const struct fast_plan *plan, const struct fast_link *link,
                     struct quant_tail *out);

#endif
