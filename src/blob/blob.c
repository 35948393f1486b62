#include "blob/blob_private.h"

#include "base/sha256.h"
#include "base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct weir_blob_writer {
    struct weir_blobs *blobs;
    char tmp[BLOB_PATH_MAX_BYTES];
    int fd;
    struct weir_sha256_stream hash;
    uint64_t n_bytes;
    uint64_t max_bytes;
};

weir_status weir_blobs_open(const char *dir, struct weir_blobs **out, struct weir_error *err)
{
    if (strlen(dir) >= BLOB_DIR_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "blob folder name is too long");
    }
    struct weir_blobs *blobs = calloc(1, sizeof(*blobs));
    if (blobs == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "opening blobs: out of memory");
    }
    blobs->lock_fd = -1;
    pthread_mutex_init(&blobs->lock, NULL);
    (void)snprintf(blobs->dir, sizeof(blobs->dir), "%s", dir);
    char path[BLOB_PATH_MAX_BYTES];
    weir_status status;
    WEIR_TRY_GOTO(weir_dir_make(dir, 0700, err), status, fail);
    (void)snprintf(path, sizeof(path), "%s/lock", dir);
    WEIR_TRY_GOTO(weir_file_lock_after(path, &blobs->lock_fd, err), status, fail);
    (void)snprintf(path, sizeof(path), "%s/tmp", dir);
    WEIR_TRY_GOTO(weir_dir_remove(path, err), status, fail);
    WEIR_TRY_GOTO(weir_dir_make(path, 0700, err), status, fail);
    *out = blobs;
    return WEIR_OK;

fail:
    weir_blobs_close(blobs);
    return status;
}

void weir_blobs_close(struct weir_blobs *blobs)
{
    if (blobs == NULL) {
        return;
    }
    if (blobs->lock_fd >= 0) {
        close(blobs->lock_fd);
    }
    pthread_mutex_destroy(&blobs->lock);
    free(blobs);
}

bool weir_blob_name_is_valid(const char *text)
{
    return text != NULL && strlen(text) == WEIR_SHA256_TEXT_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == WEIR_SHA256_TEXT_BYTES - 1;
}

static weir_status check_name(const char *sha256, struct weir_error *err)
{
    if (!weir_blob_name_is_valid(sha256)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\" is not a SHA-256 (64 lower-case hexadecimal digits)",
                              sha256 != NULL ? sha256 : "");
    }
    return WEIR_OK;
}

static weir_status check_expected(const char *sha256, const char *expected, struct weir_error *err)
{
    WEIR_TRY(check_name(expected, err));
    return strcmp(expected, sha256) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "these bytes have SHA-256 %s, not the expected %s", sha256,
                                expected);
}

static void name_path(const struct weir_blobs *blobs, const char *sha256,
                      char out[BLOB_PATH_MAX_BYTES])
{
    (void)snprintf(out, BLOB_PATH_MAX_BYTES, "%s/%.2s/%s", blobs->dir, sha256, sha256);
}

static weir_status sync_dir(const char *path, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "opening %s", path);
    }
    int result = fsync(fd);
    int error = errno;
    close(fd);
    return result == 0 ? WEIR_OK : weir_error_set_errno(err, error, "syncing %s", path);
}

weir_status weir_blob_writer_open(struct weir_blobs *blobs, uint64_t max_bytes,
                                  struct weir_blob_writer **out, struct weir_error *err)
{
    struct weir_blob_writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "writing a blob: out of memory");
    }
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    writer->blobs = blobs;
    writer->max_bytes = max_bytes;
    (void)snprintf(writer->tmp, sizeof(writer->tmp), "%s/tmp/%s", blobs->dir, id);
    writer->fd = open(writer->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    if (writer->fd < 0) {
        weir_status status = weir_error_set_errno(err, errno, "creating %s", writer->tmp);
        free(writer);
        return status;
    }
    weir_sha256_begin(&writer->hash);
    *out = writer;
    return WEIR_OK;
}

weir_status weir_blob_writer_write(struct weir_blob_writer *writer, const void *data, size_t len,
                                   struct weir_error *err)
{
    if (len > writer->max_bytes - writer->n_bytes) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the blob is larger than %" PRIu64 " bytes",
                              writer->max_bytes);
    }
    WEIR_TRY(weir_fd_write_all(writer->fd, data, len, err));
    weir_sha256_add(&writer->hash, data, len);
    writer->n_bytes += len;
    return WEIR_OK;
}

void weir_blob_writer_abort(struct weir_blob_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->fd >= 0) {
        close(writer->fd);
    }
    (void)unlink(writer->tmp);
    free(writer);
}

/** Is the file there? If so its time is now, and no sweep takes it away soon. */
static bool touch(struct weir_blobs *blobs, const char *path)
{
    pthread_mutex_lock(&blobs->lock);
    bool is_there = utimensat(AT_FDCWD, path, NULL, 0) == 0 || access(path, F_OK) == 0;
    pthread_mutex_unlock(&blobs->lock);
    return is_there;
}

/** Is it there with its own bytes? If it is there its time is now, and that makes no reading of it necessary. */
static bool is_whole(struct weir_blobs *blobs, const char *sha256, const char *path)
{
    struct stat info;
    bool is = blob_check(blobs, sha256, path, &info, NULL) == WEIR_OK;
    bool is_there = touch(blobs, path);
    if (is && is_there) {
        blob_note_right(blobs, sha256, path);
    }
    return is && is_there;
}

/** Give the synced temporary file its name, durably. */
static weir_status publish(struct weir_blobs *blobs, const char *from, const char *sha256,
                           struct weir_error *err)
{
    char path[BLOB_PATH_MAX_BYTES], dir[BLOB_PATH_MAX_BYTES];
    name_path(blobs, sha256, path);
    if (is_whole(blobs, sha256, path)) {
        return WEIR_OK; /* The same bytes are there: the temporary file is dropped. */
    }
    (void)snprintf(dir, sizeof(dir), "%s/%.2s", blobs->dir, sha256);
    if (mkdir(dir, 0700) == 0) {
        WEIR_TRY(sync_dir(blobs->dir, err));
    } else if (errno != EEXIST) {
        return weir_error_set_errno(err, errno, "creating %s", dir);
    }
    if (rename(from, path) != 0) {
        return weir_error_set_errno(err, errno, "renaming %s to %s", from, path);
    }
    blob_note_right(blobs, sha256, path);
    return sync_dir(dir, err);
}

weir_status weir_blob_writer_finish(struct weir_blob_writer *writer, const char *expected,
                                    char out_sha256[WEIR_SHA256_TEXT_BYTES], uint64_t *out_bytes,
                                    struct weir_error *err)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    weir_sha256_end(&writer->hash, sha256);
    uint64_t n_bytes = writer->n_bytes;
    weir_status status = WEIR_OK;
    if (expected != NULL) {
        WEIR_TRY_GOTO(check_expected(sha256, expected, err), status, abort);
    }
    if (fsync(writer->fd) != 0) {
        status = weir_error_set_errno(err, errno, "syncing %s", writer->tmp);
        goto abort;
    }
    WEIR_TRY_GOTO(publish(writer->blobs, writer->tmp, sha256, err), status, abort);
    memcpy(out_sha256, sha256, sizeof(sha256));
    if (out_bytes != NULL) {
        *out_bytes = n_bytes;
    }

abort:
    weir_blob_writer_abort(writer);
    return status;
}

weir_status weir_blob_put(struct weir_blobs *blobs, const void *data, size_t len,
                          const char *expected, char out_sha256[WEIR_SHA256_TEXT_BYTES],
                          struct weir_error *err)
{
    struct weir_blob_writer *writer;
    WEIR_TRY(weir_blob_writer_open(blobs, UINT64_MAX, &writer, err));
    weir_status status = weir_blob_writer_write(writer, data, len, err);
    if (status != WEIR_OK) {
        weir_blob_writer_abort(writer);
        return status;
    }
    return weir_blob_writer_finish(writer, expected, out_sha256, NULL, err);
}

weir_status weir_blob_take_file(struct weir_blobs *blobs, const char *path, const char *sha256,
                                const char *expected, struct weir_error *err)
{
    WEIR_TRY(check_expected(sha256, expected, err));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "opening %s", path);
    }
    bool is_synced = fsync(fd) == 0 && fchmod(fd, 0400) == 0;
    int reason = errno;
    (void)close(fd);
    return is_synced ? publish(blobs, path, sha256, err)
                     : weir_error_set_errno(err, reason, "syncing %s", path);
}

weir_status weir_blob_remove(struct weir_blobs *blobs, const char *sha256, struct weir_error *err)
{
    char path[BLOB_PATH_MAX_BYTES], dir[BLOB_PATH_MAX_BYTES];
    WEIR_TRY(check_name(sha256, err));
    name_path(blobs, sha256, path);
    blob_forget_damage(blobs, sha256);
    if (unlink(path) != 0 && errno != ENOENT) {
        return weir_error_set_errno(err, errno, "cannot remove blob %s", sha256);
    }
    /* Also if it was gone: whoever removed it may have been killed before it was durable. */
    (void)snprintf(dir, sizeof dir, "%s/%.2s", blobs->dir, sha256);
    return weir_path_is_dir(dir) ? sync_dir(dir, err) : WEIR_OK;
}

bool weir_blob_exists(struct weir_blobs *blobs, const char *sha256)
{
    if (!weir_blob_name_is_valid(sha256)) {
        return false;
    }
    char path[BLOB_PATH_MAX_BYTES];
    name_path(blobs, sha256, path);
    return is_whole(blobs, sha256, path);
}

weir_status weir_blob_path(struct weir_blobs *blobs, const char *sha256, struct weir_arena *arena,
                           char **out_path, uint64_t *out_bytes, struct weir_error *err)
{
    WEIR_TRY(check_name(sha256, err));
    char path[BLOB_PATH_MAX_BYTES];
    name_path(blobs, sha256, path);
    struct stat info;
    WEIR_TRY(blob_check(blobs, sha256, path, &info, err));
    *out_path = weir_arena_strdup(arena, path);
    if (out_bytes != NULL) {
        *out_bytes = (uint64_t)info.st_size;
    }
    return WEIR_OK;
}

weir_status weir_blob_read(struct weir_blobs *blobs, const char *sha256, size_t max_bytes,
                           struct weir_arena *arena, char **out_data, size_t *out_len,
                           struct weir_error *err)
{
    char *path, *data;
    size_t len;
    WEIR_TRY(weir_blob_path(blobs, sha256, arena, &path, NULL, err));
    WEIR_TRY(weir_file_read(path, max_bytes, arena, &data, &len, err));
    char actual[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(data, len, actual);
    if (strcmp(actual, sha256) != 0) {
        return blob_error_damaged(sha256, actual, err);
    }
    *out_data = data;
    *out_len = len;
    return WEIR_OK;
}
