#include "base/rotated_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Length of the file up to its last line end; what is behind is torn. -1: unreadable. */
static int64_t whole_length(int fd, int64_t size)
{
    char bytes[4096];
    while (size > 0) {
        int64_t from = WEIR_MAX(0, size - (int64_t)sizeof bytes);
        ssize_t n = pread(fd, bytes, (size_t)(size - from), from);
        if (n != size - from) {
            return -1;
        }
        for (ssize_t i = n; i > 0; i--) {
            if (bytes[i - 1] == '\n') {
                return from + i;
            }
        }
        size = from;
    }
    return 0;
}

/* Lock, and see what is there. *out_is_current: nobody has renamed it before we had the lock. */
static weir_status take(const struct rotated_file *file, int fd, int64_t *out_size,
                        bool *out_is_current, struct weir_error *err)
{
    struct stat info, named;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &info) != 0) {
        return weir_error_set_errno(err, errno, "%s", file->path);
    }
    *out_is_current =
        !S_ISREG(info.st_mode) || (stat(file->path, &named) == 0 && named.st_ino == info.st_ino &&
                                   named.st_dev == info.st_dev);
    *out_size = -1;
    if (S_ISREG(info.st_mode)) {
        int64_t whole = whole_length(fd, info.st_size);
        if (whole < 0 || (whole < info.st_size && ftruncate(fd, whole) != 0)) {
            return weir_error_set_errno(err, errno, "%s", file->path);
        }
        *out_size = whole;
    }
    return WEIR_OK;
}

weir_status rotated_file_open(const struct rotated_file *file, int *out_fd, int64_t *out_size,
                              struct weir_error *err)
{
    for (;;) {
        bool is_current = false;
        int64_t size;
        int fd = open(file->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0) {
            return weir_error_set_errno(err, errno, "%s", file->path);
        }
        weir_status status = take(file, fd, &size, &is_current, err);
        if (status == WEIR_OK && is_current) {
            *out_fd = fd;
            *out_size = size;
            return WEIR_OK;
        }
        (void)close(fd);
        WEIR_TRY(status);
    }
}

bool rotated_file_is_full(const struct rotated_file *file, int64_t size, int64_t n_bytes)
{
    return size > 0 && size + n_bytes > file->max_bytes;
}

const char *rotated_file_older(const struct rotated_file *file, int64_t i,
                               char out[ROTATED_PATH_BYTES])
{
    (void)snprintf(out, ROTATED_PATH_BYTES, "%s.%" PRId64, file->path, i);
    return out;
}

weir_status rotated_file_shift(const struct rotated_file *file, struct weir_error *err)
{
    char from[ROTATED_PATH_BYTES], to[ROTATED_PATH_BYTES];
    if (file->n_kept == 0) {
        return unlink(file->path) == 0 ? WEIR_OK
                                       : weir_error_set_errno(err, errno, "%s", file->path);
    }
    for (int64_t i = file->n_kept - 1; i > 0; i--) {
        rotated_file_older(file, i, from);
        rotated_file_older(file, i + 1, to);
        if (rename(from, to) != 0 && errno != ENOENT) {
            return weir_error_set_errno(err, errno, "%s", from);
        }
    }
    rotated_file_older(file, 1, to);
    return rename(file->path, to) == 0 ? WEIR_OK
                                       : weir_error_set_errno(err, errno, "%s", file->path);
}
