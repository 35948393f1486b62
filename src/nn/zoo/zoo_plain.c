/* AlexNet and VGG: convolutions in a row and three large linear layers. */
#include "zoo_write.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/** "features.N": torchvision numbers what it runs in a row. */
static struct zoo_name feature(int *n)
{
    return zoo_numbered("features.", (*n)++);
}

static void conv_relu(struct weir_buf *out, int *n, int k, int kernel, int stride, int pad)
{
    zoo_layer(out, feature(n).text, "conv", ",\"k\":%d,\"kernel\":%d,\"stride\":%d,\"pad\":%d", k,
              kernel, stride, pad);
    zoo_plain(out, feature(n).text, "relu");
}

static void pool(struct weir_buf *out, int *n, int kernel)
{
    zoo_layer(out, feature(n).text, "max_pool", ",\"kernel\":%d,\"stride\":2", kernel);
}

/*
 * torchvision pools adaptively to 6x6 (AlexNet) or 7x7 (VGG) before its linear layers, which
 * changes nothing at the published size of 224x224. Here there is no such layer: at another size
 * the first linear layer takes what there is.
 */
void zoo_alexnet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    int n = 0;
    zoo_begin(out, name, shape);
    conv_relu(out, &n, 64, 11, 4, 2);
    pool(out, &n, 3);
    conv_relu(out, &n, 192, 5, 1, 2);
    pool(out, &n, 3);
    conv_relu(out, &n, 384, 3, 1, 1);
    conv_relu(out, &n, 256, 3, 1, 1);
    conv_relu(out, &n, 256, 3, 1, 1);
    pool(out, &n, 3);
    zoo_layer(out, "classifier.0", "dropout", ",\"rate\":0.5");
    zoo_layer(out, "classifier.1", "linear", ",\"k\":4096");
    zoo_plain(out, "classifier.2", "relu");
    zoo_layer(out, "classifier.3", "dropout", ",\"rate\":0.5");
    zoo_layer(out, "classifier.4", "linear", ",\"k\":4096");
    zoo_plain(out, "classifier.5", "relu");
    zoo_layer(out, "classifier.6", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

/* Simonyan and Zisserman, ICLR 2015, table 1, A B D E: 3x3 convolutions of each stage. */
static const struct {
    const char *name;
    int n_convs[5];
} vggs[] = {
    {"vgg11", {1, 1, 2, 2, 2}},
    {"vgg13", {2, 2, 2, 2, 2}},
    {"vgg16", {2, 2, 3, 3, 3}},
    {"vgg19", {2, 2, 4, 4, 4}},
};

void zoo_vgg_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    static const int widths[] = {64, 128, 256, 512, 512};
    int n = 0;
    size_t i = 0;
    while (i + 1 < WEIR_ARRAY_LEN(vggs) && strcmp(vggs[i].name, name) != 0) {
        i++;
    }
    zoo_begin(out, name, shape);
    for (int stage = 0; stage < 5; stage++) {
        for (int j = 0; j < vggs[i].n_convs[stage]; j++) {
            conv_relu(out, &n, widths[stage], 3, 1, 1);
        }
        pool(out, &n, 2);
    }
    zoo_layer(out, "classifier.0", "linear", ",\"k\":4096");
    zoo_plain(out, "classifier.1", "relu");
    zoo_layer(out, "classifier.2", "dropout", ",\"rate\":0.5");
    zoo_layer(out, "classifier.3", "linear", ",\"k\":4096");
    zoo_plain(out, "classifier.4", "relu");
    zoo_layer(out, "classifier.5", "dropout", ",\"rate\":0.5");
    zoo_layer(out, "classifier.6", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}
