/* Transposed convolutions with windows that do not meet: the kernel is as large as the stride. Where pixels lie one behind
 * the other with their channels (nhwc), a row of the kernel makes rows of the result by one product: the channels of a pixel
 * times the weights of its taps are the result's next pixels. */
#include "conv.h"

#include <string.h>

static bool are_apart(const struct conv *conv)
{
    const struct window *w = &conv->window;
    bool are = conv->is_turned && conv->groups == 1 && w->rank == 2;
    for (int32_t i = 0; are && i < w->rank; i++) {
        are = w->kernel[i] == w->stride[i] && w->dilation[i] == 1 && w->before[i] == 0 &&
              w->after[i] == 0 && w->out[i] == w->in[i] * w->stride[i];
    }
    return are;
}

static bool by_pixel(int rank, const int64_t *dims, struct weir_dnn_layout *out)
{
    return weir_dnn_layout_named(out, rank, dims, dnnl_f32, dnnl_nhwc) == dnnl_success;
}

/** The products: of rows of pixels by weights, each into rows of the result that are kernel[0] apart. */
struct rows {
    struct weir_dnn_layout x, w, y, bias; /**< Each product has these. */
    struct weir_dnn_layout whole_x, whole_y;
    int64_t n_rows, n_in, n_columns;
    float *weights, *biases;
};

static bool describe_rows(const struct conv *conv, struct rows *rows)
{
    const struct window *w = &conv->window;
    rows->n_rows = conv->x->dims[0] * w->in[0];
    rows->n_in = conv->x->dims[1];
    rows->n_columns = w->kernel[1] * (int64_t)conv->n_channels;
    const int64_t x[] = {rows->n_rows, w->in[1], rows->n_in};
    const int64_t weights[] = {1, rows->n_in, rows->n_columns}, bias[] = {1, 1, rows->n_columns};
    const int64_t y[] = {rows->n_rows, w->in[1], rows->n_columns};
    const int64_t strides[] = {w->kernel[0] * w->in[1] * rows->n_columns, rows->n_columns, 1};
    rows->x = onednn_plain(WEIR_DTYPE_FLOAT, 3, x);
    rows->w = onednn_plain(WEIR_DTYPE_FLOAT, 3, weights);
    rows->bias = onednn_plain(WEIR_DTYPE_FLOAT, 3, bias);
    return by_pixel(4, conv->x->dims, &rows->whole_x) &&
           by_pixel(4, conv->y_dims, &rows->whole_y) &&
           weir_dnn_layout_strided(&rows->y, 3, y, dnnl_f32, strides) == dnnl_success;
}

/* The model has [input][output][row][column]; a product wants [row][input][column][output], and a bias of each column. */
static void fill(const struct conv *conv, const float *bias, struct rows *rows)
{
    const float *from = conv->w->data, *scale = conv->tail.scale;
    const size_t n_in = (size_t)rows->n_in, n_out = conv->n_channels;
    const size_t n_y = (size_t)conv->window.kernel[0], n_x = (size_t)conv->window.kernel[1];
    for (size_t i = 0; i < conv->w->n_elems; i++) {
        const size_t column = i % n_x, row = i / n_x % n_y, out = i / (n_x * n_y) % n_out;
        const size_t in = i / (n_x * n_y * n_out);
        const size_t to = ((row * n_in + in) * n_x + column) * n_out + out;
        rows->weights[to] = from[i] * (scale != NULL ? scale[out] : 1);
    }
    for (size_t i = 0; i < n_x * n_out; i++) {
        rows->biases[i] = bias != NULL ? bias[i % n_out] : 0;
    }
}

static weir_status pack(struct fast_plan *plan, size_t step, const struct conv *conv,
                        struct rows *rows, struct weir_error *err)
{
    const int slot = product_slot(PRODUCT_ROWS, &conv->tail);
    const size_t n_biases = (size_t)rows->n_columns;
    float *bias;
    rows->weights = fast_pack_find(plan->fast, step, slot, &conv->w_md);
    if (rows->weights != NULL) {
        rows->biases = rows->weights + conv->w->n_elems;
        return WEIR_OK;
    }
    WEIR_TRY(product_bias(plan, step, conv->bias, &conv->tail, conv->n_channels, &bias, err));
    rows->weights = fast_pack_add(plan->fast, step, slot, &conv->w_md,
                                  (conv->w->n_elems + n_biases) * sizeof(float));
    if (rows->weights == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for weights");
    }
    rows->biases = rows->weights + conv->w->n_elems;
    fill(conv, bias, rows);
    return WEIR_OK;
}

static weir_status describe(struct fast_plan *plan, const struct conv *conv,
                            const struct rows *rows, dnnl_primitive_desc_t *out,
                            struct weir_error *err)
{
    const struct weir_dnn_op op = {.kind = WEIR_DNN_MATMUL,
                                   .src = &rows->x,
                                   .weights = &rows->w,
                                   .bias = &rows->bias,
                                   .dst = &rows->y};
    return onednn_desc(plan->fast, &op,
                       onednn_attr(conv->tail.added >= 0, conv->tail.acts, conv->tail.n_acts), out,
                       err);
}

static weir_status add_row(struct fast_plan *plan, const struct conv *conv, struct rows *rows,
                           const struct fast_form *x, float *y, int64_t row, struct weir_error *err)
{
    const int64_t n_weights = rows->n_in * rows->n_columns;
    const struct fast_arg args[] = {
        fast_arg_of(DNNL_ARG_SRC, &rows->x, x),
        fast_arg_at(DNNL_ARG_WEIGHTS, &rows->w, rows->weights + row * n_weights),
        fast_arg_at(DNNL_ARG_BIAS, &rows->bias, rows->biases),
        fast_arg_at(DNNL_ARG_DST, &rows->y, y + row * conv->window.in[1] * rows->n_columns)};
    dnnl_primitive_desc_t desc;
    WEIR_TRY(describe(plan, conv, rows, &desc, err));
    if (conv->tail.n_acts > 0) {
        fast_hide_nan(plan);
    }
    return fast_add_primitive(plan, desc, args, 4, err);
}

static weir_status add(struct fast_plan *plan, size_t step, const struct conv *conv,
                       struct rows *rows, struct weir_error *err)
{
    struct fast_form *x;
    void *y;
    WEIR_TRY(fast_form_as(plan, plan->fast->onnx->steps[step].in[0], &rows->whole_x, &x, err));
    WEIR_TRY(pack(plan, step, conv, rows, err));
    const struct fast_form *reads[] = {x};
    WEIR_TRY(product_result(plan, &conv->tail, &rows->whole_y, reads, 1, &y, err));
    for (int64_t row = 0; row < conv->window.kernel[0]; row++) {
        WEIR_TRY(add_row(plan, conv, rows, x, y, row, err));
    }
    return WEIR_OK;
}

weir_status conv_add_apart(struct fast_plan *plan, size_t step, const struct conv *conv,
                           bool *out_has, struct weir_error *err)
{
    struct fast_form *x;
    *out_has = false;
    if (!are_apart(conv)) {
        return WEIR_OK;
    }
    struct rows *rows = WEIR_ARENA_NEW(&plan->arena, struct rows);
    WEIR_TRY(fast_form_any(plan, plan->fast->onnx->steps[step].in[0], &x, err));
    /* What is in plain order must be reordered either way; oneDNN's blocks suit its deconvolution. */
    if (!describe_rows(conv, rows) ||
        !(onednn_is_plain(&x->md) || weir_dnn_layout_equal(&x->md, &rows->whole_x))) {
        return WEIR_OK;
    }
    dnnl_primitive_desc_t desc;
    WEIR_TRY(describe(plan, conv, rows, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    dnnl_primitive_desc_destroy(desc);
    *out_has = true;
    return add(plan, step, conv, rows, err);
}
