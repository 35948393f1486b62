/* Operations of oneDNN 3: a call for each kind describes its primitive. */
#include "native.h"

/* Hard swish is x min(max(alpha x + beta, 0), 1), where version 2 knew both numbers by itself. */
struct numbers {
    float alpha, beta;
};

static struct numbers numbers_of(dnnl_alg_kind_t alg, float alpha, float beta)
{
    return alg == dnnl_eltwise_hardswish ? (struct numbers){1.0F / 6, 0.5F}
                                         : (struct numbers){alpha, beta};
}

/* The operands, opened. */
struct operands {
    dnnl_memory_desc_t src, weights, bias, dst;
};

static dnnl_prop_kind_t prop_of(const struct weir_dnn_op *op)
{
    return op->is_training ? dnnl_forward_training : dnnl_forward_inference;
}

static dnnl_status_t describe_conv(const struct weir_dnn_op *op, const struct operands *on,
                                   dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                   const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    switch (op->kind) {
    case WEIR_DNN_CONV_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(
            out, engine, prop_of(op), dnnl_convolution_direct, on->src, on->weights, on->bias,
            on->dst, op->strides, op->dilates, op->pads, op->end_pads, attr);
    case WEIR_DNN_DECONV_FORWARD:
        return dnnl_deconvolution_forward_primitive_desc_create(
            out, engine, prop_of(op), dnnl_deconvolution_direct, on->src, on->weights, on->bias,
            on->dst, op->strides, op->dilates, op->pads, op->end_pads, attr);
    case WEIR_DNN_CONV_BACKWARD_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, dnnl_convolution_direct, on->src, on->weights, on->dst, op->strides,
            op->dilates, op->pads, op->end_pads, hint, attr);
    default:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, dnnl_convolution_direct, on->src, on->weights, on->bias, on->dst,
            op->strides, op->dilates, op->pads, op->end_pads, hint, attr);
    }
}

static dnnl_status_t describe_linear(const struct weir_dnn_op *op, const struct operands *on,
                                     dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                     const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    switch (op->kind) {
    case WEIR_DNN_LINEAR_FORWARD:
        return dnnl_inner_product_forward_primitive_desc_create(
            out, engine, prop_of(op), on->src, on->weights, on->bias, on->dst, attr);
    case WEIR_DNN_LINEAR_BACKWARD_DATA:
        return dnnl_inner_product_backward_data_primitive_desc_create(
            out, engine, on->src, on->weights, on->dst, hint, attr);
    default:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            out, engine, on->src, on->weights, on->bias, on->dst, hint, attr);
    }
}

static dnnl_status_t describe_other(const struct weir_dnn_op *op, const struct operands *on,
                                    dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                    dnnl_primitive_desc_t *out)
{
    const struct numbers numbers = numbers_of(op->alg, op->alpha, op->beta);
    switch (op->kind) {
    case WEIR_DNN_MATMUL:
        return dnnl_matmul_primitive_desc_create(out, engine, on->src, on->weights, on->bias,
                                                 on->dst, attr);
    case WEIR_DNN_BINARY:
        return dnnl_binary_primitive_desc_create(out, engine, op->alg, on->src, on->weights,
                                                 on->dst, attr);
    case WEIR_DNN_ELTWISE:
        return dnnl_eltwise_forward_primitive_desc_create(
            out, engine, prop_of(op), op->alg, on->src, on->src, numbers.alpha, numbers.beta, attr);
    case WEIR_DNN_BATCH_NORM:
        return dnnl_batch_normalization_forward_primitive_desc_create(
            out, engine, prop_of(op), on->src, on->src, op->epsilon, op->flags, attr);
    case WEIR_DNN_POOL:
        return dnnl_pooling_forward_primitive_desc_create(
            out, engine, prop_of(op), op->alg, on->src, on->dst, op->strides, op->kernel,
            op->dilates, op->pads, op->end_pads, attr);
    case WEIR_DNN_SOFTMAX:
        return dnnl_softmax_forward_primitive_desc_create(
            out, engine, prop_of(op), dnnl_softmax_accurate, on->src, on->src, op->axis, attr);
    case WEIR_DNN_LRN:
        return dnnl_lrn_forward_primitive_desc_create(out, engine, prop_of(op),
                                                      dnnl_lrn_across_channels, on->src, on->src,
                                                      op->size, op->alpha, op->beta, op->k, attr);
    case WEIR_DNN_REORDER:
        return dnnl_reorder_primitive_desc_create(out, on->src, engine, on->dst, engine, attr);
    default:
        return dnnl_invalid_arguments;
    }
}

dnnl_status_t weir_dnn_describe(const struct weir_dnn_op *op, dnnl_engine_t engine,
                                const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *out)
{
    struct operands on = {.src = NULL};
    dnnl_status_t status = native_open(op->src, &on.src);
    status = status == dnnl_success ? native_open(op->weights, &on.weights) : status;
    status = status == dnnl_success ? native_open(op->bias, &on.bias) : status;
    status = status == dnnl_success ? native_open(op->dst, &on.dst) : status;
    if (status == dnnl_success) {
        status = op->kind <= WEIR_DNN_CONV_BACKWARD_WEIGHTS
                     ? describe_conv(op, &on, engine, attr, hint, out)
                 : op->kind <= WEIR_DNN_LINEAR_BACKWARD_WEIGHTS
                     ? describe_linear(op, &on, engine, attr, hint, out)
                     : describe_other(op, &on, engine, attr, out);
    }
    dnnl_memory_desc_t opened[] = {on.src, on.weights, on.bias, on.dst};
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++) {
        dnnl_memory_desc_destroy(opened[i]);
    }
    return status;
}

dnnl_status_t weir_dnn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
}

dnnl_status_t weir_dnn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha,
                                      float beta)
{
    const struct numbers numbers = numbers_of(alg, alpha, beta);
    return dnnl_post_ops_append_eltwise(ops, alg, numbers.alpha, numbers.beta);
}
