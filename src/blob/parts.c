#include "blob/parts.h"

#include "blob/blob_private.h"

#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_BYTES 4096
#define COPY_BYTES     ((size_t)1 << 20)

static weir_status folder_of(const char *dir, const char *id, char out[PATH_MAX_BYTES],
                             struct weir_error *err)
{
    if (!weir_uuid_is_valid(id)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "upload \"%.60s\": not an identifier", id);
    }
    int len = snprintf(out, PATH_MAX_BYTES, "%s/%s", dir, id);
    return len < PATH_MAX_BYTES - 128
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "the folder's name is too long: %s", dir);
}

static void file_of(const char *folder, const struct weir_part *part, char out[PATH_MAX_BYTES])
{
    (void)snprintf(out, PATH_MAX_BYTES, "%.*s/%" PRId64 "-%s", PATH_MAX_BYTES - 128, folder,
                   part->number, part->sha256);
}

/* "12-ab…": else it is none of ours. */
static bool read_name(const char *name, struct weir_part *out)
{
    char *end;
    long long number = strtoll(name, &end, 10);
    if (number < 1 || number > WEIR_PARTS_MAX || *end != '-' || !weir_blob_name_is_valid(end + 1)) {
        return false;
    }
    out->number = number;
    memcpy(out->sha256, end + 1, WEIR_SHA256_TEXT_BYTES);
    return true;
}

static int by_number(const void *a, const void *b)
{
    const struct weir_part *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static size_t read_folder(DIR *stream, struct weir_part *parts, size_t n_max)
{
    size_t n = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL && n < n_max;
         entry = readdir(stream)) {
        struct stat info;
        if (read_name(entry->d_name, &parts[n]) &&
            fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode)) {
            parts[n++].bytes = (uint64_t)info.st_size;
        }
    }
    qsort(parts, n, sizeof *parts, by_number);
    return n;
}

weir_status weir_parts_list(const char *dir, const char *id, struct weir_arena *arena,
                            struct weir_part **out, size_t *out_n, struct weir_error *err)
{
    char folder[PATH_MAX_BYTES];
    WEIR_TRY(folder_of(dir, id, folder, err));
    struct weir_part *parts = WEIR_ARENA_ARRAY(arena, WEIR_PARTS_MAX, struct weir_part);
    DIR *stream = opendir(folder);
    if (stream == NULL && errno != ENOENT) {
        return weir_error_set_errno(err, errno, "listing %s", folder);
    }
    size_t n = stream != NULL ? read_folder(stream, parts, WEIR_PARTS_MAX) : 0;
    if (stream != NULL) {
        (void)closedir(stream);
    }
    *out = parts;
    *out_n = n;
    return WEIR_OK;
}

/* ---- taking one ------------------------------------------------------------------------------ */

static weir_status check_room(const struct weir_part *parts, size_t n, const struct weir_part *part,
                              uint64_t max_bytes, struct weir_error *err)
{
    uint64_t left = max_bytes;
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = parts[i].number != part->number ? parts[i].bytes : 0;
        left = bytes < left ? left - bytes : 0;
    }
    return part->bytes <= left
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "part %" PRId64 ": with it the artifact has over %" PRIu64 " bytes",
                                part->number, max_bytes);
}

static weir_status sync_path(const char *path, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result = fd >= 0 ? fsync(fd) : -1, reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return result == 0 ? WEIR_OK : weir_error_set_errno(err, reason, "syncing %s", path);
}

/* The others of this number go once the new one is there. */
static void remove_older(const char *folder, const struct weir_part *parts, size_t n,
                         const struct weir_part *part)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].number == part->number && strcmp(parts[i].sha256, part->sha256) != 0) {
            char path[PATH_MAX_BYTES];
            file_of(folder, &parts[i], path);
            (void)unlink(path);
        }
    }
}

static weir_status take(const char *dir, const char *id, const struct weir_part *part,
                        const char *path, uint64_t max_bytes, struct weir_arena *arena,
                        struct weir_error *err)
{
    char folder[PATH_MAX_BYTES], target[PATH_MAX_BYTES];
    struct weir_part *parts;
    size_t n;
    WEIR_TRY(folder_of(dir, id, folder, err));
    WEIR_TRY(weir_parts_list(dir, id, arena, &parts, &n, err));
    WEIR_TRY(check_room(parts, n, part, max_bytes, err));
    WEIR_TRY(weir_dir_make(folder, 0700, err));
    WEIR_TRY(sync_path(path, err));
    file_of(folder, part, target);
    if (rename(path, target) != 0) {
        return weir_error_set_errno(err, errno, "storing %s", target);
    }
    WEIR_TRY(sync_path(folder, err));
    remove_older(folder, parts, n, part);
    return WEIR_OK;
}

weir_status weir_part_take(const char *dir, const char *id, int64_t number, const char *path,
                           uint64_t bytes, const char *sha256, uint64_t max_bytes,
                           struct weir_error *err)
{
    struct weir_part part = {.number = number, .bytes = bytes};
    struct weir_arena arena;
    if (number < 1 || number > WEIR_PARTS_MAX || !weir_blob_name_is_valid(sha256)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "part %" PRId64 ": expected 1 to %d", number,
                              WEIR_PARTS_MAX);
    }
    memcpy(part.sha256, sha256, sizeof part.sha256);
    weir_arena_init(&arena, 0);
    weir_status status = take(dir, id, &part, path, max_bytes, &arena, err);
    weir_arena_fini(&arena);
    return status;
}

/* ---- joining --------------------------------------------------------------------------------- */

static weir_status copy_part(const char *folder, const struct weir_part *part, char *buffer,
                             struct weir_blob_writer *writer, struct weir_error *err)
{
    char path[PATH_MAX_BYTES];
    file_of(folder, part, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "opening %s", path);
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    weir_status status = WEIR_OK;
    for (;;) {
        ssize_t n = read(fd, buffer, COPY_BYTES);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            status = n == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "reading %s", path);
            break;
        }
        WEIR_TRY_GOTO(weir_blob_writer_write(writer, buffer, (size_t)n, err), status, done);
    }
done:
    (void)close(fd);
    return status;
}

static weir_status check_whole(const struct weir_part *parts, size_t n, int64_t n_parts,
                               struct weir_error *err)
{
    for (int64_t i = 0; i < n_parts; i++) {
        if ((size_t)i >= n || parts[i].number != i + 1) {
            return weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "part %" PRId64 " of %" PRId64 " is missing: send it first",
                                  i + 1, n_parts);
        }
    }
    return (int64_t)n == n_parts ? WEIR_OK
                                 : weir_error_set(err, WEIR_ERR_CONFLICT,
                                                  "there are %zu parts, not %" PRId64, n, n_parts);
}

static weir_status join(const char *folder, const struct weir_part *parts, size_t n,
                        struct weir_blobs *blobs, uint64_t max_bytes, char *out_sha256,
                        uint64_t *out_bytes, struct weir_error *err)
{
    struct weir_blob_writer *writer;
    char *buffer = malloc(COPY_BYTES);
    if (buffer == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to join parts");
    }
    weir_status status = weir_blob_writer_open(blobs, max_bytes, &writer, err);
    bool is_open = status == WEIR_OK;
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        status = copy_part(folder, &parts[i], buffer, writer, err);
    }
    free(buffer);
    if (status == WEIR_OK) {
        return weir_blob_writer_finish(writer, NULL, out_sha256, out_bytes, err);
    }
    if (is_open) {
        weir_blob_writer_abort(writer);
    }
    return status;
}

static weir_status join_parts(const char *dir, const char *id, int64_t n_parts,
                              struct weir_blobs *blobs, uint64_t max_bytes,
                              char out_sha256[WEIR_SHA256_TEXT_BYTES], uint64_t *out_bytes,
                              struct weir_error *err)
{
    char folder[PATH_MAX_BYTES];
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_part *parts;
    size_t n;
    weir_arena_init(&arena, 0);
    WEIR_TRY(folder_of(dir, id, folder, err));
    WEIR_TRY(weir_parts_list(dir, id, &arena, &parts, &n, err));
    WEIR_TRY(check_whole(parts, n, n_parts, err));
    return join(folder, parts, n, blobs, max_bytes, out_sha256, out_bytes, err);
}

weir_status weir_parts_join(const char *dir, const char *id, int64_t n_parts,
                            struct weir_blobs *blobs, uint64_t max_bytes,
                            char out_sha256[WEIR_SHA256_TEXT_BYTES], uint64_t *out_bytes,
                            struct weir_error *err)
{
    weir_status status;
    if (atomic_fetch_add(&blobs->n_joins, 1) < WEIR_PARTS_JOINS_MAX) {
        status = join_parts(dir, id, n_parts, blobs, max_bytes, out_sha256, out_bytes, err);
    } else {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "other artifacts are being joined from their parts: try again");
    }
    atomic_fetch_sub(&blobs->n_joins, 1);
    return status;
}

weir_status weir_parts_remove(const char *dir, const char *id, struct weir_error *err)
{
    char folder[PATH_MAX_BYTES];
    WEIR_TRY(folder_of(dir, id, folder, err));
    return weir_dir_remove(folder, err);
}
