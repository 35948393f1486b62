/**
 * Tail: the steps of a chain behind a convolution or product that oneDNN does while it stores: factors
 * and summands of channels (batch norm and its like), the sum with another tensor, activations.
 */
#ifndef WEIR_ONNX_FAST_TAIL_H
#define WEIR_ONNX_FAST_TAIL_H

#include "onednn.h"
#include "op.h"

#define TAIL_ACTS_MAX 2

struct tail {
    size_t n_taken; /**< Steps with the head. */
    int n_folded;   /**< Of these, steps whose factors and summands came to those of channels. */
    float *scale, *shift; /**< By channel; NULL: none. In the plan's arena. */
    int32_t added;        /**< A value of the result's shape; -1: none. */
    struct onednn_act acts[TAIL_ACTS_MAX];
    size_t n_acts;
    int32_t out; /**< The value that results. */
};

/**
 * Reads as much of a chain as fits. Factors and summands of channels come first, then the sum, then
 * activations.
 * @param dims  Of the result; channels are dimension `channels`.
 */
void tail_read(struct fast_plan *plan, const struct fast_link *link, int32_t rank,
               const int64_t *dims, int32_t channels, struct tail *out);

/** What an activation's step is to oneDNN: one or two functions. 0: it is none. */
size_t tail_activation(const struct fast_plan *plan, const struct onnx_step *step,
                       struct onednn_act acts[TAIL_ACTS_MAX]);

/** The activation that steps from i on make together, none where the plan keeps NaN: a Sigmoid whose product with its own input follows
 *  is one with it. @param out_n  Functions. @return Steps that join: 0 to 2. */
size_t tail_activations(const struct fast_plan *plan, const struct fast_link *link, size_t i,
                        struct onednn_act acts[TAIL_ACTS_MAX], size_t *out_n);

#endif
