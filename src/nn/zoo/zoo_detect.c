#include "nn/zoo.h"
#include "zoo_write.h"

#include <stdio.h>

/** Convolution n of 3×3, batch norm, rectifier. */
static void detect_conv(struct weir_buf *out, int n, int k, int stride)
{
    char name[16];
    (void)snprintf(name, sizeof name, "conv%d", n);
    zoo_layer(out, name, "conv", ",\"k\":%d,\"kernel\":3,\"stride\":%d,\"pad\":1,\"bias\":false", k,
              stride);
    (void)snprintf(name, sizeof name, "bn%d", n);
    zoo_plain(out, name, "batch_norm");
    (void)snprintf(name, sizeof name, "relu%d", n);
    zoo_plain(out, name, "relu");
}

/** k numbers of each square of the value `from`, as a vector: "score8" and "score8.flat". Few outputs begin with large weights (He et
 *  al.'s rule counts outputs), so these begin smaller: all places near the square, and all scores near a tenth, as most squares show no
 *  face (the prior of Lin et al., ICCV 2017). */
static void detect_head(struct weir_buf *out, const char *name, const char *from, int k)
{
    char flat[32];
    zoo_layer(out, name, "conv",
              ",\"from\":\"%s\",\"k\":%d,\"kernel\":3,\"pad\":1,\"initial\":%g,\"initial_bias\":%g",
              from, k, k == 1 ? 0.05 : 0.1, k == 1 ? -2.2 : 0);
    (void)snprintf(flat, sizeof flat, "%s.flat", name);
    zoo_plain(out, flat, "flatten");
}

/*
 * Convolutions alone, so that a picture of any size will do. The form of the output is vision/grid.h's: faces are found at
 * two scales, squares of 8 and of 16 pixels.
 */
void zoo_face_detect_write(const char *name, const struct weir_shape *shape, struct weir_buf *out)
{
    zoo_begin(out, name, shape);
    detect_conv(out, 1, 16, 2);
    detect_conv(out, 2, 32, 2);
    detect_conv(out, 3, 32, 1);
    detect_conv(out, 4, 64, 2);
    detect_conv(out, 5, 64, 1);
    detect_conv(out, 6, 64, 1);
    detect_conv(out, 7, 96, 2);
    detect_conv(out, 8, 96, 1);
    detect_conv(out, 9, 96, 1);
    detect_head(out, "score8", "relu6", 1);
    detect_head(out, "score16", "relu9", 1);
    detect_head(out, "place8", "relu6", 14);
    detect_head(out, "place16", "relu9", 14);
    zoo_layer(out, "grid", "concat",
              ",\"from\":[\"score8.flat\",\"score16.flat\",\"place8.flat\",\"place16.flat\"]");
    (void)weir_buf_puts(out, "],\"loss\":{\"type\":\"detect\",\"values\":15}}");
}
