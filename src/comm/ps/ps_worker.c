/* A parameter server's worker: gradients go piece by piece as they get ready, weights come back. */
#include "comm/core/comm_private.h"
#include "comm/ps/ps_order.h"
#include "comm/ps/ps_private.h"
#include "comm/ps/ps_queue.h"

#include "base/clock.h"

#include <stdlib.h>

#define NS_PER_S 1000000000

/* Pieces that have been handed to the transport for one server and not left yet: more than one, so
 * that its connection never waits for the next, few, so that one that is needed sooner passes the
 * others. */
#define LEAVING_MOST 4

/** Where a piece is. */
enum place {
    PIECE_IDLE,
    PIECE_READY,
    PIECE_LEAVING, /**< Handed to the transport. */
    PIECE_AWAITED,
    PIECE_REPLIED,
    PIECE_ON_LINK, /**< An emulated one, to or fro. */
    PIECE_BACK
};

struct piece {
    enum place place;
    size_t n_missing; /**< Elements of a round that were not posted yet. */
    float *data;
    uint64_t since_ns; /**< READY: when it was posted; REPLIED: when the reply came. */
};

/** One direction of an emulated link to the servers. */
struct emulated_link {
    size_t i_piece;   /**< On its way; SIZE_MAX: none. */
    uint64_t free_ns; /**< When it is there, or the last one was. */
};

struct ps_worker {
    struct ps_layout layout;
    struct piece *pieces;
    struct ps_order order;
    struct ps_queue ready, replied; /**< Pieces in these places; the ready ones by server. */
    bool is_relaxed;
    size_t n_out;                       /**< Posted, and not back. */
    int n_leaving[WEIR_COMM_MAX_RANKS]; /**< By server. */
    bool is_begun, has_data;
    struct emulated_link up, down;
};

static const struct ps_transport *transport_of(const struct weir_comm *comm)
{
    return comm->transport->ps;
}

static void lock(struct weir_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
}

static void unlock(struct weir_comm *comm)
{
    (void)pthread_mutex_unlock(&comm->lock);
}

void comm_ps_worker_close(struct weir_comm *comm)
{
    if (comm->ps != NULL) {
        ps_order_fini(&comm->ps->order);
        ps_queue_fini(&comm->ps->ready);
        ps_queue_fini(&comm->ps->replied);
        free(comm->ps->pieces);
        free(comm->ps);
        comm->ps = NULL;
    }
}

static bool make_worker(struct weir_comm *comm, size_t n_elems, bool is_relaxed)
{
    comm_ps_worker_close(comm);
    struct ps_worker *ps = calloc(1, sizeof *ps);
    if (ps == NULL) {
        return false;
    }
    comm->ps = ps;
    ps->layout = ps_layout_of(n_elems, comm->size - comm->n_workers);
    ps->up.i_piece = ps->down.i_piece = SIZE_MAX;
    ps->pieces = calloc(ps->layout.n_pieces + 1, sizeof *ps->pieces);
    ps->is_relaxed = is_relaxed;
    return ps->pieces != NULL && ps_order_init(&ps->order, ps->layout.n_pieces) &&
           ps_queue_init(&ps->ready, ps->layout.n_pieces, ps->layout.n_servers) &&
           ps_queue_init(&ps->replied, ps->layout.n_pieces, 1);
}

/* ---- order of pieces ------------------------------------------------------------------------ */

/** Weights come back by need, and relaxed workers' pieces wait for no other worker's. */
static size_t place_by_need(const struct ps_worker *ps, size_t i_piece)
{
    return ps->layout.n_pieces - 1 - i_piece;
}

static void make_ready(struct ps_worker *ps, size_t i_piece, uint64_t now_ns)
{
    struct piece *piece = &ps->pieces[i_piece];
    piece->place = PIECE_READY;
    piece->since_ns = now_ns;
    ps_queue_add(&ps->ready, i_piece, now_ns,
                 ps->is_relaxed ? place_by_need(ps, i_piece) : ps_order_place(&ps->order, i_piece));
}

/** The piece in this place to go next at free_ns: the first in order of those that were there, or
 *  else the first to come. It is in no queue any more. */
static size_t take_next(struct ps_worker *ps, enum place place, uint64_t free_ns)
{
    return place == PIECE_READY ? ps_queue_take(&ps->ready, ps->n_leaving, LEAVING_MOST, free_ns)
                                : ps_queue_take(&ps->replied, NULL, 0, free_ns);
}

/* ---- an emulated link ----------------------------------------------------------------------- */

/** How long a piece takes on the servers' links, which all workers' pieces share. */
static uint64_t carry_ns(const struct weir_comm *comm, size_t i_piece)
{
    const struct ps_layout *layout = &comm->ps->layout;
    double sharers = (double)comm->n_workers / layout->n_servers;
    double bytes = (double)ps_piece_elems(layout, i_piece) * sizeof(float) * WEIR_MAX(sharers, 1);
    return (uint64_t)(bytes / comm->link_bytes_s * NS_PER_S);
}

/**
 * A piece in this place that may go on now: without an emulated link any, else one that was carried
 * to the end of its link, which takes what was there as soon as it is free, whenever this thread is
 * woken. @return SIZE_MAX: none.
 */
static size_t advance(struct weir_comm *comm, enum place place, struct emulated_link *link,
                      uint64_t now_ns)
{
    struct ps_worker *ps = comm->ps;
    if (comm->link_bytes_s <= 0 || !ps->has_data) {
        return take_next(ps, place, UINT64_MAX);
    }
    if (link->i_piece == SIZE_MAX) {
        size_t i = take_next(ps, place, link->free_ns);
        if (i == SIZE_MAX) {
            return SIZE_MAX;
        }
        link->i_piece = i;
        link->free_ns = WEIR_MAX(link->free_ns, ps->pieces[i].since_ns) + carry_ns(comm, i);
        ps->pieces[i].place = PIECE_ON_LINK;
    }
    size_t i_arrived = now_ns < link->free_ns ? SIZE_MAX : link->i_piece;
    if (i_arrived != SIZE_MAX) {
        link->i_piece = SIZE_MAX;
    }
    return i_arrived;
}

uint64_t comm_ps_next_ns(const struct weir_comm *comm)
{
    const struct ps_worker *ps = comm->ps;
    uint64_t up_ns = ps != NULL && ps->up.i_piece != SIZE_MAX ? ps->up.free_ns : UINT64_MAX;
    uint64_t down_ns = ps != NULL && ps->down.i_piece != SIZE_MAX ? ps->down.free_ns : UINT64_MAX;
    return WEIR_MIN(up_ns, down_ns);
}

bool comm_ps_is_concurrent(const struct weir_comm *comm)
{
    return comm->ps != NULL && comm->ps->n_out > 0 && transport_of(comm)->is_concurrent;
}

int comm_ps_event_fd(struct weir_comm *comm)
{
    return comm->ps != NULL && comm->ps->n_out > 0 ? transport_of(comm)->event_fd(comm) : -1;
}

/* ---- progress ------------------------------------------------------------------------------- */

static weir_status push(struct weir_comm *comm, size_t i_piece)
{
    struct ps_worker *ps = comm->ps;
    ps->pieces[i_piece].place = PIECE_LEAVING;
    ps->n_leaving[i_piece % (size_t)ps->layout.n_servers]++;
    return transport_of(comm)->push(comm, i_piece, ps->pieces[i_piece].data, ps->has_data);
}

/** Send what is ready, as far as there is room. */
static weir_status send_ready(struct weir_comm *comm, uint64_t now_ns)
{
    for (size_t i; (i = advance(comm, PIECE_READY, &comm->ps->up, now_ns)) != SIZE_MAX;) {
        WEIR_TRY(push(comm, i));
    }
    return WEIR_OK;
}

/** Of what was handed over: what has left, what was replied to. */
static weir_status poll(struct weir_comm *comm, bool *out_has_room)
{
    struct ps_worker *ps = comm->ps;
    for (size_t i = 0; i < ps->layout.n_pieces; i++) {
        struct piece *piece = &ps->pieces[i];
        enum ps_poll_state state = PS_LEAVING;
        if (piece->place != PIECE_LEAVING && piece->place != PIECE_AWAITED) {
            continue;
        }
        WEIR_TRY(transport_of(comm)->poll(comm, i, &state, &piece->since_ns));
        if (piece->place == PIECE_LEAVING && state != PS_LEAVING) {
            piece->place = PIECE_AWAITED;
            ps->n_leaving[i % (size_t)ps->layout.n_servers]--;
            *out_has_room = true;
        }
        if (state == PS_REPLIED) {
            piece->place = PIECE_REPLIED;
            ps_order_note(&ps->order, i, piece->since_ns);
            ps_queue_add(&ps->replied, i, piece->since_ns, place_by_need(ps, i));
        }
    }
    return WEIR_OK;
}

static void bring_back(struct weir_comm *comm, uint64_t now_ns)
{
    struct ps_worker *ps = comm->ps;
    for (size_t i; (i = advance(comm, PIECE_REPLIED, &ps->down, now_ns)) != SIZE_MAX;) {
        ps->pieces[i].place = PIECE_BACK;
        ps->n_out--;
    }
}

void comm_ps_progress(struct weir_comm *comm)
{
    lock(comm);
    bool has_room = comm->ps != NULL && comm->ps->n_out > 0 && comm_failed(comm) == WEIR_OK;
    while (has_room) {
        uint64_t now_ns = weir_mono_ns();
        has_room = false;
        /* A failure is the communicator's: a thread that waits sees it. */
        if (send_ready(comm, now_ns) != WEIR_OK || poll(comm, &has_room) != WEIR_OK) {
            (void)pthread_cond_broadcast(&comm->changed);
            break;
        }
        bring_back(comm, now_ns);
    }
    unlock(comm);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static weir_status begin(struct weir_comm *comm, uint64_t kind, const struct weir_ps_step *step)
{
    struct ps_worker *ps = comm->ps;
    struct ps_round round = {.kind = kind};
    if (step != NULL) {
        round.step = *step;
    }
    if (ps == NULL || ps->n_out > 0) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(comm_execution_lock(comm));
    lock(comm);
    for (size_t i = 0; i < ps->layout.n_pieces; i++) {
        ps->pieces[i] =
            (struct piece){.place = PIECE_IDLE, .n_missing = ps_piece_elems(&ps->layout, i)};
    }
    memset(ps->n_leaving, 0, sizeof ps->n_leaving);
    ps_queue_clear(&ps->ready);
    ps_queue_clear(&ps->replied);
    if (kind == PS_ROUND_STEP) {
        ps_order_begin(&ps->order);
    }
    ps->is_begun = true;
    ps->has_data = ps_round_has_data(kind, comm->rank);
    unlock(comm);
    weir_status status = transport_of(comm)->begin(comm, &round);
    comm_execution_unlock(comm);
    return status;
}

weir_status weir_ps_begin(struct weir_comm *comm, const struct weir_ps_step *step)
{
    return begin(comm, PS_ROUND_STEP, step);
}

static bool is_range(const struct ps_worker *ps, size_t first_elem, size_t n_elems)
{
    return ps != NULL && n_elems <= ps->layout.n_elems &&
           first_elem <= ps->layout.n_elems - n_elems;
}

weir_status weir_ps_post(struct weir_comm *comm, float *gradients, size_t first_elem,
                         size_t n_elems)
{
    struct ps_worker *ps = comm->ps;
    if (!is_range(ps, first_elem, n_elems) || !ps->is_begun) {
        return WEIR_ERR_INVALID;
    }
    bool is_any_ready = false;
    const uint64_t now_ns = weir_mono_ns();
    weir_status status = comm_failed(comm);
    lock(comm);
    for (size_t at = first_elem; status == WEIR_OK && at < first_elem + n_elems;) {
        size_t i = at / ps->layout.piece_elems;
        struct piece *piece = &ps->pieces[i];
        size_t end = ps_piece_first(&ps->layout, i) + ps_piece_elems(&ps->layout, i);
        size_t n = WEIR_MIN(end, first_elem + n_elems) - at;
        if (piece->n_missing < n) {
            status = WEIR_ERR_INVALID; /* posted twice */
            break;
        }
        piece->n_missing -= n;
        if (piece->n_missing == 0) {
            piece->data = gradients + ps_piece_first(&ps->layout, i);
            make_ready(ps, i, now_ns);
            ps->n_out++;
            is_any_ready = true;
        }
        at += n;
    }
    unlock(comm);
    if (is_any_ready) {
        comm_wake(comm);
    }
    return status;
}

/** One of the range's pieces that is not back; SIZE_MAX: there is none. Locked. */
static size_t find_out(const struct ps_worker *ps, size_t first, size_t n)
{
    for (size_t i = first / ps->layout.piece_elems;
         n > 0 && i <= (first + n - 1) / ps->layout.piece_elems; i++) {
        if (ps->pieces[i].place != PIECE_BACK) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool weir_ps_is_back(struct weir_comm *comm, size_t first_elem, size_t n_elems)
{
    if (!is_range(comm->ps, first_elem, n_elems)) {
        return false;
    }
    if (transport_of(comm)->is_concurrent) {
        comm_ps_progress(comm);
    }
    lock(comm);
    bool is_back = find_out(comm->ps, first_elem, n_elems) == SIZE_MAX;
    unlock(comm);
    return is_back;
}

static void sleep_until(uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/** With the execution lock: wait until something may have happened to the piece. */
static weir_status idle(struct weir_comm *comm, size_t i_piece, uint64_t deadline_ns)
{
    lock(comm);
    const enum place place = comm->ps->pieces[i_piece].place;
    const uint64_t until_ns = WEIR_MIN(comm_ps_next_ns(comm), deadline_ns);
    unlock(comm);
    WEIR_TRY(comm_failed(comm));
    if (place == PIECE_REPLIED || place == PIECE_ON_LINK) {
        sleep_until(until_ns); /* the emulated link's doing: the transport knows nothing of it */
        return WEIR_OK;
    }
    return transport_of(comm)->idle(comm, i_piece, until_ns, deadline_ns);
}

weir_status weir_ps_wait(struct weir_comm *comm, size_t first_elem, size_t n_elems)
{
    uint64_t deadline_ns = comm_deadline_ns(comm);
    if (!is_range(comm->ps, first_elem, n_elems)) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(comm_execution_lock(comm));
    weir_status status = WEIR_OK;
    while (status == WEIR_OK) {
        comm_ps_progress(comm);
        lock(comm);
        size_t i_piece = find_out(comm->ps, first_elem, n_elems);
        unlock(comm);
        if (i_piece == SIZE_MAX) {
            break;
        }
        status = idle(comm, i_piece, deadline_ns);
    }
    comm_execution_unlock(comm);
    return status;
}

weir_status weir_ps_wait_all(struct weir_comm *comm)
{
    return comm->ps == NULL ? WEIR_ERR_INVALID : weir_ps_wait(comm, 0, comm->ps->layout.n_elems);
}

/** A whole round at once. */
static weir_status go_round(struct weir_comm *comm, uint64_t kind, float *array, size_t n_elems,
                            const struct weir_ps_step *step)
{
    if (comm->ps == NULL || comm->ps->layout.n_elems != n_elems) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(begin(comm, kind, step));
    WEIR_TRY(weir_ps_post(comm, array, 0, n_elems));
    return weir_ps_wait_all(comm);
}

weir_status weir_ps_push_pull(struct weir_comm *comm, const float *gradients, float *weights,
                              size_t n_elems, const struct weir_ps_step *step)
{
    if (comm->ps == NULL || comm->ps->layout.n_elems != n_elems) {
        return WEIR_ERR_INVALID;
    }
    if (n_elems > 0) {
        memcpy(weights, gradients, n_elems * sizeof *weights);
    }
    return go_round(comm, PS_ROUND_STEP, weights, n_elems, step);
}

bool weir_ps_is_narrow(const struct weir_comm *comm)
{
    return comm->wire != COMM_WIRE_F32 && comm->n_workers < comm->size &&
           comm->transport != &comm_shm_transport;
}

weir_status weir_ps_pull(struct weir_comm *comm, float *weights, size_t n_elems)
{
    return go_round(comm, PS_ROUND_PULL, weights, n_elems, NULL);
}

/* ---- words ---------------------------------------------------------------------------------- */

/** With the execution lock: send it to all servers, and wait until they have carried it out. */
static weir_status broadcast(struct weir_comm *comm, const struct ps_control *control)
{
    uint64_t deadline_ns = comm_deadline_ns(comm);
    bool is_acked = false;
    WEIR_TRY(transport_of(comm)->broadcast(comm, control));
    for (;;) {
        WEIR_TRY(transport_of(comm)->is_acked(comm, &is_acked));
        if (is_acked) {
            return WEIR_OK;
        }
        WEIR_TRY(transport_of(comm)->idle(comm, SIZE_MAX, deadline_ns, deadline_ns));
    }
}

static bool is_worker_of_servers(const struct weir_comm *comm)
{
    return comm->rank < comm->n_workers && comm->n_workers < comm->size;
}

static weir_status broadcast_locked(struct weir_comm *comm, const struct ps_control *control)
{
    if (!is_worker_of_servers(comm) || (comm->ps != NULL && comm->ps->n_out > 0)) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(comm_execution_lock(comm));
    weir_status status = broadcast(comm, control);
    comm_execution_unlock(comm);
    return status;
}

weir_status weir_ps_start_relaxed(struct weir_comm *comm, float *weights, size_t n_elems,
                                  uint64_t staleness)
{
    const struct ps_control control = {.op = PS_OPEN, .n_elems = n_elems, .staleness = staleness};
    if (!is_worker_of_servers(comm) || n_elems > SIZE_MAX / 8) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(comm_execution_lock(comm));
    lock(comm);
    bool has_memory = make_worker(comm, n_elems, staleness > 0);
    unlock(comm);
    weir_status status =
        has_memory ? transport_of(comm)->open(comm, &comm->ps->layout)
                   : comm_fail(comm, WEIR_ERR_NOMEM, comm->rank, "no memory for the pieces");
    if (status == WEIR_OK) {
        status = broadcast(comm, &control);
    }
    comm_execution_unlock(comm);
    return status == WEIR_OK ? go_round(comm, PS_ROUND_START, weights, n_elems, NULL) : status;
}

weir_status weir_ps_start(struct weir_comm *comm, float *weights, size_t n_elems)
{
    return weir_ps_start_relaxed(comm, weights, n_elems, 0);
}

weir_status weir_ps_command(struct weir_comm *comm, const struct weir_ps_step *step)
{
    return broadcast_locked(comm, &(struct ps_control){.op = PS_COMMAND, .step = *step});
}

weir_status weir_ps_stop(struct weir_comm *comm)
{
    return broadcast_locked(comm, &(struct ps_control){.op = PS_STOP});
}
