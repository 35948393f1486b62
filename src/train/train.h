/**
 * train: networks from pictures, by several workers at once, through crashes.
 *
 * Three nouns. A *launcher* (weir_train_launch) starts the ranks of a training on this host, shows
 * its progress, and starts them again from the last checkpoint when one is lost. A *rank*
 * (weir_train_rank) is one process of the group, started by a launcher or by an agent: the first
 * `workers` ranks compute, the others are parameter servers. A *checkpoint* (checkpoint.h) is where
 * the training stands.
 *
 *     weir-worker train --model lenet --data fashion-mnist --workers 2
 *
 * What a step is: the batch of B pictures is shared by the workers; each computes gradients of the
 * mean loss over its share, weighted by its share of the pictures with a label, so that their sum
 * is the gradient of the mean over the whole batch. Sums are taken in rank order and every worker
 * (or the parameter servers) makes the same update, so that weights stay equal bit for bit. A net
 * without batch norm learns the same with any number of workers, up to rounding. Dropout masks are
 * a function of (seed, step, place in the batch). Batch norm normalises over a worker's own share,
 * or one run of it (micro_batches), as everywhere; its running statistics are averaged over the
 * workers after each step, so that all hold the same and a checkpoint does not depend on when it is
 * taken.
 *
 * What is promised: the same configuration, data, back-end and number of workers give the same
 * model, bit for bit, whether or not ranks died on the way.
 */
#ifndef WEIR_TRAIN_TRAIN_H
#define WEIR_TRAIN_TRAIN_H

#include "base/status.h"
#include "train/config.h"

/** A step as one rank saw it. */
struct weir_train_step {
    int rank, attempt;
    uint64_t step; /**< Number of the step that was just done. */
    double loss;   /**< Mean over the whole batch; 0 on a parameter server. */
};

/** For tests and measurements: called in the rank's process after each step. All may be NULL. */
struct weir_train_hooks {
    void (*on_step)(void *context, const struct weir_train_step *step);
    void *context;
};

/**
 * Train with all ranks on this host: fork them, watch them, restart them. Progress goes to standard
 * output. Call it in a process without other threads; SIGINT and SIGTERM stop the training with a
 * checkpoint.
 * @param hooks  May be NULL.
 * @return CANCELLED after such a signal; otherwise what ended the training, as a sentence.
 */
weir_status weir_train_launch(const struct weir_train_config *config,
                              const struct weir_train_hooks *hooks,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Be one rank. Blocks SIGINT and SIGTERM in the calling thread and looks for them between steps.
 * @return PEER or TIMEOUT if another rank was lost, CANCELLED after a signal to any worker (a
 *         checkpoint was written), INVALID if the loss is not a number any more.
 */
weir_status weir_train_rank(const struct weir_train_config *config,
                            const struct weir_train_hooks *hooks,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** `weir-worker train`, `weir-worker evaluate`: argv[0] is the role. The exit status. */
int weir_train_main(int argc, char **argv);
int weir_evaluate_main(int argc, char **argv);

#endif
