/** Product: what convolutions and products of matrices have in common: constants that are packed once,
 *  and a result that may be added to what another tensor holds. */
#ifndef WEIR_ONNX_FAST_PRODUCT_H
#define WEIR_ONNX_FAST_PRODUCT_H

#include "tail.h"

/** Slots of packed constants. What was folded into them may be less in a plan of another rank. */
enum { PRODUCT_WEIGHTS, PRODUCT_BIAS, PRODUCT_POINTS, PRODUCT_ROWS, PRODUCT_SLOTS = 16 };

static inline int product_slot(int slot, const struct tail *tail)
{
    return slot + tail->n_folded * PRODUCT_SLOTS;
}

/** Weights as the model has them. */
struct product_matrix {
    const struct weir_tensor *values;
    const struct weir_dnn_layout *plain; /**< Their layout. */
    size_t n_channels;                   /**< Outputs, each with a factor of the tail. */
    size_t n_inner;                      /**< From an element to that of the next output. */
};

/** Weights with the tail's factors, packed in the layout md. The plan owns *out. */
weir_status product_weights(struct fast_plan *plan, size_t step,
                            const struct product_matrix *weights, const struct weir_dnn_layout *md,
                            const struct tail *tail, void **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The bias with the tail's factors and summands; NULL: it would be zero. */
weir_status product_bias(struct fast_plan *plan, size_t step, const float *bias,
                         const struct tail *tail, size_t n_channels, float **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Makes the result; with tail->added, it holds that tensor's elements already.
 * @param reads  Blocks that the primitive reads from, which the result must not lie in.
 */
weir_status product_result(struct fast_plan *plan, const struct tail *tail,
                           const struct weir_dnn_layout *md, const struct fast_form *const *reads,
                           size_t n_reads, void **out_data, struct weir_error *err) WEIR_MUST_CHECK;

#endif
