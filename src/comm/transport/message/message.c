#include "comm/transport/message/message_private.h"

#include "comm/core/host.h"

#include <sys/mman.h>

enum { SPINS_MOST = 256 /**< Rounds of progress before sleeping. */ };

static weir_status allocate_buffers(struct message_state *state, struct weir_error *err)
{
    state->requests = calloc(4 * (size_t)state->comm->size, sizeof *state->requests);
    if (state->requests == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator's buffers");
    }
    return WEIR_OK;
}

static int n_ranks_here(const struct weir_comm *comm)
{
    int n = 0;
    for (int r = 0; r < comm->size; r++) {
        n += comm->host_of[r] == comm->host_of[comm->rank];
    }
    return n;
}

static weir_status message_open(struct weir_comm *comm, struct rendezvous *rdv,
                                struct weir_error *err)
{
    struct message_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    comm->state = state;
    state->comm = comm;
    state->fabric = comm->fabric;
    state->event_fd = state->first_broken = -1;
    state->n_spins = 2;
    state->n_spins_most = n_ranks_here(comm) <= comm_n_cores() ? SPINS_MOST : 2;
    state->workers = (struct message_group){.n_ranks = comm->n_workers, .self = comm->rank};
    for (int r = 0; r < comm->n_workers; r++) {
        state->workers.ranks[r] = r;
    }
    WEIR_TRY(state->fabric->open(state, err));
    WEIR_TRY(allocate_buffers(state, err));
    if (rdv == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(state->fabric->connect(state, rdv, err));
    weir_status status = message_expect_notice(state);
    if (status == WEIR_OK) {
        status = message_meet(state, comm->size);
    }
    state->n_ops = 0; /* servers take part in this one only */
    if (status != WEIR_OK) {
        (void)weir_comm_failure(comm, NULL, err);
    }
    return status;
}

static void free_memories(struct message_state *state)
{
    for (int i = 0; i < state->n_memories; i++) {
        if (state->memories[i].handle != NULL) {
            state->fabric->unmap(state, state->memories[i].handle);
        }
        if (!state->memories[i].is_borrowed) {
            (void)munmap(state->memories[i].base, state->memories[i].bytes);
        }
    }
    free(state->memories);
}

static void message_close(struct weir_comm *comm)
{
    struct message_state *state = comm->state;
    if (state == NULL) {
        return;
    }
    if (state->fabric_state != NULL) {
        if (comm_failed(comm) == WEIR_OK && comm->size > 1) {
            message_send_goodbye(state);
        }
        message_close_connections(state);
    }
    free_memories(state);
    state->fabric->close(state);
    message_group_fini(&state->workers);
    message_ps_close(state);
    free(state->requests);
    free(state);
    comm->state = NULL;
}

/* The waiting thread looks at the failure when it wakes up. */
static void message_interrupt(struct weir_comm *comm)
{
    struct message_state *state = comm->state;
    (void)comm_fail(comm, WEIR_ERR_CANCELLED, comm->rank, "the communicator is being destroyed");
    state->fabric->signal(state);
}

static int message_event_fd(struct weir_comm *comm)
{
    const struct message_state *state = comm->state;
    return state->fabric->works_while_idle ? state->event_fd : -1;
}

/* Take what has come, reply to what other ranks need from the fabric itself, and arm the descriptor
 * for the next time. */
static void message_progress(struct weir_comm *comm)
{
    struct message_state *state = comm->state;
    do {
        while (state->fabric->progress(state)) {
        }
    } while (!state->fabric->arm(state));
}

const struct comm_transport comm_message_transport = {
    .name = "message",
    .open = message_open,
    .close = message_close,
    .interrupt = message_interrupt,
    .alloc = message_alloc,
    .allreduce = message_allreduce,
    .reduce_scatter = message_reduce_scatter,
    .allgather = message_allgather,
    .broadcast = message_broadcast,
    .barrier = message_barrier,
    .ps = &message_ps_transport,
    .event_fd = message_event_fd,
    .progress = message_progress,
};
