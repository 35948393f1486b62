#include "blob/blob_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** One sweep. */
struct sweep {
    struct weir_blobs *blobs;
    weir_blob_is_named_fn is_named;
    void *context;
    int64_t before_ms;
    bool is_dry;
    struct weir_blobs_count count;
};

bool weir_blob_hash_read(const char *text, unsigned char out[WEIR_BLOB_HASH_BYTES])
{
    const size_t len = (size_t)WEIR_BLOB_HASH_BYTES * 2;
    size_t n_bytes;
    return strspn(text, "0123456789abcdef") >= len &&
           sodium_hex2bin(out, WEIR_BLOB_HASH_BYTES, text, len, NULL, &n_bytes, NULL) == 0 &&
           n_bytes == WEIR_BLOB_HASH_BYTES;
}

static int64_t time_of(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000;
}

/* Somebody may have stored it again since it was looked at. */
static weir_status take_away(struct sweep *sweep, int dir_fd, const char *name,
                             struct weir_error *err)
{
    struct stat info;
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&sweep->blobs->lock);
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        time_of(&info) < sweep->before_ms) {
        if (!sweep->is_dry && unlinkat(dir_fd, name, 0) != 0) {
            status = weir_error_set_errno(err, errno, "removing blob %s", name);
        } else {
            sweep->count.n_swept++;
            sweep->count.bytes_swept += (int64_t)info.st_blocks * 512;
        }
    }
    pthread_mutex_unlock(&sweep->blobs->lock);
    return status;
}

static weir_status look_at(struct sweep *sweep, int dir_fd, const char *name,
                           struct weir_error *err)
{
    struct stat info;
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    if (!weir_blob_name_is_valid(name) || !weir_blob_hash_read(name, hash) ||
        fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return WEIR_OK;
    }
    struct weir_blobs_count *count = &sweep->count;
    count->n++;
    count->bytes += (int64_t)info.st_blocks * 512;
    if (sweep->is_named(sweep->context, hash)) {
        count->n_named++;
        return WEIR_OK;
    }
    if (count->oldest_ms == 0 || time_of(&info) < count->oldest_ms) {
        count->oldest_ms = time_of(&info);
    }
    return time_of(&info) < sweep->before_ms ? take_away(sweep, dir_fd, name, err) : WEIR_OK;
}

static weir_status sweep_dir(struct sweep *sweep, const char *path, struct weir_error *err)
{
    DIR *dir = opendir(path);
    weir_status status = WEIR_OK;
    if (dir == NULL) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "listing %s", path);
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        status = look_at(sweep, dirfd(dir), entry->d_name, err);
    }
    (void)closedir(dir);
    return status;
}

weir_status weir_blobs_sweep(struct weir_blobs *blobs, weir_blob_is_named_fn is_named,
                             void *context, int64_t before_ms, bool is_dry,
                             struct weir_blobs_count *out, struct weir_error *err)
{
    struct sweep sweep = {blobs, is_named, context, before_ms, is_dry, {0}};
    for (unsigned i = 0; i < 256; i++) {
        char path[BLOB_PATH_MAX_BYTES];
        (void)snprintf(path, sizeof path, "%s/%02x", blobs->dir, i);
        WEIR_TRY(sweep_dir(&sweep, path, err));
    }
    *out = sweep.count;
    return WEIR_OK;
}
