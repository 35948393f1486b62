/* Order: the largest elements. */
#include "onnx/op.h"

#include "onnx/number.h"

#include <stdlib.h>
#include <string.h>

struct ranked {
    struct onnx_number value;
    size_t index;
};

static int by_index(const struct ranked *a, const struct ranked *b)
{
    return (a->index > b->index) - (a->index < b->index);
}

/* The larger first; of equals the one with the lower index. NaN is larger than all. */
static int by_largest(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = onnx_number_order(b->value, a->value);
    return order != 0 ? order : by_index(a, b);
}

/* The smaller first, so NaN last. */
static int by_smallest(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = onnx_number_order(a->value, b->value);
    return order != 0 ? order : by_index(a, b);
}

static weir_status rank_lines(const struct weir_tensor *x, const struct onnx_split *split, size_t k,
                              bool is_largest, struct weir_tensor *values,
                              struct weir_tensor *indices, struct weir_error *err)
{
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    struct ranked *line = malloc((split->n + 1) * sizeof *line);
    if (line == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a line of %zu", split->n);
    }
    for (size_t i = 0; i < split->n_outer * split->n_inner; i++) {
        size_t outer = i / split->n_inner, inner = i % split->n_inner;
        size_t first = outer * split->n * split->n_inner + inner;
        for (size_t j = 0; j < split->n; j++) {
            line[j] = (struct ranked){onnx_number_at(x, first + j * split->n_inner), j};
        }
        qsort(line, split->n, sizeof *line, is_largest ? by_largest : by_smallest);
        for (size_t j = 0; j < k; j++) {
            size_t to = (outer * k + j) * split->n_inner + inner;
            size_t from = first + line[j].index * split->n_inner;
            memcpy((char *)values->data + to * elem_bytes,
                   (const char *)x->data + from * elem_bytes, elem_bytes);
            ((int64_t *)indices->data)[to] = (int64_t)line[j].index;
        }
    }
    free(line);
    return WEIR_OK;
}

static weir_status run_top_k(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const int64_t k = onnx_in_int(call, 1, onnx_int(call, "k", -1));
    bool is_largest = onnx_int(call, "largest", 1) != 0;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int32_t axis;
    struct weir_tensor *values, *indices;
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED || call->n_out != 2) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", -1), x->rank, &axis, err));
    if (k < 0 || k > x->dims[axis]) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the largest %lld of %lld", (long long)k,
                              (long long)x->dims[axis]);
    }
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = k;
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &values, err));
    WEIR_TRY(onnx_out(call, 1, WEIR_DTYPE_INT64, x->rank, dims, &indices, err));
    struct onnx_split split = onnx_split_at(x, axis);
    return rank_lines(x, &split, (size_t)k, is_largest, values, indices, err);
}

const struct onnx_op onnx_ops_order[] = {
    {"TopK", 1, 1, 2, run_top_k, NULL},
};
const size_t onnx_n_ops_order = WEIR_ARRAY_LEN(onnx_ops_order);
