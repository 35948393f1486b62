/**
 * Model: a trained net in service, for one picture at a time.
 *
 * Reference-counted; freed by whoever gives the last reference back. The description is immutable;
 * model_embed is for one thread, the engine (and, before it is published, for whoever loads it).
 */
#ifndef WEIR_PREDICT_MODEL_H
#define WEIR_PREDICT_MODEL_H

#include "base/status.h"
#include "data/image.h"
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
    size_t dim;
    float *embedding; /**< Of the last picture: dim floats. */
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
 * @return as weir_net_file_load; UNSUPPORTED if the net gives no embedding.
 */
weir_status model_load(const char *path, const struct model_name *name, struct model **out,
                       struct weir_error *err) WEIR_MUST_CHECK;

struct model *model_ref(struct model *model);
void model_unref(struct model *model);

/** Embedding (dim floats, owned by the model until the next call) and brightness of a picture. */
weir_status model_embed(struct model *model, const struct weir_image *image,
                        const float **out_embedding, double *out_brightness,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
