/**
 * The exponential moving average of a net's weights. It is smoother than the weights themselves,
 * and is measured and exported in their place where average_decay is given. Running statistics are
 * averaged too.
 *
 *     after step t (the first is 0):  average += (1 - d) * (weights - average)
 *     d = min(decay, (1 + t) / (10 + t))
 *
 * It starts at the initial weights. The rule, with the smaller decay of the first steps, is
 * TensorFlow's ExponentialMovingAverage with num_updates, after Polyak and Juditsky (1992). Each
 * element depends only on its own history, so every worker has the same bits. One thread calls,
 * except train_average_add_range.
 */
#ifndef WEIR_TRAIN_AVERAGE_H
#define WEIR_TRAIN_AVERAGE_H

#include "nn/nn.h"

/** All zero: no average; every call but init then does nothing. */
struct train_average {
    double decay;
    float *weights; /**< In the order of the net's slab; NULL: none. */
    size_t n;
};

/** Start at the net's weights; with decay 0 there is none. @return NOMEM. */
weir_status train_average_init(struct train_average *average, double decay, struct weir_net *net,
                               struct weir_error *err) WEIR_MUST_CHECK;
void train_average_fini(struct train_average *average);

/** Start again at the net's weights. */
void train_average_reset(struct train_average *average, struct weir_net *net);

/** Include the weights after step `step`. */
void train_average_add(struct train_average *average, struct weir_net *net, uint64_t step);
/** The same for a range of the slab: each range once, in any order, by any threads. */
void train_average_add_range(struct train_average *average, struct weir_net *net, uint64_t step,
                             size_t first_elem, size_t n_elems);

/** Exchange the net's weights with the average; a second call undoes it, bit for bit. */
void train_average_swap(struct train_average *average, struct weir_net *net);

#endif
