#include "comm/transport/shm/shm_private.h"

#include "comm/core/sum.h"

#include <sys/mman.h>

static weir_status meet_end(struct shm_state *shm)
{
    return shm_barrier_wait(shm, SHM_WORKERS, comm_deadline_ns(shm->comm));
}

/* Every rank adds up all stages itself: one barrier, and the result lands where it is wanted. */
static weir_status allreduce_staged(struct shm_state *shm, uint8_t *buf, size_t n_elems,
                                    enum weir_comm_type type)
{
    size_t elem = weir_comm_type_size(type), chunk_elems = SHM_STAGE_BYTES / elem, done = 0;
    do {
        size_t n = WEIR_MIN(n_elems - done, chunk_elems);
        uint64_t n_op = shm->n_ops;
        void *target = buf + done * elem;
        if (n > 0) {
            memcpy(shm_stage(shm, shm->comm->rank, n_op), target, n * elem);
        }
        WEIR_TRY(shm_meet(shm, (struct shm_slot){.op = SHM_SUM_STAGED | (uint64_t)type << 8,
                                                 .a = n_elems,
                                                 .b = done}));
        const void *sources[WEIR_COMM_MAX_RANKS];
        for (int r = 0; r < shm->comm->n_workers; r++) {
            sources[r] = shm_stage(shm, r, n_op);
        }
        comm_sum(type, &target, 1, sources, shm->comm->n_workers, n);
        done += n;
    } while (done < n_elems);
    return WEIR_OK;
}

static void list_parts(const struct shm_state *shm, const struct shm_region *region, size_t offset,
                       void **out_parts)
{
    for (int r = 0; r < shm->comm->n_workers; r++) {
        out_parts[r] = region->base + region->stride * (size_t)r + offset;
    }
}

bool shm_see(const struct weir_comm *comm, const void *buf, size_t bytes, void **out_parts)
{
    size_t offset = 0;
    const struct shm_region *region = shm_region_find(comm->state, buf, bytes, &offset);
    if (region != NULL) {
        list_parts(comm->state, region, offset, out_parts);
    }
    return region != NULL;
}

/* Rank i sums slice i of all parts, and writes it into all parts, or only into rank 0's or its own.
 */
static weir_status sum_in_place(struct shm_state *shm, const struct shm_region *region,
                                size_t offset, size_t n_elems, uint64_t op,
                                enum weir_comm_type type)
{
    struct weir_comm *comm = shm->comm;
    uint64_t i_region = (uint64_t)(region - shm->regions);
    WEIR_TRY(shm_meet(shm, (struct shm_slot){.op = op | (uint64_t)type << 8 | i_region << 16,
                                             .a = offset,
                                             .b = n_elems}));
    struct comm_slice slice = comm_slice(n_elems, comm->n_workers, comm->rank);
    void *parts[WEIR_COMM_MAX_RANKS];
    list_parts(shm, region, offset + slice.first * weir_comm_type_size(type), parts);
    void **targets = op == SHM_SUM_TO_OWNERS ? &parts[comm->rank] : parts;
    comm_sum(type, targets, op == SHM_SUM ? comm->n_workers : 1, (const void *const *)parts,
             comm->n_workers, slice.n);
    return meet_end(shm);
}

static weir_status reduce(struct weir_comm *comm, void *buf, size_t n_elems, uint64_t op,
                          enum weir_comm_type type)
{
    struct shm_state *shm = comm->state;
    size_t offset = 0;
    if (n_elems > SIZE_MAX / weir_comm_type_size(type)) {
        return shm_give_up(shm, WEIR_ERR_INVALID, "all-reduce of more bytes than there are");
    }
    if (comm->n_workers == 1) {
        return WEIR_OK;
    }
    size_t bytes = n_elems * weir_comm_type_size(type);
    /* Little data: one barrier and a copy are less than two barriers. */
    const struct shm_region *region =
        bytes <= SHM_SMALL_BYTES ? NULL : shm_region_find(shm, buf, bytes, &offset);
    return region == NULL ? allreduce_staged(shm, buf, n_elems, type)
                          : sum_in_place(shm, region, offset, n_elems, op, type);
}

weir_status shm_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type)
{
    return reduce(comm, buf, n_elems, SHM_SUM, type);
}

weir_status shm_reduce(struct weir_comm *comm, void *buf, size_t n_elems, enum weir_comm_type type)
{
    return reduce(comm, buf, n_elems, SHM_SUM_TO_FIRST, type);
}

weir_status shm_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                               enum weir_comm_type type)
{
    return reduce(comm, buf, n_elems, SHM_SUM_TO_OWNERS, type);
}

static weir_status broadcast_staged(struct shm_state *shm, uint8_t *buf, size_t bytes, int root)
{
    size_t done = 0;
    do {
        size_t n = WEIR_MIN(bytes - done, (size_t)SHM_STAGE_BYTES);
        uint8_t *stage = shm_stage(shm, root, shm->n_ops);
        bool is_root = shm->comm->rank == root;
        if (is_root && n > 0) {
            memcpy(stage, buf + done, n);
        }
        WEIR_TRY(shm_meet(shm, (struct shm_slot){.op = SHM_BROADCAST_STAGED | (uint64_t)root << 8,
                                                 .a = bytes,
                                                 .b = done}));
        if (!is_root && n > 0) {
            memcpy(buf + done, stage, n);
        }
        done += n;
    } while (done < bytes);
    return WEIR_OK;
}

weir_status shm_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root)
{
    struct shm_state *shm = comm->state;
    size_t offset = 0;
    if (comm->n_workers == 1) {
        return WEIR_OK;
    }
    const struct shm_region *region = shm_region_find(shm, buf, bytes, &offset);
    if (region == NULL) {
        return broadcast_staged(shm, buf, bytes, root);
    }
    uint64_t i_region = (uint64_t)(region - shm->regions);
    WEIR_TRY(
        shm_meet(shm, (struct shm_slot){.op = SHM_BROADCAST | (uint64_t)root << 8 | i_region << 16,
                                        .a = offset,
                                        .b = bytes}));
    if (comm->rank != root) {
        memcpy(buf, region->base + region->stride * (size_t)root + offset, bytes);
    }
    return meet_end(shm); /* root may write again only when all have read */
}

/* Every rank copies from where the slices are. */
static weir_status gather_in_place(struct shm_state *shm, const struct shm_region *region,
                                   size_t offset, size_t n_elems, enum weir_comm_type type)
{
    struct weir_comm *comm = shm->comm;
    uint64_t i_region = (uint64_t)(region - shm->regions);
    size_t elem_bytes = weir_comm_type_size(type);
    WEIR_TRY(
        shm_meet(shm, (struct shm_slot){.op = SHM_GATHER | (uint64_t)type << 8 | i_region << 16,
                                        .a = offset,
                                        .b = n_elems}));
    uint8_t *own = region->base + region->stride * (size_t)comm->rank + offset;
    for (int r = 0; r < comm->n_workers; r++) {
        struct comm_slice slice = comm_slice(n_elems, comm->n_workers, r);
        const uint8_t *part = region->base + region->stride * (size_t)r + offset;
        if (r != comm->rank) {
            memcpy(own + slice.first * elem_bytes, part + slice.first * elem_bytes,
                   slice.n * elem_bytes);
        }
    }
    return meet_end(shm);
}

weir_status shm_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type)
{
    struct shm_state *shm = comm->state;
    size_t offset = 0, elem_bytes = weir_comm_type_size(type);
    if (n_elems > SIZE_MAX / elem_bytes) {
        return shm_give_up(shm, WEIR_ERR_INVALID, "all-gather of more bytes than there are");
    }
    if (comm->n_workers == 1) {
        return WEIR_OK;
    }
    const struct shm_region *region = shm_region_find(shm, buf, n_elems * elem_bytes, &offset);
    if (region != NULL) {
        return gather_in_place(shm, region, offset, n_elems, type);
    }
    for (int r = 0; r < comm->n_workers; r++) {
        struct comm_slice slice = comm_slice(n_elems, comm->n_workers, r);
        WEIR_TRY(broadcast_staged(shm, (uint8_t *)buf + slice.first * elem_bytes,
                                  slice.n * elem_bytes, r));
    }
    return WEIR_OK;
}

weir_status shm_barrier(struct weir_comm *comm)
{
    return shm_meet(comm->state, (struct shm_slot){.op = SHM_BARRIER});
}

/* Reserve and map this rank's view of a new region; the memory of its own part is committed. */
static weir_status map_region(struct shm_state *shm, size_t stride, struct shm_region *out)
{
    struct weir_comm *comm = shm->comm;
    uint64_t offset = shm->header->alloc_offset;
    if (shm->n_regions == SHM_MAX_REGIONS) {
        return WEIR_ERR_NOMEM;
    }
    WEIR_TRY(shm_segment_commit(shm, offset + stride * (size_t)comm->rank, stride));
    void *base = mmap(NULL, stride * (size_t)comm->n_workers, PROT_READ | PROT_WRITE, MAP_SHARED,
                      shm->fd, (off_t)offset);
    if (base == MAP_FAILED) {
        return WEIR_ERR_NOMEM;
    }
    *out = (struct shm_region){.offset = offset, .stride = stride, .base = base};
    return WEIR_OK;
}

weir_status shm_alloc(struct weir_comm *comm, size_t bytes, void **out)
{
    struct shm_state *shm = comm->state;
    size_t stride = shm_pages(bytes);
    if (bytes > (size_t)INT64_MAX / 2 / (size_t)comm->n_workers) {
        return WEIR_ERR_NOMEM; /* alike on all ranks: nothing was exchanged yet */
    }
    if (comm->rank == 0) {
        shm->header->alloc_offset = shm_segment_reserve(shm, stride * (size_t)comm->n_workers);
    }
    WEIR_TRY(shm_meet(shm, (struct shm_slot){.op = SHM_ALLOC, .a = bytes}));
    struct shm_region region;
    int64_t n_failed = map_region(shm, stride, &region) != WEIR_OK;
    bool is_mapped = n_failed == 0;
    weir_status status = shm_allreduce(comm, &n_failed, 1, WEIR_COMM_I64);
    if (status != WEIR_OK || n_failed > 0) {
        if (is_mapped) {
            (void)munmap(region.base, stride * (size_t)comm->n_workers);
        }
        return status != WEIR_OK ? status : WEIR_ERR_NOMEM;
    }
#ifdef MADV_POPULATE_WRITE
    /* Page faults belong here, not into the first step. An older kernel says no: then there. */
    (void)madvise(region.base, stride * (size_t)comm->n_workers, MADV_POPULATE_WRITE);
#endif
    shm->regions[shm->n_regions++] = region;
    *out = region.base + stride * (size_t)comm->rank;
    return WEIR_OK;
}
