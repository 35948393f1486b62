/**
 * comm: a fixed group of ranks that add up and hand round arrays, and notice when one of them dies.
 *
 * Three nouns. A `rendezvous` is where the ranks of one job find each other (a folder or an
 * address) and prove that they know the job's secret. A `weir_comm` is the group that comes out of
 * it: a rank number, a size, and collectives. A `transport` carries them: shared memory when all
 * ranks live on one host ("shm"), messages between hosts (RDMA by "ucx", else "tcp"), both when
 * hosts hold several ranks ("hier"). A parameter server (ps.h) uses the same group.
 *
 *     struct weir_comm *comm;
 *     weir_comm_create(&(struct weir_comm_config){.rendezvous = "file:///jobs/7", .secret = secret,
 *                          .rank = rank, .size = 4, .timeout_ms = 30000}, &comm, err);
 *     float *gradients;  weir_comm_alloc(comm, n * sizeof *gradients, (void **)&gradients);
 *     for each step:
 *         backward, and as ranges get ready: weir_comm_allreduce_post(comm, gradients + i,
 * n_ready); status = weir_comm_wait_all(comm);      // gradients now hold the sums
 *     weir_comm_destroy(comm);
 *
 * Same result everywhere: every sum is taken element by element in an order that depends on nothing
 * but the number of ranks, the size and the algorithm, so it is bit-equal on all ranks and in every
 * run. In shared memory, and with "flat" and "direct" (what "auto" takes up to 16 hosts unless it
 * was tuned), it is rank order, ((x0 + x1) + x2) + …: the same bits on both transports. Where hosts
 * hold several ranks each host's sum is taken in rank order, and the sums of the hosts in the order
 * of their first ranks. Orders of the other algorithms: schedule.h.
 *
 * Sums of F32 may be sent as bf16 or fp16 between hosts, at half the bytes; they are added as f32.
 * All ranks still hold the same bits: also who made a sum keeps what it sent. With u = 2^-8 (bf16)
 * or 2^-11 (fp16) and H roundings in turn ("direct" 2, "ring" P, "halving" and "tree" at most
 * 2 + log2 P) the error is at most ((1 + u)^H - 1) * sum |xi| beside f32's own, fp16's below 6e-5
 * apart; fp16 is infinite above 65504. "flat" sends f32.
 *
 * Order: all ranks make the same calls with the same sizes in the same order; posted and blocking
 * calls are carried out in the order in which they were made. Ranks that disagree get INVALID
 * (messages: or TIMEOUT, where one waits for what the other never sends).
 *
 * Failure: every call ends by its deadline (config.timeout_ms; messages: and a quarter of it, at
 * most 2 s, in which the ranks are asked who is late, so that nobody is blamed for another; where
 * hosts hold several ranks at most three times as long and 4 s). A rank that dies or leaves is
 * WEIR_ERR_PEER on all others at once (shared memory: a few ms; TCP: about 10 ms); one that is
 * frozen is WEIR_ERR_TIMEOUT. weir_comm_failure names the rank. A failed communicator stays failed:
 * every later call returns the same status, and only weir_comm_destroy, weir_comm_failure and, in
 * an elastic group, weir_comm_regroup (elastic.h) are of use. Buffers of calls that failed hold
 * undefined values.
 *
 * Threads: any thread may call; calls of several threads take turns. weir_comm_allreduce_post never
 * waits for another rank. Each communicator has a progress thread (it runs what was posted), and in
 * shared memory a watcher thread (it sleeps until a rank dies).
 */
#ifndef WEIR_COMM_COMM_H
#define WEIR_COMM_COMM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most ranks of one communicator; more are INVALID. */
#define WEIR_COMM_MAX_RANKS 256

/** Most rules by size of a text config.algorithm; more are INVALID. */
#define WEIR_COMM_MAX_RULES 16

/** Room for such a text. */
#define WEIR_COMM_ALGORITHM_BYTES 512

/** Most posted and unfinished all-reduces; weir_comm_allreduce_post beyond it is LIMIT. */
#define WEIR_COMM_MAX_QUEUED 4096

struct weir_comm;

struct weir_comm_config {
    /** "file:///dir": rank 0 listens on a free port and publishes it in that folder (one host, or a
     *  shared file system). "tcp://host:port": rank 0 listens there. Ignored when size is 1. */
    const char *rendezvous;
    const char *secret; /**< Job secret, any text but the empty one; never sent. */
    const char *job_id; /**< Part of the published file's name; [A-Za-z0-9_.-]; NULL = "job". */
    int attempt;        /**< Ditto: the job's restart count, so that old files are not met. */
    int rank, size;     /**< 0 <= rank < size <= WEIR_COMM_MAX_RANKS. */
    int n_servers;      /**< The last n_servers ranks are parameter servers (ps.h); else 0. */
    /** The group can be made anew when ranks are lost or come (elastic.h). Size 1 needs a
     * rendezvous then too, n_servers is 0, and the texts are borrowed until the group's end. */
    bool is_elastic;
    int timeout_ms;      /**< Deadline of each call; 0 = 60 000. */
    int join_timeout_ms; /**< Deadline of weir_comm_create; 0 = timeout_ms. */
    /** "auto" (or NULL): shared memory within a host; between hosts UCX, if all ranks have RDMA,
     *  else TCP. "shm"; "tcp": sockets, of which the kernel chooses the ports; "ucx", or "rc",
     * "dc": UCX over nothing but that. */
    const char *transport;
    /** Of all-reduces between hosts: "auto" (or NULL) chooses by size; "flat", "direct", "ring",
     *  "halving", "tree", or these by growing size: "flat:8K:direct:4M:ring#512K" is flat up to
     *  8 KiB …, ring in messages of at most 512 KiB above 4 MiB. Rank 0's counts. */
    const char *algorithm;
    /** Tuning file that "auto" chooses by (weir-worker bench-allreduce --tune); NULL: a built-in
     *  table. Rank 0 reads it. */
    const char *tuning;
    /** What F32 sums are sent as between hosts: "f32" (or NULL), "bf16", "fp16". Rank 0's counts.
     */
    const char *wire;
    /** Ranks that give different names (NULL is one too) are taken to be on different hosts, even
     *  if they are not: for tests and measurements. */
    const char *host;
};

/** Element types of sums. I64 wraps around. */
enum weir_comm_type { WEIR_COMM_F32, WEIR_COMM_F64, WEIR_COMM_I64 };

/** Bytes of one element. */
size_t weir_comm_type_size(enum weir_comm_type type);

/**
 * Meet the other ranks and build the group. Collective: returns when all ranks are there. "auto"
 * takes shared memory if all ranks run on the same host (same boot, user, user and pid namespace).
 * @param config  Borrowed for the call. All ranks give the same values but for `rank`.
 * @return INVALID (config); UNAUTH if the secrets differ; TIMEOUT naming the ranks that did not
 * come; PEER if one died while joining; UNSUPPORTED ("shm" across hosts, "rc" or "dc" without such
 * a device); IO; NOMEM. Cost: some ms
 * after the last rank came.
 */
weir_status weir_comm_create(const struct weir_comm_config *config, struct weir_comm **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Leave and free everything, weir_comm_alloc's memory included. Does not wait for other ranks
 * (messages: up to 1 s, for the others to leave too, so that nothing sent is lost). What is posted
 * and not done is cancelled. Ranks that still wait for this one get WEIR_ERR_PEER. NULL is
 * accepted. No other call may be running.
 */
void weir_comm_destroy(struct weir_comm *comm);

int weir_comm_rank(const struct weir_comm *comm);
int weir_comm_size(const struct weir_comm *comm);

/** Ranks that take part in collectives: size - n_servers. */
int weir_comm_n_workers(const struct weir_comm *comm);

/** "shm", "tcp", "ucx", or "hier": shared memory within hosts and messages between them. */
const char *weir_comm_transport(const struct weir_comm *comm);

/**
 * Zeroed memory, page-aligned, that the collectives use in place (shared between the ranks of a
 * host, or registered with the network). Collective among workers: all ask for the same size. It
 * belongs to the communicator, until destroy; ask once per buffer, not per step.
 * @return NOMEM on all ranks if one has none (the communicator stays good).
 */
weir_status weir_comm_alloc(struct weir_comm *comm, size_t bytes, void **out) WEIR_MUST_CHECK;

/**
 * Every rank ends with the element-wise sum of all ranks' buffers. In place without a copy if buf
 * lies in weir_comm_alloc memory on all ranks (on none is fine too: then with one).
 * @param n_elems  Elements, not bytes; 0 is allowed.
 * Cost: shared memory 2 barriers and each byte read P times (up to 8 KiB 1 barrier and a copy);
 * messages 2(P-1)/P of the bytes each way.
 */
weir_status weir_comm_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                                enum weir_comm_type type) WEIR_MUST_CHECK;

/** The part of n_elems elements that belongs to a worker in the two calls below; may be empty. The
 *  parts follow each other in rank order; they are equal if 16 elements for each worker divide all.
 */
void weir_comm_slice(const struct weir_comm *comm, size_t n_elems, int rank, size_t *out_first,
                     size_t *out_n);

/**
 * Every rank ends with the sum of all ranks' buffers in its own slice of buf, taken in rank order;
 * the rest of buf is undefined after it. In place as weir_comm_allreduce; F32 sent as config.wire.
 * Cost: half of an all-reduce.
 */
weir_status weir_comm_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                                     enum weir_comm_type type) WEIR_MUST_CHECK;

/** Every rank ends with all ranks' slices, bit for bit. */
weir_status weir_comm_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                                enum weir_comm_type type) WEIR_MUST_CHECK;

/** Every rank ends with root's bytes. */
weir_status weir_comm_broadcast(struct weir_comm *comm, void *buf, size_t bytes,
                                int root) WEIR_MUST_CHECK;

/** Returns when all ranks have called it. */
weir_status weir_comm_barrier(struct weir_comm *comm) WEIR_MUST_CHECK;

/**
 * Ask for an F32 all-reduce of buf, carried out by the progress thread in posting order. Callable
 * from any thread, a callback of the backward pass included: never waits for a rank.
 * @param buf  Borrowed until weir_comm_wait_all returned; do not touch it before.
 * @return LIMIT if WEIR_COMM_MAX_QUEUED are waiting (nothing was posted); the failure, if failed.
 */
weir_status weir_comm_allreduce_post(struct weir_comm *comm, float *buf,
                                     size_t n_elems) WEIR_MUST_CHECK;

/**
 * From the next all-reduce on use this algorithm (config.algorithm; "auto": as config said at
 * first). All ranks make the same call between the same collectives. For measuring.
 * @return INVALID.
 */
weir_status weir_comm_set_algorithm(struct weir_comm *comm, const char *algorithm,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Has this group a choice of algorithms? Not in shared memory, nor alone. */
bool weir_comm_has_algorithms(const struct weir_comm *comm);

/** The algorithm of an all-reduce of so many bytes, as config.algorithm spells it ("ring#256K");
 *  "in-place" where there is no choice. Cut short to fit into out_size. */
void weir_comm_algorithm(const struct weir_comm *comm, uint64_t bytes, char *out, size_t out_size);

/**
 * Write into a tuning file that this algorithm (config.algorithm, but for "auto") is the fastest of
 * groups like this one: same transport, ranks, hosts and wire type. It takes the place of what the
 * file says of them. The file is made, if it is missing, and replaced as a whole.
 * @return INVALID (algorithm, or the file is another kind of file); UNSUPPORTED without a choice of
 *         algorithms; IO.
 */
weir_status weir_comm_tuning_save(const struct weir_comm *comm, const char *path,
                                  const char *algorithm, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * From now on pretend that ranks are joined by links of this speed, each way: an all-reduce of S
 * bytes ends when 2(P-1)/P * S bytes have gone over this rank's link, one after the other (a
 * reduce-scatter or an all-gather: half of them). All workers' pieces go over a parameter server's
 * link there, one after the other, and over it back, at the same time. What is posted still
 * overlaps with what the caller computes. All ranks make the same
 * call between the same collectives; 0: no more; INFINITY: a network that takes no time, between
 * workers that do not see each other's memory (ps.h, joint steps). For measuring.
 */
void weir_comm_emulate_link(struct weir_comm *comm, double bytes_per_s);

/** Wait until everything posted is summed. Each all-reduce has its own deadline. */
weir_status weir_comm_wait_all(struct weir_comm *comm) WEIR_MUST_CHECK;

/**
 * Why the communicator failed: status (WEIR_OK if it has not) and, in err, a sentence.
 * @param out_rank  The rank at fault, or -1 if none can be named. May be NULL.
 */
weir_status weir_comm_failure(struct weir_comm *comm, int *out_rank, struct weir_error *err);

#endif
