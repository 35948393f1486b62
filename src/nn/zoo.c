#include "nn/zoo.h"

#include "base/buf.h"
#include "base/names.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The largest, resnet18, writes 6 KiB. */
#define TEXT_MAX_BYTES ((size_t)64 << 10)

/* ---- writing ------------------------------------------------------------------------------ */

static void begin(struct weir_buf *out, const char *name, const struct weir_shape *shape)
{
    (void)weir_buf_printf(out, "{\"name\":\"%s\",\"input\":[%d,%d,%d],\"layers\":[", name, shape->c,
                          shape->h, shape->w);
}

/** One layer; `fmt` makes its settings, each with a comma before it. */
static void layer(struct weir_buf *out, const char *name, const char *type, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

static void layer(struct weir_buf *out, const char *name, const char *type, const char *fmt, ...)
{
    char settings[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(settings, sizeof settings, fmt, args);
    va_end(args);
    if (len < 0 || len >= (int)sizeof settings) {
        out->status = WEIR_ERR_INTERNAL;
        return;
    }
    bool is_first = out->len == 0 || out->data[out->len - 1] == '[';
    (void)weir_buf_printf(out, "%s{\"name\":\"%s\",\"type\":\"%s\"%s}", is_first ? "" : ",", name,
                          type, settings);
}

/** A layer without settings. */
static void plain(struct weir_buf *out, const char *name, const char *type)
{
    layer(out, name, type, "%s", "");
}

static void end_softmax(struct weir_buf *out)
{
    (void)weir_buf_puts(out, "],\"loss\":{\"type\":\"softmax\"}}");
}

/** The name of a layer inside a block: "layer1.0" + "conv1". */
struct name {
    char text[64];
};

static struct name inside(const char *block, const char *part)
{
    struct name name;
    (void)snprintf(name.text, sizeof name.text, "%s.%s", block, part);
    return name;
}

/* ---- lenet, lenet-5, mlp ------------------------------------------------------------------ */

static void lenet_write(const struct weir_shape *shape, struct weir_buf *out)
{
    begin(out, "lenet", shape);
    layer(out, "conv1", "conv", ",\"k\":32,\"kernel\":5,\"pad\":2");
    plain(out, "relu1", "relu");
    layer(out, "pool1", "max_pool", ",\"kernel\":2");
    layer(out, "conv2", "conv", ",\"k\":64,\"kernel\":5,\"pad\":2");
    plain(out, "relu2", "relu");
    layer(out, "pool2", "max_pool", ",\"kernel\":2");
    layer(out, "fc1", "linear", ",\"k\":512");
    plain(out, "relu3", "relu");
    layer(out, "dropout", "dropout", ",\"rate\":0.5");
    layer(out, "fc2", "linear", ",\"k\":\"classes\"");
    end_softmax(out);
}

static void lenet5_write(const struct weir_shape *shape, struct weir_buf *out)
{
    begin(out, "lenet-5", shape);
    layer(out, "conv1", "conv", ",\"k\":6,\"kernel\":5,\"pad\":2");
    plain(out, "relu1", "relu");
    layer(out, "pool1", "max_pool", ",\"kernel\":2");
    layer(out, "conv2", "conv", ",\"k\":16,\"kernel\":5");
    plain(out, "relu2", "relu");
    layer(out, "pool2", "max_pool", ",\"kernel\":2");
    layer(out, "fc1", "linear", ",\"k\":120");
    plain(out, "relu3", "relu");
    layer(out, "fc2", "linear", ",\"k\":84");
    plain(out, "relu4", "relu");
    layer(out, "fc3", "linear", ",\"k\":\"classes\"");
    end_softmax(out);
}

static void mlp_write(const struct weir_shape *shape, struct weir_buf *out)
{
    begin(out, "mlp", shape);
    layer(out, "fc1", "linear", ",\"k\":256");
    plain(out, "relu1", "relu");
    layer(out, "fc2", "linear", ",\"k\":128");
    plain(out, "relu2", "relu");
    layer(out, "fc3", "linear", ",\"k\":\"classes\"");
    end_softmax(out);
}

/* ---- resnet18 ----------------------------------------------------------------------------- */

static void conv_bn(struct weir_buf *out, const char *conv, const char *bn, const char *from, int k,
                    int kernel, int stride)
{
    layer(out, conv, "conv",
          ",\"from\":\"%s\",\"k\":%d,\"kernel\":%d,\"stride\":%d,\"pad\":%d,\"bias\":false", from,
          k, kernel, stride, kernel / 2);
    plain(out, bn, "batch_norm");
}

/** torchvision's BasicBlock (He et al., CVPR 2016, figure 5 left). Its value is "<block>.relu2". */
static void basic_block(struct weir_buf *out, const char *block, const char *from, int k,
                        int stride, bool has_projection)
{
    struct name relu1 = inside(block, "relu1"), bn2 = inside(block, "bn2");
    struct name projection = inside(block, "downsample.1");
    const char *shortcut = has_projection ? projection.text : from;
    conv_bn(out, inside(block, "conv1").text, inside(block, "bn1").text, from, k, 3, stride);
    plain(out, relu1.text, "relu");
    conv_bn(out, inside(block, "conv2").text, bn2.text, relu1.text, k, 3, 1);
    if (has_projection) {
        conv_bn(out, inside(block, "downsample.0").text, projection.text, from, k, 1, stride);
    }
    layer(out, inside(block, "add").text, "add", ",\"from\":[\"%s\",\"%s\"]", bn2.text, shortcut);
    plain(out, inside(block, "relu2").text, "relu");
}

static void resnet18_write(const struct weir_shape *shape, struct weir_buf *out)
{
    begin(out, "resnet18", shape);
    /* Small images would be one pixel wide before the last stage: keep them whole at first, as
     * the same paper does for CIFAR. */
    bool is_small = shape->h < 64 || shape->w < 64;
    conv_bn(out, "conv1", "bn1", "input", 64, is_small ? 3 : 7, is_small ? 1 : 2);
    plain(out, "relu", "relu");
    if (!is_small) {
        layer(out, "maxpool", "max_pool", ",\"kernel\":3,\"stride\":2,\"pad\":1");
    }
    struct name from = {0};
    (void)snprintf(from.text, sizeof from.text, "%s", is_small ? "relu" : "maxpool");
    for (int i = 0; i < 8; i++) {
        int i_stage = i / 2;
        bool is_down = i % 2 == 0 && i_stage > 0;
        char block[32];
        (void)snprintf(block, sizeof block, "layer%d.%d", i_stage + 1, i % 2);
        basic_block(out, block, from.text, 64 << i_stage, is_down ? 2 : 1, is_down);
        from = inside(block, "relu2");
    }
    plain(out, "avgpool", "global_pool");
    layer(out, "fc", "linear", ",\"k\":\"classes\"");
    end_softmax(out);
}

/* ---- face-embed --------------------------------------------------------------------------- */

/* About so many cells the small picture has along its shorter side. */
#define SMALL_CELLS 12
/* Its weight in the whole; the learned part has length 1. */
#define SMALL_LENGTH 0.75

/** Convolution n ("conv1"), batch norm and a rectifier with learned slopes ("prelu1"). */
static void face_conv(struct weir_buf *out, int n, int k, int kernel, int stride)
{
    char name[16];
    (void)snprintf(name, sizeof name, "conv%d", n);
    layer(out, name, "conv", ",\"k\":%d,\"kernel\":%d,\"stride\":%d,\"pad\":%d,\"bias\":false", k,
          kernel, stride, kernel / 2);
    (void)snprintf(name, sizeof name, "bn%d", n);
    plain(out, name, "batch_norm");
    (void)snprintf(name, sizeof name, "prelu%d", n);
    plain(out, name, "prelu");
}

/** The picture itself in about SMALL_CELLS cells along its shorter side, as a vector of length
 *  SMALL_LENGTH. */
static void small_picture(struct weir_buf *out, const struct weir_shape *shape)
{
    int side = WEIR_MIN(shape->h, shape->w);
    layer(out, "small.pool", "avg_pool", ",\"from\":\"input\",\"kernel\":%d",
          WEIR_MAX((side + SMALL_CELLS / 2) / SMALL_CELLS, 1));
    plain(out, "small.norm", "layer_norm");
    plain(out, "small.flat", "flatten");
    plain(out, "small.unit", "l2_normalise");
    layer(out, "small.scale", "scale", ",\"factor\":%g", SMALL_LENGTH);
}

/*
 * Small on purpose: it learns from five photographs a person, and is served on a CPU. Learned
 * features are best for the people learned from; the small picture knows nobody, and so is as good
 * for strangers. Joined, strangers are told apart better than by either (docs/reference/training.md
 * has figures). The margin loss sees the whole: on the learned part alone it gave the same figures
 * within their noise, and would need nets whose output is not what the loss sees. A weight of 1 is
 * a little better where pixels alone are good, and much worse where they are not (drawn faces).
 */
static void face_embed_write(const struct weir_shape *shape, struct weir_buf *out)
{
    begin(out, "face-embed", shape);
    face_conv(out, 1, 16, 5, 2);
    face_conv(out, 2, 32, 3, 1);
    layer(out, "pool1", "max_pool", ",\"kernel\":2");
    face_conv(out, 3, 64, 3, 1);
    layer(out, "pool2", "max_pool", ",\"kernel\":2");
    face_conv(out, 4, 96, 3, 1);
    layer(out, "dropout", "dropout", ",\"rate\":0.3");
    /* A face is aligned: where a feature lies says who it is, so places are kept (no global
     * pooling). */
    layer(out, "embed.fc", "linear", ",\"k\":128,\"bias\":false");
    plain(out, "embed.bn", "batch_norm");
    plain(out, "embed.learned", "l2_normalise");
    small_picture(out, shape);
    layer(out, "embed.both", "concat", ",\"from\":[\"embed.learned\",\"small.scale\"]");
    plain(out, "embed.unit", "l2_normalise");
    (void)weir_buf_puts(out, "],\"loss\":{\"type\":\"margin\",\"scale\":16,\"margin\":0.35}}");
}

/* ---- table -------------------------------------------------------------------------------- */

static const struct weir_zoo_model models[] = {
    {.name = "lenet",
     .doc = "Two 5x5 convolutions of 32 and 64 channels, 512 hidden units: 1.7 M parameters.",
     .shape = {1, 28, 28},
     .write = lenet_write},
    {.name = "lenet-5",
     .doc = "LeCun's LeNet-5 with rectifiers and max pooling: 62 K parameters.",
     .shape = {1, 28, 28},
     .write = lenet5_write},
    {.name = "mlp",
     .doc = "Hidden layers of 256 and 128 units.",
     .shape = {1, 28, 28},
     .write = mlp_write},
    {.name = "resnet18",
     .doc = "Residual network of 18 layers, torchvision's names; below 64 pixels a 3x3 stem.",
     .shape = {3, 224, 224},
     .write = resnet18_write},
    {.name = "face-embed",
     .doc = "A grey face to a unit vector: 128 numbers of four convolutions, and the picture made "
            "small; angular margin loss.",
     .shape = {1, 56, 46},
     .write = face_embed_write},
};

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
    struct weir_buf buf;
    weir_buf_init(&buf, TEXT_MAX_BYTES);
    model->write(shape == NULL ? &model->shape : shape, &buf);
    weir_status status = buf.status;
    if (status == WEIR_OK) {
        status = weir_model_spec_parse(buf.data, buf.len, name, out, err);
    } else {
        (void)weir_error_set(err, status, "%s: the model could not be written", name);
    }
    weir_buf_fini(&buf);
    return status;
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
