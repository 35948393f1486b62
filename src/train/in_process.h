/**
 * Training in this process, by one worker, that leaves a net instead of a file.
 *
 * It has no checkpoints, reports or progress. Otherwise it is the training that weir_train_launch
 * makes with one worker, bit for bit.
 */
#ifndef WEIR_TRAIN_IN_PROCESS_H
#define WEIR_TRAIN_IN_PROCESS_H

#include "train/task.h"

/** The outcome. */
struct train_in_process_result {
    struct weir_net *net; /**< The caller's: weir_net_destroy. */
    struct weir_net_input input;
    double loss; /**< Of the last step. */
};

/**
 * Train to the last step. The calling thread computes with the net's threads.
 *
 * @param task  Open; borrowed.
 * @return UNSUPPORTED with micro_batches; INVALID if the loss is not a number any more; the error
 *         of a damaged picture if the configuration says so; NOMEM; IO. *out is written on success.
 */
weir_status train_in_process(const struct train_task *task, struct train_in_process_result *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
