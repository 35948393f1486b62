/**
 * The transport between hosts: UCX tag messages over whatever the fabric has (RDMA, TCP).
 *
 * One worker, one endpoint per other rank with peer error handling: a dead rank breaks its endpoint
 * within milliseconds. Every message has a tag of (operation number, phase, sender), so that none
 * can be taken for another. Requests are kept in a list from posting to completion: when the group
 * breaks, the receives are cancelled and the endpoints closed by force, so that all of them
 * complete and no buffer is written after the call returned.
 *
 * Who finds out first tells the others (a notice: status and rank at fault) before it closes its
 * endpoints; otherwise they would blame the messenger. Who leaves in good order says goodbye (a
 * notice with status END) and waits a while for the others': a connection that is closed may lose
 * what the other side has not read yet.
 *
 * Whose deadline passes blames nobody yet: the rank it waits for may itself wait for the one that
 * is late. It asks all ranks (UCX_ASK); those that wait answer at once and say for whom
 * (UCX_HERE). Following these answers leads to a rank that does not answer: that one is at fault.
 */
#ifndef WEIR_COMM_UCX_PRIVATE_H
#define WEIR_COMM_UCX_PRIVATE_H

#include "comm/comm_private.h"
#include "comm/ucx/pipeline.h"

#include <ucp/api/ucp.h>

enum {
    UCX_WINDOW = 4,                  /**< Chunks of an all-reduce in flight. */
    UCX_CHUNK_BYTES = 256 << 10,     /**< Largest message of an all-reduce, unless a plan says. */
    UCX_MAX_CHUNK_BYTES = 256 << 10, /**< Stays in the cache between arrival and sum. */
    UCX_MIN_CHUNK_BYTES = 16 << 10,
    UCX_SCRATCH_BYTES = 32 << 20, /**< Bound of the receive buffers for many ranks. */
    UCX_SMALL_BYTES = 8 << 10,    /**< Up to here root sends everything to everybody. */
};

/** Second part of a tag. */
enum ucx_phase {
    UCX_MEET,
    UCX_REDUCE,
    UCX_SCATTER,
    UCX_GATHER,
    UCX_PS_REQUEST,
    UCX_PS_PUSH,
    UCX_PS_PULL,
    UCX_PS_DONE,
    UCX_NOTICE = 0xff,
};

/** A phase with a number (mod 65536) of its own, for messages that may overtake each other. */
static inline unsigned ucx_part(enum ucx_phase phase, size_t i_part)
{
    return (unsigned)phase << 16 | (unsigned)(i_part & 0xffff);
}

/** status: of a failure, and the rank at fault; or one of these, and the sender. */
enum { UCX_ASK = 1, UCX_HERE = 2 };

struct ucx_notice {
    int32_t status, rank;
    int32_t waits_for; /**< UCX_HERE: the rank that the sender waits for. */
};

struct ucx_peer {
    ucp_ep_h ep; /**< NULL: own rank, or closed. */
    ucs_status_t broken;
    bool has_left; /**< Said goodbye: everything it ever sent has arrived. */
    bool is_here;  /**< Answered the last question: it waits for waits_for. */
    int waits_for;
    struct ucx_notice answer; /**< Sent. */
};

/** One message in flight; in the state's list while handle is not NULL. Caller's memory. */
struct ucx_request {
    struct ucx_request *next, **link;
    void *handle;
    int rank;
    bool is_receive;
    size_t bytes;
};

struct ucx_memory {
    void *base;
    size_t bytes;
    bool is_borrowed; /**< Registered here, but not ours. */
    ucp_mem_h handle; /**< NULL if the fabric needs no registration. */
};

struct ucx_state {
    struct weir_comm *comm;
    ucp_context_h context;
    ucp_worker_h worker;
    int event_fd;
    unsigned n_spins;
    struct ucx_peer peers[WEIR_COMM_MAX_RANKS];
    int n_broken, first_broken; /**< first_broken: the rank that broke first, or -1. */
    struct ucx_request *active;
    uint32_t n_ops, n_ps_ops; /**< Of the workers; of the parameter server. Equal on all ranks. */
    struct ucx_notice notice; /**< Received, or (when failing) sent. */
    struct ucx_notice goodbye, question; /**< Sent. */
    int waits_for;                       /**< Rank of the request that is waited for; -1: none. */
    uint64_t asked_for_ns;               /**< The deadline that made us ask around; 0: none. */
    uint64_t answers_due_ns;             /**< Who has not answered by then is late. */
    struct ucx_request notice_request;
    struct ucx_group workers;
    struct ucx_hosts *hosts; /**< hier.c's; NULL: each rank has a host to itself, or is taken so. */
    size_t chunk_bytes;
    uint8_t *scratch;             /**< [UCX_WINDOW][size][chunk_bytes] */
    struct ucx_request *requests; /**< [UCX_WINDOW][4][size] */
    float *ps_sum, *ps_weights;   /**< Server: its shard. */
    int n_memories, max_memories;
    struct ucx_memory *memories;
};

/* ---- request.c ---------------------------------------------------------------------------------
 */

/** Start a message; part: of ucx_part. On failure comm_fail was called, and everything in flight is
 * over. */
weir_status ucx_send(struct ucx_state *ucx, int rank, const void *buf, size_t bytes, uint32_t n_op,
                     unsigned part, struct ucx_request *request) WEIR_MUST_CHECK;
weir_status ucx_receive(struct ucx_state *ucx, int rank, void *buf, size_t bytes, uint32_t n_op,
                        unsigned part, struct ucx_request *request) WEIR_MUST_CHECK;

/** Wait for a message, or for all in flight. Zeroed and completed requests return at once. */
weir_status ucx_wait(struct ucx_state *ucx, struct ucx_request *request,
                     uint64_t deadline_ns) WEIR_MUST_CHECK;
weir_status ucx_wait_all(struct ucx_state *ucx, struct ucx_request *requests, size_t n,
                         uint64_t deadline_ns) WEIR_MUST_CHECK;

/** Are these over? Zeroed requests are. */
weir_status ucx_test_all(struct ucx_state *ucx, struct ucx_request *requests, size_t n,
                         bool *out_is_over) WEIR_MUST_CHECK;

/** Nothing to do until something happens: let UCX work, or sleep; see to trouble.
 *  @param request  What is waited for, in case somebody asks.
 *  @param n_idle   0 at first; counts the rounds in which nothing happened. */
weir_status ucx_idle(struct ucx_state *ucx, const struct ucx_request *request, uint64_t deadline_ns,
                     unsigned *n_idle) WEIR_MUST_CHECK;

/** Have the others sent bad news? Waits for it up to wait_ms. Their failure, now also ours; or OK.
 */
weir_status ucx_hear(struct ucx_state *ucx, unsigned wait_ms);

/** Break the group: tell the others, end everything in flight, close the endpoints. */
weir_status ucx_fail(struct ucx_state *ucx, weir_status status, int rank, const char *what);

/** Post the receive of the next notice. */
weir_status ucx_expect_notice(struct ucx_state *ucx) WEIR_MUST_CHECK;

/** Say goodbye; wait, at most about 1 s, until the others did too or are gone. */
void ucx_say_goodbye(struct ucx_state *ucx);

/** Close all endpoints by force and wait (at most about 1 s) until all requests are over. */
void ucx_close_endpoints(struct ucx_state *ucx);

/** Progress until `handle` (of a close or flush) is over or the time is; frees it. */
void ucx_finish(struct ucx_state *ucx, ucs_status_ptr_t handle, uint64_t deadline_ns);

/* ---- collective.c, ucx_ps.c
 * ----------------------------------------------------------------------- */

/** Everybody in [0, n_ranks) sends to and hears from everybody. */
weir_status ucx_meet(struct ucx_state *ucx, int n_ranks) WEIR_MUST_CHECK;

uint8_t *ucx_scratch(const struct ucx_state *ucx, size_t i_chunk, int rank);

/** Requests [0, size) of one kind (0..3) of a chunk in flight. */
struct ucx_request *ucx_requests(const struct ucx_state *ucx, size_t i_chunk, int kind);

/** Tell the network of memory that is somebody else's and outlives the transport. NOMEM. */
weir_status ucx_register(struct ucx_state *ucx, void *base, size_t bytes) WEIR_MUST_CHECK;

weir_status ucx_alloc(struct weir_comm *comm, size_t bytes, void **out);
weir_status ucx_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type);
weir_status ucx_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                               enum weir_comm_type type);
weir_status ucx_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type);
weir_status ucx_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root);
weir_status ucx_barrier(struct weir_comm *comm);
weir_status ucx_ps_request(struct weir_comm *comm, const struct ps_request *request,
                           const float *gradients, float *weights);
weir_status ucx_ps_answer(struct weir_comm *comm, const struct ps_server *server,
                          enum ps_op *out_op);

#endif
