/**
 * Model file: a network written as JSON or YAML.
 *
 *     input: [1, 28, 28]                     # C, H, W
 *     layers:
 *       - {name: conv1, type: conv, k: 32, kernel: 5, pad: 2}
 *       - {name: relu1, type: relu}
 *       - {name: fc, type: linear, k: classes}
 *     loss: {type: softmax}
 *
 * `from` names the layer (or "input") whose value a layer reads; without it, the layer before. `k:
 * classes` is the number of classes of the data, known when the graph is built. Every layer but the
 * last must be read by another. `name` and `description` beside `input` are for people.
 * examples/models/lenet.yaml is a whole file. zoo.h makes the built-in models in the same form.
 *
 *     type          settings (default)
 *     conv          k, kernel, stride (1), pad (0), bias (true), initial (1), initial_bias (0)
 *     linear        k, bias (true)
 *     max_pool      kernel, stride (= kernel), pad (0)
 *     avg_pool      kernel, stride (= kernel), pad (0)
 *     dropout       rate
 *     scale         factor
 *     batch_norm layer_norm relu prelu global_pool flatten l2_normalise    none
 *     add           from: [a, b]
 *     concat        from: [a, b, …]
 *     loss softmax                                                   none
 *     loss margin   scale (16), margin (0.3)
 *     loss detect   values, scale (1)
 *
 * A layer without a name is called after its type and its number ("relu_3"), the loss after its
 * type. docs/reference/model-file.md has all settings.
 *
 * A `weir_model_spec` is such a file, parsed and kept as text. A saved model carries the text
 * (canonical JSON) as "weir.graph". A spec is immutable, and any thread may read it.
 */
#ifndef WEIR_NN_MODEL_FILE_H
#define WEIR_NN_MODEL_FILE_H

#include "base/status.h"
#include "nn/nn.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_MODEL_FILE_MAX_BYTES  ((size_t)1 << 20)
#define WEIR_MODEL_FILE_LAYERS_MAX 4096

struct weir_model_spec;

/**
 * Parses a model: JSON if the first character is "{", else YAML. It checks form, names and
 * references; weir_model_spec_build checks shapes. `what` names the source in errors. The caller
 * owns *out.
 *
 * @return INVALID with the position: "lenet.yaml: $.layers[3].kernel: expected integer > 0, got
 *         -1"; LIMIT (size or number of layers); NOMEM.
 */
weir_status weir_model_spec_parse(const char *text, size_t len, const char *what,
                                  struct weir_model_spec **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The same from a file. @return NOT_FOUND, DENIED, IO too. */
weir_status weir_model_spec_load(const char *path, struct weir_model_spec **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;
void weir_model_spec_destroy(struct weir_model_spec *spec);

/** Canonical JSON, one layer per line, with a newline at the end. Parsing it gives an equal spec.
 *  The spec owns it. */
const char *weir_model_spec_text(const struct weir_model_spec *spec);

/** The type of its loss: "softmax", "margin", "detect". Static. */
const char *weir_model_spec_loss(const struct weir_model_spec *spec);

/** Shape of the model's input. */
struct weir_shape weir_model_spec_input(const struct weir_model_spec *spec);

/**
 * Builds the graph for data of n_classes classes. 0: the number is not known, and "classes" and the
 * margin loss are refused; a detector does not ask. A softmax over another number of logits than n_classes is refused. The
 * caller owns *out.
 *
 * @return INVALID with the position as above, NOMEM.
 */
weir_status weir_model_spec_build(const struct weir_model_spec *spec, int32_t n_classes,
                                  struct weir_graph **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Parses and builds in one call. The caller owns *out. */
weir_status weir_model_build(const char *text, int32_t n_classes, struct weir_graph **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The same for an input of h rows and w columns; 0: the file's own. @return INVALID also where a layer does not take that. */
weir_status weir_model_build_sized(const char *text, int32_t n_classes, int32_t h, int32_t w,
                                   struct weir_graph **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
