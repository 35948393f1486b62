/**
 * Net embed: unit vectors of pictures, averaged over the picture and its mirror image.
 *
 * The vector of a picture x is v(x) + v(mirror of x), brought to length 1, v being the output of an
 * embedding net. Everything that compares vectors uses this one rule: evaluation, the baseline of a
 * model, and a replica for its gallery and for its frames.
 */
#ifndef WEIR_NN_NET_EMBED_H
#define WEIR_NN_NET_EMBED_H

#include "nn/nn.h"

/**
 * Vectors of the first n pictures that lie in the net's input (weir_net_input).
 *
 * @param shape  Of one picture: the graph's input shape.
 * @param n      At most the net's batch.
 * @param dim    Elements of one vector: the graph's output.
 * @param[out] out  n x dim.
 * @return as weir_net_forward; `out` is undefined then. The input is mirrored in place afterwards.
 * Cost: two forward passes.
 */
weir_status weir_net_embed(struct weir_net *net, const struct weir_shape *shape, int32_t n,
                           size_t dim, float *out) WEIR_MUST_CHECK;

#endif
