/**
 * ps: the parameter server, as ranks of its own or sharded over the workers.
 *
 * The last config.n_servers ranks of a communicator are servers, the others workers. The
 * parameters, one array of n_elems floats, are cut into pieces of at most 512 KiB that are assigned
 * to the servers round robin. The optimiser and its state live where the pieces live. One step:
 *
 *     worker                                            server
 *     weir_ps_begin(step)
 *     as ranges get ready: weir_ps_post(gradients)  →   sum of each piece in worker order 0..N-1
 *                                                       update(context, step, weights, sum, …)
 *     weir_ps_wait: new weights are where the       ←   the new weights of the piece
 *                   gradients were
 *
 * Pieces travel independently: while some are still being computed, others are summed and others
 * come back. Of the ready pieces the one nearest to the end of the array goes first: a backward
 * pass makes the array from its beginning, and the next forward pass needs it from its end. So
 * gradients of large late layers do not delay those of early layers, and travel while the next
 * forward pass computes the early layers (Jayarajan et al., "Priority-based parameter propagation",
 * MLSys 2019). A caller that waits for ranges from the end to the beginning gains most.
 *
 * All workers start from worker 0's weights (weir_ps_start). After each step they see the same
 * weights, bit for bit those of a serial program that sums in worker order.
 *
 * Relaxed mode (weir_ps_start_relaxed with a staleness N > 0) is the stale synchronous parallel
 * model (Ho et al., NIPS 2013): workers do not wait for each other in every step. A server updates
 * the weights with a worker's gradients as soon as they come, and replies, piece by piece, as soon
 * as that worker is at most N steps ahead of the slowest. A worker that has done c steps has, of
 * each other worker, at least the first c - N; it has all of its own, and some later ones of the
 * others, which differ from run to run. Each gradient is applied once. N = 0 is the synchronous
 * server, with the same bits. weir_ps_pull, when all workers have done the same number of steps,
 * returns the weights with every gradient applied: those are the ones to save.
 *
 * An optimiser may need sums over all elements before it updates any (weir_ps_sums: norms of
 * tensors whose pieces lie on several servers). A server then waits for all its gradients of a
 * step, computes its part of the sums, adds them up with the other servers, and only then updates
 * and replies. Nothing of a step comes back while its gradients are still being computed.
 *
 * On one host the servers read gradients, and write weights, where they lie in weir_comm_alloc
 * memory. Between hosts they travel as messages, and a server holds all workers' gradients of its
 * pieces. With config.wire "bf16" or "fp16" gradients and weights travel as 16 bits between hosts,
 * half the bytes in each direction. Servers sum, update and keep f32; workers compute with the
 * rounded weights, all with the same.
 *
 * Without servers every worker serves a shard (weir_ps_shared_post): an all-reduce with the update
 * in its middle, where each worker holds the optimiser's state of its own shard only (ZeRO stage 1,
 * Rajbhandari et al., SC 2020).
 *
 * Failures and deadlines are the communicator's (comm.h): a dead worker or server is WEIR_ERR_PEER
 * on every other rank, relaxed or not. Collectives among workers (weir_comm_allreduce, …) do not
 * include servers. They may be called between the calls here, also while pieces travel; only
 * weir_comm_alloc may not.
 */
#ifndef WEIR_COMM_PS_H
#define WEIR_COMM_PS_H

#include "comm/comm.h"

/** What workers tell the servers about a step. The update gets worker 0's; in relaxed mode that of
 *  the worker whose gradients it gets. */
struct weir_ps_step {
    /** Number of the step. In relaxed mode the update gets the first step's number times the
     *  workers plus the number of updates that this piece has had since. */
    uint64_t step;
    double learning_rate;
    double n_samples; /**< Global batch: what the summed gradient is a sum over. */
};

/**
 * Make the new weights of one piece, or of one shard. The thread in weir_ps_serve calls it once per
 * step and piece; in relaxed mode once per worker, step and piece.
 *
 * @param weights       In/out: elements [first_elem, first_elem + n_elems) of the parameters.
 * @param gradient_sum  Sum over workers, or in relaxed mode one worker's gradients; same range.
 *                      Borrowed for the call.
 * @return Anything but WEIR_OK ends the service: the communicator fails with it.
 */
typedef weir_status (*weir_ps_update_fn)(void *context, const struct weir_ps_step *step,
                                         float *weights, const float *gradient_sum,
                                         size_t first_elem, size_t n_elems);

/** Carry out a command of the workers (weir_ps_command), after every earlier update. Anything but
 *  WEIR_OK ends the service. */
typedef weir_status (*weir_ps_command_fn)(void *context, const struct weir_ps_step *step);

/**
 * Sums over all elements that updates need, computed in passes. In each pass `sums` are zeroed,
 * `measure` is called for every piece of this server in order, the servers' sums are added up, and
 * `conclude` is called with the totals in `sums`. Updates follow. A total of which all servers but
 * one have 0 has the same bits for any number of servers.
 */
struct weir_ps_sums {
    size_t n_passes;
    double *sums; /**< Borrowed, and written, until weir_ps_serve returns. */
    size_t n_sums;
    /** Add the contribution of these elements to the sums. Parameters as those of an update. */
    void (*measure)(void *context, const struct weir_ps_step *step, size_t i_pass,
                    const float *weights, const float *gradient_sum, size_t first_elem,
                    size_t n_elems);
    void (*conclude)(void *context, size_t i_pass);
};

struct weir_ps_config {
    int idle_timeout_ms;        /**< Longest wait for something to do; 0: the comm's timeout_ms. */
    weir_ps_command_fn command; /**< NULL: the workers never call weir_ps_command. */
    /** NULL: an update needs only its own elements. Else all servers give the same numbers of
     *  passes and sums, and workers are synchronous: relaxed ones are UNSUPPORTED. */
    const struct weir_ps_sums *sums;
};

/** Elements. Pieces begin at multiples of it. */
#define WEIR_PS_PIECE_UNIT ((size_t)1024)

/** The i-th piece of a server: elements [*out_first, *out_first + *out_n). Pure.
 *  @return false if it has fewer pieces. */
bool weir_ps_piece(size_t n_elems, int n_servers, int i_server, size_t i, size_t *out_first,
                   size_t *out_n);

/**
 * Serve until the workers call weir_ps_stop. Server ranks only.
 *
 * @param config, context  Borrowed until it returns. Callbacks run on the calling thread.
 * @return WEIR_OK after stop; the communicator's failure; NOMEM (the communicator then fails).
 */
weir_status weir_ps_serve(struct weir_comm *comm, const struct weir_ps_config *config,
                          weir_ps_update_fn update, void *context) WEIR_MUST_CHECK;

/**
 * Give worker 0's weights to the servers and to every worker. Workers, collectively, once before
 * the first step.
 *
 * @param weights  n_elems floats: read on worker 0, written on the others.
 */
weir_status weir_ps_start(struct weir_comm *comm, float *weights, size_t n_elems) WEIR_MUST_CHECK;

/** The same in relaxed mode: workers may be `staleness` steps apart. All give the same number. */
weir_status weir_ps_start_relaxed(struct weir_comm *comm, float *weights, size_t n_elems,
                                  uint64_t staleness) WEIR_MUST_CHECK;

/**
 * Begin a step, whose gradients will be posted. Workers. It waits for no other rank.
 *
 * @param step  Borrowed for the call.
 * @return INVALID before weir_ps_start, or while another step is unfinished.
 */
weir_status weir_ps_begin(struct weir_comm *comm, const struct weir_ps_step *step) WEIR_MUST_CHECK;

/**
 * Hand over a range of the step's gradients that is complete. It never waits: a callback of the
 * backward pass may call it, from one thread at a time. In a step each element is posted once, in
 * ranges and an order that may differ from worker to worker.
 *
 * @param gradients  Element 0 of all. The range is lent until weir_ps_wait returns for it; then it
 *                   holds the new weights. No copy is made on one host if it is weir_comm_alloc
 *                   memory.
 * @return INVALID if the range is out of bounds or was posted before.
 */
weir_status weir_ps_post(struct weir_comm *comm, float *gradients, size_t first_elem,
                         size_t n_elems) WEIR_MUST_CHECK;

/** Wait until the new weights are where this range's gradients were. All of the range must be
 *  posted, or other threads must be going to post it. Any thread. */
weir_status weir_ps_wait(struct weir_comm *comm, size_t first_elem, size_t n_elems) WEIR_MUST_CHECK;
weir_status weir_ps_wait_all(struct weir_comm *comm) WEIR_MUST_CHECK;

/** Would weir_ps_wait return at once? It does not wait. Any thread. */
bool weir_ps_is_back(struct weir_comm *comm, size_t first_elem, size_t n_elems);

/**
 * Do a whole step in one call. Workers, collectively.
 *
 * @param gradients  n_elems floats, read.
 * @param weights    n_elems floats, overwritten with the new weights; must not be the gradients.
 * @return INVALID if n_elems is not that of weir_ps_start.
 */
weir_status weir_ps_push_pull(struct weir_comm *comm, const float *gradients, float *weights,
                              size_t n_elems, const struct weir_ps_step *step) WEIR_MUST_CHECK;

/** Get the servers' weights. Workers, collectively, between steps. */
weir_status weir_ps_pull(struct weir_comm *comm, float *weights, size_t n_elems) WEIR_MUST_CHECK;

/** Are this worker's weights rounded to 16 bits (config.wire, between hosts)? Servers keep f32, and
 *  weir_ps_pull returns f32. */
bool weir_ps_is_narrow(const struct weir_comm *comm);

/** Have every server call its config.command with worker 0's step. Workers, collectively, between
 *  steps. It returns when all servers have done so. */
weir_status weir_ps_command(struct weir_comm *comm,
                            const struct weir_ps_step *step) WEIR_MUST_CHECK;

/** One range of a step without servers (a shared step), for weir_ps_shared_post. */
struct weir_ps_work {
    float *gradients;     /**< Element 0 of all. The range becomes its new weights, here. */
    const float *weights; /**< Element 0 of all, equal on all workers. Read only. */
    size_t first_elem, n_elems;
    struct weir_ps_step step;
    weir_ps_update_fn update; /**< NULL: the own slice of the range becomes the sum only. */
    void *context;
};

/**
 * Queue a shared step of one range. The progress thread runs it in the order of the calls,
 * concurrently with the caller's computation. It calls `update` for the caller's slice
 * (weir_comm_slice) of the range, on a copy of the weights: the weights that the caller computes
 * with stay until it copies the new ones. weir_comm_wait_all waits for it. The busiest link carries
 * 2(P-1)/P of the bytes each way, where a single server's would carry P times the bytes.
 *
 * @param work  Copied. The gradients are borrowed until weir_comm_wait_all returns.
 * @return As weir_comm_allreduce_post. If `update` fails the communicator fails with its status;
 *         the other ranks notice when this one leaves.
 * Cost: two halves of an all-reduce and a copy of a slice; no other copy if the gradients are
 * weir_comm_alloc memory.
 */
weir_status weir_ps_shared_post(struct weir_comm *comm,
                                const struct weir_ps_work *work) WEIR_MUST_CHECK;

/**
 * Joint steps, for workers that see each other's memory: those of one host, unless a link is
 * emulated (weir_comm_emulate_link). When all gradients are complete, each worker makes the new
 * weights of its slice on all workers: tile by tile, in cache, it sums the workers' gradients in
 * rank order, updates its own weights, and copies them to the others. The optimiser's state is
 * sharded as in a shared step. With N parameters, two workers and momentum, 4 N floats pass through
 * memory for each worker, where an all-reduce and an update on each pass 7 N.
 */
struct weir_ps_joint {
    /** Element 0 of all, read on all workers. Like the weights it is weir_comm_alloc memory, at the
     *  same offset on all workers. */
    const float *gradients;
    float *weights; /**< Element 0 of all, equal on all workers. */
    size_t n_elems;
    struct weir_ps_step step;
    /** Called for tiles of the caller's slice, on the thread in weir_ps_joint_update. */
    weir_ps_update_fn update;
    void *context;
};

/** Can this group do joint steps? The same answer on all workers. */
bool weir_ps_sees_workers(const struct weir_comm *comm);

/**
 * Make the new weights, on every worker, of the part of [first_elem, first_elem + n_elems) that is
 * in the caller's slice (weir_comm_slice). It waits for no rank. A collective must lie between any
 * worker's last gradient and the first of these calls, and another between the last of them and
 * whatever next reads weights or writes gradients on any worker. Several threads may call, for
 * ranges that do not overlap.
 *
 * @return What `update` returned: part of the range is done then. UNSUPPORTED where workers do not
 *         see each other's memory, or not this buffer; nothing was done then.
 */
weir_status weir_ps_joint_update(const struct weir_comm *comm, const struct weir_ps_joint *joint,
                                 size_t first_elem, size_t n_elems) WEIR_MUST_CHECK;

/** End the servers' weir_ps_serve. Workers, collectively. */
weir_status weir_ps_stop(struct weir_comm *comm) WEIR_MUST_CHECK;

#endif
