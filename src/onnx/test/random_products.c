/* Operators with weights: convolutions, products, pools, norms; those of bytes; and those of images. */
#include "random_pick.h"

#include <math.h>
#include <string.h>

/* Weights of a layer: constant for the most part. */
static int weights(struct random_graph *g, enum weir_dtype dtype, int rank, const int64_t *dims)
{
    enum value_kind kind = graph_rarely(g, 3) ? VALUE_NORMAL : VALUE_DYADIC;
    return graph_given(g, !graph_rarely(g, 10), dtype, rank, dims,
                       graph_rarely(g, 60) ? VALUE_SPECIAL : kind);
}

static uint64_t f32_mostly(struct random_graph *g)
{
    return (graph_rarely(g, 8) ? BIT(DOUBLE) | BIT(FLOAT16) | F32 : F32) | LARGE_ENOUGH;
}

/* ---- what follows a product ------------------------------------------------------------------- */

static int by_channel(struct random_graph *g, const char *type, int y, int channels)
{
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    const struct weir_tensor *tensor = graph_tensor(g, y);
    int64_t form = graph_pick(g, 0, 4);
    int rank = form == 0 ? 0 : form == 1 ? 1 : form == 2 ? tensor->rank : tensor->rank - channels;
    for (int i = 0; i < rank; i++) {
        int at = i + tensor->rank - rank;
        dims[i] = form == 1 || at != channels ? 1 : tensor->dims[at];
        dims[i] = form == 4 && at > channels ? tensor->dims[at] : dims[i];
    }
    int in[2] = {y, graph_given(g, !graph_rarely(g, 8), WEIR_DTYPE_FLOAT, rank, dims,
                                type[0] == 'D' ? VALUE_POSITIVE : VALUE_DYADIC)};
    if (in[1] < 0) {
        return -1;
    }
    if (type[0] != 'D') {
        pick_order(g, in);
    }
    struct graph_result result = type[0] == 'M'   ? graph_multiplied(g, in[0], in[1], 1)
                                 : type[0] == 'D' ? graph_moved(g, &y, 1)
                                                  : graph_summed(g, in, 2);
    if (type[0] == 'D') {
        result.bound *= 2;
        result.grid -= 2;
    }
    return graph_add(g, type, in, 2, 1, result);
}

static int norm(struct random_graph *g, int x)
{
    const int64_t c = graph_dim(g, x, 1);
    int in[5] = {x, weights(g, WEIR_DTYPE_FLOAT, 1, &c), weights(g, WEIR_DTYPE_FLOAT, 1, &c),
                 weights(g, WEIR_DTYPE_FLOAT, 1, &c),
                 graph_given(g, true, WEIR_DTYPE_FLOAT, 1, &c, VALUE_POSITIVE)};
    for (int i = 1; i < 5; i++) {
        if (in[i] < 0) {
            return -1;
        }
    }
    return graph_add(g, "BatchNormalization", in, 5, 1, graph_inexact(g, in, 5));
}

static int residual(struct random_graph *g, int y)
{
    const struct weir_tensor *tensor = graph_tensor(g, y);
    int in[2] = {y, pick_partner(g, y, 0)};
    for (int i = g->n_values - 1; i >= 0 && graph_rarely(g, 2); i--) {
        const struct weir_tensor *other = graph_tensor(g, i);
        if (i != y && other->dtype == tensor->dtype && other->rank == tensor->rank &&
            memcmp(other->dims, tensor->dims, (size_t)other->rank * sizeof *other->dims) == 0) {
            in[1] = i;
            break;
        }
    }
    if (in[1] < 0) {
        return -1;
    }
    pick_order(g, in);
    return graph_add(g, graph_rarely(g, 3) ? "Sum" : "Add", in, 2, 1, graph_summed(g, in, 2));
}

/* A few steps behind, each of which may be done with the product; and some read it twice. */
static void add_tail(struct random_graph *g, int y, int channels)
{
    static const char *const acts[] = {"Relu", "LeakyRelu", "Sigmoid",
                                       "Tanh", "Elu",       "HardSigmoid"};
    static const char *const sums[] = {"Add", "Mul", "Sub", "Div"};
    for (int64_t n = graph_pick(g, 0, 4); n > 0 && y >= 0; n--) {
        int was = y;
        if (graph_tensor(g, y)->dtype != WEIR_DTYPE_FLOAT) {
            return;
        }
        switch (graph_pick(g, 0, 5)) {
        case 0:
            y = graph_tensor(g, y)->rank >= 2 ? norm(g, y) : y;
            break;
        case 1:
            y = residual(g, y);
            break;
        case 2: {
            int gate = graph_add1(g, "Sigmoid", y, graph_inexact(g, &y, 1));
            int in[2] = {y, gate};
            pick_order(g, in);
            y = gate >= 0 ? graph_add(g, "Mul", in, 2, 1, graph_multiplied(g, y, gate, 1)) : -1;
            break;
        }
        case 3: {
            const char *type = PICK(g, acts);
            y = graph_add1(g, type, y,
                           type[0] == 'R' ? graph_moved(g, &y, 1) : graph_inexact(g, &y, 1));
            break;
        }
        default:
            y = by_channel(g, PICK(g, sums), y, channels);
            break;
        }
        if (y >= 0 && graph_rarely(g, 8)) { /* the step before is read once more */
            int in[2] = {y, was};
            y = graph_add(g, "Mul", in, 2, 1, graph_multiplied(g, y, was, 1));
        }
    }
}

/* ---- convolutions and pools ------------------------------------------------------------------- */

/* Strides, padding, distances of taps, and pixels behind those that windows reach: each alone and together. */
static void set_turned_window(struct random_graph *g, int n, const int64_t *kernel)
{
    int64_t strides[3], dilations[3], pads[6], extra[3];
    bool is_dilated = graph_rarely(g, 4), is_gapless = true;
    for (int i = 0; i < n; i++) {
        strides[i] = graph_rarely(g, 2) ? kernel[i] : graph_pick(g, 1, 3);
        dilations[i] = is_dilated ? graph_pick(g, 1, 2) : 1;
        extra[i] = graph_pick(g, 0, WEIR_MAX(strides[i], dilations[i]) - 1);
        is_gapless = is_gapless && kernel[i] >= strides[i];
        pads[i] = graph_pick(g, 0, kernel[i] - 1);
        pads[i + n] = graph_pick(g, 0, kernel[i] - 1);
    }
    graph_set_ints(g, "strides", n, strides);
    if (is_dilated) {
        graph_set_ints(g, "dilations", n, dilations);
    }
    if (graph_rarely(g, 6) && !is_dilated && (is_gapless || !g->is_common)) {
        /* how large the result is where windows leave pixels out, not all agree */
        graph_set_text(g, "auto_pad", graph_rarely(g, 2) ? "SAME_UPPER" : "SAME_LOWER");
        return;
    }
    if (graph_rarely(g, 2)) {
        graph_set_ints(g, "pads", 2 * n, pads);
    }
    if (graph_rarely(g, 3)) {
        graph_set_ints(g, "output_padding", n, extra);
    }
}

static void add_conv(struct random_graph *g)
{
    int x = pick_value(g, f32_mostly(g), graph_rarely(g, 6) ? 3 : 4, graph_rarely(g, 6) ? 5 : 4);
    if (x < 0 || graph_tensor(g, x)->n_elems == 0) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, x);
    int64_t c = tensor->dims[1], groups = graph_rarely(g, 5)                 ? c
                                          : graph_rarely(g, 8) && c % 2 == 0 ? 2
                                                                             : 1;
    int64_t k = graph_rarely(g, 3)   ? c
                : graph_rarely(g, 2) ? graph_pick(g, 1, 4) * 8
                                     : graph_pick(g, 1, 5);
    bool is_turned = graph_rarely(g, 4);
    k = groups > 1 ? c * graph_pick(g, 1, 2) : k;
    int64_t dims[WEIR_TENSOR_RANK_MAX] = {is_turned ? c : k, is_turned ? k / groups : c / groups};
    for (int i = 2; i < tensor->rank; i++) {
        dims[i] = graph_rarely(g, 2) ? 3 : graph_pick(g, 1, 3);
    }
    int in[3] = {x, weights(g, tensor->dtype, tensor->rank, dims), -1}, n = 2;
    if (in[1] < 0) {
        return;
    }
    const int64_t n_inputs = c / groups;
    double n_terms = (double)n_inputs * graph_count(dims + 2, tensor->rank - 2);
    bool is_exact = dims[2] != 3 || dims[1] < 16; /* not by Winograd's filtering */
    struct graph_result result = graph_multiplied(g, in[0], in[1], n_terms);
    if (graph_rarely(g, 2)) {
        in[2] = weights(g, tensor->dtype, 1, &k);
        n = 3;
        if (in[2] < 0) {
            return;
        }
        result.bound += g->values[in[2]].bound;
        result.is_special = result.is_special || g->values[in[2]].is_special;
        result.is_exact = result.is_exact && g->values[in[2]].is_exact;
    }
    result.is_exact = result.is_exact && is_exact;
    graph_set_int(g, "group", groups);
    if (is_turned) {
        set_turned_window(g, tensor->rank - 2, dims + 2);
    } else {
        graph_set_window(g, tensor->rank - 2, dims + 2, false, false);
    }
    int y = graph_add(g, is_turned ? "ConvTranspose" : "Conv", in, n, 1, result);
    if (y >= 0 && !graph_rarely(g, 4)) {
        add_tail(g, y, 1);
    }
}

static void add_pool(struct random_graph *g)
{
    static const char *const types[] = {"MaxPool", "AveragePool", "MaxPool", "AveragePool",
                                        "LpPool"};
    const char *type = PICK(g, types);
    int x = pick_value(g, f32_mostly(g), 3, 5);
    int64_t kernel[3];
    if (x < 0) {
        return;
    }
    int n = graph_tensor(g, x)->rank - 2;
    for (int i = 0; i < n; i++) {
        kernel[i] = graph_pick(g, 1, 3);
        if (g->is_common) { /* what a window larger than the image gives is not agreed on */
            kernel[i] = WEIR_MAX(WEIR_MIN(kernel[i], graph_dim(g, x, i + 2)), (int64_t)1);
        }
    }
    graph_set_window(g, n, kernel, true, type[0] != 'M' || g->opset < 10 || g->is_common);
    if (g->opset >= 10 && graph_rarely(g, 4) && type[0] != 'L') {
        graph_set_int(g, "ceil_mode", 1);
    }
    if (type[0] == 'A' && graph_rarely(g, 2)) {
        graph_set_int(g, "count_include_pad", 1);
    }
    struct graph_result result = type[0] == 'M' ? graph_moved(g, &x, 1) : graph_inexact(g, &x, 1);
    bool has_places =
        type[0] == 'M' && g->values[x].is_exact && graph_rarely(g, 6) && !g->values[x].is_special;
    result.bound = has_places ? fmax(result.bound, 20000) : result.bound;
    result.grid = has_places ? WEIR_MIN(result.grid, 0) : result.grid;
    (void)graph_add(g, type, &x, 1, has_places ? 2 : 1, result);
}

static void add_global_pool(struct random_graph *g)
{
    static const char *const types[] = {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool",
                                        "LRN"};
    const char *type = PICK(g, types);
    int x = pick_value(g, f32_mostly(g), type[0] == 'L' ? 4 : 3, type[0] == 'L' ? 4 : 5);
    if (x < 0) {
        return;
    }
    if (type[0] == 'L') {
        graph_set_int(g, "size", graph_pick(g, 0, 3) * 2 + 1);
    }
    (void)graph_add1(g, type, x,
                     strcmp(type, "GlobalMaxPool") == 0 ? graph_moved(g, &x, 1)
                                                        : graph_inexact(g, &x, 1));
}

/* ---- products of matrices --------------------------------------------------------------------- */

static void add_gemm(struct random_graph *g)
{
    int x = pick_value(g, f32_mostly(g), 2, 2);
    if (x < 0) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, x);
    bool turns_a = graph_rarely(g, 8), turns_b = graph_rarely(g, 2);
    int64_t inner = tensor->dims[turns_a ? 0 : 1], rows = tensor->dims[turns_a ? 1 : 0];
    int64_t columns = graph_rarely(g, 3) ? inner : graph_pick(g, 1, 9);
    const int64_t dims[] = {turns_b ? columns : inner, turns_b ? inner : columns};
    int in[3] = {x, weights(g, tensor->dtype, 2, dims), -1}, n = 2;
    if (in[1] < 0) {
        return;
    }
    struct graph_result result = graph_multiplied(g, in[0], in[1], (double)inner);
    if (graph_rarely(g, 2) || g->opset < 11) {
        const int64_t bias[] = {graph_rarely(g, 4) ? rows : 1, graph_rarely(g, 4) ? 1 : columns};
        int rank = (int)graph_pick(g, 0, 2);
        in[2] = weights(g, tensor->dtype, rank, rank == 2 ? bias : &columns);
        n = 3;
        if (in[2] < 0) {
            return;
        }
        result = graph_moved(g, in + 2, 1).is_exact ? result : graph_inexact(g, in, 3);
        result.bound += result.bound > 0 ? g->values[in[2]].bound : 0;
        result.is_special = result.is_special || g->values[in[2]].is_special;
    }
    if (graph_rarely(g, 6)) {
        graph_set_float(g, "alpha", 0.5);
        result.grid--;
    }
    if (graph_rarely(g, 6)) {
        graph_set_float(g, "beta", 2);
        result.bound *= 2;
    }
    graph_set_int(g, "transA", turns_a);
    graph_set_int(g, "transB", turns_b);
    int y = graph_add(g, "Gemm", in, n, 1, result);
    if (y >= 0 && !graph_rarely(g, 4)) {
        add_tail(g, y, 1);
    }
}

static void add_matmul(struct random_graph *g)
{
    int x = pick_value(g, f32_mostly(g), 1, 5);
    if (x < 0) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, x);
    int rank = graph_rarely(g, 2) ? 2 : (int)graph_pick(g, 1, 4);
    int64_t inner = tensor->dims[tensor->rank - 1], dims[WEIR_TENSOR_RANK_MAX];
    for (int i = 0; i < rank; i++) {
        int at = tensor->rank - rank + i;
        dims[i] = at >= 0 && !graph_rarely(g, 3) ? tensor->dims[at] : graph_rarely(g, 2) ? 1 : 2;
    }
    dims[rank == 1 ? 0 : rank - 2] = inner;
    if (rank > 1) {
        dims[rank - 1] = graph_pick(g, 1, 8);
    }
    int in[2] = {x, graph_rarely(g, 4) ? pick_value(g, UINT64_C(1) << tensor->dtype, 1, 4)
                                       : weights(g, tensor->dtype, rank, dims)};
    if (in[1] < 0) {
        return;
    }
    int y = graph_add(g, "MatMul", in, 2, 1,
                      graph_multiplied(g, in[0], in[1], (double)WEIR_MAX(inner, (int64_t)1)));
    if (y >= 0 && graph_tensor(g, y)->rank > 0 && !graph_rarely(g, 4)) {
        add_tail(g, y, graph_tensor(g, y)->rank - 1);
    }
}

/* ---- norms ------------------------------------------------------------------------------------ */

static void add_norm(struct random_graph *g)
{
    int x = pick_value(g, F32 | LARGE_ENOUGH, 2, 5), n = 3;
    if (x < 0) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, x);
    int64_t c = tensor->dims[1], last = tensor->dims[tensor->rank - 1], of = c;
    const char *type = NULL;
    switch (graph_pick(g, 0, 5)) {
    case 0:
        type = g->opset >= 17 ? "LayerNormalization" : NULL;
        of = last;
        break;
    case 1:
        type = g->opset >= 23 ? "RMSNormalization" : NULL;
        of = last;
        n = 2;
        break;
    case 2:
        type = g->opset >= 21 ? "GroupNormalization" : NULL;
        graph_set_int(g, "num_groups", c % 2 == 0 && graph_rarely(g, 2) ? 2 : 1);
        break;
    case 3:
        type = tensor->rank >= 3 ? "InstanceNormalization" : NULL;
        break;
    case 4:
        (void)(tensor->rank == 4 && g->opset >= 9
                   ? graph_add1(g, "MeanVarianceNormalization", x, graph_inexact(g, &x, 1))
                   : 0);
        weir_buf_reset(&g->attributes);
        return;
    default: {
        int y = norm(g, x);
        if (y >= 0) {
            add_tail(g, y, 1);
        }
        return;
    }
    }
    int in[3] = {x, weights(g, WEIR_DTYPE_FLOAT, 1, &of), weights(g, WEIR_DTYPE_FLOAT, 1, &of)};
    if (type != NULL && in[1] >= 0 && in[2] >= 0) {
        (void)graph_add(g, type, in, n, 1, graph_inexact(g, in, n));
    }
    weir_buf_reset(&g->attributes);
}

/* ---- images ----------------------------------------------------------------------------------- */

static void add_resize(struct random_graph *g)
{
    static const char *const modes[] = {"nearest", "linear", "nearest"};
    const char *mode = PICK(g, modes);
    int x = pick_value(g, F32 | LARGE_ENOUGH, 4, 4);
    if (x < 0) {
        return;
    }
    const double factors[] = {1, 1, (double)graph_pick(g, 1, 2), (double)graph_pick(g, 1, 2)};
    const int64_t four = 4;
    int scales = graph_constant(g, WEIR_DTYPE_FLOAT, 1, &four, factors);
    struct graph_result result = mode[0] == 'n' ? graph_moved(g, &x, 1) : graph_inexact(g, &x, 1);
    if (scales < 0) {
        return;
    }
    graph_set_text(g, "mode", mode);
    if (g->opset >= 11) {
        int in[3] = {x, -1, scales};
        (void)graph_add(g, "Resize", in, 3, 1, result);
    } else if (g->opset >= 9) {
        int in[2] = {x, scales};
        (void)graph_add(g, g->opset == 10 ? "Resize" : "Upsample", in, 2, 1, result);
    }
    weir_buf_reset(&g->attributes);
}

static void add_boxes(struct random_graph *g)
{
    const int64_t n = graph_pick(g, 1, 6), boxes[] = {1, n, 4}, scores[] = {1, 2, n},
                  rois[] = {n, 4};
    const double three = 3, half = 0.5;
    if (g->opset >= 10 && graph_rarely(g, 2)) {
        int in[4] = {graph_given(g, false, WEIR_DTYPE_FLOAT, 3, boxes, VALUE_DYADIC),
                     graph_given(g, false, WEIR_DTYPE_FLOAT, 3, scores, VALUE_DYADIC),
                     graph_constant(g, WEIR_DTYPE_INT64, 1, (const int64_t[]){1}, &three),
                     graph_constant(g, WEIR_DTYPE_FLOAT, 1, (const int64_t[]){1}, &half)};
        if (in[3] >= 0) {
            (void)graph_add(g, "NonMaxSuppression", in, 4, 1,
                            (struct graph_result){.is_exact = true, .bound = 100});
        }
    } else if (g->opset >= 10) {
        int x = pick_value(g, F32 | LARGE_ENOUGH, 4, 4);
        const double zeros[8] = {0};
        if (x < 0) {
            return;
        }
        int in[3] = {x, graph_given(g, true, WEIR_DTYPE_FLOAT, 2, rois, VALUE_DYADIC),
                     graph_constant(g, WEIR_DTYPE_INT64, 1, &n, zeros)};
        graph_set_int(g, "output_height", 2);
        graph_set_int(g, "output_width", 2);
        if (in[2] >= 0) {
            (void)graph_add(g, "RoiAlign", in, 3, 1, graph_inexact(g, in, 2));
        }
    }
    weir_buf_reset(&g->attributes);
}

void random_products_add(struct random_graph *g)
{
    static void (*const all[])(struct random_graph * g) = {
        add_conv,       add_conv,   add_conv,     add_conv,     add_gemm,     add_gemm,
        add_matmul,     add_matmul, add_matmul,   add_pool,     add_pool,     add_global_pool,
        add_norm,       add_norm,   random_bytes, random_bytes, random_bytes, random_byte_operator,
        random_dynamic, add_resize, add_boxes};
    PICK(g, all)(g);
}
