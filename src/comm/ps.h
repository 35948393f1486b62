/**
 * ps: the synchronous parameter server, as ranks of its own or shared by the workers.
 *
 * The last config.n_servers ranks of a communicator are servers, the others workers. The
 * parameters, one array of n_elems floats, are cut into as many contiguous shards as there are
 * servers; the optimiser and its state live where the shard lives. One step:
 *
 *     worker                                     server s
 *     weir_ps_push_pull: push gradients    →     sum of its shard in worker order 0..N-1
 *                                                update(context, step, weights, sum, …)
 *     ←  pull new weights                        its shard of the new weights
 *
 * All workers start from worker 0's weights (weir_ps_start). Workers see the same weights after
 * each step, bit for bit the ones a serial program computes that sums in worker order.
 *
 * On one host gradients in weir_comm_alloc memory are read by the servers where they are, and the
 * weights live once in shared memory: a worker's pull is one copy. Between hosts: messages.
 *
 * Without servers every worker serves a shard (weir_ps_shared_step): as an all-reduce with the
 * update in its middle, each worker holding the optimiser's state of its own shard alone.
 *
 * Failure and deadlines are the communicator's (comm.h): a dead worker or server is WEIR_ERR_PEER
 * on every other rank. Workers' collectives (weir_comm_allreduce, …) do not include servers.
 */
#ifndef WEIR_COMM_PS_H
#define WEIR_COMM_PS_H

#include "comm/comm.h"

/** What worker 0 tells the servers about a step; passed to the update callback as it is. */
struct weir_ps_step {
    uint64_t step;
    double learning_rate;
    double n_samples; /**< Global batch: what the summed gradient is a sum over. */
};

/**
 * New weights of one shard. Called on the thread that runs weir_ps_serve, once per step.
 * @param weights       In/out: elements [first_elem, first_elem + n_elems) of the parameters.
 * @param gradient_sum  Sum over workers, same range. Borrowed for the call.
 * @return Anything but WEIR_OK ends the service: the communicator fails with it.
 */
typedef weir_status (*weir_ps_update_fn)(void *context, const struct weir_ps_step *step,
                                         float *weights, const float *gradient_sum,
                                         size_t first_elem, size_t n_elems);

struct weir_ps_config {
    int idle_timeout_ms; /**< Longest wait for the workers' next step; 0 = the comm's timeout_ms. */
};

/**
 * Serve until the workers call weir_ps_stop. Server ranks only.
 * @return WEIR_OK after stop; the communicator's failure; NOMEM (the communicator then fails).
 */
weir_status weir_ps_serve(struct weir_comm *comm, const struct weir_ps_config *config,
                          weir_ps_update_fn update, void *context) WEIR_MUST_CHECK;

/**
 * Workers, collectively, once before the first step: worker 0's weights become the servers' and
 * every worker's.
 * @param weights  n_elems floats: read on worker 0, written on the others.
 */
weir_status weir_ps_start(struct weir_comm *comm, float *weights, size_t n_elems) WEIR_MUST_CHECK;

/**
 * Workers, collectively: push gradients, wait for the update, pull weights.
 * @param gradients  n_elems floats, read; without a copy on one host if in weir_comm_alloc memory.
 * @param weights    n_elems floats, overwritten with the new weights.
 * @param step       Worker 0's counts.
 * @return INVALID if n_elems is not that of weir_ps_start.
 */
weir_status weir_ps_push_pull(struct weir_comm *comm, const float *gradients, float *weights,
                              size_t n_elems, const struct weir_ps_step *step) WEIR_MUST_CHECK;

/**
 * The same step without servers: every worker serves a shard, its slice (weir_comm_slice). Workers
 * must hold the same weights before. The busiest link carries 2(P-1)/P of the bytes each way, where
 * one server's carries P times them.
 * @param gradients  n_elems floats; undefined after it.
 * @param weights    n_elems floats, in/out.
 * @param update     Called once, on the caller's thread, for the caller's slice; not for none.
 * @return What `update` returned, and CANCELLED on the workers whose own succeeded: then weights
 * are as far updated as each got, and the communicator stays good. Cost: two halves of an
 * all-reduce and a short one. No copy if both lie in weir_comm_alloc memory.
 */
weir_status weir_ps_shared_step(struct weir_comm *comm, float *gradients, float *weights,
                                size_t n_elems, const struct weir_ps_step *step,
                                weir_ps_update_fn update, void *context) WEIR_MUST_CHECK;

/** A range of a shared step, for weir_ps_shared_post. */
struct weir_ps_work {
    float *gradients;     /**< Element 0 of all. The range becomes its new weights, here. */
    const float *weights; /**< Element 0 of all, equal on all workers. Read only. */
    size_t first_elem, n_elems;
    struct weir_ps_step step;
    weir_ps_update_fn update; /**< NULL: the range's own slice becomes the sum, no more. */
    void *context;
};

/**
 * Ask for a shared step of one range, carried out by the progress thread in posting order, beside
 * what the caller computes. `update` is called there, for the caller's slice of the range, on a
 * copy of the weights: those that the caller computes with stay until it copies the new ones.
 * weir_comm_wait_all waits for it.
 * @param work  Copied. The gradients are borrowed until weir_comm_wait_all returned.
 * @return As weir_comm_allreduce_post. If `update` fails the communicator fails with its status;
 * the others hear when this rank leaves. Cost: as weir_ps_shared_step, and a copy of a slice.
 */
weir_status weir_ps_shared_post(struct weir_comm *comm,
                                const struct weir_ps_work *work) WEIR_MUST_CHECK;

/** Workers, collectively: end the servers' weir_ps_serve. */
weir_status weir_ps_stop(struct weir_comm *comm) WEIR_MUST_CHECK;

#endif
