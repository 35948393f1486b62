/* Shared steps: every worker is the parameter server of its slices. */
#include "comm/core/comm_private.h"

static bool make_room(struct weir_comm *comm, size_t n_elems)
{
    if (n_elems > comm->ps_room_elems) {
        float *room = realloc(comm->ps_room, n_elems * sizeof *room);
        if (room == NULL) {
            return false;
        }
        comm->ps_room = room;
        comm->ps_room_elems = n_elems;
    }
    return true;
}

/** The caller's slice of the range: new weights where its summed gradients are. */
static weir_status update_slice(struct weir_comm *comm, const struct weir_ps_work *work)
{
    size_t first = 0, n = 0;
    weir_comm_slice(comm, work->n_elems, comm->rank, &first, &n);
    first += work->first_elem;
    if (n == 0) {
        return WEIR_OK;
    }
    if (!make_room(comm, n)) {
        return comm_fail(comm, WEIR_ERR_NOMEM, comm->rank, "rank %d has no memory for a shard",
                         comm->rank);
    }
    float *slice = work->gradients + first;
    memcpy(comm->ps_room, work->weights + first, n * sizeof *slice);
    weir_status status = work->update(work->context, &work->step, comm->ps_room, slice, first, n);
    if (status != WEIR_OK) {
        return comm_fail(comm, status, comm->rank, "rank %d could not update its shard",
                         comm->rank);
    }
    memcpy(slice, comm->ps_room, n * sizeof *slice);
    return WEIR_OK;
}

void comm_ps_run(struct weir_comm *comm, const struct weir_ps_work *work)
{
    const struct comm_transport *transport = comm->transport;
    float *range = work->gradients + work->first_elem;
    double bytes = comm_allreduce_link_bytes(comm, work->n_elems, WEIR_COMM_F32);
    if (transport->reduce_scatter(comm, range, work->n_elems, WEIR_COMM_F32) != WEIR_OK) {
        return;
    }
    if (work->update == NULL) {
        comm_link_carry(comm, bytes / 2);
    } else if (update_slice(comm, work) == WEIR_OK) {
        /* A failure is kept in the communicator, as of every posted operation. */
        (void)transport->allgather(comm, range, work->n_elems, WEIR_COMM_F32);
        comm_link_carry(comm, bytes);
    }
}

weir_status weir_ps_shared_post(struct weir_comm *comm, const struct weir_ps_work *work)
{
    return comm_post(comm, &(struct queued_op){.work = *work});
}
