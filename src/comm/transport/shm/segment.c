#include "comm/transport/shm/shm_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENT_MAGIC UINT64_C(0x31306d6872696577) /* "weirhm01" */

size_t shm_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static size_t header_bytes(int size)
{
    return shm_pages(sizeof(struct shm_header) + sizeof(struct shm_rank) * (size_t)size);
}

static size_t head_bytes(int size)
{
    return header_bytes(size) + (size_t)size * 2 * SHM_STAGE_BYTES;
}

static weir_status map_head(struct shm_state *shm, struct weir_error *err)
{
    shm->head_bytes = head_bytes(shm->comm->size);
    void *base = mmap(NULL, shm->head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);
    if (base == MAP_FAILED) {
        return weir_error_set_errno(err, errno, "mapping the group's shared memory");
    }
    shm->header = base;
    shm->stages = (uint8_t *)base + header_bytes(shm->comm->size);
    return WEIR_OK;
}

weir_status shm_segment_create(struct shm_state *shm, struct weir_error *err)
{
    shm->fd = memfd_create("weir-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (shm->fd < 0) {
        return weir_error_set_errno(err, errno, "creating the group's shared memory");
    }
    size_t bytes = head_bytes(shm->comm->size);
    if (shm_segment_commit(shm, 0, bytes) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no shared memory for the group (%zu bytes)",
                              bytes);
    }
    if (fcntl(shm->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        return weir_error_set_errno(err, errno, "sealing the group's shared memory");
    }
    WEIR_TRY(map_head(shm, err));
    shm->header->size = (uint64_t)shm->comm->size;
    atomic_store(&shm->header->next_offset, shm_pages(bytes));
    shm->header->magic = SEGMENT_MAGIC;
    return WEIR_OK;
}

weir_status shm_segment_attach(struct shm_state *shm, int64_t pid, int fd, struct weir_error *err)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)pid, fd);
    shm->fd = open(path, O_RDWR | O_CLOEXEC);
    if (shm->fd < 0) {
        return weir_error_set_errno(err, errno, "opening rank 0's shared memory (%s)", path);
    }
    struct stat info;
    if (fstat(shm->fd, &info) != 0 || info.st_size < (off_t)head_bytes(shm->comm->size)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s is not this group's shared memory", path);
    }
    WEIR_TRY(map_head(shm, err));
    if (shm->header->magic != SEGMENT_MAGIC || shm->header->size != (uint64_t)shm->comm->size) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s is not this group's shared memory", path);
    }
    return WEIR_OK;
}

void shm_segment_close(struct shm_state *shm)
{
    for (int i = 0; i < shm->n_regions; i++) {
        (void)munmap(shm->regions[i].base, shm->regions[i].stride * (size_t)shm->comm->n_workers);
    }
    if (shm->header != NULL) {
        (void)munmap(shm->header, shm->head_bytes);
    }
    if (shm->fd >= 0) {
        (void)close(shm->fd);
    }
}

uint64_t shm_segment_reserve(struct shm_state *shm, size_t bytes)
{
    return atomic_fetch_add(&shm->header->next_offset, shm_pages(bytes));
}

weir_status shm_segment_commit(struct shm_state *shm, uint64_t offset, size_t bytes)
{
    int problem;
    do {
        problem = fallocate(shm->fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
    } while (problem == EINTR);
    return problem == 0 ? WEIR_OK : WEIR_ERR_NOMEM;
}

weir_status shm_window_map(struct shm_state *shm, uint64_t offset, size_t bytes,
                           struct shm_window *window, uint8_t **out)
{
    uint64_t page = shm_pages(1), start = offset / page * page;
    size_t len = (size_t)(offset - start) + bytes;
    if (window->base == NULL || window->offset != start || window->bytes != len) {
        shm_window_unmap(window);
        void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, (off_t)start);
        if (base == MAP_FAILED) {
            return WEIR_ERR_NOMEM;
        }
        *window = (struct shm_window){.offset = start, .bytes = len, .base = base};
    }
    *out = window->base + (offset - start);
    return WEIR_OK;
}

void shm_window_unmap(struct shm_window *window)
{
    if (window->base != NULL) {
        (void)munmap(window->base, window->bytes);
    }
    *window = (struct shm_window){.base = NULL};
}

const struct shm_region *shm_region_find(const struct shm_state *shm, const void *buf, size_t bytes,
                                         size_t *out_offset)
{
    uintptr_t at = (uintptr_t)buf;
    for (int i = 0; i < shm->n_regions; i++) {
        const struct shm_region *region = &shm->regions[i];
        uintptr_t own = (uintptr_t)region->base + region->stride * (size_t)shm->comm->rank;
        if (at >= own && at - own <= region->stride && region->stride - (at - own) >= bytes) {
            *out_offset = at - own;
            return region;
        }
    }
    return NULL;
}

uint8_t *shm_stage(const struct shm_state *shm, int rank, uint64_t n_op)
{
    return shm->stages + ((size_t)rank * 2 + (size_t)(n_op & 1)) * SHM_STAGE_BYTES;
}
