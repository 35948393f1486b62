#include "comm/ucx/ucx_private.h"

#include "comm/sum.h"

#include <sys/mman.h>

/* Kinds of requests of a chunk in flight. */
enum { SCATTER_IN, SCATTER_OUT, GATHER_IN, GATHER_OUT };

uint8_t *ucx_scratch(const struct ucx_state *ucx, size_t i_chunk, int rank)
{
    return ucx->scratch +
           (i_chunk % UCX_WINDOW * (size_t)ucx->comm->size + (size_t)rank) * ucx->chunk_bytes;
}

struct ucx_request *ucx_requests(const struct ucx_state *ucx, size_t i_chunk, int kind)
{
    return ucx->requests + (i_chunk % UCX_WINDOW * 4 + (size_t)kind) * (size_t)ucx->comm->size;
}

static void clear_requests(struct ucx_state *ucx)
{
    memset(ucx->requests, 0, sizeof *ucx->requests * UCX_WINDOW * 4 * (size_t)ucx->comm->size);
}

/* Everybody hears everybody: the rank that does not come is the one that is named. */
weir_status ucx_meet(struct ucx_state *ucx, int n_ranks)
{
    uint64_t deadline_ns = comm_deadline_ns(ucx->comm);
    uint32_t n_op = ucx->n_ops++;
    struct ucx_request *in = ucx_requests(ucx, 0, SCATTER_IN);
    struct ucx_request *out = ucx_requests(ucx, 0, SCATTER_OUT);
    clear_requests(ucx);
    for (int r = 0; r < n_ranks; r++) {
        if (r != ucx->comm->rank) {
            WEIR_TRY(ucx_receive(ucx, r, NULL, 0, n_op, UCX_MEET, &in[r]));
            WEIR_TRY(ucx_send(ucx, r, NULL, 0, n_op, UCX_MEET, &out[r]));
        }
    }
    WEIR_TRY(ucx_wait_all(ucx, in, (size_t)n_ranks, deadline_ns));
    return ucx_wait_all(ucx, out, (size_t)n_ranks, deadline_ns);
}

weir_status ucx_barrier(struct weir_comm *comm)
{
    return ucx_meet(comm->state, comm->n_workers);
}

/* ---- all-reduce
 * ---------------------------------------------------------------------------------- */

/* Rank i sums slice i: it gets that slice of all ranks (scatter), adds up in rank order, and sends
 * the sum to all (gather). 2(P-1)/P of the bytes each way, as a ring, but every sum is made in one
 * place and one order. Slices go in chunks, so that sums overlap the wire. */
struct reduction {
    struct ucx_state *ucx;
    uint8_t *buf;
    size_t n_elems, elem_bytes, chunk_elems;
    enum weir_comm_type type;
    uint32_t n_op;
    uint64_t deadline_ns;
};

/* Elements of chunk i_chunk of rank r's slice; may be empty. */
static struct comm_slice chunk_of(const struct reduction *red, int rank, size_t i_chunk)
{
    struct comm_slice slice = comm_slice(red->n_elems, red->ucx->comm->n_workers, rank);
    size_t skip = WEIR_MIN(i_chunk * red->chunk_elems, slice.n);
    return (struct comm_slice){.first = slice.first + skip,
                               .n = WEIR_MIN(slice.n - skip, red->chunk_elems)};
}

static uint8_t *at(const struct reduction *red, struct comm_slice slice)
{
    return red->buf + slice.first * red->elem_bytes;
}

static weir_status scatter(const struct reduction *red, size_t i_chunk)
{
    struct ucx_state *ucx = red->ucx;
    int self = ucx->comm->rank;
    struct comm_slice own = chunk_of(red, self, i_chunk);
    for (int r = 0; r < ucx->comm->n_workers; r++) {
        struct comm_slice theirs = chunk_of(red, r, i_chunk);
        if (r != self && own.n > 0) {
            WEIR_TRY(ucx_receive(ucx, r, ucx_scratch(ucx, i_chunk, r), own.n * red->elem_bytes,
                                 red->n_op, UCX_SCATTER,
                                 &ucx_requests(ucx, i_chunk, SCATTER_IN)[r]));
        }
        if (r != self && theirs.n > 0) {
            WEIR_TRY(ucx_send(ucx, r, at(red, theirs), theirs.n * red->elem_bytes, red->n_op,
                              UCX_SCATTER, &ucx_requests(ucx, i_chunk, SCATTER_OUT)[r]));
        }
    }
    return WEIR_OK;
}

static weir_status sum_and_gather(const struct reduction *red, size_t i_chunk)
{
    struct ucx_state *ucx = red->ucx;
    int self = ucx->comm->rank, n_ranks = ucx->comm->n_workers;
    struct comm_slice own = chunk_of(red, self, i_chunk);
    WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, i_chunk, SCATTER_IN), (size_t)n_ranks,
                          red->deadline_ns));
    const void *sources[WEIR_COMM_MAX_RANKS];
    void *target = at(red, own);
    for (int r = 0; r < n_ranks; r++) {
        sources[r] = r == self ? target : ucx_scratch(ucx, i_chunk, r);
    }
    comm_sum(red->type, &target, 1, sources, n_ranks, own.n);
    /* What others send back lands where our own part was: it must have left. */
    WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, i_chunk, SCATTER_OUT), (size_t)n_ranks,
                          red->deadline_ns));
    for (int r = 0; r < n_ranks; r++) {
        struct comm_slice theirs = chunk_of(red, r, i_chunk);
        if (r != self && theirs.n > 0) {
            WEIR_TRY(ucx_receive(ucx, r, at(red, theirs), theirs.n * red->elem_bytes, red->n_op,
                                 UCX_GATHER, &ucx_requests(ucx, i_chunk, GATHER_IN)[r]));
        }
        if (r != self && own.n > 0) {
            WEIR_TRY(ucx_send(ucx, r, at(red, own), own.n * red->elem_bytes, red->n_op, UCX_GATHER,
                              &ucx_requests(ucx, i_chunk, GATHER_OUT)[r]));
        }
    }
    return WEIR_OK;
}

static weir_status finish_chunk(const struct reduction *red, size_t i_chunk)
{
    struct ucx_state *ucx = red->ucx;
    size_t n = (size_t)ucx->comm->n_workers;
    WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, i_chunk, GATHER_IN), n, red->deadline_ns));
    return ucx_wait_all(ucx, ucx_requests(ucx, i_chunk, GATHER_OUT), n, red->deadline_ns);
}

/* Chunk c is sent out, chunk c - AHEAD summed and sent back, chunk c - UCX_WINDOW awaited. */
static weir_status reduce_in_chunks(const struct reduction *red)
{
    enum { AHEAD = UCX_WINDOW / 2 };

    size_t longest = 0;
    for (int r = 0; r < red->ucx->comm->n_workers; r++) {
        longest = WEIR_MAX(longest, comm_slice(red->n_elems, red->ucx->comm->n_workers, r).n);
    }
    size_t n_chunks = (longest + red->chunk_elems - 1) / red->chunk_elems;
    for (size_t c = 0; c < n_chunks + UCX_WINDOW; c++) {
        if (c >= UCX_WINDOW) {
            WEIR_TRY(finish_chunk(red, c - UCX_WINDOW));
        }
        if (c < n_chunks) {
            WEIR_TRY(scatter(red, c));
        }
        if (c >= AHEAD && c - AHEAD < n_chunks) {
            WEIR_TRY(sum_and_gather(red, c - AHEAD));
        }
    }
    return WEIR_OK;
}

/* Little data: latency counts, so everybody gets all of it and adds up by itself. */
static weir_status reduce_small(const struct reduction *red)
{
    struct ucx_state *ucx = red->ucx;
    int self = ucx->comm->rank, n_ranks = ucx->comm->n_workers;
    size_t bytes = red->n_elems * red->elem_bytes;
    struct ucx_request *in = ucx_requests(ucx, 0, SCATTER_IN);
    struct ucx_request *out = ucx_requests(ucx, 0, SCATTER_OUT);
    const void *sources[WEIR_COMM_MAX_RANKS];
    void *target = red->buf;
    for (int r = 0; r < n_ranks; r++) {
        sources[r] = r == self ? target : ucx_scratch(ucx, 0, r);
        if (r != self) {
            WEIR_TRY(
                ucx_receive(ucx, r, ucx_scratch(ucx, 0, r), bytes, red->n_op, UCX_SCATTER, &in[r]));
            WEIR_TRY(ucx_send(ucx, r, target, bytes, red->n_op, UCX_SCATTER, &out[r]));
        }
    }
    WEIR_TRY(ucx_wait_all(ucx, in, (size_t)n_ranks, red->deadline_ns));
    WEIR_TRY(ucx_wait_all(ucx, out, (size_t)n_ranks, red->deadline_ns));
    comm_sum(red->type, &target, 1, sources, n_ranks, red->n_elems);
    return WEIR_OK;
}

weir_status ucx_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type)
{
    struct ucx_state *ucx = comm->state;
    if (n_elems > SIZE_MAX / comm_type_size(type)) {
        return ucx_fail(ucx, WEIR_ERR_INVALID, comm->rank, "asked for an impossible size");
    }
    if (comm->n_workers == 1) {
        return WEIR_OK;
    }
    struct reduction red = {.ucx = ucx,
                            .buf = buf,
                            .n_elems = n_elems,
                            .elem_bytes = comm_type_size(type),
                            .chunk_elems = ucx->chunk_bytes / comm_type_size(type),
                            .type = type,
                            .n_op = ucx->n_ops++,
                            .deadline_ns = comm_deadline_ns(comm)};
    clear_requests(ucx);
    return n_elems * red.elem_bytes <= UCX_SMALL_BYTES ? reduce_small(&red)
                                                       : reduce_in_chunks(&red);
}

/* ---- broadcast
 * ------------------------------------------------------------------------------------ */

/* Root sends slice i to rank i, and each rank passes its slice on: the root's link carries the data
 * once instead of P - 1 times. Little data goes directly. */
static weir_status broadcast_slices(struct ucx_state *ucx, uint8_t *buf, size_t bytes, int root)
{
    int self = ucx->comm->rank, n_ranks = ucx->comm->n_workers;
    uint64_t deadline_ns = comm_deadline_ns(ucx->comm);
    uint32_t n_op = ucx->n_ops++;
    struct ucx_request *in = ucx_requests(ucx, 0, GATHER_IN);
    struct ucx_request *scattered = ucx_requests(ucx, 0, SCATTER_OUT);
    struct ucx_request *passed = ucx_requests(ucx, 0, GATHER_OUT);
    struct comm_slice own = comm_slice(bytes, n_ranks, self);
    clear_requests(ucx);
    for (int r = 0; r < n_ranks; r++) {
        struct comm_slice slice = comm_slice(bytes, n_ranks, r);
        if (self == root && r != root) {
            WEIR_TRY(
                ucx_send(ucx, r, buf + slice.first, slice.n, n_op, UCX_SCATTER, &scattered[r]));
        }
        if (self != root && r != self) {
            WEIR_TRY(ucx_receive(ucx, r, buf + slice.first, slice.n, n_op, UCX_GATHER, &in[r]));
        }
    }
    if (self != root) {
        struct ucx_request *first = ucx_requests(ucx, 0, SCATTER_IN);
        WEIR_TRY(ucx_receive(ucx, root, buf + own.first, own.n, n_op, UCX_SCATTER, first));
        WEIR_TRY(ucx_wait(ucx, first, deadline_ns));
    }
    for (int r = 0; r < n_ranks; r++) {
        if (r != self && r != root) {
            WEIR_TRY(ucx_send(ucx, r, buf + own.first, own.n, n_op, UCX_GATHER, &passed[r]));
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
    struct ucx_request *requests = ucx_requests(ucx, 0, SCATTER_OUT);
    clear_requests(ucx);
    if (ucx->comm->rank != root) {
        WEIR_TRY(ucx_receive(ucx, root, buf, bytes, n_op, UCX_SCATTER, &requests[root]));
        return ucx_wait(ucx, &requests[root], deadline_ns);
    }
    for (int r = 0; r < ucx->comm->n_workers; r++) {
        if (r != root) {
            WEIR_TRY(ucx_send(ucx, r, buf, bytes, n_op, UCX_SCATTER, &requests[r]));
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

/* ---- memory
 * ---------------------------------------------------------------------------------------- */

static weir_status map_memory(struct ucx_state *ucx, size_t bytes, struct ucx_memory *out)
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
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED) {
        return WEIR_ERR_NOMEM;
    }
    *out = (struct ucx_memory){.base = base, .bytes = bytes};
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                 UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address = base,
                                   .length = bytes};
    /* Only spares the fabric the first registration: without it messages are as correct. */
    if (ucp_mem_map(ucx->context, &params, &out->handle) != UCS_OK) {
        out->handle = NULL;
    }
    return WEIR_OK;
}

weir_status ucx_alloc(struct weir_comm *comm, size_t bytes, void **out)
{
    struct ucx_state *ucx = comm->state;
    struct ucx_memory memory = {.base = NULL};
    int64_t n_failed = map_memory(ucx, bytes, &memory) != WEIR_OK;
    if (n_failed == 0) {
        ucx->memories[ucx->n_memories++] = memory;
    }
    /* All ranks have it or none; what one has meanwhile goes with the communicator. */
    WEIR_TRY(ucx_allreduce(comm, &n_failed, 1, WEIR_COMM_I64));
    if (n_failed > 0) {
        return WEIR_ERR_NOMEM;
    }
    *out = memory.base;
    return WEIR_OK;
}
