/*
 * GoogLeNet and Inception: blocks of branches that are concatenated along their channels. A branch
 * is a row of units (convolution, norm with eps 0.001, rectifier) or begins with a pool. A unit "x"
 * has the layers x.conv, x.bn and x.relu, as in torchvision and timm.
 */
#include "zoo_write.h"

#include <stdio.h>

/** One unit of a branch. A kernel of 1x1, 3x3, 5x5, 1x7 …; padded to keep the size, or not at all.
 */
struct inception_unit {
    const char *name;
    int k, h, w, stride;
    bool is_padded;
};

static struct zoo_name write_unit(struct weir_buf *out, struct zoo_name name, struct zoo_name from,
                                  const struct inception_unit *u)
{
    zoo_layer(
        out, zoo_inside(name.text, "conv").text, "conv",
        ",\"from\":\"%s\",\"k\":%d,\"kernel\":[%d,%d],\"stride\":%d,\"pad\":[%d,%d],\"bias\":false",
        from.text, u->k, u->h, u->w, u->stride, u->is_padded ? u->h / 2 : 0,
        u->is_padded ? u->w / 2 : 0);
    zoo_layer(out, zoo_inside(name.text, "bn").text, "batch_norm", ",\"eps\":0.001");
    struct zoo_name relu = zoo_inside(name.text, "relu");
    zoo_plain(out, relu.text, "relu");
    return relu;
}

/** Units in a row, up to one without a name. */
static struct zoo_name write_row(struct weir_buf *out, const char *block, struct zoo_name x,
                                 const struct inception_unit *units)
{
    for (; units->name != NULL; units++) {
        x = write_unit(out, zoo_inside(block, units->name), x, units);
    }
    return x;
}

#define ROW(...)                                                                                   \
    (const struct inception_unit[])                                                                \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define SAME(name, k, h, w)                                                                        \
    {                                                                                              \
        name, k, h, w, 1, true                                                                     \
    }
#define HALF(name, k)                                                                              \
    {                                                                                              \
        name, k, 3, 3, 2, false                                                                    \
    }
#define INNER(name, k)                                                                             \
    {                                                                                              \
        name, k, 3, 3, 1, false                                                                    \
    }

static struct zoo_name write_pool(struct weir_buf *out, const char *block, struct zoo_name from,
                                  const char *type, const char *settings)
{
    struct zoo_name pool = zoo_inside(block, "pool");
    zoo_layer(out, pool.text, type, ",\"from\":\"%s\",%s", from.text, settings);
    return pool;
}

#define HALVING   "\"kernel\":3,\"stride\":2"
#define SMOOTHING "\"kernel\":3,\"stride\":1,\"pad\":1"

static struct zoo_name concat(struct weir_buf *out, const char *block, const struct zoo_name *parts,
                              int n)
{
    return zoo_concat(out, zoo_inside(block, "concat"), parts, n);
}

static void finish(struct weir_buf *out, double rate, const char *linear)
{
    zoo_plain(out, "avgpool", "global_pool");
    if (rate > 0) {
        zoo_layer(out, "dropout", "dropout", ",\"rate\":%g", rate);
    }
    zoo_layer(out, linear, "linear", ",\"k\":\"classes\"");
    zoo_end_softmax(out);
}

/* ---- GoogLeNet: Szegedy et al., CVPR 2015, as torchvision has it (a 3x3 where the paper has a
 * 5x5) ---------------------------------------------------------------------------------------- */

/* Channels of a block: 1x1; before and of 3x3; before and of the second; behind the pool. */
static struct zoo_name googlenet_block(struct weir_buf *out, const char *name, struct zoo_name x,
                                       const int k[6])
{
    struct zoo_name parts[4] = {
        write_row(out, name, x, ROW(SAME("branch1", k[0], 1, 1))),
        write_row(out, name, x, ROW(SAME("branch2.0", k[1], 1, 1), SAME("branch2.1", k[2], 3, 3))),
        write_row(out, name, x, ROW(SAME("branch3.0", k[3], 1, 1), SAME("branch3.1", k[4], 3, 3)))};
    struct zoo_name pool = write_pool(out, name, x, "max_pool", SMOOTHING);
    parts[3] = write_row(out, name, pool, ROW(SAME("branch4.1", k[5], 1, 1)));
    return concat(out, name, parts, 4);
}

static const struct {
    const char *name, *pool_behind;
    int k[6];
} googlenet_blocks[] = {
    {"inception3a", NULL, {64, 96, 128, 16, 32, 32}},
    {"inception3b", "maxpool3", {128, 128, 192, 32, 96, 64}},
    {"inception4a", NULL, {192, 96, 208, 16, 48, 64}},
    {"inception4b", NULL, {160, 112, 224, 24, 64, 64}},
    {"inception4c", NULL, {128, 128, 256, 24, 64, 64}},
    {"inception4d", NULL, {112, 144, 288, 32, 64, 64}},
    {"inception4e", "maxpool4", {256, 160, 320, 32, 128, 128}},
    {"inception5a", NULL, {256, 160, 320, 32, 128, 128}},
    {"inception5b", NULL, {384, 192, 384, 48, 128, 128}},
};

static struct zoo_name ceil_pool(struct weir_buf *out, struct zoo_name name, int kernel)
{
    zoo_layer(out, name.text, "max_pool", ",\"kernel\":%d,\"stride\":2,\"ceil\":true", kernel);
    return name;
}

void zoo_googlenet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    struct zoo_name x = {"input"};
    (void)write_unit(out, (struct zoo_name){"conv1"}, x,
                     &(struct inception_unit){"", 64, 7, 7, 2, true});
    x = ceil_pool(out, (struct zoo_name){"maxpool1"}, 3);
    x = write_unit(out, (struct zoo_name){"conv2"}, x, &(struct inception_unit)SAME("", 64, 1, 1));
    (void)write_unit(out, (struct zoo_name){"conv3"}, x,
                     &(struct inception_unit)SAME("", 192, 3, 3));
    x = ceil_pool(out, (struct zoo_name){"maxpool2"}, 3);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(googlenet_blocks); i++) {
        x = googlenet_block(out, googlenet_blocks[i].name, x, googlenet_blocks[i].k);
        if (googlenet_blocks[i].pool_behind != NULL) {
            struct zoo_name pool = zoo_numbered("maxpool", i < 2 ? 3 : 4);
            x = ceil_pool(out, pool, i < 2 ? 3 : 2);
        }
    }
    finish(out, 0.2, "fc");
}

/* ---- Inception v3: Szegedy et al., CVPR 2016, torchvision's names ---------------------------- */

/** An average pool and the 1x1 behind it. */
static struct zoo_name pooled(struct weir_buf *out, const char *block, struct zoo_name x,
                              const struct inception_unit *row)
{
    return write_row(out, block, write_pool(out, block, x, "avg_pool", SMOOTHING), row);
}

static struct zoo_name v3_a(struct weir_buf *out, const char *block, struct zoo_name x, int k_pool)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch1x1", 64, 1, 1))),
        write_row(out, block, x, ROW(SAME("branch5x5_1", 48, 1, 1), SAME("branch5x5_2", 64, 5, 5))),
        write_row(out, block, x,
                  ROW(SAME("branch3x3dbl_1", 64, 1, 1), SAME("branch3x3dbl_2", 96, 3, 3),
                      SAME("branch3x3dbl_3", 96, 3, 3))),
        pooled(out, block, x, ROW(SAME("branch_pool", k_pool, 1, 1)))};
    return concat(out, block, parts, 4);
}

static struct zoo_name v3_b(struct weir_buf *out, const char *block, struct zoo_name x)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(HALF("branch3x3", 384))),
        write_row(out, block, x,
                  ROW(SAME("branch3x3dbl_1", 64, 1, 1), SAME("branch3x3dbl_2", 96, 3, 3),
                      HALF("branch3x3dbl_3", 96))),
        write_pool(out, block, x, "max_pool", HALVING)};
    return concat(out, block, parts, 3);
}

static struct zoo_name v3_c(struct weir_buf *out, const char *block, struct zoo_name x, int k)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch1x1", 192, 1, 1))),
        write_row(out, block, x,
                  ROW(SAME("branch7x7_1", k, 1, 1), SAME("branch7x7_2", k, 1, 7),
                      SAME("branch7x7_3", 192, 7, 1))),
        write_row(out, block, x,
                  ROW(SAME("branch7x7dbl_1", k, 1, 1), SAME("branch7x7dbl_2", k, 7, 1),
                      SAME("branch7x7dbl_3", k, 1, 7), SAME("branch7x7dbl_4", k, 7, 1),
                      SAME("branch7x7dbl_5", 192, 1, 7))),
        pooled(out, block, x, ROW(SAME("branch_pool", 192, 1, 1)))};
    return concat(out, block, parts, 4);
}

static struct zoo_name v3_d(struct weir_buf *out, const char *block, struct zoo_name x)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch3x3_1", 192, 1, 1), HALF("branch3x3_2", 320))),
        write_row(out, block, x,
                  ROW(SAME("branch7x7x3_1", 192, 1, 1), SAME("branch7x7x3_2", 192, 1, 7),
                      SAME("branch7x7x3_3", 192, 7, 1), HALF("branch7x7x3_4", 192))),
        write_pool(out, block, x, "max_pool", HALVING)};
    return concat(out, block, parts, 3);
}

static struct zoo_name v3_e(struct weir_buf *out, const char *block, struct zoo_name x)
{
    struct zoo_name wide = write_row(out, block, x, ROW(SAME("branch3x3_1", 384, 1, 1)));
    struct zoo_name deep = write_row(
        out, block, x, ROW(SAME("branch3x3dbl_1", 448, 1, 1), SAME("branch3x3dbl_2", 384, 3, 3)));
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch1x1", 320, 1, 1))),
        write_row(out, block, wide, ROW(SAME("branch3x3_2a", 384, 1, 3))),
        write_row(out, block, wide, ROW(SAME("branch3x3_2b", 384, 3, 1))),
        write_row(out, block, deep, ROW(SAME("branch3x3dbl_3a", 384, 1, 3))),
        write_row(out, block, deep, ROW(SAME("branch3x3dbl_3b", 384, 3, 1))),
        pooled(out, block, x, ROW(SAME("branch_pool", 192, 1, 1)))};
    return concat(out, block, parts, 6);
}

/** A unit that has no block around it. */
static struct zoo_name alone(struct weir_buf *out, const char *name, struct zoo_name from,
                             struct inception_unit u)
{
    struct zoo_name full = {""};
    (void)snprintf(full.text, sizeof full.text, "%s", name);
    return write_unit(out, full, from, &u);
}

void zoo_inception_v3_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    struct zoo_name x = alone(out, "Conv2d_1a_3x3", (struct zoo_name){"input"},
                              (struct inception_unit)HALF("", 32));
    x = alone(out, "Conv2d_2a_3x3", x, (struct inception_unit)INNER("", 32));
    (void)alone(out, "Conv2d_2b_3x3", x, (struct inception_unit)SAME("", 64, 3, 3));
    x = (struct zoo_name){"maxpool1"};
    zoo_layer(out, x.text, "max_pool", "," HALVING);
    x = alone(out, "Conv2d_3b_1x1", x, (struct inception_unit)SAME("", 80, 1, 1));
    (void)alone(out, "Conv2d_4a_3x3", x, (struct inception_unit)INNER("", 192));
    x = (struct zoo_name){"maxpool2"};
    zoo_layer(out, x.text, "max_pool", "," HALVING);
    x = v3_a(out, "Mixed_5b", x, 32);
    x = v3_a(out, "Mixed_5c", x, 64);
    x = v3_a(out, "Mixed_5d", x, 64);
    x = v3_b(out, "Mixed_6a", x);
    x = v3_c(out, "Mixed_6b", x, 128);
    x = v3_c(out, "Mixed_6c", x, 160);
    x = v3_c(out, "Mixed_6d", x, 160);
    x = v3_c(out, "Mixed_6e", x, 192);
    x = v3_d(out, "Mixed_7a", x);
    x = v3_e(out, "Mixed_7b", x);
    (void)v3_e(out, "Mixed_7c", x);
    finish(out, 0.5, "fc");
}

/* ---- Inception v4: Szegedy et al., AAAI 2017, timm's names ----------------------------------- */

static struct zoo_name v4_pooled(struct weir_buf *out, const char *block, struct zoo_name x, int k)
{
    x = write_pool(out, block, x, "avg_pool", SMOOTHING ",\"count_pad\":false");
    return write_row(out, block, x, ROW(SAME("branch3.1", k, 1, 1)));
}

static struct zoo_name v4_stem(struct weir_buf *out)
{
    struct zoo_name x =
        alone(out, "features.0", (struct zoo_name){"input"}, (struct inception_unit)HALF("", 32));
    x = alone(out, "features.1", x, (struct inception_unit)INNER("", 32));
    x = alone(out, "features.2", x, (struct inception_unit)SAME("", 64, 3, 3));
    const char *block = "features.3";
    const struct zoo_name mixed_3a[] = {write_pool(out, block, x, "max_pool", HALVING),
                                        write_row(out, block, x, ROW(HALF("conv", 96)))};
    x = concat(out, block, mixed_3a, 2);
    block = "features.4";
    const struct zoo_name mixed_4a[] = {
        write_row(out, block, x, ROW(SAME("branch0.0", 64, 1, 1), INNER("branch0.1", 96))),
        write_row(out, block, x,
                  ROW(SAME("branch1.0", 64, 1, 1), SAME("branch1.1", 64, 1, 7),
                      SAME("branch1.2", 64, 7, 1), INNER("branch1.3", 96)))};
    x = concat(out, block, mixed_4a, 2);
    block = "features.5";
    const struct zoo_name mixed_5a[] = {write_row(out, block, x, ROW(HALF("conv", 192))),
                                        write_pool(out, block, x, "max_pool", HALVING)};
    return concat(out, block, mixed_5a, 2);
}

static struct zoo_name v4_a(struct weir_buf *out, const char *block, struct zoo_name x)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch0", 96, 1, 1))),
        write_row(out, block, x, ROW(SAME("branch1.0", 64, 1, 1), SAME("branch1.1", 96, 3, 3))),
        write_row(out, block, x,
                  ROW(SAME("branch2.0", 64, 1, 1), SAME("branch2.1", 96, 3, 3),
                      SAME("branch2.2", 96, 3, 3))),
        v4_pooled(out, block, x, 96)};
    return concat(out, block, parts, 4);
}

static struct zoo_name v4_reduce_a(struct weir_buf *out, const char *block, struct zoo_name x)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(HALF("branch0", 384))),
        write_row(out, block, x,
                  ROW(SAME("branch1.0", 192, 1, 1), SAME("branch1.1", 224, 3, 3),
                      HALF("branch1.2", 256))),
        write_pool(out, block, x, "max_pool", HALVING)};
    return concat(out, block, parts, 3);
}

static struct zoo_name v4_b(struct weir_buf *out, const char *block, struct zoo_name x)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch0", 384, 1, 1))),
        write_row(out, block, x,
                  ROW(SAME("branch1.0", 192, 1, 1), SAME("branch1.1", 224, 1, 7),
                      SAME("branch1.2", 256, 7, 1))),
        write_row(out, block, x,
                  ROW(SAME("branch2.0", 192, 1, 1), SAME("branch2.1", 192, 7, 1),
                      SAME("branch2.2", 224, 1, 7), SAME("branch2.3", 224, 7, 1),
                      SAME("branch2.4", 256, 1, 7))),
        v4_pooled(out, block, x, 128)};
    return concat(out, block, parts, 4);
}

static struct zoo_name v4_reduce_b(struct weir_buf *out, const char *block, struct zoo_name x)
{
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch0.0", 192, 1, 1), HALF("branch0.1", 192))),
        write_row(out, block, x,
                  ROW(SAME("branch1.0", 256, 1, 1), SAME("branch1.1", 256, 1, 7),
                      SAME("branch1.2", 320, 7, 1), HALF("branch1.3", 320))),
        write_pool(out, block, x, "max_pool", HALVING)};
    return concat(out, block, parts, 3);
}

static struct zoo_name v4_c(struct weir_buf *out, const char *block, struct zoo_name x)
{
    struct zoo_name wide = write_row(out, block, x, ROW(SAME("branch1_0", 384, 1, 1)));
    struct zoo_name deep = write_row(out, block, x,
                                     ROW(SAME("branch2_0", 384, 1, 1), SAME("branch2_1", 448, 3, 1),
                                         SAME("branch2_2", 512, 1, 3)));
    const struct zoo_name parts[] = {
        write_row(out, block, x, ROW(SAME("branch0", 256, 1, 1))),
        write_row(out, block, wide, ROW(SAME("branch1_1a", 256, 1, 3))),
        write_row(out, block, wide, ROW(SAME("branch1_1b", 256, 3, 1))),
        write_row(out, block, deep, ROW(SAME("branch2_3a", 256, 1, 3))),
        write_row(out, block, deep, ROW(SAME("branch2_3b", 256, 3, 1))),
        v4_pooled(out, block, x, 256)};
    return concat(out, block, parts, 6);
}

void zoo_inception_v4_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    struct zoo_name x = v4_stem(out);
    for (int i = 6; i < 22; i++) {
        struct zoo_name block = zoo_numbered("features.", i);
        if (i < 10) {
            x = v4_a(out, block.text, x);
        } else if (i == 10) {
            x = v4_reduce_a(out, block.text, x);
        } else if (i < 18) {
            x = v4_b(out, block.text, x);
        } else if (i == 18) {
            x = v4_reduce_b(out, block.text, x);
        } else {
            x = v4_c(out, block.text, x);
        }
    }
    finish(out, 0, "last_linear");
}
