/**
 * Solo: a training in this process, by one worker, that leaves a net instead of a file. Without
 * checkpoints, reports or progress; otherwise the training that weir_train_launch makes with one
 * worker, bit for bit.
 */
#ifndef WEIR_TRAIN_SOLO_H
#define WEIR_TRAIN_SOLO_H

#include "train/task.h"

/** What is there after training. */
struct train_solo {
    struct weir_net *net; /**< The caller's: weir_net_destroy. */
    struct weir_net_input input;
    double loss; /**< Of the last step. */
};

/**
 * @return UNSUPPORTED with micro_batches; INVALID if the loss is not a number any more; the error
 * of a damaged picture if the configuration says so; NOMEM, IO.
 */
weir_status train_solo(const struct train_task *task, struct train_solo *out,
                       struct weir_error *err) WEIR_MUST_CHECK;

#endif
