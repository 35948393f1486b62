/**
 * Exchange strategies: how the workers' gradients become the new weights of all workers.
 *
 * A strategy is a table of operations. It is chosen once, when a group of workers is formed
 * (worker_exchange_choose), and kept in the worker. In each step:
 *
 *     worker_exchange_begin                    the step's number, learning rate and batch
 *     post, for each range of gradients        while the backward pass runs, by its threads
 *     wait                                     for the sums that this worker updates from
 *     finish                                   make or request the new weights
 *
 * With *pending weights* a step's new weights arrive after its finish
 * (weir_net_set_pending_weights): the next forward pass waits for each layer's, and has all when
 * its backward pass begins, which posts into the same memory. Code that reads all weights in
 * between (checkpoints, measurements, hooks, the end) calls worker_exchange_wait_weights first.
 *
 * To add a strategy: a file of its own here, a row in exchange.c's choice, and a line in CMake.
 */
#ifndef WEIR_TRAIN_EXCHANGE_EXCHANGE_H
#define WEIR_TRAIN_EXCHANGE_EXCHANGE_H

#include "train/worker.h"

struct exchange_strategy {
    const char *name; /**< As the log says it. */
    const char *doc;  /**< What is updated where, in one line. */

    /** A range of the step's gradients is complete. Threads of the net, one at a time, in order. It
     *  waits for no rank. */
    weir_status (*post)(struct worker *worker, size_t first_elem, size_t n_elems);

    /** Wait until the gradients that this worker updates from are summed. */
    weir_status (*wait)(struct worker *worker);

    /** The step counts. The net has the new weights, and the average includes them, when it
     *  returns; or the weights are pending. */
    weir_status (*finish)(struct worker *worker);

    /* The rest may be NULL: nothing to do. */

    /** Get the weights that are to be saved or exported into the net: f32, with every worker's
     *  gradients applied. Collective, between steps. */
    weir_status (*fetch)(struct worker *worker);

    /** After fetch: back to the weights that training goes on with. */
    void (*resume)(struct worker *worker);

    /** Get the whole optimiser state on every worker. Collective, between steps. */
    weir_status (*gather_states)(struct worker *worker);

    /** Do the workers meet before this step? NULL: before each. */
    bool (*is_synchronous)(const struct worker *worker, uint64_t step, bool is_epoch_begin);
};

extern const struct exchange_strategy exchange_fused;
extern const struct exchange_strategy exchange_local;
extern const struct exchange_strategy exchange_all_reduce;
extern const struct exchange_strategy exchange_sharded;
extern const struct exchange_strategy exchange_shared_memory;
extern const struct exchange_strategy exchange_parameter_server;
extern const struct exchange_strategy exchange_nccl;

/** For `post`: gradients are exchanged later, or not at all. */
weir_status exchange_post_nothing(struct worker *worker, size_t first_elem, size_t n_elems);

/** For `wait`: until all queued collectives are done. */
weir_status exchange_wait_all(struct worker *worker);

/** For `finish`: update all weights from the summed gradients. */
weir_status exchange_update_all(struct worker *worker);

/** For weir_net_update: the new weights lie where the gradients were; copy a range into the net. */
void exchange_copy_weights(void *context, size_t first_elem, size_t n_elems);

/* ---- shards.c: strategies in which each worker updates a shard ------------------------------ */

/** Add a range to the step's buckets. There is room: a bucket holds at least one parameter. */
void exchange_add_bucket(struct worker *worker, size_t first_elem, size_t n_elems, bool is_rest);

/** This worker's shard of a bucket. */
struct worker_bucket exchange_own_shard(const struct worker *worker,
                                        const struct worker_bucket *bucket);

/** All-gather a bucket in the gradients' memory: every worker gets all shards. */
weir_status exchange_gather_bucket(const struct worker *worker, const struct worker_bucket *bucket);

/** A weir_ps_update_fn; the context is the optimiser. */
weir_status exchange_update_shard(void *context, const struct weir_ps_step *step, float *weights,
                                  const float *gradient_sum, size_t first_elem, size_t n_elems);

/** exchange_strategy.gather_states of sharded state. */
weir_status exchange_gather_states(struct worker *worker);

#endif
