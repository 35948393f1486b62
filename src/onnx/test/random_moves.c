/* Operators that move elements, choose among them, sum them up, or speak of shapes. */
#include "random_pick.h"

#include <math.h>
#include <string.h>

/* Axes as an attribute, or since an opset as an input. @return Inputs of the node. */
static int set_axes(struct random_graph *g, int since, int n, const int64_t *axes, int in[2])
{
    if (g->opset < since) {
        graph_set_ints(g, "axes", n, axes);
        return 1;
    }
    in[1] = graph_ints(g, n, axes);
    return 2;
}

static int64_t an_axis(struct random_graph *g, int x)
{
    int rank = graph_tensor(g, x)->rank;
    return graph_pick(g, graph_rarely(g, 2) ? -rank : 0, rank - 1);
}

/* ---- the order of elements -------------------------------------------------------------------- */

static void add_transpose(struct random_graph *g)
{
    int x = pick_value(g, ANY, 0, 6);
    int64_t perm[WEIR_TENSOR_RANK_MAX];
    if (x < 0) {
        return;
    }
    int rank = graph_tensor(g, x)->rank;
    for (int i = 0; i < rank; i++) {
        perm[i] = i;
    }
    for (int i = rank - 1; i > (graph_rarely(g, 2) ? 0 : 1); i--) {
        int64_t k = graph_pick(g, 0, i), was = perm[i];
        perm[i] = perm[k];
        perm[k] = was;
    }
    if (rank > 0 && !graph_rarely(g, 4)) {
        graph_set_ints(g, "perm", rank, perm);
    }
    (void)graph_add1(g, "Transpose", x, graph_moved(g, &x, 1));
}

static void add_reshape(struct random_graph *g)
{
    int in[2] = {pick_value(g, ANY, 0, 6), -1};
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    if (in[0] < 0) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    int n = 0;
    switch (graph_pick(g, 0, 4)) {
    case 0:
        dims[n++] = -1;
        break;
    case 1: /* the first stays */
        for (; n < WEIR_MIN(x->rank, 2); n++) {
            dims[n] = n == 0 ? 0 : -1;
        }
        break;
    case 2: /* two become one */
        for (int i = 0; i < x->rank; i++) {
            if (i + 1 < x->rank && n == (x->rank > 2)) {
                dims[n++] = x->dims[i] * x->dims[i + 1];
                i++;
            } else {
                dims[n++] = x->dims[i];
            }
        }
        break;
    case 3: /* ones between */
        for (int i = 0; i < x->rank && n < 6; i++) {
            if (graph_rarely(g, 3)) {
                dims[n++] = 1;
            }
            dims[n++] = x->dims[i];
        }
        break;
    default: /* another shape of as many */
        for (; n < x->rank; n++) {
            dims[n] = x->dims[x->rank - 1 - n];
        }
        break;
    }
    in[1] = graph_ints(g, n, dims);
    (void)graph_add(g, "Reshape", in, 2, 1, graph_moved(g, in, 1));
}

static void add_view(struct random_graph *g)
{
    static const char *const types[] = {"Flatten", "Squeeze", "Unsqueeze", "Identity", "Squeeze"};
    const char *type = PICK(g, types);
    int in[2] = {pick_value(g, ANY, 0, 5), -1}, n = 1;
    if (in[0] < 0) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    if (type[0] == 'F' && x->rank > 0) {
        graph_set_int(g, "axis", graph_pick(g, 0, x->rank));
    } else if (type[0] == 'U') {
        const int64_t axis = graph_pick(g, 0, x->rank);
        n = set_axes(g, 13, 1, &axis, in);
    } else if (type[0] == 'S' && !graph_rarely(g, 3)) {
        int64_t axes[WEIR_TENSOR_RANK_MAX];
        int n_axes = 0;
        for (int i = 0; i < x->rank; i++) {
            if (x->dims[i] == 1 && !graph_rarely(g, 3)) {
                axes[n_axes++] = i;
            }
        }
        n = n_axes > 0 ? set_axes(g, 13, n_axes, axes, in) : 1;
    }
    (void)graph_add(g, type, in, n, 1, graph_moved(g, in, 1));
}

static void add_concat(struct random_graph *g)
{
    int in[5], n = (int)graph_pick(g, 1, 4);
    in[0] = pick_value(g, ANY, 1, 5);
    if (in[0] < 0) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    int axis = x->rank > 1 && !graph_rarely(g, 3) ? 1 : (int)graph_pick(g, 0, x->rank - 1);
    for (int i = 1; i < n; i++) {
        int64_t dims[WEIR_TENSOR_RANK_MAX];
        in[i] = in[0];
        int other = pick_value(g, UINT64_C(1) << x->dtype, x->rank, x->rank);
        if (other < 0) {
            return;
        }
        memcpy(dims, graph_tensor(g, other)->dims, sizeof dims);
        dims[axis] = x->dims[axis];
        bool fits = memcmp(dims, x->dims, (size_t)x->rank * sizeof *dims) == 0;
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = graph_pick(g, 0, 2) * 4 + 1;
        in[i] = fits                 ? other
                : graph_rarely(g, 2) ? graph_given(g, false, x->dtype, x->rank, dims, VALUE_DYADIC)
                                     : in[0];
    }
    graph_set_int(g, "axis", graph_rarely(g, 3) ? axis - x->rank : axis);
    (void)graph_add(g, "Concat", in, n, 1, graph_moved(g, in, n));
}

static void add_split(struct random_graph *g)
{
    int in[2] = {pick_value(g, ANY, 1, 5), -1}, n = 1;
    if (in[0] < 0) {
        return;
    }
    int64_t axis = an_axis(g, in[0]);
    int64_t size =
        graph_dim(g, in[0], (int)(axis < 0 ? axis + graph_tensor(g, in[0])->rank : axis));
    int64_t first = graph_pick(g, 0, size), sizes[2] = {first, size - first};
    graph_set_int(g, "axis", axis);
    if (g->opset < 13) {
        graph_set_ints(g, "split", 2, sizes);
    } else {
        in[1] = graph_ints(g, 2, sizes);
        n = 2;
    }
    (void)graph_add(g, "Split", in, n, 2, graph_moved(g, in, 1));
}

static void add_slice(struct random_graph *g)
{
    int in[5] = {pick_value(g, ANY, 1, 5), -1, -1, -1, -1};
    if (in[0] < 0) {
        return;
    }
    int64_t axis = an_axis(g, in[0]), step = PICK(g, ((const int64_t[]){1, 1, 2, -1}));
    int64_t start = graph_pick(g, -3, 3), end = graph_pick(g, -1, 9);
    if (step < 0) {
        start = -1;
        end = -9;
    }
    if (g->opset < 10) {
        if (step == 1) {
            graph_set_ints(g, "starts", 1, &start);
            graph_set_ints(g, "ends", 1, &end);
            graph_set_ints(g, "axes", 1, &axis);
            (void)graph_add(g, "Slice", in, 1, 1, graph_moved(g, in, 1));
        }
        return;
    }
    in[1] = graph_ints(g, 1, &start);
    in[2] = graph_ints(g, 1, &end);
    in[3] = graph_ints(g, 1, &axis);
    in[4] = graph_ints(g, 1, &step);
    (void)graph_add(g, "Slice", in, 5, 1, graph_moved(g, in, 1));
}

static void add_pad(struct random_graph *g)
{
    static const char *const modes[] = {"constant", "reflect", "edge"};
    const char *mode = PICK(g, modes);
    int in[3] = {pick_value(g, g->opset >= 13 ? NUMBERS : FLOATS, 1, 4), -1, -1}, n = 1;
    int64_t pads[2 * WEIR_TENSOR_RANK_MAX];
    if (in[0] < 0) {
        return;
    }
    int rank = graph_tensor(g, in[0])->rank;
    for (int i = 0; i < 2 * rank; i++) {
        pads[i] = graph_rarely(g, 3) ? 0 : graph_pick(g, mode[0] == 'c' ? -1 : 0, 2);
    }
    graph_set_text(g, "mode", mode);
    if (g->opset < 11) {
        graph_set_ints(g, "pads", 2 * rank, pads);
    } else {
        in[1] = graph_ints(g, 2 * rank, pads);
        n = 2;
    }
    struct graph_result result = graph_moved(g, in, 1);
    (void)graph_add(g, "Pad", in, n, 1, result);
}

static void add_repeat(struct random_graph *g)
{
    int in[2] = {pick_value(g, ANY, 0, 4), -1};
    int64_t numbers[WEIR_TENSOR_RANK_MAX];
    bool is_tile = graph_rarely(g, 2);
    if (in[0] < 0 || g->opset < 8) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    int more = is_tile ? 0 : (int)graph_pick(g, 0, 1), n = x->rank + more;
    for (int i = 0; i < n; i++) {
        int64_t size = i >= more ? x->dims[i - more] : 1;
        numbers[i] = is_tile     ? graph_pick(g, graph_rarely(g, 20) ? 0 : 1, 2)
                     : size == 1 ? graph_pick(g, 1, 3)
                                 : size;
    }
    in[1] = graph_ints(g, n, numbers);
    (void)graph_add(g, is_tile ? "Tile" : "Expand", in, 2, 1, graph_moved(g, in, 1));
}

static void add_triangle(struct random_graph *g)
{
    int x = pick_value(g, NUMBERS | BIT(BOOL), 2, 4);
    if (x < 0) {
        return;
    }
    if (graph_rarely(g, 2) && g->opset >= 14) {
        graph_set_int(g, "upper", graph_pick(g, 0, 1));
        (void)graph_add1(g, "Trilu", x, graph_moved(g, &x, 1));
    } else if (graph_tensor(g, x)->rank == 2 && g->opset >= 9) {
        graph_set_int(g, "k", graph_pick(g, -1, 1));
        (void)graph_add1(g, "EyeLike", x, (struct graph_result){.is_exact = true, .bound = 1});
    }
}

static void add_blocks(struct random_graph *g)
{
    int x = pick_value(g, FLOATS, 4, 4);
    if (x < 0) {
        return;
    }
    bool is_depth = graph_dim(g, x, 1) % 4 == 0;
    graph_set_int(g, "blocksize", 2);
    if (is_depth && graph_rarely(g, 2) && g->opset >= 11) {
        graph_set_text(g, "mode", "CRD");
    }
    (void)graph_add1(g, is_depth ? "DepthToSpace" : "SpaceToDepth", x, graph_moved(g, &x, 1));
}

/* ---- by index --------------------------------------------------------------------------------- */

/* Indices of n dimensions below `most`, or none. */
static int indices(struct random_graph *g, int rank, const int64_t *dims, int64_t most)
{
    double numbers[256];
    size_t n = 1;
    for (int i = 0; i < rank; i++) {
        n *= (size_t)dims[i];
    }
    if (most < 1 || n > WEIR_ARRAY_LEN(numbers)) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (double)graph_pick(g, 0, most - 1);
    }
    return graph_constant(g, graph_rarely(g, 2) ? WEIR_DTYPE_INT64 : WEIR_DTYPE_INT32, rank, dims,
                          numbers);
}

static void add_gather(struct random_graph *g)
{
    int in[2] = {pick_value(g, ANY, 1, 4), -1};
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    if (in[0] < 0) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    int axis = (int)graph_pick(g, 0, x->rank - 1);
    bool is_by_element = graph_rarely(g, 3) && g->opset >= 11;
    memcpy(dims, x->dims, sizeof dims);
    int rank = is_by_element ? x->rank : (int)graph_pick(g, 0, 2);
    for (int i = 0; i < rank && !is_by_element; i++) {
        dims[i] = graph_pick(g, 1, 3);
    }
    in[1] = indices(g, rank, dims, x->dims[axis]);
    graph_set_int(g, "axis", axis);
    (void)(in[1] >= 0 ? graph_add(g, is_by_element ? "GatherElements" : "Gather", in, 2, 1,
                                  graph_moved(g, in, 1))
                      : 0);
    weir_buf_reset(&g->attributes);
}

static void add_scatter(struct random_graph *g)
{
    int in[3] = {pick_value(g, FLOATS | WHOLE, 1, 3), -1, -1};
    if (in[0] < 0 || g->opset < 9) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    int64_t one[] = {1, 1}, rest[WEIR_TENSOR_RANK_MAX] = {1};
    if (graph_rarely(g, 2) && g->opset >= 11) { /* a row of the first dimension */
        memcpy(rest + 1, x->dims + 1, (size_t)(x->rank - 1) * sizeof *rest);
        in[1] = indices(g, 2, one, x->dims[0]);
        in[1] = in[1] >= 0 && graph_tensor(g, in[1])->dtype == WEIR_DTYPE_INT64 ? in[1] : -1;
        in[2] = graph_given(g, graph_rarely(g, 2), x->dtype, x->rank, rest, VALUE_DYADIC);
        struct graph_result result = graph_moved(g, in, 3);
        (void)(in[1] >= 0 && in[2] >= 0 ? graph_add(g, "ScatterND", in, 3, 1, result) : 0);
        return;
    }
    for (int i = 0; i < x->rank; i++) {
        rest[i] = WEIR_MIN(x->dims[i], (int64_t)2);
    }
    rest[0] = 1;
    in[1] = indices(g, x->rank, rest, x->dims[0]);
    in[2] = graph_given(g, graph_rarely(g, 2), x->dtype, x->rank, rest, VALUE_DYADIC);
    graph_set_int(g, "axis", 0);
    if (in[1] >= 0 && in[2] >= 0) {
        (void)graph_add(g, g->opset < 11 ? "Scatter" : "ScatterElements", in, 3, 1,
                        graph_moved(g, in, 3));
    }
    weir_buf_reset(&g->attributes);
}

static void add_gather_nd(struct random_graph *g)
{
    int in[2] = {pick_value(g, ANY, 2, 4), -1};
    const int64_t dims[] = {graph_pick(g, 1, 3), 1};
    if (in[0] < 0 || g->opset < 12) {
        return;
    }
    in[1] = indices(g, 2, dims, graph_dim(g, in[0], 0));
    if (in[1] >= 0 && graph_tensor(g, in[1])->dtype == WEIR_DTYPE_INT64) {
        (void)graph_add(g, "GatherND", in, 2, 1, graph_moved(g, in, 1));
    }
}

static void add_one_hot(struct random_graph *g)
{
    const int64_t shape[] = {graph_pick(g, 1, 3), graph_pick(g, 1, 3)}, two = 2;
    const double values[] = {0, 1}, depth = 4;
    int in[3] = {indices(g, (int)graph_pick(g, 0, 2), shape, 4),
                 graph_constant(g, WEIR_DTYPE_INT64, 0, NULL, &depth),
                 graph_constant(g, WEIR_DTYPE_FLOAT, 1, &two, values)};
    if (in[0] >= 0 && in[2] >= 0 && g->opset >= 11) {
        (void)graph_add(g, "OneHot", in, 3, 1, graph_moved(g, in + 2, 1));
    }
}

static void add_choice(struct random_graph *g)
{
    int x = pick_value(g, NUMBERS | BIT(BOOL) | EXACT | FINITE, 1, 4);
    if (x < 0 || g->opset < 9) {
        return;
    }
    const struct weir_tensor *tensor = graph_tensor(g, x);
    if (graph_rarely(g, 2)) {
        (void)graph_add1(g, "NonZero", x, (struct graph_result){.is_exact = true, .bound = 1000});
        return;
    }
    int axis = (int)graph_pick(g, 0, tensor->rank - 1);
    int in[2] = {x, graph_given(g, graph_rarely(g, 2), WEIR_DTYPE_BOOL, 1, &tensor->dims[axis],
                                VALUE_DYADIC)};
    graph_set_int(g, "axis", axis);
    if (in[1] >= 0) {
        (void)graph_add(g, "Compress", in, 2, 1, graph_moved(g, in, 1));
    }
    weir_buf_reset(&g->attributes);
}

static void add_order(struct random_graph *g)
{
    int in[2] = {
        pick_value(g, (NUMBERS & ~BIT(BFLOAT16)) | EXACT | (g->is_common ? FINITE : 0), 1, 4), -1};
    if (in[0] < 0) {
        return;
    }
    int axis = (int)graph_pick(g, 0, graph_tensor(g, in[0])->rank - 1);
    int64_t size = graph_dim(g, in[0], axis), k = graph_pick(g, 0, WEIR_MIN(size, (int64_t)3));
    graph_set_int(g, "axis", axis);
    if (graph_rarely(g, 2)) {
        (void)graph_add1(g, graph_rarely(g, 2) ? "ArgMax" : "ArgMin", in[0],
                         (struct graph_result){.is_exact = true, .bound = 1000});
        return;
    }
    struct graph_result result = graph_moved(g, in, 1);
    result.grid = WEIR_MIN(result.grid, 0);
    result.bound = fmax(result.bound, 10);
    if (g->opset < 10) {
        graph_set_int(g, "k", k);
    } else {
        in[1] = graph_ints(g, 1, &k);
        graph_set_int(g, "largest", g->opset >= 11 ? graph_pick(g, 0, 1) : 1);
    }
    (void)graph_add(g, "TopK", in, g->opset < 10 ? 1 : 2, 2, result);
}

/* ---- sums ------------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    int since_input;
    uint64_t wanted;
} reductions[] = {{"ReduceSum", 13, NUMBERS},
                  {"ReduceMean", 18, FLOATS},
                  {"ReduceMean", 18, F32},
                  {"ReduceMax", 18, NUMBERS},
                  {"ReduceMin", 18, NUMBERS},
                  {"ReduceL1", 18, FLOATS},
                  {"ReduceL2", 18, FLOATS},
                  {"ReduceSumSquare", 18, FLOATS},
                  {"ReduceProd", 18, FLOATS | CALM},
                  {"ReduceLogSum", 18, FLOATS | EXACT},
                  {"ReduceLogSumExp", 18, FLOATS | CALM}};

static void add_reduction(struct random_graph *g)
{
    int64_t r = graph_pick(g, 0, N(reductions) - 1), axes[WEIR_TENSOR_RANK_MAX];
    int in[2] = {pick_value(g, reductions[r].wanted | LARGE_ENOUGH, 0, 5), -1}, n = 1, n_axes = 0;
    if (in[0] < 0) {
        return;
    }
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    bool is_plane = graph_rarely(g, 2);
    for (int i = 0; i < x->rank; i++) {
        if (is_plane ? i >= 2 : graph_rarely(g, 2)) {
            axes[n_axes++] = graph_rarely(g, 4) ? i - x->rank : i;
        }
    }
    const char *type = reductions[r].type;
    struct graph_result result = graph_inexact(g, in, 1);
    if (strcmp(type, "ReduceMax") == 0 || strcmp(type, "ReduceMin") == 0) {
        result = graph_moved(g, in, 1);
    } else if (strcmp(type, "ReduceSum") == 0 || strcmp(type, "ReduceL1") == 0) {
        result = graph_moved(g, in, 1);
        result.bound = fmax(1, result.bound * (double)x->n_elems);
    } else if (strcmp(type, "ReduceSumSquare") == 0) {
        result = graph_multiplied(g, in[0], in[0], (double)x->n_elems);
    }
    if (n_axes > 0) {
        n = set_axes(g, reductions[r].since_input, n_axes, axes, in);
    }
    graph_set_int(g, "keepdims", graph_pick(g, 0, 1));
    (void)graph_add(g, type, in, n, 1, result);
}

static void add_running_sum(struct random_graph *g)
{
    int in[2] = {pick_value(g, (FLOATS | BIT(INT32) | BIT(INT64)) & ~BIT(BFLOAT16), 1, 4), -1};
    if (in[0] < 0 || g->opset < 11) {
        return;
    }
    const double axis = (double)an_axis(g, in[0]);
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    struct graph_result result = graph_moved(g, in, 1);
    result.bound = fmax(1, result.bound * (double)x->n_elems);
    in[1] = graph_constant(g, WEIR_DTYPE_INT64, 0, NULL, &axis);
    graph_set_int(g, "exclusive", graph_pick(g, 0, 1));
    graph_set_int(g, "reverse", graph_pick(g, 0, 1));
    if (in[1] >= 0) {
        (void)graph_add(g, "CumSum", in, 2, 1, result);
    }
    weir_buf_reset(&g->attributes);
}

static void add_softmax(struct random_graph *g)
{
    static const char *const types[] = {"Softmax", "Softmax", "LogSoftmax", "Hardmax",
                                        "LpNormalization"};
    const char *type = PICK(g, types);
    int x = pick_value(g,
                       (type[0] == 'S' && !graph_rarely(g, 3) ? F32 : FLOATS) |
                           (type[0] == 'H' ? EXACT : LARGE_ENOUGH),
                       1, 5);
    if (x < 0) {
        return;
    }
    if (!graph_rarely(g, 3)) {
        graph_set_int(g, "axis", an_axis(g, x));
    }
    (void)graph_add1(g, type, x,
                     type[0] == 'H' ? (struct graph_result){.is_exact = true,
                                                            .bound = 1,
                                                            .is_special = g->values[x].is_special}
                                    : graph_inexact(g, &x, 1));
}

/* ---- shapes ----------------------------------------------------------------------------------- */

static void add_shape(struct random_graph *g)
{
    int x = pick_value(g, ANY, 0, 6);
    const struct graph_result some = {.is_exact = true, .bound = 20000};
    if (x < 0) {
        return;
    }
    int shape = graph_add1(g, graph_rarely(g, 5) ? "Size" : "Shape", x, some);
    if (shape < 0 || graph_tensor(g, shape)->rank == 0) {
        return;
    }
    switch (graph_pick(g, 0, 3)) {
    case 0:
        (void)(g->opset >= 9 ? graph_add1(g, "ConstantOfShape", shape,
                                          (struct graph_result){.is_exact = true, .bound = 1})
                             : 0);
        break;
    case 1: { /* another value in this one's shape */
        int in[2] = {pick_value(g, ANY, 0, 6), shape};
        (void)graph_add(g, "Reshape", in, 2, 1, graph_moved(g, in, 1));
        break;
    }
    case 2: {
        int in[2] = {pick_value(g, ANY, 0, 2), shape};
        (void)(g->opset >= 8 ? graph_add(g, "Expand", in, 2, 1, graph_moved(g, in, 1)) : 0);
        break;
    }
    default: { /* from data: a plan cannot know */
        const double one = 1;
        int in[3] = {graph_constant(g, WEIR_DTYPE_INT64, 0, NULL, &(const double){0}),
                     graph_add1(g, "Size", x, some),
                     graph_constant(g, WEIR_DTYPE_INT64, 0, NULL, &one)};
        (void)(in[1] >= 0 && in[2] >= 0 && g->opset >= 11 ? graph_add(g, "Range", in, 3, 1, some)
                                                          : 0);
        break;
    }
    }
}

static void add_constant(struct random_graph *g)
{
    const int64_t numbers[] = {graph_pick(g, -3, 3), graph_pick(g, 0, 3)};
    if (g->opset >= 12) {
        graph_set_ints(g, "value_ints", 2, numbers);
        (void)graph_add(g, "Constant", (const int[]){-1}, 0, 1,
                        (struct graph_result){.is_exact = true, .bound = 3});
    }
}

void random_moves_add(struct random_graph *g)
{
    static void (*const all[])(struct random_graph * g) = {
        add_transpose, add_reshape,   add_reshape, add_view,      add_view,        add_concat,
        add_concat,    add_split,     add_slice,   add_pad,       add_repeat,      add_triangle,
        add_blocks,    add_gather,    add_scatter, add_gather_nd, add_one_hot,     add_choice,
        add_order,     add_reduction, add_softmax, add_reduction, add_running_sum, add_softmax,
        add_shape,     add_constant};
    PICK(g, all)(g);
}
