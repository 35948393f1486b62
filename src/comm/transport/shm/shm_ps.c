/*
 * Parameter server in shared memory. A worker's pieces stay where they are: it publishes where
 * (n_pushed counts), the server reads the gradients there, writes the weights over them (n_replied
 * counts), and each rings the other's doorbell. A reply that was sent counts, also if the group
 * broke right after.
 */
#include "comm/transport/shm/shm_private.h"

#include "base/clock.h"

#include <stdlib.h>

static struct shm_rank *rank_of(const struct shm_state *shm, int rank)
{
    return &shm->header->ranks[rank];
}

static weir_status map_mailbox(struct shm_state *shm, int rank, struct shm_window *window,
                               struct shm_piece **out)
{
    uint8_t *place = NULL;
    weir_status status =
        shm_window_map(shm, rank_of(shm, rank)->mailbox_offset,
                       (shm->ps.layout.n_pieces + 1) * sizeof **out, window, &place);
    *out = (struct shm_piece *)(void *)place;
    return status;
}

/** Mapped since `open`. */
static struct shm_piece *mailbox_in(const struct shm_window *window)
{
    return (struct shm_piece *)(void *)window->base; /* whole pages: it begins with the window */
}

static void forget(struct shm_ps *ps)
{
    free(ps->copied);
    free(ps->is_out);
    ps->is_out = NULL;
    free(ps->n_taken);
    ps->copied = NULL;
    ps->n_taken = NULL;
}

static weir_status no_memory(struct shm_state *shm)
{
    return shm_give_up(shm, WEIR_ERR_NOMEM, "no shared memory for the pieces");
}

static weir_status open_worker(struct shm_state *shm)
{
    struct weir_comm *comm = shm->comm;
    struct shm_piece *mailbox = NULL;
    size_t bytes = (shm->ps.layout.n_pieces + 1) * sizeof *mailbox;
    uint64_t offset = shm_segment_reserve(shm, bytes);
    shm->ps.copied = calloc(shm->ps.layout.n_pieces + 1, sizeof *shm->ps.copied);
    shm->ps.is_out = calloc(shm->ps.layout.n_pieces + 1, sizeof *shm->ps.is_out);
    if (shm->ps.copied == NULL || shm->ps.is_out == NULL ||
        shm_segment_commit(shm, offset, bytes) != WEIR_OK) {
        return no_memory(shm);
    }
    rank_of(shm, comm->rank)->mailbox_offset = offset;
    shm_window_unmap(&shm->ps.pushed);
    return map_mailbox(shm, comm->rank, &shm->ps.mailbox, &mailbox) == WEIR_OK ? WEIR_OK
                                                                               : no_memory(shm);
}

static weir_status open_server(struct shm_state *shm)
{
    struct weir_comm *comm = shm->comm;
    size_t n = shm->ps.layout.n_pieces * (size_t)comm->n_workers;
    shm->ps.n_taken = calloc(n + 1, sizeof *shm->ps.n_taken);
    if (shm->ps.n_taken == NULL) {
        return no_memory(shm);
    }
    for (int r = 0; r < comm->n_workers; r++) {
        struct shm_piece *mailbox = NULL;
        if (map_mailbox(shm, r, &shm->ps.mailboxes[r], &mailbox) != WEIR_OK) {
            return no_memory(shm);
        }
    }
    shm->ps.i_next = 0;
    /* Servers that had no pieces before may have some now. */
    atomic_store(&rank_of(shm, comm->rank)->n_added, 0);
    return WEIR_OK;
}

static weir_status ps_open(struct weir_comm *comm, const struct ps_layout *layout)
{
    struct shm_state *shm = comm->state;
    forget(&shm->ps);
    shm->ps.layout = *layout;
    return comm->rank < comm->n_workers ? open_worker(shm) : open_server(shm);
}

/* ---- worker --------------------------------------------------------------------------------- */

static weir_status ps_broadcast(struct weir_comm *comm, const struct ps_control *control)
{
    struct shm_state *shm = comm->state;
    struct shm_rank *self = rank_of(shm, comm->rank);
    self->control = *control;
    (void)atomic_fetch_add(&self->n_controls, 1);
    for (int r = comm->n_workers; r < comm->size; r++) {
        shm_doorbell_ring(shm, r);
    }
    return WEIR_OK;
}

static weir_status ps_is_acked(struct weir_comm *comm, bool *out)
{
    const struct shm_state *shm = comm->state;
    unsigned n_controls = atomic_load(&rank_of(shm, comm->rank)->n_controls);
    *out = true;
    for (int r = comm->n_workers; r < comm->size; r++) {
        *out = *out && atomic_load(&rank_of(shm, r)->n_done) == n_controls;
    }
    return WEIR_OK;
}

static weir_status ps_begin(struct weir_comm *comm, const struct ps_round *round)
{
    struct shm_state *shm = comm->state;
    rank_of(shm, comm->rank)->round = *round;
    memset(shm->ps.is_out, 0, shm->ps.layout.n_pieces * sizeof *shm->ps.is_out);
    return WEIR_OK;
}

/** Where the servers find the piece: where it is, or else a copy. */
static weir_status locate_piece(struct shm_state *shm, size_t i_piece, float *piece, bool has_data,
                                uint64_t *out_offset)
{
    const struct ps_layout *layout = &shm->ps.layout;
    const size_t first = ps_piece_first(layout, i_piece), at = first * sizeof *piece;
    size_t all_bytes = layout->n_elems * sizeof *piece, in_part = 0;
    const struct shm_region *region = shm_region_find(shm, piece - first, all_bytes, &in_part);
    if (region != NULL) {
        shm->ps.copied[i_piece] = NULL;
        *out_offset = region->offset + region->stride * (size_t)shm->comm->rank + in_part + at;
        return WEIR_OK;
    }
    uint8_t *all = NULL;
    struct shm_window *pushed = &shm->ps.pushed;
    uint64_t offset = pushed->offset;
    if (pushed->base == NULL) {
        offset = shm_segment_reserve(shm, all_bytes);
        WEIR_TRY(shm_segment_commit(shm, offset, all_bytes));
    }
    WEIR_TRY(shm_window_map(shm, offset, all_bytes, pushed, &all));
    if (has_data) {
        memcpy(all + at, piece, ps_piece_elems(layout, i_piece) * sizeof *piece);
    }
    shm->ps.copied[i_piece] = piece;
    *out_offset = offset + at;
    return WEIR_OK;
}

static weir_status ps_push(struct weir_comm *comm, size_t i_piece, float *piece, bool has_data)
{
    struct shm_state *shm = comm->state;
    struct shm_piece *mailbox = &mailbox_in(&shm->ps.mailbox)[i_piece];
    if (locate_piece(shm, i_piece, piece, has_data, &mailbox->offset) != WEIR_OK) {
        return no_memory(shm);
    }
    shm->ps.is_out[i_piece] = true;
    (void)atomic_fetch_add(&mailbox->n_pushed, 1);
    shm_doorbell_ring(shm, comm->n_workers + (int)(i_piece % (size_t)shm->ps.layout.n_servers));
    return WEIR_OK;
}

static bool is_replied(const struct shm_state *shm, size_t i_piece)
{
    struct shm_piece *mailbox = &mailbox_in(&shm->ps.mailbox)[i_piece];
    return shm->ps.is_out[i_piece] &&
           atomic_load(&mailbox->n_replied) == atomic_load(&mailbox->n_pushed);
}

static weir_status ps_poll(struct weir_comm *comm, size_t i_piece, enum ps_poll_state *out,
                           uint64_t *out_ns)
{
    struct shm_state *shm = comm->state;
    struct shm_piece *mailbox = &mailbox_in(&shm->ps.mailbox)[i_piece];
    *out = is_replied(shm, i_piece) ? PS_REPLIED : PS_AWAITED;
    if (*out == PS_REPLIED) {
        *out_ns = mailbox->replied_ns;
        float *origin = shm->ps.copied[i_piece];
        if (origin != NULL) {
            memcpy(origin,
                   shm->ps.pushed.base + ps_piece_first(&shm->ps.layout, i_piece) * sizeof *origin,
                   ps_piece_elems(&shm->ps.layout, i_piece) * sizeof *origin);
        }
    }
    return WEIR_OK;
}

/** The worker that has sent fewer control messages than this one; else the server that has not
 *  done them all. */
static int late_with_control(const struct shm_state *shm)
{
    const struct weir_comm *comm = shm->comm;
    unsigned own = atomic_load(&rank_of(shm, comm->rank)->n_controls);
    for (int r = 0; r < comm->size; r++) {
        const struct shm_rank *other = rank_of(shm, r);
        unsigned n = atomic_load(r < comm->n_workers ? &other->n_controls : &other->n_done);
        if ((int)(n - own) < 0) { /* as signed: counters wrap around */
            return r;
        }
    }
    return comm->n_workers;
}

/** The slowest other worker if it is behind with this piece; its server if none is. */
static int late_with_piece(struct shm_state *shm, size_t i_piece)
{
    const struct weir_comm *comm = shm->comm;
    int slowest = comm->n_workers + (int)(i_piece % (size_t)shm->ps.layout.n_servers), least = 0;
    unsigned own = atomic_load(&mailbox_in(&shm->ps.mailbox)[i_piece].n_pushed);
    for (int r = 0; r < comm->n_workers; r++) {
        struct shm_window window = {.base = NULL};
        struct shm_piece *mailbox = NULL;
        if (r != comm->rank && map_mailbox(shm, r, &window, &mailbox) == WEIR_OK) {
            int ahead = (int)(atomic_load(&mailbox[i_piece].n_pushed) - own);
            slowest = ahead < least ? r : slowest;
            least = WEIR_MIN(least, ahead);
            shm_window_unmap(&window);
        }
    }
    return slowest;
}

static weir_status ps_idle(struct weir_comm *comm, size_t i_piece, uint64_t until_ns,
                           uint64_t deadline_ns)
{
    struct shm_state *shm = comm->state;
    unsigned seen = shm_doorbell_read(shm);
    bool is_over = false;
    /* The doorbell may have been rung between the caller's poll and this one. */
    if (i_piece == SIZE_MAX) {
        WEIR_TRY(ps_is_acked(comm, &is_over));
    } else {
        is_over = is_replied(shm, i_piece);
    }
    if (is_over) {
        return WEIR_OK;
    }
    if (weir_mono_ns() >= deadline_ns) {
        return shm_report_late_peer(shm, i_piece == SIZE_MAX ? late_with_control(shm)
                                                             : late_with_piece(shm, i_piece));
    }
    return shm_doorbell_wait(shm, seen, until_ns);
}

/** A waiting thread polls; a reply has its time. */
static int ps_event_fd(struct weir_comm *comm)
{
    (void)comm;
    return -1;
}

/* ---- server --------------------------------------------------------------------------------- */

static bool find_control(struct shm_state *shm, struct ps_event *out)
{
    for (int r = 0; r < shm->comm->n_workers; r++) {
        if (atomic_load(&rank_of(shm, r)->n_controls) != shm->ps.n_controls_taken[r]) {
            shm->ps.n_controls_taken[r]++;
            *out = (struct ps_event){
                .worker = r, .is_control = true, .control = rank_of(shm, r)->control};
            return true;
        }
    }
    return false;
}

/** Map the worker's whole array, in which this piece lies. */
static weir_status map_piece(struct shm_state *shm, int rank, size_t i_piece, float **out)
{
    const struct ps_layout *layout = &shm->ps.layout;
    uint8_t *array = NULL;
    size_t at = ps_piece_first(layout, i_piece) * sizeof **out;
    WEIR_TRY(shm_window_map(shm, mailbox_in(&shm->ps.mailboxes[rank])[i_piece].offset - at,
                            layout->n_elems * sizeof **out, &shm->ps.arrays[rank], &array));
    *out = (float *)(void *)(array + at);
    return WEIR_OK;
}

/** From where it looked last, once around. Pieces of the array's end, which are needed first, are
 *  looked at first. */
static weir_status find_piece(struct shm_state *shm, struct ps_event *out, bool *out_is_found)
{
    struct shm_ps *ps = &shm->ps;
    const size_t n_workers = (size_t)shm->comm->n_workers;
    const size_t i_server = (size_t)(shm->comm->rank - shm->comm->n_workers);
    const size_t n_servers = (size_t)ps->layout.n_servers;
    const size_t n_own = ps_n_own(&ps->layout, (int)i_server);
    for (size_t n = n_own * n_workers; n > 0; n--) {
        size_t at = ps->i_next++ % (n_own * n_workers);
        size_t worker = at % n_workers;
        size_t i_piece = (n_own - 1 - at / n_workers) * n_servers + i_server;
        unsigned *n_taken = &ps->n_taken[i_piece * n_workers + worker];
        if (atomic_load(&mailbox_in(&ps->mailboxes[worker])[i_piece].n_pushed) == *n_taken) {
            continue;
        }
        float *data = NULL;
        ++*n_taken;
        if (map_piece(shm, (int)worker, i_piece, &data) != WEIR_OK) {
            return no_memory(shm);
        }
        *out = (struct ps_event){.worker = (int)worker,
                                 .round = rank_of(shm, (int)worker)->round,
                                 .i_piece = i_piece,
                                 .data = data};
        *out_is_found = true;
        return WEIR_OK;
    }
    return WEIR_OK;
}

static weir_status ps_next(struct weir_comm *comm, int awaited, uint64_t deadline_ns,
                           struct ps_event *out)
{
    struct shm_state *shm = comm->state;
    for (;;) {
        unsigned seen = shm_doorbell_read(shm);
        bool is_found = find_control(shm, out);
        if (!is_found && shm->ps.n_taken != NULL) {
            WEIR_TRY(find_piece(shm, out, &is_found));
        }
        if (is_found) {
            return WEIR_OK;
        }
        if (weir_mono_ns() >= deadline_ns) {
            return shm_report_late_peer(shm, WEIR_MAX(awaited, 0));
        }
        WEIR_TRY(shm_doorbell_wait(shm, seen, deadline_ns));
    }
}

static weir_status ps_reply(struct weir_comm *comm, int worker, size_t i_piece,
                            const float *weights, bool is_copied)
{
    struct shm_state *shm = comm->state;
    struct shm_piece *mailbox = &mailbox_in(&shm->ps.mailboxes[worker])[i_piece];
    float *place = NULL;
    (void)is_copied; /* it always is */
    if (map_piece(shm, worker, i_piece, &place) != WEIR_OK) {
        return no_memory(shm);
    }
    memcpy(place, weights, ps_piece_elems(&shm->ps.layout, i_piece) * sizeof *place);
    mailbox->replied_ns = weir_mono_ns();
    (void)atomic_fetch_add(&mailbox->n_replied, 1);
    shm_doorbell_ring(shm, worker);
    return WEIR_OK;
}

static weir_status make_room_for_sums(struct shm_state *shm, size_t n_sums)
{
    size_t bytes = 2 * n_sums * sizeof(double);
    if (shm->ps.n_sums >= n_sums) {
        return WEIR_OK;
    }
    uint64_t offset = shm_segment_reserve(shm, bytes);
    WEIR_TRY(shm_segment_commit(shm, offset, bytes));
    rank_of(shm, shm->comm->rank)->sums_offset = offset;
    shm->ps.n_sums = n_sums;
    return WEIR_OK;
}

/** A server's sums of its n-th time. */
static weir_status map_sums(struct shm_state *shm, int server, size_t n_sums, unsigned n,
                            double **out)
{
    uint8_t *halves = NULL;
    WEIR_TRY(shm_window_map(shm, rank_of(shm, shm->comm->n_workers + server)->sums_offset,
                            2 * n_sums * sizeof **out, &shm->ps.sums[server], &halves));
    *out = (double *)(void *)halves + (n & 1) * n_sums;
    return WEIR_OK;
}

/** Wait until the server has shown its sums for the n-th time. */
static weir_status await_sums(struct shm_state *shm, int server, unsigned n, uint64_t deadline_ns)
{
    const int rank = shm->comm->n_workers + server;
    for (;;) {
        unsigned seen = shm_doorbell_read(shm);
        if ((int)(atomic_load(&rank_of(shm, rank)->n_added) - n) >= 0) {
            return WEIR_OK;
        }
        if (weir_mono_ns() >= deadline_ns) {
            return shm_report_late_peer(shm, rank);
        }
        WEIR_TRY(shm_doorbell_wait(shm, seen, deadline_ns));
    }
}

/* Of two halves each is written again when all have shown their sums for the time between, and so
 * have read it. */
static weir_status ps_add_up(struct weir_comm *comm, double *sums, size_t n_sums,
                             uint64_t deadline_ns)
{
    struct shm_state *shm = comm->state;
    struct shm_rank *self = rank_of(shm, comm->rank);
    const int own = comm->rank - comm->n_workers, n_owners = ps_n_owners(&shm->ps.layout);
    const unsigned n = atomic_load(&self->n_added) + 1;
    double *shown = NULL;
    if (make_room_for_sums(shm, n_sums) != WEIR_OK ||
        map_sums(shm, own, n_sums, n, &shown) != WEIR_OK) {
        return no_memory(shm);
    }
    memcpy(shown, sums, n_sums * sizeof *sums);
    atomic_store(&self->n_added, n);
    for (int i = 0; i < n_owners; i++) {
        shm_doorbell_ring(shm, comm->n_workers + i);
    }
    memset(sums, 0, n_sums * sizeof *sums);
    for (int i = 0; i < n_owners; i++) {
        WEIR_TRY(await_sums(shm, i, n, deadline_ns));
        if (map_sums(shm, i, n_sums, n, &shown) != WEIR_OK) {
            return no_memory(shm);
        }
        for (size_t k = 0; k < n_sums; k++) {
            sums[k] += shown[k];
        }
    }
    return WEIR_OK;
}

static weir_status ps_done(struct weir_comm *comm, const struct ps_control *control)
{
    struct shm_state *shm = comm->state;
    unsigned n_done = atomic_fetch_add(&rank_of(shm, comm->rank)->n_done, 1) + 1;
    for (int r = 0; r < comm->size; r++) {
        shm_doorbell_ring(shm, r);
    }
    /* A server that leaves breaks the group: it stays until no rank waits for another server. */
    uint64_t deadline_ns = comm_deadline_ns(comm);
    for (int r = comm->n_workers; control->op == PS_STOP && r < comm->size;) {
        unsigned seen = shm_doorbell_read(shm);
        if (atomic_load(&rank_of(shm, r)->n_done) == n_done) {
            r++;
        } else if (weir_mono_ns() >= deadline_ns) {
            return shm_report_late_peer(shm, r);
        } else {
            WEIR_TRY(shm_doorbell_wait(shm, seen, deadline_ns));
        }
    }
    return WEIR_OK;
}

/* A worker's mailbox and its doorbell are its own, and words of their own in the header. */
const struct ps_transport shm_ps_transport = {.is_concurrent = true,
                                              .open = ps_open,
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

void shm_ps_close(struct shm_state *shm)
{
    shm_window_unmap(&shm->ps.mailbox);
    shm_window_unmap(&shm->ps.pushed);
    for (int r = 0; r < WEIR_COMM_MAX_RANKS; r++) {
        shm_window_unmap(&shm->ps.mailboxes[r]);
        shm_window_unmap(&shm->ps.arrays[r]);
        shm_window_unmap(&shm->ps.sums[r]);
    }
    forget(&shm->ps);
}
