/**
 * Inside the parameter server: what its workers and servers (ps_worker.c, ps_server.c), which are
 * the same for all transports, need of a transport (shm/shm_ps.c, message/message_ps.c).
 *
 * Three things travel. Every worker sends each *control message* (enum ps_op) to every server, and
 * the servers acknowledge that it was carried out. Each worker announces a *round*: what its next
 * pieces are. In a round each *piece* goes once: a worker's gradients, and back to the same place
 * the weights.
 */
#ifndef WEIR_COMM_PS_PRIVATE_H
#define WEIR_COMM_PS_PRIVATE_H

#include "comm/ps.h"

/** Parameters in pieces. Piece i belongs to server i mod n_servers, so that a backward pass, which
 *  makes them in order, keeps all servers busy. */
struct ps_layout {
    size_t n_elems, piece_elems, n_pieces;
    int n_servers;
};

/** Pure: the same on every rank. */
struct ps_layout ps_layout_of(size_t n_elems, int n_servers);
size_t ps_piece_first(const struct ps_layout *layout, size_t i_piece);
size_t ps_piece_elems(const struct ps_layout *layout, size_t i_piece);
/** The number of pieces of a server. If there are few, only the first servers have any. */
size_t ps_n_own(const struct ps_layout *layout, int i_server);
/** The number of servers that have pieces. */
int ps_n_owners(const struct ps_layout *layout);

enum ps_op {
    PS_OPEN = 1, /**< Number of parameters, staleness of workers. */
    PS_COMMAND,  /**< For config.command of the servers' owner. */
    PS_STOP
};

struct ps_control {
    uint64_t op; /**< enum ps_op; all workers must send the same. */
    uint64_t n_elems;
    uint64_t staleness;
    struct weir_ps_step step;
};

enum ps_round_kind {
    PS_ROUND_START = 1, /**< Worker 0's pieces are the weights. */
    PS_ROUND_STEP,      /**< Gradients. */
    PS_ROUND_PULL       /**< No data: weights are wanted. */
};

struct ps_round {
    uint64_t kind; /**< enum ps_round_kind */
    struct weir_ps_step step;
};

/** Does this worker send anything in such a round? */
static inline bool ps_round_has_data(uint64_t kind, int rank)
{
    return kind == PS_ROUND_STEP || (kind == PS_ROUND_START && rank == 0);
}

/** What has arrived at a server. */
struct ps_event {
    int worker;
    bool is_control;
    struct ps_control control; /**< If is_control; otherwise a piece came. */
    struct ps_round round;     /**< Of the piece. */
    size_t i_piece;
    const float *data; /**< The piece, until the reply. Undefined if it has no data. */
};

/** What a worker sees of a piece that it has pushed. */
enum ps_poll_state {
    PS_LEAVING, /**< It has not left this host yet. */
    PS_AWAITED,
    PS_REPLIED
};

/** All need the execution lock. On failure they have called comm_fail, and return what it
 *  returned. */
struct ps_transport {
    /** `push` and `poll` need only the communicator's lock: pieces travel concurrently with
     *  collectives. */
    bool is_concurrent;

    /** Prepare for pieces: a worker before it sends PS_OPEN, a server when it receives it. */
    weir_status (*open)(struct weir_comm *comm, const struct ps_layout *layout);

    /** Send a control message to all servers. */
    weir_status (*broadcast)(struct weir_comm *comm, const struct ps_control *control);
    /** Have all servers acknowledged the last control message? */
    weir_status (*is_acked)(struct weir_comm *comm, bool *out);
    /** Announce a round. */
    weir_status (*begin)(struct weir_comm *comm, const struct ps_round *round);
    /** Send a piece, or without data only its number, and expect the reply in its place. */
    weir_status (*push)(struct weir_comm *comm, size_t i_piece, float *piece, bool has_data);
    /** The state of a piece that was pushed; if the reply is here, since when (monotonic clock). */
    weir_status (*poll)(struct weir_comm *comm, size_t i_piece, enum ps_poll_state *out,
                        uint64_t *out_ns);
    /** Sleep until something happens, at most until until_ns. At the deadline fail, and report the
     *  rank that is late with this piece (SIZE_MAX: with the control message). */
    weir_status (*idle)(struct weir_comm *comm, size_t i_piece, uint64_t until_ns,
                        uint64_t deadline_ns);

    /** A descriptor that turns readable when pieces that travel need work, once the transport's
     *  `progress` was called; -1: none do. */
    int (*event_fd)(struct weir_comm *comm);

    /* Server. */
    /** Wait for the next event. @param awaited  The worker that others wait for, for late peer
     *  reports. */
    weir_status (*next)(struct weir_comm *comm, int awaited, uint64_t deadline_ns,
                        struct ps_event *out);
    /** Send a worker its piece. The weights stay as they are until that worker pushes the piece
     *  again; with is_copied they may change at once. */
    weir_status (*reply)(struct weir_comm *comm, int worker, size_t i_piece, const float *weights,
                         bool is_copied);
    /** Sum over the servers that have pieces. Collective among these. */
    weir_status (*add_up)(struct weir_comm *comm, double *sums, size_t n_sums,
                          uint64_t deadline_ns);
    /** Acknowledge a control message to all workers. After PS_STOP nothing is expected any more. */
    weir_status (*done)(struct weir_comm *comm, const struct ps_control *control);
};

/** ps_worker.c: send and receive what can be. The caller holds the execution lock, unless
 *  comm_ps_is_concurrent. */
void comm_ps_progress(struct weir_comm *comm);
/** Can pieces go on while a thread holds the execution lock, and are there any? Locked. */
bool comm_ps_is_concurrent(const struct weir_comm *comm);
/** When comm_ps_progress is due next without an event; UINT64_MAX: never. Locked. */
uint64_t comm_ps_next_ns(const struct weir_comm *comm);
/** A descriptor that turns readable when comm_ps_progress is due; -1: no pieces travel. Locked. */
int comm_ps_event_fd(struct weir_comm *comm);
void comm_ps_worker_close(struct weir_comm *comm);

#endif
