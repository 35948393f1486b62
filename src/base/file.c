#include "base/file.h"

#include "base/sha256.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PATH_MAX_BYTES   4096
#define LOCK_PATIENCE_MS 2000
#define LOCK_TICK_MS     20

/* Open a regular file of at most max_bytes. */
static weir_status open_bounded(const char *path, size_t max_bytes, int *out_fd, size_t *out_size,
                                struct weir_error *err)
{
    struct stat st;
    weir_status status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    if (fstat(fd, &st) != 0) {
        status = weir_error_set_errno(err, errno, "cannot stat %s", path);
    } else if (!S_ISREG(st.st_mode)) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "%s is not a regular file", path);
    } else if ((uint64_t)st.st_size > max_bytes) {
        status =
            weir_error_set(err, WEIR_ERR_LIMIT, "%s holds %lld bytes; at most %zu are read here",
                           path, (long long)st.st_size, max_bytes);
    } else {
        *out_fd = fd;
        *out_size = (size_t)st.st_size;
        return WEIR_OK;
    }
    (void)close(fd);
    return status;
}

static weir_status read_all(int fd, const char *path, char *out, size_t size, size_t *out_len,
                            struct weir_error *err)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, out + len, size - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return weir_error_set_errno(err, errno, "cannot read %s", path);
        }
        if (n == 0) {
            break; /* it was shortened meanwhile */
        }
        len += (size_t)n;
    }
    *out_len = len;
    return WEIR_OK;
}

weir_status weir_file_read(const char *path, size_t max_bytes, struct weir_arena *arena,
                           char **out_data, size_t *out_len, struct weir_error *err)
{
    int fd;
    size_t size, len;
    WEIR_TRY(open_bounded(path, max_bytes, &fd, &size, err));
    char *data = weir_arena_alloc(arena, size + 1);
    weir_status status = read_all(fd, path, data, size, &len, err);
    (void)close(fd);
    if (status != WEIR_OK) {
        return status;
    }
    data[len] = '\0';
    *out_data = data;
    if (out_len != NULL) {
        *out_len = len;
    }
    return WEIR_OK;
}

weir_status weir_file_read_into(const char *path, void *out, size_t size, size_t *out_len,
                                struct weir_error *err)
{
    int fd;
    size_t n_bytes;
    WEIR_TRY(open_bounded(path, size, &fd, &n_bytes, err));
    weir_status status = read_all(fd, path, out, n_bytes, out_len, err);
    (void)close(fd);
    return status;
}

weir_status weir_fd_write_all(int fd, const void *data, size_t len, struct weir_error *err)
{
    const char *bytes = data;
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return weir_error_set_errno(err, errno, "cannot write");
        }
        bytes += n;
        len -= (size_t)n;
    }
    return WEIR_OK;
}

weir_status weir_dir_sync(const char *path, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    weir_status status = fd >= 0 && fsync(fd) == 0
                             ? WEIR_OK
                             : weir_error_set_errno(err, errno, "cannot sync folder %s", path);
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

/* A rename is durable only when the folder's own data is. */
static weir_status sync_folder_of(const char *path, struct weir_error *err)
{
    char folder[PATH_MAX_BYTES];
    const char *slash = strrchr(path, '/');
    int len = slash == NULL ? snprintf(folder, sizeof folder, ".")
                            : snprintf(folder, sizeof folder, "%.*s",
                                       (int)WEIR_MAX(slash - path, (ptrdiff_t)1), path);
    if (len < 0 || (size_t)len >= sizeof folder) {
        return weir_error_set(err, WEIR_ERR_INVALID, "path too long: %s", path);
    }
    return weir_dir_sync(folder, err);
}

static weir_status write_and_sync(int fd, const char *path, const void *data, size_t len,
                                  bool is_durable, struct weir_error *err)
{
    weir_status status = weir_fd_write_all(fd, data, len, err);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "%s: ", path);
        return status;
    }
    return !is_durable || fsync(fd) == 0 ? WEIR_OK
                                         : weir_error_set_errno(err, errno, "cannot sync %s", path);
}

static weir_status replace(const char *path, const void *data, size_t len, unsigned mode,
                           bool is_durable, struct weir_error *err)
{
    char temporary[PATH_MAX_BYTES], uuid[WEIR_UUID_BYTES];
    weir_uuid_make(uuid);
    int n = snprintf(temporary, sizeof temporary, "%s.%s.tmp", path, uuid);
    if (n < 0 || (size_t)n >= sizeof temporary) {
        return weir_error_set(err, WEIR_ERR_INVALID, "path too long: %s", path);
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot create %s", temporary);
    }
    weir_status status = write_and_sync(fd, temporary, data, len, is_durable, err);
    (void)close(fd);
    if (status == WEIR_OK && rename(temporary, path) != 0) {
        status = weir_error_set_errno(err, errno, "cannot rename %s to %s", temporary, path);
    }
    if (status != WEIR_OK) {
        (void)unlink(temporary);
        return status;
    }
    return is_durable ? sync_folder_of(path, err) : WEIR_OK;
}

weir_status weir_file_write_atomic(const char *path, const void *data, size_t len, unsigned mode,
                                   struct weir_error *err)
{
    return replace(path, data, len, mode, true, err);
}

weir_status weir_file_replace(const char *path, const void *data, size_t len, unsigned mode,
                              struct weir_error *err)
{
    return replace(path, data, len, mode, false, err);
}

weir_status weir_file_write(const char *path, const void *data, size_t len, unsigned mode,
                            struct weir_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, (mode_t)mode);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot create %s", path);
    }
    weir_status status = weir_fd_write_all(fd, data, len, err);
    (void)close(fd);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "%s: ", path);
        (void)unlink(path);
    }
    return status;
}

weir_status weir_dir_make(const char *path, unsigned mode, struct weir_error *err)
{
    char partial[PATH_MAX_BYTES];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof partial) {
        return weir_error_set(err, WEIR_ERR_INVALID, "path is empty or too long: %.64s", path);
    }
    memcpy(partial, path, len + 1);
    for (char *p = partial + 1;; p++) {
        if (*p != '/' && *p != '\0') {
            continue;
        }
        char kept = *p;
        *p = '\0';
        if (mkdir(partial, (mode_t)mode) != 0 && errno != EEXIST) {
            return weir_error_set_errno(err, errno, "cannot make folder %s", partial);
        }
        *p = kept;
        if (kept == '\0') {
            break;
        }
    }
    return weir_path_is_dir(path)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_EXISTS, "%s exists and is not a folder", path);
}

weir_status weir_dir_make_temporary(const char *name, char out[WEIR_DIR_TEMPORARY_BYTES],
                                    struct weir_error *err)
{
    char path[WEIR_DIR_TEMPORARY_BYTES];
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || *parent == '\0') {
        parent = "/tmp";
    }
    int len = snprintf(path, sizeof path, "%s/weir-%s-XXXXXX", parent, name);
    if (len < 0 || (size_t)len >= sizeof path) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the path of the folder for temporary files is too long: %.64s…",
                              parent);
    }
    if (mkdtemp(path) == NULL) {
        return weir_error_set_errno(err, errno, "cannot make a temporary folder in %s", parent);
    }
    memcpy(out, path, (size_t)len + 1);
    return WEIR_OK;
}

weir_status weir_dir_remove_at(int dir_fd, const char *name, struct weir_error *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        /* a file or a link: goes itself */
        return unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT
                   ? WEIR_OK
                   : weir_error_set_errno(err, errno, "cannot remove %s", name);
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        (void)close(fd);
        return weir_error_set_errno(err, errno, "cannot list %s", name);
    }
    weir_status status = WEIR_OK;
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = weir_dir_remove_at(dirfd(dir), entry->d_name, err);
        }
    }
    (void)closedir(dir);
    if (status == WEIR_OK && unlinkat(dir_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        status = weir_error_set_errno(err, errno, "cannot remove folder %s", name);
    }
    return status;
}

weir_status weir_dir_remove(const char *path, struct weir_error *err)
{
    return weir_dir_remove_at(AT_FDCWD, path, err);
}

bool weir_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool weir_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

const char *weir_disk_id(const char *path, char out[WEIR_DISK_ID_BYTES])
{
    struct stat st;
    char boot[37] = "";
    size_t len = 0;
    struct weir_error ignored;
    bool is_known =
        stat(path, &st) == 0 && weir_file_read_into("/proc/sys/kernel/random/boot_id", boot,
                                                    sizeof boot, &len, &ignored) == WEIR_OK;
    out[0] = '\0';
    if (is_known) {
        (void)snprintf(out, WEIR_DISK_ID_BYTES, "%.36s:%llu", boot, (unsigned long long)st.st_dev);
    }
    return out;
}

int weir_dir_probe(const char *folder)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/probe.tmp", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    int reason = write(fd, "weir\n", 5) == 5 ? 0 : errno;
    (void)close(fd);
    (void)unlink(path);
    return reason;
}

weir_status weir_disk_space(const char *path, int64_t *out_total_bytes, int64_t *out_free_bytes,
                            struct weir_error *err)
{
    struct statvfs space;
    if (statvfs(path, &space) != 0) {
        return weir_error_set_errno(err, errno, "cannot look at the disk of %s", path);
    }
    *out_total_bytes = (int64_t)(space.f_blocks * space.f_frsize);
    *out_free_bytes = (int64_t)(space.f_bavail * space.f_frsize);
    return WEIR_OK;
}

weir_status weir_file_lock(const char *path, int *out_fd, struct weir_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot open lock file %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int reason = errno;
        (void)close(fd);
        return reason == EWOULDBLOCK
                   ? weir_error_set(err, WEIR_ERR_CONFLICT, "%s is locked by another process", path)
                   : weir_error_set_errno(err, reason, "cannot lock %s", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

weir_status weir_file_lock_after(const char *path, int *out_fd, struct weir_error *err)
{
    weir_status status = weir_file_lock(path, out_fd, err);
    for (int i = 0; i < LOCK_PATIENCE_MS / LOCK_TICK_MS && status == WEIR_ERR_CONFLICT; i++) {
        (void)poll(NULL, 0, LOCK_TICK_MS);
        status = weir_file_lock(path, out_fd, err);
    }
    return status;
}

void weir_sha256(const void *data, size_t len, char out[WEIR_SHA256_TEXT_BYTES])
{
    struct weir_sha256_stream hash;
    weir_sha256_begin(&hash);
    weir_sha256_add(&hash, data, len);
    weir_sha256_end(&hash, out);
}

weir_status weir_file_sha256(const char *path, char out[WEIR_SHA256_TEXT_BYTES],
                             uint64_t *out_bytes, struct weir_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    struct weir_sha256_stream hash;
    weir_sha256_begin(&hash);
    unsigned char chunk[16384];
    uint64_t total = 0;
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0) {
        weir_sha256_add(&hash, chunk, n);
        total += n;
    }
    bool has_failed = ferror(file) != 0;
    int reason = errno;
    (void)fclose(file);
    if (has_failed) {
        return weir_error_set_errno(err, reason, "cannot read %s", path);
    }
    weir_sha256_end(&hash, out);
    if (out_bytes != NULL) {
        *out_bytes = total;
    }
    return WEIR_OK;
}
