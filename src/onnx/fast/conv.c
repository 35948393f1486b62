/* Convolutions in f32, forward and transposed. */
#include "conv.h"

#include "alarm.h"
#include "quant.h"

#include <string.h>

/* oneDNN wants windows that reach the image, and pixels that a window reaches. */
static bool can_turn(const struct onnx_call *call, struct window *w)
{
    struct weir_error ignored;
    bool can = window_turn(call, w, &ignored) == WEIR_OK && fast_is_usual(w);
    for (int32_t i = 0; can && i < w->rank; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        can = w->before[i] >= 0 && w->before[i] < reach && w->after[i] < reach &&
              w->after[i] > -w->stride[i];
    }
    return can;
}

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
        conv->groups >= 1 && conv->groups <= conv->x->dims[1] &&
        conv->w->dims[0] % conv->groups == 0 &&
        (conv->is_turned ? conv->w->dims[0] == conv->x->dims[1]
                         : conv->w->dims[1] <= conv->x->dims[1] &&
                               conv->w->dims[1] * conv->groups == conv->x->dims[1]) &&
        window_read(&call, conv->x, conv->w->dims + 2, false, &conv->window, &ignored) == WEIR_OK &&
        (!conv->is_turned || can_turn(&call, &conv->window)) && conv->window.n_out > 0;
    if (!fits) {
        return false;
    }
    conv->n_channels =
        (size_t)(conv->is_turned ? conv->w->dims[1] * conv->groups : conv->w->dims[0]);
    bool has_bias = step->node->n_in > 2 && step->in[2] >= 0;
    conv->bias = has_bias ? fast_floats(plan, step->in[2], conv->n_channels) : NULL;
    window_out_dims(&conv->window, conv->x->dims[0], (int64_t)conv->n_channels, conv->y_dims);
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
    conv->w_md = onednn_plain(WEIR_DTYPE_FLOAT, conv->w_rank, conv->w_dims);
}

/* The model has a group's inputs in front of its outputs; to oneDNN they are the other way round. */
static bool shape_turned_weights(struct conv *conv)
{
    shape_weights(conv);
    const int32_t n_spatial = conv->window.rank, i_out = conv->w_rank - n_spatial - 2;
    const int64_t n_in = conv->w_dims[i_out], n_out = conv->w_dims[i_out + 1];
    int64_t stride = 1;
    dnnl_dims_t strides;
    for (int32_t i = conv->w_rank - 1; i >= conv->w_rank - n_spatial; i--) {
        strides[i] = stride;
        stride *= conv->w_dims[i];
    }
    strides[0] = n_in * n_out * stride; /* between groups, if there are several */
    strides[i_out] = stride;
    strides[i_out + 1] = n_out * stride;
    conv->w_dims[i_out] = n_out;
    conv->w_dims[i_out + 1] = n_in;
    return weir_dnn_layout_strided(&conv->w_md, conv->w_rank, conv->w_dims, dnnl_f32, strides) ==
           dnnl_success;
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
        after[i] = conv->is_turned
                       ? w->after[i]
                       : (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 -
                             w->in[i] - w->before[i];
    }
    const struct weir_dnn_op op = {.kind = conv->is_turned ? WEIR_DNN_DECONV_FORWARD
                                                           : WEIR_DNN_CONV_FORWARD,
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
    struct fast_form *x;
    void *w, *y;
    float *bias;
    WEIR_TRY(fast_form_as(plan, fast_step(plan, link, 0)->in[0], x_md, &x, err));
    const struct product_matrix weights = {
        .values = conv->w,
        .plain = &conv->w_md,
        .n_channels = conv->n_channels,
        .n_inner = conv->is_turned ? conv->window.n_kernel : conv->w->n_elems / conv->n_channels};
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

/* oneDNN's deconvolutions have no steps behind them that are fast: in a chain, factors and summands of channels
 * join weights and bias, and the rest follows by itself. */
static void cut_tail(struct fast_plan *plan, const struct fast_link *link, struct tail *tail)
{
    tail->n_taken = 1 + (size_t)tail->n_folded;
    tail->added = -1;
    tail->n_acts = 0;
    tail->out = fast_step(plan, link, tail->n_taken - 1)->out[0];
}

static void read_tail(struct fast_plan *plan, const struct fast_link *link, struct conv *conv)
{
    /* oneDNN 2.6 loses what is to be added where a window has nothing but padding. */
    bool is_alone = conv->is_turned ? conv->groups > 1 : fast_has_bare_window(&conv->window);
    const struct fast_link alone = {link->steps, 1};
    tail_read(plan, is_alone ? &alone : link, conv->x->rank, conv->y_dims, 1, &conv->tail);
}

static weir_status prepare(struct fast_plan *plan, const struct fast_link *link, struct conv *conv,
                           size_t *out_taken, struct weir_error *err)
{
    struct fast_arg args[4];
    dnnl_primitive_desc_t desc;
    const int64_t n_channels = (int64_t)conv->n_channels;
    conv->bias_md = onednn_plain(WEIR_DTYPE_FLOAT, 1, &n_channels);
    bool is_done;
    read_tail(plan, link, conv);
    WEIR_TRY(conv_add_apart(plan, link->steps[0], conv, &is_done, err));
    if (is_done) {
        *out_taken = conv->tail.n_taken;
        return WEIR_OK;
    }
    if (conv->is_turned) {
        cut_tail(plan, link, &conv->tail);
    }
    WEIR_TRY(describe(plan, conv, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    weir_status status = conv_add_wino(plan, link, conv, desc, &is_done, err);
    if (status == WEIR_OK && !is_done) {
        status = place(plan, link, conv, desc, args, err);
    }
    *out_taken = conv->tail.n_taken;
    if (status != WEIR_OK || is_done) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    if (conv->tail.n_acts > 0) {
        fast_hide_nan(plan);
    }
    return fast_add_primitive(plan, desc, args, args[3].data != NULL ? 4 : 3, err);
}

weir_status fast_prepare_conv(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err)
{
    struct conv conv = {.groups = 1};
    WEIR_TRY(quant_prepare_conv(plan, link, out_taken, err));
    if (*out_taken > 0 || !read_conv(plan, link, &conv)) {
        return WEIR_OK;
    }
    shape_weights(&conv);
    return prepare(plan, link, &conv, out_taken, err);
}

weir_status fast_prepare_turned_conv(struct fast_plan *plan, const struct fast_link *link,
                                     size_t *out_taken, struct weir_error *err)
{
    struct conv conv = {.groups = 1, .is_turned = true};
    return read_conv(plan, link, &conv) && shape_turned_weights(&conv)
               ? prepare(plan, link, &conv, out_taken, err)
               : WEIR_OK;
}
