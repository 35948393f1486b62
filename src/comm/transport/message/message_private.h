/**
 * The transports between hosts: tagged messages over a fabric. The fabric is UCX (ucp.c) where
 * there is RDMA, and sockets (transport/tcp) elsewhere.
 *
 * There is one connection per other rank: a dead rank breaks its own within milliseconds. Every
 * message has a tag of (operation number, phase, sender), so that none can be taken for another.
 * Requests are listed from posting to completion. When the group breaks, receives are cancelled and
 * connections closed by force, so that all requests complete and no buffer is written after the
 * call has returned.
 *
 * The rank that detects a failure first broadcasts a notice (status and rank at fault) before it
 * closes its connections; otherwise the others would report that rank. A rank that leaves in good
 * order sends a goodbye (a notice with status END) and waits a while for the others': a connection
 * that is closed may lose what the other side has not read yet.
 *
 * A rank whose deadline passes does not report the rank that it waits for, which may itself wait
 * for the late one. It asks all ranks (UCX_ASK). Ranks that wait reply at once, and name the rank
 * that they wait for (UCX_HERE). These replies lead to a rank that does not reply: the one at
 * fault.
 */
#ifndef WEIR_COMM_UCX_PRIVATE_H
#define WEIR_COMM_UCX_PRIVATE_H

#include "comm/core/comm_private.h"
#include "comm/transport/ucx/pipeline.h"

enum {
    UCX_LEAST_FLIGHTS = 4, /**< Blocks of an all-reduce in flight. */
    UCX_MOST_FLIGHTS = 16,
    UCX_SCRATCH_BYTES = 32 << 20, /**< Bound of the receive buffers for many ranks. */
    UCX_SMALL_BYTES = 8 << 10,    /**< A broadcast up to this size goes from root to all ranks. */
};

/** Second part of a tag. */
enum ucx_phase {
    UCX_MEET,
    UCX_REDUCE,
    UCX_SCATTER,
    UCX_GATHER,
    UCX_PS_CONTROL,
    UCX_PS_ROUND,
    UCX_PS_PUSH,
    UCX_PS_PULL,
    UCX_PS_DONE,
    UCX_ADD_UP,
    UCX_NOTICE = 0xff,
};

/** A phase with a number (mod 65536) of its own, for messages that may overtake each other. */
static inline unsigned ucx_part(enum ucx_phase phase, size_t i_part)
{
    return (unsigned)phase << 16 | (unsigned)(i_part & 0xffff);
}

/** Statuses of a notice other than a failure's; its rank is the sender. */
enum { UCX_ASK = 1, UCX_HERE = 2 };

struct ucx_notice {
    int32_t status, rank;
    int32_t waits_for; /**< UCX_HERE: the rank that the sender waits for. */
};

/** What has become of a message. */
enum ucx_outcome {
    UCX_DONE,
    UCX_PENDING,
    UCX_LOST,      /**< The connection broke, or the message was cancelled. */
    UCX_TRUNCATED, /**< What arrived has another size. */
    UCX_NOMEM,
};

struct ucx_peer {
    bool is_connected; /**< False: own rank, or closed. */
    bool is_broken;
    bool has_left; /**< Its goodbye came: everything that it sent has arrived. */
    bool is_here;  /**< It replied to the last question: it waits for waits_for. */
    int waits_for;
    struct ucx_notice reply; /**< Ours to its question. */
};

/** One message in flight, in the state's list while handle is not NULL. Caller's memory. */
struct ucx_request {
    struct ucx_request *next, **previous_next;
    void *handle; /**< The fabric's; not NULL while the message is pending. */
    int rank;
    bool is_receive;
    size_t bytes;
    /* For a fabric that has no other place for it. */
    uint64_t tag;
    const uint8_t *from;
    uint8_t *into;
    enum ucx_outcome outcome;
    struct ucx_request *behind; /**< In a queue. */
};

struct ucx_memory {
    void *base;
    size_t bytes;
    bool is_borrowed; /**< Registered here, but owned by the caller. */
    void *handle;     /**< The fabric's; NULL: it needs no registration. */
};

struct ucx_state;

/** The rank of a receive from any rank: there is one, of notices. */
enum { UCX_ANYBODY = -1 };

/** What carries messages. Callers hold the execution lock, except of `signal`. */
struct ucx_fabric {
    const char *name;
    bool works_while_idle; /**< Other ranks need its progress also between calls. */
    size_t window_bytes;   /**< Bytes of an all-reduce to keep in flight, roughly. */
    size_t chunk_bytes;    /**< Largest message of an all-reduce, unless a plan says. */

    /** Set state->fabric_state and state->event_fd. `close` undoes what a failed call has done. */
    weir_status (*open)(struct ucx_state *ucx, struct weir_error *err);

    /** Exchange addresses and connect all ranks: peers[].is_connected. */
    weir_status (*connect)(struct ucx_state *ucx, struct rendezvous *rdv, struct weir_error *err);

    /** Start a message: it is pending with request->handle set, or over. Messages from one rank to
     *  another with the same tag keep their order. */
    enum ucx_outcome (*send)(struct ucx_state *ucx, const void *buf, uint64_t tag,
                             struct ucx_request *request);
    /** mask: which bits of the tag count. */
    enum ucx_outcome (*receive)(struct ucx_state *ucx, void *buf, uint64_t tag, uint64_t mask,
                                struct ucx_request *request);

    /** Is a pending message over? If so its handle is released. */
    enum ucx_outcome (*test)(struct ucx_request *request);

    /** Has a pending message completed successfully, though it was not tested yet? */
    bool (*has_come)(const struct ucx_request *request);

    /** Make a receive end soon, its memory untouched from then on. */
    void (*cancel)(struct ucx_state *ucx, struct ucx_request *request);

    /** Send a notice that need not arrive; it is copied, or must stay where it is. */
    void (*send_aside)(struct ucx_state *ucx, int rank, const struct ucx_notice *notice,
                       uint64_t tag);

    /** Send a notice, after all that was sent before, to the connected ranks but `except`;
     *  return when it is on the wire, or at the deadline. */
    void (*broadcast)(struct ucx_state *ucx, const struct ucx_notice *notice, uint64_t tag,
                      int except, uint64_t deadline_ns);

    /** Do some work. @return Whether anything happened. */
    bool (*progress)(struct ucx_state *ucx);

    /** Will event_fd turn readable when there is work? False: there is some now. */
    bool (*arm)(struct ucx_state *ucx);

    /** Wake a thread that sleeps on event_fd. Any thread. */
    void (*signal)(struct ucx_state *ucx);

    /** Close all connections by force: pending messages will soon be over. */
    void (*disconnect)(struct ucx_state *ucx, uint64_t deadline_ns);

    /** Register memory with the network; NULL if that is of no use. */
    void *(*map)(struct ucx_state *ucx, void *base, size_t bytes);
    void (*unmap)(struct ucx_state *ucx, void *handle);

    /** Free fabric_state; NULL is accepted. */
    void (*close)(struct ucx_state *ucx);
};

extern const struct ucx_fabric ucx_ucp_fabric;
extern const struct ucx_fabric ucx_tcp_fabric;

struct ucx_state {
    struct weir_comm *comm;
    const struct ucx_fabric *fabric;
    void *fabric_state;
    int event_fd;
    unsigned n_spins, n_spins_most; /**< Current; few with more ranks than cores. */
    struct ucx_peer peers[WEIR_COMM_MAX_RANKS];
    int n_broken, first_broken; /**< first_broken: the rank that broke first, or -1. */
    struct ucx_request *active;
    uint32_t n_ops;                      /**< Of the workers. Equal on all. */
    struct ucx_notice notice;            /**< Received, or (when failing) sent. */
    struct ucx_notice goodbye, question; /**< Sent. */
    int waits_for;                       /**< Rank of the request that is waited for; -1: none. */
    uint64_t asked_for_ns;               /**< Deadline that all were asked about; 0: none. */
    uint64_t replies_due_ns;             /**< A rank without a reply by then is late. */
    struct ucx_request notice_request;
    struct ucx_group workers;
    struct ucx_hosts *hosts;      /**< hier.c's; NULL: each rank counts as a host of its own. */
    struct ucx_request *requests; /**< [4][size] */
    struct ucx_ps *ps;            /**< ucx_ps.c's, from the first use of parameter servers on. */
    int n_memories, max_memories;
    struct ucx_memory *memories;
};

/** Does this host have an RDMA device? */
bool ucx_has_rdma(void);

/* ---- request.c ------------------------------------------------------------------------------ */

/** Start a message; part: of ucx_part. On failure comm_fail was called, and nothing is in flight
 *  any more. */
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

/**
 * Let the fabric work, or sleep until something happens; handle failures and deadlines.
 *
 * @param request  The awaited one, for late peer reports.
 * @param n_idle   0 at first; counts the rounds in which nothing happened.
 */
weir_status ucx_idle(struct ucx_state *ucx, const struct ucx_request *request, uint64_t deadline_ns,
                     unsigned *n_idle) WEIR_MUST_CHECK;

/** The same, but return at until_ns at the latest, which is no deadline. */
weir_status ucx_idle_until(struct ucx_state *ucx, const struct ucx_request *request,
                           uint64_t until_ns, uint64_t deadline_ns,
                           unsigned *n_idle) WEIR_MUST_CHECK;

/** Cancel a receive: its memory is free when this returns. */
void ucx_cancel(struct ucx_state *ucx, struct ucx_request *request);

/** Has another rank sent notice of a failure? Wait for it up to wait_ms. @return That failure,
 *  which is recorded here too; or OK. */
weir_status ucx_poll_notice(struct ucx_state *ucx, unsigned wait_ms);

/** Break the group: notify the others, end everything in flight, close the connections. */
weir_status ucx_fail(struct ucx_state *ucx, weir_status status, int rank, const char *what);

/** Post the receive of the next notice. */
weir_status ucx_expect_notice(struct ucx_state *ucx) WEIR_MUST_CHECK;

/** Send the goodbye; wait, at most about 1 s, for those of the others or their loss. */
void ucx_send_goodbye(struct ucx_state *ucx);

/** Close all connections by force; wait, at most about 1 s, until all requests are over. */
void ucx_close_connections(struct ucx_state *ucx);

/** Let the fabric work; after a while without events sleep until there is one, or the deadline.
 *  @param n_idle  0 at first; counts the rounds in which nothing happened. */
void ucx_progress_or_sleep(struct ucx_state *ucx, uint64_t deadline_ns, unsigned *n_idle);

/** Called by a fabric: the connection to a rank is gone. */
void ucx_peer_broke(struct ucx_state *ucx, int rank);

/* ---- collective.c, ucx_ps.c ----------------------------------------------------------------- */

/** Sum over ranks [first, first + n_ranks), of which this one is one: each sends its own to all.
 *  @param n_op  Number of such calls so far. */
weir_status ucx_add_up(struct ucx_state *ucx, int first, int n_ranks, double *sums, size_t n_sums,
                       uint32_t n_op, uint64_t deadline_ns);
/** Barrier of ranks [0, n_ranks): each sends to and receives from all. */
weir_status ucx_meet(struct ucx_state *ucx, int n_ranks) WEIR_MUST_CHECK;

/** Requests [0, size) of one kind (0..3) of an operation other than an all-reduce. */
struct ucx_request *ucx_requests(const struct ucx_state *ucx, int kind);

/** Register memory that is owned by the caller and outlives the transport. @return NOMEM. */
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
extern const struct ps_transport ucx_ps_transport;
/** Free it, when nothing is in flight any more. */
void ucx_ps_close(struct ucx_state *ucx);

#endif
