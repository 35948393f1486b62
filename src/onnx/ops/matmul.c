/* Products of matrices. */
#include "../op.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** m x k times k x n, in doubles; one product of a batch. */
static void multiply(const double *a, const double *b, double *y, size_t m, size_t k, size_t n)
{
    memset(y, 0, m * n * sizeof *y);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < k; j++) {
            double left = a[i * k + j];
            for (size_t c = 0; c < n; c++) {
                y[i * n + c] += left * b[j * n + c];
            }
        }
    }
}

/** A product over a batch: shapes as numpy's matmul has them. */
struct product {
    int32_t rank; /* of the result, with vectors as matrices */
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    size_t m, k, n, n_batch;
    struct onnx_walk batch; /* of the matrices of a and b */
};

static weir_status read_product(const struct weir_tensor *a, const struct weir_tensor *b,
                                struct product *out, struct weir_error *err)
{
    char left[WEIR_TENSOR_TEXT_BYTES], right[WEIR_TENSOR_TEXT_BYTES];
    struct weir_tensor batches[2] = {{.rank = WEIR_MAX(a->rank - 2, 0)},
                                     {.rank = WEIR_MAX(b->rank - 2, 0)}};
    struct weir_tensor *in[2] = {&batches[0], &batches[1]};
    memcpy(batches[0].dims, a->dims, sizeof a->dims);
    memcpy(batches[1].dims, b->dims, sizeof b->dims);
    *out = (struct product){.m = a->rank > 1 ? (size_t)a->dims[a->rank - 2] : 1,
                            .n = b->rank > 1 ? (size_t)b->dims[b->rank - 1] : 1};
    if (a->rank < 1 || b->rank < 1 ||
        a->dims[a->rank - 1] != b->dims[b->rank > 1 ? b->rank - 2 : 0]) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s cannot be multiplied by %s",
                              weir_tensor_dims_text(a->rank, a->dims, left),
                              weir_tensor_dims_text(b->rank, b->dims, right));
    }
    out->k = (size_t)a->dims[a->rank - 1];
    WEIR_TRY(onnx_broadcast(in, 2, &out->batch, err));
    out->n_batch = out->batch.n_elems;
    for (int32_t i = 0; i < out->batch.rank; i++) {
        out->dims[out->rank++] = out->batch.dims[i];
    }
    if (a->rank > 1) {
        out->dims[out->rank++] = (int64_t)out->m;
    }
    if (b->rank > 1) {
        out->dims[out->rank++] = (int64_t)out->n;
    }
    return WEIR_OK;
}

/** Element i, less the zero point: one of all, or one a row (a) or column (b). */
struct zero_point {
    const struct weir_tensor *zero; /* NULL: none */
    size_t n_inner;                 /* elements from one zero point to the next */
};

static double *widen(const struct weir_tensor *x, struct zero_point zero)
{
    double *values = malloc((x->n_elems + 1) * sizeof *values), offset;
    if (values == NULL) {
        return NULL;
    }
    weir_elems_to_f64(x->dtype, x->data, values, x->n_elems);
    for (size_t i = 0; zero.zero != NULL && zero.zero->n_elems > 0 && i < x->n_elems; i++) {
        size_t at = i / zero.n_inner % zero.zero->n_elems * weir_dtype_bytes(zero.zero->dtype);
        weir_elems_to_f64(zero.zero->dtype, (const char *)zero.zero->data + at, &offset, 1);
        values[i] -= offset;
    }
    return values;
}

static weir_status multiply_all(const struct product *p, const struct weir_tensor *a,
                                struct zero_point a_zero, const struct weir_tensor *b,
                                struct zero_point b_zero, double **out, struct weir_error *err)
{
    double *left = widen(a, a_zero), *right = widen(b, b_zero);
    double *y = malloc((p->n_batch * p->m * p->n + 1) * sizeof *y);
    weir_status status = WEIR_OK;
    if (left != NULL && right != NULL && y != NULL) {
        for (size_t i = 0; i < p->n_batch; i++) {
            multiply(left + onnx_walk_at(&p->batch, 0, i) * p->m * p->k,
                     right + onnx_walk_at(&p->batch, 1, i) * p->k * p->n, y + i * p->m * p->n, p->m,
                     p->k, p->n);
        }
        *out = y;
    } else {
        free(y);
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a product");
    }
    free(left);
    free(right);
    return status;
}

static weir_status run_matmul(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *a = onnx_in(call, 0), *b = onnx_in(call, 1);
    struct zero_point none = {NULL, 1};
    struct product p;
    struct weir_tensor *y;
    double *sums;
    if (weir_dtype_class(a->dtype) > WEIR_DTYPE_IS_UNSIGNED || a->dtype != b->dtype) {
        return onnx_refuse_dtype(a->dtype, err);
    }
    WEIR_TRY(read_product(a, b, &p, err));
    WEIR_TRY(onnx_out(call, 0, a->dtype, p.rank, p.dims, &y, err));
    WEIR_TRY(multiply_all(&p, a, none, b, none, &sums, err));
    weir_elems_from_f64(y->dtype, sums, y->data, y->n_elems, WEIR_OVERFLOW_SATURATES);
    free(sums);
    return WEIR_OK;
}

/* Zero points of a stand for rows, those of b for columns. */
static weir_status run_matmul_integer(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *a = onnx_in(call, 0), *b = onnx_in(call, 1);
    struct product p;
    struct weir_tensor *y;
    double *sums;
    if (weir_dtype_bits(a->dtype) != 8 || weir_dtype_bits(b->dtype) != 8) {
        return onnx_refuse_dtype(a->dtype, err);
    }
    WEIR_TRY(read_product(a, b, &p, err));
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT32, p.rank, p.dims, &y, err));
    struct zero_point rows = {onnx_in(call, 2), WEIR_MAX(p.k, (size_t)1)};
    struct zero_point columns = {onnx_in(call, 3), 1};
    WEIR_TRY(multiply_all(&p, a, rows, b, columns, &sums, err));
    weir_elems_from_f64(WEIR_DTYPE_INT32, sums, y->data, y->n_elems, WEIR_OVERFLOW_SATURATES);
    free(sums);
    return WEIR_OK;
}

/* Inputs of QLinearMatMul. */
enum { Q_A, Q_A_SCALE, Q_A_ZERO, Q_B, Q_B_SCALE, Q_B_ZERO, Q_Y_SCALE, Q_Y_ZERO };

/* One of all, or one each. */
static double number_at(const struct weir_tensor *tensor, size_t i)
{
    return onnx_get(tensor, tensor->n_elems == 1 ? 0 : i);
}

static weir_status run_qlinear(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *a = onnx_in(call, Q_A), *b = onnx_in(call, Q_B);
    const struct weir_tensor *zero = onnx_in(call, Q_Y_ZERO);
    struct product p;
    struct weir_tensor *y;
    double *sums;
    if (weir_dtype_bits(a->dtype) != 8 || weir_dtype_bits(b->dtype) != 8 ||
        weir_dtype_bits(zero->dtype) != 8 ||
        weir_dtype_class(zero->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(zero->dtype, err);
    }
    WEIR_TRY(read_product(a, b, &p, err));
    for (size_t i = Q_A_SCALE; i <= Q_Y_ZERO; i++) {
        size_t most = i == Q_A_SCALE || i == Q_A_ZERO ? p.m : p.n;
        if (i != Q_B && call->in[i]->n_elems != 1 && call->in[i]->n_elems != most) {
            return weir_error_set(err, WEIR_ERR_INVALID, "input %zu has %zu elements", i,
                                  call->in[i]->n_elems);
        }
    }
    WEIR_TRY(onnx_out(call, 0, zero->dtype, p.rank, p.dims, &y, err));
    struct zero_point rows = {call->in[Q_A_ZERO], WEIR_MAX(p.k, (size_t)1)};
    struct zero_point columns = {call->in[Q_B_ZERO], 1};
    WEIR_TRY(multiply_all(&p, a, rows, b, columns, &sums, err));
    const double low = zero->dtype == WEIR_DTYPE_INT8 ? -128 : 0, high = low + 255;
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t column = i % p.n, row = i / p.n % p.m;
        double scale = number_at(call->in[Q_A_SCALE], row) *
                       number_at(call->in[Q_B_SCALE], column) /
                       number_at(call->in[Q_Y_SCALE], column);
        double value = fmin(fmax(nearbyint(sums[i] * scale) + number_at(zero, column), low), high);
        onnx_put(y, i, value);
    }
    free(sums);
    return WEIR_OK;
}

/* ---- Gemm ------------------------------------------------------------------------------------- */

/* Rows and columns of a matrix, which may be meant turned. */
static double *turned(const struct weir_tensor *x, bool is_turned)
{
    double *values = widen(x, (struct zero_point){NULL, 1});
    double *other = is_turned && values != NULL ? malloc((x->n_elems + 1) * sizeof *other) : NULL;
    size_t n_rows = (size_t)x->dims[0], n_columns = (size_t)x->dims[1];
    if (!is_turned || other == NULL) {
        if (is_turned) {
            free(values);
        }
        return is_turned ? NULL : values;
    }
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t k = 0; k < n_columns; k++) {
            other[k * n_rows + i] = values[i * n_columns + k];
        }
    }
    free(values);
    return other;
}

static weir_status finish_gemm(const struct onnx_call *call, const double *sums,
                               struct weir_tensor *y, struct weir_error *err)
{
    const double alpha = onnx_float(call, "alpha", 1), beta = onnx_float(call, "beta", 1);
    struct weir_tensor *in[2] = {y, onnx_in(call, 2)};
    struct onnx_walk walk;
    if (in[1] != NULL) {
        WEIR_TRY(onnx_broadcast(in, 2, &walk, err));
        if (walk.n_elems != y->n_elems || in[1]->dtype != y->dtype) {
            return weir_error_set(err, WEIR_ERR_INVALID, "C does not fit the product");
        }
    }
    for (size_t i = 0; i < y->n_elems; i++) {
        double value = alpha * sums[i], add = 0;
        if (in[1] != NULL) {
            size_t at = onnx_walk_at(&walk, 1, i) * weir_dtype_bytes(y->dtype);
            weir_elems_to_f64(y->dtype, (const char *)in[1]->data + at, &add, 1);
        }
        value += beta * add;
        onnx_put(y, i, value);
    }
    return WEIR_OK;
}

static weir_status run_gemm(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *a = onnx_in(call, 0), *b = onnx_in(call, 1);
    bool turns_a = onnx_int(call, "transA", 0) != 0, turns_b = onnx_int(call, "transB", 0) != 0;
    struct weir_tensor *y;
    if (a->rank != 2 || b->rank != 2 || a->dtype != b->dtype ||
        a->dims[!turns_a] != b->dims[turns_b]) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the matrices do not fit");
    }
    if (weir_dtype_class(a->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(a->dtype, err);
    }
    int64_t dims[] = {a->dims[turns_a], b->dims[!turns_b]};
    size_t m = (size_t)dims[0], n = (size_t)dims[1], k = (size_t)a->dims[!turns_a];
    WEIR_TRY(onnx_out(call, 0, a->dtype, 2, dims, &y, err));
    double *left = turned(a, turns_a), *right = turned(b, turns_b);
    double *sums = malloc((m * n + 1) * sizeof *sums);
    weir_status status = WEIR_OK;
    if (left != NULL && right != NULL && sums != NULL) {
        multiply(left, right, sums, m, k, n);
        status = finish_gemm(call, sums, y, err);
    } else {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a product");
    }
    free(left);
    free(right);
    free(sums);
    return status;
}

const struct onnx_op onnx_ops_matmul[] = {
    {"MatMul", 1, 2, 1, run_matmul, NULL},
    {"MatMulInteger", 10, 2, 1, run_matmul_integer, NULL},
    {"QLinearMatMul", 10, 8, 1, run_qlinear, NULL},
    {"Gemm", 1, 2, 1, run_gemm, NULL},
};
const size_t onnx_n_ops_matmul = WEIR_ARRAY_LEN(onnx_ops_matmul);
