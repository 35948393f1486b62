/**
 * The moving average of a net's weights: smoother than the weights themselves, it is what is
 * measured and exported where average_decay is given. Running statistics are averaged with them.
 *
 *     after step t (the first is 0):  average += (1 - d) * (weights - average)
 *     d = min(decay, (1 + t) / (10 + t))
 *
 * starting at the initial weights. The rule, with the smaller decay of the first steps, is
 * TensorFlow's ExponentialMovingAverage with num_updates; Polyak and Juditsky (1992) is behind it.
 * Each element depends on nothing but its own history, so every worker has the same bits. One
 * thread, but for ranges.
 */
#ifndef WEIR_TRAIN_AVERAGE_H
#define WEIR_TRAIN_AVERAGE_H

#include "nn/nn.h"

/** All zero: there is none, and every call below but init does nothing. */
struct train_average {
    double decay;
    float *weights; /**< In the order of the net's slab; NULL: none. */
    size_t n;
};

/** With decay 0: none. The average is the net's weights as they are. @return NOMEM. */
weir_status train_average_init(struct train_average *average, double decay, struct weir_net *net,
                               struct weir_error *err) WEIR_MUST_CHECK;
void train_average_fini(struct train_average *average);

/** Begin again at the net's weights. */
void train_average_reset(struct train_average *average, struct weir_net *net);

/** Take in the weights after step `step`. */
void train_average_add(struct train_average *average, struct weir_net *net, uint64_t step);
/** The same for a part of the slab: each once, in any order and by any threads. */
void train_average_add_range(struct train_average *average, struct weir_net *net, uint64_t step,
                             size_t first_elem, size_t n_elems);

/** Exchange the net's weights with the average; a second time: back. Not a bit is lost. */
void train_average_swap(struct train_average *average, struct weir_net *net);

#endif
