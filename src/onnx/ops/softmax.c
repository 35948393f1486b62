/* Softmax, LogSoftmax, Hardmax, and norms of vectors. */
#include "onnx/op.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Makes n numbers of others, in place. */
typedef void vector_fn(double *values, size_t n, const struct onnx_call *call);

static double largest(const double *values, size_t n)
{
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, values[i]);
    }
    return most;
}

static void softmax(double *values, size_t n, const struct onnx_call *call)
{
    double most = largest(values, n), sum = 0;
    (void)call;
    for (size_t i = 0; i < n; i++) {
        values[i] = exp(values[i] - most);
        sum += values[i];
    }
    for (size_t i = 0; i < n; i++) {
        values[i] /= sum;
    }
}

static void log_softmax(double *values, size_t n, const struct onnx_call *call)
{
    double most = largest(values, n), sum = 0;
    (void)call;
    for (size_t i = 0; i < n; i++) {
        sum += exp(values[i] - most);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] -= most + log(sum);
    }
}

/* The first of the largest is 1; the first NaN, if there is one. */
static void hardmax(double *values, size_t n, const struct onnx_call *call)
{
    size_t best = 0;
    (void)call;
    for (size_t i = 1; i < n; i++) {
        best = !isnan(values[best]) && (isnan(values[i]) || values[i] > values[best]) ? i : best;
    }
    memset(values, 0, n * sizeof *values);
    if (n > 0) {
        values[best] = 1;
    }
}

static void lp_normalise(double *values, size_t n, const struct onnx_call *call)
{
    bool is_l1 = onnx_int(call, "p", 2) == 1;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += is_l1 ? fabs(values[i]) : values[i] * values[i];
    }
    double norm = is_l1 ? sum : sqrt(sum);
    for (size_t i = 0; i < n; i++) {
        values[i] = norm != 0 ? values[i] / norm : 0;
    }
}

static weir_status each_vector(struct onnx_call *call, const struct onnx_split *split,
                               vector_fn *make, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    struct weir_tensor *y;
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    double *values = malloc((split->n + 1) * sizeof *values);
    if (values == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a vector of %zu", split->n);
    }
    for (size_t i = 0; i < split->n_outer * split->n_inner; i++) {
        size_t first = i / split->n_inner * split->n * split->n_inner + i % split->n_inner;
        for (size_t k = 0; k < split->n; k++) {
            size_t at = (first + k * split->n_inner) * elem_bytes;
            weir_elems_to_f64(x->dtype, (const char *)x->data + at, &values[k], 1);
        }
        make(values, split->n, call);
        for (size_t k = 0; k < split->n; k++) {
            size_t at = (first + k * split->n_inner) * elem_bytes;
            weir_elems_from_f64(x->dtype, &values[k], (char *)y->data + at, 1,
                                WEIR_OVERFLOW_SATURATES);
        }
    }
    free(values);
    return WEIR_OK;
}

/* Before opset 13 all axes from the given one on are one vector. */
static weir_status run_with(struct onnx_call *call, vector_fn *make, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool is_old = call->opset < 13;
    int32_t axis;
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", is_old ? 1 : -1), x->rank, &axis, err));
    struct onnx_split split = onnx_split_at(x, axis);
    if (is_old) {
        split.n *= split.n_inner;
        split.n_inner = 1;
    }
    return each_vector(call, &split, make, err);
}

static weir_status run_softmax(struct onnx_call *call, struct weir_error *err)
{
    return run_with(call, softmax, err);
}

static weir_status run_log_softmax(struct onnx_call *call, struct weir_error *err)
{
    return run_with(call, log_softmax, err);
}

static weir_status run_hardmax(struct onnx_call *call, struct weir_error *err)
{
    return run_with(call, hardmax, err);
}

static weir_status run_lp(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int32_t axis;
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", -1), x->rank, &axis, err));
    struct onnx_split split = onnx_split_at(x, axis);
    return each_vector(call, &split, lp_normalise, err);
}

const struct onnx_op onnx_ops_softmax[] = {
    {"Softmax", 1, 1, 1, run_softmax, NULL},
    {"LogSoftmax", 1, 1, 1, run_log_softmax, NULL},
    {"Hardmax", 1, 1, 1, run_hardmax, NULL},
    {"LpNormalization", 1, 1, 1, run_lp, NULL},
};
const size_t onnx_n_ops_softmax = WEIR_ARRAY_LEN(onnx_ops_softmax);
