#include "agent/image/image_layer.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#define WHITEOUT        ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"

struct layer {
    gzFile in;
    struct weir_tar *tar;
    int root_fd;
    struct image_bounds *bounds;
    struct weir_error *err;
    char path[PATH_MAX], link[PATH_MAX]; /* the entry's */
};

static weir_status corrupt(struct layer *l, const char *what)
{
    return weir_error_set(l->err, WEIR_ERR_CORRUPT, "the archive is damaged: %s", what);
}

static weir_status fail(struct layer *l, const char *what)
{
    return weir_error_set_errno(l->err, errno, "cannot unpack %.200s: %s", l->path, what);
}

int image_open_below(int root_fd, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root_fd, path[0] != '\0' ? path : ".", &how, sizeof how);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A weir_tar_source. */
static weir_status read_archive(void *context, void *out, size_t len, size_t *out_n,
                                struct weir_error *err)
{
    struct layer *l = context;
    char passed[65536];
    int n = 1;
    for (*out_n = 0; *out_n < len && n > 0; *out_n += (size_t)WEIR_MAX(n, 0)) {
        size_t part = WEIR_MIN(len - *out_n, sizeof passed);
        n = gzread(l->in, out != NULL ? (char *)out + *out_n : passed, (unsigned)part);
    }
    return n >= 0 ? WEIR_OK
                  : weir_error_set(err, WEIR_ERR_CORRUPT,
                                   "the archive is damaged: what gzip compressed cannot be read");
}

/* "./a//b/" is "a/b". A part ".." is nobody's name. */
static weir_status clean(struct layer *l, char *path)
{
    char *to = path;
    for (const char *part = path; *part != '\0';) {
        size_t len = strcspn(part, "/");
        if (len == 2 && strncmp(part, "..", 2) == 0) {
            return corrupt(l, "a name leads out of it");
        }
        if (len > 0 && !(len == 1 && part[0] == '.')) {
            to += to != path;
            memmove(to, part, len);
            to += len;
        }
        part += len;
        if (*part == '/') {
            part++;
            if (to != path) {
                *to = '/'; /* behind what was read */
            }
        }
    }
    *to = '\0';
    return WEIR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The folder that `path` lies in, made if it is missing; *out_name is the rest. */
static weir_status open_parent(struct layer *l, const char *path, int *out_fd,
                               const char **out_name)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *out_name = slash != NULL ? slash + 1 : path;
    (void)snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
    *out_fd = image_open_below(l->root_fd, folder, O_PATH | O_DIRECTORY);
    for (char *end = folder; *out_fd < 0 && errno == ENOENT && *end != '\0';) {
        const char *name;
        int above;
        end += strcspn(end, "/");
        char separator = *end;
        *end = '\0'; /* each folder of the path in turn, the ones above are there by then */
        const char *last = strrchr(folder, '/');
        name = last != NULL ? last + 1 : folder;
        char upper[PATH_MAX];
        (void)snprintf(upper, sizeof upper, "%.*s", last != NULL ? (int)(last - folder) : 0,
                       folder);
        above = image_open_below(l->root_fd, upper, O_PATH | O_DIRECTORY);
        if (above < 0 || (mkdirat(above, name, 0755) != 0 && errno != EEXIST)) {
            if (above >= 0) {
                close(above);
            }
            return fail(l, "its folder");
        }
        close(above);
        *end = separator;
        end += separator == '/';
        *out_fd = image_open_below(l->root_fd, folder, O_PATH | O_DIRECTORY);
    }
    return *out_fd >= 0 ? WEIR_OK : fail(l, "its folder");
}

static weir_status count_bytes(struct layer *l, uint64_t n)
{
    struct image_bounds *b = l->bounds;
    if (n > (uint64_t)(b->max_bytes - b->bytes)) {
        return weir_error_set(l->err, WEIR_ERR_LIMIT,
                              "the image holds more than %lld bytes, which is what this node has "
                              "room for",
                              (long long)b->max_bytes);
    }
    b->bytes += (int64_t)n;
    return WEIR_OK;
}

static weir_status copy_bytes(struct layer *l, uint64_t left, int fd)
{
    char bytes[65536];
    while (left > 0) {
        size_t n = (size_t)WEIR_MIN(left, (uint64_t)sizeof bytes);
        WEIR_TRY(weir_tar_read(l->tar, bytes, n, l->err));
        WEIR_TRY(weir_fd_write_all(fd, bytes, n, l->err));
        left -= n;
    }
    return WEIR_OK;
}

static weir_status put_file(struct layer *l, const struct weir_tar_entry *entry, int dir_fd,
                            const char *name)
{
    mode_t mode = (entry->mode & 0111) != 0 ? 0755 : 0644;
    WEIR_AUTO(weir_fd_auto_close)
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
        return fail(l, "a file");
    }
    WEIR_TRY(copy_bytes(l, entry->bytes, fd));
    return fchmod(fd, mode) == 0 ? WEIR_OK : fail(l, "its permissions");
}

static weir_status put_folder(struct layer *l, int dir_fd, const char *name)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)) {
        return WEIR_OK; /* an earlier layer made it: what is in it stays */
    }
    WEIR_TRY(weir_dir_remove_at(dir_fd, name, l->err));
    return mkdirat(dir_fd, name, 0755) == 0 ? WEIR_OK : fail(l, "a folder");
}

static weir_status put_hard_link(struct layer *l, int dir_fd, const char *name)
{
    const char *old_name;
    int old_fd = -1;
    WEIR_TRY(clean(l, l->link));
    WEIR_TRY(open_parent(l, l->link, &old_fd, &old_name));
    int rc = linkat(old_fd, old_name, dir_fd, name, 0);
    weir_status status = rc == 0 ? WEIR_OK : fail(l, "a hard link");
    close(old_fd);
    return status;
}

/* ".wh.NAME" takes NAME away; ".wh..wh..opq" all that lies in its folder. */
static weir_status take_away(struct layer *l, int dir_fd, const char *name)
{
    if (strcmp(name, WHITEOUT_OPAQUE) != 0) {
        const char *gone = name + sizeof WHITEOUT - 1;
        return gone[0] != '\0' && strcmp(gone, ".") != 0 && strcmp(gone, "..") != 0
                   ? weir_dir_remove_at(dir_fd, gone, l->err)
                   : corrupt(l, "a whiteout without a name");
    }
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    weir_status status = dir != NULL ? WEIR_OK : fail(l, "its folder");
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
         entry != NULL && status == WEIR_OK; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = weir_dir_remove_at(dirfd(dir), entry->d_name, l->err);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
    return status;
}

static weir_status put_entry(struct layer *l, const struct weir_tar_entry *entry, int dir_fd,
                             const char *name)
{
    if (strncmp(name, WHITEOUT, sizeof WHITEOUT - 1) == 0) {
        return take_away(l, dir_fd, name);
    }
    if (entry->type == '5') {
        return put_folder(l, dir_fd, name);
    }
    WEIR_TRY(weir_dir_remove_at(dir_fd, name, l->err)); /* an earlier layer made it */
    switch (entry->type) {
    case '0':
    case '\0':
    case '7':
        return put_file(l, entry, dir_fd, name);
    case '2':
        return symlinkat(l->link, dir_fd, name) == 0 ? WEIR_OK : fail(l, "a link");
    case '1':
        return put_hard_link(l, dir_fd, name);
    default:
        return WEIR_OK;
    }
}

static weir_status take_entry(struct layer *l, const struct weir_tar_entry *entry)
{
    const char *name;
    int dir_fd = -1;
    if (++l->bounds->entries > l->bounds->max_entries) {
        return weir_error_set(l->err, WEIR_ERR_LIMIT, "the image holds more than %lld files",
                              (long long)l->bounds->max_entries);
    }
    WEIR_TRY(count_bytes(l, entry->bytes));
    memcpy(l->path, entry->path, sizeof l->path);
    memcpy(l->link, entry->link, sizeof l->link);
    WEIR_TRY(clean(l, l->path));
    if (l->path[0] == '\0') {
        return WEIR_OK; /* the root itself */
    }
    WEIR_TRY(open_parent(l, l->path, &dir_fd, &name));
    weir_status status = put_entry(l, entry, dir_fd, name);
    close(dir_fd);
    return status;
}

static weir_status unpack(struct layer *l)
{
    const struct weir_tar_entry *entry;
    for (;;) {
        WEIR_TRY(weir_tar_next(l->tar, &entry, l->err));
        if (entry == NULL) {
            return l->bounds->entries > 0 || weir_tar_is_ended(l->tar) ? WEIR_OK
                                                                       : corrupt(l, "it is empty");
        }
        WEIR_TRY(take_entry(l, entry));
    }
}

weir_status image_layer_unpack(int archive_fd, int root_fd, struct image_bounds *bounds,
                               struct weir_error *err)
{
    struct layer *l = weir_xalloc(sizeof *l);
    memset(l, 0, sizeof *l);
    l->root_fd = root_fd;
    l->bounds = bounds;
    l->err = err;
    l->tar = weir_tar_open(read_archive, l);
    int fd = fcntl(archive_fd, F_DUPFD_CLOEXEC, 0);
    l->in = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    weir_status status =
        l->in != NULL ? unpack(l) : weir_error_set(err, WEIR_ERR_IO, "the archive cannot be read");
    if (l->in != NULL) {
        (void)gzclose(l->in);
    } else if (fd >= 0) {
        close(fd);
    }
    weir_tar_close(l->tar);
    free(l);
    return status;
}
