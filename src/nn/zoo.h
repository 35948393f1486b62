/**
 * Zoo: the built-in models. Each is a function from an input shape to a model file (model_file.h).
 * The rest of nn does not know them: a zoo model can be printed, edited and trained as a file.
 *
 *     name        what it is                                              parameters
 *     ----        ----------                                              ----------
 *     lenet       conv5-32, pool, conv5-64, pool, fc 512, dropout, fc     1,663,370 (28x28 grey)
 *     lenet-5     LeCun's with rectifiers and max pooling                 61,706 (28x28 grey)
 *     mlp         fc 256, fc 128, fc                                      235,146 (28x28 grey)
 *     resnet18    torchvision's structure and parameter names             11,689,512 (224x224)
 *     face-embed  conv5-16, 32, 64, 96, fc 128: a unit vector; margin     509,696 (46x56 grey)
 *     face-detect conv3-16, 32, 32, 64x3, 96x3, heads at two scales       350,062 (192x320 grey)
 *     trivial     fc 1, fc 4096, fc: tf_cnn_benchmarks'                   4,259,780 (227x227)
 *     alexnet     torchvision's                                           61,100,840 (224x224)
 *     vgg11       13, 16, 19: torchvision's without batch norm            132,863,336 (vgg11)
 *     resnet34    50, 101, 152: v1.5, torchvision's                       25,557,032 (resnet50)
 *     resnet50_v1 101, 152: the stride in a block's first 1x1             as resnet50
 *     resnet50_v2 101, 152: norms before convolutions, stride in the 3x3  25,549,352 (resnet50_v2)
 *     densenet121 torchvision's                                           7,978,856 (224x224)
 *     googlenet   torchvision's without auxiliary heads                   6,624,904 (224x224)
 *     inception_v3  torchvision's without its auxiliary head              23,834,568 (299x299)
 *     inception_v4  timm's names                                          42,679,816 (299x299)
 *     mobilenet_v1  names of its own, rectifiers bounded at 6             4,231,976 (224x224)
 *     mobilenet_v2  torchvision's                                         3,504,872 (224x224)
 *
 * "parameters" counts those of 1000 classes where the input is coloured, else of 10. A model said
 * to be torchvision's has the parameter names and shapes of torchvision's state_dict, which has
 * "num_batches_tracked" besides. So weights can be carried over by name. A model does not include
 * what torchvision does with the image before its first layer (transform_input). alexnet and vgg
 * have no adaptive pool: at their own size it changes nothing; at another, the first linear layer
 * takes what there is.
 *
 * Any thread may call these functions.
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
    struct weir_shape shape; /**< Default input. */
    int32_t min_side;        /**< Least rows and columns of the input. */
    /** Appends the model file for this input. Failures stay in the buffer's status. */
    void (*write)(const char *name, const struct weir_shape *shape, struct weir_buf *out);
};

/** All models, for help texts. Static. */
const struct weir_zoo_model *weir_zoo_models(size_t *out_n);

/** The row of this name; NULL if there is none. */
const struct weir_zoo_model *weir_zoo_find(const char *name);

/**
 * Makes the model file of a zoo model. `shape` NULL: the model's own. The caller owns *out.
 *
 * @return NOT_FOUND, naming the models there are; NOMEM.
 */
weir_status weir_zoo_spec(const char *name, const struct weir_shape *shape,
                          struct weir_model_spec **out, struct weir_error *err) WEIR_MUST_CHECK;

/** weir_zoo_spec and weir_model_spec_build in one call. @return INVALID too: the input is too
 *  small; the layer is named. */
weir_status weir_zoo_build(const char *name, const struct weir_shape *shape, int32_t n_classes,
                           struct weir_graph **out, struct weir_error *err) WEIR_MUST_CHECK;

/** The model that a user names: a name of the zoo, or the path of a model file, which contains "/"
 *  or ".". A file has its own input, and `shape` is not used then. The caller owns *out. */
weir_status weir_zoo_resolve(const char *name_or_path, const struct weir_shape *shape,
                             struct weir_model_spec **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
