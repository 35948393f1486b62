/* Operators of bytes, and what they have in common with those of floats. */
#include "random_pick.h"

#include <math.h>
#include <string.h>

double graph_count(const int64_t *dims, int n)
{
    double product = 1;
    for (int i = 0; i < n; i++) {
        product *= (double)dims[i];
    }
    return product;
}

/* Strides, pads and dilations of a window; the kernel where it is an attribute. */
void graph_set_window(struct random_graph *g, int n, const int64_t *kernel, bool has_kernel,
                      bool is_small)
{
    int64_t numbers[2 * WEIR_TENSOR_RANK_MAX];
    if (has_kernel) {
        graph_set_ints(g, "kernel_shape", n, kernel);
    }
    if (graph_rarely(g, 3)) {
        for (int i = 0; i < n; i++) {
            numbers[i] = graph_pick(g, 1, 2);
        }
        graph_set_ints(g, "strides", n, numbers);
    }
    if (graph_rarely(g, 6)) {
        graph_set_text(g, "auto_pad", graph_rarely(g, 2) ? "SAME_UPPER" : "SAME_LOWER");
    } else if (!graph_rarely(g, 3)) {
        for (int i = 0; i < 2 * n; i++) {
            numbers[i] = graph_pick(g, 0, is_small ? kernel[i % n] - 1 : 2);
        }
        graph_set_ints(g, "pads", 2 * n, numbers);
    }
    if (graph_rarely(g, 6) && !is_small) {
        for (int i = 0; i < n; i++) {
            numbers[i] = graph_pick(g, 1, 2);
        }
        graph_set_ints(g, "dilations", n, numbers);
    }
}

/* ---- bytes ------------------------------------------------------------------------------------ */

/* A scale that is a power of two, so that nothing lies near the middle of two bytes by chance. */
static double a_scale(struct random_graph *g)
{
    return ldexp(1, (int)graph_pick(g, -2, 0));
}

static int zero_point(struct random_graph *g, enum weir_dtype dtype)
{
    const double zero = (double)graph_pick(g, dtype == WEIR_DTYPE_INT8 ? -5 : 0, 5);
    return graph_constant(g, dtype, 0, NULL, &zero);
}

static int number(struct random_graph *g, double value)
{
    return graph_constant(g, WEIR_DTYPE_FLOAT, 0, NULL, &value);
}

static enum weir_dtype a_byte(struct random_graph *g)
{
    return graph_rarely(g, 2) ? WEIR_DTYPE_INT8 : WEIR_DTYPE_UINT8;
}

static const struct graph_result bytes = {.is_exact = true, .bound = 255};

/* x as bytes, and as floats again. @return The bytes; *out_floats the floats. */
static int through_bytes(struct random_graph *g, int x, int *out_floats)
{
    double scale = a_scale(g);
    enum weir_dtype dtype = a_byte(g);
    int in[3] = {x, number(g, scale), zero_point(g, dtype)};
    struct graph_result result = bytes;
    *out_floats = -1;
    if (in[2] < 0 || g->opset < 10) {
        return -1;
    }
    bool has_zero = dtype == WEIR_DTYPE_INT8 || !graph_rarely(g, 5);
    result.bound = dtype == WEIR_DTYPE_INT8 ? 127 : 255;
    int q = graph_add(g, "QuantizeLinear", in, has_zero ? 3 : 2, 1, result);
    if (q < 0) {
        return -1;
    }
    in[0] = q;
    *out_floats = graph_add(
        g, "DequantizeLinear", in, has_zero ? 3 : 2, 1,
        (struct graph_result){.is_exact = true, .bound = 260 * scale, .grid = (int)log2(scale)});
    return q;
}

/* Weights that come from bytes. */
static int byte_weights(struct random_graph *g, int rank, const int64_t *dims, int axis)
{
    bool is_each = graph_rarely(g, 2) && g->opset >= 13;
    int q = graph_given(g, true, WEIR_DTYPE_INT8, rank, dims, VALUE_DYADIC);
    int in[3] = {q, -1, -1};
    if (q < 0) {
        return -1;
    }
    if (is_each) {
        in[1] = graph_given(g, true, WEIR_DTYPE_FLOAT, 1, &dims[axis], VALUE_POSITIVE);
        graph_set_int(g, "axis", axis);
    } else {
        in[1] = number(g, a_scale(g));
    }
    int w = in[1] >= 0 ? graph_add(g, "DequantizeLinear", in, 2, 1,
                                   (struct graph_result){.is_exact = true, .bound = 16, .grid = -2})
                       : -1;
    weir_buf_reset(&g->attributes);
    return w;
}

void random_bytes(struct random_graph *g)
{
    int x = pick_value(g, F32 | EXACT | FINITE, 1, 5), floats, y, ignored;
    if (x < 0 || through_bytes(g, x, &floats) < 0 || floats < 0) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, floats);
    int64_t c = tensor->rank >= 2 ? tensor->dims[tensor->rank == 4 ? 1 : tensor->rank - 1] : 0;
    int64_t k = graph_pick(g, 1, 20), dims[4] = {k, c, graph_pick(g, 1, 3), graph_pick(g, 1, 3)};
    int in[2] = {floats, -1};
    switch (graph_pick(g, 0, 4)) {
    case 0: /* a sum of two that come from bytes */
        (void)through_bytes(g, graph_rarely(g, 2) ? x : pick_partner(g, x, EXACT | FINITE), &in[1]);
        y = in[1] >= 0 ? graph_add(g, "Add", in, 2, 1, graph_summed(g, in, 2)) : -1;
        break;
    case 1:
        if (tensor->rank < 3) {
            return;
        }
        graph_set_window(g, tensor->rank - 2, (const int64_t[]){2, 2, 2}, true, true);
        y = graph_add1(g, "MaxPool", floats, graph_moved(g, &floats, 1));
        break;
    case 2:
        if (tensor->rank != 4 || tensor->n_elems == 0) {
            return;
        }
        in[1] = byte_weights(g, 4, dims, 0);
        graph_set_window(g, 2, dims + 2, false, true);
        y = in[1] >= 0 ? graph_add(g, "Conv", in, 2, 1,
                                   graph_multiplied(g, floats, in[1], graph_count(dims + 1, 3)))
                       : -1;
        weir_buf_reset(&g->attributes);
        break;
    default:
        if (tensor->rank < 2 || tensor->rank == 4) {
            return;
        }
        dims[0] = c;
        dims[1] = k;
        in[1] = byte_weights(g, 2, dims, 1);
        y = in[1] >= 0 ? graph_add(g, "MatMul", in, 2, 1,
                                   graph_multiplied(g, floats, in[1], (double)c + 1))
                       : -1;
        break;
    }
    if (y >= 0 && graph_rarely(g, 2)) {
        y = graph_add1(g, "Relu", y, graph_moved(g, &y, 1));
    }
    if (y >= 0 && g->values[y].is_exact) {
        (void)through_bytes(g, y, &ignored);
    }
}

void random_byte_operator(struct random_graph *g)
{
    bool is_conv = graph_rarely(g, 2), is_linear = graph_rarely(g, 2);
    int x = pick_value(g, BYTES | LARGE_ENOUGH, is_conv ? 4 : 2, is_conv ? 4 : 3);
    if (x < 0 || g->opset < 10) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, x);
    int64_t c = tensor->dims[is_conv ? 1 : tensor->rank - 1], k = graph_pick(g, 1, 18);
    int64_t dims[4] = {is_conv ? k : c, is_conv ? c : k, graph_pick(g, 1, 2), graph_pick(g, 1, 3)};
    int w = graph_given(g, !graph_rarely(g, 5), a_byte(g), is_conv ? 4 : 2, dims, VALUE_DYADIC);
    if (w < 0) {
        return;
    }
    enum weir_dtype w_dtype = graph_tensor(g, w)->dtype, y_dtype = tensor->dtype;
    if (is_conv) {
        graph_set_window(g, 2, dims + 2, false, true);
    }
    if (!is_linear) {
        int in[4] = {x, w, zero_point(g, tensor->dtype), zero_point(g, w_dtype)};
        (void)(in[3] >= 0 ? graph_add(g, is_conv ? "ConvInteger" : "MatMulInteger", in, 4, 1,
                                      (struct graph_result){.is_exact = true, .bound = 1e7})
                          : 0);
    } else {
        int in[8] = {x,
                     number(g, a_scale(g)),
                     zero_point(g, tensor->dtype),
                     w,
                     number(g, a_scale(g)),
                     zero_point(g, w_dtype),
                     number(g, a_scale(g) * 4),
                     zero_point(g, y_dtype)};
        struct graph_result result = bytes;
        result.bound = y_dtype == WEIR_DTYPE_INT8 ? 127 : 255;
        (void)(in[7] >= 0
                   ? graph_add(g, is_conv ? "QLinearConv" : "QLinearMatMul", in, 8, 1, result)
                   : 0);
    }
    weir_buf_reset(&g->attributes);
}

void random_dynamic(struct random_graph *g)
{
    int x = pick_value(g, F32 | EXACT | FINITE | LARGE_ENOUGH, 1, 4);
    if (x < 0 || g->opset < 11) {
        return;
    }
    /* Its step is no power of two, so what it makes is exact only as everybody computes it alone. */
    int y = graph_add(g, "DynamicQuantizeLinear", &x, 1, 3,
                      (struct graph_result){.is_exact = true, .bound = 255, .grid = 8 - 23});
    if (y >= 0) {
        g->values[y + 1].is_closed = true;
    }
}
