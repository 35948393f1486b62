/**
 * Fused update: one worker applies the optimiser and the average to each element where its gradient
 * is made (weir_net_step_and_update). Gradients are never stored.
 */
#ifndef WEIR_TRAIN_EXCHANGE_FUSED_H
#define WEIR_TRAIN_EXCHANGE_FUSED_H

#include "nn/optimizer.h"
#include "train/average.h"
#include "train/task.h"

/** Can one of `n_workers` workers update in its backward pass? If it is alone, takes its batch in
 *  one run, and the optimiser needs no norms. Pure. */
bool train_updates_in_backward(const struct train_task *task, int n_workers);

/** What an update needs to know; all borrowed. */
struct train_fused_update {
    struct weir_optimizer *optimizer;
    struct train_average *average;
    struct weir_net *net;
    double learning_rate;
    uint64_t step;
};

/** Update the weights and the average of a range. A weir_net_apply_fn, called by threads of the
 *  net; `context` is a struct train_fused_update. */
void train_fused_apply(void *context, const struct weir_gradients *gradients);

/** After the step: update the average of running statistics, which have no gradients. */
void train_fused_finish(const struct train_fused_update *update);

#endif
