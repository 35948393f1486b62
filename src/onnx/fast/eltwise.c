/* Activations, arithmetic of two tensors, and the norm of a batch's channels, where no convolution
 * takes them. */
#include "product.h"
#include "quant.h"

#include <math.h>
#include <string.h>

weir_status fast_prepare_eltwise(struct fast_plan *plan, const struct fast_link *link,
                                 size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct onednn_act acts[TAIL_ACTS_MAX];
    struct fast_form *x;
    dnnl_primitive_desc_t desc;
    void *y;
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT)) {
        return WEIR_OK;
    }
    size_t n_acts = tail_activation(plan, step, acts);
    if (n_acts == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    const struct weir_dnn_op op = {.kind = WEIR_DNN_ELTWISE,
                                   .alg = acts[0].alg,
                                   .src = &x->md,
                                   .alpha = acts[0].alpha,
                                   .beta = acts[0].beta};
    WEIR_TRY(onednn_desc(plan->fast, &op, onednn_attr(false, acts + 1, n_acts - 1), &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    bool takes = fast_may_take(plan, step->in[0], x);
    weir_status status = takes
                             ? fast_make_over(plan, step->out[0], WEIR_DTYPE_FLOAT, &x->md, x, err)
                             : fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT, &x->md, &y, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_SRC, &x->md, x),
                                    fast_arg_at(DNNL_ARG_DST, &x->md, takes ? x->data : y)};
    *out_taken = 1;
    fast_hide_nan(plan);
    return fast_add_primitive(plan, desc, args, 2, err);
}

/* ---- two tensors ------------------------------------------------------------------------------ */

struct pair {
    int32_t value[2];
    const struct weir_tensor *tensor[2];
    dnnl_alg_kind_t alg;
    struct weir_dnn_layout md[2]; /* What they are to oneDNN. */
    struct weir_dnn_layout made;  /* The result's layout. */
};

static bool is_commutative(dnnl_alg_kind_t alg)
{
    return alg == dnnl_binary_add || alg == dnnl_binary_mul;
}

/* Does the second repeat itself in the first, and not the other way round? */
static bool is_repeated(const struct weir_tensor *large, const struct weir_tensor *small,
                        int64_t dims[WEIR_TENSOR_RANK_MAX])
{
    for (int32_t i = 0; i < large->rank; i++) {
        int32_t at = i - (large->rank - small->rank);
        dims[i] = at >= 0 ? small->dims[at] : 1;
        if (dims[i] != 1 && dims[i] != large->dims[i]) {
            return false;
        }
    }
    return small->rank <= large->rank;
}

static bool read_pair(const struct fast_plan *plan, const struct onnx_step *step, struct pair *pair,
                      int64_t dims[WEIR_TENSOR_RANK_MAX])
{
    const char *type = step->node->type;
    if (step->node->n_in != 2 || !fast_broadcasts_from_last(plan, step) ||
        !fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) ||
        !fast_has_input(plan, step, 1, WEIR_DTYPE_FLOAT)) {
        return false;
    }
    pair->alg = strcmp(type, "Mul") == 0   ? dnnl_binary_mul
                : strcmp(type, "Sub") == 0 ? dnnl_binary_sub
                : strcmp(type, "Div") == 0 ? dnnl_binary_div
                                           : dnnl_binary_add;
    bool swaps = false;
    for (int k = 0; k < 2; k++) {
        pair->value[k] = step->in[k];
        pair->tensor[k] = fast_tensor(plan, step->in[k]);
    }
    if (!is_repeated(pair->tensor[0], pair->tensor[1], dims)) {
        swaps = is_commutative(pair->alg) && is_repeated(pair->tensor[1], pair->tensor[0], dims);
        if (!swaps) {
            return false;
        }
        *pair = (struct pair){.value = {pair->value[1], pair->value[0]},
                              .tensor = {pair->tensor[1], pair->tensor[0]},
                              .alg = pair->alg};
    }
    return pair->tensor[0]->rank <= 5;
}

/* The layout of the second: that of the first if it is as large, else plain. */
static weir_status choose_forms(struct fast_plan *plan, struct pair *pair,
                                const int64_t dims[WEIR_TENSOR_RANK_MAX], struct fast_form *form[2],
                                struct weir_error *err)
{
    const struct weir_tensor *large = pair->tensor[0];
    bool is_same = memcmp(dims, large->dims, (size_t)large->rank * sizeof *dims) == 0 &&
                   pair->tensor[1]->rank == large->rank;
    WEIR_TRY(fast_form_any(plan, pair->value[0], &form[0], err));
    if (is_same && onednn_is_plain(&form[0]->md) && is_commutative(pair->alg)) {
        struct fast_form *other;
        WEIR_TRY(fast_form_any(plan, pair->value[1], &other, err));
        WEIR_TRY(fast_form_as(plan, pair->value[0], &other->md, &form[0], err));
    }
    pair->md[0] = pair->made = form[0]->md;
    if (is_same && !onednn_is_padded(&pair->made)) {
        /* In a row: oneDNN 2.6 does activations behind sums of small blocks wrongly. */
        const int64_t n = (int64_t)large->n_elems;
        pair->md[0] = pair->md[1] = onednn_plain(WEIR_DTYPE_FLOAT, 1, &n);
        return fast_form_as(plan, pair->value[1], &pair->made, &form[1], err);
    }
    if (is_same) {
        pair->md[1] = form[0]->md;
        return fast_form_as(plan, pair->value[1], &pair->md[1], &form[1], err);
    }
    pair->md[1] = onednn_plain(WEIR_DTYPE_FLOAT, large->rank, dims);
    return fast_form_plain(plan, pair->value[1], &form[1], err);
}

static weir_status describe_pair(struct fast_plan *plan, const struct pair *pair,
                                 const struct onednn_act *acts, size_t n_acts,
                                 dnnl_primitive_desc_t *out, struct weir_error *err)
{
    const struct weir_dnn_op op = {.kind = WEIR_DNN_BINARY,
                                   .alg = pair->alg,
                                   .src = &pair->md[0],
                                   .weights = &pair->md[1],
                                   .dst = &pair->md[0]};
    return onednn_desc(plan->fast, &op, onednn_attr(false, acts, n_acts), out, err);
}

weir_status fast_prepare_binary(struct fast_plan *plan, const struct fast_link *link,
                                size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct onednn_act acts[TAIL_ACTS_MAX];
    struct fast_form *form[2];
    struct pair pair;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    dnnl_primitive_desc_t desc;
    void *y;
    if (strcmp(step->node->type, "Add") == 0) {
        WEIR_TRY(quant_prepare_add(plan, link, out_taken, err));
    }
    if (*out_taken > 0 || !read_pair(plan, step, &pair, dims)) {
        return WEIR_OK;
    }
    WEIR_TRY(choose_forms(plan, &pair, dims, form, err));
    size_t n_acts, n_joined = tail_activations(plan, link, 1, acts, &n_acts);
    if (onednn_is_padded(&pair.made)) {
        n_acts = n_joined = 0;
    }
    WEIR_TRY(describe_pair(plan, &pair, acts, n_acts, &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    int32_t out = fast_step(plan, link, n_joined)->out[0];
    bool takes = fast_may_take(plan, pair.value[0], form[0]);
    weir_status status = takes
                             ? fast_make_over(plan, out, WEIR_DTYPE_FLOAT, &pair.made, form[0], err)
                             : fast_make(plan, out, WEIR_DTYPE_FLOAT, &pair.made, &y, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const struct fast_arg args[] = {
        fast_arg_of(DNNL_ARG_SRC_0, &pair.md[0], form[0]),
        fast_arg_of(DNNL_ARG_SRC_1, &pair.md[1], form[1]),
        fast_arg_at(DNNL_ARG_DST, &pair.md[0], takes ? form[0]->data : y)};
    *out_taken = 1 + n_joined;
    if (n_acts > 0) {
        fast_hide_nan(plan);
    }
    return fast_add_primitive(plan, desc, args, 3, err);
}

/* ---- batch norm ------------------------------------------------------------------------------- */

enum { SLOT_SCALE_SHIFT };

static weir_status pack_norm(struct fast_plan *plan, size_t step, const float *scale,
                             const float *shift, int64_t n, float **out, struct weir_error *err)
{
    const int64_t dims[] = {2, n};
    const struct weir_dnn_layout md = onednn_plain(WEIR_DTYPE_FLOAT, 2, dims);
    *out = fast_pack_find(plan->fast, step, SLOT_SCALE_SHIFT, &md);
    if (*out != NULL) {
        return WEIR_OK;
    }
    *out = fast_pack_add(plan->fast, step, SLOT_SCALE_SHIFT, &md, 2 * (size_t)n * sizeof(float));
    if (*out == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a batch norm");
    }
    memcpy(*out, scale, (size_t)n * sizeof *scale);
    memcpy(*out + n, shift, (size_t)n * sizeof *shift);
    return WEIR_OK;
}

static bool read_norm(struct fast_plan *plan, const struct onnx_step *step, const float *p[4],
                      float *epsilon)
{
    struct weir_tensor *in[5];
    const struct onnx_call call = fast_call(plan, step, in, 5);
    bool is = fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) && step->node->n_in == 5 &&
              step->node->n_out == 1 && in[0]->rank >= 2 && in[0]->rank <= 5 &&
              onnx_int(&call, "training_mode", 0) == 0 && onnx_int(&call, "spatial", 1) == 1;
    *epsilon = onnx_float(&call, "epsilon", 1e-5F);
    for (size_t i = 0; is && i < 4; i++) {
        p[i] = fast_floats(plan, step->in[i + 1], (size_t)in[0]->dims[1]);
        is = p[i] != NULL &&
             in[i + 1]->n_elems ==
                 (size_t)in[0]->dims[1]; /* else the interpreter says what is wrong */
        for (int64_t k = 0; is && k < in[0]->dims[1]; k++) {
            is = isfinite(p[i][k]); /* oneDNN multiplies in another order */
        }
    }
    return is;
}

weir_status fast_prepare_batch_norm(struct fast_plan *plan, const struct fast_link *link,
                                    size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    const float *p[4];
    float epsilon, *scale_shift;
    struct fast_form *x;
    dnnl_primitive_desc_t desc;
    void *y;
    if (!read_norm(plan, step, p, &epsilon)) {
        return WEIR_OK;
    }
    bool has_relu = !plan->keeps_nan && link->n > 1 &&
                    strcmp(fast_step(plan, link, 1)->node->type, "Relu") == 0;
    int64_t n = fast_tensor(plan, step->in[0])->dims[1];
    WEIR_TRY(fast_form_any(plan, step->in[0], &x, err));
    const struct weir_dnn_op op = {.kind = WEIR_DNN_BATCH_NORM,
                                   .src = &x->md,
                                   .epsilon = epsilon,
                                   .flags = dnnl_use_global_stats | dnnl_use_scale |
                                            dnnl_use_shift | (has_relu ? dnnl_fuse_norm_relu : 0)};
    WEIR_TRY(pack_norm(plan, link->steps[0], p[0], p[1], n, &scale_shift, err));
    WEIR_TRY(onednn_desc(plan->fast, &op, onednn_attr(false, NULL, 0), &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout one = onednn_plain(WEIR_DTYPE_FLOAT, 1, &n);
    int32_t out = fast_step(plan, link, has_relu ? 1 : 0)->out[0];
    weir_status status = fast_make(plan, out, WEIR_DTYPE_FLOAT, &x->md, &y, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_SRC, &x->md, x),
                                    fast_arg_at(DNNL_ARG_DST, &x->md, y),
                                    fast_arg_at(DNNL_ARG_SCALE, &one, scale_shift),
                                    fast_arg_at(DNNL_ARG_SHIFT, &one, scale_shift + n),
                                    fast_arg_at(DNNL_ARG_MEAN, &one, (void *)(uintptr_t)p[2]),
                                    fast_arg_at(DNNL_ARG_VARIANCE, &one, (void *)(uintptr_t)p[3])};
    *out_taken = has_relu ? 2 : 1;
    if (has_relu) {
        fast_hide_nan(plan);
    }
    return fast_add_primitive(plan, desc, args, 6, err);
}
