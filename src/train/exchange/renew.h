/**
 * The update of a worker that owns the whole step: the optimiser's and the average's rules of an
 * element, applied where its gradient is made (weir_net_step_and_update).
 */
#ifndef WEIR_TRAIN_RENEW_H
#define WEIR_TRAIN_RENEW_H

#include "nn/optimizer.h"
#include "train/average.h"
#include "train/task.h"

/** May a worker of `n_workers` update where gradients are made? If nobody else has a part in the
 *  gradients, the batch is taken at once, and the rule needs no norms. */
bool train_updates_in_backward(const struct train_task *task, int n_workers);

struct train_renewal {
    struct weir_optimizer *optimizer;
    struct train_average *average;
    struct weir_net *net;
    double learning_rate;
    uint64_t step;
};

/** A weir_net_apply_fn; `context` is a struct train_renewal. */
void train_renew(void *context, const struct weir_gradients *gradients);

/** What no gradient belongs to, after the step: the average of running statistics. */
void train_renew_statistics(const struct train_renewal *renewal);

#endif
