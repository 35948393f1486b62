#include "server/backup_private.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK        "weir-partial" /* holds the lock; what lies beside it may be removed */
#define COPY_BYTES  ((size_t)256 << 10)
#define OWNER_READS 0400

weir_status backup_path(char out[BACKUP_PATH_BYTES], const char *a, const char *b,
                        struct weir_error *err)
{
    int len = snprintf(out, BACKUP_PATH_BYTES, "%s/%s", a, b);
    return len < BACKUP_PATH_BYTES ? WEIR_OK
                                   : weir_error_set(err, WEIR_ERR_LIMIT, "path too long: %s", b);
}

/* Remove what is in a folder but the mark, or only look whether there is anything. */
static weir_status empty(const char *path, bool is_removing, bool *out_was_empty,
                         struct weir_error *err)
{
    weir_status status = WEIR_OK;
    char inside[BACKUP_PATH_BYTES];
    *out_was_empty = true;
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return weir_error_set_errno(err, errno, "cannot read the folder %s", path);
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (is_removing && strcmp(entry->d_name, MARK) == 0)) {
            continue;
        }
        *out_was_empty = false;
        status = backup_path(inside, path, entry->d_name, err);
        if (status == WEIR_OK && is_removing) {
            status = weir_dir_remove(inside, err);
        }
    }
    (void)closedir(dir);
    return status;
}

static bool is_empty(const char *path)
{
    bool was_empty;
    struct weir_error ignored;
    return empty(path, false, &was_empty, &ignored) == WEIR_OK && was_empty;
}

/* Absolute, though it does not exist yet; its parent must. */
static weir_status resolve(const char *target, char out[BACKUP_PATH_BYTES], struct weir_error *err)
{
    char copy[BACKUP_PATH_BYTES];
    size_t len = strlen(target);
    while (len > 1 && target[len - 1] == '/') {
        len--;
    }
    if (len == 0 || len >= sizeof copy) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a folder's path is empty or too long");
    }
    memcpy(copy, target, len);
    copy[len] = '\0';
    char *slash = strrchr(copy, '/');
    const char *name = slash != NULL ? slash + 1 : copy;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: name the folder itself", target);
    }
    const char *parent = slash == NULL ? "." : slash == copy ? "/" : copy;
    if (slash != NULL && slash != copy) {
        *slash = '\0';
    }
    WEIR_AUTO(weir_auto_free) char *absolute = realpath(slash == copy ? "/" : parent, NULL);
    if (absolute == NULL) {
        return weir_error_set_errno(err, errno, "cannot use the folder %s", parent);
    }
    return backup_path(out, strcmp(absolute, "/") == 0 ? "" : absolute, name, err);
}

weir_status partial_begin(const char *target, bool may_be_empty, struct partial *out,
                          struct weir_error *err)
{
    struct partial partial = {.lock_fd = -1};
    char mark[BACKUP_PATH_BYTES];
    WEIR_TRY(resolve(target, partial.target, err));
    if (weir_path_exists(partial.target) && !(may_be_empty && is_empty(partial.target))) {
        return weir_error_set(err, WEIR_ERR_EXISTS, "%s exists already%s", partial.target,
                              may_be_empty ? " and is not empty" : "");
    }
    int len = snprintf(partial.dir, sizeof partial.dir, "%s.partial", partial.target);
    if (len >= (int)sizeof partial.dir) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "path too long: %s", partial.target);
    }
    WEIR_TRY(backup_path(mark, partial.dir, MARK, err));
    if (weir_path_exists(partial.dir) && !weir_path_exists(mark) && !is_empty(partial.dir)) {
        return weir_error_set(err, WEIR_ERR_EXISTS, "%s is in the way: move it", partial.dir);
    }
    WEIR_TRY(weir_dir_make(partial.dir, 0700, err));
    weir_status status = weir_file_lock(mark, &partial.lock_fd, err);
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, status, "another backup or restore is at work in %s",
                              partial.dir);
    }
    WEIR_TRY(status);
    bool was_empty;
    status = empty(partial.dir, true, &was_empty, err); /* of one that was killed */
    if (status != WEIR_OK) {
        (void)close(partial.lock_fd);
        return status;
    }
    *out = partial;
    return WEIR_OK;
}

static weir_status sync_path(const char *path, int (*sync)(int fd), struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || sync(fd) != 0) {
        weir_status status = weir_error_set_errno(err, errno, "cannot sync %s", path);
        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    (void)close(fd);
    return WEIR_OK;
}

weir_status partial_finish(struct partial *partial, struct weir_error *err)
{
    char mark[BACKUP_PATH_BYTES], parent[BACKUP_PATH_BYTES];
    WEIR_TRY(sync_path(partial->dir, syncfs, err));
    if (rename(partial->dir, partial->target) != 0) {
        return weir_error_set_errno(err, errno, "cannot rename %s to %s", partial->dir,
                                    partial->target);
    }
    WEIR_TRY(backup_path(mark, partial->target, MARK, err));
    (void)unlink(mark);
    (void)close(partial->lock_fd);
    partial->lock_fd = -1;
    (void)snprintf(parent, sizeof parent, "%s", partial->target);
    *(strrchr(parent, '/') + (strrchr(parent, '/') == parent)) = '\0';
    return sync_path(parent, fsync, err);
}

void partial_abandon(struct partial *partial)
{
    struct weir_error ignored;
    if (partial->lock_fd >= 0) {
        if (weir_dir_remove(partial->dir, &ignored) != WEIR_OK) {
            weir_log(WEIR_LOG_WARN, "partial_not_removed", WEIR_KV_STR("dir", partial->dir),
                     WEIR_KV_STR("error", ignored.message));
        }
        (void)close(partial->lock_fd);
        partial->lock_fd = -1;
    }
}

weir_status backup_copy_file(int from, const char *to, mode_t mode, int64_t *out_bytes,
                             struct weir_error *err)
{
    struct stat st;
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot create %s", to);
    }
    char *bytes = weir_xalloc(COPY_BYTES);
    int64_t n_left = fstat(from, &st) == 0 ? (int64_t)st.st_size : 0, n_done = 0;
    weir_status status = WEIR_OK;
    while (status == WEIR_OK && n_left > 0) { /* what is appended meanwhile stays out */
        ssize_t n = read(from, bytes, (size_t)WEIR_MIN(n_left, (int64_t)COPY_BYTES));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            status = weir_error_set_errno(err, errno, "cannot read the original of %s", to);
        }
        if (n <= 0) {
            break;
        }
        status = weir_fd_write_all(fd, bytes, (size_t)n, err);
        if (status != WEIR_OK) {
            (void)weir_error_prefix(err, "%s: ", to);
        }
        n_left -= n;
        n_done += n;
    }
    free(bytes);
    if (status == WEIR_OK && (mode & S_IWUSR) == 0 && fchmod(fd, OWNER_READS) != 0) {
        status = weir_error_set_errno(err, errno, "cannot set the mode of %s", to);
    }
    (void)close(fd);
    if (status == WEIR_OK) {
        *out_bytes = n_done;
    }
    return status;
}
