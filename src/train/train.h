/**
 * train: networks from pictures, by several workers at once, through crashes.
 *
 * Three nouns. A *launcher* (weir_train_launch) starts the ranks of a training on this host, shows
 * its progress, and starts them again from the last checkpoint when one is lost. A *rank*
 * (weir_train_rank) is one process of the group, started by a launcher or by an agent: the first
 * `workers` ranks compute, the others are parameter servers. A *checkpoint* (checkpoint.h) is the
 * training's state on disk.
 *
 *     weir-worker train --model lenet --data fashion-mnist --workers 2
 *
 * A step. The workers share the batch of B pictures. Each computes gradients of the sum of its
 * losses divided by the number of labelled pictures in the whole batch; the sum of these gradients
 * is the gradient of the mean loss. Sums are taken in rank order, and every worker (or the
 * parameter servers) makes the same update, so that weights stay equal bit for bit.
 * exchange/exchange.h has the strategies. A net without batch norm learns the same with any number
 * of workers, up to rounding. Dropout masks are a function of (seed, step, place in the batch).
 * Batch norm normalises over a worker's own share, or one run of it (micro_batches). Its running
 * statistics are averaged over the workers after each step, so that all hold the same, and a
 * checkpoint does not depend on when it is taken.
 *
 * With parameter servers a step begins while weights of the last one are pending: each layer waits
 * for its own. The weights are the same. Code that reads all weights waits for all.
 *
 * Checkpoints are written concurrently (saver.h): a step that is saved waits for a copy in memory,
 * not for the disk. While one is being written the next timed one is not due; the end of an epoch,
 * a stop and the end wait for it.
 *
 * When a rank is lost the others end too, and all start again from the last checkpoint. An elastic
 * group (all-reduce only) does not: the surviving members keep their processes, weights and
 * optimiser, form a new group (comm/elastic.h) and take the same step again with the batch divided
 * again. Batch and learning rate stay; the shares grow. No member has half of the failed step:
 * weights change only after the all-reduce of the losses has shown that every worker has the sum of
 * the gradients, and running statistics are put back. If one is a step ahead after all (UCX does
 * not notify all ranks at the same time) the others take over its state. A joiner is noticed in the
 * vote before each step, and accepted there. Rank 0 leads the group: it shows, reports, saves and
 * registers.
 *
 * Guarantee: the same configuration, data, back-end and number of workers give the same model, bit
 * for bit, whether or not ranks died on the way. An elastic group that lost a member goes on with
 * other shares: all its workers still hold the same bits, and the sums are over the same pictures
 * but in another order; batch norm then sees other shares.
 */
#ifndef WEIR_TRAIN_TRAIN_H
#define WEIR_TRAIN_TRAIN_H

#include "base/status.h"
#include "train/config.h"

/** A step as one rank saw it. */
struct weir_train_step {
    int rank, attempt; /**< As the process was started. */
    int n_workers;     /**< That shared the step. 0 on a parameter server, as all after `step`. */
    uint64_t step;     /**< Number of the step that was just done. */
    double loss;       /**< Mean over the whole batch. */
    const float *weights; /**< After it, in the order of nn's slab. Borrowed for the call. */
    size_t n_weights;
};

/** Called in the rank's process: for launchers, tests and measurements. All may be NULL. */
struct weir_train_hooks {
    /** A worker is about to take its first step. */
    void (*on_ready)(void *context, int rank);
    /** After each step, also a parameter server's. */
    void (*on_step)(void *context, const struct weir_train_step *step);
    void *context;
};

/**
 * Train with all ranks on this host: fork them, watch them, restart them. Progress goes to standard
 * output. Call it in a process without other threads. SIGINT and SIGTERM stop the training with a
 * checkpoint.
 *
 * @param hooks  May be NULL.
 * @return CANCELLED after such a signal; otherwise the root cause as a sentence.
 */
weir_status weir_train_launch(const struct weir_train_config *config,
                              const struct weir_train_hooks *hooks,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Be one rank. It blocks SIGINT and SIGTERM in the calling thread and checks for them between
 * steps.
 *
 * @return PEER or TIMEOUT if another rank was lost; CANCELLED after a signal to any worker (a
 *         checkpoint was written); INVALID if the loss is not a number any more.
 */
weir_status weir_train_rank(const struct weir_train_config *config,
                            const struct weir_train_hooks *hooks,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** `weir-worker train` and `weir-worker evaluate`; argv[0] is the role. @return The exit status. */
int weir_train_main(int argc, char **argv);
int weir_evaluate_main(int argc, char **argv);

#endif
