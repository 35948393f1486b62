#include "comm/transport/ucx/ucx_private.h"

#include "comm/core/sum.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Kinds of requests of an operation. */
enum { SCATTER_IN, SCATTER_OUT, GATHER_IN, GATHER_OUT };

struct ucx_request *ucx_requests(const struct ucx_state *ucx, int kind)
{
    return ucx->requests + (size_t)kind * (size_t)ucx->comm->size;
}

static void clear_requests(struct ucx_state *ucx)
{
    memset(ucx->requests, 0, sizeof *ucx->requests * 4 * (size_t)ucx->comm->size);
}

/* All ranks send to all: the rank that does not come is the one that is named. */
weir_status ucx_meet(struct ucx_state *ucx, int n_ranks)
{
    uint64_t deadline_ns = comm_deadline_ns(ucx->comm);
    uint32_t n_op = ucx->n_ops++;
    struct ucx_request *in = ucx_requests(ucx, SCATTER_IN);
    struct ucx_request *out = ucx_requests(ucx, SCATTER_OUT);
    clear_requests(ucx);
    for (int r = 0; r < n_ranks; r++) {
        if (r != ucx->comm->rank) {
            WEIR_TRY(ucx_receive(ucx, r, NULL, 0, n_op, ucx_part(UCX_MEET, 0), &in[r]));
            WEIR_TRY(ucx_send(ucx, r, NULL, 0, n_op, ucx_part(UCX_MEET, 0), &out[r]));
        }
    }
    WEIR_TRY(ucx_wait_all(ucx, in, (size_t)n_ranks, deadline_ns));
    return ucx_wait_all(ucx, out, (size_t)n_ranks, deadline_ns);
}

/* Of each rank's sums there are two places: `room` has them in rank order. */
weir_status ucx_add_up(struct ucx_state *ucx, int first, int n_ranks, double *sums, size_t n_sums,
                       uint32_t n_op, uint64_t deadline_ns)
{
    struct ucx_request in[WEIR_COMM_MAX_RANKS] = {0}, out[WEIR_COMM_MAX_RANKS] = {0};
    const size_t bytes = n_sums * sizeof *sums, n = (size_t)n_ranks;
    double *room = malloc(n * bytes + 1);
    if (room == NULL) {
        return ucx_fail(ucx, WEIR_ERR_NOMEM, ucx->comm->rank, "has no memory for others' sums");
    }
    weir_status status = WEIR_OK;
    memcpy(room + (size_t)(ucx->comm->rank - first) * n_sums, sums, bytes);
    for (int i = 0; i < n_ranks; i++) {
        if (first + i == ucx->comm->rank) {
            continue;
        }
        WEIR_TRY_GOTO(ucx_receive(ucx, first + i, room + (size_t)i * n_sums, bytes, n_op,
                                  ucx_part(UCX_ADD_UP, 0), &in[i]),
                      status, free_room);
        WEIR_TRY_GOTO(ucx_send(ucx, first + i, sums, bytes, n_op, ucx_part(UCX_ADD_UP, 0), &out[i]),
                      status, free_room);
    }
    WEIR_TRY_GOTO(ucx_wait_all(ucx, in, n, deadline_ns), status, free_room);
    WEIR_TRY_GOTO(ucx_wait_all(ucx, out, n, deadline_ns), status, free_room);
    memset(sums, 0, bytes);
    for (size_t i = 0; i < n * n_sums; i++) {
        sums[i % n_sums] += room[i];
    }
free_room:
    free(room);
    return status;
}

weir_status ucx_barrier(struct weir_comm *comm)
{
    return ucx_meet(comm->state, comm->n_workers);
}

weir_status ucx_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type)
{
    struct ucx_state *ucx = comm->state;
    if (n_elems > SIZE_MAX / weir_comm_type_size(type)) {
        return ucx_fail(ucx, WEIR_ERR_INVALID, comm->rank, "asked for an impossible size");
    }
    const struct comm_rule *rule =
        comm_plan_choose(&comm->plan, n_elems * weir_comm_type_size(type));
    return ucx_reduce(ucx, &ucx->workers, rule, comm->wire, buf, n_elems, type);
}

static weir_status half(struct weir_comm *comm, enum ucx_half half, enum comm_wire wire, void *buf,
                        size_t n_elems, enum weir_comm_type type)
{
    struct ucx_state *ucx = comm->state;
    if (n_elems > SIZE_MAX / weir_comm_type_size(type)) {
        return ucx_fail(ucx, WEIR_ERR_INVALID, comm->rank, "asked for an impossible size");
    }
    return ucx_reduce_half(ucx, &ucx->workers, half, wire, buf, n_elems, type);
}

weir_status ucx_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                               enum weir_comm_type type)
{
    return half(comm, UCX_REDUCE_SCATTER, comm->wire, buf, n_elems, type);
}

/* What is gathered is no sum: it arrives as it is. */
weir_status ucx_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type)
{
    return half(comm, UCX_ALL_GATHER, COMM_WIRE_F32, buf, n_elems, type);
}

/* ---- broadcast ------------------------------------------------------------------------------ */

/* Root sends slice i to rank i, and each rank passes its slice on: the root's link carries the data
 * once instead of P - 1 times. Little data goes directly. */
static weir_status broadcast_slices(struct ucx_state *ucx, uint8_t *buf, size_t bytes, int root)
{
    int self = ucx->comm->rank, n_ranks = ucx->comm->n_workers;
    uint64_t deadline_ns = comm_deadline_ns(ucx->comm);
    uint32_t n_op = ucx->n_ops++;
    struct ucx_request *in = ucx_requests(ucx, GATHER_IN);
    struct ucx_request *scattered = ucx_requests(ucx, SCATTER_OUT);
    struct ucx_request *passed = ucx_requests(ucx, GATHER_OUT);
    struct comm_slice own = comm_slice(bytes, n_ranks, self);
    clear_requests(ucx);
    for (int r = 0; r < n_ranks; r++) {
        struct comm_slice slice = comm_slice(bytes, n_ranks, r);
        if (self == root && r != root) {
            WEIR_TRY(ucx_send(ucx, r, buf + slice.first, slice.n, n_op, ucx_part(UCX_SCATTER, 0),
                              &scattered[r]));
        }
        if (self != root && r != self) {
            WEIR_TRY(ucx_receive(ucx, r, buf + slice.first, slice.n, n_op, ucx_part(UCX_GATHER, 0),
                                 &in[r]));
        }
    }
    if (self != root) {
        struct ucx_request *first = ucx_requests(ucx, SCATTER_IN);
        WEIR_TRY(
            ucx_receive(ucx, root, buf + own.first, own.n, n_op, ucx_part(UCX_SCATTER, 0), first));
        WEIR_TRY(ucx_wait(ucx, first, deadline_ns));
    }
    for (int r = 0; r < n_ranks; r++) {
        if (r != self && r != root) {
            WEIR_TRY(ucx_send(ucx, r, buf + own.first, own.n, n_op, ucx_part(UCX_GATHER, 0),
                              &passed[r]));
        }
    }
    WEIR_TRY(ucx_wait_all(ucx, in, (size_t)n_ranks, deadline_ns));
    WEIR_TRY(ucx_wait_all(ucx, scattered, (size_t)n_ranks, deadline_ns));
    return ucx_wait_all(ucx, passed, (size_t)n_ranks, deadline_ns);
}

static weir_status broadcast_small(struct ucx_state *ucx, void *buf, size_t bytes, int root)
{
    uint64_t deadline_ns = comm_deadline_ns(ucx->comm);
    uint32_t n_op = ucx->n_ops++;
    struct ucx_request *requests = ucx_requests(ucx, SCATTER_OUT);
    clear_requests(ucx);
    if (ucx->comm->rank != root) {
        WEIR_TRY(
            ucx_receive(ucx, root, buf, bytes, n_op, ucx_part(UCX_SCATTER, 0), &requests[root]));
        return ucx_wait(ucx, &requests[root], deadline_ns);
    }
    for (int r = 0; r < ucx->comm->n_workers; r++) {
        if (r != root) {
            WEIR_TRY(ucx_send(ucx, r, buf, bytes, n_op, ucx_part(UCX_SCATTER, 0), &requests[r]));
        }
    }
    return ucx_wait_all(ucx, requests, (size_t)ucx->comm->n_workers, deadline_ns);
}

weir_status ucx_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root)
{
    if (comm->n_workers == 1) {
        return WEIR_OK;
    }
    return bytes <= UCX_SMALL_BYTES ? broadcast_small(comm->state, buf, bytes, root)
                                    : broadcast_slices(comm->state, buf, bytes, root);
}

/* ---- memory --------------------------------------------------------------------------------- */

static weir_status make_room(struct ucx_state *ucx)
{
    if (ucx->n_memories == ucx->max_memories) {
        int max = ucx->max_memories == 0 ? 16 : 2 * ucx->max_memories;
        struct ucx_memory *more = realloc(ucx->memories, sizeof *more * (size_t)max);
        if (more == NULL) {
            return WEIR_ERR_NOMEM;
        }
        ucx->memories = more;
        ucx->max_memories = max;
    }
    return WEIR_OK;
}

/* Only spares the fabric the first registration: without it messages are as correct. */
static void register_memory(struct ucx_state *ucx, struct ucx_memory *memory)
{
    memory->handle = ucx->fabric->map(ucx, memory->base, memory->bytes);
    ucx->memories[ucx->n_memories++] = *memory;
}

weir_status ucx_register(struct ucx_state *ucx, void *base, size_t bytes)
{
    struct ucx_memory memory = {.base = base, .bytes = bytes, .is_borrowed = true};
    WEIR_TRY(make_room(ucx));
    register_memory(ucx, &memory);
    return WEIR_OK;
}

static weir_status map_memory(struct ucx_state *ucx, size_t bytes, void **out)
{
    WEIR_TRY(make_room(ucx));
    struct ucx_memory memory = {.bytes = bytes};
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
    register_memory(ucx, &memory);
    *out = memory.base;
    return WEIR_OK;
}

weir_status ucx_alloc(struct weir_comm *comm, size_t bytes, void **out)
{
    struct ucx_state *ucx = comm->state;
    void *memory = NULL;
    int64_t n_failed = map_memory(ucx, bytes, &memory) != WEIR_OK;
    /* All ranks have it or none; what one has meanwhile goes with the communicator. */
    WEIR_TRY(ucx_allreduce(comm, &n_failed, 1, WEIR_COMM_I64));
    if (n_failed > 0) {
        return WEIR_ERR_NOMEM;
    }
    *out = memory;
    return WEIR_OK;
}
