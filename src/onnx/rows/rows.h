/**
 * Rows: a proof that what a model answers to a row of a batch is a function of that row alone: of no
 * other row, of no place among them, and of no count of them.
 *
 * The graph is walked once, without running it. Each value has a state: FLAT, the same in every run
 * whose shapes beside the batch are the same; ROWS, whose one axis has N times `m` places, and places
 * i·m to (i + 1)·m are the same function of row i for every i and N; or MIXED. An operator has a rule
 * (struct rows_rule) that makes the states of its outputs of those of its inputs. What no rule says is
 * not proven.
 *
 * Sizes are amounts: a number times a power of N times symbols, where a symbol is a size that is free
 * in the file but the same in all requests that are joined. Tensors of sizes, which graphs make of Shape,
 * hold amounts as values; one that depends on N is good for shapes alone.
 */
#ifndef WEIR_ONNX_ROWS_ROWS_H
#define WEIR_ONNX_ROWS_ROWS_H

#include "onnx/op.h"

#include "base/arena.h"

#define ROWS_SYMBOLS_MAX 6
#define ROWS_VALUES_MAX  64 /* Of a tensor whose elements are followed. */
#define ROWS_OUTS_MAX    32 /* Outputs of a node that are followed; the rest are MIXED. */

/** coef · N^n_power · symbols. */
struct rows_amount {
    bool is_known;
    bool is_of_n; /**< If it is not known: may it depend on N? */
    uint8_t n_power, n_symbols;
    int64_t coef;
    int32_t symbols[ROWS_SYMBOLS_MAX]; /**< In order; one may be there twice. */
};

enum rows_kind { ROWS_FLAT, ROWS_ROWS, ROWS_MIXED };

enum rows_verdict {
    ROWS_APART,
    ROWS_MIX,
    ROWS_UNSURE, /**< No rule says. */
};

struct rows_state {
    enum rows_kind kind;
    int32_t rank; /**< -1: not known; never of ROWS. */
    int32_t axis; /**< Of ROWS. */
    /** All are known; N is in that of the axis only. */
    struct rows_amount dims[WEIR_TENSOR_RANK_MAX];
    const struct rows_amount *values; /**< Of FLAT, rank 0 or 1; NULL: not followed, free of N. */
    size_t n_values;
    const struct weir_tensor *constant; /**< NULL: it is none of the file's. */
    const struct onnx_node *cause;      /**< Of MIXED: the node that mixed; NULL: none. */
    enum rows_verdict why;              /**< Of MIXED. */
};

/** A node with the states of its inputs. */
struct rows_call {
    struct onnx_call call; /**< For attributes: no tensors in it. */
    struct weir_arena *arena;
    const struct rows_state *const *in; /**< NULL: left out. */
    size_t n_in, n_out;
    struct rows_state *out; /**< FLAT of no known rank at first. */
    int32_t *n_symbols;     /**< Of the proof. */
};

struct rows_rule {
    const char *types; /**< Names, separated by blanks. */
    enum rows_verdict (*run)(struct rows_call *call);
    uint32_t sizes; /**< Bits of the inputs that may hold amounts of N; all: of any input. */
    uint8_t least;  /**< Inputs that must be there. */
};

/* ---- amounts ------------------------------------------------------------------------------------ */

struct rows_amount rows_number(int64_t number);
/** N times a number. */
struct rows_amount rows_n(void);
/** A size that is not known, free of N, and at least 0. */
struct rows_amount rows_fresh(struct rows_call *call);
struct rows_amount rows_unknown(bool is_of_n);
bool rows_is(const struct rows_amount *amount, int64_t number);
bool rows_is_of_n(const struct rows_amount *amount);
bool rows_is_number(const struct rows_amount *amount);
bool rows_equal(const struct rows_amount *a, const struct rows_amount *b);
struct rows_amount rows_times(const struct rows_amount *a, const struct rows_amount *b);
/** False: it does not go without a rest, as far as is known. */
bool rows_divide(const struct rows_amount *a, const struct rows_amount *b, struct rows_amount *out);
struct rows_amount rows_plus(const struct rows_amount *a, const struct rows_amount *b, int sign);

/* ---- states ------------------------------------------------------------------------------------- */

/** Input i; NULL: left out. */
static inline const struct rows_state *rows_in(const struct rows_call *call, size_t i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static inline bool rows_has(const struct rows_state *state)
{
    return state != NULL && state->kind == ROWS_ROWS;
}

/** Is it left out, or the same in each run? */
static inline bool rows_flat(const struct rows_state *state)
{
    return state == NULL || state->kind == ROWS_FLAT;
}

/** Are inputs from the first on flat, or left out? */
bool rows_flat_from(const struct rows_call *call, size_t first);
/** Do its followed values depend on N? */
bool rows_counts(const struct rows_state *state);
/** The numbers of an input that is followed; false: not all are. */
bool rows_numbers(const struct rows_state *state, size_t most, int64_t *out, size_t *out_n);
/** The amounts of an input; NULL: they are not followed. */
const struct rows_amount *rows_amounts(const struct rows_state *state, size_t *out_n);
/** An axis as a number from 0 on; -1: outside. */
int32_t rows_axis(int64_t axis, int32_t rank);
/** The axes of an attribute, or an input, as flags. *out_has: were any given? UNSURE: not known. */
enum rows_verdict rows_axes(const struct rows_call *call, size_t input, int32_t rank,
                            bool out[WEIR_TENSOR_RANK_MAX], bool *out_has);
/** Output i with the shape of `like` (and its rows). */
void rows_out_like(struct rows_call *call, size_t i, const struct rows_state *like);
/** All outputs. */
void rows_outs_like(struct rows_call *call, const struct rows_state *like);
/** Values for output i, to be filled. */
struct rows_amount *rows_values(struct rows_call *call, size_t i, int32_t rank, size_t n);
/** Kind and axis of a state whose dims are set: that which has N. MIX: two have, or one is unknown. */
enum rows_verdict rows_settle(struct rows_state *state);
/** The shape, and the rows, of inputs `first` to `end` that are broadcast to each other. */
enum rows_verdict rows_broadcast(struct rows_call *call, size_t first, size_t end, int32_t rank,
                                 struct rows_state *out);
/** The same of two states that need not be inputs. */
enum rows_verdict rows_broadcast_pair(const struct rows_call *call, const struct rows_state *a,
                                      const struct rows_state *b, struct rows_state *out);

/* ---- rules -------------------------------------------------------------------------------------- */

extern const struct rows_rule rows_each[], rows_moves[], rows_shapes[], rows_sums[], rows_windows[];
extern const size_t rows_n_each, rows_n_moves, rows_n_shapes, rows_n_sums, rows_n_windows;

#define ROWS_TRY(verdict)                                                                          \
    do {                                                                                           \
        enum rows_verdict rows_try = (verdict);                                                    \
        if (rows_try != ROWS_APART) {                                                              \
            return rows_try;                                                                       \
        }                                                                                          \
    } while (0)

/** Goes on if it is so; else the rows mix, or nobody knows. */
#define ROWS_NEED(condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return ROWS_MIX;                                                                       \
        }                                                                                          \
    } while (0)
#define ROWS_KNOW(condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return ROWS_UNSURE;                                                                    \
        }                                                                                          \
    } while (0)

/* ---- the proof ---------------------------------------------------------------------------------- */

/** A value that is a constant since the model was loaded: output i_out of a node. NULL: none. */
typedef const struct weir_tensor *(*rows_constant_fn)(const void *context, size_t i_node,
                                                      size_t i_out);

/**
 * Are the rows of a model's batch apart? Inputs whose first dimension is not free, and outputs that
 * have no rows, are none.
 * @param constant   NULL: only those of the file are known.
 * @param arena      For the proof; it may be out of memory after it, and then nothing is proven.
 * @param out_cause  The node that mixes, or that no rule knows; NULL: the ports are not such.
 */
enum rows_verdict rows_prove(const struct onnx_model *model, rows_constant_fn constant,
                             const void *context, struct weir_arena *arena,
                             const struct onnx_node **out_cause);

#endif
