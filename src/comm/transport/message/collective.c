#include "comm/transport/message/message_private.h"

#include "comm/core/sum.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Kinds of requests of an operation. */
enum { SCATTER_IN, SCATTER_OUT, GATHER_IN, GATHER_OUT };

/** Requests [0, size) of one kind (0..3) of an operation other than an all-reduce. */
static struct message_request *requests_of(const struct message_state *state, int kind)
{
    return state->requests + (size_t)kind * (size_t)state->comm->size;
}

static void clear_requests(struct message_state *state)
{
    memset(state->requests, 0, sizeof *state->requests * 4 * (size_t)state->comm->size);
}

/* All ranks send to all: the rank that does not come is the one that is named. */
weir_status message_meet(struct message_state *state, int n_ranks)
{
    uint64_t deadline_ns = comm_deadline_ns(state->comm);
    uint32_t n_op = state->n_ops++;
    struct message_request *in = requests_of(state, SCATTER_IN);
    struct message_request *out = requests_of(state, SCATTER_OUT);
    clear_requests(state);
    for (int r = 0; r < n_ranks; r++) {
        if (r != state->comm->rank) {
            WEIR_TRY(
                message_receive(state, r, NULL, 0, n_op, message_part(MESSAGE_MEET, 0), &in[r]));
            WEIR_TRY(message_send(state, r, NULL, 0, n_op, message_part(MESSAGE_MEET, 0), &out[r]));
        }
    }
    WEIR_TRY(message_wait_all(state, in, (size_t)n_ranks, deadline_ns));
    return message_wait_all(state, out, (size_t)n_ranks, deadline_ns);
}

/* Of each rank's sums there are two places: `room` has them in rank order. */
weir_status message_add_up(struct message_state *state, int first, int n_ranks, double *sums,
                           size_t n_sums, uint32_t n_op, uint64_t deadline_ns)
{
    struct message_request in[WEIR_COMM_MAX_RANKS] = {0}, out[WEIR_COMM_MAX_RANKS] = {0};
    const size_t bytes = n_sums * sizeof *sums, n = (size_t)n_ranks;
    double *room = malloc(n * bytes + 1);
    if (room == NULL) {
        return message_fail(state, WEIR_ERR_NOMEM, state->comm->rank,
                            "has no memory for others' sums");
    }
    weir_status status = WEIR_OK;
    memcpy(room + (size_t)(state->comm->rank - first) * n_sums, sums, bytes);
    for (int i = 0; i < n_ranks; i++) {
        if (first + i == state->comm->rank) {
            continue;
        }
        WEIR_TRY_GOTO(message_receive(state, first + i, room + (size_t)i * n_sums, bytes, n_op,
                                      message_part(MESSAGE_ADD_UP, 0), &in[i]),
                      status, free_room);
        WEIR_TRY_GOTO(message_send(state, first + i, sums, bytes, n_op,
                                   message_part(MESSAGE_ADD_UP, 0), &out[i]),
                      status, free_room);
    }
    WEIR_TRY_GOTO(message_wait_all(state, in, n, deadline_ns), status, free_room);
    WEIR_TRY_GOTO(message_wait_all(state, out, n, deadline_ns), status, free_room);
    memset(sums, 0, bytes);
    for (size_t i = 0; i < n * n_sums; i++) {
        sums[i % n_sums] += room[i];
    }
free_room:
    free(room);
    return status;
}

weir_status message_barrier(struct weir_comm *comm)
{
    return message_meet(comm->state, comm->n_workers);
}

weir_status message_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                              enum weir_comm_type type)
{
    struct message_state *state = comm->state;
    if (n_elems > SIZE_MAX / weir_comm_type_size(type)) {
        return message_fail(state, WEIR_ERR_INVALID, comm->rank, "asked for an impossible size");
    }
    const struct comm_rule *rule =
        comm_plan_choose(&comm->plan, n_elems * weir_comm_type_size(type));
    return message_reduce(state, &state->workers, rule, comm->wire, buf, n_elems, type);
}

static weir_status half(struct weir_comm *comm, enum message_half half, enum comm_wire wire,
                        void *buf, size_t n_elems, enum weir_comm_type type)
{
    struct message_state *state = comm->state;
    if (n_elems > SIZE_MAX / weir_comm_type_size(type)) {
        return message_fail(state, WEIR_ERR_INVALID, comm->rank, "asked for an impossible size");
    }
    return message_reduce_half(state, &state->workers, half, wire, buf, n_elems, type);
}

weir_status message_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                                   enum weir_comm_type type)
{
    return half(comm, MESSAGE_REDUCE_SCATTER, comm->wire, buf, n_elems, type);
}

/* What is gathered is no sum: it arrives as it is. */
weir_status message_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                              enum weir_comm_type type)
{
    return half(comm, MESSAGE_ALL_GATHER, COMM_WIRE_F32, buf, n_elems, type);
}

/* ---- broadcast ------------------------------------------------------------------------------ */

/* Root sends slice i to rank i, and each rank passes its slice on: the root's link carries the data
 * once instead of P - 1 times. Little data goes directly. */
static weir_status broadcast_slices(struct message_state *state, uint8_t *buf, size_t bytes,
                                    int root)
{
    int self = state->comm->rank, n_ranks = state->comm->n_workers;
    uint64_t deadline_ns = comm_deadline_ns(state->comm);
    uint32_t n_op = state->n_ops++;
    struct message_request *in = requests_of(state, GATHER_IN);
    struct message_request *scattered = requests_of(state, SCATTER_OUT);
    struct message_request *passed = requests_of(state, GATHER_OUT);
    struct comm_slice own = comm_slice(bytes, n_ranks, self);
    clear_requests(state);
    for (int r = 0; r < n_ranks; r++) {
        struct comm_slice slice = comm_slice(bytes, n_ranks, r);
        if (self == root && r != root) {
            WEIR_TRY(message_send(state, r, buf + slice.first, slice.n, n_op,
                                  message_part(MESSAGE_SCATTER, 0), &scattered[r]));
        }
        if (self != root && r != self) {
            WEIR_TRY(message_receive(state, r, buf + slice.first, slice.n, n_op,
                                     message_part(MESSAGE_GATHER, 0), &in[r]));
        }
    }
    if (self != root) {
        struct message_request *first = requests_of(state, SCATTER_IN);
        WEIR_TRY(message_receive(state, root, buf + own.first, own.n, n_op,
                                 message_part(MESSAGE_SCATTER, 0), first));
        WEIR_TRY(message_wait(state, first, deadline_ns));
    }
    for (int r = 0; r < n_ranks; r++) {
        if (r != self && r != root) {
            WEIR_TRY(message_send(state, r, buf + own.first, own.n, n_op,
                                  message_part(MESSAGE_GATHER, 0), &passed[r]));
        }
    }
    WEIR_TRY(message_wait_all(state, in, (size_t)n_ranks, deadline_ns));
    WEIR_TRY(message_wait_all(state, scattered, (size_t)n_ranks, deadline_ns));
    return message_wait_all(state, passed, (size_t)n_ranks, deadline_ns);
}

static weir_status broadcast_small(struct message_state *state, void *buf, size_t bytes, int root)
{
    uint64_t deadline_ns = comm_deadline_ns(state->comm);
    uint32_t n_op = state->n_ops++;
    struct message_request *requests = requests_of(state, SCATTER_OUT);
    clear_requests(state);
    if (state->comm->rank != root) {
        WEIR_TRY(message_receive(state, root, buf, bytes, n_op, message_part(MESSAGE_SCATTER, 0),
                                 &requests[root]));
        return message_wait(state, &requests[root], deadline_ns);
    }
    for (int r = 0; r < state->comm->n_workers; r++) {
        if (r != root) {
            WEIR_TRY(message_send(state, r, buf, bytes, n_op, message_part(MESSAGE_SCATTER, 0),
                                  &requests[r]));
        }
    }
    return message_wait_all(state, requests, (size_t)state->comm->n_workers, deadline_ns);
}

weir_status message_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root)
{
    if (comm->n_workers == 1) {
        return WEIR_OK;
    }
    return bytes <= MESSAGE_SMALL_BYTES ? broadcast_small(comm->state, buf, bytes, root)
                                        : broadcast_slices(comm->state, buf, bytes, root);
}

/* ---- memory --------------------------------------------------------------------------------- */

static weir_status make_room(struct message_state *state)
{
    if (state->n_memories == state->max_memories) {
        int max = state->max_memories == 0 ? 16 : 2 * state->max_memories;
        struct message_memory *more = realloc(state->memories, sizeof *more * (size_t)max);
        if (more == NULL) {
            return WEIR_ERR_NOMEM;
        }
        state->memories = more;
        state->max_memories = max;
    }
    return WEIR_OK;
}

/* Only spares the fabric the first registration: without it messages are as correct. */
static void register_memory(struct message_state *state, struct message_memory *memory)
{
    memory->handle = state->fabric->map(state, memory->base, memory->bytes);
    state->memories[state->n_memories++] = *memory;
}

weir_status message_register(struct message_state *state, void *base, size_t bytes)
{
    struct message_memory memory = {.base = base, .bytes = bytes, .is_borrowed = true};
    WEIR_TRY(make_room(state));
    register_memory(state, &memory);
    return WEIR_OK;
}

static weir_status map_memory(struct message_state *state, size_t bytes, void **out)
{
    WEIR_TRY(make_room(state));
    struct message_memory memory = {.bytes = bytes};
    memory.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.base == MAP_FAILED) {
        return WEIR_ERR_NOMEM;
    }
    /* Large pages make the kernel's copies cheaper, and page faults belong here, not into the first
     * step. Both are wishes. */
    (void)madvise(memory.base, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    (void)madvise(memory.base, bytes, MADV_POPULATE_WRITE);
#endif
    register_memory(state, &memory);
    *out = memory.base;
    return WEIR_OK;
}

weir_status message_alloc(struct weir_comm *comm, size_t bytes, void **out)
{
    struct message_state *state = comm->state;
    void *memory = NULL;
    int64_t n_failed = map_memory(state, bytes, &memory) != WEIR_OK;
    /* All ranks have it or none; what one has meanwhile goes with the communicator. */
    WEIR_TRY(message_allreduce(comm, &n_failed, 1, WEIR_COMM_I64));
    if (n_failed > 0) {
        return WEIR_ERR_NOMEM;
    }
    *out = memory;
    return WEIR_OK;
}
