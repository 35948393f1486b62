#include "op.h"

#include "base/names.h"

#include <string.h>

static const struct {
    const char *types; /* Separated by blanks. */
    fast_prepare_fn prepare;
    bool keeps_nan; /* Always, or where the plan is to (tail.c, conv_wino.c). */
} ops[] = {
    {"Conv", fast_prepare_conv, true},
    {"ConvTranspose", fast_prepare_turned_conv, true},
    {"Gemm", fast_prepare_gemm, true},
    {"MatMul", fast_prepare_matmul, true},
    {"MaxPool", fast_prepare_pool, false},
    {"AveragePool", fast_prepare_pool, true},
    {"GlobalAveragePool", fast_prepare_global_pool, true},
    {"GlobalMaxPool", fast_prepare_global_pool, false},
    {"ReduceMean", fast_prepare_mean, true},
    {"Relu LeakyRelu Clip Sigmoid Tanh Elu HardSwish HardSigmoid Abs Sqrt Exp",
     fast_prepare_eltwise, false},
    {"Add Sum Sub Mul Div", fast_prepare_binary, true},
    {"Concat", fast_prepare_concat, true},
    {"Softmax", fast_prepare_softmax, false},
    {"LRN", fast_prepare_lrn, false},
    {"BatchNormalization", fast_prepare_batch_norm, true},
    {"Transpose", fast_prepare_transpose, true},
    {"QuantizeLinear", fast_prepare_quantize, false},
    {"DequantizeLinear", fast_prepare_dequantize, false},
    {"QLinearConv", fast_prepare_qlinear_conv, false},
    {"QLinearMatMul", fast_prepare_qlinear_matmul, false},
};

fast_prepare_fn fast_op_find(const char *type, bool keeps_nan)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ops); i++) {
        if (weir_words_have(ops[i].types, type, strlen(type))) {
            return ops[i].keeps_nan || !keeps_nan ? ops[i].prepare : NULL;
        }
    }
    return NULL;
}

struct onnx_call fast_call(const struct fast_plan *plan, const struct onnx_step *step,
                           struct weir_tensor **in, size_t most)
{
    size_t n = WEIR_MIN(step->node->n_in, most);
    for (size_t i = 0; i < n; i++) {
        in[i] = fast_tensor(plan, step->in[i]);
    }
    return (struct onnx_call){.op = step->op,
                              .node = step->node,
                              .opset = plan->fast->onnx->opset,
                              .in = in,
                              .n_in = n,
                              .n_out = step->node->n_out};
}

#define ELEMENTS_MAX ((size_t)1 << 31) /* That oneDNN counts in 32 bits here and there. */

bool fast_has_input(const struct fast_plan *plan, const struct onnx_step *step, size_t i,
                    enum weir_dtype dtype)
{
    if (i >= step->node->n_in || step->in[i] < 0) {
        return false;
    }
    const struct weir_tensor *tensor = fast_tensor(plan, step->in[i]);
    return tensor != NULL && tensor->dtype == dtype && tensor->rank > 0 && tensor->n_elems > 0 &&
           tensor->n_elems < ELEMENTS_MAX;
}

bool fast_broadcasts_from_last(const struct fast_plan *plan, const struct onnx_step *step)
{
    const struct onnx_call call = {.node = step->node};
    return plan->fast->onnx->opset >= 7 || onnx_attribute(&call, "axis") == NULL;
}

#define WINDOW_MAX 4096
#define PIXELS_MAX ((int64_t)1 << 24)

bool fast_is_usual(const struct window *window)
{
    bool is = window->n_in < (size_t)1 << 30 && window->n_out < (size_t)1 << 30;
    for (int32_t i = 0; is && i < window->rank; i++) {
        is = window->kernel[i] <= WINDOW_MAX && window->stride[i] <= WINDOW_MAX &&
             window->dilation[i] <= WINDOW_MAX && window->before[i] <= WINDOW_MAX &&
             window->after[i] <= WINDOW_MAX && window->in[i] <= PIXELS_MAX &&
             window->out[i] <= PIXELS_MAX;
    }
    return is;
}

bool fast_has_bare_window(const struct window *window)
{
    for (int32_t i = 0; i < window->rank; i++) {
        int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
        int64_t last = (window->out[i] - 1) * window->stride[i] - window->before[i];
        if (window->before[i] >= reach || last >= window->in[i]) {
            return true;
        }
    }
    return false;
}

const float *fast_floats(const struct fast_plan *plan, int32_t value, size_t n)
{
    const struct weir_tensor *tensor = fast_tensor(plan, value);
    bool is = tensor != NULL && fast_is_given(plan, value) && tensor->dtype == WEIR_DTYPE_FLOAT &&
              tensor->n_elems >= n;
    return is ? tensor->data : NULL;
}
