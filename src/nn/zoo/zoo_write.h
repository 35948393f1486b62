/** Writing model files, for the families of the zoo. Every function appends to a buffer and leaves
 *  failures in the buffer's status. */
#ifndef WEIR_NN_ZOO_WRITE_H
#define WEIR_NN_ZOO_WRITE_H

#include "base/buf.h"
#include "nn/nn.h"

/** The name of a layer, which is the name of the value it makes. */
struct zoo_name {
    char text[64];
};

/** "layer1.0" and "conv1": "layer1.0.conv1". */
struct zoo_name zoo_inside(const char *block, const char *part);
/** "features." and 3: "features.3". */
struct zoo_name zoo_numbered(const char *stem, int n);

/** Writes everything before the first layer. */
void zoo_begin(struct weir_buf *out, const char *name, const struct weir_shape *shape);
/** Writes one layer. `fmt` gives its settings, each with a comma before it. */
void zoo_layer(struct weir_buf *out, const char *name, const char *type, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
/** Writes a layer without settings. */
void zoo_plain(struct weir_buf *out, const char *name, const char *type);
/** Writes a square convolution without bias, padded so that only the stride changes the size.
 *  @return Its name. */
struct zoo_name zoo_conv(struct weir_buf *out, struct zoo_name name, struct zoo_name from, int k,
                         int kernel, int stride);
#define ZOO_MAX_CONCAT 6
/** Writes the concatenation of 2 to ZOO_MAX_CONCAT values along their channels. @return Its
 *  name. */
struct zoo_name zoo_concat(struct weir_buf *out, struct zoo_name name, const struct zoo_name *parts,
                           int n);
/** Writes everything behind the last layer of a classifier. */
void zoo_end_softmax(struct weir_buf *out);

/* The families: zoo_detect.c, zoo_plain.c, zoo_resnet.c, zoo_densenet.c, zoo_inception.c, zoo_mobilenet.c. */
void zoo_face_detect_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_alexnet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_vgg_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_resnet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_densenet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_googlenet_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_inception_v3_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_inception_v4_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_mobilenet_v1_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);
void zoo_mobilenet_v2_write(const char *name, const struct weir_shape *shape, struct weir_buf *out);

#endif
