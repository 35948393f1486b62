/* Joint steps: workers that see each other's memory write their slices of all workers' weights. */
#include "comm/core/comm_private.h"
#include "comm/core/sum.h"

/* Of every worker's gradients a tile, their sum, weights and states fit in a core's first cache. */
#define JOINT_TILE ((size_t)1024)

bool weir_ps_sees_workers(const struct weir_comm *comm)
{
    return comm->transport->see != NULL && comm->link_bytes_s <= 0;
}

/** @param gradients, weights  Every worker's, from first_elem on. */
static weir_status update_tile(const struct weir_comm *comm, const struct weir_ps_joint *joint,
                               const void *const *gradients, void *const *weights,
                               size_t first_elem, size_t n_elems)
{
    float sums[JOINT_TILE];
    void *target = sums;
    float *own = weights[comm->rank];
    comm_sum(WEIR_COMM_F32, &target, 1, gradients, comm->n_workers, n_elems);
    WEIR_TRY(joint->update(joint->context, &joint->step, own, sums, first_elem, n_elems));
    for (int r = 0; r < comm->n_workers; r++) {
        if (r != comm->rank) {
            memcpy(weights[r], own, n_elems * sizeof *own);
        }
    }
    return WEIR_OK;
}

weir_status weir_ps_joint_update(const struct weir_comm *comm, const struct weir_ps_joint *joint,
                                 size_t first_elem, size_t n_elems)
{
    void *gradients[WEIR_COMM_MAX_RANKS], *weights[WEIR_COMM_MAX_RANKS];
    const size_t bytes = joint->n_elems * sizeof(float);
    const struct comm_slice own = comm_slice(joint->n_elems, comm->n_workers, comm->rank);
    const size_t end = WEIR_MIN(first_elem + n_elems, own.first + own.n);
    if (!weir_ps_sees_workers(comm) ||
        !comm->transport->see(comm, joint->gradients, bytes, gradients) ||
        !comm->transport->see(comm, joint->weights, bytes, weights)) {
        return WEIR_ERR_UNSUPPORTED;
    }
    for (size_t at = WEIR_MAX(first_elem, own.first); at < end; at += JOINT_TILE) {
        const void *tiles[WEIR_COMM_MAX_RANKS];
        void *targets[WEIR_COMM_MAX_RANKS];
        for (int r = 0; r < comm->n_workers; r++) {
            tiles[r] = (const float *)gradients[r] + at;
            targets[r] = (float *)weights[r] + at;
        }
        WEIR_TRY(update_tile(comm, joint, tiles, targets, at, WEIR_MIN(JOINT_TILE, end - at)));
    }
    return WEIR_OK;
}
