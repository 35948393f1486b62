/**
 * The transports between hosts: tagged messages over a fabric, which is UCX (ucp.c) where there is
 * RDMA, and sockets (comm/tcp) where there is not.
 *
 * One connection per other rank: a dead rank breaks its own within milliseconds. Every message has
 * a tag of (operation number, phase, sender), so that none can be taken for another. Requests are
 * kept in a list from posting to completion: when the group breaks, the receives are cancelled and
 * the connections closed by force, so that all of them complete and no buffer is written after the
 * call returned.
 *
 * Who finds out first tells the others (a notice: status and rank at fault) before it closes its
 * connections; otherwise they would blame the messenger. Who leaves in good order says goodbye (a
 * notice with status END) and waits a while for the others': a connection that is closed may lose
 * what the other side has not read yet.
 *
 * Whose deadline passes blames nobody yet: the rank it waits for may itself wait for the one that
 * is late. It asks all ranks (UCX_ASK); those that wait answer at once and say for whom
 * (UCX_HERE). Following these answers leads to a rank that does not answer: that one is at fault.
 */
#ifndef WEIR_COMM_UCX_PRIVATE_H
#define WEIR_COMM_UCX_PRIVATE_H

#include "comm/core/comm_private.h"
#include "comm/transport/ucx/pipeline.h"

enum {
    UCX_WINDOW = 4,        /**< Chunks in flight of what is no all-reduce. */
    UCX_LEAST_FLIGHTS = 4, /**< Blocks of an all-reduce in flight. */
    UCX_MOST_FLIGHTS = 16,
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

/** status: of a failure, and the rank at fault; or one of these, and the sender. */
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
    bool has_left; /**< Said goodbye: everything it ever sent has arrived. */
    bool is_here;  /**< Answered the last question: it waits for waits_for. */
    int waits_for;
    struct ucx_notice reply; /**< Sent. */
};

/** One message in flight; in the state's list while handle is not NULL. Caller's memory. */
struct ucx_request {
    struct ucx_request *next, **previous_next;
    void *handle; /**< The fabric's; not NULL while the message is pending. */
    int rank;
    bool is_receive;
    size_t bytes;
    /* Of use to a fabric that has nowhere else to keep it. */
    uint64_t tag;
    const uint8_t *from;
    uint8_t *into;
    enum ucx_outcome outcome;
    struct ucx_request *behind; /**< In a queue. */
};

struct ucx_memory {
    void *base;
    size_t bytes;
    bool is_borrowed; /**< Registered here, but not ours. */
    void *handle;     /**< The fabric's; NULL: it needs no registration. */
};

struct ucx_state;

/** The rank of a receive that is from anybody: there is one, of notices. */
enum { UCX_ANYBODY = -1 };

/** What carries messages. All calls are those of whoever has the turn, but for `signal`. */
struct ucx_fabric {
    const char *name;
    bool works_while_idle; /**< What others need from it cannot wait for the next call. */
    size_t window_bytes;   /**< About as much of an all-reduce should be on its way. */
    size_t chunk_bytes;    /**< Largest message of an all-reduce, unless a plan says. */

    /** Set state->fabric_state and state->event_fd. What failed half-way is undone by `close`. */
    weir_status (*open)(struct ucx_state *ucx, struct weir_error *err);

    /** Exchange addresses and connect everybody with everybody: peers[].is_connected. */
    weir_status (*connect)(struct ucx_state *ucx, struct rendezvous *rdv, struct weir_error *err);

    /** Start a message: pending with request->handle set, or over. Messages from one rank to
     *  another with the same tag keep their order. */
    enum ucx_outcome (*send)(struct ucx_state *ucx, const void *buf, uint64_t tag,
                             struct ucx_request *request);
    /** mask: which bits of the tag count. */
    enum ucx_outcome (*receive)(struct ucx_state *ucx, void *buf, uint64_t tag, uint64_t mask,
                                struct ucx_request *request);

    /** Is a pending one over? Then its handle is given back. */
    enum ucx_outcome (*test)(struct ucx_request *request);

    /** Has a pending one come or gone well, though nobody has tested it yet? */
    bool (*has_come)(const struct ucx_request *request);

    /** Make a receive end soon, its memory untouched from then on. */
    void (*cancel)(struct ucx_state *ucx, struct ucx_request *request);

    /** Send a notice that need not arrive; it is copied, or stays where it is. */
    void (*send_aside)(struct ucx_state *ucx, int rank, const struct ucx_notice *notice,
                       uint64_t tag);

    /** Send a notice, behind all that was sent before, to the connected ranks but `except`; return
     *  when it is on the wire, or at the deadline. */
    void (*broadcast)(struct ucx_state *ucx, const struct ucx_notice *notice, uint64_t tag,
                      int except, uint64_t deadline_ns);

    /** Take a step; did anything happen? */
    bool (*progress)(struct ucx_state *ucx);

    /** Will event_fd turn readable when there is something to do? False: there is now. */
    bool (*arm)(struct ucx_state *ucx);

    /** Make a sleeper on event_fd wake up. Any thread. */
    void (*signal)(struct ucx_state *ucx);

    /** Close all connections by force: what is pending will soon be over. */
    void (*disconnect)(struct ucx_state *ucx, uint64_t deadline_ns);

    /** Register memory with the network; NULL if that is of no use. */
    void *(*map)(struct ucx_state *ucx, void *base, size_t bytes);
    void (*unmap)(struct ucx_state *ucx, void *handle);

    /** Free fabric_state (NULL is fine). */
    void (*close)(struct ucx_state *ucx);
};

extern const struct ucx_fabric ucx_ucp_fabric;
extern const struct ucx_fabric ucx_tcp_fabric;

struct ucx_state {
    struct weir_comm *comm;
    const struct ucx_fabric *fabric;
    void *fabric_state;
    int event_fd;
    unsigned n_spins, n_spins_most; /**< Now; few with more ranks than cores. */
    struct ucx_peer peers[WEIR_COMM_MAX_RANKS];
    int n_broken, first_broken; /**< first_broken: the rank that broke first, or -1. */
    struct ucx_request *active;
    uint32_t n_ops;                      /**< Of the workers. Equal on all. */
    struct ucx_notice notice;            /**< Received, or (when failing) sent. */
    struct ucx_notice goodbye, question; /**< Sent. */
    int waits_for;                       /**< Rank of the request that is waited for; -1: none. */
    uint64_t asked_for_ns;               /**< The deadline that made us ask around; 0: none. */
    uint64_t replies_due_ns;             /**< Who has not answered by then is late. */
    struct ucx_request notice_request;
    struct ucx_group workers;
    struct ucx_hosts *hosts; /**< hier.c's; NULL: each rank has a host to itself, or is taken so. */
    size_t chunk_bytes;
    uint8_t *scratch;             /**< [UCX_WINDOW][size][chunk_bytes] */
    struct ucx_request *requests; /**< [UCX_WINDOW][4][size] */
    struct ucx_ps *ps;            /**< ucx_ps.c's, from the first use of parameter servers on. */
    int n_memories, max_memories;
    struct ucx_memory *memories;
};

/** Has this host a device that messages could be handed to whole? */
bool ucx_has_rdma(void);

/* ---- request.c ------------------------------------------------------------------------------ */

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

/** Nothing to do until something happens: let the fabric work, or sleep; see to trouble.
 *  @param request  What is waited for, in case somebody asks.
 *  @param n_idle   0 at first; counts the rounds in which nothing happened. */
weir_status ucx_idle(struct ucx_state *ucx, const struct ucx_request *request, uint64_t deadline_ns,
                     unsigned *n_idle) WEIR_MUST_CHECK;

/** The same, but come back at until_ns at the latest, which is no deadline. */
weir_status ucx_idle_until(struct ucx_state *ucx, const struct ucx_request *request,
                           uint64_t until_ns, uint64_t deadline_ns,
                           unsigned *n_idle) WEIR_MUST_CHECK;

/** A receive is not waited for any longer: its memory is free when this returns. */
void ucx_cancel(struct ucx_state *ucx, struct ucx_request *request);

/** Have the others sent bad news? Waits for it up to wait_ms. Their failure, now also ours; or OK.
 */
weir_status ucx_poll_notice(struct ucx_state *ucx, unsigned wait_ms);

/** Break the group: tell the others, end everything in flight, close the connections. */
weir_status ucx_fail(struct ucx_state *ucx, weir_status status, int rank, const char *what);

/** Post the receive of the next notice. */
weir_status ucx_expect_notice(struct ucx_state *ucx) WEIR_MUST_CHECK;

/** Say goodbye; wait, at most about 1 s, until the others did too or are gone. */
void ucx_send_goodbye(struct ucx_state *ucx);

/** Close all connections by force and wait (at most about 1 s) until all requests are over. */
void ucx_close_connections(struct ucx_state *ucx);

/** Let the fabric work; after a while without events sleep until there is one, or the deadline.
 *  @param n_idle  0 at first; counts the rounds in which nothing happened. */
void ucx_progress_or_sleep(struct ucx_state *ucx, uint64_t deadline_ns, unsigned *n_idle);

/** A fabric's word that the connection to a rank is gone. */
void ucx_peer_broke(struct ucx_state *ucx, int rank);

/* ---- collective.c, ucx_ps.c
 * ----------------------------------------------------------------------- */

/** The sums of ranks [first, first + n_ranks), of which this one is one: everybody sends its own to
 *  everybody. n_op: their count of such calls. */
weir_status ucx_add_up(struct ucx_state *ucx, int first, int n_ranks, double *sums, size_t n_sums,
                       uint32_t n_op, uint64_t deadline_ns);
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
extern const struct ps_transport ucx_ps_transport;
/** When nothing is in flight any more. */
void ucx_ps_close(struct ucx_state *ucx);

#endif
