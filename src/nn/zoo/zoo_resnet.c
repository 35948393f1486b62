/* Residual networks: He et al., CVPR 2016 (v1), torchvision's (v1.5), and ECCV 2016 (v2). */
#include "zoo_write.h"

#include <stdio.h>
#include <string.h>

enum form {
    BASIC,       /**< Two 3x3. */
    BOTTLENECK,  /**< 1x1, 3x3 with the stride, 1x1: v1.5, torchvision's. */
    BOTTLENECK1, /**< The stride in the first 1x1. */
    PREACTIVATED /**< As BOTTLENECK, norms and rectifiers before the convolutions. */
};

static const struct resnet {
    const char *name;
    enum form form;
    int n_blocks[4];
} resnets[] = {
    {"resnet18", BASIC, {2, 2, 2, 2}},
    {"resnet34", BASIC, {3, 4, 6, 3}},
    {"resnet50", BOTTLENECK, {3, 4, 6, 3}},
    {"resnet101", BOTTLENECK, {3, 4, 23, 3}},
    {"resnet152", BOTTLENECK, {3, 8, 36, 3}},
    {"resnet50_v1", BOTTLENECK1, {3, 4, 6, 3}},
    {"resnet101_v1", BOTTLENECK1, {3, 4, 23, 3}},
    {"resnet152_v1", BOTTLENECK1, {3, 8, 36, 3}},
    {"resnet50_v2", PREACTIVATED, {3, 4, 6, 3}},
    {"resnet101_v2", PREACTIVATED, {3, 4, 23, 3}},
    {"resnet152_v2", PREACTIVATED, {3, 8, 36, 3}},
};

/** One block: where it stands and what it makes. */
struct block {
    const char *name;
    struct zoo_name from;
    int width, stride;
    bool has_projection;
};

static struct zoo_name part(const struct block *b, const char *name)
{
    return zoo_inside(b->name, name);
}

/** Convolution n and its norm. */
static struct zoo_name conv_norm(struct weir_buf *out, const struct block *b, int n,
                                 struct zoo_name from, int k, int kernel, int stride)
{
    struct zoo_name norm = part(b, zoo_numbered("bn", n).text);
    (void)zoo_conv(out, part(b, zoo_numbered("conv", n).text), from, k, kernel, stride);
    zoo_plain(out, norm.text, "batch_norm");
    return norm;
}

static struct zoo_name relu(struct weir_buf *out, struct zoo_name name)
{
    zoo_plain(out, name.text, "relu");
    return name;
}

/** The sum with what the block was given, projected if it has another shape. */
static struct zoo_name add_shortcut(struct weir_buf *out, const struct block *b,
                                    struct zoo_name value, int k, const char *name_of_relu)
{
    struct zoo_name shortcut = b->from;
    if (b->has_projection) {
        (void)zoo_conv(out, part(b, "downsample.0"), b->from, k, 1, b->stride);
        shortcut = part(b, "downsample.1");
        zoo_plain(out, shortcut.text, "batch_norm");
    }
    zoo_layer(out, part(b, "add").text, "add", ",\"from\":[\"%s\",\"%s\"]", value.text,
              shortcut.text);
    return relu(out, part(b, name_of_relu));
}

static struct zoo_name basic_block(struct weir_buf *out, const struct block *b)
{
    struct zoo_name x = conv_norm(out, b, 1, b->from, b->width, 3, b->stride);
    x = relu(out, part(b, "relu1"));
    x = conv_norm(out, b, 2, x, b->width, 3, 1);
    return add_shortcut(out, b, x, b->width, "relu2");
}

static struct zoo_name bottleneck(struct weir_buf *out, const struct block *b,
                                  bool is_first_strided)
{
    int first = is_first_strided ? b->stride : 1;
    struct zoo_name x = conv_norm(out, b, 1, b->from, b->width, 1, first);
    x = relu(out, part(b, "relu1"));
    x = conv_norm(out, b, 2, x, b->width, 3, b->stride / first);
    x = relu(out, part(b, "relu2"));
    x = conv_norm(out, b, 3, x, 4 * b->width, 1, 1);
    return add_shortcut(out, b, x, 4 * b->width, "relu3");
}

/** Norm n and its rectifier. */
static struct zoo_name norm_relu(struct weir_buf *out, const struct block *b, int n,
                                 struct zoo_name from)
{
    zoo_layer(out, part(b, zoo_numbered("bn", n).text).text, "batch_norm", ",\"from\":\"%s\"",
              from.text);
    return relu(out, part(b, zoo_numbered("relu", n).text));
}

static struct zoo_name preactivated(struct weir_buf *out, const struct block *b)
{
    struct zoo_name given = norm_relu(out, b, 1, b->from), shortcut = b->from;
    struct zoo_name x = zoo_conv(out, part(b, "conv1"), given, b->width, 1, 1);
    x = norm_relu(out, b, 2, x);
    x = zoo_conv(out, part(b, "conv2"), x, b->width, 3, b->stride);
    x = norm_relu(out, b, 3, x);
    x = zoo_conv(out, part(b, "conv3"), x, 4 * b->width, 1, 1);
    if (b->has_projection) {
        shortcut = zoo_conv(out, part(b, "downsample.0"), given, 4 * b->width, 1, b->stride);
    }
    struct zoo_name sum = part(b, "add");
    zoo_layer(out, sum.text, "add", ",\"from\":[\"%s\",\"%s\"]", x.text, shortcut.text);
    return sum;
}

static struct zoo_name write_block(struct weir_buf *out, enum form form, const struct block *b)
{
    switch (form) {
    case BASIC:
        return basic_block(out, b);
    case PREACTIVATED:
        return preactivated(out, b);
    default:
        return bottleneck(out, b, form == BOTTLENECK1);
    }
}

static struct zoo_name stem(struct weir_buf *out, const struct weir_shape *shape, bool has_norm)
{
    /* Small images would be one pixel wide before the last stage: keep them whole at first, as
     * the first paper does for CIFAR. */
    bool is_small = shape->h < 64 || shape->w < 64;
    struct zoo_name x = zoo_conv(out, (struct zoo_name){"conv1"}, (struct zoo_name){"input"}, 64,
                                 is_small ? 3 : 7, is_small ? 1 : 2);
    if (has_norm) {
        zoo_plain(out, "bn1", "batch_norm");
        x = relu(out, (struct zoo_name){"relu"});
    }
    if (!is_small) {
        zoo_layer(out, "maxpool", "max_pool", ",\"kernel\":3,\"stride\":2,\"pad\":1");
        x = (struct zoo_name){"maxpool"};
    }
    return x;
}

void zoo_resnet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    const struct resnet *net = resnets;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(resnets); i++) {
        net = strcmp(resnets[i].name, name) == 0 ? &resnets[i] : net;
    }
    zoo_begin(out, name, shape);
    struct zoo_name x = stem(out, shape, net->form != PREACTIVATED);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < net->n_blocks[stage]; i++) {
            char text[32];
            (void)snprintf(text, sizeof text, "layer%d.%d", stage + 1, i);
            const struct block b = {.name = text,
                                    .from = x,
                                    .width = 64 << stage,
                                    .stride = i == 0 && stage > 0 ? 2 : 1,
                                    .has_projection = i == 0 && (stage > 0 || net->form != BASIC)};
            x = write_block(out, net->form, &b);
        }
    }
    if (net->form == PREACTIVATED) {
        zoo_plain(out, "norm", "batch_norm");
        zoo_plain(out, "relu", "relu");
    }
    zoo_plain(out, "avgpool", "global_pool");
    zoo_layer(out, "fc", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}
