/* MobileNet: Howard et al., 2017, and Sandler et al., CVPR 2018 (torchvision's names). */
#include "zoo_write.h"

/** A convolution and its norm; depthwise if it has groups. */
struct conv_unit {
    int k, kernel, stride, groups;
    bool has_relu;
};

/** "<first>" and "<second>", what torchvision numbers; the rectifier is "<second>.relu6". */
static struct zoo_name write_unit(struct weir_buf *out, struct zoo_name conv, struct zoo_name norm,
                                  const struct conv_unit *u)
{
    zoo_layer(out, conv.text, "conv",
              ",\"k\":%d,\"kernel\":%d,\"stride\":%d,\"pad\":%d,\"groups\":%d,\"bias\":false", u->k,
              u->kernel, u->stride, u->kernel / 2, u->groups);
    zoo_plain(out, norm.text, "batch_norm");
    if (!u->has_relu) {
        return norm;
    }
    struct zoo_name relu = zoo_inside(norm.text, "relu6");
    zoo_plain(out, relu.text, "relu6");
    return relu;
}

/** A unit inside a block of torchvision's: "<block>.0" and "<block>.1". */
static void write_pair(struct weir_buf *out, struct zoo_name block, const struct conv_unit *u)
{
    (void)write_unit(out, zoo_inside(block.text, "0"), zoo_inside(block.text, "1"), u);
}

void zoo_mobilenet_v1_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    static const struct {
        int k, stride;
    } blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                  {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};

    int channels = 32;
    zoo_begin(out, name, shape);
    (void)write_unit(out, (struct zoo_name){"conv"}, (struct zoo_name){"bn"},
                     &(struct conv_unit){channels, 3, 2, 1, true});
    for (size_t i = 0; i < WEIR_ARRAY_LEN(blocks); i++) {
        struct zoo_name block = zoo_numbered("block", (int)i + 1);
        (void)write_unit(out, zoo_inside(block.text, "depthwise"), zoo_inside(block.text, "bn1"),
                         &(struct conv_unit){channels, 3, blocks[i].stride, channels, true});
        channels = blocks[i].k;
        (void)write_unit(out, zoo_inside(block.text, "pointwise"), zoo_inside(block.text, "bn2"),
                         &(struct conv_unit){channels, 1, 1, 1, true});
    }
    zoo_plain(out, "avgpool", "global_pool");
    zoo_layer(out, "fc", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

/** Widen, filter every channel alone, narrow without a rectifier. */
static struct zoo_name inverted_residual(struct weir_buf *out, struct zoo_name block,
                                         struct zoo_name from, int n_in, const struct conv_unit *u)
{
    struct zoo_name inner = zoo_inside(block.text, "conv");
    int n = 0, hidden = n_in * u->groups;
    if (u->groups != 1) {
        write_pair(out, zoo_inside(inner.text, zoo_numbered("", n++).text),
                   &(struct conv_unit){hidden, 1, 1, 1, true});
    }
    write_pair(out, zoo_inside(inner.text, zoo_numbered("", n++).text),
               &(struct conv_unit){hidden, 3, u->stride, hidden, true});
    struct zoo_name conv = zoo_inside(inner.text, zoo_numbered("", n).text);
    struct zoo_name norm = zoo_inside(inner.text, zoo_numbered("", n + 1).text);
    struct zoo_name x = write_unit(out, conv, norm, &(struct conv_unit){u->k, 1, 1, 1, false});
    if (u->stride != 1 || n_in != u->k) {
        return x;
    }
    struct zoo_name sum = zoo_inside(block.text, "add");
    zoo_layer(out, sum.text, "add", ",\"from\":[\"%s\",\"%s\"]", from.text, x.text);
    return sum;
}

/* Table 2 of the paper. */
static const struct {
    int expansion, k, n, stride;
} stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

void zoo_mobilenet_v2_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    int n = 0, channels = 32;
    zoo_begin(out, name, shape);
    struct zoo_name x = zoo_numbered("features.", n++);
    write_pair(out, x, &(struct conv_unit){channels, 3, 2, 1, true});
    for (size_t i = 0; i < WEIR_ARRAY_LEN(stages); i++) {
        for (int j = 0; j < stages[i].n; j++) {
            /* groups stands for the expansion here: the block works out its own. */
            const struct conv_unit u = {stages[i].k, 3, j == 0 ? stages[i].stride : 1,
                                        stages[i].expansion, true};
            x = inverted_residual(out, zoo_numbered("features.", n++), x, channels, &u);
            channels = stages[i].k;
        }
    }
    write_pair(out, zoo_numbered("features.", n), &(struct conv_unit){1280, 1, 1, 1, true});
    zoo_plain(out, "avgpool", "global_pool");
    zoo_layer(out, "classifier.0", "dropout", ",\"rate\":0.2");
    zoo_layer(out, "classifier.1", "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}
