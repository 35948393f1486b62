/** Pick: what random_ops.c and its like choose for their nodes. */
#ifndef WEIR_ONNX_TEST_RANDOM_PICK_H
#define WEIR_ONNX_TEST_RANDOM_PICK_H

#include "random_graph.h"

#define BIT(dtype)   (UINT64_C(1) << WEIR_DTYPE_##dtype)
#define F32          BIT(FLOAT)
#define FLOATS       (F32 | BIT(DOUBLE) | BIT(FLOAT16) | BIT(BFLOAT16))
#define SIGNED       (BIT(INT8) | BIT(INT16) | BIT(INT32) | BIT(INT64))
#define UNSIGNED     (BIT(UINT8) | BIT(UINT16) | BIT(UINT32) | BIT(UINT64))
#define WHOLE        (SIGNED | UNSIGNED)
#define NUMBERS      (FLOATS | WHOLE)
#define ANY          (NUMBERS | BIT(BOOL) | BIT(STRING))
#define BYTES        (BIT(INT8) | BIT(UINT8))
#define EXACT        (UINT64_C(1) << 63) /* Only a value that is exact, */
#define FINITE       (UINT64_C(1) << 62) /* without NaN and infinities, */
#define CALM         (UINT64_C(1) << 61) /* of at most 30, */
#define LARGE_ENOUGH (UINT64_C(1) << 60) /* or with elements. */

#define N(array)       ((int64_t)WEIR_ARRAY_LEN(array))
#define PICK(g, array) ((array)[graph_pick(g, 0, N(array) - 1)])

/** A value of `low` to `high` dimensions: mostly one that was made lately, so that it has several
 *  readers near each other. */
int pick_value(struct random_graph *g, uint64_t wanted, int low, int high);
/** Something of a value's type to go with it: itself, another value, or a new one. */
int pick_partner(struct random_graph *g, int of, uint64_t wanted);
/** Dimensions that broadcast to a value's, some of them 1, perhaps without the first ones.
 *  @return How many. */
int pick_smaller(struct random_graph *g, int of, int64_t dims[WEIR_TENSOR_RANK_MAX]);
/** One number, of none to two dimensions. */
int pick_scalar(struct random_graph *g, enum weir_dtype dtype, double number);
/** A node of one input and one output. */
int graph_add1(struct random_graph *g, const char *type, int x, struct graph_result result);
/** An input or a constant. */
int pick_of_shape(struct random_graph *g, uint64_t wanted, int rank, const int64_t *dims);
enum weir_dtype pick_dtype(struct random_graph *g, uint64_t wanted);
enum value_kind pick_kind(struct random_graph *g, uint64_t wanted);
/** One or the other order. */
void pick_order(struct random_graph *g, int in[2]);
/** Can the two be broadcast to each other? */
bool pick_fits(const struct weir_tensor *a, const struct weir_tensor *b);
/** What a sum makes. */
struct graph_result graph_summed(const struct random_graph *g, const int *in, int n);
/** What a sum of n_terms products makes. */
struct graph_result graph_multiplied(const struct random_graph *g, int a, int b, double n_terms);
const struct weir_tensor *graph_tensor(const struct random_graph *g, int value);

static inline int64_t graph_dim(const struct random_graph *g, int value, int i)
{
    return g->values[value].now->dims[i];
}

/** Product of dimensions. */
double graph_count(const int64_t *dims, int n);
/** Strides, pads and dilations of a window; the kernel where it is an attribute. */
void graph_set_window(struct random_graph *g, int n, const int64_t *kernel, bool has_kernel,
                      bool is_small);

/** Groups of operators. */
void random_bytes(struct random_graph *g);
void random_byte_operator(struct random_graph *g);
void random_dynamic(struct random_graph *g);
void random_moves_add(struct random_graph *g);
void random_products_add(struct random_graph *g);

#endif
