/** A loaded model, as the domain's own files see it. */
#ifndef WEIR_ONNX_ONNX_PRIVATE_H
#define WEIR_ONNX_ONNX_PRIVATE_H

#include "onnx/onnx.h"

#include "op.h"

struct fast;

/** A node whose operator is known and whose values are numbers. */
struct onnx_step {
    const struct onnx_node *node;
    const struct onnx_op *op; /**< NULL: done at load, for good. */
    int32_t *in, *out;        /**< -1: left out. */
};

struct weir_onnx {
    struct onnx_model *model;
    struct weir_onnx_limits limits;
    int64_t opset;
    size_t n_values;
    struct weir_tensor **values; /**< By number. Constants stay; the rest lives during a run. */
    bool *is_constant;
    size_t *last_use; /**< Step after which a value is not needed any more. */
    struct onnx_step *steps;
    size_t n_steps;
    struct weir_onnx_port *inputs, *outputs;
    int32_t *input_values, *output_values;
    size_t n_inputs, n_outputs;
    struct onnx_budget budget;
    struct fast *fast;              /**< NULL: everything is interpreted. */
    const struct onnx_node *failed; /**< That the last run ended at; NULL: none. */
};

#define STRIDE_MAX 1024

/** The largest product of strides on the way from an input: sides of pictures that are multiples of it fit
 *  where the graph adds what it made smaller and larger again. 1: there are none. */
int64_t onnx_total_stride(const struct weir_onnx *onnx, struct weir_arena *arena);

/** Numbers the graph's values and finds its operators. INVALID, UNSUPPORTED, LIMIT. */
weir_status onnx_link(struct weir_onnx *onnx, struct weir_error *err) WEIR_MUST_CHECK;

/** Interprets a step: in holds a tensor, or NULL, for each input of the node; the outputs that the
 *  graph names become the model's values. */
weir_status onnx_step_run(struct weir_onnx *onnx, const struct onnx_step *step,
                          struct weir_tensor *const *in, struct weir_error *err) WEIR_MUST_CHECK;

/** Interprets steps that depend on constants alone, and ends them. */
weir_status onnx_fold(struct weir_onnx *onnx, struct weir_error *err) WEIR_MUST_CHECK;

/** Interprets all steps that are left. The inputs are values already. */
weir_status onnx_interpret(struct weir_onnx *onnx, struct weir_error *err) WEIR_MUST_CHECK;

/** Forgets a value that is no constant. */
void onnx_drop(struct weir_onnx *onnx, int32_t value);

#endif
