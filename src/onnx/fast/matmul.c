/* Products of matrices in f32: Gemm and MatMul. */
#include "product.h"
#include "quant.h"

#include <string.h>

struct gemm {
    struct tail tail;
    int64_t n_rows, n_inner, n_columns;
    bool is_transposed; /* The constant has a row for each column of the result. */
    const struct weir_tensor *w;
    const float *bias;
    int32_t x;
    int32_t y_rank;
    int64_t y_dims[WEIR_TENSOR_RANK_MAX];
    struct weir_dnn_layout bias_md;
};

/* ---- by a constant matrix --------------------------------------------------------------------- */

static struct weir_dnn_layout weights_as_they_are(const struct gemm *gemm)
{
    struct weir_dnn_layout md;
    const dnnl_dims_t dims = {gemm->n_columns, gemm->n_inner};
    const dnnl_dims_t strides = {gemm->is_transposed ? gemm->n_inner : 1,
                                 gemm->is_transposed ? 1 : gemm->n_columns};
    (void)weir_dnn_layout_strided(&md, 2, dims, dnnl_f32, strides);
    return md;
}

static weir_status describe(struct fast_plan *plan, struct gemm *gemm, dnnl_primitive_desc_t *out,
                            struct weir_error *err)
{
    const int64_t x_dims[] = {gemm->n_rows, gemm->n_inner};
    const int64_t w_dims[] = {gemm->n_columns, gemm->n_inner};
    const int64_t y_dims[] = {gemm->n_rows, gemm->n_columns};
    const struct weir_dnn_layout x_md = onednn_plain(WEIR_DTYPE_FLOAT, 2, x_dims);
    const struct weir_dnn_layout w_md = onednn_any(dnnl_f32, 2, w_dims);
    const struct weir_dnn_layout y_md = onednn_plain(WEIR_DTYPE_FLOAT, 2, y_dims);
    bool has_bias = gemm->bias != NULL || gemm->tail.shift != NULL;
    const struct weir_dnn_op op = {.kind = WEIR_DNN_LINEAR_FORWARD,
                                   .src = &x_md,
                                   .weights = &w_md,
                                   .bias = has_bias ? &gemm->bias_md : NULL,
                                   .dst = &y_md};
    return onednn_desc(plan->fast, &op,
                       onednn_attr(gemm->tail.added >= 0, gemm->tail.acts, gemm->tail.n_acts), out,
                       err);
}

static weir_status place(struct fast_plan *plan, size_t step, struct gemm *gemm,
                         const_dnnl_primitive_desc_t desc, struct fast_arg args[4],
                         struct weir_error *err)
{
    const struct weir_dnn_layout *w_md = onednn_query(plan, desc, dnnl_query_weights_md);
    const struct weir_dnn_layout plain = weights_as_they_are(gemm);
    const struct weir_dnn_layout y_md = onednn_plain(WEIR_DTYPE_FLOAT, gemm->y_rank, gemm->y_dims);
    struct fast_form *x;
    void *w, *y;
    float *bias;
    WEIR_TRY(fast_form_plain(plan, gemm->x, &x, err));
    const struct product_matrix weights = {.values = gemm->w,
                                           .plain = &plain,
                                           .n_channels = (size_t)gemm->n_columns,
                                           .n_inner =
                                               gemm->is_transposed ? (size_t)gemm->n_inner : 1};
    WEIR_TRY(product_weights(plan, step, &weights, w_md, &gemm->tail, &w, err));
    WEIR_TRY(
        product_bias(plan, step, gemm->bias, &gemm->tail, (size_t)gemm->n_columns, &bias, err));
    const struct fast_form *reads[] = {x};
    WEIR_TRY(product_result(plan, &gemm->tail, &y_md, reads, 1, &y, err));
    args[0] = fast_arg_of(DNNL_ARG_SRC, onednn_query(plan, desc, dnnl_query_src_md), x);
    args[1] = fast_arg_at(DNNL_ARG_WEIGHTS, w_md, w);
    args[2] = fast_arg_at(DNNL_ARG_DST, onednn_query(plan, desc, dnnl_query_dst_md), y);
    args[3] = fast_arg_at(DNNL_ARG_BIAS, &gemm->bias_md, bias);
    return WEIR_OK;
}

static weir_status prepare_constant(struct fast_plan *plan, const struct fast_link *link,
                                    struct gemm *gemm, size_t *out_taken, struct weir_error *err)
{
    struct fast_arg args[4];
    dnnl_primitive_desc_t desc;
    gemm->bias_md = onednn_plain(WEIR_DTYPE_FLOAT, 1, &gemm->n_columns);
    tail_read(plan, link, gemm->y_rank, gemm->y_dims, gemm->y_rank - 1, &gemm->tail);
    WEIR_TRY(describe(plan, gemm, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    weir_status status = place(plan, link->steps[0], gemm, desc, args, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    *out_taken = gemm->tail.n_taken;
    if (gemm->tail.n_acts > 0) {
        fast_hide_nan(plan);
    }
    return fast_add_primitive(plan, desc, args, args[3].data != NULL ? 4 : 3, err);
}

/* ---- Gemm ------------------------------------------------------------------------------------- */

static bool read_gemm(struct fast_plan *plan, const struct onnx_step *step, struct gemm *gemm)
{
    struct weir_tensor *in[3];
    const struct onnx_call call = fast_call(plan, step, in, 3);
    bool has = fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) &&
               fast_has_input(plan, step, 1, WEIR_DTYPE_FLOAT) &&
               fast_is_given(plan, step->in[1]) && in[0]->rank == 2 && in[1]->rank == 2 &&
               onnx_float(&call, "alpha", 1) == 1 && onnx_int(&call, "transA", 0) == 0;
    if (!has) {
        return false;
    }
    gemm->w = in[1];
    gemm->x = step->in[0];
    gemm->is_transposed = onnx_int(&call, "transB", 0) != 0;
    gemm->n_rows = in[0]->dims[0];
    gemm->n_inner = in[0]->dims[1];
    gemm->n_columns = in[1]->dims[gemm->is_transposed ? 0 : 1];
    gemm->y_rank = 2;
    gemm->y_dims[0] = gemm->n_rows;
    gemm->y_dims[1] = gemm->n_columns;
    bool has_bias = step->node->n_in > 2 && step->in[2] >= 0;
    if (has_bias) {
        gemm->bias = fast_floats(plan, step->in[2], (size_t)gemm->n_columns);
        has = gemm->bias != NULL && onnx_float(&call, "beta", 1) == 1 &&
              in[2]->n_elems == (size_t)gemm->n_columns &&
              in[2]->dims[WEIR_MAX(in[2]->rank, 1) - 1] == gemm->n_columns;
    }
    return has && gemm->n_inner == in[1]->dims[gemm->is_transposed ? 1 : 0];
}

weir_status fast_prepare_gemm(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err)
{
    struct gemm gemm = {.bias = NULL};
    WEIR_TRY(quant_prepare_gemm(plan, link, out_taken, err));
    if (*out_taken > 0 || !read_gemm(plan, fast_step(plan, link, 0), &gemm)) {
        return WEIR_OK;
    }
    return prepare_constant(plan, link, &gemm, out_taken, err);
}

/* ---- MatMul ----------------------------------------------------------------------------------- */

/* Of two tensors, both in plain order. */
static weir_status prepare_both(struct fast_plan *plan, const struct onnx_step *step,
                                size_t *out_taken, struct weir_error *err)
{
    const struct weir_tensor *in[2] = {fast_tensor(plan, step->in[0]),
                                       fast_tensor(plan, step->in[1])};
    int32_t rank = WEIR_MAX(in[0]->rank, in[1]->rank);
    int64_t dims[3][WEIR_TENSOR_RANK_MAX];
    struct weir_dnn_layout md[3];
    struct fast_form *form[2];
    void *y;
    for (int k = 0; k < 2; k++) {
        for (int32_t i = 0; i < rank; i++) {
            int32_t at = i - (rank - in[k]->rank);
            dims[k][i] = at >= 0 ? in[k]->dims[at] : 1;
        }
        md[k] = onednn_plain(WEIR_DTYPE_FLOAT, rank, dims[k]);
    }
    for (int32_t i = 0; i < rank; i++) {
        dims[2][i] = i == rank - 2   ? dims[0][i]
                     : i == rank - 1 ? dims[1][i]
                                     : WEIR_MAX(dims[0][i], dims[1][i]);
    }
    md[2] = onednn_plain(WEIR_DTYPE_FLOAT, rank, dims[2]);
    const struct weir_dnn_op op = {
        .kind = WEIR_DNN_MATMUL, .src = &md[0], .weights = &md[1], .dst = &md[2]};
    dnnl_primitive_desc_t desc;
    if (rank > 5) {
        return WEIR_OK;
    }
    WEIR_TRY(fast_form_plain(plan, step->in[0], &form[0], err));
    WEIR_TRY(fast_form_plain(plan, step->in[1], &form[1], err));
    WEIR_TRY(onednn_desc(plan->fast, &op, onednn_attr(false, NULL, 0), &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    weir_status status = fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT, &md[2], &y, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_SRC, &md[0], form[0]),
                                    fast_arg_of(DNNL_ARG_WEIGHTS, &md[1], form[1]),
                                    fast_arg_at(DNNL_ARG_DST, &md[2], y)};
    *out_taken = 1;
    return fast_add_primitive(plan, desc, args, 3, err);
}

weir_status fast_prepare_matmul(struct fast_plan *plan, const struct fast_link *link,
                                size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    WEIR_TRY(quant_prepare_gemm(plan, link, out_taken, err));
    if (*out_taken > 0 || !fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) ||
        !fast_has_input(plan, step, 1, WEIR_DTYPE_FLOAT)) {
        return WEIR_OK;
    }
    const struct weir_tensor *x = fast_tensor(plan, step->in[0]);
    const struct weir_tensor *w = fast_tensor(plan, step->in[1]);
    if (x->rank < 2 || w->rank < 2) {
        return WEIR_OK;
    }
    if (w->rank > 2 || !fast_is_given(plan, step->in[1])) {
        return prepare_both(plan, step, out_taken, err);
    }
    struct gemm gemm = {.w = w,
                        .x = step->in[0],
                        .n_inner = w->dims[0],
                        .n_columns = w->dims[1],
                        .y_rank = x->rank};
    memcpy(gemm.y_dims, x->dims, sizeof gemm.y_dims);
    gemm.y_dims[x->rank - 1] = gemm.n_columns;
    gemm.n_rows = (int64_t)(x->n_elems / (size_t)x->dims[x->rank - 1]);
    return x->dims[x->rank - 1] == gemm.n_inner
               ? prepare_constant(plan, link, &gemm, out_taken, err)
               : WEIR_OK;
}
