/* A parameter server: pieces come, are summed, update the weights, and go back. */
#include "comm/core/comm_private.h"
#include "comm/core/sum.h"
#include "comm/ps/ps_private.h"

#include "base/clock.h"

#include <stdlib.h>

/** What a server knows of one worker's part in one of its pieces. */
struct visit {
    const float *data;
    uint64_t n_steps; /**< Gradients that have come since the start. */
    bool is_waiting;  /**< For its reply. */
    uint64_t kind;    /**< Of the round that it waits in. */
};

struct server {
    struct weir_comm *comm;
    const struct weir_ps_config *config;
    weir_ps_update_fn update;
    void *context;
    struct ps_layout layout;
    uint64_t staleness;
    float *weights;  /**< All; touched are this server's pieces. */
    float *sum;      /**< Of a piece; of all, if updates need config->sums. */
    size_t n_summed; /**< Pieces, if so. */
    uint64_t idle_ns;
    struct visit *visits; /**< [own pieces][workers] */
    uint64_t *n_updates;  /**< By own piece, since the start. */
    uint64_t first_step;
    bool has_first_step;
    int n_controls; /**< Workers that have sent the next control message. */
    struct ps_control controls[WEIR_COMM_MAX_RANKS];
    bool has_sent[WEIR_COMM_MAX_RANKS];
    int awaited; /**< A worker that others wait for; -1: none. */
};

static int server_number(const struct server *server)
{
    return server->comm->rank - server->comm->n_workers;
}

/** Place of a piece among this server's. */
static size_t own_place(const struct server *server, size_t i_piece)
{
    return (i_piece - (size_t)server_number(server)) / (size_t)server->layout.n_servers;
}

static struct visit *visits_of(const struct server *server, size_t i_piece)
{
    return server->visits + own_place(server, i_piece) * (size_t)server->comm->n_workers;
}

static weir_status give_up(struct server *server, weir_status status, const char *what)
{
    int rank = server->comm->rank;
    return comm_fail(server->comm, status, rank, "parameter server %d (rank %d) %s",
                     server_number(server), rank, what);
}

static void forget(struct server *server)
{
    free(server->weights);
    free(server->sum);
    free(server->visits);
    free(server->n_updates);
    server->weights = server->sum = NULL;
    server->visits = NULL;
    server->n_updates = NULL;
}

static weir_status open_pieces(struct server *server, const struct ps_control *control)
{
    struct weir_comm *comm = server->comm;
    if (server->config->sums != NULL && control->staleness > 0) {
        return give_up(server, WEIR_ERR_UNSUPPORTED,
                       "needs all gradients of a step at once: workers must be synchronous");
    }
    forget(server);
    server->layout = ps_layout_of((size_t)control->n_elems, comm->size - comm->n_workers);
    server->staleness = control->staleness;
    server->has_first_step = false;
    size_t n_own = ps_n_own(&server->layout, server_number(server)) + 1;
    server->weights = calloc(server->layout.n_elems + 1, sizeof *server->weights);
    server->sum = calloc(
        (server->config->sums != NULL ? server->layout.n_elems : server->layout.piece_elems) + 1,
        sizeof *server->sum);
    server->n_summed = 0;
    server->visits = calloc(n_own * (size_t)comm->n_workers, sizeof *server->visits);
    server->n_updates = calloc(n_own, sizeof *server->n_updates);
    if (server->weights == NULL || server->sum == NULL || server->visits == NULL ||
        server->n_updates == NULL) {
        return give_up(server, WEIR_ERR_NOMEM, "has no memory for its weights");
    }
    return comm->transport->ps->open(comm, &server->layout);
}

/* ---- pieces --------------------------------------------------------------------------------- */

static weir_status update_piece(struct server *server, const struct ps_event *event,
                                const float *gradients, uint64_t step_number)
{
    size_t first = ps_piece_first(&server->layout, event->i_piece);
    struct weir_ps_step step = event->round.step;
    step.step = step_number;
    weir_status status = server->update(server->context, &step, server->weights + first, gradients,
                                        first, ps_piece_elems(&server->layout, event->i_piece));
    server->n_updates[own_place(server, event->i_piece)]++;
    return status == WEIR_OK ? WEIR_OK : give_up(server, status, "could not update its weights");
}

/** All workers' gradients of this piece are here: their sum in worker order. */
static void sum_piece(const struct server *server, size_t i_piece, float *out)
{
    const struct visit *visits = visits_of(server, i_piece);
    const void *sources[WEIR_COMM_MAX_RANKS];
    int n_workers = server->comm->n_workers;
    for (int r = 0; r < n_workers; r++) {
        sources[r] = visits[r].data;
    }
    void *sum = out;
    comm_sum(WEIR_COMM_F32, &sum, 1, sources, n_workers, ps_piece_elems(&server->layout, i_piece));
}

/** Weights for the workers that wait in such a round and are not too far ahead of the slowest. */
static weir_status reply(struct server *server, size_t i_piece, uint64_t kind, uint64_t staleness)
{
    struct weir_comm *comm = server->comm;
    struct visit *visits = visits_of(server, i_piece);
    uint64_t slowest = UINT64_MAX;
    for (int r = 0; r < comm->n_workers; r++) {
        slowest = WEIR_MIN(slowest, visits[r].n_steps);
    }
    for (int r = 0; r < comm->n_workers; r++) {
        if (visits[r].is_waiting && visits[r].kind == kind &&
            visits[r].n_steps - slowest <= staleness) {
            visits[r].is_waiting = false;
            WEIR_TRY(comm->transport->ps->reply(
                comm, r, i_piece, server->weights + ps_piece_first(&server->layout, i_piece),
                server->staleness > 0));
        }
    }
    return WEIR_OK;
}

/** The others wait for the worker with the fewest gradients. */
static void note_awaited(struct server *server, const struct visit *visits)
{
    server->awaited = 0;
    for (int r = 1; r < server->comm->n_workers; r++) {
        const struct visit *slowest = &visits[server->awaited];
        if (visits[r].n_steps < slowest->n_steps ||
            (visits[r].n_steps == slowest->n_steps && !visits[r].is_waiting &&
             slowest->is_waiting)) {
            server->awaited = r;
        }
    }
}

/** In a round of this kind: a relaxed worker may ask for weights while others still make steps. */
static bool are_all_waiting(const struct server *server, const struct visit *visits, uint64_t kind)
{
    for (int r = 0; r < server->comm->n_workers; r++) {
        if (!visits[r].is_waiting || visits[r].kind != kind) {
            return false;
        }
    }
    return true;
}

/** What updates need of all elements: of this server's, and of the others'. */
static weir_status measure(struct server *server, const struct ps_event *event)
{
    struct weir_comm *comm = server->comm;
    const struct weir_ps_sums *sums = server->config->sums;
    const struct ps_layout *layout = &server->layout;
    for (size_t i_pass = 0; i_pass < sums->n_passes; i_pass++) {
        for (size_t i = 0; i < sums->n_sums; i++) {
            sums->sums[i] = 0;
        }
        for (size_t i = (size_t)server_number(server); i < layout->n_pieces;
             i += (size_t)layout->n_servers) {
            size_t first = ps_piece_first(layout, i);
            sums->measure(server->context, &event->round.step, i_pass, server->weights + first,
                          server->sum + first, first, ps_piece_elems(layout, i));
        }
        if (ps_n_owners(layout) > 1 && sums->n_sums > 0) {
            WEIR_TRY(comm->transport->ps->add_up(comm, sums->sums, sums->n_sums,
                                                 weir_mono_ns() + server->idle_ns));
        }
        sums->conclude(server->context, i_pass);
    }
    return WEIR_OK;
}

/** A piece of a step whose updates need sums: it does nothing before the last is here. The end of
 *  the array, which is needed first, is updated first. */
static weir_status take_with_sums(struct server *server, const struct ps_event *event)
{
    const struct ps_layout *layout = &server->layout;
    const size_t n_own = ps_n_own(layout, server_number(server));
    sum_piece(server, event->i_piece, server->sum + ps_piece_first(layout, event->i_piece));
    if (++server->n_summed < n_own) {
        return WEIR_OK;
    }
    server->n_summed = 0;
    WEIR_TRY(measure(server, event));
    struct ps_event own = *event;
    for (size_t i = n_own; i-- > 0;) {
        own.i_piece = i * (size_t)layout->n_servers + (size_t)server_number(server);
        WEIR_TRY(update_piece(server, &own, server->sum + ps_piece_first(layout, own.i_piece),
                              event->round.step.step));
        WEIR_TRY(reply(server, own.i_piece, PS_ROUND_STEP, UINT64_MAX));
    }
    return WEIR_OK;
}

static weir_status take_piece(struct server *server, const struct ps_event *event)
{
    const bool is_step = event->round.kind == PS_ROUND_STEP;
    if (server->weights == NULL) {
        return give_up(server, WEIR_ERR_INVALID, "was asked for a step before it had weights");
    }
    struct visit *visits = visits_of(server, event->i_piece), *visit = &visits[event->worker];
    size_t first = ps_piece_first(&server->layout, event->i_piece);
    visit->data = event->data;
    visit->n_steps += is_step;
    visit->is_waiting = true;
    visit->kind = event->round.kind;
    if (is_step && !server->has_first_step) {
        server->has_first_step = true;
        server->first_step = event->round.step.step;
    }
    if (event->round.kind == PS_ROUND_START && event->worker == 0) {
        memcpy(server->weights + first, event->data,
               ps_piece_elems(&server->layout, event->i_piece) * sizeof(float));
    }
    if (is_step && server->staleness > 0) {
        uint64_t before = server->first_step * (uint64_t)server->comm->n_workers;
        WEIR_TRY(update_piece(server, event, event->data,
                              before + server->n_updates[own_place(server, event->i_piece)]));
        note_awaited(server, visits);
        return reply(server, event->i_piece, PS_ROUND_STEP, server->staleness);
    }
    note_awaited(server, visits);
    if (!are_all_waiting(server, visits, visit->kind)) {
        return WEIR_OK;
    }
    if (is_step && server->config->sums != NULL) {
        return take_with_sums(server, event);
    }
    if (is_step) {
        sum_piece(server, event->i_piece, server->sum);
        WEIR_TRY(update_piece(server, event, server->sum, event->round.step.step));
    }
    return reply(server, event->i_piece, visit->kind, UINT64_MAX);
}

/* ---- words ---------------------------------------------------------------------------------- */

/** @param out_is_over  Set when the message was the last. */
static weir_status take_control(struct server *server, const struct ps_event *event,
                                bool *out_is_over)
{
    struct weir_comm *comm = server->comm;
    server->controls[event->worker] = event->control;
    server->has_sent[event->worker] = true;
    if (++server->n_controls < comm->n_workers) {
        for (server->awaited = 0; server->has_sent[server->awaited]; server->awaited++) {
        }
        return WEIR_OK;
    }
    const struct ps_control control = server->controls[0];
    server->n_controls = 0;
    server->awaited = -1;
    for (int r = 0; r < comm->n_workers; r++) {
        server->has_sent[r] = false;
        if (server->controls[r].op != control.op ||
            server->controls[r].n_elems != control.n_elems ||
            server->controls[r].staleness != control.staleness) {
            return give_up(server, WEIR_ERR_INVALID,
                           "received different control messages from different workers");
        }
    }
    if (control.op == PS_OPEN) {
        WEIR_TRY(open_pieces(server, &control));
    } else if (control.op == PS_COMMAND) {
        weir_status status = server->config->command == NULL
                                 ? WEIR_ERR_UNSUPPORTED
                                 : server->config->command(server->context, &control.step);
        if (status != WEIR_OK) {
            return give_up(server, status, "could not carry out a command");
        }
    }
    *out_is_over = control.op == PS_STOP;
    return comm->transport->ps->done(comm, &control);
}

weir_status weir_ps_serve(struct weir_comm *comm, const struct weir_ps_config *config,
                          weir_ps_update_fn update, void *context)
{
    if (comm->rank < comm->n_workers || config->idle_timeout_ms < 0) {
        return WEIR_ERR_INVALID;
    }
    struct server server = {
        .comm = comm, .config = config, .update = update, .context = context, .awaited = -1};
    server.idle_ns = config->idle_timeout_ms > 0 ? (uint64_t)config->idle_timeout_ms * 1000000
                                                 : comm->timeout_ns;
    WEIR_TRY(comm_execution_lock(comm));
    bool is_over = false;
    weir_status status = WEIR_OK;
    while (status == WEIR_OK && !is_over) {
        struct ps_event event;
        status = comm->transport->ps->next(comm, server.awaited, weir_mono_ns() + server.idle_ns,
                                           &event);
        if (status == WEIR_OK) {
            status = event.is_control ? take_control(&server, &event, &is_over)
                                      : take_piece(&server, &event);
        }
    }
    if (status != WEIR_OK) {
        comm->transport->interrupt(comm);
    }
    comm_execution_unlock(comm);
    forget(&server);
    return status;
}
