/**
 * Embedding vectors of training data, by the rule of nn/net_embed.h (picture and mirror image).
 */
#ifndef WEIR_TRAIN_EMBED_H
#define WEIR_TRAIN_EMBED_H

#include "data/data.h"
#include "nn/net_file.h"

/**
 * Vectors of the first n tensors (n is at most the net's batch).
 *
 * @param tensors  n x c x h x w, normalised.
 * @param[out] out n x dim.
 * @return As weir_net_forward. The net's input is overwritten. Cost: two forward passes.
 */
weir_status train_embed_batch(struct weir_net *net, const struct weir_net_input *input,
                              const float *tensors, int32_t n, size_t dim,
                              float *out) WEIR_MUST_CHECK;

/**
 * Vectors of all samples of a dataset, in their order.
 *
 * @param[out] out  n_samples x dim.
 * @return The error of a damaged picture, with its name; NOMEM; IO.
 */
weir_status train_embed_dataset(struct weir_net *net, const struct weir_net_input *input,
                                struct weir_dataset *dataset, size_t dim, float *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
