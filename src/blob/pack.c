#include "blob/pack.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_MAX_BYTES 4096
#define NAME_MAX_BYTES 32
#define DIR_MAX_BYTES  (PATH_MAX_BYTES - NAME_MAX_BYTES)
#define ID_BYTES       (WEIR_UUID_BYTES - 1)

/** Before each thing: mark, length (little-endian), identifier. */
#define HEADER_BYTES (4 + 4 + ID_BYTES)
static const char header_mark[4] = {'W', 'P', 'K', '1'};

struct weir_packs {
    char dir[DIR_MAX_BYTES];
    int64_t pack_bytes;
    pthread_mutex_t lock;
    /* Under lock: the pack that is written. */
    int fd; /**< -1: none yet. */
    int64_t number, size, began_mono_ms;
    unsigned char *record; /**< Of the append in progress. */
};

static void path_of(const struct weir_packs *packs, int64_t number, char out[PATH_MAX_BYTES])
{
    (void)snprintf(out, PATH_MAX_BYTES, "%s/%016" PRId64 ".pack", packs->dir, number);
}

/* The number in a pack's name; 0 for any other name. */
static int64_t number_of(const char *name)
{
    char again[NAME_MAX_BYTES];
    int64_t number = strtoll(name, NULL, 10);
    (void)snprintf(again, sizeof again, "%016" PRId64 ".pack", number);
    return strcmp(again, name) == 0 ? number : 0;
}

/* The last number that was given, as far as the folder tells. */
static weir_status find_last(struct weir_packs *packs, struct weir_error *err)
{
    DIR *dir = opendir(packs->dir);
    if (dir == NULL) {
        return weir_error_set_errno(err, errno, "listing %s", packs->dir);
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        packs->number = WEIR_MAX(packs->number, number_of(entry->d_name));
    }
    (void)closedir(dir);
    return WEIR_OK;
}

weir_status weir_packs_open(const char *dir, int64_t pack_bytes, struct weir_packs **out,
                            struct weir_error *err)
{
    if (strlen(dir) >= DIR_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the folder's name is too long: %.80s…", dir);
    }
    WEIR_TRY(weir_dir_make(dir, 0700, err));
    struct weir_packs *packs = calloc(1, sizeof *packs);
    unsigned char *record = malloc(HEADER_BYTES + WEIR_PACK_ITEM_MAX_BYTES);
    if (packs == NULL || record == NULL) {
        free(packs);
        free(record);
        return weir_error_set(err, WEIR_ERR_NOMEM, "opening packs: out of memory");
    }
    packs->fd = -1;
    packs->record = record;
    packs->pack_bytes = pack_bytes > 0 ? pack_bytes : WEIR_PACK_BYTES;
    (void)snprintf(packs->dir, sizeof packs->dir, "%s", dir);
    pthread_mutex_init(&packs->lock, NULL);
    weir_status status = find_last(packs, err);
    if (status != WEIR_OK) {
        weir_packs_close(packs);
        return status;
    }
    *out = packs;
    return WEIR_OK;
}

/* The next append begins a new pack. */
static void end_pack(struct weir_packs *packs)
{
    if (packs->fd >= 0) {
        (void)close(packs->fd);
        packs->fd = -1;
    }
}

void weir_packs_close(struct weir_packs *packs)
{
    if (packs == NULL) {
        return;
    }
    end_pack(packs);
    pthread_mutex_destroy(&packs->lock);
    free(packs->record);
    free(packs);
}

/* Numbers are times, so that none is given twice even when all packs are gone. */
static weir_status begin_pack(struct weir_packs *packs, struct weir_error *err)
{
    char path[PATH_MAX_BYTES];
    int64_t number = WEIR_MAX(packs->number + 1, weir_time_ms());
    path_of(packs, number, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "creating %s", path);
    }
    packs->fd = fd;
    packs->number = number;
    packs->size = 0;
    packs->began_mono_ms = weir_mono_ms();
    return WEIR_OK;
}

static weir_status append_locked(struct weir_packs *packs, size_t n_bytes,
                                 struct weir_pack_place *out, struct weir_error *err)
{
    if (packs->fd >= 0 && (packs->size + (int64_t)n_bytes > packs->pack_bytes ||
                           weir_mono_ms() - packs->began_mono_ms >= WEIR_PACK_SPAN_MS)) {
        end_pack(packs);
    }
    if (packs->fd < 0) {
        WEIR_TRY(begin_pack(packs, err));
    }
    weir_status status = weir_fd_write_all(packs->fd, packs->record, n_bytes, err);
    if (status != WEIR_OK) {
        /* What was written of it goes; where that fails, the next thing begins a new pack. */
        if (ftruncate(packs->fd, packs->size) != 0 ||
            lseek(packs->fd, packs->size, SEEK_SET) != packs->size) {
            end_pack(packs);
        }
        return status;
    }
    *out = (struct weir_pack_place){packs->number, packs->size, (int64_t)(n_bytes - HEADER_BYTES)};
    packs->size += (int64_t)n_bytes;
    return WEIR_OK;
}

static void make_header(unsigned char *header, const char *id, size_t len)
{
    memcpy(header, header_mark, sizeof header_mark);
    for (size_t i = 0; i < 4; i++) {
        header[4 + i] = (unsigned char)(len >> (8 * i));
    }
    memcpy(header + 8, id, ID_BYTES);
}

weir_status weir_packs_append(struct weir_packs *packs, const char *id, const void *bytes,
                              size_t len, struct weir_pack_place *out, struct weir_error *err)
{
    if (len > WEIR_PACK_ITEM_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%zu bytes are more than the %zu of a pack's item", len,
                              WEIR_PACK_ITEM_MAX_BYTES);
    }
    if (!weir_uuid_is_valid(id)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.60s\" is no UUID", id);
    }
    pthread_mutex_lock(&packs->lock);
    make_header(packs->record, id, len);
    memcpy(packs->record + HEADER_BYTES, bytes, len);
    weir_status status = append_locked(packs, HEADER_BYTES + len, out, err);
    pthread_mutex_unlock(&packs->lock);
    return status;
}

static weir_status read_at(int fd, const char *id, const struct weir_pack_place *place,
                           struct weir_arena *arena, char **out_data, struct weir_error *err)
{
    unsigned char expected[HEADER_BYTES];
    size_t n_bytes = HEADER_BYTES + (size_t)place->bytes;
    char *record = weir_arena_alloc(arena, n_bytes + 1);
    ssize_t n = pread(fd, record, n_bytes, (off_t)place->offset);
    if (n < 0) {
        return weir_error_set_errno(err, errno, "reading pack %" PRId64, place->pack);
    }
    make_header(expected, id, (size_t)place->bytes);
    if ((size_t)n != n_bytes || memcmp(record, expected, sizeof expected) != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "pack %" PRId64 " does not hold %s",
                              place->pack, id);
    }
    *out_data = record + HEADER_BYTES;
    return WEIR_OK;
}

weir_status weir_packs_read(struct weir_packs *packs, const char *id,
                            const struct weir_pack_place *place, struct weir_arena *arena,
                            char **out_data, size_t *out_len, struct weir_error *err)
{
    char path[PATH_MAX_BYTES];
    if (!weir_uuid_is_valid(id) || place->offset < 0 || place->bytes < 0 ||
        place->bytes > (int64_t)WEIR_PACK_ITEM_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "no pack can hold %.60s there", id);
    }
    path_of(packs, place->pack, path);
    WEIR_AUTO(weir_fd_auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "pack %" PRId64, place->pack);
    }
    WEIR_TRY(read_at(fd, id, place, arena, out_data, err));
    *out_len = (size_t)place->bytes;
    return WEIR_OK;
}

/* Zeros where the record was, its mark too. What lies there now is another thing's, or none: it stays. */
static weir_status erase_at(int fd, const char *id, const struct weir_pack_place *place,
                            struct weir_error *err)
{
    unsigned char expected[HEADER_BYTES], found[HEADER_BYTES];
    static const unsigned char zeros[4096];
    make_header(expected, id, (size_t)place->bytes);
    ssize_t n_found = pread(fd, found, sizeof found, (off_t)place->offset);
    if (n_found < 0) { /* nobody knows what lies there: it is not erased */
        return weir_error_set_errno(err, errno, "reading pack %" PRId64, place->pack);
    }
    if ((size_t)n_found != sizeof found || memcmp(found, expected, sizeof expected) != 0) {
        return WEIR_OK;
    }
    /* The mark last: as long as it is there, an erasing that was cut short is found again. */
    int64_t end = place->offset + (int64_t)HEADER_BYTES + place->bytes;
    for (int64_t at = place->offset + (int64_t)HEADER_BYTES; at < end;) {
        size_t n = (size_t)WEIR_MIN((int64_t)sizeof zeros, end - at);
        ssize_t done = pwrite(fd, zeros, n, (off_t)at);
        if (done <= 0) {
            return weir_error_set_errno(err, errno, "erasing in pack %" PRId64, place->pack);
        }
        at += done;
    }
    if (fsync(fd) != 0 ||
        pwrite(fd, zeros, HEADER_BYTES, (off_t)place->offset) != (ssize_t)HEADER_BYTES ||
        fsync(fd) != 0) {
        return weir_error_set_errno(err, errno, "erasing in pack %" PRId64, place->pack);
    }
    return WEIR_OK;
}

weir_status weir_packs_erase(struct weir_packs *packs, const char *id,
                             const struct weir_pack_place *place, struct weir_error *err)
{
    char path[PATH_MAX_BYTES];
    if (!weir_uuid_is_valid(id) || place->offset < 0 || place->bytes < 0 ||
        place->bytes > (int64_t)WEIR_PACK_ITEM_MAX_BYTES) {
        return WEIR_OK;
    }
    path_of(packs, place->pack, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? WEIR_OK
                               : weir_error_set_errno(err, errno, "pack %" PRId64, place->pack);
    }
    weir_status status = erase_at(fd, id, place, err);
    (void)close(fd);
    return status;
}

weir_status weir_packs_remove(struct weir_packs *packs, const char *name, struct weir_error *err)
{
    char path[PATH_MAX_BYTES];
    weir_status status = WEIR_OK;
    int64_t number = number_of(name);
    if (number == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.60s is no pack", name);
    }
    pthread_mutex_lock(&packs->lock);
    if (number == packs->number) {
        end_pack(packs);
    }
    path_of(packs, number, path);
    if (unlink(path) != 0 && errno != ENOENT) {
        status = weir_error_set_errno(err, errno, "removing %s", path);
    }
    pthread_mutex_unlock(&packs->lock);
    return status;
}
