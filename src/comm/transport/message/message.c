#include "comm/transport/ucx/ucx_private.h"

#include "comm/core/host.h"

#include <sys/mman.h>

enum { SPINS_MOST = 256 /**< Rounds of progress before sleeping. */ };

static weir_status allocate_buffers(struct ucx_state *ucx, struct weir_error *err)
{
    ucx->requests = calloc(4 * (size_t)ucx->comm->size, sizeof *ucx->requests);
    if (ucx->requests == NULL) {
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

static weir_status ucx_open(struct weir_comm *comm, struct rendezvous *rdv, struct weir_error *err)
{
    struct ucx_state *ucx = calloc(1, sizeof *ucx);
    if (ucx == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    comm->state = ucx;
    ucx->comm = comm;
    ucx->fabric = comm->fabric;
    ucx->event_fd = ucx->first_broken = -1;
    ucx->n_spins = 2;
    ucx->n_spins_most = n_ranks_here(comm) <= comm_n_cores() ? SPINS_MOST : 2;
    ucx->workers = (struct ucx_group){.n_ranks = comm->n_workers, .self = comm->rank};
    for (int r = 0; r < comm->n_workers; r++) {
        ucx->workers.ranks[r] = r;
    }
    WEIR_TRY(ucx->fabric->open(ucx, err));
    WEIR_TRY(allocate_buffers(ucx, err));
    if (rdv == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(ucx->fabric->connect(ucx, rdv, err));
    weir_status status = ucx_expect_notice(ucx);
    if (status == WEIR_OK) {
        status = ucx_meet(ucx, comm->size);
    }
    ucx->n_ops = 0; /* servers take part in this one only */
    if (status != WEIR_OK) {
        (void)weir_comm_failure(comm, NULL, err);
    }
    return status;
}

static void free_memories(struct ucx_state *ucx)
{
    for (int i = 0; i < ucx->n_memories; i++) {
        if (ucx->memories[i].handle != NULL) {
            ucx->fabric->unmap(ucx, ucx->memories[i].handle);
        }
        if (!ucx->memories[i].is_borrowed) {
            (void)munmap(ucx->memories[i].base, ucx->memories[i].bytes);
        }
    }
    free(ucx->memories);
}

static void ucx_close(struct weir_comm *comm)
{
    struct ucx_state *ucx = comm->state;
    if (ucx == NULL) {
        return;
    }
    if (ucx->fabric_state != NULL) {
        if (comm_failed(comm) == WEIR_OK && comm->size > 1) {
            ucx_send_goodbye(ucx);
        }
        ucx_close_connections(ucx);
    }
    free_memories(ucx);
    ucx->fabric->close(ucx);
    ucx_group_fini(&ucx->workers);
    ucx_ps_close(ucx);
    free(ucx->requests);
    free(ucx);
    comm->state = NULL;
}

/* The waiting thread looks at the failure when it wakes up. */
static void ucx_interrupt(struct weir_comm *comm)
{
    struct ucx_state *ucx = comm->state;
    (void)comm_fail(comm, WEIR_ERR_CANCELLED, comm->rank, "the communicator is being destroyed");
    ucx->fabric->signal(ucx);
}

static int ucx_event_fd(struct weir_comm *comm)
{
    const struct ucx_state *ucx = comm->state;
    return ucx->fabric->works_while_idle ? ucx->event_fd : -1;
}

/* Take what has come, reply to what other ranks need from the fabric itself, and arm the descriptor
 * for the next time. */
static void ucx_progress(struct weir_comm *comm)
{
    struct ucx_state *ucx = comm->state;
    do {
        while (ucx->fabric->progress(ucx)) {
        }
    } while (!ucx->fabric->arm(ucx));
}

// clang-format off
#define OPERATIONS                                                                                 \
    .open = ucx_open, .close = ucx_close, .interrupt = ucx_interrupt, .alloc = ucx_alloc,          \
    .allreduce = ucx_allreduce, .reduce_scatter = ucx_reduce_scatter,                              \
    .allgather = ucx_allgather, .broadcast = ucx_broadcast, .barrier = ucx_barrier,                \
    .ps = &ucx_ps_transport, .event_fd = ucx_event_fd, .progress = ucx_progress
// clang-format on

const struct comm_transport comm_ucx_transport = {.name = "ucx", OPERATIONS};
const struct comm_transport comm_tcp_transport = {.name = "tcp", OPERATIONS};
