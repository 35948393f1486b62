/* Convolutions in f32. */
#include "conv.h"

#include "alarm.h"
#include "quant.h"

#include <string.h>

static bool read_conv(struct fast_plan *plan, const struct fast_link *link, struct conv *conv)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct weir_tensor *in[3];
    struct weir_error ignored;
    const struct onnx_call call = fast_call(plan, step, in, 3);
    bool has = fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) &&
               fast_has_input(plan, step, 1, WEIR_DTYPE_FLOAT) &&
               fast_is_given(plan, step->in[1]) && step->node->n_out == 1;
    if (!has) {
        return false;
    }
    conv->x = in[0];
    conv->w = in[1];
    conv->groups = onnx_int(&call, "group", 1);
    bool fits =
        conv->x->rank >= 3 && conv->x->rank <= 5 && conv->w->rank == conv->x->rank &&
        conv->groups >= 1 && conv->w->dims[0] % conv->groups == 0 &&
        conv->w->dims[1] <= conv->x->dims[1] &&
        conv->w->dims[1] * conv->groups == conv->x->dims[1] &&
        window_read(&call, conv->x, conv->w->dims + 2, false, &conv->window, &ignored) == WEIR_OK &&
        conv->window.n_out > 0;
    if (!fits) {
        return false;
    }
    conv->n_channels = (size_t)conv->w->dims[0];
    bool has_bias = step->node->n_in > 2 && step->in[2] >= 0;
    conv->bias = has_bias ? fast_floats(plan, step->in[2], conv->n_channels) : NULL;
    window_out_dims(&conv->window, conv->x->dims[0], conv->w->dims[0], conv->y_dims);
    if (!alarm_are_within(conv->w->data, conv->w->n_elems, FLT_MAX)) {
        return false; /* padding times infinity is no number, where there should be no product */
    }
    return !has_bias || (conv->bias != NULL && in[2]->n_elems == conv->n_channels);
}

static void shape_weights(struct conv *conv)
{
    bool is_grouped = conv->groups > 1;
    conv->w_rank = conv->w->rank + is_grouped;
    conv->w_dims[0] = conv->groups;
    memcpy(conv->w_dims + is_grouped, conv->w->dims, (size_t)conv->w->rank * sizeof(int64_t));
    conv->w_dims[is_grouped] = conv->w->dims[0] / conv->groups;
}

static weir_status describe(struct fast_plan *plan, struct conv *conv, dnnl_primitive_desc_t *out,
                            struct weir_error *err)
{
    const struct window *w = &conv->window;
    const struct weir_dnn_layout x_md = onednn_any(dnnl_f32, conv->x->rank, conv->x->dims);
    const struct weir_dnn_layout w_md = onednn_any(dnnl_f32, conv->w_rank, conv->w_dims);
    const struct weir_dnn_layout y_md = onednn_any(dnnl_f32, conv->x->rank, conv->y_dims);
    dnnl_dims_t stride, dilation, before, after;
    bool has_bias = conv->bias != NULL || conv->tail.shift != NULL;
    for (int32_t i = 0; i < w->rank; i++) {
        stride[i] = w->stride[i];
        dilation[i] = w->dilation[i] - 1;
        before[i] = w->before[i];
        /* What the last window reads, which may be less than the image has, or more. */
        after[i] = (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 -
                   w->in[i] - w->before[i];
    }
    const struct weir_dnn_op op = {.kind = WEIR_DNN_CONV_FORWARD,
                                   .src = &x_md,
                                   .weights = &w_md,
                                   .bias = has_bias ? &conv->bias_md : NULL,
                                   .dst = &y_md,
                                   .strides = stride,
                                   .dilates = dilation,
                                   .pads = before,
                                   .end_pads = after};
    return onednn_desc(plan->fast, &op,
                       onednn_attr(conv->tail.added >= 0, conv->tail.acts, conv->tail.n_acts), out,
                       err);
}

/* The arguments' memory: the input in the layout that oneDNN wants, packed weights, the result. */
static weir_status place(struct fast_plan *plan, const struct fast_link *link, struct conv *conv,
                         const_dnnl_primitive_desc_t desc, struct fast_arg args[4],
                         struct weir_error *err)
{
    const struct weir_dnn_layout *x_md = onednn_query(plan, desc, dnnl_query_src_md);
    const struct weir_dnn_layout *w_md = onednn_query(plan, desc, dnnl_query_weights_md);
    const struct weir_dnn_layout *y_md = onednn_query(plan, desc, dnnl_query_dst_md);
    const struct weir_dnn_layout plain = onednn_plain(WEIR_DTYPE_FLOAT, conv->w_rank, conv->w_dims);
    struct fast_form *x;
    void *w, *y;
    float *bias;
    WEIR_TRY(fast_form_as(plan, fast_step(plan, link, 0)->in[0], x_md, &x, err));
    const struct product_matrix weights = {
        .values = conv->w, .plain = &plain, .n_channels = conv->n_channels};
    WEIR_TRY(product_weights(plan, link->steps[0], &weights, w_md, &conv->tail, &w, err));
    WEIR_TRY(
        product_bias(plan, link->steps[0], conv->bias, &conv->tail, conv->n_channels, &bias, err));
    const struct fast_form *reads[] = {x};
    WEIR_TRY(product_result(plan, &conv->tail, y_md, reads, 1, &y, err));
    args[0] = fast_arg_of(DNNL_ARG_SRC, x_md, x);
    args[1] = fast_arg_at(DNNL_ARG_WEIGHTS, w_md, w);
    args[2] = fast_arg_at(DNNL_ARG_DST, y_md, y);
    args[3] = fast_arg_at(DNNL_ARG_BIAS, &conv->bias_md, bias);
    return WEIR_OK;
}

weir_status fast_prepare_conv(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err)
{
    struct conv conv = {.groups = 1};
    struct fast_arg args[4];
    dnnl_primitive_desc_t desc;
    WEIR_TRY(quant_prepare_conv(plan, link, out_taken, err));
    if (*out_taken > 0 || !read_conv(plan, link, &conv)) {
        return WEIR_OK;
    }
    const int64_t n_channels = (int64_t)conv.n_channels;
    conv.bias_md = onednn_plain(WEIR_DTYPE_FLOAT, 1, &n_channels);
    shape_weights(&conv);
    /* oneDNN 2.6 loses what is to be added where a window has nothing but padding. */
    const struct fast_link alone = {link->steps, 1};
    tail_read(plan, fast_has_bare_window(&conv.window) ? &alone : link, conv.x->rank, conv.y_dims,
              1, &conv.tail);
    WEIR_TRY(describe(plan, &conv, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    bool is_done;
    weir_status status = conv_add_wino(plan, link, &conv, desc, &is_done, err);
    if (status == WEIR_OK && !is_done) {
        status = place(plan, link, &conv, desc, args, err);
    }
    *out_taken = conv.tail.n_taken;
    if (status != WEIR_OK || is_done) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    if (conv.tail.n_acts > 0) {
        fast_hide_nan(plan);
    }
    return fast_add_primitive(plan, desc, args, args[3].data != NULL ? 4 : 3, err);
}
