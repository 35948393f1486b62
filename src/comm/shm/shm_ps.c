/*
 * Parameter server in shared memory. The weights exist once; a worker says where its gradients are.
 *
 *     workers            all            servers                              all          workers
 *     request, offset →  barrier  →  sum shard, update it where it lies  →  barrier  →  copy
 * weights
 *
 * The next round's first barrier keeps servers from writing while a slow worker still copies.
 */
#include "comm/shm/shm_private.h"

#include "base/clock.h"
#include "comm/sum.h"

static weir_status meet_all(struct shm_state *shm, uint64_t wait_ns)
{
    return shm_barrier_wait(shm, SHM_ALL, weir_mono_ns() + wait_ns);
}

/* Worker 0: a place for the weights, with their first values. */
static weir_status publish_weights(struct shm_state *shm, const float *weights, size_t n_elems)
{
    uint8_t *place = NULL;
    size_t bytes = n_elems * sizeof *weights;
    if (bytes == 0) {
        return WEIR_OK;
    }
    uint64_t offset = shm_segment_reserve(shm, bytes);
    if (shm_segment_commit(shm, offset, bytes) != WEIR_OK ||
        shm_window_map(shm, offset, bytes, &shm->ps.weights, &place) != WEIR_OK) {
        return shm_give_up(shm, WEIR_ERR_NOMEM, "no shared memory for the weights");
    }
    memcpy(place, weights, bytes);
    shm->header->weights_offset = offset;
    return WEIR_OK;
}

/* Where in the memfd the servers find this worker's gradients; copied there if they are elsewhere.
 */
static weir_status place_gradients(struct shm_state *shm, const float *gradients, size_t n_elems,
                                   uint64_t *out_offset)
{
    size_t bytes = n_elems * sizeof *gradients, in_part = 0;
    const struct shm_region *region = shm_region_find(shm, gradients, bytes, &in_part);
    if (region != NULL) {
        *out_offset = region->offset + region->stride * (size_t)shm->comm->rank + in_part;
        return WEIR_OK;
    }
    uint8_t *place = NULL;
    struct shm_window *pushed = &shm->ps.pushed;
    uint64_t offset = pushed->offset;
    if (pushed->base == NULL || pushed->bytes != bytes) {
        offset = shm_segment_reserve(shm, bytes);
        WEIR_TRY(shm_segment_commit(shm, offset, bytes));
    }
    WEIR_TRY(shm_window_map(shm, offset, bytes, pushed, &place));
    memcpy(place, gradients, bytes);
    *out_offset = offset;
    return WEIR_OK;
}

static weir_status map_weights(struct shm_state *shm, size_t n_elems, float **out)
{
    uint8_t *place = NULL;
    WEIR_TRY(shm_window_map(shm, shm->header->weights_offset, n_elems * sizeof(float),
                            &shm->ps.weights, &place));
    *out = (float *)(void *)place;
    return WEIR_OK;
}

static weir_status send_request(struct shm_state *shm, const struct ps_request *request,
                                const float *gradients, const float *weights)
{
    struct weir_comm *comm = shm->comm;
    struct shm_rank *self = &shm->header->ranks[comm->rank];
    self->request = *request;
    if (request->op == PS_START && comm->rank == 0) {
        return publish_weights(shm, weights, request->n_elems);
    }
    if (request->op == PS_STEP && request->n_elems > 0 &&
        place_gradients(shm, gradients, request->n_elems, &self->gradients_offset) != WEIR_OK) {
        return shm_give_up(shm, WEIR_ERR_NOMEM, "no shared memory for the gradients");
    }
    return WEIR_OK;
}

weir_status shm_ps_request(struct weir_comm *comm, const struct ps_request *request,
                           const float *gradients, float *weights)
{
    struct shm_state *shm = comm->state;
    WEIR_TRY(send_request(shm, request, gradients, weights));
    WEIR_TRY(meet_all(shm, comm->timeout_ns));
    WEIR_TRY(meet_all(shm, comm->timeout_ns));
    bool has_weights = request->op == PS_STEP || (request->op == PS_START && comm->rank != 0);
    if (has_weights && request->n_elems > 0) {
        float *shared = NULL;
        if (map_weights(shm, request->n_elems, &shared) != WEIR_OK) {
            return shm_give_up(shm, WEIR_ERR_NOMEM, "mapping the weights");
        }
        memcpy(weights, shared, request->n_elems * sizeof *weights);
    }
    return WEIR_OK;
}

/* The workers' one request, or INVALID if they disagree. */
static weir_status read_request(struct shm_state *shm, struct ps_request *out)
{
    const struct shm_rank *ranks = shm->header->ranks;
    *out = ranks[0].request;
    for (int r = 1; r < shm->comm->n_workers; r++) {
        if (ranks[r].request.op != out->op || ranks[r].request.n_elems != out->n_elems) {
            return shm_give_up(shm, WEIR_ERR_INVALID,
                               "the workers disagree on what the parameter server is to do");
        }
    }
    return WEIR_OK;
}

static struct comm_slice own_shard(const struct weir_comm *comm, size_t n_elems)
{
    return comm_slice(n_elems, comm->size - comm->n_workers, comm->rank - comm->n_workers);
}

static weir_status serve_start(struct shm_state *shm, size_t n_elems)
{
    struct comm_slice shard = own_shard(shm->comm, n_elems);
    free(shm->ps.sum);
    shm->ps.sum = malloc(shard.n * sizeof(float) + 1);
    return shm->ps.sum == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
}

static weir_status sum_gradients(struct shm_state *shm, size_t n_elems, struct comm_slice shard)
{
    const void *sources[WEIR_COMM_MAX_RANKS];
    for (int r = 0; r < shm->comm->n_workers; r++) {
        uint8_t *part = NULL;
        WEIR_TRY(shm_window_map(shm, shm->header->ranks[r].gradients_offset,
                                n_elems * sizeof(float), &shm->ps.gradients[r], &part));
        sources[r] = part + shard.first * sizeof(float);
    }
    void *sum = shm->ps.sum;
    comm_sum(WEIR_COMM_F32, &sum, 1, sources, shm->comm->n_workers, shard.n);
    return WEIR_OK;
}

static weir_status serve_step(struct shm_state *shm, const struct ps_server *server,
                              const struct ps_request *request)
{
    struct comm_slice shard = own_shard(shm->comm, request->n_elems);
    if (shm->ps.sum == NULL) {
        return shm_give_up(shm, WEIR_ERR_INVALID, "a step before the weights were given");
    }
    if (shard.n == 0) {
        return WEIR_OK;
    }
    float *weights = NULL;
    if (sum_gradients(shm, request->n_elems, shard) != WEIR_OK ||
        map_weights(shm, request->n_elems, &weights) != WEIR_OK) {
        return shm_give_up(shm, WEIR_ERR_NOMEM, "mapping gradients and weights");
    }
    weir_status status = server->update(server->context, &request->step, weights + shard.first,
                                        shm->ps.sum, shard.first, shard.n);
    return status == WEIR_OK ? WEIR_OK : shm_give_up(shm, status, "the update failed");
}

weir_status shm_ps_answer(struct weir_comm *comm, const struct ps_server *server,
                          enum ps_op *out_op)
{
    struct shm_state *shm = comm->state;
    struct ps_request request;
    WEIR_TRY(meet_all(shm, server->idle_ns));
    WEIR_TRY(read_request(shm, &request));
    if (request.op == PS_START && serve_start(shm, request.n_elems) != WEIR_OK) {
        return shm_give_up(shm, WEIR_ERR_NOMEM, "no memory for a shard");
    }
    if (request.op == PS_STEP) {
        WEIR_TRY(serve_step(shm, server, &request));
    }
    *out_op = (enum ps_op)request.op;
    return meet_all(shm, comm->timeout_ns);
}

void shm_ps_close(struct shm_state *shm)
{
    shm_window_unmap(&shm->ps.weights);
    shm_window_unmap(&shm->ps.pushed);
    for (int r = 0; r < WEIR_COMM_MAX_RANKS; r++) {
        shm_window_unmap(&shm->ps.gradients[r]);
    }
    free(shm->ps.sum);
}
