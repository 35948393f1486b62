#include "base/file.h"
#include "base/macros.h"
#include "visit/copy_private.h"
#include "visit/frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct sender {
    int out_fd;
    bool is_stream; /* standard input: what comes is passed on at once */
    struct weir_copy_watch *watch;
    size_t n;            /* in out */
    char path[PATH_MAX]; /* below what was named, for complaints */
    char chunk[COPY_CHUNK_MAX], out[2 * COPY_CHUNK_MAX];
};

bool copy_is_within(const char *target, size_t depth)
{
    size_t n_up = 0;
    bool is_down = false;
    if (target[0] == '/' || target[0] == '\0') {
        return false;
    }
    while (*target != '\0') {
        size_t len = strcspn(target, "/");
        bool is_up = len == 2 && target[0] == '.' && target[1] == '.';
        n_up += is_up;
        if (is_up && (is_down || n_up > depth)) {
            return false;
        }
        is_down = is_down || (!is_up && len > 0 && !(len == 1 && target[0] == '.'));
        target += len + (target[len] == '/');
    }
    return true;
}

static weir_status flush(struct sender *s, struct weir_error *err)
{
    weir_status status = weir_fd_write_all(s->out_fd, s->out, s->n, err);
    s->n = 0;
    if (status == WEIR_OK && s->watch->pass != NULL) {
        s->watch->pass(s->watch->context);
    }
    return status;
}

static weir_status put(struct sender *s, const void *bytes, size_t len, struct weir_error *err)
{
    if (s->n + len > sizeof s->out) {
        WEIR_TRY(flush(s, err));
    }
    memcpy(s->out + s->n, bytes, len); /* never more than a chunk */
    s->n += len;
    return WEIR_OK;
}

static weir_status put_u32(struct sender *s, uint32_t value, struct weir_error *err)
{
    char bytes[4];
    weir_frame_set_u32(bytes, value);
    return put(s, bytes, sizeof bytes, err);
}

static weir_status put_head(struct sender *s, char kind, mode_t mode, const char *name,
                            const char *target, struct weir_error *err)
{
    char head[COPY_HEAD_BYTES] = {kind};
    weir_frame_set_u16(head + 2, (uint16_t)(mode & 0777));
    weir_frame_set_u16(head + 4, (uint16_t)strlen(name));
    weir_frame_set_u16(head + 6, (uint16_t)strlen(target));
    WEIR_TRY(put(s, head, sizeof head, err));
    WEIR_TRY(put(s, name, strlen(name), err));
    return put(s, target, strlen(target), err);
}

static void complain(struct sender *s, const char *why)
{
    s->watch->n_left_out++;
    s->watch->complain(s->watch->context, s->path, why);
}

/* An open file, to its end as it is then. */
static weir_status send_file(struct sender *s, int fd, mode_t mode, const char *name,
                             struct weir_error *err)
{
    WEIR_TRY(put_head(s, COPY_FILE, mode, name, "", err));
    for (;;) {
        ssize_t n = read(fd, s->chunk, sizeof s->chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            complain(s, strerror(errno));
            return put_u32(s, COPY_BROKEN, err);
        }
        WEIR_TRY(put_u32(s, (uint32_t)n, err));
        if (n == 0) {
            s->watch->n_files++;
            return WEIR_OK;
        }
        WEIR_TRY(put(s, s->chunk, (size_t)n, err));
        s->watch->n_bytes += n;
        if (s->is_stream) {
            WEIR_TRY(flush(s, err));
        }
    }
}

static weir_status send_folder(struct sender *s, int fd, mode_t mode, const char *name,
                               size_t depth, struct weir_error *err);

static weir_status send_link(struct sender *s, int dir, const char *name, size_t depth,
                             struct weir_error *err)
{
    char target[COPY_LINK_MAX + 1];
    ssize_t len = readlinkat(dir, name, target, sizeof target);
    if (len < 0 || (size_t)len == sizeof target) {
        complain(s, len < 0 ? strerror(errno) : "its target is too long");
        return WEIR_OK;
    }
    target[len] = '\0';
    if (!copy_is_within(target, depth - 1)) {
        complain(s, "a link that leads out of what is copied: left out");
        return WEIR_OK;
    }
    return put_head(s, COPY_LINK, 0777, name, target, err);
}

/* What /proc says depends on who reads it: of us, it tells how our memory lies. */
static bool is_of_process(int fd)
{
    struct statfs place;
    return fstatfs(fd, &place) == 0 && place.f_type == PROC_SUPER_MAGIC;
}

static weir_status send_entry(struct sender *s, int dir, const char *name, size_t depth,
                              struct weir_error *err)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        complain(s, strerror(errno));
        return WEIR_OK;
    }
    if (S_ISLNK(info.st_mode)) {
        return send_link(s, dir, name, depth, err);
    }
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        complain(s, "neither file nor folder: left out");
        return WEIR_OK;
    }
    if (S_ISDIR(info.st_mode) && depth >= WEIR_COPY_DEPTH) {
        complain(s, "too many folders one in the other: left out");
        return WEIR_OK;
    }
    int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        complain(s, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return WEIR_OK;
    }
    if (is_of_process(fd)) {
        complain(s, "tells of a process, and is no file: left out");
        close(fd);
        return WEIR_OK;
    }
    if (S_ISDIR(info.st_mode)) {
        return send_folder(s, fd, info.st_mode, name, depth, err);
    }
    weir_status status = send_file(s, fd, info.st_mode, name, err);
    close(fd);
    return status;
}

/* With all in it. Closes the folder. */
static weir_status send_folder(struct sender *s, int fd, mode_t mode, const char *name,
                               size_t depth, struct weir_error *err)
{
    size_t len = strlen(s->path);
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        complain(s, strerror(errno));
        close(fd);
        return WEIR_OK;
    }
    weir_status status = put_head(s, COPY_FOLDER, mode, name, "", err);
    for (struct dirent *entry = readdir(dir); status == WEIR_OK && entry != NULL;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)snprintf(s->path + len, sizeof s->path - len, "%s%s", len > 0 ? "/" : "",
                           entry->d_name);
            status = send_entry(s, dirfd(dir), entry->d_name, depth + 1, err);
        }
    }
    s->path[len] = '\0';
    closedir(dir);
    return status == WEIR_OK ? put_head(s, COPY_UP, 0, "", "", err) : status;
}

/* The last name of a path; "" of "", ".", ".." and "/". */
static void name_of(const char *path, char out[COPY_NAME_MAX + 1])
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    (void)snprintf(out, COPY_NAME_MAX + 1, "%.*s", (int)(end - begin), path + begin);
    if (strcmp(out, ".") == 0 || strcmp(out, "..") == 0) {
        out[0] = '\0';
    }
}

static weir_status send_root(struct sender *s, int fd, const char *path, struct weir_error *err)
{
    struct stat info;
    char name[COPY_NAME_MAX + 1] = "stdin";
    bool is_standard = strcmp(path, "-") == 0;
    if (!is_standard) {
        name_of(path, name);
    }
    if (fstat(fd, &info) != 0) {
        return weir_error_set_errno(err, errno, "cannot read %s", path);
    }
    s->watch->is_folder = S_ISDIR(info.st_mode);
    if (!is_standard && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s is neither a file nor a folder", path);
    }
    if (!is_standard && is_of_process(fd)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s tells of a process, and is no file: weir job exec JOB -- cat it",
                              path);
    }
    WEIR_TRY(put(s, COPY_MARK, COPY_MARK_BYTES, err));
    if (S_ISDIR(info.st_mode)) {
        int own = dup(fd); /* send_folder closes it */
        if (own < 0) {
            return weir_error_set_errno(err, errno, "cannot read %s", path);
        }
        WEIR_TRY(send_folder(s, own, info.st_mode, name, 0, err));
    } else {
        mode_t mode = S_ISREG(info.st_mode) ? info.st_mode : 0644;
        WEIR_TRY(send_file(s, fd, mode, name, err));
    }
    WEIR_TRY(put_head(s, COPY_END, 0, "", "", err));
    return flush(s, err);
}

weir_status weir_copy_send(const char *path, int out_fd, struct weir_copy_watch *watch,
                           struct weir_error *err)
{
    bool is_standard = strcmp(path, "-") == 0;
    int fd = is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot read %s", path);
    }
    struct sender *s = calloc(1, sizeof *s);
    weir_status status = WEIR_ERR_NOMEM;
    if (s != NULL) {
        s->out_fd = out_fd;
        s->watch = watch;
        s->is_stream = is_standard;
        status = send_root(s, fd, path, err);
    } else {
        (void)weir_error_set(err, status, "no memory");
    }
    free(s);
    if (!is_standard) {
        close(fd);
    }
    return status;
}
