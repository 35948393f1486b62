/**
 * Operators: how one is written, and what they share.
 *
 * An operator looks at its inputs and attributes, makes its outputs with onnx_out, and fills them.
 * The tables of a family stand at the end of its file (families.def). An operator's semantics are
 * those of ONNX's operator reference (onnx.ai/onnx/operators); each table says since which opset.
 */
#ifndef WEIR_ONNX_OP_H
#define WEIR_ONNX_OP_H

#include "model.h"

struct onnx_call;

struct onnx_op {
    const char *type;    /**< "Conv" */
    int32_t since;       /**< The first opset whose form this is. */
    uint8_t n_in, n_out; /**< Inputs that must be there; outputs that can be asked for. */
    weir_status (*run)(struct onnx_call *call, struct weir_error *err);
    const void *detail; /**< What operators of one function differ in. */
};

/** Memory that the tensors of a run hold. */
struct onnx_budget {
    size_t used_bytes, most_bytes;
};

/** One operator's run. */
struct onnx_call {
    const struct onnx_op *op;
    const struct onnx_node *node;
    int64_t opset;
    struct weir_tensor *const *in; /**< NULL: left out. */
    size_t n_in;
    struct weir_tensor **out; /**< Made by onnx_out or onnx_alias. */
    size_t n_out;
    struct onnx_budget *budget;
};

/** All families' operators; the newest form whose `since` is not above the opset. NULL: none. */
const struct onnx_op *onnx_op_find(const char *type, int64_t opset);
/** Is there a form of any opset? */
bool onnx_op_is_known(const char *type);
/** May the node's outputs differ from those of its last run though the inputs are the same? So
 *  Dropout's in training mode, where it names no seed. */
bool onnx_node_draws(const struct onnx_node *node);
/** Is it Dropout that an input sets to training or not? Its output is then a view of its input in
 *  one run, and another tensor in the next. */
bool onnx_node_may_train(const struct onnx_node *node);

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/** Input i, or NULL if it is left out. */
static inline struct weir_tensor *onnx_in(const struct onnx_call *call, size_t i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static inline bool onnx_has_out(const struct onnx_call *call, size_t i)
{
    return i < call->n_out;
}

/** Makes output i, of zeros. LIMIT if the run holds too much then. */
weir_status onnx_out(struct onnx_call *call, size_t i, enum weir_dtype dtype, int32_t rank,
                     const int64_t *dims, struct weir_tensor **out,
                     struct weir_error *err) WEIR_MUST_CHECK;
/** The same with the type and shape of another tensor. */
weir_status onnx_out_like(struct onnx_call *call, size_t i, const struct weir_tensor *like,
                          struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;
/** Output i is a tensor's elements under other dimensions. */
weir_status onnx_alias(struct onnx_call *call, size_t i, struct weir_tensor *tensor, int32_t rank,
                       const int64_t *dims, struct weir_error *err) WEIR_MUST_CHECK;
/** A tensor for the call's own use, which it releases; counted while it runs. */
weir_status onnx_scratch(struct onnx_call *call, enum weir_dtype dtype, int32_t rank,
                         const int64_t *dims, struct weir_tensor **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Element i of a tensor of floats, or of integers of at most 32 bits. Integers of any size are read
 *  and written exactly by number.h: a double does not hold those of 64 bits. */
double onnx_get(const struct weir_tensor *tensor, size_t i);
/** Sets element i of such a tensor; floats beyond a narrow type's range saturate, integers wrap. */
void onnx_put(struct weir_tensor *tensor, size_t i, double value);

/* ---- attributes ------------------------------------------------------------------------------ */

const struct onnx_attribute *onnx_attribute(const struct onnx_call *call, const char *name);
int64_t onnx_int(const struct onnx_call *call, const char *name, int64_t otherwise);
float onnx_float(const struct onnx_call *call, const char *name, float otherwise);
/** Is the text attribute (or, if it is not there, `otherwise`) this one? */
bool onnx_text_is(const struct onnx_call *call, const char *name, const char *otherwise,
                  const char *text);
/** Numbers of a list; NULL and 0 if it is not there. */
const int64_t *onnx_ints(const struct onnx_call *call, const char *name, size_t *out_n);
const float *onnx_floats(const struct onnx_call *call, const char *name, size_t *out_n);

/** An axis of `rank` dimensions: negative ones count from the end. INVALID outside. */
weir_status onnx_axis(int64_t axis, int32_t rank, int32_t *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** The axes of a list as flags, which an attribute has, or since a later opset an input (int64).
 *  *out_has: were any given? */
weir_status onnx_axes(const struct onnx_call *call, size_t input, int32_t rank,
                      bool out[WEIR_TENSOR_RANK_MAX], bool *out_has,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** The integers of an input of type INT64 or INT32, at most `most`. */
weir_status onnx_in_ints(const struct onnx_call *call, size_t input, size_t most, int64_t *out,
                         size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;
/** The first element of an input as a number; `otherwise` if the input is left out. */
double onnx_in_number(const struct onnx_call *call, size_t input, double otherwise);
/** The same as an integer, modulo int64's range; a float is cut towards zero. */
int64_t onnx_in_int(const struct onnx_call *call, size_t input, int64_t otherwise);

/** UNSUPPORTED: "elements of FLOAT16 are not supported". */
weir_status onnx_refuse_dtype(enum weir_dtype dtype, struct weir_error *err);

/* ---- shapes ---------------------------------------------------------------------------------- */

/** Elements in front of, at and behind an axis. */
struct onnx_split {
    size_t n_outer, n, n_inner;
};
struct onnx_split onnx_split_at(const struct weir_tensor *tensor, int32_t axis);

/** Walks an array with several operands of other strides (in elements; 0: the same element again). */
#define ONNX_OPERANDS_MAX 4

struct onnx_walk {
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    size_t n_elems;
    int64_t strides[ONNX_OPERANDS_MAX][WEIR_TENSOR_RANK_MAX];
};

/** Makes the walk of tensors that are broadcast to each other as numpy does; dims are the result's.
 *  INVALID if they do not fit. */
weir_status onnx_broadcast(struct weir_tensor *const *in, size_t n, struct onnx_walk *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Operand k's element for element i of the result: for rows, ask for the first and go on by
 *  strides[k][rank - 1]. */
size_t onnx_walk_at(const struct onnx_walk *walk, size_t k, size_t i);

#endif
