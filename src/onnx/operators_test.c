/*
 * Operators on integers of each type, and floats with NaN, against loops written plainly for the type:
 * the ends of the types, the neighbours of 2^53 and 2^63, where a double no longer tells one from the
 * next. An operator is run as the interpreter runs it.
 */
#include "number.h"
#include "op.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED     20261128
#define N_ROUNDS 60
#define N_MAX    12

#define EACH_INTEGER(X)                                                                            \
    X(INT8, int8_t)                                                                                \
    X(INT16, int16_t)                                                                              \
    X(INT32, int32_t)                                                                              \
    X(INT64, int64_t)                                                                              \
    X(UINT8, uint8_t)                                                                              \
    X(UINT16, uint16_t)                                                                            \
    X(UINT32, uint32_t)                                                                            \
    X(UINT64, uint64_t)

static struct weir_rng rng;

/* ---- running an operator ---------------------------------------------------------------------- */

/** An integer attribute; NULL: none. */
struct option {
    const char *name;
    int64_t value;
};

static struct weir_tensor *tensor_of(enum weir_dtype dtype, int64_t n, const void *data)
{
    struct weir_tensor *tensor;
    struct weir_error err;
    ck_assert_int_eq(weir_tensor_create(dtype, 1, &n, &tensor, &err), WEIR_OK);
    memcpy(tensor->data, data, (size_t)n * weir_dtype_bytes(dtype));
    return tensor;
}

static struct weir_tensor *scalar_of(enum weir_dtype dtype, const void *data)
{
    struct weir_tensor *one = tensor_of(dtype, 1, data), *scalar;
    struct weir_error err;
    ck_assert_int_eq(weir_tensor_view(one, 0, NULL, &scalar, &err), WEIR_OK);
    weir_tensor_release(one);
    return scalar;
}

/* Takes the inputs' references. The outputs are the caller's. */
static void run(const char *type, struct weir_tensor **in, size_t n_in, struct option option,
                struct weir_tensor **out, size_t n_out)
{
    struct onnx_attribute attributes[2] = {
        {.name = option.name, .type = ONNX_ATTRIBUTE_INT, .i = option.value},
        {.name = "reduction", .type = ONNX_ATTRIBUTE_STRING}};
    static const char *const words[] = {"none", "add", "mul", "max", "min"};
    const bool is_word = option.name != NULL && strcmp(option.name, "reduction") == 0;
    if (is_word) {
        const char *word = words[option.value];
        attributes[0] = attributes[1];
        attributes[0].s = (struct onnx_bytes){word, strlen(word)};
    }
    const struct onnx_node node = {.name = "",
                                   .type = type,
                                   .domain = "",
                                   .n_in = n_in,
                                   .n_out = n_out,
                                   .attributes = attributes,
                                   .n_attributes = option.name != NULL};
    struct onnx_budget budget = {.most_bytes = (size_t)1 << 30};
    struct weir_error err = {0};
    struct onnx_call call = {.op = onnx_op_find(type, 18),
                             .node = &node,
                             .opset = 18,
                             .in = in,
                             .n_in = n_in,
                             .out = out,
                             .n_out = n_out,
                             .budget = &budget};
    ck_assert_ptr_nonnull(call.op);
    ck_assert_msg(call.op->run(&call, &err) == WEIR_OK, "%s: %s", type, err.message);
    for (size_t i = 0; i < n_in; i++) {
        weir_tensor_release(in[i]);
    }
}

static struct weir_tensor *run_one(const char *type, struct weir_tensor **in, size_t n_in,
                                   struct option option)
{
    struct weir_tensor *out = NULL;
    run(type, in, n_in, option, &out, 1);
    return out;
}

/* ---- elements --------------------------------------------------------------------------------- */

static onnx_whole some_integer(onnx_whole least, onnx_whole most)
{
    const onnx_whole power53 = (onnx_whole)1 << 53, power63 = (onnx_whole)1 << 63;
    const onnx_whole near[] = {0,
                               1,
                               -1,
                               2,
                               -2,
                               least,
                               least + 1,
                               most,
                               most - 1,
                               power53,
                               power53 + 1,
                               power53 - 1,
                               -power53 - 1,
                               power63,
                               power63 + 1,
                               power63 - 1,
                               3,
                               7};
    const onnx_whole value =
        weir_rng_u32(&rng) % 3 != 0
            ? near[weir_rng_u32(&rng) % WEIR_ARRAY_LEN(near)]
            : (onnx_whole)((uint64_t)weir_rng_u32(&rng) << 32 | weir_rng_u32(&rng)) % most;
    return value < least || value > most ? (onnx_whole)(weir_rng_u32(&rng) % 100) : value;
}

static void same_bytes(const char *type, enum weir_dtype dtype, const struct weir_tensor *got,
                       const void *expected, size_t n)
{
    ck_assert_int_eq(got->dtype, dtype);
    ck_assert_uint_eq(got->n_elems, n);
    for (size_t i = 0; i < n; i++) {
        size_t at = i * weir_dtype_bytes(dtype);
        int64_t is = 0, should = 0;
        memcpy(&is, (const char *)got->data + at, weir_dtype_bytes(dtype));
        memcpy(&should, (const char *)expected + at, weir_dtype_bytes(dtype));
        ck_assert_msg(is == should, "%s of %s, element %zu: bits %#" PRIx64 ", expected %#" PRIx64,
                      type, weir_dtype_name(dtype), i, (uint64_t)is, (uint64_t)should);
    }
}

/* ---- each type -------------------------------------------------------------------------------- */

/* What wraps is computed in the type's bits, as the processor does. */
#define WRAP(type, a, op, b) ((type)((uint64_t)(a)op(uint64_t)(b)))

#define CHECK_REDUCTION(NAME, type, op_type, expected)                                             \
    {                                                                                              \
        const type should = (expected);                                                            \
        struct weir_tensor *given = tensor_of(WEIR_DTYPE_##NAME, n, x);                            \
        struct weir_tensor *got = run_one(op_type, &given, 1, (struct option){"keepdims", 1});     \
        same_bytes(op_type, WEIR_DTYPE_##NAME, got, &should, 1);                                   \
        weir_tensor_release(got);                                                                  \
    }

#define FILL(NAME, type, to, n)                                                                    \
    for (int64_t fill_i = 0; fill_i < (n); fill_i++) {                                             \
        (to)[fill_i] = (type)some_integer(onnx_whole_least(WEIR_DTYPE_##NAME),                     \
                                          onnx_whole_most(WEIR_DTYPE_##NAME));                     \
    }

#define X(NAME, type)                                                                              \
    static void reduce_##NAME(int64_t n)                                                           \
    {                                                                                              \
        type x[N_MAX], sum = 0, product = 1, squares = 0, sizes = 0;                               \
        onnx_whole total = 0;                                                                      \
        FILL(NAME, type, x, n)                                                                     \
        type most = x[0], least = x[0];                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            sum = WRAP(type, sum, +, x[i]);                                                        \
            product = WRAP(type, product, *, x[i]);                                                \
            squares = WRAP(type, squares, +, (uint64_t)x[i] * (uint64_t)x[i]);                     \
            sizes = WRAP(type, sizes, +, x[i] > 0 ? (uint64_t)x[i] : -(uint64_t)x[i]);             \
            most = x[i] > most ? x[i] : most;                                                      \
            least = x[i] < least ? x[i] : least;                                                   \
            total += x[i];                                                                         \
        }                                                                                          \
        CHECK_REDUCTION(NAME, type, "ReduceSum", sum)                                              \
        CHECK_REDUCTION(NAME, type, "ReduceProd", product)                                         \
        CHECK_REDUCTION(NAME, type, "ReduceSumSquare", squares)                                    \
        CHECK_REDUCTION(NAME, type, "ReduceL1", sizes)                                             \
        CHECK_REDUCTION(NAME, type, "ReduceMax", most)                                             \
        CHECK_REDUCTION(NAME, type, "ReduceMin", least)                                            \
        CHECK_REDUCTION(NAME, type, "ReduceMean", (type)(total / n))                               \
    }                                                                                              \
                                                                                                   \
    static void sum_up_##NAME(int64_t n)                                                           \
    {                                                                                              \
        type x[N_MAX], sums[N_MAX], sum = 0;                                                       \
        int64_t axis = 0;                                                                          \
        FILL(NAME, type, x, n)                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            sums[i] = sum = WRAP(type, sum, +, x[i]);                                              \
        }                                                                                          \
        struct weir_tensor *in[] = {tensor_of(WEIR_DTYPE_##NAME, n, x),                            \
                                    scalar_of(WEIR_DTYPE_INT64, &axis)};                           \
        struct weir_tensor *got = run_one("CumSum", in, 2, (struct option){NULL, 0});              \
        same_bytes("CumSum", WEIR_DTYPE_##NAME, got, sums, (size_t)n);                             \
        weir_tensor_release(got);                                                                  \
    }                                                                                              \
                                                                                                   \
    /* In order, of equals the first first, and each index once. */                                \
    static void order_##NAME(int64_t n, bool is_largest)                                           \
    {                                                                                              \
        type x[N_MAX];                                                                             \
        FILL(NAME, type, x, n)                                                                     \
        struct weir_tensor *in[] = {tensor_of(WEIR_DTYPE_##NAME, n, x),                            \
                                    tensor_of(WEIR_DTYPE_INT64, 1, &n)},                           \
                           *out[2] = {NULL};                                                       \
        run("TopK", in, 2, (struct option){"largest", is_largest}, out, 2);                        \
        const type *values = out[0]->data;                                                         \
        const int64_t *indices = out[1]->data;                                                     \
        unsigned seen = 0;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            ck_assert(values[i] == x[indices[i]]);                                                 \
            seen |= 1U << indices[i];                                                              \
            if (i > 0 && values[i] == values[i - 1]) {                                             \
                ck_assert_int_lt(indices[i - 1], indices[i]);                                      \
            } else if (i > 0) {                                                                    \
                ck_assert(is_largest ? values[i] < values[i - 1] : values[i] > values[i - 1]);     \
            }                                                                                      \
        }                                                                                          \
        ck_assert_uint_eq(seen, (1U << n) - 1);                                                    \
        int64_t first = indices[0];                                                                \
        weir_tensor_release(out[0]);                                                               \
        weir_tensor_release(out[1]);                                                               \
        struct weir_tensor *given = tensor_of(WEIR_DTYPE_##NAME, n, x);                            \
        struct weir_tensor *got =                                                                  \
            run_one(is_largest ? "ArgMax" : "ArgMin", &given, 1, (struct option){"keepdims", 1});  \
        ck_assert_int_eq(*(const int64_t *)got->data, first);                                      \
        weir_tensor_release(got);                                                                  \
    }                                                                                              \
                                                                                                   \
    static void elementwise_##NAME(int64_t n)                                                      \
    {                                                                                              \
        type x[N_MAX], bounds[2], cut[N_MAX], sizes[N_MAX], negated[N_MAX], positive[N_MAX];       \
        type signs[N_MAX];                                                                         \
        FILL(NAME, type, x, n)                                                                     \
        FILL(NAME, type, bounds, 2)                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            cut[i] = x[i] < bounds[0] ? bounds[0] : x[i];                                          \
            cut[i] = cut[i] > bounds[1] ? bounds[1] : cut[i];                                      \
            negated[i] = WRAP(type, 0, -, x[i]);                                                   \
            sizes[i] = x[i] > 0 ? x[i] : negated[i];                                               \
            positive[i] = x[i] > 0 ? x[i] : 0;                                                     \
            signs[i] = (type)((x[i] > 0) - (negated[i] != 0 && !(x[i] > 0)));                      \
        }                                                                                          \
        struct weir_tensor *in[] = {tensor_of(WEIR_DTYPE_##NAME, n, x),                            \
                                    scalar_of(WEIR_DTYPE_##NAME, &bounds[0]),                      \
                                    scalar_of(WEIR_DTYPE_##NAME, &bounds[1])};                     \
        struct weir_tensor *got = run_one("Clip", in, 3, (struct option){NULL, 0});                \
        same_bytes("Clip", WEIR_DTYPE_##NAME, got, cut, (size_t)n);                                \
        weir_tensor_release(got);                                                                  \
        static const char *const names[] = {"Abs", "Neg", "Relu", "Sign"};                         \
        const type *const expected[] = {sizes, negated, positive, signs};                          \
        for (size_t k = 0; k < WEIR_ARRAY_LEN(names); k++) {                                       \
            struct weir_tensor *given = tensor_of(WEIR_DTYPE_##NAME, n, x);                        \
            got = run_one(names[k], &given, 1, (struct option){NULL, 0});                          \
            same_bytes(names[k], WEIR_DTYPE_##NAME, got, expected[k], (size_t)n);                  \
            weir_tensor_release(got);                                                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void scatter_##NAME(int64_t how)                                                        \
    {                                                                                              \
        type x[1], updates[3], y;                                                                  \
        const int64_t indices[] = {0, 0, 0};                                                       \
        FILL(NAME, type, x, 1)                                                                     \
        FILL(NAME, type, updates, 3)                                                               \
        y = x[0];                                                                                  \
        for (int i = 0; i < 3; i++) {                                                              \
            const type u = updates[i];                                                             \
            y = how == 1   ? WRAP(type, y, +, u)                                                   \
                : how == 2 ? WRAP(type, y, *, u)                                                   \
                : how == 3 ? (u > y ? u : y)                                                       \
                           : (u < y ? u : y);                                                      \
        }                                                                                          \
        struct weir_tensor *one = tensor_of(WEIR_DTYPE_##NAME, 1, x), *wide;                       \
        struct weir_tensor *in[] = {one, tensor_of(WEIR_DTYPE_INT64, 1, indices),                  \
                                    tensor_of(WEIR_DTYPE_##NAME, 1, updates)};                     \
        struct weir_tensor *got =                                                                  \
            run_one("ScatterElements", in, 3, (struct option){"reduction", how});                  \
        for (int i = 1; i < 3; i++) {                                                              \
            struct weir_tensor *more[] = {got, tensor_of(WEIR_DTYPE_INT64, 1, indices),            \
                                          tensor_of(WEIR_DTYPE_##NAME, 1, &updates[i])};           \
            wide = run_one("ScatterElements", more, 3, (struct option){"reduction", how});         \
            got = wide;                                                                            \
        }                                                                                          \
        same_bytes("ScatterElements", WEIR_DTYPE_##NAME, got, &y, 1);                              \
        weir_tensor_release(got);                                                                  \
    }                                                                                              \
                                                                                                   \
    static void multiply_##NAME(int64_t n)                                                         \
    {                                                                                              \
        type a[N_MAX], b[N_MAX], sum = 0;                                                          \
        FILL(NAME, type, a, n)                                                                     \
        FILL(NAME, type, b, n)                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            sum = WRAP(type, sum, +, (uint64_t)a[i] * (uint64_t)b[i]);                             \
        }                                                                                          \
        struct weir_tensor *in[] = {tensor_of(WEIR_DTYPE_##NAME, n, a),                            \
                                    tensor_of(WEIR_DTYPE_##NAME, n, b)};                           \
        struct weir_tensor *got = run_one("MatMul", in, 2, (struct option){NULL, 0});              \
        same_bytes("MatMul", WEIR_DTYPE_##NAME, got, &sum, 1);                                     \
        weir_tensor_release(got);                                                                  \
    }                                                                                              \
                                                                                                   \
    static void count_##NAME(void)                                                                 \
    {                                                                                              \
        type given[3], expected[5];                                                                \
        const type most = (type)onnx_whole_most(WEIR_DTYPE_##NAME);                                \
        given[0] = (type)(most - 13), given[1] = (type)(most - 1), given[2] = 3;                   \
        for (int i = 0; i < 4; i++) {                                                              \
            expected[i] = (type)(given[0] + 3 * (type)i);                                          \
        }                                                                                          \
        struct weir_tensor *in[3];                                                                 \
        for (int i = 0; i < 3; i++) {                                                              \
            in[i] = scalar_of(WEIR_DTYPE_##NAME, &given[i]);                                       \
        }                                                                                          \
        struct weir_tensor *got = run_one("Range", in, 3, (struct option){NULL, 0});               \
        same_bytes("Range", WEIR_DTYPE_##NAME, got, expected, 4);                                  \
        weir_tensor_release(got);                                                                  \
    }                                                                                              \
                                                                                                   \
    /* To float and double by the processor, to text by printf, and back. */                       \
    static void cast_##NAME(int64_t n)                                                             \
    {                                                                                              \
        type x[N_MAX];                                                                             \
        float floats[N_MAX];                                                                       \
        double doubles[N_MAX];                                                                     \
        int64_t wide[N_MAX];                                                                       \
        FILL(NAME, type, x, n)                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            floats[i] = (float)x[i];                                                               \
            doubles[i] = (double)x[i];                                                             \
            wide[i] = (int64_t)x[i];                                                               \
        }                                                                                          \
        const struct {                                                                             \
            enum weir_dtype to;                                                                    \
            const void *expected;                                                                  \
        } cases[] = {                                                                              \
            {WEIR_DTYPE_FLOAT, floats}, {WEIR_DTYPE_DOUBLE, doubles}, {WEIR_DTYPE_INT64, wide}};   \
        for (size_t k = 0; k < WEIR_ARRAY_LEN(cases); k++) {                                       \
            struct weir_tensor *given = tensor_of(WEIR_DTYPE_##NAME, n, x);                        \
            struct weir_tensor *got =                                                              \
                run_one("Cast", &given, 1, (struct option){"to", cases[k].to});                    \
            same_bytes("Cast", cases[k].to, got, cases[k].expected, (size_t)n);                    \
            weir_tensor_release(got);                                                              \
        }                                                                                          \
        struct weir_tensor *given = tensor_of(WEIR_DTYPE_##NAME, n, x);                            \
        struct weir_tensor *text =                                                                 \
            run_one("Cast", &given, 1, (struct option){"to", WEIR_DTYPE_STRING});                  \
        struct weir_tensor *got =                                                                  \
            run_one("Cast", &text, 1, (struct option){"to", WEIR_DTYPE_##NAME});                   \
        same_bytes("Cast by text", WEIR_DTYPE_##NAME, got, x, (size_t)n);                          \
        weir_tensor_release(got);                                                                  \
    }                                                                                              \
                                                                                                   \
    static void check_##NAME(void)                                                                 \
    {                                                                                              \
        for (int round = 0; round < N_ROUNDS; round++) {                                           \
            const int64_t n = 1 + weir_rng_u32(&rng) % N_MAX;                                      \
            reduce_##NAME(n);                                                                      \
            sum_up_##NAME(n);                                                                      \
            order_##NAME(n, round % 2 == 0);                                                       \
            elementwise_##NAME(n);                                                                 \
            scatter_##NAME(1 + round % 4);                                                         \
            multiply_##NAME(n);                                                                    \
            cast_##NAME(n);                                                                        \
        }                                                                                          \
        count_##NAME();                                                                            \
    }

// clang-format off
EACH_INTEGER(X)
#undef X
// clang-format on

static void (*const checks[])(void) = {
#define X(NAME, type) check_##NAME,
    EACH_INTEGER(X)
#undef X
};

START_TEST(operators_on_integers_are_exact)
{
    weir_rng_init(&rng, SEED, (uint64_t)_i);
    checks[_i]();
}

END_TEST

/* ---- not a number ----------------------------------------------------------------------------- */

/* NaN is the largest: it comes first of the largest and last of the smallest. */
START_TEST(nan_has_its_place_in_every_order)
{
    weir_rng_init(&rng, SEED, 99);
    for (int round = 0; round < 400; round++) {
        const int64_t n = 1 + weir_rng_u32(&rng) % N_MAX;
        const bool is_largest = round % 2 == 0;
        float x[N_MAX];
        int64_t n_nan = 0, first_nan = -1;
        for (int64_t i = 0; i < n; i++) {
            const float choices[] = {NAN, INFINITY, -INFINITY, -0.0F, 0, 1e-45F, 1, 2, 3};
            x[i] = choices[weir_rng_u32(&rng) % WEIR_ARRAY_LEN(choices)];
            first_nan = isnan(x[i]) && n_nan == 0 ? i : first_nan;
            n_nan += isnan(x[i]);
        }
        struct weir_tensor *in[] = {tensor_of(WEIR_DTYPE_FLOAT, n, x),
                                    tensor_of(WEIR_DTYPE_INT64, 1, &n)},
                           *out[2] = {NULL};
        run("TopK", in, 2, (struct option){"largest", is_largest}, out, 2);
        const float *values = out[0]->data;
        const int64_t *indices = out[1]->data;
        for (int64_t i = 0; i < n; i++) {
            ck_assert_int_eq(isnan(values[i]), is_largest ? i < n_nan : i >= n - n_nan);
            if (i > 0 && !isnan(values[i]) && !isnan(values[i - 1])) {
                ck_assert(is_largest ? values[i - 1] >= values[i] : values[i - 1] <= values[i]);
            }
            if (i > 0 &&
                (values[i] == values[i - 1] || (isnan(values[i]) && isnan(values[i - 1])))) {
                ck_assert_int_lt(indices[i - 1], indices[i]);
            }
        }
        int64_t best = first_nan >= 0 ? first_nan : indices[0];
        weir_tensor_release(out[0]);
        weir_tensor_release(out[1]);
        struct weir_tensor *given = tensor_of(WEIR_DTYPE_FLOAT, n, x);
        struct weir_tensor *got =
            run_one(is_largest ? "ArgMax" : "ArgMin", &given, 1, (struct option){"keepdims", 1});
        ck_assert_int_eq(*(const int64_t *)got->data, best);
        weir_tensor_release(got);
        given = tensor_of(WEIR_DTYPE_FLOAT, n, x);
        got = run_one(is_largest ? "ReduceMax" : "ReduceMin", &given, 1,
                      (struct option){"keepdims", 1});
        ck_assert_int_eq(isnan(*(const float *)got->data), n_nan > 0);
        weir_tensor_release(got);
    }
}

END_TEST

START_TEST(nan_stays_nan)
{
    static const char *const names[] = {"Relu",      "Abs",        "Neg",      "HardSigmoid",
                                        "HardSwish", "Celu",       "Elu",      "Selu",
                                        "LeakyRelu", "Sigmoid",    "Tanh",     "Clip",
                                        "Softmax",   "LogSoftmax", "Softplus", "Softsign",
                                        "Swish",     "Mish",       "Sign",     "LpNormalization"};

    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_DOUBLE};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(names) * 2; i++) {
        const float single = NAN;
        const double real = NAN;
        enum weir_dtype dtype = dtypes[i % 2];
        struct weir_tensor *given =
            tensor_of(dtype, 1, dtype == WEIR_DTYPE_FLOAT ? (const void *)&single : &real);
        if (onnx_op_find(names[i / 2], 18) == NULL) {
            weir_tensor_release(given);
            continue; /* of a later opset */
        }
        struct weir_tensor *got = run_one(names[i / 2], &given, 1, (struct option){NULL, 0});
        ck_assert_msg(isnan(onnx_get(got, 0)), "%s of %s", names[i / 2], weir_dtype_name(dtype));
        weir_tensor_release(got);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("operators");
    TCase *tests = tcase_create("operators");
    tcase_add_loop_test(tests, operators_on_integers_are_exact, 0, (int)WEIR_ARRAY_LEN(checks));
    tcase_add_test(tests, nan_has_its_place_in_every_order);
    tcase_add_test(tests, nan_stays_nan);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
