/* Sums over emulated GPUs of several processes: a file that all have in their memory, in which each
 * rank has room for a piece of its array. */
#include "emulated.h"

#include "base/clock.h"
#include "base/macros.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int emulated_n_gpus = EMULATED_GROUP_MAX;
const char *emulated_group_lack;
struct emulated_victim emulated_victim = {.rank = -1};

#define PIECE_ELEMS ((size_t)1 << 16)

struct shared_memory {
    _Atomic int n_open;
    _Atomic uint64_t arrived[EMULATED_GROUP_MAX], left[EMULATED_GROUP_MAX]; /* pieces */
    float values[EMULATED_GROUP_MAX][PIECE_ELEMS];
};

struct emulated_group {
    struct gpu_group config;
    struct shared_memory *memory;
    uint64_t n_pieces, n_sums;
    char path[160];
};

/* @return TIMEOUT, or what the group's check says. */
static weir_status pause_until(const struct emulated_group *group, int64_t end_ms,
                               struct weir_error *err)
{
    const struct timespec pause = {.tv_nsec = 20000};
    weir_status status = group->config.check ? group->config.check(group->config.context) : WEIR_OK;
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "another rank was lost while GPUs summed gradients");
    }
    if (weir_mono_ms() > end_ms) {
        return weir_error_set(err, WEIR_ERR_TIMEOUT, "emulated GPUs waited %d ms",
                              group->config.timeout_ms);
    }
    (void)nanosleep(&pause, NULL);
    return WEIR_OK;
}

static weir_status wait_for_all(const struct emulated_group *group, const _Atomic uint64_t *counts,
                                uint64_t n, struct weir_error *err)
{
    int64_t end_ms = weir_mono_ms() + group->config.timeout_ms;
    for (int r = 0; r < group->config.size; r++) {
        while (atomic_load(&counts[r]) < n) {
            WEIR_TRY(pause_until(group, end_ms, err));
        }
    }
    return WEIR_OK;
}

weir_status emulated_probe(int32_t index, struct gpu_probe *out, struct weir_error *err)
{
    if (emulated_group_lack) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s", emulated_group_lack);
    }
    *out = (struct gpu_probe){0};
    (void)snprintf(out->place, sizeof out->place, "emulated/%d", (int)index % emulated_n_gpus);
    return WEIR_OK;
}

weir_status emulated_make_group_id(struct gpu *gpu, struct gpu_group_id *out,
                                   struct weir_error *err)
{
    static int n_made;
    (void)gpu;
    (void)err;
    *out = (struct gpu_group_id){{0}};
    (void)snprintf(out->bytes, sizeof out->bytes, "weir-emulated-%d-%d-%lld", (int)getpid(),
                   n_made++, (long long)weir_mono_ns());
    return WEIR_OK;
}

static weir_status map_memory(struct emulated_group *group, struct weir_error *err)
{
    (void)snprintf(group->path, sizeof group->path, "/tmp/%s", group->config.id.bytes);
    int fd = open(group->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared_memory)) != 0) {
        return weir_error_set(err, WEIR_ERR_IO, "%s: cannot be made", group->path);
    }
    void *at = mmap(NULL, sizeof(struct shared_memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (at == MAP_FAILED) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: cannot be mapped", group->path);
    }
    group->memory = at;
    return WEIR_OK;
}

/* All come, and then the file needs no name any more. */
static weir_status meet(struct emulated_group *group, struct weir_error *err)
{
    int64_t end_ms = weir_mono_ms() + group->config.timeout_ms;
    WEIR_TRY(map_memory(group, err));
    (void)atomic_fetch_add(&group->memory->n_open, 1);
    while (atomic_load(&group->memory->n_open) < group->config.size) {
        WEIR_TRY(pause_until(group, end_ms, err));
    }
    return WEIR_OK;
}

weir_status emulated_group_open(const struct gpu_group *config, struct emulated_group **out,
                                struct weir_error *err)
{
    struct emulated_group *group = calloc(1, sizeof *group);
    if (!group || config->size > EMULATED_GROUP_MAX) {
        free(group);
        return weir_error_set(err, WEIR_ERR_NOMEM, "too large a group of emulated GPUs");
    }
    group->config = *config;
    weir_status status = emulated_victim.fails_to_open && config->rank == emulated_victim.rank
                             ? weir_error_set(err, WEIR_ERR_INTERNAL, "it fails as it was asked to")
                             : meet(group, err);
    if (status != WEIR_OK) {
        emulated_group_close(group);
        return status;
    }
    *out = group;
    return WEIR_OK;
}

void emulated_group_close(struct emulated_group *group)
{
    if (!group) {
        return;
    }
    if (group->memory) {
        (void)unlink(group->path);
        (void)munmap(group->memory, sizeof *group->memory);
    }
    free(group);
}

/* In the middle of an exchange: the own part is there, the others' are not looked at. */
static void suffer(const struct emulated_group *group)
{
    bool is_it = group->config.rank == emulated_victim.rank && emulated_victim.n_left &&
                 group->n_sums == emulated_victim.n_sums;
    if (is_it && *emulated_victim.n_left > 0) {
        --*emulated_victim.n_left;
        (void)raise(emulated_victim.signal);
    }
}

static weir_status sum_piece(struct emulated_group *group, float *at, size_t n,
                             struct weir_error *err)
{
    struct shared_memory *memory = group->memory;
    int rank = group->config.rank;
    WEIR_TRY(wait_for_all(group, memory->left, group->n_pieces, err));
    memcpy(memory->values[rank], at, n * sizeof *at);
    atomic_store(&memory->arrived[rank], ++group->n_pieces);
    suffer(group);
    WEIR_TRY(wait_for_all(group, memory->arrived, group->n_pieces, err));
    for (size_t i = 0; i < n; i++) {
        float sum = memory->values[0][i];
        for (int r = 1; r < group->config.size; r++) {
            sum += memory->values[r][i];
        }
        at[i] = sum;
    }
    atomic_store(&memory->left[rank], group->n_pieces);
    return WEIR_OK;
}

weir_status emulated_group_sum(struct emulated_group *group, float *at, size_t n_elems,
                               struct weir_error *err)
{
    group->n_sums++;
    for (size_t first = 0; first < n_elems; first += PIECE_ELEMS) {
        WEIR_TRY(sum_piece(group, at + first, WEIR_MIN(n_elems - first, PIECE_ELEMS), err));
    }
    return WEIR_OK;
}
