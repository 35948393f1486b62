/**
 * comm: a fixed group of ranks that sum and exchange arrays, and notice when one of them dies.
 *
 * Three nouns. A *rendezvous* is where the ranks of one job find each other (a folder or an
 * address) and prove that they know the job's secret. A *communicator* (struct weir_comm) is the
 * group that results: a rank number, a size, and collective operations. A *transport* carries them:
 * shared memory when all ranks run on one host ("shm"), messages between hosts ("ucx" over RDMA,
 * else "tcp"), or both when a host holds several ranks ("hier"). Parameter servers (ps.h) use the
 * same group; elastic.h has groups that survive the loss of a rank.
 *
 *     struct weir_comm *comm;
 *     float *gradients;
 *     weir_comm_create(&(struct weir_comm_config){.rendezvous = "file:///jobs/7",
 *                                                 .secret = secret,
 *                                                 .rank = rank,
 *                                                 .size = 4,
 *                                                 .timeout_ms = 30000}, &comm, err);
 *     weir_comm_alloc(comm, n * sizeof *gradients, (void **)&gradients);
 *     for each step:
 *         run the backward pass; as ranges become complete:
 *             weir_comm_allreduce_post(comm, gradients + first, n_ready);
 *         status = weir_comm_wait_all(comm);      // gradients hold the sums now
 *     weir_comm_destroy(comm);
 *
 * Reproducible sums. Each sum is taken element by element, in an order that depends only on the
 * number of ranks, the size and the algorithm. It is therefore bit-equal on all ranks and in every
 * run. In shared memory, and with "flat" and "direct" (which "auto" uses up to 16 hosts unless it
 * was tuned), the order is rank order, ((x0 + x1) + x2) + …: both transports give the same bits.
 * Where hosts hold several ranks, each host's sum is taken in rank order, and then the hosts' sums
 * in the order of their first ranks. core/schedule.h has the orders of the other algorithms.
 *
 * 16-bit transfers. F32 may be sent between hosts as bf16 or fp16, at half the bytes; additions are
 * in f32. All ranks still hold the same bits: the rank that made a sum keeps the rounded value that
 * it sent. With unit roundoff u = 2^-8 (bf16) or 2^-11 (fp16) and H successive roundings ("direct"
 * 2, "ring" P, "halving" and "tree" at most 2 + log2 P) the error beyond f32's own is at most
 * ((1 + u)^H - 1) * sum |xi|; fp16 adds up to 6e-5 below its normal range and is infinite above
 * 65504. "flat" sends f32.
 *
 * Order. All ranks make the same calls with the same sizes in the same order. Queued and blocking
 * operations run in the order of their calls. Ranks that disagree get INVALID (messages: or
 * TIMEOUT, where one waits for what another never sends).
 *
 * Failure. Every call ends by its deadline, config.timeout_ms. With messages a quarter of that, at
 * most 2 s, comes on top: the ranks are asked who is late, so that the one at fault is named; where
 * hosts hold several ranks a call takes at most three times as long and 4 s. A rank that dies or
 * leaves is WEIR_ERR_PEER on all others at once (shared memory: a few ms; TCP: about 10 ms). A rank
 * that is frozen is WEIR_ERR_TIMEOUT. weir_comm_failure names the rank. A failed communicator stays
 * failed: every later call returns the same status. Only weir_comm_destroy, weir_comm_failure and,
 * in an elastic group, weir_comm_regroup are of use then. Buffers of failed calls are undefined.
 *
 * Threads. Any thread may call; calls of several threads run one after the other.
 * weir_comm_allreduce_post never waits for another rank. A communicator has a progress thread,
 * which runs queued operations, and in shared memory a watcher thread, which sleeps until a rank
 * dies.
 */
#ifndef WEIR_COMM_COMM_H
#define WEIR_COMM_COMM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most ranks of one communicator; more are INVALID. */
#define WEIR_COMM_MAX_RANKS 256

/** Most rules in config.algorithm; more are INVALID. */
#define WEIR_COMM_MAX_RULES 16

/** Bytes that hold the text of any such list of rules. */
#define WEIR_COMM_ALGORITHM_BYTES 512

/** Most queued operations that are not done; weir_comm_allreduce_post beyond it is LIMIT. */
#define WEIR_COMM_MAX_QUEUED 4096

struct weir_comm;

struct weir_comm_config {
    /** "file:///dir": rank 0 listens on a free port and publishes it in that folder (one host, or a
     *  shared file system). "tcp://host:port": rank 0 listens there. Ignored when size is 1. */
    const char *rendezvous;
    const char *secret; /**< The job's secret: any text but the empty one. It is never sent. */
    const char *job_id; /**< Part of the published file's name; [A-Za-z0-9_.-]; NULL: "job". */
    int attempt;        /**< Also part of it: the job's restart count; tells old files apart. */
    int rank, size;     /**< 0 <= rank < size <= WEIR_COMM_MAX_RANKS. */
    int n_servers;      /**< The last n_servers ranks are parameter servers (ps.h); else 0. */
    /** The group can be rebuilt when ranks are lost or join (elastic.h). It then needs a rendezvous
     *  even with size 1, n_servers is 0, and the texts are borrowed until the group's end. */
    bool is_elastic;
    int timeout_ms;      /**< Deadline of each call; 0: 60 000. */
    int join_timeout_ms; /**< Deadline of weir_comm_create; 0: timeout_ms. */
    /** "auto" (or NULL): shared memory within a host; between hosts UCX if all ranks have RDMA,
     *  else TCP. "shm"; "tcp": sockets, on ports that the kernel chooses; "ucx"; "rc" and "dc":
     *  UCX over nothing but that transport. */
    const char *transport;
    /** Algorithm of all-reduces between hosts. "auto" (or NULL) chooses by size. "flat", "direct",
     *  "ring", "halving", "tree", or several by growing size: "flat:8K:direct:4M:ring#512K" is flat
     *  up to 8 KiB, direct up to 4 MiB, and ring in messages of at most 512 KiB above. Rank 0's
     *  value applies to all. */
    const char *algorithm;
    /** Tuning file that "auto" chooses by (weir-worker bench-allreduce --tune); NULL: a built-in
     *  table. Rank 0 reads it. */
    const char *tuning;
    /** Format of F32 between hosts: "f32" (or NULL), "bf16", "fp16". Rank 0's value applies. */
    const char *wire;
    /** Ranks with different names (NULL counts as a name) are treated as if on different hosts: for
     *  tests and measurements. */
    const char *host;
};

/** Element types of sums. I64 wraps around. */
enum weir_comm_type { WEIR_COMM_F32, WEIR_COMM_F64, WEIR_COMM_I64 };

/** Bytes of one element. */
size_t weir_comm_type_size(enum weir_comm_type type);

/**
 * Meet the other ranks and build the group. Collective: it returns when all ranks have come. "auto"
 * takes shared memory if all ranks run on one host (same boot, user, user and pid namespace).
 *
 * @param config  Borrowed for the call. All ranks give the same values except `rank`.
 * @return INVALID (config); UNAUTH if the secrets differ; TIMEOUT naming the ranks that did not
 *         come; PEER if one died while joining; UNSUPPORTED ("shm" across hosts; "rc" or "dc"
 *         without such a device); IO; NOMEM. *out is written on success only.
 * Cost: some ms after the last rank came.
 */
weir_status weir_comm_create(const struct weir_comm_config *config, struct weir_comm **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Leave the group and free everything, memory of weir_comm_alloc included. It does not wait for
 * other ranks, but with messages up to 1 s until they leave too, so that nothing sent is lost.
 * Queued operations are cancelled. Ranks that still wait for this one get WEIR_ERR_PEER. No other
 * call may be running. NULL is accepted.
 */
void weir_comm_destroy(struct weir_comm *comm);

int weir_comm_rank(const struct weir_comm *comm);
int weir_comm_size(const struct weir_comm *comm);

/** Ranks that take part in collectives: size - n_servers. */
int weir_comm_n_workers(const struct weir_comm *comm);

/** "shm", "tcp", "ucx", or "hier": shared memory within hosts and messages between them. */
const char *weir_comm_transport(const struct weir_comm *comm);

/**
 * Zeroed, page-aligned memory that collectives use in place: shared between the ranks of a host, or
 * registered with the network. Collective among workers: all ask for the same size. It belongs to
 * the communicator until destroy. Call it once per buffer, not per step.
 *
 * @return NOMEM on all ranks if one has none (the communicator stays good).
 */
weir_status weir_comm_alloc(struct weir_comm *comm, size_t bytes, void **out) WEIR_MUST_CHECK;

/**
 * All-reduce: every rank ends with the element-wise sum of all ranks' buffers. It works in place
 * without a copy if buf lies in weir_comm_alloc memory on all ranks, and with one copy if on none.
 *
 * @param buf      In/out; borrowed for the call.
 * @param n_elems  Elements, not bytes, equal on all ranks; 0 is allowed.
 * Cost: shared memory 2 barriers, and each byte is read P times (up to 8 KiB: 1 barrier and a
 * copy); messages 2(P-1)/P of the bytes each way.
 */
weir_status weir_comm_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                                enum weir_comm_type type) WEIR_MUST_CHECK;

/**
 * The slice of n_elems elements that belongs to a worker in the two calls below; it may be empty.
 * Slices follow each other in rank order, and are equal if 16 elements per worker divide n_elems.
 */
void weir_comm_slice(const struct weir_comm *comm, size_t n_elems, int rank, size_t *out_first,
                     size_t *out_n);

/**
 * Reduce-scatter: every rank ends with the sum of all ranks' buffers in its own slice of buf, taken
 * in rank order; the rest of buf is undefined then. In place as weir_comm_allreduce; F32 is sent as
 * config.wire. Cost: half of an all-reduce.
 */
weir_status weir_comm_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                                     enum weir_comm_type type) WEIR_MUST_CHECK;

/** All-gather: every rank ends with all ranks' slices, bit for bit. Cost: half of an all-reduce. */
weir_status weir_comm_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                                enum weir_comm_type type) WEIR_MUST_CHECK;

/** Every rank ends with root's bytes. */
weir_status weir_comm_broadcast(struct weir_comm *comm, void *buf, size_t bytes,
                                int root) WEIR_MUST_CHECK;

/** Returns when all ranks have called it. */
weir_status weir_comm_barrier(struct weir_comm *comm) WEIR_MUST_CHECK;

/**
 * Queue an F32 all-reduce of buf. The progress thread runs queued operations in the order of the
 * calls. Any thread may call, a callback of the backward pass included: it never waits for a rank.
 *
 * @param buf  Borrowed until weir_comm_wait_all returns; do not touch it before.
 * @return LIMIT if WEIR_COMM_MAX_QUEUED are queued (nothing was added); the failure, if failed.
 */
weir_status weir_comm_allreduce_post(struct weir_comm *comm, float *buf,
                                     size_t n_elems) WEIR_MUST_CHECK;

/**
 * Use this algorithm from the next all-reduce on. For measurements. All ranks make the same call
 * between the same collectives.
 *
 * @param algorithm  As config.algorithm; "auto": what config chose at first.
 * @return INVALID.
 */
weir_status weir_comm_set_algorithm(struct weir_comm *comm, const char *algorithm,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Does this group have a choice of algorithms? Not in shared memory, nor with one rank. */
bool weir_comm_has_algorithms(const struct weir_comm *comm);

/**
 * The algorithm that carries an all-reduce of so many bytes, as config.algorithm spells it
 * ("ring#256K"); "in-place" where there is no choice.
 *
 * @param out  The text, cut to fit into out_size bytes.
 */
void weir_comm_algorithm(const struct weir_comm *comm, uint64_t bytes, char *out, size_t out_size);

/**
 * Record in a tuning file that this algorithm is the fastest of groups like this one: same
 * transport, numbers of ranks and hosts, and wire format. It replaces what the file says of them.
 * The file is created if it is missing, and replaced atomically.
 *
 * @param algorithm  As config.algorithm, but not "auto".
 * @return INVALID (algorithm, or the file is of another kind); UNSUPPORTED without a choice of
 *         algorithms; IO. On error the file is as before.
 */
weir_status weir_comm_tuning_save(const struct weir_comm *comm, const char *path,
                                  const char *algorithm, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Emulate links of this speed between ranks, in each direction, from now on. For measurements. An
 * all-reduce of S bytes ends when 2(P-1)/P * S bytes have passed this rank's link, one after the
 * other; a reduce-scatter or an all-gather when half of them have. All workers' pieces pass a
 * parameter server's link one after the other, in both directions at the same time. Queued
 * operations still overlap with the caller's computation. All ranks make the same call between the
 * same collectives.
 *
 * @param bytes_per_s  0: no emulation. INFINITY: transfers take no time, but workers do not see
 *                     each other's memory (ps.h, joint steps).
 */
void weir_comm_emulate_link(struct weir_comm *comm, double bytes_per_s);

/** Wait until every queued operation is done. Each has its own deadline. @return The failure, if
 *  failed. */
weir_status weir_comm_wait_all(struct weir_comm *comm) WEIR_MUST_CHECK;

/**
 * Why the communicator failed.
 *
 * @param out_rank  The rank at fault, or -1 if none can be named. May be NULL.
 * @param err       The reason as a sentence. May be NULL.
 * @return The failure's status; WEIR_OK if it has not failed.
 */
weir_status weir_comm_failure(struct weir_comm *comm, int *out_rank, struct weir_error *err);

#endif
