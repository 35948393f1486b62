/* The operators that a random graph may have: how each is called so that it says something. Here: those of
 * one element, and what is usual together. */
#include "random_pick.h"

#include <math.h>
#include <string.h>

/* ---- functions of one element ----------------------------------------------------------------- */

/** How the result of a function is: moved as it is, of what is not exact, … */
enum how { MOVED, TIMES, INEXACT, TEST };

static const struct {
    const char *type;
    int since;
    uint64_t wanted;
    enum how how;
} unary[] = {
    {"Relu", 6, FLOATS | SIGNED, MOVED},
    {"Relu", 6, F32, MOVED},
    {"Abs", 6, NUMBERS, MOVED},
    {"Neg", 6, FLOATS | SIGNED, MOVED},
    {"Sign", 9, NUMBERS | EXACT, MOVED},
    {"Floor", 6, FLOATS | EXACT, MOVED},
    {"Ceil", 6, FLOATS | EXACT, MOVED},
    {"Round", 11, FLOATS | EXACT, MOVED},
    {"ThresholdedRelu", 10, FLOATS | EXACT, MOVED},
    {"Shrink", 9, FLOATS | EXACT, MOVED},
    {"LeakyRelu", 6, FLOATS, INEXACT},
    {"Sigmoid", 6, FLOATS, INEXACT},
    {"Sigmoid", 6, F32, INEXACT},
    {"Tanh", 6, FLOATS, INEXACT},
    {"Tanh", 6, F32, INEXACT},
    {"Elu", 6, FLOATS, INEXACT},
    {"HardSwish", 14, FLOATS, INEXACT},
    {"HardSigmoid", 6, FLOATS, INEXACT},
    {"Sqrt", 6, FLOATS | EXACT, INEXACT},
    {"Exp", 6, FLOATS | CALM, INEXACT},
    {"Log", 6, FLOATS | EXACT, INEXACT},
    {"Swish", 24, FLOATS, INEXACT},
    {"Swish", 24, FLOATS, INEXACT},
    {"Swish", 24, F32, INEXACT},
    {"Sin", 7, FLOATS | CALM, INEXACT},
    {"Cos", 7, FLOATS | CALM, INEXACT},
    {"Tan", 7, FLOATS | CALM | EXACT, INEXACT},
    {"Asin", 7, FLOATS | EXACT, INEXACT},
    {"Acos", 7, FLOATS | EXACT, INEXACT},
    {"Atan", 7, FLOATS, INEXACT},
    {"Sinh", 9, FLOATS | CALM, INEXACT},
    {"Cosh", 9, FLOATS | CALM, INEXACT},
    {"Asinh", 9, FLOATS, INEXACT},
    {"Acosh", 9, FLOATS | EXACT, INEXACT},
    {"Atanh", 9, FLOATS | EXACT, INEXACT},
    {"Erf", 9, FLOATS, INEXACT},
    {"Selu", 6, FLOATS, INEXACT},
    {"Celu", 12, FLOATS, INEXACT},
    {"Softplus", 1, FLOATS, INEXACT},
    {"Softsign", 1, FLOATS, INEXACT},
    {"Mish", 18, FLOATS, INEXACT},
    {"Gelu", 20, FLOATS, INEXACT},
    {"Identity", 1, ANY, MOVED},
    {"Dropout", 7, FLOATS, MOVED},
    {"Not", 1, BIT(BOOL), TEST},
    {"BitwiseNot", 18, UNSIGNED, TEST},
    {"IsNaN", 9, FLOATS | EXACT, TEST},
    {"IsInf", 10, F32 | BIT(DOUBLE) | EXACT, TEST},
};

static struct graph_result of_test(void)
{
    return (struct graph_result){.is_exact = true, .bound = 1};
}

static void set_numbers(struct random_graph *g, const char *type)
{
    if (strcmp(type, "LeakyRelu") == 0 || strcmp(type, "Elu") == 0 || strcmp(type, "Celu") == 0) {
        if (graph_rarely(g, 2)) {
            graph_set_float(g, "alpha", 0.3);
        }
    } else if (strcmp(type, "HardSigmoid") == 0 && graph_rarely(g, 2)) {
        graph_set_float(g, "alpha", 1.0 / 6);
        graph_set_float(g, "beta", 0.5);
    } else if (strcmp(type, "Gelu") == 0 && graph_rarely(g, 2)) {
        graph_set_text(g, "approximate", "tanh");
    }
}

static void add_unary(struct random_graph *g)
{
    int64_t i = graph_pick(g, 0, N(unary) - 1);
    while (unary[i].since > g->opset) {
        i = graph_pick(g, 0, N(unary) - 1);
    }
    int x = pick_value(g, unary[i].wanted, 0, 8);
    if (x < 0) {
        return;
    }
    struct graph_result result = unary[i].how == INEXACT ? graph_inexact(g, &x, 1)
                                 : unary[i].how == TEST  ? of_test()
                                                         : graph_moved(g, &x, 1);
    if (strcmp(unary[i].type, "Sign") == 0 || strcmp(unary[i].type, "BitwiseNot") == 0) {
        result.bound = fmax(result.bound, 1);
        result.grid = WEIR_MIN(result.grid, 0);
    }
    if (strcmp(unary[i].type, "BitwiseNot") == 0 || strcmp(unary[i].type, "Shrink") == 0) {
        result.bound += 250;
    }
    set_numbers(g, unary[i].type);
    (void)graph_add1(g, unary[i].type, x, result);
}

/* Of what is not zero: the sign of a zero says nothing. */
static void add_reciprocal(struct random_graph *g)
{
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int x = pick_value(g, FLOATS, 0, 5);
    if (x < 0) {
        return;
    }
    int rank = pick_smaller(g, x, dims);
    int y = graph_given(g, false, graph_tensor(g, x)->dtype, rank, dims, VALUE_POSITIVE);
    (void)(y >= 0 ? graph_add1(g, "Reciprocal", y, graph_inexact(g, &y, 1)) : 0);
}

static void add_clip(struct random_graph *g)
{
    static const double bounds[][2] = {{0, 6},         {-1, 1},        {0, 1},
                                       {-2, INFINITY}, {-INFINITY, 2}, {0.25, 3}};
    int64_t i = graph_pick(g, 0, N(bounds) - 1);
    int x = pick_value(g, g->opset >= 12 ? NUMBERS & ~BIT(BFLOAT16) : F32, 0, 8),
        in[] = {x, -1, -1};
    int n = 1;
    if (x < 0) {
        return;
    }
    struct graph_result result = graph_moved(g, &x, 1);
    bool is_float = weir_dtype_class(graph_tensor(g, x)->dtype) == WEIR_DTYPE_IS_FLOAT;
    for (int k = 0; k < 2; k++) {
        double bound = is_float ? bounds[i][k] : fmax(0, trunc(bounds[i][k]));
        if (isinf(bound)) {
            continue;
        }
        if (g->opset < 11) {
            graph_set_float(g, k == 0 ? "min" : "max", bound);
        } else {
            const int64_t none = 1;
            in[k + 1] = graph_constant(g, graph_tensor(g, x)->dtype, 0, &none, &bound);
            n = k + 2;
        }
    }
    result.bound = fmax(result.bound, 6);
    result.grid = WEIR_MIN(result.grid, is_float ? -2 : 0);
    (void)graph_add(g, "Clip", in, n, 1, result);
}

static void add_cast(struct random_graph *g)
{
    static const enum weir_dtype narrow[] = {WEIR_DTYPE_FLOAT8E4M3FN,   WEIR_DTYPE_FLOAT8E5M2,
                                             WEIR_DTYPE_FLOAT8E4M3FNUZ, WEIR_DTYPE_FLOAT8E5M2FNUZ,
                                             WEIR_DTYPE_INT4,           WEIR_DTYPE_UINT4};

    int x = pick_value(g, (ANY & ~BIT(STRING)) | EXACT | FINITE, 0, 8);
    enum weir_dtype to = pick_dtype(g, ANY);
    if (x < 0) {
        return;
    }
    to = graph_rarely(g, 12) && g->opset >= 21 ? PICK(g, narrow) : to;
    struct graph_result result = graph_moved(g, &x, 1);
    bool is_float = weir_dtype_class(to) == WEIR_DTYPE_IS_FLOAT;
    bool is_small = weir_dtype_bits(to) < 8 || (is_float && weir_dtype_bits(to) == 8);
    bool is_signed = weir_dtype_class(to) == WEIR_DTYPE_IS_SIGNED || is_float;
    if ((!is_signed && to != WEIR_DTYPE_BOOL) || result.bound > 100) {
        int abs = graph_add1(g, "Abs", x, result); /* nothing that an unsigned type has not */
        x = weir_dtype_class(graph_tensor(g, x)->dtype) <= WEIR_DTYPE_IS_SIGNED && abs >= 0 ? abs
                                                                                            : x;
    }
    result.bound = to == WEIR_DTYPE_BOOL ? 1 : is_small ? fmax(result.bound, 7) * 2 : result.bound;
    result.grid = is_float ? result.grid : 0;
    if (is_small && !is_float && result.bound > 14) {
        return;
    }
    if (g->opset >= 15 && graph_rarely(g, 4) && !is_small) {
        const int64_t one = 1;
        int in[] = {x, graph_given(g, true, to, 1, &one, VALUE_DYADIC)};
        (void)graph_add(g, "CastLike", in, 2, 1, result);
        return;
    }
    graph_set_int(g, "to", (int64_t)to);
    (void)graph_add1(g, "Cast", x, result);
}

/* ---- two and more tensors --------------------------------------------------------------------- */

/* The old way to broadcast: the second tensor stands at an axis of the first. */
static void set_old_axis(struct random_graph *g, int in[2])
{
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    const struct weir_tensor *x = graph_tensor(g, in[0]);
    if (g->opset >= 7 || x->rank < 1 || graph_rarely(g, 3)) {
        return;
    }
    int axis = (int)graph_pick(g, 0, x->rank - 1), n = (int)graph_pick(g, 1, x->rank - axis);
    memcpy(dims, x->dims + axis, (size_t)n * sizeof *dims);
    in[1] = graph_given(g, !graph_rarely(g, 4), x->dtype, n, dims, VALUE_POSITIVE);
    graph_set_int(g, "axis", axis);
    graph_set_int(g, "broadcast", 1);
}

static void add_arithmetic(struct random_graph *g)
{
    static const char *const types[] = {"Add", "Sub", "Mul", "Add", "Mul"};
    const char *type = PICK(g, types);
    int x = pick_value(g, NUMBERS, 0, 8), in[2] = {x, -1};
    if (x < 0) {
        return;
    }
    in[1] = pick_partner(g, x, 0);
    if (in[1] < 0) {
        return;
    }
    pick_order(g, in);
    set_old_axis(g, in);
    if (in[1] < 0) {
        return;
    }
    bool is_unsigned = weir_dtype_class(graph_tensor(g, x)->dtype) == WEIR_DTYPE_IS_UNSIGNED;
    (void)graph_add(g, is_unsigned && type[0] == 'S' ? "Add" : type, in, 2, 1,
                    type[0] == 'M' ? graph_multiplied(g, in[0], in[1], 1) : graph_summed(g, in, 2));
}

static void add_division(struct random_graph *g)
{
    static const char *const types[] = {"Div", "Div", "Mod", "Pow"};
    const char *type = PICK(g, types);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int x = pick_value(g, type[0] == 'D' ? NUMBERS : type[0] == 'M' ? WHOLE : F32 | EXACT, 0, 8);
    if (x < 0) {
        return;
    }
    int rank = pick_smaller(g, x, dims);
    int in[2] = {x, graph_given(g, !graph_rarely(g, 4), graph_tensor(g, x)->dtype, rank, dims,
                                VALUE_POSITIVE)};
    if (in[1] < 0) {
        return;
    }
    bool is_float = weir_dtype_class(graph_tensor(g, x)->dtype) == WEIR_DTYPE_IS_FLOAT;
    struct graph_result result = graph_moved(g, &x, 1);
    if (type[0] == 'P') {
        result = graph_inexact(g, in, 2);
    } else if (is_float) {
        result.bound *= 2;
        result.grid -= 2;
        if (graph_rarely(g, 3) && g->values[in[1]].is_nonzero) {
            pick_order(g, in);
            result = in[0] == x ? result : graph_inexact(g, in, 2);
            result.bound = 0;
            if (in[0] != x && !g->values[x].is_nonzero) {
                return; /* by zeros whose sign says nothing */
            }
        }
    } else if (type[0] == 'M' && graph_rarely(g, 2)) {
        graph_set_int(g, "fmod", 1);
    }
    result.bound = type[0] == 'M' ? fmax(result.bound, 4) : result.bound;
    (void)graph_add(g, type, in, 2, 1, result);
}

static void add_test(struct random_graph *g)
{
    static const struct {
        const char *type;
        int since;
        uint64_t wanted;
    } tests[] = {{"Less", 9, NUMBERS},         {"Greater", 9, NUMBERS},
                 {"LessOrEqual", 12, NUMBERS}, {"GreaterOrEqual", 12, NUMBERS},
                 {"Equal", 11, NUMBERS},       {"Equal", 19, BIT(STRING)},
                 {"And", 7, BIT(BOOL)},        {"Or", 7, BIT(BOOL)},
                 {"Xor", 7, BIT(BOOL)},        {"BitwiseAnd", 18, UNSIGNED},
                 {"BitwiseOr", 18, UNSIGNED},  {"BitwiseXor", 18, UNSIGNED},
                 {"BitShift", 11, UNSIGNED}};

    int64_t i = graph_pick(g, 0, N(tests) - 1);
    if (tests[i].since > g->opset) {
        return;
    }
    int x = pick_value(g, tests[i].wanted | EXACT, 0, 8), in[2] = {x, -1};
    if (x < 0) {
        return;
    }
    in[1] = pick_partner(g, x, EXACT);
    if (in[1] < 0) {
        return;
    }
    struct graph_result result = of_test();
    if (tests[i].type[0] == 'B') {
        result.bound = 250;
        if (strcmp(tests[i].type, "BitShift") == 0) {
            in[1] = pick_scalar(g, graph_tensor(g, x)->dtype, 1);
            graph_set_text(g, "direction", "RIGHT");
        }
    }
    if (in[1] >= 0) {
        (void)graph_add(g, tests[i].type, in, 2, 1, result);
    }
}

static void add_many(struct random_graph *g)
{
    static const char *const types[] = {"Sum", "Max", "Min", "Mean", "Sum"};
    const char *type = PICK(g, types);
    bool is_order = type[0] == 'M' && type[1] != 'e' && g->opset >= 12;
    int n = (int)graph_pick(g, 1, 4), in[4];
    in[0] = pick_value(g, is_order ? NUMBERS & ~(BIT(BFLOAT16)) : F32 | BIT(DOUBLE), 0, 8);
    for (int i = 1; i < n && in[0] >= 0; i++) {
        in[i] = pick_partner(g, in[graph_pick(g, 0, i - 1)], 0);
        in[i] = in[i] < 0 ? in[0] : in[i];
    }
    if (in[0] >= 0) {
        (void)graph_add(g, type, in, n, 1,
                        type[0] == 'S'   ? graph_summed(g, in, n)
                        : type[1] == 'e' ? graph_inexact(g, in, n)
                                         : graph_moved(g, in, n));
    }
}

static void add_where(struct random_graph *g)
{
    int in[3] = {-1, pick_value(g, ANY, 0, 6), -1};
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    if (in[1] < 0 || g->opset < 9) {
        return;
    }
    in[2] = pick_partner(g, in[1], 0);
    in[0] = pick_value(g, BIT(BOOL), 0, 6);
    if (in[0] < 0 || !pick_fits(graph_tensor(g, in[0]), graph_tensor(g, in[1]))) {
        int rank = pick_smaller(g, in[1], dims);
        in[0] = graph_given(g, graph_rarely(g, 2), WEIR_DTYPE_BOOL, rank, dims, VALUE_DYADIC);
    }
    if (in[0] >= 0 && in[2] >= 0) {
        (void)graph_add(g, "Where", in, 3, 1, graph_moved(g, in + 1, 2));
    }
}

static void add_prelu(struct random_graph *g)
{
    int x = pick_value(g, F32, 1, 5), in[2] = {x, -1};
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    if (x < 0 || g->opset < 9) {
        return;
    }
    int rank = pick_smaller(g, x, dims);
    in[1] = graph_given(g, !graph_rarely(g, 3), WEIR_DTYPE_FLOAT, rank, dims, VALUE_DYADIC);
    if (in[1] >= 0) {
        struct graph_result result = graph_multiplied(g, in[0], in[1], 1);
        result.grid = WEIR_MIN(result.grid, g->values[x].grid);
        result.bound = fmax(result.bound, g->values[x].bound);
        (void)graph_add(g, "PRelu", in, 2, 1, result);
    }
}

/* ---- what is usual together ------------------------------------------------------------------- */

static int binary(struct random_graph *g, const char *type, int a, int b)
{
    int in[2] = {a, b};
    if (a < 0 || b < 0) {
        return -1;
    }
    if (type[0] != 'D') {
        pick_order(g, in);
    }
    return graph_add(g, type, in, 2, 1,
                     type[0] == 'M'   ? graph_multiplied(g, a, b, 1)
                     : type[0] == 'D' ? graph_inexact(g, in, 2)
                                      : graph_summed(g, in, 2));
}

static int function(struct random_graph *g, const char *type, int x)
{
    return x >= 0 ? graph_add1(g, type, x,
                               type[0] == 'R' ? graph_moved(g, &x, 1) : graph_inexact(g, &x, 1))
                  : -1;
}

static int clipped(struct random_graph *g, int x, double low, double high)
{
    const int64_t none = 1;
    if (x < 0 || g->opset < 11) {
        return -1;
    }
    int in[3] = {x, graph_constant(g, WEIR_DTYPE_FLOAT, 0, &none, &low),
                 graph_constant(g, WEIR_DTYPE_FLOAT, 0, &none, &high)};
    struct graph_result result = graph_moved(g, in, 3);
    return in[2] >= 0 ? graph_add(g, "Clip", in, 3, 1, result) : -1;
}

/* Activations in the forms that exporters write: their input is read twice and more. */
static void add_idiom(struct random_graph *g)
{
    int x = pick_value(g, F32, 0, 5);
    if (x < 0) {
        return;
    }
    int y = -1;
    switch (graph_pick(g, 0, 6)) {
    case 0: /* x + x x, and its like */
        y = binary(g, graph_rarely(g, 2) ? "Mul" : "Add", x, x);
        y = binary(g, graph_rarely(g, 2) ? "Mul" : "Add", y, x);
        break;
    case 1: /* swish */
        y = binary(g, "Mul", x, function(g, graph_rarely(g, 4) ? "Tanh" : "Sigmoid", x));
        break;
    case 2: /* hard swish */
        y = clipped(g, binary(g, "Add", x, pick_scalar(g, WEIR_DTYPE_FLOAT, 3)), 0, 6);
        y = binary(g, "Mul", x, y);
        y = binary(g, "Div", y, pick_scalar(g, WEIR_DTYPE_FLOAT, 6));
        break;
    case 3: /* GELU by tanh */
        y = binary(g, "Mul", x, binary(g, "Mul", x, x));
        y = binary(g, "Mul", y, pick_scalar(g, WEIR_DTYPE_FLOAT, 0.044715));
        y = binary(g, "Add", x, y);
        y = function(g, "Tanh", binary(g, "Mul", y, pick_scalar(g, WEIR_DTYPE_FLOAT, 0.7978846)));
        y = binary(g, "Mul", binary(g, "Add", y, pick_scalar(g, WEIR_DTYPE_FLOAT, 1)), x);
        break;
    case 4: /* with a residual */
        y = binary(g, "Add", x, function(g, "Relu", binary(g, "Add", x, pick_partner(g, x, 0))));
        break;
    case 5: /* squeeze and excite */
        if (graph_tensor(g, x)->rank >= 3 && graph_tensor(g, x)->n_elems > 0) {
            y = function(g, "Sigmoid", function(g, "GlobalAveragePool", x));
            y = binary(g, "Mul", x, y);
            y = graph_rarely(g, 2) ? binary(g, "Add", x, y) : y;
        }
        break;
    default: /* a sum that two chains read */
        y = binary(g, "Add", x, pick_partner(g, x, 0));
        (void)binary(g, "Mul", function(g, "Relu", y), y);
        (void)binary(g, "Add", function(g, "Sigmoid", y), y);
        break;
    }
}

/* Constants of the inputs' shapes, as in attention and in means. */
static void add_shape_constant(struct random_graph *g)
{
    int x = pick_value(g, F32, 1, 5);
    const int64_t one = 1;
    double which = -1;
    if (x < 0) {
        return;
    }
    int shape = graph_add1(g, "Shape", x, (struct graph_result){.is_exact = true, .bound = 1000});
    which = (double)graph_pick(g, 0, graph_tensor(g, x)->rank - 1);
    int in[] = {shape,
                graph_constant(g, WEIR_DTYPE_INT64, graph_rarely(g, 2) ? 1 : 0, &one, &which)};
    int n = shape >= 0 && in[1] >= 0
                ? graph_add(g, "Gather", in, 2, 1,
                            (struct graph_result){.is_exact = true, .bound = 1000})
                : -1;
    if (n < 0) {
        return;
    }
    graph_set_int(g, "to", WEIR_DTYPE_FLOAT);
    int number = graph_add1(g, "Cast", n, (struct graph_result){.is_exact = true, .bound = 1000});
    if (number >= 0 && graph_tensor(g, x)->n_elems > 0) {
        g->values[number].is_nonzero = true;
        (void)binary(g, graph_rarely(g, 2) ? "Div" : "Mul", x, number);
    }
}

/* ---- the choice ------------------------------------------------------------------------------- */

void random_ops_add(struct random_graph *g)
{
    static void (*const few[])(struct random_graph * g) = {
        add_unary,      add_unary,      add_unary,          add_clip,  add_cast, add_arithmetic,
        add_arithmetic, add_arithmetic, add_division,       add_test,  add_many, add_reciprocal,
        add_where,      add_prelu,      add_shape_constant, add_idiom, add_idiom};
    switch (graph_pick(g, 0, 5)) {
    case 0:
        random_moves_add(g);
        break;
    case 1:
    case 2:
        random_products_add(g);
        break;
    default:
        PICK(g, few)(g);
        break;
    }
}
