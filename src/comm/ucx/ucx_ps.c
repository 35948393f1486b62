/*
 * Parameter server over messages. Each worker sends each server its part of the gradients in
 * chunks; the server sums a chunk as soon as all workers' have come, updates its shard, and sends
 * it to all.
 */
#include "comm/ucx/ucx_private.h"

#include "base/clock.h"
#include "comm/sum.h"

enum { REQUESTS, PUSHES, PULLS, DONES };

static int n_servers(const struct weir_comm *comm)
{
    return comm->size - comm->n_workers;
}

static void clear_requests(struct ucx_state *ucx)
{
    memset(ucx->requests, 0, sizeof *ucx->requests * UCX_WINDOW * 4 * (size_t)ucx->comm->size);
}

static size_t chunk_elems(const struct ucx_state *ucx)
{
    return ucx->chunk_bytes / sizeof(float);
}

/* Chunk i_chunk of a shard, relative to the whole array. */
static struct comm_slice chunk_of(const struct ucx_state *ucx, struct comm_slice shard,
                                  size_t i_chunk)
{
    size_t skip = WEIR_MIN(i_chunk * chunk_elems(ucx), shard.n);
    return (struct comm_slice){.first = shard.first + skip,
                               .n = WEIR_MIN(shard.n - skip, chunk_elems(ucx))};
}

/* ---- worker
 * ---------------------------------------------------------------------------------------- */

static weir_status push_gradients(struct ucx_state *ucx, const float *gradients, size_t n_elems,
                                  uint32_t n_op, uint64_t deadline_ns)
{
    struct weir_comm *comm = ucx->comm;
    size_t longest = 0;
    for (int s = 0; s < n_servers(comm); s++) {
        longest = WEIR_MAX(longest, comm_slice(n_elems, n_servers(comm), s).n);
    }
    size_t n_chunks = (longest + chunk_elems(ucx) - 1) / chunk_elems(ucx);
    for (size_t c = 0; c < n_chunks + UCX_WINDOW; c++) {
        struct ucx_request *pushes = ucx_requests(ucx, c, PUSHES);
        WEIR_TRY(ucx_wait_all(ucx, pushes, (size_t)comm->size, deadline_ns));
        for (int s = 0; s < n_servers(comm) && c < n_chunks; s++) {
            struct comm_slice chunk = chunk_of(ucx, comm_slice(n_elems, n_servers(comm), s), c);
            if (chunk.n > 0) {
                WEIR_TRY(ucx_send(ucx, comm->n_workers + s, gradients + chunk.first,
                                  chunk.n * sizeof *gradients, n_op, ucx_part(UCX_PS_PUSH, 0),
                                  &pushes[s]));
            }
        }
    }
    return WEIR_OK;
}

/* Post what the servers will send: the weights where asked for, and that they are done. */
static weir_status expect_answer(struct ucx_state *ucx, const struct ps_request *request,
                                 float *weights, uint32_t n_op)
{
    struct weir_comm *comm = ucx->comm;
    bool has_weights = request->op == PS_STEP || (request->op == PS_START && comm->rank != 0);
    for (int s = 0; s < n_servers(comm); s++) {
        struct comm_slice shard = comm_slice(request->n_elems, n_servers(comm), s);
        if (has_weights && shard.n > 0) {
            WEIR_TRY(ucx_receive(ucx, comm->n_workers + s, weights + shard.first,
                                 shard.n * sizeof *weights, n_op, ucx_part(UCX_PS_PULL, 0),
                                 &ucx_requests(ucx, 0, PULLS)[s]));
        }
        WEIR_TRY(ucx_receive(ucx, comm->n_workers + s, NULL, 0, n_op, ucx_part(UCX_PS_DONE, 0),
                             &ucx_requests(ucx, 0, DONES)[s]));
    }
    return WEIR_OK;
}

weir_status ucx_ps_request(struct weir_comm *comm, const struct ps_request *request,
                           const float *gradients, float *weights)
{
    struct ucx_state *ucx = comm->state;
    uint64_t deadline_ns = comm_deadline_ns(comm);
    uint32_t n_op = ucx->n_ps_ops++;
    size_t n = (size_t)comm->size;
    clear_requests(ucx);
    WEIR_TRY(expect_answer(ucx, request, weights, n_op));
    for (int s = 0; s < n_servers(comm); s++) {
        WEIR_TRY(ucx_send(ucx, comm->n_workers + s, request, sizeof *request, n_op,
                          ucx_part(UCX_PS_REQUEST, 0), &ucx_requests(ucx, 0, REQUESTS)[s]));
    }
    if (request->op == PS_STEP || (request->op == PS_START && comm->rank == 0)) {
        WEIR_TRY(push_gradients(ucx, request->op == PS_STEP ? gradients : weights, request->n_elems,
                                n_op, deadline_ns));
    }
    WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, 0, REQUESTS), n, deadline_ns));
    WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, 0, PULLS), n, deadline_ns));
    return ucx_wait_all(ucx, ucx_requests(ucx, 0, DONES), n, deadline_ns);
}

/* ---- server
 * ---------------------------------------------------------------------------------------- */

static weir_status read_request(struct ucx_state *ucx, uint64_t deadline_ns, uint32_t n_op,
                                struct ps_request *out)
{
    struct weir_comm *comm = ucx->comm;
    struct ps_request *all = (struct ps_request *)(void *)ucx->scratch;
    struct ucx_request *requests = ucx_requests(ucx, 0, REQUESTS);
    for (int r = 0; r < comm->n_workers; r++) {
        WEIR_TRY(ucx_receive(ucx, r, &all[r], sizeof all[r], n_op, ucx_part(UCX_PS_REQUEST, 0),
                             &requests[r]));
    }
    WEIR_TRY(ucx_wait_all(ucx, requests, (size_t)comm->n_workers, deadline_ns));
    for (int r = 1; r < comm->n_workers; r++) {
        if (all[r].op != all[0].op || all[r].n_elems != all[0].n_elems) {
            return ucx_fail(ucx, WEIR_ERR_INVALID, r,
                            "disagrees with worker 0 on what the parameter server is to do");
        }
    }
    *out = all[0];
    return WEIR_OK;
}

static weir_status receive_chunk(struct ucx_state *ucx, struct comm_slice shard, size_t i_chunk,
                                 int n_sources, uint32_t n_op)
{
    struct comm_slice chunk = chunk_of(ucx, shard, i_chunk);
    struct ucx_request *pushes = ucx_requests(ucx, i_chunk, PUSHES);
    for (int r = 0; r < n_sources && chunk.n > 0; r++) {
        WEIR_TRY(ucx_receive(ucx, r, ucx_scratch(ucx, i_chunk, r), chunk.n * sizeof(float), n_op,
                             ucx_part(UCX_PS_PUSH, 0), &pushes[r]));
    }
    return WEIR_OK;
}

/* Sum what workers 0 .. n_sources-1 push into out (the shard). */
static weir_status sum_pushed(struct ucx_state *ucx, struct comm_slice shard, int n_sources,
                              float *out, uint32_t n_op, uint64_t deadline_ns)
{
    size_t n_chunks = (shard.n + chunk_elems(ucx) - 1) / chunk_elems(ucx);
    for (size_t c = 0; c < n_chunks && c < UCX_WINDOW; c++) {
        WEIR_TRY(receive_chunk(ucx, shard, c, n_sources, n_op));
    }
    for (size_t c = 0; c < n_chunks; c++) {
        struct comm_slice chunk = chunk_of(ucx, shard, c);
        const void *sources[WEIR_COMM_MAX_RANKS];
        void *target = out + (chunk.first - shard.first);
        WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, c, PUSHES), (size_t)n_sources, deadline_ns));
        for (int r = 0; r < n_sources; r++) {
            sources[r] = ucx_scratch(ucx, c, r);
        }
        comm_sum(WEIR_COMM_F32, &target, 1, sources, n_sources, chunk.n);
        WEIR_TRY(receive_chunk(ucx, shard, c + UCX_WINDOW, n_sources, n_op));
    }
    return WEIR_OK;
}

static weir_status make_shard(struct ucx_state *ucx, size_t n)
{
    free(ucx->ps_sum);
    free(ucx->ps_weights);
    ucx->ps_sum = malloc(n * sizeof(float) + 1);
    ucx->ps_weights = malloc(n * sizeof(float) + 1);
    if (ucx->ps_sum == NULL || ucx->ps_weights == NULL) {
        return ucx_fail(ucx, WEIR_ERR_NOMEM, ucx->comm->rank, "has no memory for its shard");
    }
    return WEIR_OK;
}

static weir_status answer(struct ucx_state *ucx, int first_with_weights, size_t n_shard,
                          uint32_t n_op, uint64_t deadline_ns)
{
    int n = ucx->comm->n_workers;
    for (int r = 0; r < n; r++) {
        if (n_shard > 0 && r >= first_with_weights) {
            WEIR_TRY(ucx_send(ucx, r, ucx->ps_weights, n_shard * sizeof(float), n_op,
                              ucx_part(UCX_PS_PULL, 0), &ucx_requests(ucx, 0, PULLS)[r]));
        }
        WEIR_TRY(ucx_send(ucx, r, NULL, 0, n_op, ucx_part(UCX_PS_DONE, 0),
                          &ucx_requests(ucx, 0, DONES)[r]));
    }
    WEIR_TRY(ucx_wait_all(ucx, ucx_requests(ucx, 0, PULLS), (size_t)n, deadline_ns));
    return ucx_wait_all(ucx, ucx_requests(ucx, 0, DONES), (size_t)n, deadline_ns);
}

static weir_status serve_step(struct ucx_state *ucx, const struct ps_server *server,
                              const struct ps_request *request, struct comm_slice shard,
                              uint32_t n_op, uint64_t deadline_ns)
{
    if (ucx->ps_sum == NULL) {
        return ucx_fail(ucx, WEIR_ERR_INVALID, ucx->comm->rank,
                        "was asked for a step before it was given weights");
    }
    WEIR_TRY(sum_pushed(ucx, shard, ucx->comm->n_workers, ucx->ps_sum, n_op, deadline_ns));
    if (shard.n == 0) {
        return WEIR_OK;
    }
    weir_status status = server->update(server->context, &request->step, ucx->ps_weights,
                                        ucx->ps_sum, shard.first, shard.n);
    return status == WEIR_OK ? WEIR_OK
                             : ucx_fail(ucx, status, ucx->comm->rank, "could not update its shard");
}

weir_status ucx_ps_answer(struct weir_comm *comm, const struct ps_server *server,
                          enum ps_op *out_op)
{
    struct ucx_state *ucx = comm->state;
    struct ps_request request;
    uint32_t n_op = ucx->n_ps_ops++;
    clear_requests(ucx);
    WEIR_TRY(read_request(ucx, weir_mono_ns() + server->idle_ns, n_op, &request));
    uint64_t deadline_ns = comm_deadline_ns(comm);
    struct comm_slice shard =
        comm_slice(request.n_elems, n_servers(comm), comm->rank - comm->n_workers);
    int first_with_weights = comm->n_workers;
    if (request.op == PS_START) {
        WEIR_TRY(make_shard(ucx, shard.n));
        WEIR_TRY(sum_pushed(ucx, shard, 1, ucx->ps_weights, n_op, deadline_ns));
        first_with_weights = 1;
    } else if (request.op == PS_STEP) {
        WEIR_TRY(serve_step(ucx, server, &request, shard, n_op, deadline_ns));
        deadline_ns = comm_deadline_ns(comm); /* the update took its own time */
        first_with_weights = 0;
    }
    *out_op = (enum ps_op)request.op;
    return answer(ucx, first_with_weights, shard.n, n_op, deadline_ns);
}
