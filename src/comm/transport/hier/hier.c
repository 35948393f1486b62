/*
 * The transport for hosts that hold several ranks: messages between all ranks, and a group in shared
 * memory of those of each host (`local`). For an all-reduce the ranks of a host add up in shared
 * memory, into the buffer of the first of them, the leader; the leaders all-reduce by messages; and the
 * others copy the leader's. Everything else goes by messages.
 *
 * Order of a sum: per host in rank order, then over the hosts as the leaders' algorithm has it.
 *
 * Failure: whoever finds out tells all ranks by message (message_fail) and breaks its local group, so that
 * those who sleep there wake up. These use the notice that they received, and else what they saw:
 * "the leader gave up" is never the whole truth. To that end those who
 * wait for the leaders' exchange wait for longer than it can take, and a leader never for longer
 * than the deadline: else the other leaders would take it for late.
 */
#include "comm/transport/message/message_private.h"
#include "comm/transport/shm/shm_private.h"

#include "base/log.h"

enum {
    NEWS_MS = 250,            /**< How long a failure that was told may take to be here. */
    EXCHANGE_EXTRA_MS = 4000, /**< A leader at its deadline asks around and tells the others. */
};

struct message_hosts {
    struct weir_comm *local; /**< NULL: memory cannot be shared on some host: messages alone. */
    int n_local, ranks[WEIR_COMM_MAX_RANKS]; /**< Of local's ranks in the whole group. */
    struct message_group leaders;            /**< Of use on a leader only. */
};

static struct message_hosts *hosts_of(const struct weir_comm *comm)
{
    return ((struct message_state *)comm->state)->hosts;
}

static bool is_leader(const struct weir_comm *comm)
{
    return hosts_of(comm)->ranks[0] == comm->rank;
}

/* ---- life ----------------------------------------------------------------------------------- */

/* A parameter server takes part in no collective: it is alone. */
static void find_members(const struct weir_comm *comm, struct message_hosts *hosts)
{
    bool is_server = comm->rank >= comm->n_workers;
    for (int r = 0; r < comm->n_workers; r++) {
        if (!is_server && comm->host_of[r] == comm->host_of[comm->rank]) {
            hosts->ranks[hosts->n_local++] = r;
        }
        if (comm->host_of[r] == r) {
            if (r == comm->rank) {
                hosts->leaders.self = hosts->leaders.n_ranks;
            }
            hosts->leaders.ranks[hosts->leaders.n_ranks++] = r;
        }
    }
    if (is_server) {
        hosts->ranks[hosts->n_local++] = comm->rank;
    }
}

static weir_status open_local(struct weir_comm *comm, struct message_hosts *hosts,
                              struct rendezvous *rdv, struct weir_error *err)
{
    int self = 0;
    while (hosts->ranks[self] != comm->rank) {
        self++;
    }
    struct weir_comm_config config = {
        .rank = self, .size = hosts->n_local, .timeout_ms = (int)(comm->timeout_ns / 1000000)};
    hosts->local = comm_allocate(&config);
    if (hosts->local == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    hosts->local->transport = &comm_shm_transport;
    rendezvous_narrow(rdv, hosts->ranks, hosts->n_local);
    weir_status status = comm_shm_transport.open(hosts->local, rdv, err);
    rendezvous_narrow(rdv, NULL, 0);
    return status;
}

/* All share memory, or none. */
static weir_status agree(struct weir_comm *comm, struct message_hosts *hosts, bool is_shared,
                         struct rendezvous *rdv, struct weir_error *err)
{
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    WEIR_TRY(rendezvous_exchange(rdv, "", is_shared ? 0 : 1, table, err));
    for (int r = 0; r < comm->size; r++) {
        if (table[r].len > 0 && hosts->local != NULL) {
            weir_log(WEIR_LOG_DEBUG, "comm_shm_unusable", WEIR_KV_INT("on_host_of_rank", r));
            weir_comm_destroy(hosts->local);
            hosts->local = NULL;
        }
    }
    return WEIR_OK;
}

static weir_status hier_open(struct weir_comm *comm, struct rendezvous *rdv, struct weir_error *err)
{
    WEIR_TRY(comm_message_transport.open(comm, rdv, err));
    struct message_hosts *hosts = calloc(1, sizeof *hosts);
    if (hosts == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    ((struct message_state *)comm->state)->hosts = hosts;
    find_members(comm, hosts);
    weir_status status = open_local(comm, hosts, rdv, err);
    if (status != WEIR_OK && !(hosts->local != NULL && hosts->local->is_refused_by_all)) {
        return status;
    }
    return agree(comm, hosts, status == WEIR_OK, rdv, err);
}

static void hier_close(struct weir_comm *comm)
{
    struct message_hosts *hosts = comm->state == NULL ? NULL : hosts_of(comm);
    /* Messages first: what it has registered is the local group's memory. */
    comm_message_transport.close(comm);
    if (hosts != NULL) {
        weir_comm_destroy(hosts->local);
        message_group_fini(&hosts->leaders);
        free(hosts);
    }
}

static void hier_interrupt(struct weir_comm *comm)
{
    comm_message_transport.interrupt(comm);
    if (hosts_of(comm)->local != NULL) {
        comm_shm_transport.interrupt(hosts_of(comm)->local);
    }
}

/* ---- failure -------------------------------------------------------------------------------- */

/* The exchange failed: wake the ranks that wait for it. */
static weir_status break_local(struct weir_comm *comm, weir_status status)
{
    struct shm_state *shm = hosts_of(comm)->local->state;
    shm_break(shm, SHM_GAVE_UP, shm->comm->rank);
    return status;
}

/* The local group failed. */
static weir_status fail_with_local(struct weir_comm *comm)
{
    struct message_hosts *hosts = hosts_of(comm);
    struct message_state *state = comm->state;
    struct shm_state *shm = hosts->local->state;
    int rank = -1;
    unsigned why = atomic_load(&shm->header->fault) >> 16;
    /* A rank that died or is late was detected here. One that gave up or left has sent its
     * reason, which is on its way. */
    bool is_hearsay = why == SHM_GAVE_UP || why == SHM_LEFT;
    weir_status notified = message_poll_notice(state, is_hearsay ? NEWS_MS : 0);
    if (notified != WEIR_OK) {
        return break_local(comm, notified);
    }
    struct weir_error err;
    weir_status status = weir_comm_failure(hosts->local, &rank, &err);
    static const char *const texts[] = {[SHM_DIED] = "died",
                                        [SHM_LEFT] = "left the group",
                                        [SHM_LATE] = "did not come in time",
                                        [SHM_GAVE_UP] = "gave up"};
    const char *what = status == WEIR_ERR_INVALID ? "disagrees on the size of the operation"
                       : why < WEIR_ARRAY_LEN(texts) && texts[why] != NULL ? texts[why]
                                                                           : "failed";
    status = message_fail(state, status, rank < 0 ? comm->rank : hosts->ranks[rank], what);
    return break_local(comm, status);
}

/* ---- collectives ---------------------------------------------------------------------------- */

static weir_status hier_alloc(struct weir_comm *comm, size_t bytes, void **out)
{
    struct message_hosts *hosts = hosts_of(comm);
    void *memory = NULL;
    if (hosts->local == NULL) {
        return message_alloc(comm, bytes, out);
    }
    weir_status status = shm_alloc(hosts->local, bytes, &memory);
    if (status != WEIR_OK && comm_failed(hosts->local) != WEIR_OK) {
        return fail_with_local(comm);
    }
    int64_t n_failed = status != WEIR_OK;
    if (n_failed == 0 && is_leader(comm)) {
        n_failed = message_register(comm->state, memory, bytes) != WEIR_OK;
    }
    WEIR_TRY(message_allreduce(comm, &n_failed, 1, WEIR_COMM_I64));
    if (n_failed > 0) {
        return WEIR_ERR_NOMEM;
    }
    *out = memory;
    return WEIR_OK;
}

static weir_status exchange(struct weir_comm *comm, void *buf, size_t n_elems,
                            enum weir_comm_type type)
{
    struct message_state *state = comm->state;
    if (!is_leader(comm)) {
        state->n_ops++; /* so that the next operation of all ranks has the same number everywhere */
        return WEIR_OK;
    }
    const struct comm_rule *rule =
        comm_plan_choose(&comm->plan, n_elems * weir_comm_type_size(type));
    return message_reduce(state, &hosts_of(comm)->leaders, rule, comm->wire, buf, n_elems, type);
}

static weir_status hier_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                                  enum weir_comm_type type)
{
    struct weir_comm *local = hosts_of(comm)->local;
    if (local == NULL) {
        return message_allreduce(comm, buf, n_elems, type);
    }
    if (n_elems > SIZE_MAX / weir_comm_type_size(type)) {
        return break_local(comm, message_fail(comm->state, WEIR_ERR_INVALID, comm->rank,
                                              "asked for an impossible size"));
    }
    local->timeout_ns = comm->timeout_ns;
    if (shm_reduce(local, buf, n_elems, type) != WEIR_OK) {
        return fail_with_local(comm);
    }
    weir_status status = exchange(comm, buf, n_elems, type);
    if (status != WEIR_OK) {
        return break_local(comm, status);
    }
    if (!is_leader(comm)) {
        local->timeout_ns = 2 * comm->timeout_ns + EXCHANGE_EXTRA_MS * UINT64_C(1000000);
    }
    if (shm_broadcast(local, buf, n_elems * weir_comm_type_size(type), 0) != WEIR_OK) {
        return fail_with_local(comm);
    }
    return WEIR_OK;
}

/* By messages; a rank that fails there wakes those of its host that still sleep in the call before. */
static weir_status woken(struct weir_comm *comm, weir_status status)
{
    if (status != WEIR_OK && hosts_of(comm)->local != NULL) {
        return break_local(comm, status);
    }
    return status;
}

static weir_status hier_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                                       enum weir_comm_type type)
{
    return woken(comm, message_reduce_scatter(comm, buf, n_elems, type));
}

static weir_status hier_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                                  enum weir_comm_type type)
{
    return woken(comm, message_allgather(comm, buf, n_elems, type));
}

static weir_status hier_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root)
{
    return woken(comm, message_broadcast(comm, buf, bytes, root));
}

static weir_status hier_barrier(struct weir_comm *comm)
{
    return woken(comm, message_barrier(comm));
}

/* ---- parameter servers: workers' calls; servers are alone ----------------------------------- */

static weir_status hier_ps_open(struct weir_comm *comm, const struct ps_layout *layout)
{
    return woken(comm, message_ps_transport.open(comm, layout));
}

static weir_status hier_ps_broadcast(struct weir_comm *comm, const struct ps_control *control)
{
    return woken(comm, message_ps_transport.broadcast(comm, control));
}

static weir_status hier_ps_is_acked(struct weir_comm *comm, bool *out)
{
    return woken(comm, message_ps_transport.is_acked(comm, out));
}

static weir_status hier_ps_begin(struct weir_comm *comm, const struct ps_round *round)
{
    return woken(comm, message_ps_transport.begin(comm, round));
}

static weir_status hier_ps_push(struct weir_comm *comm, size_t i_piece, float *piece, bool has_data)
{
    return woken(comm, message_ps_transport.push(comm, i_piece, piece, has_data));
}

static weir_status hier_ps_poll(struct weir_comm *comm, size_t i_piece, enum ps_poll_state *out,
                                uint64_t *out_ns)
{
    return woken(comm, message_ps_transport.poll(comm, i_piece, out, out_ns));
}

static weir_status hier_ps_idle(struct weir_comm *comm, size_t i_piece, uint64_t until_ns,
                                uint64_t deadline_ns)
{
    return woken(comm, message_ps_transport.idle(comm, i_piece, until_ns, deadline_ns));
}

static int hier_ps_event_fd(struct weir_comm *comm)
{
    return message_ps_transport.event_fd(comm);
}

static weir_status hier_ps_next(struct weir_comm *comm, int awaited, uint64_t deadline_ns,
                                struct ps_event *out)
{
    return message_ps_transport.next(comm, awaited, deadline_ns, out);
}

static weir_status hier_ps_reply(struct weir_comm *comm, int worker, size_t i_piece,
                                 const float *weights, bool is_copied)
{
    return message_ps_transport.reply(comm, worker, i_piece, weights, is_copied);
}

static weir_status hier_ps_add_up(struct weir_comm *comm, double *sums, size_t n_sums,
                                  uint64_t deadline_ns)
{
    return message_ps_transport.add_up(comm, sums, n_sums, deadline_ns);
}

static weir_status hier_ps_done(struct weir_comm *comm, const struct ps_control *control)
{
    return message_ps_transport.done(comm, control);
}

static const struct ps_transport hier_ps_transport = {.open = hier_ps_open,
                                                      .broadcast = hier_ps_broadcast,
                                                      .is_acked = hier_ps_is_acked,
                                                      .begin = hier_ps_begin,
                                                      .push = hier_ps_push,
                                                      .poll = hier_ps_poll,
                                                      .idle = hier_ps_idle,
                                                      .event_fd = hier_ps_event_fd,
                                                      .next = hier_ps_next,
                                                      .reply = hier_ps_reply,
                                                      .add_up = hier_ps_add_up,
                                                      .done = hier_ps_done};

static int hier_event_fd(struct weir_comm *comm)
{
    return comm_message_transport.event_fd(comm);
}

static void hier_progress(struct weir_comm *comm)
{
    comm_message_transport.progress(comm);
}

const struct comm_transport comm_hier_transport = {
    .name = "hier",
    .open = hier_open,
    .close = hier_close,
    .interrupt = hier_interrupt,
    .alloc = hier_alloc,
    .allreduce = hier_allreduce,
    .reduce_scatter = hier_reduce_scatter,
    .allgather = hier_allgather,
    .broadcast = hier_broadcast,
    .barrier = hier_barrier,
    .ps = &hier_ps_transport,
    .event_fd = hier_event_fd,
    .progress = hier_progress,
};
