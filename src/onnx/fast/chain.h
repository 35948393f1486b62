/**
 * Chains: steps that may run as one. A chain begins with any step. Behind a convolution or a product
 * follow the steps that alone read its result, as far as they are arithmetic. A chain runs at the
 * place of its last step: what the others make, nobody else reads.
 */
#ifndef WEIR_ONNX_FAST_CHAIN_H
#define WEIR_ONNX_FAST_CHAIN_H

#include "onnx/onnx_private.h"

#define FAST_CHAIN_MAX 8

struct fast_chain {
    size_t steps[FAST_CHAIN_MAX];
    size_t n;
};

struct fast_chains {
    struct fast_chain *chains; /**< In the order in which they run. */
    size_t n;
    size_t *last;      /**< By value: the last chain that reads it; n: it is an output. */
    int32_t *n_uses;   /**< By value: how often steps read it, and outputs are it. */
    int32_t *producer; /**< By value: the step that makes it, also one that is folded; -1: none. */
};

/** Finds the chains of a folded model. Everything lies in the model's arena. */
void fast_chains_find(struct weir_onnx *onnx, struct fast_chains *out);

#endif
