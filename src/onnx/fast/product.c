#include "product.h"

#include <stdlib.h>
#include <string.h>

static void scale(float *values, size_t n, const float *factors, size_t n_channels, size_t n_inner)
{
    for (size_t i = 0; i < n; i++) {
        values[i] *= factors[i / n_inner % n_channels];
    }
}

static weir_status relayout(const struct fast *fast, const struct weir_dnn_layout *from,
                            void *values, const struct weir_dnn_layout *to, void *data,
                            struct weir_error *err)
{
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive = NULL;
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    const struct weir_dnn_op op = {.kind = WEIR_DNN_REORDER, .src = from, .dst = to};
    WEIR_TRY(onednn_check(weir_dnn_describe(&op, fast->engine, NULL, NULL, &desc),
                          "describing a reorder of weights", err));
    dnnl_status_t status = weir_dnn_memory(&args[0].memory, from, fast->engine, values);
    if (status == dnnl_success) {
        status = weir_dnn_memory(&args[1].memory, to, fast->engine, data);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_create(&primitive, desc);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_execute(primitive, fast->stream, 2, args);
    }
    for (int i = 0; i < 2; i++) {
        if (args[i].memory != NULL) {
            dnnl_memory_destroy(args[i].memory);
        }
    }
    if (primitive != NULL) {
        dnnl_primitive_destroy(primitive);
    }
    dnnl_primitive_desc_destroy(desc);
    return onednn_check(status, "reordering weights", err);
}

weir_status product_weights(struct fast_plan *plan, size_t step,
                            const struct product_matrix *weights, const struct weir_dnn_layout *md,
                            const struct tail *tail, void **out, struct weir_error *err)
{
    size_t n = weights->values->n_elems;
    *out = fast_pack_find(plan->fast, step, product_slot(PRODUCT_WEIGHTS, tail), md);
    if (*out != NULL) {
        return WEIR_OK;
    }
    float *scaled = malloc(n * sizeof *scaled);
    void *data =
        fast_pack_add(plan->fast, step, product_slot(PRODUCT_WEIGHTS, tail), md, md->n_bytes);
    if (scaled == NULL || data == NULL) {
        free(scaled);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for weights");
    }
    memcpy(scaled, weights->values->data, n * sizeof *scaled);
    if (tail->scale != NULL) {
        scale(scaled, n, tail->scale, weights->n_channels, weights->n_inner);
    }
    weir_status status = relayout(plan->fast, weights->plain, scaled, md, data, err);
    free(scaled);
    *out = data;
    return status;
}

weir_status product_bias(struct fast_plan *plan, size_t step, const float *bias,
                         const struct tail *tail, size_t n_channels, float **out,
                         struct weir_error *err)
{
    const int64_t dims = (int64_t)n_channels;
    const struct weir_dnn_layout md = onednn_plain(WEIR_DTYPE_FLOAT, 1, &dims);
    *out = NULL;
    if (bias == NULL && tail->shift == NULL) {
        return WEIR_OK;
    }
    *out = fast_pack_find(plan->fast, step, product_slot(PRODUCT_BIAS, tail), &md);
    if (*out != NULL) {
        return WEIR_OK;
    }
    float *data = fast_pack_add(plan->fast, step, product_slot(PRODUCT_BIAS, tail), &md,
                                n_channels * sizeof *data);
    if (data == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a bias");
    }
    for (size_t i = 0; i < n_channels; i++) {
        float value = bias != NULL ? bias[i] : 0;
        data[i] = tail->scale != NULL ? value * tail->scale[i] + tail->shift[i] : value;
    }
    *out = data;
    return WEIR_OK;
}

struct copy {
    size_t n_bytes;
};

static weir_status run_copy(const void *detail, void *const *at, int32_t n_threads)
{
    (void)n_threads;
    memcpy(at[1], at[0], ((const struct copy *)detail)->n_bytes);
    return WEIR_OK;
}

static bool is_read(const struct fast_form *form, const struct fast_form *const *reads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (reads[i]->block == form->block) {
            return true;
        }
    }
    return false;
}

weir_status product_result(struct fast_plan *plan, const struct tail *tail,
                           const struct weir_dnn_layout *md, const struct fast_form *const *reads,
                           size_t n_reads, void **out_data, struct weir_error *err)
{
    struct fast_form *form;
    if (tail->added < 0) {
        return fast_make(plan, tail->out, WEIR_DTYPE_FLOAT, md, out_data, err);
    }
    WEIR_TRY(fast_form_as(plan, tail->added, md, &form, err));
    if (fast_may_take(plan, tail->added, form) && !is_read(form, reads, n_reads)) {
        *out_data = form->data;
        return fast_make_over(plan, tail->out, WEIR_DTYPE_FLOAT, md, form, err);
    }
    struct copy *copy = WEIR_ARENA_NEW(&plan->arena, struct copy);
    copy->n_bytes = md->n_bytes;
    WEIR_TRY(fast_make(plan, tail->out, WEIR_DTYPE_FLOAT, md, out_data, err));
    const struct fast_arg args[] = {fast_arg_of(0, md, form), fast_arg_at(1, md, *out_data)};
    return fast_add_kernel(plan, "copy", run_copy, copy, args, 2, err);
}
