/*
 * Parameter server over messages. The server first receives what a round is, and from then on
 * expects each of the worker's pieces; the reply goes back as one message of the same number. What
 * passes as 16 bits (config.wire): gradients, and weights but those that were asked for by a pull.
 */
#include "comm/transport/message/message_private.h"

#include "base/clock.h"
#include "comm/core/half.h"

#include <stdlib.h>

/** One worker's piece, at the worker and at its server. */
struct message_piece {
    struct message_request out, in;
    float *data;         /**< Worker: where it lies. Server: its gradients. */
    uint16_t *narrow;    /**< The same as 16 bits, where they are sent so; else NULL. */
    bool is_out;         /**< Worker: sent, the reply is not expected yet. */
    bool is_in;          /**< `in` is posted, and its end was not seen. */
    const void *waiting; /**< Server: a reply that waits until others have left; else NULL. */
};

/* A worker's replies that are on their way out at once: see LEAVING_MOST in ps_worker.c. */
#define REPLIES_LEAVING_MOST 4

/** A control message, and how many rounds its worker has announced before it: a server that has no
 *  pieces is not waited for, and may still have these before it. */
struct message_control {
    struct ps_control control;
    uint64_t n_rounds;
};

/** A server's side of a worker. */
struct message_client {
    struct message_control control;
    struct ps_round round, next_round;
    struct message_request control_in, round_in, done_out;
    uint32_t n_controls, n_rounds;
    float *room; /**< Of its gradients, and of replies that are copies. */
    uint16_t *narrow_room;
    struct message_piece *pieces; /**< By own piece. */
    size_t n_queued;
    size_t leaving[REPLIES_LEAVING_MOST]; /**< Own pieces whose replies are on their way out. */
    int n_leaving;
    bool is_control_in; /**< `control_in` is posted, and its end was not seen. */
    bool has_control;   /**< `control` has come, and waits for the rounds before it. */
};

struct message_ps {
    struct ps_layout layout;
    bool is_open;
    unsigned n_idle;
    size_t n_own; /**< Server: its pieces. */
    size_t i_next;
    /* Worker. */
    struct message_control control;
    struct ps_round round;
    uint32_t n_controls, n_rounds;
    struct message_piece *pieces;
    uint16_t *narrow_room;
    struct message_request sent[WEIR_COMM_MAX_RANKS], acks[WEIR_COMM_MAX_RANKS],
        begun[WEIR_COMM_MAX_RANKS];
    struct message_client *clients; /**< Server. */
    bool is_serving;
    uint32_t n_added; /**< How often the servers have added up since the start. */
};

static size_t n_servers(const struct weir_comm *comm)
{
    return (size_t)(comm->size - comm->n_workers);
}

static int server_of(const struct weir_comm *comm, size_t i_piece)
{
    return comm->n_workers + (int)(i_piece % n_servers(comm));
}

static weir_status no_memory(struct message_state *state)
{
    return message_fail(state, WEIR_ERR_NOMEM, state->comm->rank, "has no memory for its pieces");
}

static bool is_narrow(const struct weir_comm *comm)
{
    return comm->wire != COMM_WIRE_F32;
}

static void forget_pieces(struct message_ps *ps, int n_clients)
{
    for (int r = 0; ps->clients != NULL && r < n_clients; r++) {
        struct message_client *client = &ps->clients[r];
        free(client->room);
        free(client->narrow_room);
        free(client->pieces);
        client->room = NULL;
        client->narrow_room = NULL;
        client->pieces = NULL;
        client->n_queued = 0;
        client->n_leaving = 0;
    }
    free(ps->pieces);
    free(ps->narrow_room);
    ps->pieces = NULL;
    ps->narrow_room = NULL;
    ps->is_open = false;
}

void message_ps_close(struct message_state *state)
{
    if (state->ps != NULL) {
        forget_pieces(state->ps, state->comm->n_workers);
        free(state->ps->clients);
        free(state->ps);
        state->ps = NULL;
    }
}

static struct message_ps *need_ps(struct message_state *state)
{
    if (state->ps == NULL) {
        state->ps = calloc(1, sizeof *state->ps);
    }
    return state->ps;
}

/* ---- what a piece is on the wire ------------------------------------------------------------ */

static bool is_push_narrow(const struct weir_comm *comm, const struct ps_round *round)
{
    return is_narrow(comm) && round->kind == PS_ROUND_STEP;
}

static bool is_reply_narrow(const struct weir_comm *comm, const struct ps_round *round)
{
    return is_narrow(comm) && round->kind != PS_ROUND_PULL;
}

static size_t wire_bytes(const struct ps_layout *layout, size_t i_piece, bool is_narrow)
{
    return ps_piece_elems(layout, i_piece) * (is_narrow ? sizeof(uint16_t) : sizeof(float));
}

/* ---- opening -------------------------------------------------------------------------------- */

static weir_status open_worker(struct message_state *state)
{
    struct message_ps *ps = state->ps;
    ps->pieces = calloc(ps->layout.n_pieces + 1, sizeof *ps->pieces);
    if (is_narrow(state->comm)) {
        ps->narrow_room = calloc(ps->layout.n_elems + 1, sizeof *ps->narrow_room);
    }
    return ps->pieces == NULL || (is_narrow(state->comm) && ps->narrow_room == NULL)
               ? no_memory(state)
               : WEIR_OK;
}

static weir_status expect_round(struct message_state *state, int worker)
{
    struct message_client *client = &state->ps->clients[worker];
    return message_receive(state, worker, &client->next_round, sizeof client->next_round,
                           client->n_rounds, message_part(MESSAGE_PS_ROUND, 0), &client->round_in);
}

static weir_status open_client(struct message_state *state, int worker)
{
    struct message_ps *ps = state->ps;
    struct message_client *client = &ps->clients[worker];
    const size_t n_room = ps->n_own * ps->layout.piece_elems + 1;
    const bool is_16 = is_narrow(state->comm);
    client->pieces = calloc(ps->n_own + 1, sizeof *client->pieces);
    client->room = calloc(n_room, sizeof *client->room);
    client->narrow_room = is_16 ? calloc(n_room, sizeof *client->narrow_room) : NULL;
    if (client->pieces == NULL || client->room == NULL || (is_16 && client->narrow_room == NULL)) {
        return no_memory(state);
    }
    for (size_t i = 0; i < ps->n_own; i++) {
        client->pieces[i].data = client->room + i * ps->layout.piece_elems;
        client->pieces[i].narrow = is_16 ? client->narrow_room + i * ps->layout.piece_elems : NULL;
    }
    return client->round_in.handle != NULL ? WEIR_OK : expect_round(state, worker);
}

/** The workers have their last replies, or soon will: until their sending is known to have ended, the
 *  pieces are in the list of what is in flight. */
static weir_status end_replies(struct message_state *state)
{
    const uint64_t deadline_ns = comm_deadline_ns(state->comm);
    const struct message_ps *ps = state->ps;
    for (int r = 0; ps->clients != NULL && r < state->comm->n_workers; r++) {
        for (size_t i = 0; ps->clients[r].pieces != NULL && i < ps->n_own; i++) {
            WEIR_TRY(message_wait(state, &ps->clients[r].pieces[i].out, deadline_ns));
        }
    }
    return WEIR_OK;
}

static weir_status ps_open(struct weir_comm *comm, const struct ps_layout *layout)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = need_ps(state);
    if (ps == NULL) {
        return no_memory(state);
    }
    WEIR_TRY(end_replies(state));
    forget_pieces(ps, comm->n_workers);
    ps->layout = *layout;
    ps->is_open = true;
    ps->n_added = 0;
    if (comm->rank < comm->n_workers) {
        return open_worker(state);
    }
    ps->n_own = ps_n_own(layout, comm->rank - comm->n_workers);
    ps->i_next = 0;
    for (int r = 0; r < comm->n_workers; r++) {
        WEIR_TRY(open_client(state, r));
    }
    return WEIR_OK;
}

/* ---- worker --------------------------------------------------------------------------------- */

static weir_status ps_broadcast(struct weir_comm *comm, const struct ps_control *control)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = need_ps(state);
    if (ps == NULL) {
        return no_memory(state);
    }
    ps->control = (struct message_control){.control = *control, .n_rounds = ps->n_rounds};
    uint32_t n = ps->n_controls++;
    for (int r = comm->n_workers; r < comm->size; r++) {
        WEIR_TRY(
            message_receive(state, r, NULL, 0, n, message_part(MESSAGE_PS_DONE, 0), &ps->acks[r]));
        WEIR_TRY(message_send(state, r, &ps->control, sizeof ps->control, n,
                              message_part(MESSAGE_PS_CONTROL, 0), &ps->sent[r]));
    }
    return WEIR_OK;
}

static weir_status ps_is_acked(struct weir_comm *comm, bool *out)
{
    struct message_state *state = comm->state;
    size_t n = n_servers(comm);
    bool is_sent = false;
    WEIR_TRY(message_test_all(state, state->ps->sent + comm->n_workers, n, &is_sent));
    WEIR_TRY(message_test_all(state, state->ps->acks + comm->n_workers, n, out));
    *out = *out && is_sent;
    return WEIR_OK;
}

static weir_status ps_begin(struct weir_comm *comm, const struct ps_round *round)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    /* Gone long ago: all of the last round was replied to. */
    WEIR_TRY(message_wait_all(state, ps->begun + comm->n_workers, n_servers(comm),
                              comm_deadline_ns(comm)));
    ps->round = *round;
    uint32_t n = ps->n_rounds++;
    for (int r = comm->n_workers; r < comm->size; r++) {
        WEIR_TRY(message_send(state, r, &ps->round, sizeof ps->round, n,
                              message_part(MESSAGE_PS_ROUND, 0), &ps->begun[r]));
    }
    return WEIR_OK;
}

static weir_status ps_push(struct weir_comm *comm, size_t i_piece, float *piece, bool has_data)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    struct message_piece *own = &ps->pieces[i_piece];
    const bool is_16 = is_push_narrow(comm, &ps->round);
    own->data = piece;
    own->narrow = is_narrow(comm) ? ps->narrow_room + ps_piece_first(&ps->layout, i_piece) : NULL;
    own->is_out = true;
    if (has_data && is_16) {
        comm_half_narrow(comm->wire, piece, ps_piece_elems(&ps->layout, i_piece), own->narrow);
    }
    return message_send(state, server_of(comm, i_piece),
                        is_16 ? (void *)own->narrow : (void *)piece,
                        has_data ? wire_bytes(&ps->layout, i_piece, is_16) : 0, ps->n_rounds - 1,
                        message_part(MESSAGE_PS_PUSH, i_piece), &own->out);
}

/** The reply comes where the gradients were: not before these have left. */
static weir_status expect_reply(struct message_state *state, size_t i_piece)
{
    struct message_ps *ps = state->ps;
    struct message_piece *own = &ps->pieces[i_piece];
    const bool is_16 = is_reply_narrow(state->comm, &ps->round);
    own->is_out = false;
    own->is_in = true;
    return message_receive(state, server_of(state->comm, i_piece),
                           is_16 ? (void *)own->narrow : (void *)own->data,
                           wire_bytes(&ps->layout, i_piece, is_16), ps->n_rounds - 1,
                           message_part(MESSAGE_PS_PULL, i_piece), &own->in);
}

static weir_status ps_poll(struct weir_comm *comm, size_t i_piece, enum ps_poll_state *out,
                           uint64_t *out_ns)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    struct message_piece *own = &ps->pieces[i_piece];
    bool is_over = false;
    *out = PS_LEAVING;
    if (own->is_out) {
        WEIR_TRY(message_test_all(state, &own->out, 1, &is_over));
        if (is_over) {
            *out = PS_AWAITED;
            return expect_reply(state, i_piece);
        }
        return WEIR_OK;
    }
    *out = PS_AWAITED;
    if (own->is_in) {
        WEIR_TRY(message_test_all(state, &own->in, 1, &is_over));
        if (!is_over) {
            return WEIR_OK;
        }
        own->is_in = false;
        if (is_reply_narrow(comm, &ps->round)) {
            comm_half_widen(comm->wire, own->narrow, ps_piece_elems(&ps->layout, i_piece),
                            own->data);
        }
    }
    *out = PS_REPLIED;
    *out_ns = weir_mono_ns();
    return WEIR_OK;
}

static weir_status ps_idle(struct weir_comm *comm, size_t i_piece, uint64_t until_ns,
                           uint64_t deadline_ns)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    const struct message_request *request = NULL;
    const struct message_request none = {.rank = comm->n_workers};
    if (i_piece == SIZE_MAX) {
        for (int r = comm->n_workers; r < comm->size && request == NULL; r++) {
            request = ps->acks[r].handle != NULL ? &ps->acks[r] : NULL;
        }
    } else {
        const struct message_piece *own = &ps->pieces[i_piece];
        request = own->in.handle != NULL ? &own->in : own->out.handle != NULL ? &own->out : NULL;
    }
    return message_idle_until(state, request != NULL ? request : &none, until_ns, deadline_ns,
                              &ps->n_idle);
}

static int ps_event_fd(struct weir_comm *comm)
{
    return ((struct message_state *)comm->state)->event_fd;
}

/* ---- server --------------------------------------------------------------------------------- */

static weir_status expect_control(struct message_state *state, int worker)
{
    struct message_client *client = &state->ps->clients[worker];
    client->is_control_in = true;
    return message_receive(state, worker, &client->control, sizeof client->control,
                           client->n_controls++, message_part(MESSAGE_PS_CONTROL, 0),
                           &client->control_in);
}

static weir_status begin_serving(struct message_state *state)
{
    struct message_ps *ps = need_ps(state);
    if (ps == NULL) {
        return no_memory(state);
    }
    if (ps->is_serving) {
        return WEIR_OK;
    }
    if (ps->clients == NULL) {
        ps->clients = calloc((size_t)state->comm->n_workers, sizeof *ps->clients);
    }
    if (ps->clients == NULL) {
        return no_memory(state);
    }
    ps->is_serving = true;
    for (int r = 0; r < state->comm->n_workers; r++) {
        WEIR_TRY(expect_control(state, r));
    }
    return WEIR_OK;
}

static size_t piece_number(const struct weir_comm *comm, size_t i_own)
{
    return i_own * n_servers(comm) + (size_t)(comm->rank - comm->n_workers);
}

/** A worker's round begins: its pieces may come. */
static weir_status expect_pieces(struct message_state *state, int worker)
{
    struct message_ps *ps = state->ps;
    struct message_client *client = &ps->clients[worker];
    client->round = client->next_round;
    const bool has_data = ps_round_has_data(client->round.kind, worker);
    const bool is_16 = is_push_narrow(state->comm, &client->round);
    for (size_t i = ps->n_own; i-- > 0;) {
        struct message_piece *piece = &client->pieces[i];
        size_t i_piece = piece_number(state->comm, i);
        /* The worker has its last reply, so that nothing can keep us from knowing it. */
        WEIR_TRY(message_wait(state, &piece->out, comm_deadline_ns(state->comm)));
        piece->is_in = true;
        WEIR_TRY(message_receive(state, worker, is_16 ? (void *)piece->narrow : (void *)piece->data,
                                 has_data ? wire_bytes(&ps->layout, i_piece, is_16) : 0,
                                 client->n_rounds, message_part(MESSAGE_PS_PUSH, i_piece),
                                 &piece->in));
    }
    client->n_rounds++;
    return expect_round(state, worker);
}

/** All rounds of a worker that have come: several, if this server has no pieces. */
static weir_status poll_rounds(struct message_state *state, int worker)
{
    for (bool is_over = true; is_over;) {
        WEIR_TRY(message_test_all(state, &state->ps->clients[worker].round_in, 1, &is_over));
        if (is_over) {
            WEIR_TRY(expect_pieces(state, worker));
        }
    }
    return WEIR_OK;
}

/** The next of a worker's control messages, once its rounds before it have begun here. */
static weir_status poll_control(struct message_state *state, int worker, bool *out_is_found)
{
    struct message_client *client = &state->ps->clients[worker];
    bool is_over = false;
    if (client->is_control_in) {
        WEIR_TRY(message_test_all(state, &client->control_in, 1, &is_over));
    }
    if (is_over) {
        client->is_control_in = false;
        client->has_control = true;
    }
    if (state->ps->is_open) {
        WEIR_TRY(poll_rounds(state, worker));
    }
    *out_is_found = client->has_control && client->control.n_rounds == client->n_rounds;
    client->has_control = client->has_control && !*out_is_found;
    return WEIR_OK;
}

static weir_status find_control(struct message_state *state, struct ps_event *out,
                                bool *out_is_found)
{
    for (int r = 0; r < state->comm->n_workers && !*out_is_found; r++) {
        WEIR_TRY(poll_control(state, r, out_is_found));
        if (*out_is_found) {
            *out = (struct ps_event){
                .worker = r, .is_control = true, .control = state->ps->clients[r].control.control};
        }
    }
    return WEIR_OK;
}

/** From where it looked last, once around; the end of the array, which is needed first, first. */
static weir_status find_piece(struct message_state *state, struct ps_event *out, bool *out_is_found)
{
    struct message_ps *ps = state->ps;
    const size_t n_workers = (size_t)state->comm->n_workers;
    for (size_t n = ps->n_own * n_workers; n > 0; n--) {
        size_t at = ps->i_next++ % (ps->n_own * n_workers), i = ps->n_own - 1 - at / n_workers;
        struct message_client *client = &ps->clients[at % n_workers];
        struct message_piece *piece = &client->pieces[i];
        bool is_over = false;
        if (piece->is_in) {
            WEIR_TRY(message_test_all(state, &piece->in, 1, &is_over));
        }
        if (!is_over) {
            continue;
        }
        piece->is_in = false;
        *out = (struct ps_event){.worker = (int)(at % n_workers),
                                 .round = client->round,
                                 .i_piece = piece_number(state->comm, i),
                                 .data = piece->data};
        if (is_push_narrow(state->comm, &client->round)) {
            comm_half_widen(state->comm->wire, piece->narrow,
                            ps_piece_elems(&ps->layout, out->i_piece), piece->data);
        }
        *out_is_found = true;
        return WEIR_OK;
    }
    return WEIR_OK;
}

/** Replies leave by need, the end of the array first, and few at a time. */
static weir_status send_replies(struct message_state *state, int worker)
{
    struct message_ps *ps = state->ps;
    struct message_client *client = &ps->clients[worker];
    const bool is_16 = is_reply_narrow(state->comm, &client->round);
    int n_leaving = 0;
    for (int k = 0; k < client->n_leaving; k++) {
        size_t i = client->leaving[k];
        bool is_over = false;
        WEIR_TRY(message_test_all(state, &client->pieces[i].out, 1, &is_over));
        if (!is_over) {
            client->leaving[n_leaving++] = i;
        }
    }
    client->n_leaving = n_leaving;
    for (size_t i = ps->n_own;
         i-- > 0 && client->n_queued > 0 && client->n_leaving < REPLIES_LEAVING_MOST;) {
        struct message_piece *piece = &client->pieces[i];
        const void *reply = piece->waiting;
        if (reply == NULL) {
            continue;
        }
        size_t i_piece = piece_number(state->comm, i);
        piece->waiting = NULL;
        client->n_queued--;
        client->leaving[client->n_leaving++] = i;
        WEIR_TRY(message_send(state, worker, reply, wire_bytes(&ps->layout, i_piece, is_16),
                              client->n_rounds - 1, message_part(MESSAGE_PS_PULL, i_piece),
                              &piece->out));
    }
    return WEIR_OK;
}

static weir_status send_all_replies(struct message_state *state)
{
    for (int r = 0; r < state->comm->n_workers; r++) {
        if (state->ps->clients[r].n_queued > 0) {
            WEIR_TRY(send_replies(state, r));
        }
    }
    return WEIR_OK;
}

static weir_status ps_next(struct weir_comm *comm, int awaited, uint64_t deadline_ns,
                           struct ps_event *out)
{
    struct message_state *state = comm->state;
    WEIR_TRY(begin_serving(state));
    struct message_ps *ps = state->ps;
    for (;;) {
        bool is_found = false;
        WEIR_TRY(send_all_replies(state));
        WEIR_TRY(find_control(state, out, &is_found));
        if (!is_found && ps->is_open) {
            WEIR_TRY(find_piece(state, out, &is_found));
        }
        if (is_found) {
            return comm_failed(comm);
        }
        const struct message_client *client = &ps->clients[WEIR_MAX(awaited, 0)];
        struct message_request request = {.rank = WEIR_MAX(awaited, 0)};
        request.handle = awaited >= 0 ? (void *)client : NULL; /* names it, if a rank asks */
        WEIR_TRY(message_idle(state, &request, deadline_ns, &ps->n_idle));
    }
}

static weir_status ps_reply(struct weir_comm *comm, int worker, size_t i_piece,
                            const float *weights, bool is_copied)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    struct message_client *client = &ps->clients[worker];
    struct message_piece *piece = &client->pieces[i_piece / n_servers(comm)];
    const bool is_16 = is_reply_narrow(comm, &client->round);
    const size_t n = ps_piece_elems(&ps->layout, i_piece);
    const void *sent = weights;
    if (is_16) {
        comm_half_narrow(comm->wire, weights, n, piece->narrow);
        sent = piece->narrow;
    } else if (is_copied) {
        memcpy(piece->data, weights, n * sizeof *weights);
        sent = piece->data;
    }
    piece->waiting = sent;
    client->n_queued++;
    return send_replies(state, worker);
}

static weir_status ps_add_up(struct weir_comm *comm, double *sums, size_t n_sums,
                             uint64_t deadline_ns)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    return message_add_up(state, comm->n_workers, ps_n_owners(&ps->layout), sums, n_sums,
                          ps->n_added++, deadline_ns);
}

static weir_status ps_done(struct weir_comm *comm, const struct ps_control *control)
{
    struct message_state *state = comm->state;
    struct message_ps *ps = state->ps;
    uint64_t deadline_ns = comm_deadline_ns(comm);
    for (int r = 0; r < comm->n_workers; r++) {
        struct message_client *client = &ps->clients[r];
        if (control->op == PS_STOP) {
            /* A worker that gets it may leave: nothing is awaited from it any more. */
            message_cancel(state, &client->round_in);
        }
        WEIR_TRY(message_send(state, r, NULL, 0, client->n_controls - 1,
                              message_part(MESSAGE_PS_DONE, 0), &client->done_out));
        if (control->op != PS_STOP) {
            WEIR_TRY(expect_control(state, r));
        }
    }
    for (int r = 0; r < comm->n_workers; r++) {
        WEIR_TRY(message_wait(state, &ps->clients[r].done_out, deadline_ns));
    }
    if (control->op == PS_STOP) {
        WEIR_TRY(end_replies(state));
        ps->is_serving = ps->is_open = false;
    }
    return WEIR_OK;
}

const struct ps_transport message_ps_transport = {.open = ps_open,
                                                  .broadcast = ps_broadcast,
                                                  .is_acked = ps_is_acked,
                                                  .begin = ps_begin,
                                                  .push = ps_push,
                                                  .poll = ps_poll,
                                                  .idle = ps_idle,
                                                  .event_fd = ps_event_fd,
                                                  .next = ps_next,
                                                  .reply = ps_reply,
                                                  .add_up = ps_add_up,
                                                  .done = ps_done};
