/**
 * Model: a trained net in service, for one picture at a time: an embedding net or a classifier.
 *
 * Reference-counted; freed by whoever gives the last reference back. The description is immutable;
 * model_run is for one thread, the engine (and, before it is published, for whoever loads it).
 * Everything else of a replica knows models by this header alone: what executes them is here.
 */
#ifndef WEIR_PREDICT_MODEL_H
#define WEIR_PREDICT_MODEL_H

#include "base/status.h"
#include "data/image.h"
#include "endpoint/stage.h"
#include "nn/net_file.h"
#include "stats/histogram.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model {
    atomic_int n_refs;
    char *name, *id, *blob;
    int64_t version;
    struct weir_net *net; /**< Batch 1, one thread: the caller's. */
    struct weir_input input;
    struct weir_net_input net_input;
    enum weir_stage_model gives; /**< EMBEDS or CLASSIFIES. */
    size_t dim;                  /**< Of an embedding; or how many labels. */
    char **labels;               /**< Of a classifier: dim names. NULL of others. */
    float *output;               /**< Of the last picture: dim floats. */
    bool has_score_baseline, has_brightness_baseline;
    struct weir_histogram score_baseline, brightness_baseline;
};

struct model_name {
    const char *name, *id, *blob;
    int64_t version;
};

/** How data's functions make what a net takes. */
struct weir_input model_data_input(const struct weir_net_input *input);

/**
 * Load a net file and run it once, so that the first frame meets warm code and memory.
 * @return as weir_net_file_load; UNSUPPORTED of a classifier whose labels are not as many as its
 *         outputs.
 */
weir_status model_load(const char *path, const struct model_name *name, struct model **out,
                       struct weir_error *err) WEIR_MUST_CHECK;

struct model *model_ref(struct model *model);
void model_unref(struct model *model);

/**
 * Run it on a picture.
 * @param out  dim floats, owned by the model until the next call: a unit vector (weir_net_embed), or
 *             the probability of each label: the softmax of the net's logits.
 * @param out_brightness  weir_net_input_brightness of the picture.
 */
weir_status model_run(struct model *model, const struct weir_image *image, const float **out,
                      double *out_brightness, struct weir_error *err) WEIR_MUST_CHECK;

#endif
