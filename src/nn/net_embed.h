/**
 * Net embed: unit vectors of images, averaged over the image and its mirror image.
 *
 * The vector of an image x is v(x) + v(mirror of x), normalised to length 1, where v is the output
 * of an embedding net. Everything that compares vectors uses this rule: evaluation, the baseline of
 * a model, and a replica for its gallery and its frames.
 */
#ifndef WEIR_NN_NET_EMBED_H
#define WEIR_NN_NET_EMBED_H

#include "nn/nn.h"

/**
 * Computes the vectors of the first n images in the net's input (weir_net_input).
 *
 * @param shape  Of one image: the graph's input shape.
 * @param n  At most the net's batch.
 * @param dim  Elements of one vector: the graph's output.
 * @param out  n x dim.
 * @return As weir_net_forward; `out` is undefined then.
 *
 * The input is overwritten with its mirror images. Cost: two forward passes.
 */
weir_status weir_net_embed(struct weir_net *net, const struct weir_shape *shape, int32_t n,
                           size_t dim, float *out) WEIR_MUST_CHECK;

#endif
