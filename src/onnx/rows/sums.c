/* Rules of operators that work along axes: reductions, norms, orders, products. */
#include "rows.h"

#include <string.h>

/* ---- along one axis ----------------------------------------------------------------------------- */

/* Along the axis; before opset 13 a softmax works on all dimensions from the axis on. */
static enum rows_verdict run_softmax(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool is_old = call->call.opset < 13;
    rows_out_like(call, 0, x);
    ROWS_KNOW(x->rank >= 0);
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", is_old ? 1 : -1), x->rank);
    ROWS_NEED(!rows_has(x) || (axis >= 0 && (is_old ? x->axis < axis : x->axis != axis)));
    return ROWS_APART;
}

/* Along `axis`, by default `a`, which stays as it is. */
static enum rows_verdict run_along(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    rows_outs_like(call, x);
    ROWS_KNOW(x->rank >= 0);
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", -1), x->rank);
    ROWS_NEED(!rows_has(x) || (axis >= 0 && axis != x->axis));
    return ROWS_APART;
}

static enum rows_verdict run_cumulate(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    int64_t given;
    size_t n;
    rows_out_like(call, 0, x);
    ROWS_KNOW(x->rank >= 0 && rows_numbers(rows_in(call, 1), 1, &given, &n) && n == 1);
    int32_t axis = rows_axis(given, x->rank);
    ROWS_NEED(!rows_has(x) || (axis >= 0 && axis != x->axis));
    return ROWS_APART;
}

static enum rows_verdict run_top(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    size_t n;
    int64_t k = onnx_int(&call->call, "k", 0);
    ROWS_KNOW(x->rank >= 1);
    ROWS_NEED(rows_flat_from(call, 1));
    bool is_known = rows_numbers(rows_in(call, 1), 1, &k, &n) || k > 0;
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", -1), x->rank);
    ROWS_NEED(axis >= 0 && (!rows_has(x) || axis != x->axis));
    for (size_t i = 0; i < call->n_out; i++) {
        rows_out_like(call, i, x);
        call->out[i].dims[axis] = is_known ? rows_number(k) : rows_fresh(call);
    }
    return ROWS_APART;
}

/* ---- reductions --------------------------------------------------------------------------------- */

static enum rows_verdict reduce(struct rows_call *call, const bool *axes, bool keeps)
{
    const struct rows_state *x = rows_in(call, 0);
    struct rows_state out = {.kind = ROWS_FLAT};
    for (int32_t i = 0; i < x->rank; i++) {
        ROWS_NEED(!axes[i] || !rows_is_of_n(&x->dims[i]));
        if (!axes[i] || keeps) {
            out.dims[out.rank++] = axes[i] ? rows_number(1) : x->dims[i];
        }
    }
    ROWS_TRY(rows_settle(&out));
    rows_out_like(call, 0, &out);
    return ROWS_APART;
}

static enum rows_verdict run_reduce(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    ROWS_KNOW(x->rank >= 0);
    ROWS_TRY(rows_axes(call, 1, x->rank, axes, &has_axes));
    if (!has_axes && onnx_int(&call->call, "noop_with_empty_axes", 0) == 0) {
        memset(axes, 1, sizeof axes);
    }
    return reduce(call, axes, onnx_int(&call->call, "keepdims", 1) != 0);
}

static enum rows_verdict run_arg(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool axes[WEIR_TENSOR_RANK_MAX] = {false};
    ROWS_KNOW(x->rank >= 1);
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", 0), x->rank);
    ROWS_KNOW(axis >= 0);
    axes[axis] = true;
    return reduce(call, axes, onnx_int(&call->call, "keepdims", 1) != 0);
}

/* ---- norms -------------------------------------------------------------------------------------- */

/* Over the axis and all behind it; scale and bias are broadcast to x. */
static enum rows_verdict run_layer_norm(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    struct rows_state shape;
    ROWS_KNOW(x->rank >= 1);
    ROWS_NEED(rows_flat_from(call, 1));
    ROWS_TRY(rows_broadcast(call, 0, call->n_in, 0, &shape));
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", -1), x->rank);
    ROWS_NEED(axis >= 0 && shape.rank == x->rank && (!rows_has(x) || x->axis < axis));
    rows_outs_like(call, x);
    for (size_t i = 1; i < call->n_out; i++) {
        for (int32_t k = axis; k < x->rank; k++) {
            call->out[i].dims[k] = rows_number(1);
        }
    }
    return ROWS_APART;
}

/* Of each image and channel, or group of channels: scale and bias have one place for each channel. */
static enum rows_verdict run_image_norm(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    rows_out_like(call, 0, x);
    ROWS_NEED(rows_flat_from(call, 1) && (!rows_has(x) || x->axis == 0));
    return ROWS_APART;
}

/* In training mode it takes the moments of the batch. */
static enum rows_verdict run_batch_norm(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    rows_out_like(call, 0, x);
    ROWS_NEED(onnx_int(&call->call, "training_mode", 0) == 0 && call->n_out == 1);
    ROWS_NEED(rows_flat_from(call, 1) && (!rows_has(x) || x->axis != 1));
    return ROWS_APART;
}

static enum rows_verdict run_moments(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    rows_out_like(call, 0, x);
    ROWS_KNOW(x->rank >= 0);
    ROWS_TRY(rows_axes(call, SIZE_MAX, x->rank, axes, &has_axes));
    axes[0] = axes[0] || !has_axes;
    ROWS_NEED(!rows_has(x) || (has_axes && !axes[x->axis]));
    return ROWS_APART;
}

/* ---- products ----------------------------------------------------------------------------------- */

/* Of matrices, the last two dimensions of each; those before them are broadcast. */
static enum rows_verdict multiply(struct rows_call *call, const struct rows_state *a,
                                  const struct rows_state *b)
{
    ROWS_KNOW(a->rank >= 0 && b->rank >= 0);
    bool is_flat = rows_flat(a) && rows_flat(b);
    ROWS_KNOW(a->rank >= 2 && (b->rank >= 2 || (b->rank == 1 && is_flat)));
    ROWS_NEED(!rows_is_of_n(&a->dims[a->rank - 1]));
    if (b->rank < 2) {
        return ROWS_UNSURE;
    }
    ROWS_NEED(!rows_is_of_n(&b->dims[b->rank - 2]));
    struct rows_state left = *a, right = *b, out;
    left.dims[a->rank - 1] = rows_number(1);
    right.dims[b->rank - 2] = rows_number(1);
    ROWS_TRY(rows_broadcast_pair(call, &left, &right, &out));
    rows_out_like(call, 0, &out);
    return ROWS_APART;
}

static enum rows_verdict run_matmul(struct rows_call *call)
{
    ROWS_NEED(rows_flat_from(call, 2));
    return multiply(call, rows_in(call, 0), rows_in(call, 1));
}

/* Zero points are one, or one for each place of a dimension that is not the batch's. */
static bool is_point(const struct rows_state *x, const struct rows_state *point)
{
    return point == NULL || point->rank == 0 ||
           (point->rank == 1 && (rows_is(&point->dims[0], 1) || !rows_has(x)));
}

static enum rows_verdict run_integer_matmul(struct rows_call *call)
{
    ROWS_NEED(rows_flat_from(call, 2));
    ROWS_NEED(is_point(rows_in(call, 0), rows_in(call, 2)));
    ROWS_NEED(is_point(rows_in(call, 1), rows_in(call, 3)));
    return multiply(call, rows_in(call, 0), rows_in(call, 1));
}

static enum rows_verdict run_quantized_matmul(struct rows_call *call)
{
    const struct rows_state *a = rows_in(call, 0), *b = rows_in(call, 3);
    for (size_t i = 1; i < call->n_in; i++) {
        bool is_of_b = i == 4 || i == 5;
        ROWS_NEED(i == 3 || (rows_flat(call->in[i]) && is_point(is_of_b ? b : a, call->in[i])));
    }
    return multiply(call, a, b);
}

static void turn(struct rows_state *x)
{
    struct rows_amount dim = x->dims[0];
    x->dims[0] = x->dims[1];
    x->dims[1] = dim;
    x->axis = 1 - x->axis;
}

static enum rows_verdict run_gemm(struct rows_call *call)
{
    const struct rows_state *c = rows_in(call, 2);
    ROWS_KNOW(rows_in(call, 0)->rank == 2 && rows_in(call, 1)->rank == 2);
    struct rows_state a = *rows_in(call, 0), b = *rows_in(call, 1), sum;
    if (onnx_int(&call->call, "transA", 0) != 0) {
        turn(&a);
    }
    if (onnx_int(&call->call, "transB", 0) != 0) {
        turn(&b);
    }
    ROWS_TRY(multiply(call, &a, &b));
    if (c != NULL) {
        const struct rows_state product = call->out[0];
        ROWS_TRY(rows_broadcast_pair(call, &product, c, &sum));
        ROWS_NEED(sum.rank == 2);
        rows_out_like(call, 0, &sum);
    }
    return ROWS_APART;
}

const struct rows_rule rows_sums[] = {
    {"Softmax LogSoftmax Hardmax", run_softmax, 0, 1},
    {"LpNormalization", run_along, 0, 1},
    {"CumSum CumProd", run_cumulate, 0, 2},
    {"TopK", run_top, 0, 1},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
     "ReduceProd ReduceSum ReduceSumSquare",
     run_reduce, 2, 1},
    {"ArgMax ArgMin", run_arg, 0, 1},
    {"LayerNormalization RMSNormalization", run_layer_norm, 0, 1},
    {"InstanceNormalization GroupNormalization LRN", run_image_norm, 0, 1},
    {"BatchNormalization", run_batch_norm, 0, 1},
    {"MeanVarianceNormalization", run_moments, 0, 1},
    {"MatMul", run_matmul, 0, 2},
    {"MatMulInteger", run_integer_matmul, 0, 2},
    {"QLinearMatMul", run_quantized_matmul, 0, 8},
    {"Gemm", run_gemm, 0, 2},
};
const size_t rows_n_sums = WEIR_ARRAY_LEN(rows_sums);
