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
#include "serve/signature.h"
#include "stats/histogram.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model {
    atomic_int n_refs;
    char *name, *id, *blob;
    int64_t version;
    enum weir_stage_model gives; /**< EMBEDS or CLASSIFIES. */
    size_t dim;                  /**< Of an embedding; or how many labels. */
    const char *const *labels;   /**< Of a classifier: dim names. NULL of others. */
    bool has_score_baseline, has_brightness_baseline;
    struct weir_histogram score_baseline, brightness_baseline;
    /* How it is run: model.c's. */
    struct serve_model *serve;
    struct weir_signature signature;
    struct weir_arena arena;   /**< Of the signature. */
    struct weir_tensor *input; /**< Of `batch` pictures. */
    size_t batch, picture_bytes;
    float *output; /**< batch × dim. */
};

/** What is known of a version before its file is read. */
struct model_name {
    const char *name, *id, *blob;
    int64_t version;
    const char *onnxruntime; /**< Library; NULL: found. */
    const json_t *signature; /**< As it stands with the version; NULL: what the file says. */
};

/**
 * Load a model and run it twice, so that the first frame meets warm code and memory.
 * @param batch  Pictures of one run, at most.
 * @return As executor_load and weir_signature_make; UNSUPPORTED, naming the version: it takes no
 *         picture, its numbers are neither embedding nor classes, or it has no usable labels.
 */
weir_status model_load(const char *path, const struct model_name *name, size_t batch,
                       struct model **out, struct weir_error *err) WEIR_MUST_CHECK;

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
 * Run it on the first n pictures.
 * @param out  n × dim floats, owned by the model until the next run: unit vectors, each averaged
 *             over the picture and its mirror image (as nn/net_embed.h does); or the probability of
 *             each label.
 */
weir_status model_run(struct model *model, size_t n, const float **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
