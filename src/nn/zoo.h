/**
 * Zoo: the built-in models, each a function from an input shape to a model file (model_file.h).
 * Nothing here is special to the rest of nn: what a zoo model is made of can be printed, edited and
 * trained again as a file.
 *
 *     name        what it is                                              parameters
 *     ----        ----------                                              ----------
 *     lenet       conv5-32, pool, conv5-64, pool, fc 512, dropout, fc     1,663,370 (28x28 grey)
 *     lenet-5     LeCun's with rectifiers and max pooling                 61,706 (28x28 grey)
 *     mlp         fc 256, fc 128, fc                                      235,146 (28x28 grey)
 *     resnet18    torchvision's structure and parameter names             11,689,512 (224x224)
 *     face-embed  conv5-16, 32, 64, 96, fc 128: a unit vector; margin     509,696 (46x56 grey)
 *
 * Any thread.
 */
#ifndef WEIR_NN_ZOO_H
#define WEIR_NN_ZOO_H

#include "base/status.h"
#include "nn/model_file.h"
#include "nn/nn.h"

#include <stddef.h>
#include <stdint.h>

struct weir_buf;

/** One row of the zoo. */
struct weir_zoo_model {
    const char *name;
    const char *doc;         /**< One line. */
    struct weir_shape shape; /**< Input if none is given. */
    /** Appends the model file for this input; failures stay in the buffer's status. */
    void (*write)(const struct weir_shape *shape, struct weir_buf *out);
};

/** All models, for help texts. Static. */
const struct weir_zoo_model *weir_zoo_models(size_t *out_n);

/** By name; NULL if there is none. */
const struct weir_zoo_model *weir_zoo_find(const char *name);

/**
 * The model file of a zoo model. `shape` NULL = the model's own.
 * @return NOT_FOUND naming the models there are; NOMEM.
 */
weir_status weir_zoo_spec(const char *name, const struct weir_shape *shape,
                          struct weir_model_spec **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Spec and graph in one call. Also INVALID: an input too small, naming the layer. */
weir_status weir_zoo_build(const char *name, const struct weir_shape *shape, int32_t n_classes,
                           struct weir_graph **out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What a user calls a model: a name of the zoo, else the path of a model file (it contains "/" or
 * "."), whose own input then stands and `shape` is not used.
 */
weir_status weir_zoo_resolve(const char *name_or_path, const struct weir_shape *shape,
                             struct weir_model_spec **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
