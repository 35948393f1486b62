/**
 * Random graph: a graph of ONNX that grows node by node. Each node is computed as it is added, alone
 * and by the interpreter: so its outputs' types and shapes are known without a word on them here, and
 * what the interpreter refuses is not added.
 *
 *     struct random_graph g;
 *     random_graph_begin(&g, seed, opset);
 *     random_ops_add(&g);                          perhaps a node, or a few that belong together
 *     random_graph_write(&g, &model);              the bytes of its file
 *     random_graph_draw(&g);                       other numbers for its inputs
 *     random_graph_compute(&g)                     what each value is then
 *     random_graph_differs(&g, i_out, tensor, …)   is a tensor what output i is to be?
 *     random_graph_end(&g);
 *
 * Comparisons are strict, and need no luck. A value is exact if its elements are multiples of a power
 * of two and so few bits wide that sums and products of them are exact in any order: then every
 * executor must give these very numbers, and only such values go to where a little less or more is
 * something else (Round, ArgMax, Less, casts to integers). What is not exact is computed again with
 * noise on the inputs of each node, so that it is known how far each element may be off.
 */
#ifndef WEIR_ONNX_TEST_RANDOM_GRAPH_H
#define WEIR_ONNX_TEST_RANDOM_GRAPH_H

#include "onnx/onnx.h"

#include "base/buf.h"
#include "base/rng.h"

#define GRAPH_VALUES_MAX 192
#define GRAPH_STEPS_MAX  64
#define GRAPH_IN_MAX     10
#define GRAPH_OUT_MAX    5
#define GRAPH_NOISES     2

/** What its numbers are like. */
enum value_kind {
    VALUE_DYADIC,  /**< Small multiples of a quarter. */
    VALUE_NORMAL,  /**< Normally distributed. */
    VALUE_OUTLIER, /**< The same, but a few are large. */
    VALUE_SPECIAL, /**< Dyadic, but a few are NaN or infinite. */
    VALUE_POSITIVE /**< 0.5, 1, 2 or 4. */
};

struct random_value {
    char name[16];
    struct weir_tensor *now; /**< NULL: its node cannot be computed. */
    struct weir_tensor *noisy[GRAPH_NOISES];
    enum value_kind kind; /**< Of an input or a constant. */
    bool is_input, is_constant, is_exact;
    bool is_closed;  /**< Nobody may read it. */
    bool is_fixed;   /**< Its numbers were chosen: no noise comes to them. */
    bool is_special; /**< May it have NaN or infinities? */
    bool is_nonzero; /**< Is none of its elements zero, or minus zero? */
    bool is_sum;     /**< Of products, and what arithmetic makes of it. */
    double bound;    /**< Of the elements, as far as they are finite. */
    int grid;        /**< An exact value's elements are multiples of 2^grid. */
    int n_readers;
};

struct random_step {
    const char *type;
    struct weir_buf node; /**< As in the file. */
    int in[GRAPH_IN_MAX], n_in, out[GRAPH_OUT_MAX], n_out;
    bool is_exact;
    struct weir_onnx *alone;
};

struct random_graph {
    uint64_t seed;
    struct weir_rng rng;
    int opset;
    int64_t batch;  /**< All inputs' first dimension, which is free; 0: shapes are fixed or free. */
    bool is_common; /**< Only what other runtimes define in the same way. */
    int rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX]; /**< Of most of its values. */
    struct weir_buf attributes;         /**< Of the next node. */
    struct random_value values[GRAPH_VALUES_MAX];
    struct random_step steps[GRAPH_STEPS_MAX];
    int n_values, n_steps;
    int outputs[GRAPH_VALUES_MAX], n_outputs;
};

void random_graph_begin(struct random_graph *g, uint64_t seed, bool is_common);
void random_graph_end(struct random_graph *g);

/* ---- random choices --------------------------------------------------------------------------- */

/** low to high, both can be. */
int64_t graph_pick(struct random_graph *g, int64_t low, int64_t high);
/** True once in n times. */
bool graph_rarely(struct random_graph *g, int n);

/* ---- growing ---------------------------------------------------------------------------------- */

/** A value from outside: an input, where the graph may have one of the shape, or a constant. */
int graph_given(struct random_graph *g, bool is_constant, enum weir_dtype dtype, int rank,
                const int64_t *dims, enum value_kind kind);
/** A constant of these numbers. */
int graph_constant(struct random_graph *g, enum weir_dtype dtype, int rank, const int64_t *dims,
                   const double *numbers);
int graph_ints(struct random_graph *g, int n, const int64_t *numbers);

/** Attributes of the next node. */
void graph_set_int(struct random_graph *g, const char *name, int64_t value);
void graph_set_ints(struct random_graph *g, const char *name, int n, const int64_t *values);
void graph_set_float(struct random_graph *g, const char *name, double value);
void graph_set_text(struct random_graph *g, const char *name, const char *text);

/** How a node's outputs are. */
struct graph_result {
    bool is_exact; /**< If the bound and the grid allow that. */
    double bound;  /**< 0: of an output that is not exact: that of its elements. */
    int grid;
    bool is_special;
};

/** What moves elements, or chooses among them, makes. */
struct graph_result graph_moved(const struct random_graph *g, const int *in, int n);
struct graph_result graph_inexact(const struct random_graph *g, const int *in, int n);

/** Adds a node with the attributes that were set, or none if the interpreter refuses it.
 *  @param in  Values; -1: left out. @return Its first output, or -1. */
int graph_add(struct random_graph *g, const char *type, const int *in, int n_in, int n_out,
              struct graph_result result);

/** Adds a node, or a few that are usual together (random_ops.c). */
void random_ops_add(struct random_graph *g);

/* ---- using ------------------------------------------------------------------------------------ */

/** Chooses outputs: what nobody reads, and some between. */
void random_graph_close(struct random_graph *g);
void random_graph_write(const struct random_graph *g, struct weir_buf *to);
void random_graph_print(const struct random_graph *g, FILE *to);

/** Draws the inputs again, with `batch` as their first dimension if it is free. */
void random_graph_draw(struct random_graph *g, int64_t batch);
/** Computes all values. False: not all can be. */
bool random_graph_compute(struct random_graph *g);

/** Does a tensor differ from what output i_out is to be? Then what says how. */
bool random_graph_differs(struct random_graph *g, int i_out, const struct weir_tensor *is,
                          char what[160]);
/** How far element i of an output may be off. */
double random_graph_tolerance(const struct random_graph *g, int i_out, size_t i);

#endif
