/* Operations of oneDNN 2: a struct for each kind, from which a primitive is described. */
#include "native.h"

typedef union {
    dnnl_convolution_desc_t conv; /* And deconvolutions: it is the same type. */
    dnnl_inner_product_desc_t linear;
    dnnl_matmul_desc_t matmul;
    dnnl_binary_desc_t binary;
    dnnl_eltwise_desc_t eltwise;
    dnnl_batch_normalization_desc_t norm;
    dnnl_pooling_v2_desc_t pool;
    dnnl_softmax_desc_t softmax;
    dnnl_lrn_desc_t lrn;
} op_desc;

static dnnl_prop_kind_t prop_of(const struct weir_dnn_op *op)
{
    return op->is_training ? dnnl_forward_training : dnnl_forward_inference;
}

static dnnl_status_t init_conv(const struct weir_dnn_op *op, dnnl_convolution_desc_t *out)
{
    const dnnl_memory_desc_t *src = native_of(op->src), *dst = native_of(op->dst);
    const dnnl_memory_desc_t *weights = native_of(op->weights), *bias = native_of(op->bias);
    switch (op->kind) {
    case WEIR_DNN_CONV_FORWARD:
        return dnnl_dilated_convolution_forward_desc_init(out, prop_of(op), dnnl_convolution_direct,
                                                          src, weights, bias, dst, op->strides,
                                                          op->dilates, op->pads, op->end_pads);
    case WEIR_DNN_DECONV_FORWARD:
        return dnnl_dilated_deconvolution_forward_desc_init(
            out, prop_of(op), dnnl_deconvolution_direct, src, weights, bias, dst, op->strides,
            op->dilates, op->pads, op->end_pads);
    case WEIR_DNN_CONV_BACKWARD_DATA:
        return dnnl_dilated_convolution_backward_data_desc_init(
            out, dnnl_convolution_direct, src, weights, dst, op->strides, op->dilates, op->pads,
            op->end_pads);
    default:
        return dnnl_dilated_convolution_backward_weights_desc_init(
            out, dnnl_convolution_direct, src, weights, bias, dst, op->strides, op->dilates,
            op->pads, op->end_pads);
    }
}

static dnnl_status_t init_linear(const struct weir_dnn_op *op, dnnl_inner_product_desc_t *out)
{
    const dnnl_memory_desc_t *src = native_of(op->src), *dst = native_of(op->dst);
    const dnnl_memory_desc_t *weights = native_of(op->weights), *bias = native_of(op->bias);
    switch (op->kind) {
    case WEIR_DNN_LINEAR_FORWARD:
        return dnnl_inner_product_forward_desc_init(out, prop_of(op), src, weights, bias, dst);
    case WEIR_DNN_LINEAR_BACKWARD_DATA:
        return dnnl_inner_product_backward_data_desc_init(out, src, weights, dst);
    default:
        return dnnl_inner_product_backward_weights_desc_init(out, src, weights, bias, dst);
    }
}

static dnnl_status_t init(const struct weir_dnn_op *op, op_desc *out)
{
    const dnnl_memory_desc_t *src = native_of(op->src), *dst = native_of(op->dst);
    switch (op->kind) {
    case WEIR_DNN_CONV_FORWARD:
    case WEIR_DNN_DECONV_FORWARD:
    case WEIR_DNN_CONV_BACKWARD_DATA:
    case WEIR_DNN_CONV_BACKWARD_WEIGHTS:
        return init_conv(op, &out->conv);
    case WEIR_DNN_LINEAR_FORWARD:
    case WEIR_DNN_LINEAR_BACKWARD_DATA:
    case WEIR_DNN_LINEAR_BACKWARD_WEIGHTS:
        return init_linear(op, &out->linear);
    case WEIR_DNN_MATMUL:
        return dnnl_matmul_desc_init(&out->matmul, src, native_of(op->weights), native_of(op->bias),
                                     dst);
    case WEIR_DNN_BINARY:
        return dnnl_binary_desc_init(&out->binary, op->alg, src, native_of(op->weights), dst);
    case WEIR_DNN_ELTWISE:
        return dnnl_eltwise_forward_desc_init(&out->eltwise, prop_of(op), op->alg, src, op->alpha,
                                              op->beta);
    case WEIR_DNN_BATCH_NORM:
        return dnnl_batch_normalization_forward_desc_init(&out->norm, prop_of(op), src, op->epsilon,
                                                          op->flags);
    case WEIR_DNN_POOL:
        return dnnl_pooling_v2_forward_desc_init(&out->pool, prop_of(op), op->alg, src, dst,
                                                 op->strides, op->kernel, op->dilates, op->pads,
                                                 op->end_pads);
    case WEIR_DNN_SOFTMAX:
        return dnnl_softmax_forward_desc_init(&out->softmax, prop_of(op), src, op->axis);
    case WEIR_DNN_LRN:
        return dnnl_lrn_forward_desc_init(&out->lrn, prop_of(op), dnnl_lrn_across_channels, src,
                                          op->size, op->alpha, op->beta, op->k);
    default:
        return dnnl_invalid_arguments;
    }
}

dnnl_status_t weir_dnn_describe(const struct weir_dnn_op *op, dnnl_engine_t engine,
                                const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *out)
{
    if (op->kind == WEIR_DNN_REORDER) {
        return dnnl_reorder_primitive_desc_create(out, native_of(op->src), engine,
                                                  native_of(op->dst), engine, attr);
    }
    op_desc desc;
    dnnl_status_t status = init(op, &desc);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &desc, attr, engine, hint)
                                  : status;
}

dnnl_status_t weir_dnn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1);
}

dnnl_status_t weir_dnn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha,
                                      float beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1, alg, alpha, beta);
}
