/**
 * Executor: what runs a model file. Each kind of executor is one file, src/serve/executor/NAME.c.
 *
 *     weir         Weir's own net files (nn/net_file.h)
 *     onnx         ONNX files, by src/onnx
 *     onnxruntime  ONNX files, by a library that is loaded at run time
 *
 *     struct serve_model *model;
 *     char why[EXECUTOR_WHY_BYTES];
 *     WEIR_TRY(executor_choose("model.onnx", &options, &model, why, err));
 *     struct weir_tensor *out[1];
 *     WEIR_TRY(serve_model_run(model, in, out, err));
 *     serve_model_unload(model);
 *
 * A loaded model has ports, which are the tensors that go in and come out. A free dimension is -1.
 * Where the first dimension of every port is free, it means the batch (serve_model_is_batched), and
 * a run may have any batch.
 *
 * A model file is treated as hostile: its form and sizes are checked, and a run's memory is bounded.
 *
 * GPUs: "weir" and "onnxruntime" compute on one if the process was given one (nn/gpu_given.h), or if
 * the options say so. On a GPU that has failed nothing is computed any more: the run says so, and
 * sets is_broken; what has to be done is to start the process anew.
 *
 * Threads: one thread at a time uses a serve_model; it may be another than the one that loaded it.
 * Models are independent of each other.
 */
#ifndef WEIR_SERVE_EXECUTOR_H
#define WEIR_SERVE_EXECUTOR_H

#include "base/kind.h"
#include "base/model_format.h"
#include "base/status.h"
#include "tensor/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** More ports than any model has that serves requests. A file with more is LIMIT. */
#define SERVE_PORTS_MAX       64
#define SERVE_MODEL_MAX_BYTES ((size_t)16 << 30)
#define EXECUTOR_WHY_BYTES    1024

/** Where a model is computed. */
enum executor_device {
    EXECUTOR_AUTO, /**< On a GPU if the process was given one and the executor can; a GPU whose
                        libraries do not load is left alone, and the log says why. */
    EXECUTOR_PROCESSOR,
    EXECUTOR_GPU, /**< On a GPU, or not at all. */
};

/** The words for it, "auto", "processor" and "gpu", with NULL at the end. */
extern const char *const executor_device_words[];

/** @return INVALID, naming the words there are. */
weir_status executor_device_parse(const char *text, enum executor_device *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

struct weir_backend; /* nn/nn.h */

/** A tensor that goes in or comes out. */
struct serve_port {
    const char *name;                   /**< Owned by the model. */
    enum weir_dtype dtype;              /**< NONE: the file does not say. */
    int32_t rank;                       /**< -1: the file does not say. */
    int64_t dims[WEIR_TENSOR_RANK_MAX]; /**< -1: free. */
};

struct executor_options {
    int32_t n_threads;       /**< Computing threads; 0: one per CPU. A GPU needs none. */
    size_t memory_max_bytes; /**< What a run may take; 0: 8 GiB. On a GPU what one planned batch
                                  may take there. */
    enum executor_device device;
    const char *precision;          /**< Of net files: "f32", "bf16", or on a GPU "tf32" (nn/nn.h);
                                           NULL: f32. Others take no other than f32. */
    const struct weir_backend *gpu; /**< What runs nets on a GPU; NULL: weir_cuda_backend. */
    const char *onnxruntime_path;   /**< The library, file or folder; NULL: the system's
                                       (executor/ort_library.h). */
    bool only_interprets;           /**< The executor "onnx" computes the plain way, in f64: slow,
                                       to compare with. */
    int32_t batch_max;              /**< The largest batch to plan for; 0: 1. A larger one is run in
                                       parts by executors that plan. */
    /** Shapes of inputs of an ONNX file in place of those that it says; its types stay. NULL: none.
     *  Borrowed for the call. */
    const struct serve_port *shapes;
    size_t n_shapes;
};

/** Is an answer to a row a function of that row alone? */
enum serve_rows {
    SERVE_ROWS_UNSURE, /**< Nobody can prove it: it can be tried (serve/rows.h). */
    SERVE_ROWS_APART,  /**< Proven. */
    SERVE_ROWS_MIXED,  /**< Not so, or not proven where a proof could be had. */
};

#define SERVE_ROWS_BYTES 256

struct executor_ops;

/** A loaded model: the head of an executor's own struct. */
struct serve_model {
    const struct weir_kind *kind; /**< Of its executor. */
    const char *version;          /**< Of a library that runs it; NULL: Weir itself. */
    const char *place;            /**< "the GPU" or "the processor". */
    const struct serve_port *inputs, *outputs;
    size_t n_inputs, n_outputs;
    bool is_resizable; /**< Its file fixes the size of pictures, and no node needs that. */
    enum serve_rows rows;
    char rows_why[SERVE_ROWS_BYTES]; /**< Why rows are not apart, or that is not known: a clause. */
    bool is_broken; /**< Its GPU has failed: every run fails. Set by a run, on its thread. */
};

/** What a kind of executor does. Others call serve_model_… below. */
struct executor_ops {
    weir_status (*load)(const char *path, const struct executor_options *options,
                        struct serve_model **out, struct weir_error *err);
    weir_status (*run)(struct serve_model *model, struct weir_tensor *const *in,
                       struct weir_tensor **out, struct weir_error *err);
    void (*unload)(struct serve_model *model);
    const char *(*metadata)(struct serve_model *model, const char *key); /**< NULL: has none. */
    bool can_use_gpu, has_precisions; /**< Else it computes on the processor, in f32. */
};

extern const struct weir_registry weir_executors;

/**
 * Loads a model with the executor of this name.
 *
 * @param options  NULL: the defaults. Borrowed until the call returns.
 * @param out      The caller owns the model: serve_model_unload.
 * @return INVALID (no such executor; the file is not what it runs; no input has a shape of the options),
 *         NOT_FOUND, DENIED, IO, CORRUPT,
 *         UNSUPPORTED (names operator, opset and node; says how to install onnxruntime; says what a
 *         GPU that was asked for lacks), LIMIT (also if the GPU has no room), NOMEM. INTERNAL: the GPU
 *         has failed.
 */
weir_status executor_load(const char *kind, const char *path,
                          const struct executor_options *options, struct serve_model **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Loads a model with the executor that suits it: Weir's own if it can run the file, else
 * onnxruntime if its library is found.
 *
 * @param why  A sentence: which executor it is, and why.
 * @return As executor_load. UNSUPPORTED names what Weir's own lacks, and what to install or set.
 */
weir_status executor_choose(const char *path, const struct executor_options *options,
                            struct serve_model **out, char why[EXECUTOR_WHY_BYTES],
                            struct weir_error *err) WEIR_MUST_CHECK;

/** A message without the path that it begins with: what is told to others names no place of this
 *  machine. Borrowed. */
const char *executor_message(const char *message, const char *path);

/** Loads onnxruntime's library, if it is there: for a process that cannot open files later on. */
void executor_preload(const struct executor_options *options);

/**
 * Runs the model.
 *
 * @param in   A tensor for each input, in the order of the ports. Borrowed; not changed.
 * @param out  A reference for each output, which the caller releases. Outputs may refer to inputs.
 *             Written only on success.
 * @return INVALID: an input does not fit its port, or the model cannot have this shape. LIMIT,
 *         NOMEM. INTERNAL: the executor failed. The model can be used again after each, unless
 *         is_broken is set.
 */
weir_status serve_model_run(struct serve_model *model, struct weir_tensor *const *in,
                            struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** May a model of these options be computed on a GPU? NULL: the defaults. */
bool executor_wants_gpu(const struct executor_options *options);

/** What kind of file it was loaded from: WEIR or ONNX. */
enum weir_model_format serve_model_format(const struct serve_model *model);

/** Is it computed on a GPU? There a batch costs little more than one row. */
bool serve_model_is_on_gpu(const struct serve_model *model);

/** NULL is accepted. */
void serve_model_unload(struct serve_model *model);

/**
 * A text that the file carries: "weir.picture" and "weir.labels" (JSON, signature.h),
 * "weir.output_kind". NULL: it does not carry it. Owned by the model, until the next call.
 */
const char *serve_model_metadata(struct serve_model *model, const char *key);

/** Is the first dimension of every input and output free (and is there an input)? */
bool serve_model_is_batched(const struct serve_model *model);

/** Does a tensor fit a port? INVALID, naming the port and what it expects. */
weir_status serve_port_check(const struct serve_port *port, const struct weir_tensor *tensor,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Releases n references and sets them to NULL; NULLs are accepted. */
void serve_tensors_release(struct weir_tensor **tensors, size_t n);

#endif
