/* DenseNet: Huang et al., CVPR 2017; torchvision's names. */
#include "zoo_write.h"

#include <stdio.h>

#define GROWTH 32

/** Norm, rectifier and convolution n of a layer of a block. */
static struct zoo_name norm_relu_conv(struct weir_buf *out, const char *layer, int n,
                                      struct zoo_name from, int k, int kernel)
{
    struct zoo_name relu = zoo_inside(layer, zoo_numbered("relu", n).text);
    zoo_layer(out, zoo_inside(layer, zoo_numbered("norm", n).text).text, "batch_norm",
              ",\"from\":\"%s\"", from.text);
    zoo_plain(out, relu.text, "relu");
    return zoo_conv(out, zoo_inside(layer, zoo_numbered("conv", n).text), relu, k, kernel, 1);
}

static struct zoo_name dense_block(struct weir_buf *out, int i_block, int n_layers,
                                   struct zoo_name x)
{
    for (int i = 1; i <= n_layers; i++) {
        char layer[48];
        (void)snprintf(layer, sizeof layer, "features.denseblock%d.denselayer%d", i_block, i);
        struct zoo_name y = norm_relu_conv(out, layer, 1, x, 4 * GROWTH, 1);
        y = norm_relu_conv(out, layer, 2, y, GROWTH, 3);
        x = zoo_concat(out, zoo_inside(layer, "concat"), (struct zoo_name[]){x, y}, 2);
    }
    return x;
}

void zoo_densenet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    static const int n_layers[] = {6, 12, 24, 16};
    int channels = 2 * GROWTH;
    zoo_begin(out, name, shape);
    (void)zoo_conv(out, (struct zoo_name){"features.conv0"}, (struct zoo_name){"input"}, channels,
                   7, 2);
    zoo_plain(out, "features.norm0", "batch_norm");
    zoo_plain(out, "features.relu0", "relu");
    zoo_layer(out, "features.pool0", "max_pool", ",\"kernel\":3,\"stride\":2,\"pad\":1");
    struct zoo_name x = {"features.pool0"};
    for (int i = 0; i < 4; i++) {
        x = dense_block(out, i + 1, n_layers[i], x);
        channels += n_layers[i] * GROWTH;
        if (i < 3) {
            struct zoo_name transition = zoo_numbered("features.transition", i + 1);
            channels /= 2;
            zoo_plain(out, zoo_inside(transition.text, "norm").text, "batch_norm");
            x = zoo_inside(transition.text, "relu");
            zoo_plain(out, x.text, "relu");
            (void)zoo_conv(out, zoo_inside(transition.text, "conv"), x, channels, 1, 1);
            x = zoo_inside(transition.text, "pool");
            zoo_layer(out, x.text, "avg_pool", ",\"kernel\":2");
        }
    }
    zoo_plain(out, "features.norm5", "batch_norm");
    zoo_plain(out, "relu", "relu");
    zoo_plain(out, "avgpool", "global_pool");
    zoo_layer(out, "classifier", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}
