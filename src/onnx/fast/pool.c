/* Pools, and the norm over neighbouring channels. */
#include "alarm.h"
#include "onednn.h"
#include "op.h"
#include "quant.h"

#include "onnx/ops/window.h"

#include <string.h>

struct floats {
    size_t n;
    float most;
};

static weir_status run_lowest(const void *detail, void *const *at, int32_t n_threads)
{
    (void)n_threads;
    alarm_ring_at_lowest(at[0], ((const struct floats *)detail)->n);
    return WEIR_OK;
}

static weir_status run_sizes(const void *detail, void *const *at, int32_t n_threads)
{
    const struct floats *floats = detail;
    (void)n_threads;
    if (!alarm_are_within(at[0], floats->n, floats->most)) {
        alarm_ring();
    }
    return WEIR_OK;
}

/* The largest of a window: oneDNN begins with the lowest number, and passes by NaN. */
static weir_status add_largest(struct fast_plan *plan, const struct onnx_step *step,
                               dnnl_primitive_desc_t desc, const struct fast_arg args[2],
                               struct weir_error *err)
{
    struct floats *floats = WEIR_ARENA_NEW(&plan->arena, struct floats);
    floats->n = args[1].md->n_bytes / sizeof(float);
    fast_hide_nan(plan);
    WEIR_TRY(fast_add_primitive(plan, desc, args, 2, err));
    const struct fast_arg made =
        fast_arg_at(0, &plan->values[step->out[0]].forms->md, args[1].data);
    fast_hide_nan(plan);
    return fast_add_kernel(plan, "look at the largest", run_lowest, floats, &made, 1, err);
}

/* One input and one output of a primitive that takes the layout which is there. */
static weir_status add_simple(struct fast_plan *plan, const struct onnx_step *step,
                              const struct fast_form *x, dnnl_primitive_desc_t desc,
                              const struct weir_dnn_layout *named_as, size_t *out_taken,
                              struct weir_error *err)
{
    const struct weir_dnn_layout y_md = *onednn_query(plan, desc, dnnl_query_dst_md);
    void *y;
    weir_status status = fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT,
                                   named_as != NULL ? named_as : &y_md, &y, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_SRC, &x->md, x),
                                    fast_arg_at(DNNL_ARG_DST, &y_md, y)};
    *out_taken = 1;
    if (strstr(step->node->type, "MaxPool") != NULL) {
        return add_largest(plan, step, desc, args, err);
    }
    return fast_add_primitive(plan, desc, args, 2, err);
}

static weir_status describe(const struct fast *fast, dnnl_alg_kind_t alg, const struct window *w,
                            const struct weir_dnn_layout *x_md, const int64_t *y_dims,
                            dnnl_primitive_desc_t *out, struct weir_error *err)
{
    const struct weir_dnn_layout y_md = onednn_any(x_md->data_type, x_md->ndims, y_dims);
    dnnl_dims_t stride, kernel, dilation, before, after;
    for (int32_t i = 0; i < w->rank; i++) {
        stride[i] = w->stride[i];
        kernel[i] = w->kernel[i];
        before[i] = w->before[i];
        dilation[i] = w->dilation[i] - 1;
        after[i] = (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 -
                   w->in[i] - w->before[i];
    }
    const struct weir_dnn_op op = {.kind = WEIR_DNN_POOL,
                                   .alg = alg,
                                   .src = x_md,
                                   .dst = &y_md,
                                   .strides = stride,
                                   .kernel = kernel,
                                   .dilates = dilation,
                                   .pads = before,
                                   .end_pads = after};
    return onednn_desc(fast, &op, onednn_attr(false, NULL, 0), out, err);
}

/* Do windows reach over the padding, or is one of them in padding only? */
static bool is_odd(const struct window *w, bool counts_padding)
{
    for (int32_t i = 0; i < w->rank; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t last = (w->out[i] - 1) * w->stride[i] - w->before[i];
        if (w->out[i] < 1 || (counts_padding && last + reach > w->in[i] + w->after[i])) {
            return true;
        }
    }
    return fast_has_bare_window(w);
}

/* The largest of bytes is the byte of the largest: the result is as lazy as what it comes from. */
static weir_status pool_bytes(struct fast_plan *plan, const struct onnx_step *step,
                              const struct window *w, const int64_t *y_dims, size_t *out_taken,
                              struct weir_error *err)
{
    const struct weir_tensor *x = fast_tensor(plan, step->in[0]);
    const struct fast_lazy *lazy = plan->values[step->in[0]].lazy;
    const struct weir_dnn_layout md = quant_layout(lazy->dtype, x->rank, x->dims);
    struct weir_tensor shape = {.dtype = lazy->dtype, .rank = x->rank};
    struct fast_form *form, result = {.value = -1};
    dnnl_primitive_desc_t desc;
    memcpy(shape.dims, y_dims, (size_t)x->rank * sizeof *y_dims);
    WEIR_TRY(describe(plan->fast, dnnl_pooling_max, w, &md, y_dims, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout y_md = *onednn_query(plan, desc, dnnl_query_dst_md);
    result.block = WEIR_ARENA_NEW(&plan->arena, struct region_block);
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(fast_bytes_as(plan, step->in[0], &md, &form, err), status, destroy);
    WEIR_TRY_GOTO(region_take(&plan->fast->region, y_md.n_bytes, result.block, err), status,
                  destroy);
    result.md = onednn_simple(&y_md);
    result.data = region_at(&plan->fast->region, result.block);
    status = fast_make_lazy(plan, step->out[0], &result, &shape, lazy->scale, lazy->zero, err);
    region_give(&plan->fast->region, result.block); /* the value has its own reference */
    if (status != WEIR_OK) {
        goto destroy;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_SRC, &md, form),
                                    fast_arg_at(DNNL_ARG_DST, &y_md, result.data)};
    *out_taken = 1;
    return fast_add_primitive(plan, desc, args, 2, err);
destroy:
    dnnl_primitive_desc_destroy(desc);
    return status;
}

weir_status fast_prepare_pool(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct weir_tensor *in[1];
    struct window w;
    struct weir_error ignored;
    int64_t y_dims[WEIR_TENSOR_RANK_MAX];
    dnnl_primitive_desc_t desc;
    const struct onnx_call call = fast_call(plan, step, in, 1);
    bool is_max = step->node->type[0] == 'M';
    bool counts_padding = !is_max && onnx_int(&call, "count_include_pad", 0) != 0;
    bool is_ceil = onnx_int(&call, "ceil_mode", 0) != 0;
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) || step->node->n_out != 1 ||
        in[0]->rank < 3 || in[0]->rank > 5 ||
        window_read(&call, in[0], NULL, is_ceil, &w, &ignored) != WEIR_OK || !fast_is_usual(&w) ||
        is_odd(&w, counts_padding)) {
        return WEIR_OK;
    }
    struct fast_form *x;
    window_out_dims(&w, in[0]->dims[0], in[0]->dims[1], y_dims);
    if (is_max && plan->values[step->in[0]].lazy != NULL) {
        WEIR_TRY(pool_bytes(plan, step, &w, y_dims, out_taken, err));
    }
    if (*out_taken > 0) {
        return WEIR_OK;
    }
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    dnnl_alg_kind_t alg = is_max           ? dnnl_pooling_max
                          : counts_padding ? dnnl_pooling_avg_include_padding
                                           : dnnl_pooling_avg_exclude_padding;
    WEIR_TRY(describe(plan->fast, alg, &w, &x->md, y_dims, &desc, err));
    return desc != NULL ? add_simple(plan, step, x, desc, NULL, out_taken, err) : WEIR_OK;
}

/* ---- over the whole plane --------------------------------------------------------------------- */

static weir_status prepare_global(struct fast_plan *plan, const struct onnx_step *step,
                                  dnnl_alg_kind_t alg, bool keeps_dims, size_t *out_taken,
                                  struct weir_error *err)
{
    const struct weir_tensor *tensor = fast_tensor(plan, step->in[0]);
    struct window w = {.rank = tensor->rank - 2};
    int64_t y_dims[WEIR_TENSOR_RANK_MAX];
    struct fast_form *x;
    dnnl_primitive_desc_t desc;
    if (tensor->rank < 3 || tensor->rank > 5) {
        return WEIR_OK;
    }
    for (int32_t i = 0; i < w.rank; i++) {
        w.in[i] = w.kernel[i] = tensor->dims[i + 2];
        w.out[i] = w.stride[i] = w.dilation[i] = 1;
    }
    window_out_dims(&w, tensor->dims[0], tensor->dims[1], y_dims);
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    WEIR_TRY(describe(plan->fast, alg, &w, &x->md, y_dims, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout flat = onednn_plain(WEIR_DTYPE_FLOAT, 2, y_dims);
    const struct weir_dnn_layout y_md = onednn_simple(onednn_query(plan, desc, dnnl_query_dst_md));
    if (!keeps_dims && !onednn_is_plain(&y_md)) {
        dnnl_primitive_desc_destroy(desc);
        return WEIR_OK;
    }
    return add_simple(plan, step, x, desc, keeps_dims ? NULL : &flat, out_taken, err);
}

weir_status fast_prepare_global_pool(struct fast_plan *plan, const struct fast_link *link,
                                     size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    bool is_max = strcmp(step->node->type, "GlobalMaxPool") == 0;
    return fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT)
               ? prepare_global(plan, step,
                                is_max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding, true,
                                out_taken, err)
               : WEIR_OK;
}

/* The mean over all dimensions behind the channels. */
weir_status fast_prepare_mean(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct weir_tensor *in[2];
    struct weir_error ignored;
    bool axes[WEIR_TENSOR_RANK_MAX], has;
    const struct onnx_call call = fast_call(plan, step, in, 2);
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) || in[0]->rank < 3 ||
        (call.n_in > 1 && in[1] != NULL && !fast_is_constant(plan, step->in[1])) ||
        onnx_axes(&call, 1, in[0]->rank, axes, &has, &ignored) != WEIR_OK || !has) {
        return WEIR_OK;
    }
    for (int32_t i = 0; i < in[0]->rank; i++) {
        if (axes[i] != (i >= 2)) {
            return WEIR_OK;
        }
    }
    return prepare_global(plan, step, dnnl_pooling_avg_exclude_padding,
                          onnx_int(&call, "keepdims", 1) != 0, out_taken, err);
}

#define LRN_MOST 1e4F /* oneDNN takes the sum of squares to the third power on its way. */

/* ---- LRN -------------------------------------------------------------------------------------- */

weir_status fast_prepare_lrn(struct fast_plan *plan, const struct fast_link *link,
                             size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct weir_tensor *in[1];
    struct fast_form *x;
    dnnl_primitive_desc_t desc;
    const struct onnx_call call = fast_call(plan, step, in, 1);
    int64_t size = onnx_int(&call, "size", 0);
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) || in[0]->rank != 4 || size < 1 ||
        size % 2 == 0 || size > 15) {
        return WEIR_OK;
    }
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    const struct weir_dnn_op op = {.kind = WEIR_DNN_LRN,
                                   .src = &x->md,
                                   .size = size,
                                   .alpha = onnx_float(&call, "alpha", 0.0001F),
                                   .beta = onnx_float(&call, "beta", 0.75F),
                                   .k = onnx_float(&call, "bias", 1)};
    WEIR_TRY(onednn_desc(plan->fast, &op, onednn_attr(false, NULL, 0), &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(add_simple(plan, step, x, desc, NULL, out_taken, err));
    struct floats *floats = WEIR_ARENA_NEW(&plan->arena, struct floats);
    *floats = (struct floats){x->md.n_bytes / sizeof(float), LRN_MOST};
    const struct fast_arg of = fast_arg_of(0, &x->md, x);
    fast_hide_nan(plan);
    return fast_add_kernel(plan, "look at the sizes", run_sizes, floats, &of, 1, err);
}
