/**
 * Infer: one inference, apart from any protocol: tensors in, what is asked of the outputs, tensors
 * out. A protocol's reader fills the first half, its writer writes the second.
 */
#ifndef WEIR_SERVE_INFER_H
#define WEIR_SERVE_INFER_H

#include "base/arena.h"
#include "serve/signature.h"
#include "tensor/tensor.h"

/** An output that the answer has. */
struct infer_output {
    size_t i_port;
    bool is_binary;    /**< Raw bytes behind the JSON (Triton's binary tensors). */
    int64_t n_classes; /**< > 0: the highest of them, as "value:index:label", in place of values. */
};

struct infer {
    const char *model;
    int64_t version;
    const struct weir_signature *signature; /**< Borrowed. */
    struct weir_arena *arena;               /**< Of all texts. */

    const char *id;                          /**< The caller's; NULL: none. */
    struct weir_tensor *in[SERVE_PORTS_MAX]; /**< References; NULL: not given yet. */
    int64_t n_rows;                          /**< By infer_check. */
    int64_t timeout_us;                      /**< 0: the server's. */
    struct infer_output outputs[SERVE_PORTS_MAX];
    size_t n_outputs;
    bool is_picture; /**< The body was a picture: the answer has labels. */
    int64_t n_top;   /**< How many labels. */
    int form;        /**< Which form of its protocol the request had. */

    struct weir_tensor *const *out; /**< By port; borrowed. */
};

/** Index of the input with this name. INVALID, with the names that there are. */
weir_status infer_find_input(const struct infer *infer, const char *name, size_t *out,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status infer_find_output(const struct infer *infer, const char *name, size_t *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Gives the input a tensor; takes the reference, also on an error. INVALID: it has one, or the
 *  tensor does not fit. */
weir_status infer_set_input(struct infer *infer, size_t i_input, struct weir_tensor *tensor,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Are all inputs there, of as many rows each? Sets n_rows; without outputs asked for, all are. */
weir_status infer_check(struct infer *infer, struct weir_error *err) WEIR_MUST_CHECK;

/** Gives the inputs' references back. */
void infer_fini(struct infer *infer);

/** One class of a row, with its place. */
struct infer_class {
    size_t index;
    double value;
    const char *label; /**< "" if the model has no labels. */
};

/**
 * The highest values of one row of an output, highest first.
 * @param is_probability  Softmax first, where the signature says that they are logits.
 * @param n               How many; fewer if the row has fewer.
 * @return In the arena. 0 for an output of texts.
 */
size_t infer_top(const struct infer *infer, size_t i_output, int64_t i_row, bool is_probability,
                 size_t n, struct infer_class **out);

#endif
