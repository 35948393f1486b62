/**
 * Primitives: oneDNN's C API (dnn/dnn.h), as far as a net needs it. This file, conv*.c and peak.c use it;
 * nothing else does.
 *
 * A primitive runs in one thread and uses scratch memory of the caller. Any of the net's threads
 * may run it, several at the same time: each has memory objects of its own, whose addresses are set
 * at every run. Creating a primitive allocates; running it does not (oneDNN itself allocates and
 * frees a few hundred bytes per call).
 */
#ifndef WEIR_NN_CPU_PRIMITIVE_H
#define WEIR_NN_CPU_PRIMITIVE_H

#include "nn/backend/slab.h"
#include "nn/nn.h"

#include "dnn/dnn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Pieces of memory for copies of weights. Each is twice as large as the one before. */
#define DNN_MAX_PIECES 32

struct dnn_context {
    dnnl_engine_t engine;
    dnnl_stream_t *streams; /**< By thread. */
    int32_t n_threads, n_pieces;
    struct slab pieces[DNN_MAX_PIECES];
};

/** Makes a context. @return UNSUPPORTED if the processor has no instructions for the precision. */
weir_status dnn_open(const struct weir_net_config *config, int32_t n_threads, void **out_context,
                     struct weir_error *err);
void dnn_close(void *context);

/** Zeroed memory at a multiple of 64, valid until dnn_close; in huge pages if it is large. Call it
 *  while a net is prepared. @return NULL if memory is out. */
void *dnn_take(struct dnn_context *context, size_t n_bytes);

/** Sets oneDNN's calls from this thread to one OpenMP thread: the net itself is parallel. */
void dnn_enter_thread(void);

/** May this process use the processor's matrix registers (AMX, in bf16)? oneDNN has then asked the
 *  kernel for them. */
bool dnn_has_tiles(void);

/** Is memory so slow, compared with the arithmetic, that saving passes over it pays for other
 *  costs? True on processors with AMX: a Xeon core reads 20 GB/s and copies 15, and computes 240
 *  GFLOP/s in f32 and more than 1,000 in bf16. */
bool dnn_is_memory_far(void);

/** Translates oneDNN's status; err gets a sentence with `what`. */
weir_status dnn_check(dnnl_status_t status, const char *what, struct weir_error *err);

#define PRIMITIVE_MAX_ARGS 5 /* with the scratchpad */

struct primitive {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t *args; /**< n_threads rows of n_args; the last is the scratchpad. */
    int32_t n_args, n_threads;
    size_t scratch_bytes;
};

/** One argument of a primitive: its number and shape. */
struct primitive_arg {
    int index; /**< DNNL_ARG_… */
    const struct weir_dnn_layout *layout;
};

/** What a forward primitive does with its result before it stores it. */
struct primitive_tail {
    bool has_sum;  /**< Adds what the destination holds. */
    bool has_relu; /**< Then applies ReLU; NaN passes. */
};

/**
 * Creates a primitive of an operation. `hint` is the forward primitive of a backward
 * one, or NULL. If oneDNN has only its slow reference code, p->primitive stays NULL and the status
 * is WEIR_OK: Weir's own kernel must be used. Attach arguments with primitive_attach.
 */
weir_status primitive_create(const struct dnn_context *context, const struct weir_dnn_op *op,
                             const struct primitive *hint, struct primitive_tail tail,
                             struct primitive *p, struct weir_error *err) WEIR_MUST_CHECK;

/** Creates a copy between two layouts of the same dimensions. */
weir_status primitive_create_reorder(const struct dnn_context *context,
                                     const struct weir_dnn_layout *from,
                                     const struct weir_dnn_layout *to, struct primitive *p,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Makes memory objects for each thread. Addresses come with each run. */
weir_status primitive_attach(const struct dnn_context *context, struct primitive *p,
                             const struct primitive_arg *args, int32_t n_args,
                             struct weir_error *err) WEIR_MUST_CHECK;

void primitive_destroy(struct primitive *p);

/** The layout the primitive chose for an argument ("dnnl_query_weights_md" …). */
struct weir_dnn_layout primitive_layout(const struct primitive *p, dnnl_query_t what);

/** Runs with these addresses, in the order of primitive_attach, and with this thread's scratch. */
weir_status primitive_run(const struct dnn_context *context, const struct primitive *p,
                          int32_t i_thread, void *const *addresses, void *scratch) WEIR_MUST_CHECK;

#endif
