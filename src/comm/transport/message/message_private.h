/**
 * The transports between hosts: tagged messages over a fabric. The fabric is UCX (transport/ucx) where
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
 * for the late one. It asks all ranks (MESSAGE_ASK). Ranks that wait reply at once, and name the rank
 * that they wait for (MESSAGE_HERE). These replies lead to a rank that does not reply: the one at
 * fault.
 */
#ifndef WEIR_COMM_MESSAGE_PRIVATE_H
#define WEIR_COMM_MESSAGE_PRIVATE_H

#include "comm/core/comm_private.h"
#include "comm/transport/message/pipeline.h"

enum {
    MESSAGE_LEAST_FLIGHTS = 4, /**< Blocks of an all-reduce in flight. */
    MESSAGE_MOST_FLIGHTS = 16,
    MESSAGE_SCRATCH_BYTES = 32 << 20, /**< Bound of the receive buffers for many ranks. */
    MESSAGE_SMALL_BYTES = 8 << 10, /**< A broadcast up to this size goes from root to all ranks. */
};

/** Second part of a tag. */
enum message_phase {
    MESSAGE_MEET,
    MESSAGE_REDUCE,
    MESSAGE_SCATTER,
    MESSAGE_GATHER,
    MESSAGE_PS_CONTROL,
    MESSAGE_PS_ROUND,
    MESSAGE_PS_PUSH,
    MESSAGE_PS_PULL,
    MESSAGE_PS_DONE,
    MESSAGE_ADD_UP,
    MESSAGE_NOTICE = 0xff,
};

/** A phase with a number (mod 65536) of its own, for messages that may overtake each other. */
static inline unsigned message_part(enum message_phase phase, size_t i_part)
{
    return (unsigned)phase << 16 | (unsigned)(i_part & 0xffff);
}

/** Statuses of a notice other than a failure's; its rank is the sender. */
enum { MESSAGE_ASK = 1, MESSAGE_HERE = 2 };

struct message_notice {
    int32_t status, rank;
    int32_t waits_for; /**< MESSAGE_HERE: the rank that the sender waits for. */
};

/** What has become of a message. */
enum message_outcome {
    MESSAGE_DONE,
    MESSAGE_PENDING,
    MESSAGE_LOST,      /**< The connection broke, or the message was cancelled. */
    MESSAGE_TRUNCATED, /**< What arrived has another size. */
    MESSAGE_NOMEM,
};

struct message_peer {
    bool is_connected; /**< False: own rank, or closed. */
    bool is_broken;
    bool has_left; /**< Its goodbye came: everything that it sent has arrived. */
    bool is_here;  /**< It replied to the last question: it waits for waits_for. */
    int waits_for;
    struct message_notice reply; /**< Ours to its question. */
};

/** One message in flight, in the state's list while handle is not NULL. Caller's memory. */
struct message_request {
    struct message_request *next, **previous_next;
    void *handle; /**< The fabric's; not NULL while the message is pending. */
    int rank;
    bool is_receive;
    size_t bytes;
    /* For a fabric that has no other place for it. */
    uint64_t tag;
    const uint8_t *from;
    uint8_t *into;
    enum message_outcome outcome;
    struct message_request *behind; /**< In a queue. */
};

struct message_memory {
    void *base;
    size_t bytes;
    bool is_borrowed; /**< Registered here, but owned by the caller. */
    void *handle;     /**< The fabric's; NULL: it needs no registration. */
};

struct message_state;

/** The rank of a receive from any rank: there is one, of notices. */
enum { MESSAGE_ANYBODY = -1 };

/** What carries messages. Callers hold the execution lock, except of `signal`. */
struct message_fabric {
    const char *name;
    bool works_while_idle; /**< Other ranks need its progress also between calls. */
    size_t window_bytes;   /**< Bytes of an all-reduce to keep in flight, roughly. */
    size_t chunk_bytes;    /**< Largest message of an all-reduce, unless a plan says. */

    /** Set state->fabric_state and state->event_fd. `close` undoes what a failed call has done. */
    weir_status (*open)(struct message_state *state, struct weir_error *err);

    /** Exchange addresses and connect all ranks: peers[].is_connected. */
    weir_status (*connect)(struct message_state *state, struct rendezvous *rdv,
                           struct weir_error *err);

    /** Start a message: it is pending with request->handle set, or over. Messages from one rank to
     *  another with the same tag keep their order. */
    enum message_outcome (*send)(struct message_state *state, const void *buf, uint64_t tag,
                                 struct message_request *request);
    /** mask: which bits of the tag count. */
    enum message_outcome (*receive)(struct message_state *state, void *buf, uint64_t tag,
                                    uint64_t mask, struct message_request *request);

    /** Is a pending message over? If so its handle is released. */
    enum message_outcome (*test)(struct message_request *request);

    /** Has a pending message completed successfully, though it was not tested yet? */
    bool (*has_come)(const struct message_request *request);

    /** Make a receive end soon, its memory untouched from then on. */
    void (*cancel)(struct message_state *state, struct message_request *request);

    /** Send a notice that need not arrive; it is copied, or must stay where it is. */
    void (*send_aside)(struct message_state *state, int rank, const struct message_notice *notice,
                       uint64_t tag);

    /** Send a notice, after all that was sent before, to the connected ranks but `except`;
     *  return when it is on the wire, or at the deadline. */
    void (*broadcast)(struct message_state *state, const struct message_notice *notice,
                      uint64_t tag, int except, uint64_t deadline_ns);

    /** Do some work. @return Whether anything happened. */
    bool (*progress)(struct message_state *state);

    /** Will event_fd turn readable when there is work? False: there is some now. */
    bool (*arm)(struct message_state *state);

    /** Wake a thread that sleeps on event_fd. Any thread. */
    void (*signal)(struct message_state *state);

    /** Close all connections by force: pending messages will soon be over. */
    void (*disconnect)(struct message_state *state, uint64_t deadline_ns);

    /** Register memory with the network; NULL if that is of no use. */
    void *(*map)(struct message_state *state, void *base, size_t bytes);
    void (*unmap)(struct message_state *state, void *handle);

    /** Free fabric_state; NULL is accepted. */
    void (*close)(struct message_state *state);
};

extern const struct message_fabric ucx_fabric;
extern const struct message_fabric tcp_fabric;

struct message_state {
    struct weir_comm *comm;
    const struct message_fabric *fabric;
    void *fabric_state;
    int event_fd;
    unsigned n_spins, n_spins_most; /**< Current; few with more ranks than cores. */
    struct message_peer peers[WEIR_COMM_MAX_RANKS];
    int n_broken, first_broken; /**< first_broken: the rank that broke first, or -1. */
    struct message_request *active;
    uint32_t n_ops;                          /**< Of the workers. Equal on all. */
    struct message_notice notice;            /**< Received, or (when failing) sent. */
    struct message_notice goodbye, question; /**< Sent. */
    int waits_for;           /**< Rank of the request that is waited for; -1: none. */
    uint64_t asked_for_ns;   /**< Deadline that all were asked about; 0: none. */
    uint64_t replies_due_ns; /**< A rank without a reply by then is late. */
    struct message_request notice_request;
    struct message_group workers;
    struct message_hosts *hosts;      /**< hier.c's; NULL: each rank counts as a host of its own. */
    struct message_request *requests; /**< [4][size] */
    struct message_ps *ps; /**< message_ps.c's, from the first use of parameter servers on. */
    int n_memories, max_memories;
    struct message_memory *memories;
};

/** Does this host have an RDMA device? */
bool ucx_has_rdma(void);

/* ---- request.c ------------------------------------------------------------------------------ */

/** Start a message; part: of message_part. On failure comm_fail was called, and nothing is in flight
 *  any more. */
weir_status message_send(struct message_state *state, int rank, const void *buf, size_t bytes,
                         uint32_t n_op, unsigned part,
                         struct message_request *request) WEIR_MUST_CHECK;
weir_status message_receive(struct message_state *state, int rank, void *buf, size_t bytes,
                            uint32_t n_op, unsigned part,
                            struct message_request *request) WEIR_MUST_CHECK;

/** Wait for a message, or for all in flight. Zeroed and completed requests return at once. */
weir_status message_wait(struct message_state *state, struct message_request *request,
                         uint64_t deadline_ns) WEIR_MUST_CHECK;
weir_status message_wait_all(struct message_state *state, struct message_request *requests,
                             size_t n, uint64_t deadline_ns) WEIR_MUST_CHECK;

/** Are these over? Zeroed requests are. */
weir_status message_test_all(struct message_state *state, struct message_request *requests,
                             size_t n, bool *out_is_over) WEIR_MUST_CHECK;

/**
 * Let the fabric work, or sleep until something happens; handle failures and deadlines.
 *
 * @param request  The awaited one, for late peer reports.
 * @param n_idle   0 at first; counts the rounds in which nothing happened.
 */
weir_status message_idle(struct message_state *state, const struct message_request *request,
                         uint64_t deadline_ns, unsigned *n_idle) WEIR_MUST_CHECK;

/** The same, but return at until_ns at the latest, which is no deadline. */
weir_status message_idle_until(struct message_state *state, const struct message_request *request,
                               uint64_t until_ns, uint64_t deadline_ns,
                               unsigned *n_idle) WEIR_MUST_CHECK;

/** Cancel a receive: its memory is free when this returns. */
void message_cancel(struct message_state *state, struct message_request *request);

/** Has another rank sent notice of a failure? Wait for it up to wait_ms. @return That failure,
 *  which is recorded here too; or OK. */
weir_status message_poll_notice(struct message_state *state, unsigned wait_ms);

/** Break the group: notify the others, end everything in flight, close the connections. */
weir_status message_fail(struct message_state *state, weir_status status, int rank,
                         const char *what);

/** Post the receive of the next notice. */
weir_status message_expect_notice(struct message_state *state) WEIR_MUST_CHECK;

/** Send the goodbye; wait, at most about 1 s, for those of the others or their loss. */
void message_send_goodbye(struct message_state *state);

/** Close all connections by force; wait, at most about 1 s, until all requests are over. */
void message_close_connections(struct message_state *state);

/** Let the fabric work; after a while without events sleep until there is one, or the deadline.
 *  @param n_idle  0 at first; counts the rounds in which nothing happened. */
void message_progress_or_sleep(struct message_state *state, uint64_t deadline_ns, unsigned *n_idle);

/** Called by a fabric: the connection to a rank is gone. */
void message_peer_broke(struct message_state *state, int rank);

/* ---- collective.c, message_ps.c ----------------------------------------------------------------- */

/** Sum over ranks [first, first + n_ranks), of which this one is one: each sends its own to all.
 *  @param n_op  Number of such calls so far. */
weir_status message_add_up(struct message_state *state, int first, int n_ranks, double *sums,
                           size_t n_sums, uint32_t n_op, uint64_t deadline_ns);
/** Barrier of ranks [0, n_ranks): each sends to and receives from all. */
weir_status message_meet(struct message_state *state, int n_ranks) WEIR_MUST_CHECK;

/** Register memory that is owned by the caller and outlives the transport. @return NOMEM. */
weir_status message_register(struct message_state *state, void *base, size_t bytes) WEIR_MUST_CHECK;

weir_status message_alloc(struct weir_comm *comm, size_t bytes, void **out);
weir_status message_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                              enum weir_comm_type type);
weir_status message_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                                   enum weir_comm_type type);
weir_status message_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                              enum weir_comm_type type);
weir_status message_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root);
weir_status message_barrier(struct weir_comm *comm);
extern const struct ps_transport message_ps_transport;
/** Free it, when nothing is in flight any more. */
void message_ps_close(struct message_state *state);

#endif
