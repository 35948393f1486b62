/* A parameter server's worker: gradients go piece by piece as they get ready, weights come back. */
#include "comm/comm_private.h"
#include "comm/ps_private.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define NS_PER_S 1000000000

/** Where a piece is. */
enum place { PIECE_IDLE, PIECE_READY, PIECE_SENDING, PIECE_SENT, PIECE_BACK };

struct piece {
    enum place place;
    size_t n_missing; /**< Elements of a round that were not posted yet. */
    float *data;
    uint64_t ready_ns; /**< When it was posted. */
    uint64_t back_ns;  /**< When it is back, over a pretended link: in PIECE_BACK. */
};

struct ps_worker {
    struct ps_layout layout;
    struct piece *pieces;
    size_t n_out; /**< Posted, and not back. */
    bool is_begun, has_data;
    /* A pretended link to the servers, each way. */
    size_t i_sending; /**< The piece on its way; SIZE_MAX: none. */
    uint64_t sent_ns, up_free_ns, down_free_ns;
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
        free(comm->ps->pieces);
        free(comm->ps);
        comm->ps = NULL;
    }
}

static bool make_worker(struct weir_comm *comm, size_t n_elems)
{
    comm_ps_worker_close(comm);
    struct ps_worker *ps = calloc(1, sizeof *ps);
    if (ps == NULL) {
        return false;
    }
    comm->ps = ps;
    ps->layout = ps_layout_of(n_elems, comm->size - comm->n_workers);
    ps->i_sending = SIZE_MAX;
    ps->pieces = calloc(ps->layout.n_pieces + 1, sizeof *ps->pieces);
    return ps->pieces != NULL;
}

/* ---- a pretended link ------------------------------------------------------------------------ */

/** How long a piece takes on the servers' links, which all workers' pieces share. */
static uint64_t carry_ns(const struct weir_comm *comm, size_t i_piece)
{
    const struct ps_layout *layout = &comm->ps->layout;
    double sharers = (double)comm->n_workers / layout->n_servers;
    double bytes = (double)ps_piece_elems(layout, i_piece) * sizeof(float) * WEIR_MAX(sharers, 1);
    return (uint64_t)(bytes / comm->link_bytes_s * NS_PER_S);
}

/** The piece that came back last, by the clock. */
static void settle_back(struct weir_comm *comm, size_t i_piece, uint64_t answered_ns)
{
    struct ps_worker *ps = comm->ps;
    struct piece *piece = &ps->pieces[i_piece];
    piece->back_ns = 0;
    if (comm->link_bytes_s > 0 && ps->has_data) {
        ps->down_free_ns = WEIR_MAX(answered_ns, ps->down_free_ns) + carry_ns(comm, i_piece);
        piece->back_ns = ps->down_free_ns;
    }
    piece->place = PIECE_BACK;
    ps->n_out--;
}

uint64_t comm_ps_next_ns(const struct weir_comm *comm)
{
    return comm->ps != NULL && comm->ps->i_sending != SIZE_MAX ? comm->ps->sent_ns : UINT64_MAX;
}

int comm_ps_event_fd(struct weir_comm *comm)
{
    return comm->ps != NULL && comm->ps->n_out > 0 ? transport_of(comm)->event_fd(comm) : -1;
}

/* ---- the pump -------------------------------------------------------------------------------- */

/** Pieces that have been answered come back, in the order of their answers. */
static weir_status collect(struct weir_comm *comm)
{
    struct ps_worker *ps = comm->ps;
    for (;;) {
        size_t i_first = SIZE_MAX;
        uint64_t first_ns = UINT64_MAX;
        for (size_t i = 0; i < ps->layout.n_pieces; i++) {
            bool is_answered = false;
            uint64_t answered_ns = 0;
            if (ps->pieces[i].place != PIECE_SENT) {
                continue;
            }
            WEIR_TRY(transport_of(comm)->is_answered(comm, i, &is_answered, &answered_ns));
            if (is_answered && comm->link_bytes_s <= 0) {
                settle_back(comm, i, answered_ns);
            } else if (is_answered && answered_ns < first_ns) {
                i_first = i;
                first_ns = answered_ns;
            }
        }
        if (i_first == SIZE_MAX) {
            return WEIR_OK;
        }
        settle_back(comm, i_first, first_ns);
    }
}

/** The ready piece to go next: all workers send them in the order of the array, so that the servers
 *  have all workers' early. */
static size_t choose(const struct ps_worker *ps)
{
    size_t i = 0;
    while (i < ps->layout.n_pieces && ps->pieces[i].place != PIECE_READY) {
        i++;
    }
    return i < ps->layout.n_pieces ? i : SIZE_MAX;
}

static weir_status push(struct weir_comm *comm, size_t i_piece)
{
    struct ps_worker *ps = comm->ps;
    ps->pieces[i_piece].place = PIECE_SENT;
    return transport_of(comm)->push(comm, i_piece, ps->pieces[i_piece].data, ps->has_data);
}

/** Send what is ready: at once, or one after the other as the link is free. */
static weir_status send_ready(struct weir_comm *comm)
{
    struct ps_worker *ps = comm->ps;
    for (;;) {
        uint64_t now_ns = weir_mono_ns();
        if (ps->i_sending != SIZE_MAX && now_ns < ps->sent_ns) {
            return WEIR_OK;
        }
        if (ps->i_sending != SIZE_MAX) {
            size_t i_sent = ps->i_sending;
            ps->i_sending = SIZE_MAX;
            WEIR_TRY(push(comm, i_sent));
        }
        size_t i_next = choose(ps);
        if (i_next == SIZE_MAX) {
            return WEIR_OK;
        }
        if (comm->link_bytes_s <= 0 || !ps->has_data) {
            WEIR_TRY(push(comm, i_next));
            continue;
        }
        /* Whenever this thread is woken: the link takes what is ready as soon as it is free. */
        ps->up_free_ns =
            WEIR_MAX(ps->up_free_ns, ps->pieces[i_next].ready_ns) + carry_ns(comm, i_next);
        ps->i_sending = i_next;
        ps->sent_ns = ps->up_free_ns;
        ps->pieces[i_next].place = PIECE_SENDING;
    }
}

void comm_ps_pump(struct weir_comm *comm)
{
    if (comm->ps == NULL || comm_failed(comm) != WEIR_OK) {
        return;
    }
    lock(comm);
    /* A failure is the communicator's: whoever waits sees it. */
    if (send_ready(comm) == WEIR_OK && collect(comm) != WEIR_OK) {
        (void)pthread_cond_broadcast(&comm->changed);
    }
    unlock(comm);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

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
    WEIR_TRY(comm_turn_take(comm));
    lock(comm);
    for (size_t i = 0; i < ps->layout.n_pieces; i++) {
        ps->pieces[i] =
            (struct piece){.place = PIECE_IDLE, .n_missing = ps_piece_elems(&ps->layout, i)};
    }
    ps->is_begun = true;
    ps->has_data = ps_round_has_data(kind, comm->rank);
    unlock(comm);
    weir_status status = transport_of(comm)->begin(comm, &round);
    comm_turn_give(comm);
    return status;
}

weir_status weir_ps_begin(struct weir_comm *comm, const struct weir_ps_step *step)
{
    return begin(comm, PS_ROUND_STEP, step);
}

weir_status weir_ps_post(struct weir_comm *comm, float *gradients, size_t first_elem,
                         size_t n_elems)
{
    struct ps_worker *ps = comm->ps;
    if (ps == NULL || !ps->is_begun || n_elems > ps->layout.n_elems ||
        first_elem > ps->layout.n_elems - n_elems) {
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
            piece->place = PIECE_READY;
            piece->ready_ns = now_ns;
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

/** Is the range back? Else one of its pieces that is not; and until when it is on its way. */
static bool is_back(const struct ps_worker *ps, size_t first, size_t n, size_t *out_i_piece,
                    uint64_t *out_back_ns)
{
    *out_back_ns = 0;
    for (size_t i = first / ps->layout.piece_elems;
         n > 0 && i <= (first + n - 1) / ps->layout.piece_elems; i++) {
        if (ps->pieces[i].place != PIECE_BACK) {
            *out_i_piece = i;
            return false;
        }
        *out_back_ns = WEIR_MAX(*out_back_ns, ps->pieces[i].back_ns);
    }
    return true;
}

static void sleep_until(uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

weir_status weir_ps_wait(struct weir_comm *comm, size_t first_elem, size_t n_elems)
{
    struct ps_worker *ps = comm->ps;
    if (ps == NULL || n_elems > ps->layout.n_elems || first_elem > ps->layout.n_elems - n_elems) {
        return WEIR_ERR_INVALID;
    }
    uint64_t back_ns = 0, deadline_ns = comm_deadline_ns(comm);
    size_t i_piece = 0;
    WEIR_TRY(comm_turn_take(comm));
    weir_status status = WEIR_OK;
    while (status == WEIR_OK) {
        comm_ps_pump(comm);
        lock(comm);
        bool is_done = is_back(ps, first_elem, n_elems, &i_piece, &back_ns);
        uint64_t until_ns = WEIR_MIN(comm_ps_next_ns(comm), deadline_ns);
        unlock(comm);
        if (is_done) {
            break;
        }
        status = comm_failed(comm);
        if (status == WEIR_OK) {
            status = transport_of(comm)->idle(comm, i_piece, until_ns, deadline_ns);
        }
    }
    comm_turn_give(comm);
    if (status == WEIR_OK && back_ns > 0) {
        sleep_until(back_ns);
    }
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

/* ---- words ----------------------------------------------------------------------------------- */

/** With the turn: tell all servers, and wait until they have done it. */
static weir_status say(struct weir_comm *comm, const struct ps_word *word)
{
    uint64_t deadline_ns = comm_deadline_ns(comm);
    bool is_heard = false;
    WEIR_TRY(transport_of(comm)->say(comm, word));
    for (;;) {
        WEIR_TRY(transport_of(comm)->is_heard(comm, &is_heard));
        if (is_heard) {
            return WEIR_OK;
        }
        WEIR_TRY(transport_of(comm)->idle(comm, SIZE_MAX, deadline_ns, deadline_ns));
    }
}

static bool is_worker_of_servers(const struct weir_comm *comm)
{
    return comm->rank < comm->n_workers && comm->n_workers < comm->size;
}

static weir_status say_in_turn(struct weir_comm *comm, const struct ps_word *word)
{
    if (!is_worker_of_servers(comm) || (comm->ps != NULL && comm->ps->n_out > 0)) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(comm_turn_take(comm));
    weir_status status = say(comm, word);
    comm_turn_give(comm);
    return status;
}

weir_status weir_ps_start_relaxed(struct weir_comm *comm, float *weights, size_t n_elems,
                                  uint64_t staleness)
{
    const struct ps_word word = {.op = PS_OPEN, .n_elems = n_elems, .staleness = staleness};
    if (!is_worker_of_servers(comm) || n_elems > SIZE_MAX / 8) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(comm_turn_take(comm));
    lock(comm);
    bool has_memory = make_worker(comm, n_elems);
    unlock(comm);
    weir_status status =
        has_memory ? transport_of(comm)->open(comm, &comm->ps->layout)
                   : comm_fail(comm, WEIR_ERR_NOMEM, comm->rank, "no memory for the pieces");
    if (status == WEIR_OK) {
        status = say(comm, &word);
    }
    comm_turn_give(comm);
    return status == WEIR_OK ? go_round(comm, PS_ROUND_START, weights, n_elems, NULL) : status;
}

weir_status weir_ps_start(struct weir_comm *comm, float *weights, size_t n_elems)
{
    return weir_ps_start_relaxed(comm, weights, n_elems, 0);
}

weir_status weir_ps_tell(struct weir_comm *comm, const struct weir_ps_step *step)
{
    return say_in_turn(comm, &(struct ps_word){.op = PS_TELL, .step = *step});
}

weir_status weir_ps_stop(struct weir_comm *comm)
{
    return say_in_turn(comm, &(struct ps_word){.op = PS_STOP});
}
