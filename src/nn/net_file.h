/**
 * Net files: a trained network in one safetensors file, with everything needed to use it.
 *
 * Tensors are the net's parameters and running statistics by name, f32. `__metadata__` holds texts:
 *
 *     weir.graph     the model file (canonical JSON, model_file.h)
 *     weir.input     {"c","h","w","mean":[…],"std":[…],"grey":bool,"crop":"none"}
 *     weir.labels    JSON array: class names; output i of a classifier is class i
 *     weir.baseline  JSON object: what training data looked like, {"score":hist,"brightness":hist}
 *     weir.training  JSON object: parameters, seed, dataset, results
 *
 * (the last two are optional). The class weights of a margin loss, which take part in training
 * only, are left out; a net made from the file for training begins with new ones. A file that other
 * programs read as plain safetensors stays one.
 *
 *     struct weir_net_file *file;
 *     WEIR_TRY(weir_net_file_open("model.safetensors", &file, err));
 *     struct weir_net *net;
 *     WEIR_TRY(weir_net_file_create_net(file, &(struct weir_net_config){.batch = 8}, &net, err));
 *     const struct weir_net_file_info *info = weir_net_file_info(file);   // input, labels,
 * baseline
 *
 * A file is treated as hostile: form, shapes and sizes are checked, and values that are not finite
 * are refused. A weir_net_file belongs to one thread at a time; nets made from it live on their
 * own.
 */
#ifndef WEIR_NN_NET_FILE_H
#define WEIR_NN_NET_FILE_H

#include "base/status.h"
#include "nn/nn.h"

#include <stdbool.h>
#include <stddef.h>

/** Most classes a file may name. */
#define WEIR_NET_FILE_LABELS_MAX ((size_t)1 << 20)

/** How a picture becomes a net's input: resized to h×w, (value / 255 − mean[c]) / std[c]. */
struct weir_net_input {
    struct weir_shape shape; /**< c is 1 (grey) or 3. */
    float mean[3], std[3];   /**< On the 0..1 scale, per channel; std > 0. */
};

/**
 * Brightness of a picture as the net sees it, 0 (black) to 1: the mean over its input tensor with
 * normalisation undone. The value that "brightness" of weir.baseline counts, and that a replica
 * reports.
 */
double weir_net_input_brightness(const struct weir_net_input *input, const float *tensor);

struct weir_net_file_info {
    struct weir_net_input input;
    const char *graph;         /**< Model file as text. */
    const char *const *labels; /**< n_labels names. */
    size_t n_labels;
    const char *baseline; /**< JSON object as text, or NULL. */
    const char *training; /**< Ditto. */
};

/**
 * Write a net atomically and durably. Everything is borrowed.
 * @return INVALID (a text that is not a JSON object, a value of the net that is not finite, naming
 *         the parameter), LIMIT, NOMEM, and what weir_file_write_atomic gives. Cost: two copies of
 *         the weights in memory.
 */
weir_status weir_net_file_save(const char *path, struct weir_net *net,
                               const struct weir_net_file_info *info,
                               struct weir_error *err) WEIR_MUST_CHECK;

struct weir_net_file;

/**
 * Open a file, check its header and metadata, and build its graph.
 * @return NOT_FOUND, DENIED, IO; CORRUPT (no safetensors, or its tensors do not fit);
 *         INVALID (no Weir model: metadata missing or unusable), LIMIT, NOMEM.
 */
weir_status weir_net_file_open(const char *path, struct weir_net_file **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The same for a file in memory, borrowed until close. `what` names it in errors. */
weir_status weir_net_file_open_memory(const void *bytes, size_t len, const char *what,
                                      struct weir_net_file **out,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void weir_net_file_close(struct weir_net_file *file);

/** Owned by the file. */
const struct weir_net_file_info *weir_net_file_info(const struct weir_net_file *file);
const struct weir_graph *weir_net_file_graph(const struct weir_net_file *file);

/**
 * A net with the file's weights. The caller owns *out.
 * @return as weir_net_create; CORRUPT if a parameter is missing, has another shape or holds a value
 *         that is not finite, naming it; IO.
 */
weir_status weir_net_file_create_net(const struct weir_net_file *file,
                                     const struct weir_net_config *config, struct weir_net **out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Open and create_net in one call; *out_file gives the metadata. Nothing is left on error. */
weir_status weir_net_file_load(const char *path, const struct weir_net_config *config,
                               struct weir_net **out_net, struct weir_net_file **out_file,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** What weir_net_file_import did. */
struct weir_net_import {
    size_t n_read, n_new, n_unused; /**< Tensors: taken, left as they were, of the file but not of
                                         the net. */
    const char *last_new; /**< The first parameter in reading order that was left; NULL if none is.
                             Owned by the net. */
};

/**
 * Weights from any safetensors file that names its tensors as the net does (the zoo's names are
 * torchvision's): to start a training from. The layers at the end of the net may be missing or have
 * another shape, as a classifier of other classes has, and stay as they are; from the first layer
 * to the last one read there may be no gap. Tensors that the net does not have are left alone.
 * @return as weir_safetensors_open; INVALID (nothing fits); CORRUPT (a gap, naming the parameter; a
 *         value that is not finite); UNSUPPORTED (element type); IO. After an error while reading
 *         some weights are the file's.
 */
weir_status weir_net_file_import(const char *path, struct weir_net *net,
                                 struct weir_net_import *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
