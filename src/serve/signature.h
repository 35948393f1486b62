/**
 * Signature: what a model version takes and gives, and how a picture becomes its input. As JSON:
 *
 *     {"format": "onnx", "executor": "onnx", "why": "Weir runs it, because …",
 *      "inputs":  [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 224, 224]}],
 *      "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 1000]}],
 *      "is_batched": true,
 *      "picture": {"input": "x", "width": 224, "height": 224, "channels": 3, "layout": "NCHW",
 *                  "datatype": "FP32", "fit": "crop", "shorter": 256, "order": "RGB", "scale": 1,
 *                  "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
 *      "output_kind": "logits", "labels": ["cat", …]}
 *
 * Datatypes are those of the Open Inference Protocol. A free dimension is -1. "picture" and "labels"
 * are null where there is none.
 *
 * A picture becomes a tensor in this order: as many channels as the rule says; `fit`; each value to
 * (value * scale / 255 - mean[c]) / std[c]. `fit` "stretch" resizes to width × height; "crop"
 * resizes so that the shorter side has `shorter` pixels, and takes the middle.
 *
 * Everything here is pure. A signature's memory is the arena's that it was read or made in.
 */
#ifndef WEIR_SERVE_SIGNATURE_H
#define WEIR_SERVE_SIGNATURE_H

#include "executor.h"

#include "base/arena.h"
#include "base/json.h"

#define SIGNATURE_MAX_BYTES      ((size_t)64 << 20)
#define SIGNATURE_LABELS_MAX     ((size_t)1 << 20)
#define SIGNATURE_PICTURE_SIDE   8192
#define SIGNATURE_PREPROCESS_MAX ((size_t)64 << 10)

enum signature_output_kind {
    SIGNATURE_TENSOR,        /**< Numbers that only the caller understands. */
    SIGNATURE_LOGITS,        /**< One per class; softmax makes probabilities of them. */
    SIGNATURE_PROBABILITIES, /**< One per class. */
    SIGNATURE_EMBEDDING,     /**< A vector that is compared with others. */
};

/** How a picture becomes one image of an input. */
struct signature_picture {
    size_t i_input;         /**< Which input. */
    int32_t width, height;  /**< Of the input, in pixels. */
    int32_t channels;       /**< 1 or 3. */
    bool is_nhwc;           /**< false: NCHW. */
    bool is_crop;           /**< false: stretch. */
    int32_t shorter;        /**< With crop: at least both sides' lesser. */
    bool is_bgr;            /**< false: RGB. */
    enum weir_dtype dtype;  /**< Of the input: FLOAT, FLOAT16 or UINT8. */
    double scale;           /**< 1 or 255: what white is before mean and std. */
    double mean[3], std[3]; /**< Per channel of the tensor; std > 0. */
};

struct weir_signature {
    enum weir_model_format format;
    const char *executor;
    const char *why; /**< Why this executor: a sentence. */
    struct serve_port *inputs, *outputs;
    size_t n_inputs, n_outputs;
    bool is_batched; /**< The first dimension of every port is free and means the batch. */
    bool has_picture;
    struct signature_picture picture;
    enum signature_output_kind output_kind; /**< Of the first output. */
    bool is_kind_given;        /**< Somebody said the kind; else it is a guess. Not in JSON. */
    const char *const *labels; /**< NULL: none. Label i names class i. */
    size_t n_labels;
};

/** "FP32" of FLOAT …; NULL for a type that the protocol does not have. */
const char *signature_datatype(enum weir_dtype dtype);
/** NONE: there is no such datatype. */
enum weir_dtype signature_dtype_of(const char *datatype);

/**
 * Reads a signature.
 * @param where  Where the object lies, for messages: "$".
 * @return INVALID with the place and what was expected: "$.inputs[0].shape[1]: expected …"; LIMIT.
 */
weir_status weir_signature_read(const json_t *object, const char *where, struct weir_arena *arena,
                                struct weir_signature *out, struct weir_error *err) WEIR_MUST_CHECK;

/** The same from text. `what` names it in errors. */
weir_status weir_signature_parse(const char *text, size_t len, const char *what,
                                 struct weir_arena *arena, struct weir_signature *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The signature as JSON; a new reference. */
json_t *weir_signature_json(const struct weir_signature *signature);

/** What people add to what a model's file says. Texts are borrowed. */
struct signature_extras {
    const char *labels; /**< One label a line, or a JSON array; NULL: what the file says. */
    size_t labels_len;
    const char *preprocess; /**< YAML or JSON with the members of "picture" and "output_kind", each
                                 of which may be left out; NULL: what the file says. */
    size_t preprocess_len;
    const char *inputs; /**< YAML or JSON, {"x": "N,3,H,W"}: shapes of inputs (signature_shapes);
                             NULL: what the file says. */
    size_t inputs_len;
};

/**
 * What people say of the shapes of inputs, for the options that a model is loaded with. Each is a text of
 * numbers and of names of what is free: "N,3,H,W".
 * @param options  In/out: shapes and n_shapes, in the arena; unchanged if nothing is said.
 * @return INVALID: "inputs: $.x: expected …"
 */
weir_status signature_shapes(const struct signature_extras *extras, struct weir_arena *arena,
                             struct executor_options *options,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** A file of such a text, in the arena; path NULL: none, and *out stays. As weir_file_read. */
weir_status signature_extra_read(const char *path, size_t max_bytes, struct weir_arena *arena,
                                 const char **out, size_t *out_len,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Makes a signature of a loaded model, of the texts that its file carries, and of what people add.
 * @param format  Of the file.
 * @param why     Copied.
 * 
 * Types and shapes of outputs that the file does not say are left NONE and -1 for
 * weir_signature_probe.
 *
 * @return INVALID with the place: labels that do not fit the output, a picture that does not fit the
 *         input, "preprocess: $.std[0]: expected …"; UNSUPPORTED: a port whose type the protocol does
 *         not have.
 */
weir_status weir_signature_make(struct serve_model *model, enum weir_model_format format,
                                const char *why, const struct signature_extras *extras,
                                struct weir_arena *arena, struct weir_signature *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Checks that a signature holds together: labels as many as the first output has values, a picture
 * that fits its input, ports that are batched where it says so. Reading and making do so.
 */
weir_status weir_signature_check(const struct weir_signature *signature, const char *where,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
