/**
 * onnx: runs models that lie in ONNX files.
 *
 *     struct weir_onnx *onnx;
 *     WEIR_TRY(weir_onnx_load(bytes, n, NULL, &onnx, err));
 *     struct weir_tensor *in[] = {picture}, *out[1];
 *     WEIR_TRY(weir_onnx_run(onnx, in, out, err));
 *     weir_tensor_release(out[0]);
 *     weir_onnx_free(onnx);
 *
 * Operators of ONNX's own domain, opsets 7 and later. What a model needs and this library does not
 * have is UNSUPPORTED when it is loaded: operator, opset and node are named. What depends on
 * constants alone is computed once, at load. The first run with inputs of a shape plans the further
 * ones, and takes longer: some models' first runs of many images take three times as long. Plans of
 * eight shapes are kept.
 *
 * Training mode: BatchNormalization takes the moments of the run's batch. Dropout draws by Philox: a
 * seed gives the same mask in each run; without one each run has its own.
 *
 * Shapes are those of each run's inputs, so that a free dimension, as the batch, may be another in
 * each run. Elements have the types that the standard says; sums of floats are made in f32 or wider,
 * integers of each type are computed exactly, modulo their range. NaN and the infinities go through
 * as the standard's operators let them.
 *
 * Memory of a run is bounded (struct weir_onnx_limits). A hostile file ends in an error, never in
 * the process's end.
 *
 * Threads: one runs a model at a time. Models are independent of each other.
 */
#ifndef WEIR_ONNX_ONNX_H
#define WEIR_ONNX_ONNX_H

#include "base/buf.h"
#include "tensor/tensor.h"

struct weir_onnx;

/** All zero: the defaults. */
struct weir_onnx_limits {
    size_t run_bytes;     /**< Of all tensors that live at once in a run; 0: 8 GiB. */
    int32_t n_threads;    /**< That a run computes with; 0: as many as this process may use CPUs. */
    bool only_interprets; /**< Plain C operators only, in f64: slow, for comparisons. */
};

/** A tensor that goes in or comes out. */
struct weir_onnx_port {
    const char *name;
    enum weir_dtype dtype;              /**< NONE: the file does not say. */
    int32_t rank;                       /**< -1: the file does not say. */
    int64_t dims[WEIR_TENSOR_RANK_MAX]; /**< -1: free. */
};

/**
 * Writes a file again with other shapes of its inputs. What it says of the shapes of outputs and of values between is left
 * out, since it came from those.
 * @param ports  Name, rank and dims; the type stays the file's. Names that no input has are ignored.
 * @param out    The file, for weir_buf_fini; empty: the inputs have these shapes already.
 * @return CORRUPT; INVALID: an input has another number of dimensions; LIMIT; NOMEM.
 */
weir_status weir_onnx_reshape(const void *bytes, size_t n, const struct weir_onnx_port *ports,
                              size_t n_ports, struct weir_buf *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Loads a model. The bytes are not needed any more then.
 * @param limits  NULL: the defaults.
 * @return CORRUPT, INVALID, UNSUPPORTED, LIMIT, NOMEM.
 */
weir_status weir_onnx_load(const void *bytes, size_t n, const struct weir_onnx_limits *limits,
                           struct weir_onnx **out, struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void weir_onnx_free(struct weir_onnx *onnx);

/** What is to be given to a run, in this order. Borrowed from the model. */
const struct weir_onnx_port *weir_onnx_inputs(const struct weir_onnx *onnx, size_t *out_n);
const struct weir_onnx_port *weir_onnx_outputs(const struct weir_onnx *onnx, size_t *out_n);

/** Does the file fix the size of pictures, though no node of the graph needs it? (No Reshape, Flatten, Gemm
 *  or MatMul.) Then it runs with the shape N,C,H,W (weir_onnx_reshape). */
bool weir_onnx_is_resizable(const struct weir_onnx *onnx);

/** Are the rows of a model's batch independent of each other? */
enum weir_onnx_rows {
    WEIR_ONNX_ROWS_APART,  /**< Proven: an output's row is a function of the same row of the inputs,
                                of no other row, of no place and of no count of rows. */
    WEIR_ONNX_ROWS_MIXED,  /**< They are not, or an input or output has no rows. */
    WEIR_ONNX_ROWS_UNSURE, /**< It has an operator of which that is not known. */
};

#define WEIR_ONNX_ROWS_BYTES 256 /**< Of the sentence that says why not. */

/**
 * A proof for a loaded model, from its graph alone (rows/rows.h), for any number of rows and any size
 * of what else is free. Rounding is left out: a batch may be summed in another order.
 * @param why  A clause that names the node; "" if they are apart.
 * Cost: one walk over the graph.
 */
enum weir_onnx_rows weir_onnx_rows(const struct weir_onnx *onnx, char why[WEIR_ONNX_ROWS_BYTES]);
/** The same for a file, which may have operators that this library does not run. */
enum weir_onnx_rows weir_onnx_rows_of_file(const void *bytes, size_t n,
                                           char why[WEIR_ONNX_ROWS_BYTES]);

/**
 * Runs the model.
 * @param in   A tensor for each input; not changed, but the outputs may refer to them.
 * @param out  A reference for each output, which the caller releases.
 * @return INVALID for inputs that do not fit, or a shape that the model cannot have; LIMIT; NOMEM.
 */
weir_status weir_onnx_run(struct weir_onnx *onnx, struct weir_tensor *const *in,
                          struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
