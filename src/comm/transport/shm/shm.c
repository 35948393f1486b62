#include "comm/transport/shm/shm_private.h"

#include "comm/core/host.h"

#include <unistd.h>

/* Rounds of waiting before the futex. With more ranks than cores spinning keeps the one that is
 * waited for from running; yielding lets it run (measured, sums of 1 KiB, 4 ranks on 2 cores: 4 us;
 * asleep at once 26 us). */
enum { SPINS = 2000, YIELDS = 512 };

/* All ranks exchange their status: WEIR_OK if all have that, else the same failure on all. */
static weir_status agree(struct weir_comm *comm, struct rendezvous *rdv,
                         const struct weir_error *own, struct weir_error *err)
{
    uint8_t bytes[sizeof own->message + 16];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_put_u32(&writer, own->status == WEIR_ERR_NOMEM);
    wire_put_text(&writer, own->message);
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    WEIR_TRY(rendezvous_exchange(rdv, bytes, own->status == WEIR_OK ? 0 : writer.len, table, err));
    for (int r = 0; r < comm->size; r++) {
        if (table[r].len == 0) {
            continue;
        }
        struct wire_reader reader = {.data = table[r].data, .left = table[r].len};
        bool is_nomem = wire_get_u32(&reader) != 0;
        char text[sizeof own->message] = "";
        wire_get_text(&reader, text, sizeof text);
        comm->is_refused_by_all = true;
        return weir_error_set(err, is_nomem ? WEIR_ERR_NOMEM : WEIR_ERR_UNSUPPORTED, "rank %d: %s",
                              r, text);
    }
    return WEIR_OK;
}

/* Rank 0 sends where its memory is, all send their pids; then all send whether they can use it. */
static weir_status join_segment(struct shm_state *shm, struct rendezvous *rdv,
                                struct weir_error *err)
{
    struct weir_comm *comm = shm->comm;
    uint8_t bytes[16];
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_put_u64(&writer, (uint64_t)getpid());
    wire_put_u32(&writer, (uint32_t)shm->fd);
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    WEIR_TRY(rendezvous_exchange(rdv, bytes, writer.len, table, err));
    int64_t pids[WEIR_COMM_MAX_RANKS];
    int fd_of_rank_0 = -1;
    for (int r = 0; r < comm->size; r++) {
        struct wire_reader reader = {.data = table[r].data, .left = table[r].len};
        pids[r] = (int64_t)wire_get_u64(&reader);
        int fd = (int)wire_get_u32(&reader);
        fd_of_rank_0 = r == 0 ? fd : fd_of_rank_0;
    }
    struct weir_error why = {.status = WEIR_OK};
    weir_status status = WEIR_OK;
    if (fd_of_rank_0 < 0) {
        status = weir_error_set(&why, WEIR_ERR_NOMEM, "rank 0 has no shared memory");
    } else if (comm->rank != 0) {
        status = shm_segment_attach(shm, pids[0], fd_of_rank_0, &why);
    }
    if (status == WEIR_OK) {
        status = shm_watch_open(shm, pids, &why);
    }
    why.status = status;
    return agree(comm, rdv, &why, err);
}

static weir_status shm_open_group(struct weir_comm *comm, struct rendezvous *rdv,
                                  struct weir_error *err)
{
    struct shm_state *shm = calloc(1, sizeof *shm);
    if (shm == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    comm->state = shm;
    shm->comm = comm;
    shm->fd = shm->watcher.stop_fd = -1;
    for (int r = 0; r < WEIR_COMM_MAX_RANKS; r++) {
        shm->watcher.pid_fds[r] = -1;
    }
    bool has_cores = comm->size <= comm_n_cores();
    shm->n_spins = shm->n_spins_most = has_cores ? SPINS : 0;
    shm->n_yields = shm->n_yields_most = has_cores ? 0 : YIELDS;
    weir_status status = comm->rank == 0 ? shm_segment_create(shm, err) : WEIR_OK;
    if (rdv == NULL) {
        return status;
    }
    if (status != WEIR_OK) {
        /* The others wait to hear it: go on, with nothing to offer. */
        shm_segment_close(shm);
        shm->header = NULL;
        shm->fd = -1;
    }
    WEIR_TRY(join_segment(shm, rdv, err));
    WEIR_TRY(shm_watch_start(shm, err));
    /* A rank that arrives here is alive after all have opened their pidfds: these are the right
     * ones. */
    status = shm_barrier_wait(shm, SHM_ALL, comm_deadline_ns(comm));
    if (status != WEIR_OK) {
        (void)weir_comm_failure(comm, NULL, err);
    }
    return status;
}

static void shm_close(struct weir_comm *comm)
{
    struct shm_state *shm = comm->state;
    if (shm == NULL) {
        return;
    }
    if (shm->header != NULL) {
        atomic_store(&shm->header->ranks[comm->rank].has_left, 1);
        shm_break(shm, SHM_LEFT, comm->rank);
    }
    shm_watch_close(shm);
    shm_ps_close(shm);
    shm_segment_close(shm);
    free(shm);
    comm->state = NULL;
}

static void shm_interrupt(struct weir_comm *comm)
{
    shm_break(comm->state, SHM_LEFT, comm->rank);
}

/* Nothing happens between calls: memory needs no progress. */
static int shm_event_fd(struct weir_comm *comm)
{
    (void)comm;
    return -1;
}

static void shm_progress(struct weir_comm *comm)
{
    (void)comm;
}

const struct comm_transport comm_shm_transport = {
    .name = "shm",
    .open = shm_open_group,
    .close = shm_close,
    .interrupt = shm_interrupt,
    .alloc = shm_alloc,
    .allreduce = shm_allreduce,
    .reduce_scatter = shm_reduce_scatter,
    .allgather = shm_allgather,
    .broadcast = shm_broadcast,
    .barrier = shm_barrier,
    .see = shm_see,
    .watch = shm_watch_poll,
    .ps = &shm_ps_transport,
    .event_fd = shm_event_fd,
    .progress = shm_progress,
};
