/**
 * Inside the parameter server: what its workers and servers (ps_worker.c, ps_server.c), which are
 * the same everywhere, need of a transport (shm/shm_ps.c, ucx/ucx_ps.c).
 *
 * Three things pass. A *word* (enum ps_op) goes from every worker to every server, and back comes
 * that it was carried out. A *round* is announced by each worker: what its next pieces are. In a
 * round each piece goes once: a worker's gradients, and back, in their place, come weights.
 */
#ifndef WEIR_COMM_PS_PRIVATE_H
#define WEIR_COMM_PS_PRIVATE_H

#include "comm/ps.h"

/** Parameters in pieces: piece i belongs to server i mod n_servers, so that a backward pass, which
 *  goes through them in order, keeps all servers busy. */
struct ps_layout {
    size_t n_elems, piece_elems, n_pieces;
    int n_servers;
};

/** Pure: the same on every rank. */
struct ps_layout ps_layout_of(size_t n_elems, int n_servers);
size_t ps_piece_first(const struct ps_layout *layout, size_t i_piece);
size_t ps_piece_elems(const struct ps_layout *layout, size_t i_piece);
/** How many pieces a server has. Only the first servers have any, if there are few. */
size_t ps_n_own(const struct ps_layout *layout, int i_server);
/** How many servers have any. */
int ps_n_owners(const struct ps_layout *layout);

enum ps_op {
    PS_OPEN = 1, /**< So many parameters, so far apart may workers be. */
    PS_COMMAND,  /**< Something for the servers' owner. */
    PS_STOP
};

struct ps_control {
    uint64_t op; /**< enum ps_op, as every worker must have it. */
    uint64_t n_elems;
    uint64_t staleness;
    struct weir_ps_step step;
};

enum ps_round_kind {
    PS_ROUND_START = 1, /**< Worker 0's pieces are the weights. */
    PS_ROUND_STEP,      /**< Gradients. */
    PS_ROUND_PULL       /**< Nothing: weights are wanted. */
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

/** What came to a server. */
struct ps_event {
    int worker;
    bool is_control;
    struct ps_control control; /**< If so; a piece otherwise. */
    struct ps_round round;     /**< The one that the piece is of. */
    size_t i_piece;
    const float *data; /**< The piece; until it is answered. Undefined if it has no data. */
};

/** What a worker sees of a piece that it has pushed. */
enum ps_poll_state {
    PS_LEAVING, /**< It has not left this host yet. */
    PS_AWAITED,
    PS_REPLIED
};

/** All need the turn. On failure they have called comm_fail and return what it returned. */
struct ps_transport {
    /** `push` and `look` need no turn, only the communicator's lock. */
    bool is_concurrent;

    /** Both sides: pieces will pass. A worker before it says PS_OPEN, a server when it hears it. */
    weir_status (*open)(struct weir_comm *comm, const struct ps_layout *layout);

    /* Worker. */
    weir_status (*broadcast)(struct weir_comm *comm, const struct ps_control *control);
    weir_status (*is_acked)(struct weir_comm *comm, bool *out);
    weir_status (*begin)(struct weir_comm *comm, const struct ps_round *round);
    /** Send the piece that lies there, or that there is none, and expect the answer in its place.
     */
    weir_status (*push)(struct weir_comm *comm, size_t i_piece, float *piece, bool has_data);
    /** What became of a piece that was pushed? If it was answered, when, by the monotonic clock. */
    weir_status (*poll)(struct weir_comm *comm, size_t i_piece, enum ps_poll_state *out,
                        uint64_t *out_ns);
    /** Sleep until something happened, at most until until_ns; at the deadline fail, naming who is
     *  late with this piece (SIZE_MAX: with the word). */
    weir_status (*idle)(struct weir_comm *comm, size_t i_piece, uint64_t until_ns,
                        uint64_t deadline_ns);

    /** A descriptor that turns readable when there is something to do for pieces on their way, once
     *  the transport's `progress` was called; -1: nothing needs doing. */
    int (*event_fd)(struct weir_comm *comm);

    /* Server. */
    /** The next that came. @param awaited  Worker that others are waiting for, in case one asks. */
    weir_status (*next)(struct weir_comm *comm, int awaited, uint64_t deadline_ns,
                        struct ps_event *out);
    /** Send a worker its piece. The weights stay as they are until that worker pushes the piece
     *  again, or, if is_copied, may change at once. */
    weir_status (*reply)(struct weir_comm *comm, int worker, size_t i_piece, const float *weights,
                         bool is_copied);
    /** Add up with the other servers that have pieces, all of which call it. */
    weir_status (*add_up)(struct weir_comm *comm, double *sums, size_t n_sums,
                          uint64_t deadline_ns);
    /** The word is carried out: tell all workers. Nothing is expected any more after PS_STOP. */
    weir_status (*done)(struct weir_comm *comm, const struct ps_control *control);
};

/** ps_worker.c: send and receive what can be; the turn is the caller's, or comm_ps_is_concurrent. */
void comm_ps_progress(struct weir_comm *comm);
/** Can pieces go on while somebody has the turn, and are there any? Locked. */
bool comm_ps_is_concurrent(const struct weir_comm *comm);
/** When the pump is wanted next without anything having happened; UINT64_MAX: never. Locked. */
uint64_t comm_ps_next_ns(const struct weir_comm *comm);
/** What turns readable when pieces on their way want the pump; -1: none are. Locked. */
int comm_ps_event_fd(struct weir_comm *comm);
void comm_ps_worker_close(struct weir_comm *comm);

#endif
