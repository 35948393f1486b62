/**
 * ps: the parameter server, as ranks of its own or shared by the workers.
 *
 * The last config.n_servers ranks of a communicator are servers, the others workers. The
 * parameters, one array of n_elems floats, are cut into pieces of at most 512 KiB that belong to
 * the servers in turns; the optimiser and its state live where the pieces live. One step:
 *
 *     worker                                            server
 *     weir_ps_begin(step)
 *     as ranges get ready: weir_ps_post(gradients)  →   sum of each piece in worker order 0..N-1
 *                                                       update(context, step, weights, sum, …)
 *     weir_ps_wait: new weights are where the       ←   the new weights of the piece
 *                   gradients were
 *
 * Pieces travel by themselves: while some are still being computed others are summed, and others
 * come back. Of those that are ready the one nearest to the end of the array goes first: a backward
 * pass makes the array from its beginning, and the next forward pass needs it from its end. So the
 * gradients of large layers at the back make room for those at the front, and travel while the next
 * forward pass computes these (Jayarajan et al., MLSys 2019, "Priority-based parameter
 * propagation"). Who waits for ranges, from the end to the beginning, has the most of it.
 *
 * All workers start from worker 0's weights (weir_ps_start). Workers see the same weights after
 * each step, bit for bit the ones a serial program computes that sums in worker order.
 *
 * Relaxed (weir_ps_start_relaxed with a staleness N > 0; "stale synchronous parallel", Ho et al.,
 * NIPS 2013): workers do not wait for each other in every step. A server renews the weights with a
 * worker's gradients as soon as they come, by an update of their own, and answers as soon as that
 * worker is no more than N steps ahead of the slowest, piece by piece: who has done c steps holds,
 * of every other worker, at least the first c - N. It holds its own all, and others' later ones as
 * they happened to come: no two runs are alike. Every gradient is applied once. With N = 0 this is
 * the synchronous server, and the same bits. Who asks for weights (weir_ps_pull) when all have done
 * the same number of steps gets them with every gradient in them: that is what to save.
 *
 * An optimiser may need sums over all elements before it renews any (weir_ps_sums: norms of
 * tensors, of which every server has pieces). Then a server waits for all its gradients of a step,
 * measures them, adds up with the other servers what they measured, and only then renews and
 * answers: nothing of a step comes back while its gradients are still being computed.
 *
 * On one host gradients in weir_comm_alloc memory are read, and weights written, by the servers
 * where they are. Between hosts: messages, and a server holds the gradients of all workers for its
 * pieces.
 *
 * With config.wire bf16 or fp16 gradients go, and weights return, as 16 bits between hosts: half
 * the bytes each way. Servers add gradients as f32, and renew and keep weights as f32; the workers
 * compute with rounded ones, all with the same.
 *
 * Without servers every worker serves a shard (weir_ps_shared_post): as an all-reduce with the
 * update in its middle, each worker holding the optimiser's state of its own shard alone.
 *
 * Failure and deadlines are the communicator's (comm.h): a dead worker or server is WEIR_ERR_PEER
 * on every other rank, relaxed or not. Workers' collectives (weir_comm_allreduce, …) do not include
 * servers, and may be called between the calls here, also while pieces are on their way; only
 * weir_comm_alloc may not then.
 */
#ifndef WEIR_COMM_PS_H
#define WEIR_COMM_PS_H

#include "comm/comm.h"

/** What workers tell the servers about a step; the update gets worker 0's, or, if relaxed, that of
 *  the worker whose gradients it gets. */
struct weir_ps_step {
    /** Its number. If relaxed the update gets another: the first step's times the workers, plus how
     *  many updates this piece had since. */
    uint64_t step;
    double learning_rate;
    double n_samples; /**< Global batch: what the summed gradient is a sum over. */
};

/**
 * New weights of one piece, or of one shard. Called on the thread that runs weir_ps_serve, once per
 * step and piece; if relaxed, once per worker, step and piece.
 * @param weights       In/out: elements [first_elem, first_elem + n_elems) of the parameters.
 * @param gradient_sum  Sum over workers, or, if relaxed, one worker's; same range. Borrowed for the
 * call.
 * @return Anything but WEIR_OK ends the service: the communicator fails with it.
 */
typedef weir_status (*weir_ps_update_fn)(void *context, const struct weir_ps_step *step,
                                         float *weights, const float *gradient_sum,
                                         size_t first_elem, size_t n_elems);

/** What the workers told (weir_ps_command), after every update before. Anything but WEIR_OK ends the
 *  service. */
typedef weir_status (*weir_ps_command_fn)(void *context, const struct weir_ps_step *step);

/**
 * Sums over all elements, that updates need. They are made in passes: in each of them `sums` are
 * zeroed, `measure` is called for every piece of this server's, in order, and the servers' sums are
 * added up; then `conclude` is called, with the total in `sums`. Where of each sum all servers but
 * one have 0 the total has the same bits for any number of servers. Updates follow.
 */
struct weir_ps_sums {
    size_t n_passes;
    double *sums; /**< Written until weir_ps_serve returns. */
    size_t n_sums;
    /** Add to the sums what these elements have for them. Parameters as those of an update. */
    void (*measure)(void *context, const struct weir_ps_step *step, size_t i_pass,
                    const float *weights, const float *gradient_sum, size_t first_elem,
                    size_t n_elems);
    void (*conclude)(void *context, size_t i_pass);
};

struct weir_ps_config {
    int idle_timeout_ms;        /**< Longest wait for something to do; 0 = the comm's timeout_ms. */
    weir_ps_command_fn command; /**< NULL: the workers never call weir_ps_command. */
    /** NULL: an update needs nothing but its own elements. Else all servers give one, with as many
     *  passes and sums, and workers are synchronous: UNSUPPORTED otherwise. */
    const struct weir_ps_sums *sums;
};

/** Elements: pieces begin at multiples of it. */
#define WEIR_PS_PIECE_UNIT ((size_t)1024)

/** Which pieces a server has: elements [*out_first, *out_first + *out_n) are the i-th one's.
 *  @return false if there are not so many. Pure. */
bool weir_ps_piece(size_t n_elems, int n_servers, int i_server, size_t i, size_t *out_first,
                   size_t *out_n);

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

/** The same, relaxed: workers may be so many steps apart. All give the same number. */
weir_status weir_ps_start_relaxed(struct weir_comm *comm, float *weights, size_t n_elems,
                                  uint64_t staleness) WEIR_MUST_CHECK;

/**
 * Workers: a step begins; its gradients will be posted. Waits for no other rank.
 * @param step  Borrowed for the call.
 * @return INVALID before weir_ps_start, or if a step is under way.
 */
weir_status weir_ps_begin(struct weir_comm *comm, const struct weir_ps_step *step) WEIR_MUST_CHECK;

/**
 * This range of the step's gradients is complete. Never waits: a callback of the backward pass may
 * call it, one thread at a time. In a step each element is posted once, in ranges and an order that
 * may differ from worker to worker.
 * @param gradients  Element 0 of all; lent until weir_ps_wait returned for the range, which then
 * holds the new weights. Without a copy on one host if in weir_comm_alloc memory.
 * @return INVALID if the range is none, or was posted before.
 */
weir_status weir_ps_post(struct weir_comm *comm, float *gradients, size_t first_elem,
                         size_t n_elems) WEIR_MUST_CHECK;

/** Wait until new weights are where this range's gradients were; all of it must be posted, or will
 *  be by other threads. Any thread. */
weir_status weir_ps_wait(struct weir_comm *comm, size_t first_elem, size_t n_elems) WEIR_MUST_CHECK;
weir_status weir_ps_wait_all(struct weir_comm *comm) WEIR_MUST_CHECK;

/** Would weir_ps_wait return at once? Waits for nothing; any thread. */
bool weir_ps_is_back(struct weir_comm *comm, size_t first_elem, size_t n_elems);

/**
 * Workers, collectively: a whole step at once.
 * @param gradients  n_elems floats, read.
 * @param weights    n_elems floats, overwritten with the new weights; not the gradients.
 * @return INVALID if n_elems is not that of weir_ps_start.
 */
weir_status weir_ps_push_pull(struct weir_comm *comm, const float *gradients, float *weights,
                              size_t n_elems, const struct weir_ps_step *step) WEIR_MUST_CHECK;

/** Workers, collectively, between steps: the servers' weights. */
weir_status weir_ps_pull(struct weir_comm *comm, float *weights, size_t n_elems) WEIR_MUST_CHECK;

/** Are this worker's weights rounded to 16 bits? (config.wire between hosts; servers keep them as
 * f32, and weir_ps_pull gets them so.) */
bool weir_ps_is_narrow(const struct weir_comm *comm);

/** Workers, collectively, between steps: have every server call its config.tell with worker 0's
 *  step. Returns when all have. */
weir_status weir_ps_command(struct weir_comm *comm,
                            const struct weir_ps_step *step) WEIR_MUST_CHECK;

/** A range of a step without servers (a shared step), for weir_ps_shared_post. */
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
 * what the caller computes. `update` is called there, for the caller's slice (weir_comm_slice) of
 * the range, on a copy of the weights: those that the caller computes with stay until it copies the
 * new ones. weir_comm_wait_all waits for it. The busiest link carries 2(P-1)/P of the bytes each
 * way, where one server's carries P times them.
 * @param work  Copied. The gradients are borrowed until weir_comm_wait_all returned.
 * @return As weir_comm_allreduce_post. If `update` fails the communicator fails with its status;
 * the others hear when this rank leaves. Cost: two halves of an all-reduce, and a copy of a slice.
 * No other copy if the gradients lie in weir_comm_alloc memory.
 */
weir_status weir_ps_shared_post(struct weir_comm *comm,
                                const struct weir_ps_work *work) WEIR_MUST_CHECK;

/**
 * Joint steps: of workers that see each other's memory, which those of one host do (without a link
 * that is pretended, weir_comm_emulate_link). When all gradients are there each worker makes the
 * new weights of its slice on all workers: tile by tile, in cache, it sums the workers' gradients
 * in rank order, renews its own weights, and copies them to the others. The state lives as in a
 * shared step. With N parameters, two workers and a momentum 4 N floats pass through memory for
 * each worker, where an all-reduce and an update on each pass 7 N.
 */
struct weir_ps_joint {
    const float *gradients; /**< Element 0 of all, read on all workers. Like the weights
                                 weir_comm_alloc memory, at the same place of it on all. */
    float *weights;         /**< Element 0 of all, equal on all workers. */
    size_t n_elems;
    struct weir_ps_step step;
    /** Called for tiles of the caller's slice, by whoever calls weir_ps_joint_update. */
    weir_ps_update_fn update;
    void *context;
};

/** Can this group take joint steps? The same answer on all workers. */
bool weir_ps_sees_workers(const struct weir_comm *comm);

/**
 * What of [first_elem, first_elem + n_elems) is in the caller's slice of all (weir_comm_slice):
 * new weights on every worker. Waits for nobody: a collective must lie between any worker's last
 * gradient and the first of these calls, and another between the last of them and whatever next
 * reads weights or writes gradients on any worker. Several threads may call, for ranges that do not
 * overlap.
 * @return What `update` returned: the range is then done in part. UNSUPPORTED where workers do not
 * see each other's memory, or not this; nothing was done.
 */
weir_status weir_ps_joint_update(const struct weir_comm *comm, const struct weir_ps_joint *joint,
                                 size_t first_elem, size_t n_elems) WEIR_MUST_CHECK;

/** Workers, collectively: end the servers' weir_ps_serve. */
weir_status weir_ps_stop(struct weir_comm *comm) WEIR_MUST_CHECK;

#endif
