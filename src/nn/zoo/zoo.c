#include "nn/zoo.h"

#include "zoo_write.h"

#include "base/buf.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

/* The largest, inception_v4, writes 70 KiB; a model file may have 1 MiB. */
#define TEXT_MAX_BYTES ((size_t)1 << 20)

/* ---- lenet, lenet-5, mlp ------------------------------------------------------------------ */

static void lenet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    zoo_layer(out, "conv1", "conv", ",\"k\":32,\"kernel\":5,\"pad\":2");
    zoo_plain(out, "relu1", "relu");
    zoo_layer(out, "pool1", "max_pool", ",\"kernel\":2");
    zoo_layer(out, "conv2", "conv", ",\"k\":64,\"kernel\":5,\"pad\":2");
    zoo_plain(out, "relu2", "relu");
    zoo_layer(out, "pool2", "max_pool", ",\"kernel\":2");
    zoo_layer(out, "fc1", "linear", ",\"k\":512");
    zoo_plain(out, "relu3", "relu");
    zoo_layer(out, "dropout", "dropout", ",\"rate\":0.5");
    zoo_layer(out, "fc2", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

static void lenet5_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    zoo_layer(out, "conv1", "conv", ",\"k\":6,\"kernel\":5,\"pad\":2");
    zoo_plain(out, "relu1", "relu");
    zoo_layer(out, "pool1", "max_pool", ",\"kernel\":2");
    zoo_layer(out, "conv2", "conv", ",\"k\":16,\"kernel\":5");
    zoo_plain(out, "relu2", "relu");
    zoo_layer(out, "pool2", "max_pool", ",\"kernel\":2");
    zoo_layer(out, "fc1", "linear", ",\"k\":120");
    zoo_plain(out, "relu3", "relu");
    zoo_layer(out, "fc2", "linear", ",\"k\":84");
    zoo_plain(out, "relu4", "relu");
    zoo_layer(out, "fc3", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

static void mlp_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    zoo_layer(out, "fc1", "linear", ",\"k\":256");
    zoo_plain(out, "relu1", "relu");
    zoo_layer(out, "fc2", "linear", ",\"k\":128");
    zoo_plain(out, "relu2", "relu");
    zoo_layer(out, "fc3", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

/* Its input is flattened; a layer of one unit makes the rest of the work nothing. */
static void trivial_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    zoo_layer(out, "fc1", "linear", ",\"k\":1");
    zoo_plain(out, "relu1", "relu");
    zoo_layer(out, "fc2", "linear", ",\"k\":4096");
    zoo_plain(out, "relu2", "relu");
    zoo_layer(out, "fc3", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

/* ---- face-embed --------------------------------------------------------------------------- */

/* The small image has about so many pixels along its shorter side. */
#define SMALL_PIXELS 12
/* Its weight in the whole; the learned part has length 1. */
#define SMALL_LENGTH 0.75

/** Convolution n ("conv1"), batch norm and a rectifier with learned slopes ("prelu1"). */
static void face_conv(struct weir_buf *out, int n, int k, int kernel, int stride)
{
    char name[16];
    (void)snprintf(name, sizeof name, "conv%d", n);
    zoo_layer(out, name, "conv", ",\"k\":%d,\"kernel\":%d,\"stride\":%d,\"pad\":%d,\"bias\":false",
              k, kernel, stride, kernel / 2);
    (void)snprintf(name, sizeof name, "bn%d", n);
    zoo_plain(out, name, "batch_norm");
    (void)snprintf(name, sizeof name, "prelu%d", n);
    zoo_plain(out, name, "prelu");
}

/** The image itself with about SMALL_PIXELS pixels along its shorter side, as a vector of length
 *  SMALL_LENGTH. */
static void small_picture(struct weir_buf *out, const struct weir_shape *shape)
{
    int side = WEIR_MIN(shape->h, shape->w);
    zoo_layer(out, "small.pool", "avg_pool", ",\"from\":\"input\",\"kernel\":%d",
              WEIR_MAX((side + SMALL_PIXELS / 2) / SMALL_PIXELS, 1));
    zoo_plain(out, "small.norm", "layer_norm");
    zoo_plain(out, "small.flat", "flatten");
    zoo_plain(out, "small.unit", "l2_normalise");
    zoo_layer(out, "small.scale", "scale", ",\"factor\":%g", SMALL_LENGTH);
}

/*
 * Small on purpose: it learns from five photographs a person and is served on a CPU. Learned
 * features are best for the people they were learned from. The small image is learned from no
 * person, so it is as good for impostors. Both together, concatenated, tell impostors apart better
 * than either (docs/reference/training.md has figures).
 *
 * The margin loss sees the whole vector. On the learned part alone it gave the same figures within
 * their noise, and it would need nets whose output is not what the loss sees. A weight of 1 is a
 * little better where pixels alone are good, and much worse where they are not (drawn faces).
 */
static void face_embed_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    face_conv(out, 1, 16, 5, 2);
    face_conv(out, 2, 32, 3, 1);
    zoo_layer(out, "pool1", "max_pool", ",\"kernel\":2");
    face_conv(out, 3, 64, 3, 1);
    zoo_layer(out, "pool2", "max_pool", ",\"kernel\":2");
    face_conv(out, 4, 96, 3, 1);
    zoo_layer(out, "dropout", "dropout", ",\"rate\":0.3");
    /* A face is aligned: the position of a feature tells who it is, so positions are kept (no
     * global pooling). */
    zoo_layer(out, "embed.fc", "linear", ",\"k\":128,\"bias\":false");
    zoo_plain(out, "embed.bn", "batch_norm");
    zoo_plain(out, "embed.learned", "l2_normalise");
    small_picture(out, shape);
    zoo_layer(out, "embed.both", "concat", ",\"from\":[\"embed.learned\",\"small.scale\"]");
    zoo_plain(out, "embed.unit", "l2_normalise");
    (void)weir_buf_puts(out, "],\"loss\":{\"type\":\"margin\",\"scale\":16,\"margin\":0.35}}");
}

/* ---- table -------------------------------------------------------------------------------- */

// clang-format off
static const struct weir_zoo_model models[] = {
    {"lenet", "Two 5x5 convolutions of 32 and 64 channels, 512 hidden units: 1.7 M parameters.", {1, 28, 28}, 0, lenet_write},
    {"lenet-5", "LeCun's LeNet-5 with rectifiers and max pooling: 62 K parameters.", {1, 28, 28}, 0, lenet5_write},
    {"mlp", "Hidden layers of 256 and 128 units.", {1, 28, 28}, 0, mlp_write},
    {"resnet18", "Residual network of 18 layers, torchvision's names; below 64 pixels a 3x3 stem.", {3, 224, 224}, 1, zoo_resnet_write},
    {"face-embed", "A grey face to a unit vector: 128 numbers of four convolutions, and the picture made small; angular margin loss.", {1, 56, 46}, 0, face_embed_write},
    {"face-detect", "Faces in a grey picture of any size: nine convolutions, squares of 8 and 16 pixels; detect loss.", {1, 192, 320}, 16, zoo_face_detect_write},
    {"trivial", "tf_cnn_benchmarks' trivial: hidden layers of 1 and 4096 units.", {3, 227, 227}, 1, trivial_write},
    {"alexnet", "torchvision's AlexNet (one tower), its names.", {3, 224, 224}, 63, zoo_alexnet_write},
    {"vgg11", "VGG of 11 layers without batch norm, torchvision's names.", {3, 224, 224}, 32, zoo_vgg_write},
    {"vgg13", "VGG of 13 layers without batch norm, torchvision's names.", {3, 224, 224}, 32, zoo_vgg_write},
    {"vgg16", "VGG of 16 layers without batch norm, torchvision's names.", {3, 224, 224}, 32, zoo_vgg_write},
    {"vgg19", "VGG of 19 layers without batch norm, torchvision's names.", {3, 224, 224}, 32, zoo_vgg_write},
    {"resnet34", "Residual network of 34 layers, torchvision's names.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet50", "Residual network of 50 layers (v1.5: strides in the 3x3), torchvision's names.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet101", "Residual network of 101 layers (v1.5: strides in the 3x3), torchvision's names.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet152", "Residual network of 152 layers (v1.5: strides in the 3x3), torchvision's names.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet50_v1", "The same with strides in the first 1x1 of a block, as first published.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet101_v1", "The same with strides in the first 1x1 of a block, as first published.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet152_v1", "The same with strides in the first 1x1 of a block, as first published.", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet50_v2", "Norms and rectifiers before convolutions (He et al., ECCV 2016).", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet101_v2", "Norms and rectifiers before convolutions (He et al., ECCV 2016).", {3, 224, 224}, 1, zoo_resnet_write},
    {"resnet152_v2", "Norms and rectifiers before convolutions (He et al., ECCV 2016).", {3, 224, 224}, 1, zoo_resnet_write},
    {"densenet121", "Densely connected network of 121 layers, growth 32, torchvision's names.", {3, 224, 224}, 32, zoo_densenet_write},
    {"googlenet", "GoogLeNet with batch norm, torchvision's names, no auxiliary heads.", {3, 224, 224}, 15, zoo_googlenet_write},
    {"inception_v3", "Inception v3, torchvision's names, no auxiliary head.", {3, 299, 299}, 75, zoo_inception_v3_write},
    {"inception_v4", "Inception v4 (Szegedy et al., AAAI 2017), timm's names.", {3, 299, 299}, 75, zoo_inception_v4_write},
    {"mobilenet_v1", "MobileNet of width 1: depthwise and 1x1 convolutions.", {3, 224, 224}, 1, zoo_mobilenet_v1_write},
    {"mobilenet_v2", "MobileNet v2 of width 1: inverted residuals, torchvision's names.", {3, 224, 224}, 1, zoo_mobilenet_v2_write},
};

// clang-format on

const struct weir_zoo_model *weir_zoo_models(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(models);
    return models;
}

const struct weir_zoo_model *weir_zoo_find(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
        if (strcmp(models[i].name, name) == 0) {
            return &models[i];
        }
    }
    return NULL;
}

static weir_status unknown_model(const char *name, struct weir_error *err)
{
    struct weir_names known = {0};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
        weir_names_add(&known, models[i].name, strlen(models[i].name));
    }
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND,
        "there is no model \"%.100s\"; there are %s, and the path of a model file", name,
        known.text);
}

weir_status weir_zoo_spec(const char *name, const struct weir_shape *shape,
                          struct weir_model_spec **out, struct weir_error *err)
{
    const struct weir_zoo_model *model = weir_zoo_find(name);
    if (model == NULL) {
        return unknown_model(name, err);
    }
    WEIR_AUTO(weir_buf_fini) struct weir_buf buf;
    weir_buf_init(&buf, TEXT_MAX_BYTES);
    model->write(name, shape == NULL ? &model->shape : shape, &buf);
    return buf.status == WEIR_OK
               ? weir_model_spec_parse(buf.data, buf.len, name, out, err)
               : weir_error_set(err, buf.status, "%s: the model could not be written", name);
}

weir_status weir_zoo_build(const char *name, const struct weir_shape *shape, int32_t n_classes,
                           struct weir_graph **out, struct weir_error *err)
{
    struct weir_model_spec *spec = NULL;
    WEIR_TRY(weir_zoo_spec(name, shape, &spec, err));
    weir_status status = weir_model_spec_build(spec, n_classes, out, err);
    weir_model_spec_destroy(spec);
    return status;
}

weir_status weir_zoo_resolve(const char *name_or_path, const struct weir_shape *shape,
                             struct weir_model_spec **out, struct weir_error *err)
{
    if (weir_zoo_find(name_or_path) == NULL && strpbrk(name_or_path, "/.") != NULL) {
        return weir_model_spec_load(name_or_path, out, err);
    }
    return weir_zoo_spec(name_or_path, shape, out, err);
}
