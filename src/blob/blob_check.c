/* Are the bytes of a blob those of its name? */
#include "blob/blob_private.h"
#include "blob/verify.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DAMAGED "is damaged in the server's store"

bool weir_blob_error_is_damage(const struct weir_error *err)
{
    return err->status == WEIR_ERR_CORRUPT && strstr(err->message, DAMAGED) != NULL;
}

weir_status blob_error_damaged(const char *sha256, const char *actual, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CORRUPT,
                          "blob %s " DAMAGED
                          ": its bytes have SHA-256 %.16s…; send it again, or see "
                          "`weir store verify`",
                          sha256, actual);
}

/* ---- remembered ------------------------------------------------------------------------------ */

static struct blob_seen *place_of(struct weir_blobs *blobs, const unsigned char *hash)
{
    return &blobs->seen[((size_t)hash[0] << 8 | hash[1]) % BLOBS_SEEN];
}

static struct blob_seen seen_of(const unsigned char *hash, const struct stat *info)
{
    struct blob_seen seen = {.device = info->st_dev,
                             .inode = info->st_ino,
                             .size = info->st_size,
                             .written = info->st_mtim};
    memcpy(seen.hash, hash, sizeof seen.hash);
    return seen;
}

bool blob_is_as_seen(const struct blob_seen *seen, const struct stat *info)
{
    return seen->inode == info->st_ino && seen->device == info->st_dev &&
           seen->size == info->st_size && seen->written.tv_sec == info->st_mtim.tv_sec &&
           seen->written.tv_nsec == info->st_mtim.tv_nsec;
}

static bool is_seen(struct weir_blobs *blobs, const unsigned char *hash, const struct stat *info)
{
    pthread_mutex_lock(&blobs->lock);
    const struct blob_seen *seen = place_of(blobs, hash);
    bool is = blob_is_as_seen(seen, info) && memcmp(seen->hash, hash, sizeof seen->hash) == 0;
    pthread_mutex_unlock(&blobs->lock);
    return is;
}

static void see(struct weir_blobs *blobs, const struct blob_seen *seen)
{
    pthread_mutex_lock(&blobs->lock);
    *place_of(blobs, seen->hash) = *seen;
    pthread_mutex_unlock(&blobs->lock);
}

void blob_note_right(struct weir_blobs *blobs, const char *sha256, const char *path)
{
    struct stat info;
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    if (weir_blob_hash_read(sha256, hash) && stat(path, &info) == 0) {
        const struct blob_seen seen = seen_of(hash, &info);
        see(blobs, &seen);
        blob_forget_damage(blobs, sha256);
    }
}

weir_status blob_check(struct weir_blobs *blobs, const char *sha256, const char *path,
                       struct stat *out_info, struct weir_error *err)
{
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    char actual[WEIR_SHA256_TEXT_BYTES];
    if (stat(path, out_info) != 0) {
        return errno == ENOENT
                   ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no blob %s", sha256)
                   : weir_error_set_errno(err, errno, "looking at %s", path);
    }
    (void)weir_blob_hash_read(sha256, hash);
    const struct blob_seen wanted = seen_of(hash, out_info);
    if (is_seen(blobs, hash, out_info)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_file_sha256(path, actual, NULL, err));
    if (strcmp(actual, sha256) != 0) {
        weir_log(WEIR_LOG_ERROR, "blob_is_damaged", WEIR_KV_STR("blob", sha256),
                 WEIR_KV_INT("bytes", out_info->st_size));
        blob_note_damaged(blobs, sha256, &wanted);
        return blob_error_damaged(sha256, actual, err);
    }
    see(blobs, &wanted);
    blob_forget_damage(blobs, sha256);
    return WEIR_OK;
}

/* ---- all of a folder ------------------------------------------------------------------------- */

static weir_status verify_one(int dir_fd, const char *dir, const char *name,
                              weir_blob_verified_fn fn, void *context, struct weir_error *err)
{
    char path[BLOB_PATH_MAX_BYTES], actual[WEIR_SHA256_TEXT_BYTES] = "";
    struct stat info;
    struct weir_error unread;
    if (!weir_blob_name_is_valid(name) || fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
        return WEIR_OK; /* no blob */
    }
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", dir, name, name);
    bool is_read = weir_file_sha256(path, actual, NULL, &unread) == WEIR_OK;
    if (!is_read && access(path, F_OK) != 0) {
        return WEIR_OK; /* swept meanwhile */
    }
    return fn(context, name, (int64_t)info.st_size, is_read && strcmp(actual, name) == 0, err);
}

weir_status weir_blobs_verify(const char *dir, weir_blob_verified_fn fn, void *context,
                              struct weir_error *err)
{
    char path[BLOB_PATH_MAX_BYTES];
    weir_status status = WEIR_OK;
    if (strlen(dir) >= BLOB_DIR_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "blob folder name is too long");
    }
    for (unsigned i = 0; i < 256 && status == WEIR_OK; i++) {
        (void)snprintf(path, sizeof path, "%s/%02x", dir, i);
        DIR *folder = opendir(path);
        if (folder == NULL) {
            status =
                errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "listing %s", path);
            continue;
        }
        for (struct dirent *entry = readdir(folder); entry != NULL && status == WEIR_OK;
             entry = readdir(folder)) {
            status = verify_one(dirfd(folder), dir, entry->d_name, fn, context, err);
        }
        (void)closedir(folder);
    }
    return status;
}

static weir_status copy_bytes(int from, const char *path, struct weir_error *err)
{
    char bytes[65536];
    WEIR_AUTO(weir_fd_auto_close)
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    if (to < 0) {
        return weir_error_set_errno(err, errno, "creating %s", path);
    }
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) != 0) {
        if (n < 0) {
            return weir_error_set_errno(err, errno, "reading good bytes");
        }
        WEIR_TRY(weir_fd_write_all(to, bytes, (size_t)n, err));
    }
    return fsync(to) == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "syncing %s", path);
}

/* Among the writes in progress: the next start removes what a kill left. */
static weir_status name_new(const char *dir, char out[BLOB_PATH_MAX_BYTES], struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    (void)snprintf(out, BLOB_PATH_MAX_BYTES, "%s/tmp", dir);
    WEIR_TRY(weir_dir_make(out, 0700, err));
    (void)snprintf(out, BLOB_PATH_MAX_BYTES, "%s/tmp/%s", dir, id);
    return WEIR_OK;
}

weir_status weir_blob_mend(const char *dir, const char *sha256, const char *from,
                           struct weir_error *err)
{
    char path[BLOB_PATH_MAX_BYTES], fresh[BLOB_PATH_MAX_BYTES], actual[WEIR_SHA256_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/%.2s", dir, sha256);
    WEIR_TRY(weir_dir_make(path, 0700, err));
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", dir, sha256, sha256);
    WEIR_TRY(name_new(dir, fresh, err));
    WEIR_AUTO(weir_fd_auto_close) int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "opening %s", from);
    }
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(copy_bytes(fd, fresh, err), status, remove_fresh);
    WEIR_TRY_GOTO(weir_file_sha256(fresh, actual, NULL, err), status, remove_fresh);
    if (strcmp(actual, sha256) != 0) {
        status =
            weir_error_set(err, WEIR_ERR_CORRUPT, "%s has other bytes than blob %s", from, sha256);
    } else if (rename(fresh, path) != 0) {
        status = weir_error_set_errno(err, errno, "renaming %s", fresh);
    }
remove_fresh:
    if (status != WEIR_OK) {
        (void)unlink(fresh);
    }
    return status;
}

weir_status weir_blob_set_aside(const char *dir, const char *sha256, struct weir_error *err)
{
    char path[BLOB_PATH_MAX_BYTES], aside[BLOB_PATH_MAX_BYTES];
    (void)snprintf(aside, sizeof aside, "%s/damaged", dir);
    WEIR_TRY(weir_dir_make(aside, 0700, err));
    (void)snprintf(path, sizeof path, "%s/%.2s/%s", dir, sha256, sha256);
    (void)snprintf(aside, sizeof aside, "%s/damaged/%s", dir, sha256);
    return rename(path, aside) == 0 || errno == ENOENT
               ? WEIR_OK
               : weir_error_set_errno(err, errno, "moving %s to %s", path, aside);
}
