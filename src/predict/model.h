/**
 * Model: a model version in service, for pictures: it gives embeddings or probabilities of labels.
 *
 * What runs it is an executor (serve/executor.h): Weir's own for nets that Weir trained, for ONNX
 * files Weir's or onnxruntime. Its signature (serve/signature.h) says how a picture becomes its
 * input, and what its numbers are. Everything else of a replica knows models by this header alone.
 *
 * Reference-counted; freed by whoever gives the last reference back. The description is immutable;
 * model_put and model_run are for one thread, the engine (and, before it is published, for whoever
 * loads it).
 */
#ifndef WEIR_PREDICT_MODEL_H
#define WEIR_PREDICT_MODEL_H

#include "base/json.h"
#include "base/status.h"
#include "data/image.h"
#include "endpoint/stage.h"
#include "serve/model_file.h"
#include "stats/embedding.h"
#include "stats/histogram.h"
#include "stats/look.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Signals of which training leaves a baseline in the model's file; older files have fewer. */
enum model_signal {
    MODEL_SCORE,
    MODEL_BRIGHTNESS,
    MODEL_CONTRAST,
    MODEL_SHARPNESS,
    MODEL_ENTROPY,
    MODEL_EMBEDDING, /**< Distance from training's vectors (stats/embedding.h). */
    MODEL_N_SIGNALS,
};

/** "score", "brightness" … */
extern const char *const model_signal_names[MODEL_N_SIGNALS];

struct model {
    atomic_int n_refs;
    char *name, *id, *blob;
    int64_t version;
    enum weir_stage_model gives; /**< EMBEDS or CLASSIFIES. */
    size_t dim;                  /**< Of an embedding; or how many labels. */
    const char *const *labels;   /**< Of a classifier: dim names. NULL of others. */
    bool has_baseline[MODEL_N_SIGNALS];
    struct weir_histogram baselines[MODEL_N_SIGNALS];
    struct weir_embedding embedding; /**< If has_baseline[MODEL_EMBEDDING]. */
    /* How it is run: model.c's. */
    struct serve_model *serve;
    struct weir_signature signature;
    struct weir_arena arena;   /**< Of the signature. */
    struct weir_tensor *input; /**< Of `n_rows` pictures. */
    size_t batch, n_rows, picture_bytes;
    bool
        has_mirrors; /**< Behind the batch lie its mirror images: a GPU computes both in one run. */
    float *output;   /**< n_rows × dim. */
    float *grey;     /**< One picture, for model_look. */
};

/**
 * Load a model and run it twice, so that the first frame meets warm code and memory.
 * @param batch  Pictures of one run, at most.
 * What a GPU that has failed computed is lost, and so is the model: model_is_broken.
 * @return As executor_load and weir_signature_make; UNSUPPORTED, naming the version: it takes no
 *         picture, its numbers are neither embedding nor classes, or it has no usable labels.
 */
weir_status model_load(const char *path, const struct model_name *name, size_t batch,
                       struct model **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Has its GPU failed, so that every run fails until the process is started anew? */
bool model_is_broken(const struct model *model);

struct model *model_ref(struct model *model);
void model_unref(struct model *model);

/**
 * Make picture i, below the batch, of the next run.
 * @param out_brightness  As the model sees it, 0 (black) to 1: the mean over its input with
 *                        normalisation undone. May be NULL.
 */
weir_status model_put(struct model *model, size_t i, const struct weir_image *image,
                      double *out_brightness, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What picture i, which model_put made, looks like to the model, also after a run (which may have
 * mirrored it). Cost: about 5 ns a pixel.
 */
struct weir_look model_look(struct model *model, size_t i);

/** Of the bytes of that picture: equal pictures have equal ones. Cost: about 8 bytes a ns. */
uint64_t model_digest(const struct model *model, size_t i);

/**
 * Run it on the first n pictures, at most the batch. On a processor it costs no more than these do.
 * @param out  n × dim floats, owned by the model until the next run: unit vectors, each averaged
 *             over the picture and its mirror image (as nn/net_embed.h does); or the probability of
 *             each label.
 */
weir_status model_run(struct model *model, size_t n, const float **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
