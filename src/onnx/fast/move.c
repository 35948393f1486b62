/* Concat, Transpose and Softmax. */
#include "onednn.h"
#include "op.h"
#include "threads.h"

#include <stdlib.h>
#include <string.h>

/* ---- Concat ----------------------------------------------------------------------------------- */

#define CONCAT_MAX            64
#define CONCAT_PARALLEL_BYTES ((size_t)64 << 10)

static dnnl_format_tag_t blocked_tag(int32_t rank)
{
    return rank == 3 ? dnnl_nCw8c : rank == 4 ? dnnl_nChw8c : dnnl_nCdhw8c;
}

static struct weir_dnn_layout blocked(const struct weir_tensor *tensor)
{
    struct weir_dnn_layout md;
    dnnl_dims_t dims;
    memcpy(dims, tensor->dims, sizeof tensor->dims);
    (void)weir_dnn_layout_named(&md, tensor->rank, dims, dnnl_f32, blocked_tag(tensor->rank));
    return md;
}

static bool read_concat(const struct fast_plan *plan, const struct onnx_step *step, int32_t *axis,
                        int64_t dims[WEIR_TENSOR_RANK_MAX])
{
    struct weir_tensor *in[CONCAT_MAX];
    struct weir_error ignored;
    const struct onnx_call call = fast_call(plan, step, in, CONCAT_MAX);
    if (step->node->n_in > CONCAT_MAX || step->node->n_in < 2 ||
        !fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) || in[0]->rank > 5 ||
        onnx_axis(onnx_int(&call, "axis", 1), in[0]->rank, axis, &ignored) != WEIR_OK) {
        return false;
    }
    memcpy(dims, in[0]->dims, sizeof in[0]->dims);
    for (size_t i = 1; i < step->node->n_in; i++) {
        if (!fast_has_input(plan, step, i, WEIR_DTYPE_FLOAT) || in[i]->rank != in[0]->rank) {
            return false;
        }
        for (int32_t d = 0; d < in[0]->rank; d++) {
            if (d != *axis && in[i]->dims[d] != dims[d]) {
                return false;
            }
        }
        dims[*axis] += in[i]->dims[*axis];
    }
    return true;
}

/* Is an input in blocks of channels, and can all be? */
static weir_status prefers_blocks(struct fast_plan *plan, const struct onnx_step *step,
                                  int32_t axis, bool *out_does, struct weir_error *err)
{
    int32_t rank = fast_tensor(plan, step->in[0])->rank;
    bool has = false, can = rank >= 3 && axis <= 1;
    for (size_t i = 0; can && i < step->node->n_in; i++) {
        struct fast_form *form;
        WEIR_TRY(fast_form_any(plan, step->in[i], &form, err));
        const struct weir_dnn_layout md = blocked(fast_tensor(plan, step->in[i]));
        has = has || weir_dnn_layout_equal(&md, &form->md);
        can = can && md.dims[1] % 8 == 0;
    }
    *out_does = has && can;
    return WEIR_OK;
}

struct concat {
    size_t n, n_outer, n_whole; /* Inputs, pieces of each, bytes of a piece of the result. */
    size_t n_bytes[CONCAT_MAX], offset[CONCAT_MAX]; /* Of an input's piece. */
};

struct concat_job {
    const struct concat *concat;
    void *const *at; /* The result, then the inputs. */
};

/* Each thread copies its share of each piece. */
static void concat_part(const void *job, int32_t i, int32_t n)
{
    const struct concat_job *part = job;
    const struct concat *concat = part->concat;
    for (size_t k = 0; k < concat->n * concat->n_outer; k++) {
        size_t input = k % concat->n, outer = k / concat->n, n_bytes = concat->n_bytes[input];
        size_t first = concat->n_outer > 1 ? 0 : threads_share(n_bytes, i, n);
        size_t end = concat->n_outer > 1 ? n_bytes : threads_share(n_bytes, i + 1, n);
        if (concat->n_outer > 1 && (outer < threads_share(concat->n_outer, i, n) ||
                                    outer >= threads_share(concat->n_outer, i + 1, n))) {
            continue;
        }
        memcpy((char *)part->at[0] + outer * concat->n_whole + concat->offset[input] + first,
               (const char *)part->at[input + 1] + outer * n_bytes + first, end - first);
    }
}

static weir_status run_concat(const void *detail, void *const *at, int32_t n_threads)
{
    const struct concat *concat = detail;
    const struct concat_job job = {concat, at};
    bool is_small = concat->n_outer * concat->n_whole < CONCAT_PARALLEL_BYTES;
    threads_run(is_small ? 1 : n_threads, concat_part, &job);
    return WEIR_OK;
}

/* In either order, what lies in front of the axis is outermost. */
static weir_status add_concat(struct fast_plan *plan, const struct onnx_step *step, int32_t axis,
                              const struct weir_dnn_layout *md, struct fast_form *const *form,
                              size_t *out_taken, struct weir_error *err)
{
    size_t n = step->node->n_in;
    struct fast_arg args[CONCAT_MAX + 1];
    struct concat *concat = WEIR_ARENA_NEW(&plan->arena, struct concat);
    void *y;
    WEIR_TRY(fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT, &md[n], &y, err));
    args[0] = fast_arg_at(0, &md[n], y);
    concat->n = n;
    concat->n_outer = 1;
    for (int32_t i = 0; i < axis; i++) {
        concat->n_outer *= (size_t)md[n].dims[i];
    }
    for (size_t i = 0; i < n; i++) {
        args[i + 1] = fast_arg_of((int)i + 1, &md[i], form[i]);
        concat->offset[i] = concat->n_whole;
        concat->n_bytes[i] = md[i].n_bytes / concat->n_outer;
        concat->n_whole += concat->n_bytes[i];
    }
    *out_taken = 1;
    return fast_add_kernel(plan, "concat", run_concat, concat, args, (int32_t)n + 1, err);
}

weir_status fast_prepare_concat(struct fast_plan *plan, const struct fast_link *link,
                                size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct fast_form *form[CONCAT_MAX];
    struct weir_tensor result = {.dtype = WEIR_DTYPE_FLOAT};
    int32_t axis;
    bool has_blocks;
    if (!read_concat(plan, step, &axis, result.dims)) {
        return WEIR_OK;
    }
    size_t n = step->node->n_in;
    struct weir_dnn_layout *md = WEIR_ARENA_ARRAY(&plan->arena, n + 1, struct weir_dnn_layout);
    WEIR_TRY(prefers_blocks(plan, step, axis, &has_blocks, err));
    result.rank = fast_tensor(plan, step->in[0])->rank;
    for (size_t i = 0; i <= n; i++) {
        const struct weir_tensor *tensor = i < n ? fast_tensor(plan, step->in[i]) : &result;
        md[i] = has_blocks ? blocked(tensor)
                           : onednn_plain(WEIR_DTYPE_FLOAT, tensor->rank, tensor->dims);
        if (i < n) {
            WEIR_TRY(fast_form_as(plan, step->in[i], &md[i], &form[i], err));
        }
    }
    return add_concat(plan, step, axis, md, form, out_taken, err);
}

/* ---- Transpose -------------------------------------------------------------------------------- */

weir_status fast_prepare_transpose(struct fast_plan *plan, const struct fast_link *link,
                                   size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct weir_tensor *in[1];
    struct fast_form *x;
    int permutation[WEIR_TENSOR_RANK_MAX];
    size_t n;
    void *y;
    const struct onnx_call call = fast_call(plan, step, in, 1);
    const int64_t *perm = onnx_ints(&call, "perm", &n);
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) || in[0]->rank > 6 ||
        (perm != NULL && n != (size_t)in[0]->rank)) {
        return WEIR_OK;
    }
    for (int32_t i = 0; i < in[0]->rank; i++) {
        int64_t from = perm != NULL ? perm[i] : in[0]->rank - 1 - i;
        if (from < 0 || from >= in[0]->rank) {
            return WEIR_OK;
        }
        permutation[from] = i;
    }
    struct weir_dnn_layout md;
    dnnl_primitive_desc_t desc;
    WEIR_TRY(fast_form_plain(plan, step->in[0], &x, err));
    if (weir_dnn_layout_permuted(&md, &x->md, permutation) != dnnl_success) {
        return WEIR_OK;
    }
    const struct weir_dnn_layout y_md = onednn_plain(WEIR_DTYPE_FLOAT, md.ndims, md.dims);
    const struct weir_dnn_op op = {.kind = WEIR_DNN_REORDER, .src = &md, .dst = &y_md};
    WEIR_TRY(onednn_desc(plan->fast, &op, onednn_attr(false, NULL, 0), &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    weir_status made = fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT, &y_md, &y, err);
    if (made != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return made;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_FROM, &md, x),
                                    fast_arg_at(DNNL_ARG_TO, &y_md, y)};
    *out_taken = 1;
    return fast_add_primitive(plan, desc, args, 2, err);
}

/* ---- Softmax ---------------------------------------------------------------------------------- */

weir_status fast_prepare_softmax(struct fast_plan *plan, const struct fast_link *link,
                                 size_t *out_taken, struct weir_error *err)
{
    const struct onnx_step *step = fast_step(plan, link, 0);
    struct weir_tensor *in[1];
    struct weir_error ignored;
    struct fast_form *x;
    dnnl_primitive_desc_t desc;
    int32_t axis;
    void *y;
    const struct onnx_call call = fast_call(plan, step, in, 1);
    bool is_new = call.opset >= 13; /* before, everything behind the axis was one dimension */
    if (!fast_has_input(plan, step, 0, WEIR_DTYPE_FLOAT) ||
        onnx_axis(onnx_int(&call, "axis", is_new ? -1 : 1), in[0]->rank, &axis, &ignored) !=
            WEIR_OK) {
        return WEIR_OK;
    }
    const struct onnx_split split = onnx_split_at(in[0], axis);
    const int64_t dims[] = {(int64_t)split.n_outer,
                            (int64_t)(is_new ? split.n : split.n * split.n_inner),
                            is_new ? (int64_t)split.n_inner : 1};
    int32_t rank = dims[2] == 1 ? 2 : 3;
    const struct weir_dnn_layout md = onednn_plain(WEIR_DTYPE_FLOAT, rank, dims);
    const struct weir_dnn_layout y_md = onednn_plain(WEIR_DTYPE_FLOAT, in[0]->rank, in[0]->dims);
    const struct weir_dnn_op op = {.kind = WEIR_DNN_SOFTMAX, .src = &md, .axis = 1};
    WEIR_TRY(fast_form_plain(plan, step->in[0], &x, err));
    WEIR_TRY(onednn_desc(plan->fast, &op, onednn_attr(false, NULL, 0), &desc, err));
    if (desc == NULL) {
        return WEIR_OK;
    }
    weir_status status = fast_make(plan, step->out[0], WEIR_DTYPE_FLOAT, &y_md, &y, err);
    if (status != WEIR_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_SRC, &md, x),
                                    fast_arg_at(DNNL_ARG_DST, &md, y)};
    *out_taken = 1;
    fast_hide_nan(plan);
    return fast_add_primitive(plan, desc, args, 2, err);
}
