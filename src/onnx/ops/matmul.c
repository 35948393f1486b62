/* Products of matrices. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** An element on its way: of floats, and of integers of eight bits, a double, which holds sums of
 *  2^35 of their products; of other integers their bits, so that sums and products are exact modulo
 *  2^64. */
union cell {
    double real;
    uint64_t bits;
};

static bool is_in_bits(enum weir_dtype dtype)
{
    return weir_dtype_class(dtype) != WEIR_DTYPE_IS_FLOAT && weir_dtype_bits(dtype) > 8;
}

/* m x k times k x n; one product of a batch. */
#define MULTIPLY(part)                                                                             \
    static void multiply_##part(const union cell *a, const union cell *b, union cell *y, size_t m, \
                                size_t k, size_t n)                                                \
    {                                                                                              \
        for (size_t i = 0; i < m; i++) {                                                           \
            for (size_t j = 0; j < k; j++) {                                                       \
                const union cell left = a[i * k + j];                                              \
                for (size_t c = 0; c < n; c++) {                                                   \
                    y[i * n + c].part += left.part * b[j * n + c].part;                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

MULTIPLY(real)
MULTIPLY(bits)

static void multiply(bool in_bits, const union cell *a, const union cell *b, union cell *y,
                     size_t m, size_t k, size_t n)
{
    memset(y, 0, m * n * sizeof *y); /* 0 and 0.0 have the same bits */
    (in_bits ? multiply_bits : multiply_real)(a, b, y, m, k, n);
}

static void put_cells(const union cell *cells, bool in_bits, struct weir_tensor *y)
{
    if (in_bits) {
        weir_elems_from_i64(y->dtype, (const int64_t *)cells, false, y->data, y->n_elems);
    } else {
        weir_elems_from_f64(y->dtype, (const double *)cells, y->data, y->n_elems,
                            WEIR_OVERFLOW_SATURATES);
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

static union cell *widen(const struct weir_tensor *x, struct zero_point zero)
{
    union cell *cells = malloc((x->n_elems + 1) * sizeof *cells);
    double offset;
    if (cells == NULL) {
        return NULL;
    }
    if (is_in_bits(x->dtype)) {
        weir_elems_to_i64(x->dtype, x->data, (int64_t *)cells, x->n_elems);
        return cells; /* without a zero point */
    }
    weir_elems_to_f64(x->dtype, x->data, (double *)cells, x->n_elems);
    for (size_t i = 0; zero.zero != NULL && zero.zero->n_elems > 0 && i < x->n_elems; i++) {
        size_t at = i / zero.n_inner % zero.zero->n_elems * weir_dtype_bytes(zero.zero->dtype);
        weir_elems_to_f64(zero.zero->dtype, (const char *)zero.zero->data + at, &offset, 1);
        cells[i].real -= offset;
    }
    return cells;
}

static weir_status multiply_all(const struct product *p, const struct weir_tensor *a,
                                struct zero_point a_zero, const struct weir_tensor *b,
                                struct zero_point b_zero, union cell **out, struct weir_error *err)
{
    union cell *left = widen(a, a_zero), *right = widen(b, b_zero);
    union cell *y = malloc((p->n_batch * p->m * p->n + 1) * sizeof *y);
    weir_status status = WEIR_OK;
    if (left != NULL && right != NULL && y != NULL) {
        for (size_t i = 0; i < p->n_batch; i++) {
            multiply(is_in_bits(a->dtype), left + onnx_walk_at(&p->batch, 0, i) * p->m * p->k,
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
    union cell *sums;
    if (weir_dtype_class(a->dtype) > WEIR_DTYPE_IS_UNSIGNED || a->dtype != b->dtype) {
        return onnx_refuse_dtype(a->dtype, err);
    }
    WEIR_TRY(read_product(a, b, &p, err));
    WEIR_TRY(onnx_out(call, 0, a->dtype, p.rank, p.dims, &y, err));
    WEIR_TRY(multiply_all(&p, a, none, b, none, &sums, err));
    put_cells(sums, is_in_bits(a->dtype), y);
    free(sums);
    return WEIR_OK;
}

static bool is_byte(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_INT8 || dtype == WEIR_DTYPE_UINT8;
}

/* Zero points of a stand for rows, those of b for columns. */
static weir_status run_matmul_integer(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *a = onnx_in(call, 0), *b = onnx_in(call, 1);
    struct product p;
    struct weir_tensor *y;
    union cell *sums;
    if (!is_byte(a->dtype) || !is_byte(b->dtype)) {
        return onnx_refuse_dtype(a->dtype, err);
    }
    WEIR_TRY(read_product(a, b, &p, err));
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT32, p.rank, p.dims, &y, err));
    struct zero_point rows = {onnx_in(call, 2), WEIR_MAX(p.k, (size_t)1)};
    struct zero_point columns = {onnx_in(call, 3), 1};
    WEIR_TRY(multiply_all(&p, a, rows, b, columns, &sums, err));
    put_cells(sums, is_in_bits(a->dtype), y);
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
    union cell *sums;
    if (!is_byte(a->dtype) || !is_byte(b->dtype) || !is_byte(zero->dtype)) {
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
        double value =
            fmin(fmax(nearbyint(sums[i].real * scale) + number_at(zero, column), low), high);
        onnx_put(y, i, value);
    }
    free(sums);
    return WEIR_OK;
}

/* ---- Gemm ------------------------------------------------------------------------------------- */

/* Rows and columns of a matrix, which may be meant turned. */
static union cell *turned(const struct weir_tensor *x, bool is_turned)
{
    union cell *values = widen(x, (struct zero_point){NULL, 1});
    union cell *other =
        is_turned && values != NULL ? malloc((x->n_elems + 1) * sizeof *other) : NULL;
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

/* alpha * sum + beta * c. Of integers it is exact if both factors are whole numbers; else it is
 * computed in doubles and cut towards zero. */
static struct onnx_number combine(struct onnx_number sum, double alpha, struct onnx_number c,
                                  double beta, bool is_whole)
{
    bool has_c = beta != 0; /* else a NaN in C does not count */
    if (is_whole && alpha == floor(alpha) && beta == floor(beta)) {
        return (struct onnx_number){
            .whole = onnx_whole_add(onnx_whole_multiply(sum.whole, onnx_whole_of(alpha)),
                                    onnx_whole_multiply(c.whole, onnx_whole_of(beta)))};
    }
    double real = alpha * onnx_number_f64(sum) + (has_c ? beta * onnx_number_f64(c) : 0);
    return is_whole ? (struct onnx_number){.whole = onnx_whole_of(real)}
                    : (struct onnx_number){.real = real};
}

static weir_status finish_gemm(const struct onnx_call *call, const union cell *sums,
                               struct weir_tensor *y, struct weir_error *err)
{
    const double alpha = onnx_float(call, "alpha", 1), beta = onnx_float(call, "beta", 1);
    struct weir_tensor *in[2] = {y, onnx_in(call, 2)};
    bool is_whole = onnx_is_whole(y->dtype);
    struct onnx_walk walk;
    if (in[1] != NULL) {
        WEIR_TRY(onnx_broadcast(in, 2, &walk, err));
        if (walk.n_elems != y->n_elems || in[1]->dtype != y->dtype) {
            return weir_error_set(err, WEIR_ERR_INVALID, "C does not fit the product");
        }
    }
    for (size_t i = 0; i < y->n_elems; i++) {
        struct onnx_number sum = {0}, c = {0};
        if (!is_whole) {
            sum.real = sums[i].real;
        } else if (!is_in_bits(y->dtype)) {
            sum.whole = onnx_whole_of(sums[i].real);
        } else {
            sum.whole = y->dtype == WEIR_DTYPE_UINT64 ? (onnx_whole)sums[i].bits
                                                      : (onnx_whole)(int64_t)sums[i].bits;
        }
        if (in[1] != NULL) {
            c = onnx_number_at(in[1], onnx_walk_at(&walk, 1, i));
        }
        onnx_number_put(y, i, combine(sum, alpha, c, beta, is_whole));
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
    union cell *left = turned(a, turns_a), *right = turned(b, turns_b);
    union cell *sums = malloc((m * n + 1) * sizeof *sums);
    weir_status status = WEIR_OK;
    if (left != NULL && right != NULL && sums != NULL) {
        multiply(is_in_bits(a->dtype), left, right, sums, m, k, n);
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
