/* Convolutions and products of bytes: from DequantizeLinear and QuantizeLinear around them, and in
 * the forms QLinearConv and QLinearMatMul. */
#include "quant.h"

#include "product.h"
#include "qproduct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** What is to be computed. */
struct spec {
    struct qproduct_form form;
    struct fast_form *x;
    enum weir_dtype x_dtype;
    float x_scale;
    int32_t x_zero;
    const struct weir_tensor *w, *w_scale, *w_zero, *bias; /* w_zero, bias: NULL if left out */
    bool by_column;                                        /* w is c x k, not k x c x kernel. */
    struct quant_tail tail;
    int32_t y_rank;
    int64_t y_dims[WEIR_TENSOR_RANK_MAX];
};

enum { SLOT_WEIGHTS = 8, SLOT_FACTORS };

/* ---- constants -------------------------------------------------------------------------------- */

static double of_channel(const struct weir_tensor *tensor, size_t k)
{
    return onnx_get(tensor, tensor->n_elems == 1 ? 0 : k);
}

static bool is_whole_or_each(const struct weir_tensor *tensor, int64_t k)
{
    return tensor == NULL || tensor->n_elems == 1 || tensor->n_elems == (size_t)k;
}

static void widen(const struct spec *spec, int16_t *out)
{
    size_t n_k = (size_t)spec->form.k, each = spec->w->n_elems / n_k;
    const uint8_t *u8 = spec->w->data;
    const int8_t *s8 = spec->w->data;
    for (size_t i = 0; i < spec->w->n_elems; i++) {
        size_t k = spec->by_column ? i % n_k : i / each;
        size_t to = spec->by_column ? k * each + i / n_k : i;
        int32_t value = spec->w->dtype == WEIR_DTYPE_INT8 ? s8[i] : u8[i];
        out[to] =
            (int16_t)(value - (spec->w_zero != NULL ? (int32_t)of_channel(spec->w_zero, k) : 0));
    }
}

static weir_status find_weights(struct fast_plan *plan, const struct spec *spec,
                                const int16_t **out, struct weir_error *err)
{
    const int64_t n = (int64_t)spec->w->n_elems;
    const struct weir_dnn_layout md = onednn_plain(WEIR_DTYPE_INT8, 1, &n);
    int16_t *packed = fast_pack_find(plan->fast, plan->i_step, SLOT_WEIGHTS, &md);
    if (packed == NULL) {
        int16_t *wide = malloc(spec->w->n_elems * sizeof *wide);
        packed = wide != NULL ? fast_pack_add(plan->fast, plan->i_step, SLOT_WEIGHTS, &md,
                                              qproduct_weights_bytes(&spec->form))
                              : NULL;
        if (packed == NULL) {
            free(wide);
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for weights");
        }
        widen(spec, wide);
        qproduct_pack(&spec->form, wide, packed);
        free(wide);
    }
    *out = packed;
    return WEIR_OK;
}

/* Bias: of floats, or whole numbers in units of both scales. */
static void fill_factors(const struct spec *spec, float *factor, float *summand)
{
    double y_scale = spec->tail.is_quantised ? spec->tail.y.scale : 1;
    for (size_t k = 0; k < (size_t)spec->form.k; k++) {
        double scale = (double)spec->x_scale * of_channel(spec->w_scale, k);
        double bias = spec->bias != NULL ? of_channel(spec->bias, k) : 0;
        bias *= spec->bias != NULL && spec->bias->dtype == WEIR_DTYPE_INT32 ? scale : 1;
        factor[k] = (float)(scale / y_scale);
        summand[k] = (float)(bias / y_scale);
    }
}

static void set_range(const struct spec *spec, struct qproduct *job)
{
    job->low = spec->tail.low;
    job->high = spec->tail.high;
    job->out = QPRODUCT_F32;
    if (spec->tail.is_quantised) {
        bool is_signed = spec->tail.y.dtype == WEIR_DTYPE_INT8;
        float zero = (float)spec->tail.y.zero;
        job->low = WEIR_MAX(job->low / spec->tail.y.scale, (is_signed ? -128 : 0) - zero);
        job->high = WEIR_MIN(job->high / spec->tail.y.scale, (is_signed ? 127 : 255) - zero);
        job->out = is_signed ? QPRODUCT_S8 : QPRODUCT_U8;
        job->y_zero = spec->tail.y.zero;
    }
}

/* ---- the action ------------------------------------------------------------------------------- */

static weir_status run_product(const void *detail, void *const *at, int32_t n_threads)
{
    struct qproduct job = *(const struct qproduct *)detail;
    job.x = at[0];
    job.y = at[1];
    job.scratch = at[2];
    qproduct_run(&job, n_threads);
    return WEIR_OK;
}

static weir_status add(struct fast_plan *plan, const struct spec *spec, struct weir_error *err)
{
    struct qproduct *job = WEIR_ARENA_NEW(&plan->arena, struct qproduct);
    size_t n_all = ((size_t)spec->form.k + 15) / 16 * 16;
    float *factors = WEIR_ARENA_ARRAY(&plan->arena, 2 * n_all, float);
    enum weir_dtype dtype = spec->tail.is_quantised ? spec->tail.y.dtype : WEIR_DTYPE_FLOAT;
    const struct weir_dnn_layout y_md = quant_layout(dtype, spec->y_rank, spec->y_dims);
    struct region_block *scratch;
    void *y, *memory;
    *job = (struct qproduct){.form = spec->form,
                             .x_is_signed = spec->x_dtype == WEIR_DTYPE_INT8,
                             .x_zero = spec->x_zero,
                             .factor = factors,
                             .summand = factors + n_all};
    fill_factors(spec, factors, factors + n_all);
    set_range(spec, job);
    WEIR_TRY(find_weights(plan, spec, &job->weights, err));
    WEIR_TRY(fast_make(plan, spec->tail.out, dtype, &y_md, &y, err));
    WEIR_TRY(fast_scratch(plan, qproduct_scratch_bytes(&spec->form), &scratch, &memory, err));
    const struct fast_arg args[] = {fast_arg_of(0, &y_md, spec->x), fast_arg_at(1, &y_md, y),
                                    fast_arg_at(2, &y_md, memory)};
    fast_hide_nan(plan); /* of its factors and summands */
    weir_status status = fast_add_kernel(plan, "product of bytes", run_product, job, args, 3, err);
    region_give(&plan->fast->region, scratch);
    return status;
}

/* Is all that is constant such as the kernel takes? */
static bool fits(const struct spec *spec)
{
    const struct qproduct_form *f = &spec->form;
    bool is_byte = spec->w->dtype == WEIR_DTYPE_INT8 || spec->w->dtype == WEIR_DTYPE_UINT8;
    bool has_bias = spec->bias != NULL;
    return qproduct_can() && is_byte && f->c > 0 && f->k > 0 &&
           f->c * f->kernel_h * f->kernel_w <= QPRODUCT_TERMS_MAX &&
           spec->w_scale->dtype == WEIR_DTYPE_FLOAT && is_whole_or_each(spec->w_scale, f->k) &&
           is_whole_or_each(spec->w_zero, f->k) &&
           (!has_bias ||
            (spec->bias->n_elems == (size_t)f->k &&
             (spec->bias->dtype == WEIR_DTYPE_FLOAT || spec->bias->dtype == WEIR_DTYPE_INT32)));
}

/* ---- what is read ----------------------------------------------------------------------------- */

static const struct weir_tensor *constant(const struct fast_plan *plan,
                                          const struct onnx_step *step, size_t i)
{
    bool is = i < step->node->n_in && step->in[i] >= 0 && fast_is_given(plan, step->in[i]);
    return is ? fast_tensor(plan, step->in[i]) : NULL;
}

static bool has(const struct onnx_step *step, size_t i)
{
    return i < step->node->n_in && step->in[i] >= 0;
}

/* Weights that DequantizeLinear made at load from bytes: those bytes. */
static bool read_weights(const struct fast_plan *plan, int32_t value, int32_t axis,
                         struct spec *spec)
{
    int32_t i_step = plan->fast->chains.producer[value];
    const struct onnx_step *step = i_step >= 0 ? &plan->fast->onnx->steps[i_step] : NULL;
    if (step == NULL || strcmp(step->node->type, "DequantizeLinear") != 0 ||
        !fast_is_given(plan, value)) {
        return false;
    }
    struct weir_tensor *in[1];
    const struct onnx_call call = fast_call(plan, step, in, 1);
    spec->w = constant(plan, step, 0);
    spec->w_scale = constant(plan, step, 1);
    spec->w_zero = constant(plan, step, 2);
    if (spec->w == NULL || spec->w_scale == NULL || onnx_int(&call, "block_size", 0) != 0) {
        return false;
    }
    int64_t at = onnx_int(&call, "axis", 1);
    return spec->w_scale->n_elems == 1 || (at < 0 ? at + spec->w->rank : at) == axis;
}

static bool read_lazy(const struct fast_plan *plan, int32_t value, struct spec *spec)
{
    const struct fast_lazy *lazy = plan->values[value].lazy;
    if (lazy != NULL) {
        spec->x = lazy->form;
        spec->x_dtype = lazy->dtype;
        spec->x_scale = lazy->scale;
        spec->x_zero = lazy->zero;
    }
    return lazy != NULL;
}

static bool read_conv(const struct fast_plan *plan, const struct onnx_step *step, size_t i_w,
                      struct spec *spec)
{
    struct weir_tensor *in[4];
    struct weir_error ignored;
    struct window w;
    const struct onnx_call call = fast_call(plan, step, in, 4);
    const struct weir_tensor *x = in[0], *weights = in[i_w];
    if (x->rank != 4 || weights->rank != 4 || onnx_int(&call, "group", 1) != 1 ||
        weights->dims[1] != x->dims[1] || x->n_elems == 0 ||
        window_read(&call, x, weights->dims + 2, false, &w, &ignored) != WEIR_OK || w.n_out == 0 ||
        !fast_is_usual(&w)) {
        return false;
    }
    window_out_dims(&w, x->dims[0], weights->dims[0], spec->y_dims);
    spec->y_rank = 4;
    int64_t reach[2];
    for (int i = 0; i < 2; i++) { /* what the last window reads beyond the image */
        reach[i] = (w.out[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 -
                   w.before[i] - w.in[i];
    }
    spec->form = (struct qproduct_form){.n = x->dims[0],
                                        .c = x->dims[1],
                                        .h = w.in[0],
                                        .w = w.in[1],
                                        .k = weights->dims[0],
                                        .out_h = w.out[0],
                                        .out_w = w.out[1],
                                        .kernel_h = w.kernel[0],
                                        .kernel_w = w.kernel[1],
                                        .stride_h = w.stride[0],
                                        .stride_w = w.stride[1],
                                        .dilation_h = w.dilation[0],
                                        .dilation_w = w.dilation[1],
                                        .pad_h = w.before[0],
                                        .pad_w = w.before[1],
                                        .after_h = WEIR_MAX(reach[0], (int64_t)0),
                                        .after_w = WEIR_MAX(reach[1], (int64_t)0)};
    return true;
}

/* Rows of x times a matrix: images of one pixel. */
static bool read_matrix(const struct weir_tensor *x, const struct weir_tensor *w, bool by_column,
                        struct spec *spec)
{
    if (x->rank < 2 || w->rank != 2 || x->n_elems == 0 || w->n_elems == 0 ||
        x->dims[x->rank - 1] != w->dims[by_column ? 0 : 1]) {
        return false;
    }
    int64_t c = x->dims[x->rank - 1], k = w->dims[by_column ? 1 : 0];
    memcpy(spec->y_dims, x->dims, sizeof spec->y_dims);
    spec->y_dims[x->rank - 1] = k;
    spec->y_rank = x->rank;
    spec->by_column = by_column;
    spec->form = (struct qproduct_form){.n = 1,
                                        .c = c,
                                        .h = 1,
                                        .w = (int64_t)x->n_elems / c,
                                        .k = k,
                                        .out_h = 1,
                                        .out_w = (int64_t)x->n_elems / c,
                                        .kernel_h = 1,
                                        .kernel_w = 1,
                                        .stride_h = 1,
                                        .stride_w = 1,
                                        .dilation_h = 1,
                                        .dilation_w = 1};
    return true;
}

/* x of a convolution lies channels last, that of a product in plain order. */
static weir_status place_lazy(struct fast_plan *plan, int32_t value, bool is_conv,
                              struct spec *spec, struct weir_error *err)
{
    const struct weir_tensor *tensor = fast_tensor(plan, value);
    const struct weir_dnn_layout given =
        is_conv ? quant_layout(spec->x_dtype, tensor->rank, tensor->dims)
                : onednn_plain(spec->x_dtype, tensor->rank, tensor->dims);
    return fast_bytes_as(plan, value, &given, &spec->x, err);
}

/* ---- QDQ -------------------------------------------------------------------------------------- */

weir_status quant_prepare_conv(struct fast_plan *plan, const struct fast_link *link,
                               size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct spec spec = {.bias = constant(plan, step, 2)};
    if (step->node->n_out != 1 || !has(step, 0) || !has(step, 1) ||
        !read_lazy(plan, step->in[0], &spec) || !read_weights(plan, step->in[1], 0, &spec) ||
        !read_conv(plan, step, 1, &spec) || (has(step, 2) && spec.bias == NULL) || !fits(&spec) ||
        (spec.bias != NULL && spec.bias->dtype != WEIR_DTYPE_FLOAT)) {
        return WEIR_OK;
    }
    quant_tail_read(plan, link, &spec.tail);
    WEIR_TRY(place_lazy(plan, step->in[0], true, &spec, err));
    *out_taken = spec.tail.n_taken;
    return add(plan, &spec, err);
}

weir_status quant_prepare_gemm(struct fast_plan *plan, const struct fast_link *link,
                               size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct spec spec = {.bias = constant(plan, step, 2)};
    struct weir_tensor *in[3];
    const struct onnx_call call = fast_call(plan, step, in, 3);
    bool by_column = onnx_int(&call, "transB", 0) == 0;
    if (step->node->n_out != 1 || !has(step, 0) || !has(step, 1) ||
        !read_lazy(plan, step->in[0], &spec) ||
        !read_weights(plan, step->in[1], by_column ? 1 : 0, &spec) ||
        onnx_int(&call, "transA", 0) != 0 || onnx_float(&call, "alpha", 1) != 1 ||
        onnx_float(&call, "beta", 1) != 1 || (has(step, 2) && spec.bias == NULL) ||
        !read_matrix(in[0], spec.w, by_column, &spec) || !fits(&spec) ||
        (spec.bias != NULL && spec.bias->dtype != WEIR_DTYPE_FLOAT)) {
        return WEIR_OK;
    }
    if (spec.y_rank == 4) {
        return WEIR_OK; /* its result would be taken for one with channels last */
    }
    quant_tail_read(plan, link, &spec.tail);
    WEIR_TRY(place_lazy(plan, step->in[0], false, &spec, err));
    *out_taken = spec.tail.n_taken;
    return add(plan, &spec, err);
}

/* ---- QLinearConv and QLinearMatMul ------------------------------------------------------------ */

enum { Q_X, Q_X_SCALE, Q_X_ZERO, Q_W, Q_W_SCALE, Q_W_ZERO, Q_Y_SCALE, Q_Y_ZERO, Q_BIAS };

static bool read_qlinear(const struct fast_plan *plan, const struct onnx_step *step,
                         struct spec *spec)
{
    struct quant_scale x;
    const struct weir_tensor *tensor = fast_tensor(plan, step->in[Q_X]);
    spec->w = constant(plan, step, Q_W);
    spec->w_scale = constant(plan, step, Q_W_SCALE);
    spec->w_zero = constant(plan, step, Q_W_ZERO);
    spec->bias = constant(plan, step, Q_BIAS);
    if (spec->w == NULL || spec->w_scale == NULL || spec->w_zero == NULL || tensor->rank == 0 ||
        !quant_read(plan, step, Q_X_SCALE, &x) || x.dtype != tensor->dtype ||
        !quant_read(plan, step, Q_Y_SCALE, &spec->tail.y) ||
        (has(step, Q_BIAS) && spec->bias == NULL)) {
        return false;
    }
    spec->x_dtype = x.dtype;
    spec->x_scale = x.scale;
    spec->x_zero = x.zero;
    spec->tail.low = -INFINITY;
    spec->tail.high = INFINITY;
    spec->tail.is_quantised = true;
    spec->tail.out = step->out[0];
    return true;
}

weir_status fast_prepare_qlinear_conv(struct fast_plan *plan, const struct fast_link *link,
                                      size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct spec spec = {.bias = NULL};
    if (!read_qlinear(plan, step, &spec) || !read_conv(plan, step, Q_W, &spec) || !fits(&spec)) {
        return WEIR_OK;
    }
    const struct weir_tensor *x = fast_tensor(plan, step->in[Q_X]);
    const struct weir_dnn_layout md = quant_layout(spec.x_dtype, x->rank, x->dims);
    WEIR_TRY(fast_form_as(plan, step->in[Q_X], &md, &spec.x, err));
    *out_taken = 1;
    return add(plan, &spec, err);
}

weir_status fast_prepare_qlinear_matmul(struct fast_plan *plan, const struct fast_link *link,
                                        size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct spec spec = {.bias = NULL};
    if (!read_qlinear(plan, step, &spec) ||
        !read_matrix(fast_tensor(plan, step->in[Q_X]), spec.w, true, &spec) || spec.y_rank == 4 ||
        !fits(&spec)) {
        return WEIR_OK;
    }
    WEIR_TRY(fast_form_plain(plan, step->in[Q_X], &spec.x, err));
    *out_taken = 1;
    return add(plan, &spec, err);
}
