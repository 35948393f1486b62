#include "quant.h"

#include "plan_private.h"
#include "qeltwise.h"
#include "tail.h"
#include "threads.h"

#include <math.h>
#include <string.h>

struct weir_dnn_layout quant_layout(enum weir_dtype dtype, int32_t rank, const int64_t *dims)
{
    struct weir_dnn_layout md;
    dnnl_dims_t all = {0};
    memcpy(all, dims, (size_t)rank * sizeof *dims);
    if (rank != 4 ||
        weir_dnn_layout_named(&md, 4, all, onednn_dtype(dtype), dnnl_nhwc) != dnnl_success) {
        return onednn_plain(dtype, rank, dims);
    }
    return md;
}

static bool is_byte(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_UINT8 || dtype == WEIR_DTYPE_INT8;
}

bool quant_read(const struct fast_plan *plan, const struct onnx_step *step, size_t i_scale,
                struct quant_scale *out)
{
    const float *scale =
        i_scale < step->node->n_in ? fast_floats(plan, step->in[i_scale], 1) : NULL;
    if (scale == NULL || fast_tensor(plan, step->in[i_scale])->n_elems != 1 || !(scale[0] > 0) ||
        isinf(scale[0])) {
        return false;
    }
    *out = (struct quant_scale){WEIR_DTYPE_UINT8, scale[0], 0};
    if (i_scale + 1 >= step->node->n_in || step->in[i_scale + 1] < 0) {
        return true;
    }
    const struct weir_tensor *zero = fast_tensor(plan, step->in[i_scale + 1]);
    if (!fast_is_constant(plan, step->in[i_scale + 1]) || zero->n_elems != 1 ||
        !is_byte(zero->dtype)) {
        return false;
    }
    out->dtype = zero->dtype;
    out->zero = (int32_t)onnx_get(zero, 0);
    return true;
}

static bool is_plain_node(const struct fast_plan *plan, const struct onnx_step *step)
{
    struct weir_tensor *in[1];
    const struct onnx_call call = fast_call(plan, step, in, 1);
    return onnx_int(&call, "block_size", 0) == 0 && onnx_int(&call, "output_dtype", 0) == 0 &&
           onnx_int(&call, "precision", 0) == 0;
}

static struct qbytes bytes_of(const struct quant_scale *scale)
{
    return (struct qbytes){scale->scale, scale->zero, scale->dtype == WEIR_DTYPE_INT8};
}

void quant_tail_read(const struct fast_plan *plan, const struct fast_link *link,
                     struct quant_tail *tail)
{
    struct onednn_act acts[TAIL_ACTS_MAX];
    size_t i = 1;
    *tail = (struct quant_tail){.n_taken = 1, .low = -INFINITY, .high = INFINITY};
    if (i < link->n && fast_step(plan, link, i)->in[0] == fast_step(plan, link, 0)->out[0] &&
        tail_activation(plan, fast_step(plan, link, i), acts) == 1) {
        bool is_relu = acts[0].alg == dnnl_eltwise_relu && acts[0].alpha == 0;
        if (is_relu || acts[0].alg == dnnl_eltwise_clip) {
            tail->low = is_relu ? 0 : acts[0].alpha;
            tail->high = is_relu ? INFINITY : acts[0].beta;
            tail->n_taken = ++i;
        }
    }
    if (i < link->n && strcmp(fast_step(plan, link, i)->node->type, "QuantizeLinear") == 0 &&
        is_plain_node(plan, fast_step(plan, link, i)) &&
        quant_read(plan, fast_step(plan, link, i), 1, &tail->y)) {
        tail->is_quantised = true;
        tail->n_taken = i + 1;
    }
    tail->out = fast_step(plan, link, tail->n_taken - 1)->out[0];
}

/* ---- QuantizeLinear --------------------------------------------------------------------------- */

struct elements {
    struct qbytes a, b, y;
    float low, high;
    size_t n;
};

struct elements_job {
    const struct elements *detail;
    void *const *at;
};

static void quantize_part(const void *part, int32_t i, int32_t n)
{
    const struct elements_job *job = part;
    size_t first = threads_share(job->detail->n, i, n),
           end = threads_share(job->detail->n, i + 1, n);
    qeltwise_quantize((const float *)job->at[0] + first, &job->detail->y,
                      (char *)job->at[1] + first, end - first);
}

static void dequantize_part(const void *part, int32_t i, int32_t n)
{
    const struct elements_job *job = part;
    size_t first = threads_share(job->detail->n, i, n),
           end = threads_share(job->detail->n, i + 1, n);
    qeltwise_dequantize((const char *)job->at[0] + first, &job->detail->a,
                        (float *)job->at[1] + first, end - first);
}

static void add_part(const void *part, int32_t i, int32_t n)
{
    const struct elements_job *job = part;
    const struct elements *d = job->detail;
    size_t first = threads_share(d->n, i, n), end = threads_share(d->n, i + 1, n);
    qeltwise_add((const char *)job->at[0] + first, &d->a, (const char *)job->at[2] + first, &d->b,
                 d->low, d->high, &d->y, (char *)job->at[1] + first, end - first);
}

#define PARALLEL_ELEMENTS 16384

static weir_status run_elements(threads_fn fn, const void *detail, void *const *at,
                                int32_t n_threads)
{
    const struct elements_job job = {detail, at};
    threads_run(job.detail->n < PARALLEL_ELEMENTS ? 1 : n_threads, fn, &job);
    return WEIR_OK;
}

static weir_status run_quantize(const void *detail, void *const *at, int32_t n_threads)
{
    return run_elements(quantize_part, detail, at, n_threads);
}

static weir_status run_dequantize(const void *detail, void *const *at, int32_t n_threads)
{
    return run_elements(dequantize_part, detail, at, n_threads);
}

static weir_status run_add(const void *detail, void *const *at, int32_t n_threads)
{
    return run_elements(add_part, detail, at, n_threads);
}

weir_status fast_prepare_quantize(struct fast_plan *plan, const struct fast_link *link,
                                  size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct quant_scale scale;
    struct fast_form *x;
    void *y;
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) || !is_plain_node(plan, step) ||
        !quant_read(plan, step, 1, &scale)) {
        return WEIR_OK;
    }
    const struct weir_tensor *tensor = fast_tensor(plan, step->in[0]);
    const struct fast_lazy *lazy = plan->values[step->in[0]].lazy;
    *out_taken = 1;
    if (lazy != NULL && lazy->dtype == scale.dtype && lazy->scale == scale.scale &&
        lazy->zero == scale.zero) {
        return fast_make_shared(plan, step->out[0], lazy, err);
    }
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    if (!onednn_is_plain(&x->md)) {
        const struct weir_dnn_layout last =
            quant_layout(WEIR_DTYPE_FLOAT, tensor->rank, tensor->dims);
        WEIR_TRY(fast_form_as(plan, step->in[0], &last, &x, err));
    }
    const struct weir_dnn_layout y_md = onednn_is_plain(&x->md)
                                            ? onednn_plain(scale.dtype, tensor->rank, tensor->dims)
                                            : quant_layout(scale.dtype, tensor->rank, tensor->dims);
    struct elements *detail = WEIR_ARENA_NEW(&plan->arena, struct elements);
    *detail = (struct elements){.y = bytes_of(&scale), .n = tensor->n_elems};
    WEIR_TRY(fast_make(plan, step->out[0], scale.dtype, &y_md, &y, err));
    const struct fast_arg args[] = {fast_arg_of(0, &x->md, x), fast_arg_at(1, &y_md, y)};
    fast_hide_nan(plan);
    return fast_add_kernel(plan, "quantize", run_quantize, detail, args, 2, err);
}

/* ---- DequantizeLinear ------------------------------------------------------------------------- */

static weir_status add_dequantize(struct fast_plan *plan, const struct fast_form *x,
                                  const struct quant_scale *scale, size_t n, void *y,
                                  struct weir_error *err)
{
    struct elements *detail = WEIR_ARENA_NEW(&plan->arena, struct elements);
    *detail = (struct elements){.a = bytes_of(scale), .n = n};
    const struct fast_arg args[] = {fast_arg_of(0, &x->md, x), fast_arg_at(1, &x->md, y)};
    return fast_add_kernel(plan, "dequantize", run_dequantize, detail, args, 2, err);
}

weir_status fast_prepare_dequantize(struct fast_plan *plan, const struct fast_link *link,
                                    size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct quant_scale scale;
    struct fast_form *x;
    void *y;
    const struct weir_tensor *tensor = fast_tensor(plan, step->in[0]);
    if (tensor == NULL || !is_byte(tensor->dtype) || tensor->rank == 0 || tensor->n_elems == 0 ||
        !is_plain_node(plan, step) || !quant_read(plan, step, 1, &scale)) {
        return WEIR_OK;
    }
    scale.dtype = tensor->dtype; /* of x; the zero point may be left out */
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    *out_taken = 1;
    if (x->block != NULL) {
        return fast_make_lazy(plan, step->out[0], x, tensor, scale.scale, scale.zero, err);
    }
    const struct weir_dnn_layout md = onednn_plain(WEIR_DTYPE_FLOAT, tensor->rank, tensor->dims);
    WEIR_TRY(fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT, &md, &y, err));
    return add_dequantize(plan, x, &scale, tensor->n_elems, y, err);
}

weir_status fast_unlazy(struct fast_plan *plan, int32_t value, struct weir_error *err)
{
    const struct fast_lazy *lazy = plan->values[value].lazy;
    const struct weir_tensor *tensor = plan->values[value].tensor;
    const struct quant_scale scale = {lazy->dtype, lazy->scale, lazy->zero};
    const struct weir_dnn_layout md =
        onednn_is_plain(&lazy->form->md)
            ? onednn_plain(WEIR_DTYPE_FLOAT, tensor->rank, tensor->dims)
            : quant_layout(WEIR_DTYPE_FLOAT, tensor->rank, tensor->dims);
    void *y;
    WEIR_TRY(fast_add_form(plan, value, &md, &y, err));
    return add_dequantize(plan, lazy->form, &scale, tensor->n_elems, y, err);
}

/* ---- sums ------------------------------------------------------------------------------------- */

weir_status quant_prepare_add(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct quant_tail tail;
    struct weir_dnn_layout md;
    void *y;
    if (step->node->n_in != 2 || step->in[0] < 0 || step->in[1] < 0 || link->n < 2) {
        return WEIR_OK;
    }
    const struct fast_lazy *a = plan->values[step->in[0]].lazy, *b = plan->values[step->in[1]].lazy;
    quant_tail_read(plan, link, &tail);
    if (a == NULL || b == NULL || !tail.is_quantised ||
        !weir_dnn_layout_equal(&a->form->md, &b->form->md) || a->dtype != b->dtype ||
        weir_dnn_layout_retyped(&md, &a->form->md, onednn_dtype(tail.y.dtype)) != dnnl_success) {
        return WEIR_OK;
    }
    const struct weir_tensor *tensor = plan->values[step->in[0]].tensor;
    struct elements *detail = WEIR_ARENA_NEW(&plan->arena, struct elements);
    *detail = (struct elements){.a = {a->scale, a->zero, a->dtype == WEIR_DTYPE_INT8},
                                .b = {b->scale, b->zero, b->dtype == WEIR_DTYPE_INT8},
                                .y = bytes_of(&tail.y),
                                .low = tail.low,
                                .high = tail.high,
                                .n = tensor->n_elems};
    WEIR_TRY(fast_make(plan, tail.out, tail.y.dtype, &md, &y, err));
    const struct fast_arg args[] = {fast_arg_of(0, &md, a->form), fast_arg_at(1, &md, y),
                                    fast_arg_of(2, &md, b->form)};
    *out_taken = tail.n_taken;
    return fast_add_kernel(plan, "add of bytes", run_add, detail, args, 3, err);
}
