/**
 * Net file: a trained network in one safetensors file, with everything needed to use it.
 *
 * Tensors are the net's parameters and running statistics by name, f32. `__metadata__` holds texts;
 * the last two are optional:
 *
 *     weir.graph     the model file (canonical JSON, model_file.h)
 *     weir.input     {"c","h","w","mean":[…],"std":[…],"grey":bool,"crop":"none"}
 *     weir.labels    JSON array of class names; output i of a classifier is class i
 *     weir.baseline  JSON object: what training data looked like, {"score":hist,"brightness":hist …}
 *     weir.training  JSON object: parameters, seed, dataset, results
 *
 * The class weights of a margin loss are left out, because only training uses them. A net made from
 * the file for training begins with new ones. Other programs can read the file as plain
 * safetensors.
 *
 *     struct weir_net_file *file;
 *     WEIR_TRY(weir_net_file_open("model.safetensors", &file, err));
 *     struct weir_net *net;
 *     WEIR_TRY(weir_net_file_create_net(file, &(struct weir_net_config){.batch = 8}, &net, err));
 *     const struct weir_net_file_info *info = weir_net_file_info(file); // input, labels, baseline
 *
 * A file is treated as hostile: its form, shapes and sizes are checked, and values that are not
 * finite are refused.
 *
 * Threads: one thread at a time uses a weir_net_file. Nets made from it do not depend on it.
 */
#ifndef WEIR_NN_NET_FILE_H
#define WEIR_NN_NET_FILE_H

#include "base/status.h"
#include "nn/nn.h"

#include <stdbool.h>
#include <stddef.h>

/** Most classes that a file may name. */
#define WEIR_NET_FILE_LABELS_MAX ((size_t)1 << 20)

/** How an image becomes a net's input: resized to h×w, then (value / 255 − mean[c]) / std[c]. */
struct weir_net_input {
    struct weir_shape shape; /**< c is 1 (grey) or 3. */
    float mean[3], std[3];   /**< On the 0..1 scale, per channel; std > 0. */
};

/** Brightness of an image as the net sees it, 0 (black) to 1: the mean over its input tensor with
 *  normalisation undone. "brightness" of weir.baseline counts this value, and a replica reports
 *  it. */
double weir_net_input_brightness(const struct weir_net_input *input, const float *tensor);

/** The image itself as the net sees it, grey: h x w means of the channels, 0 to 1. What
 *  stats/look.h looks at. */
void weir_net_input_grey(const struct weir_net_input *input, const float *tensor, float *out);

struct weir_net_file_info {
    struct weir_net_input input;
    const char *graph;         /**< Model file as text. */
    const char *const *labels; /**< n_labels names. */
    size_t n_labels;
    const char *baseline; /**< JSON object as text, or NULL. */
    const char *training; /**< JSON object as text, or NULL. */
};

/**
 * Writes a net atomically and durably. All arguments are borrowed.
 *
 * @return INVALID (a text that is not a JSON object; a value of the net that is not finite, naming
 *         the parameter), LIMIT, NOMEM, and what weir_file_write_atomic returns.
 *
 * Cost: two copies of the weights in memory.
 */
weir_status weir_net_file_save(const char *path, struct weir_net *net,
                               const struct weir_net_file_info *info,
                               struct weir_error *err) WEIR_MUST_CHECK;

struct weir_net_file;

/**
 * Opens a file, checks its header and metadata, and builds its graph. The caller owns *out.
 *
 * @return NOT_FOUND, DENIED, IO; CORRUPT (no safetensors, or its tensors do not fit); INVALID (no
 *         Weir model: metadata is missing or unusable); LIMIT; NOMEM.
 */
weir_status weir_net_file_open(const char *path, struct weir_net_file **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The same for a file in memory, borrowed until close. `what` names it in errors. */
weir_status weir_net_file_open_memory(const void *bytes, size_t len, const char *what,
                                      struct weir_net_file **out,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void weir_net_file_close(struct weir_net_file *file);

/**
 * From now on the file's graph is for inputs of h rows and w columns, and so are nets made of it. For detectors, which are
 * convolutions alone and take any size.
 * @return INVALID: it is no detector; a layer does not take that. LIMIT, NOMEM. The file stays as it was then.
 */
weir_status weir_net_file_resize(struct weir_net_file *file, int32_t h, int32_t w,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Owned by the file. */
const struct weir_net_file_info *weir_net_file_info(const struct weir_net_file *file);
const struct weir_graph *weir_net_file_graph(const struct weir_net_file *file);

/**
 * Makes a net with the file's weights. The caller owns *out.
 *
 * @return As weir_net_create; CORRUPT if a parameter is missing, has another shape or holds a value
 *         that is not finite, naming it; IO.
 */
weir_status weir_net_file_create_net(const struct weir_net_file *file,
                                     const struct weir_net_config *config, struct weir_net **out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** open and create_net in one call. *out_file gives the metadata. On error nothing is left. */
weir_status weir_net_file_load(const char *path, const struct weir_net_config *config,
                               struct weir_net **out_net, struct weir_net_file **out_file,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** What weir_net_file_import did. */
struct weir_net_import {
    size_t n_read, n_new, n_unused; /**< Tensors: read; not in the file, left as they were; in
                                         the file only. */
    const char *last_new; /**< The first parameter, in reading order, that was left; NULL: none.
                               The net owns it. */
};

/**
 * Reads initial weights from any safetensors file that names its tensors as the net does. (The
 * zoo's names are torchvision's.)
 *
 * Layers at the end of the net may be missing or have another shape, as a classifier of other
 * classes has. They stay as they are. From the first layer to the last one read there may be no
 * gap. Tensors that the net does not have are ignored.
 *
 * @return As weir_safetensors_open; INVALID (nothing fits); CORRUPT (a gap, naming the parameter; a
 *         value that is not finite); UNSUPPORTED (element type); IO. After an error while reading,
 *         some weights are the file's.
 */
weir_status weir_net_file_import(const char *path, struct weir_net *net,
                                 struct weir_net_import *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
