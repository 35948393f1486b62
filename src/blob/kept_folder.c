#include "blob/kept_folder.h"

#include "base/fd.h"
#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PART ".part"

/* Below `dir_fd`, through no link. */
static int open_beneath(int dir_fd, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

static void close_fd(int fd)
{
    int errno_value = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = errno_value;
}

/* ---- looking ---------------------------------------------------------------------------------- */

struct listing {
    struct weir_arena *arena;
    struct weir_kept_file *files;
    size_t n, n_room;
    struct weir_error *err;
};

static weir_status add_file(struct listing *listing, const char *path, const struct stat *info)
{
    if (listing->n == WEIR_KEPT_FILES_MAX) {
        return weir_error_set(listing->err, WEIR_ERR_LIMIT, "more than %d files, one of them %s",
                              WEIR_KEPT_FILES_MAX, path);
    }
    if (listing->n == listing->n_room) {
        listing->n_room = listing->n_room > 0 ? 2 * listing->n_room : 64;
        struct weir_kept_file *grown =
            WEIR_ARENA_ARRAY(listing->arena, listing->n_room, struct weir_kept_file);
        if (listing->n > 0) {
            memcpy(grown, listing->files, listing->n * sizeof *grown);
        }
        listing->files = grown;
    }
    listing->files[listing->n++] = (struct weir_kept_file){
        path, info->st_size, (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
        (int64_t)info->st_ino};
    return WEIR_OK;
}

static weir_status list_folder(struct listing *listing, int fd, const char *inside, int depth);

static weir_status list_entry(struct listing *listing, int folder_fd, const char *name,
                              const char *inside, int depth)
{
    struct stat info;
    const char *path =
        weir_arena_printf(listing->arena, "%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
    if (fstatat(folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return WEIR_OK; /* gone meanwhile */
    }
    if (S_ISREG(info.st_mode)) {
        return add_file(listing, path, &info);
    }
    int fd = S_ISDIR(info.st_mode) && depth < WEIR_KEPT_DEPTH_MAX
                 ? open_beneath(folder_fd, name, O_RDONLY | O_DIRECTORY)
                 : -1;
    return fd >= 0 ? list_folder(listing, fd, path, depth + 1) : WEIR_OK;
}

/* Takes the descriptor. */
static weir_status list_folder(struct listing *listing, int fd, const char *inside, int depth)
{
    DIR *dir = fdopendir(fd);
    weir_status status = WEIR_OK;
    if (dir == NULL) {
        close_fd(fd);
        return weir_error_set_errno(listing->err, errno, "cannot list %s", inside);
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = list_entry(listing, dirfd(dir), entry->d_name, inside, depth);
        }
    }
    (void)closedir(dir);
    return status;
}

static int by_path(const void *a, const void *b)
{
    const struct weir_kept_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static void set_version(struct weir_kept *kept)
{
    struct weir_sha256_stream hash;
    weir_sha256_begin(&hash);
    for (size_t i = 0; i < kept->n; i++) {
        const struct weir_kept_file *file = &kept->files[i];
        weir_sha256_add(&hash, file->path, strlen(file->path) + 1);
        weir_sha256_add(&hash, &file->bytes, sizeof file->bytes);
        weir_sha256_add(&hash, &file->changed_ns, sizeof file->changed_ns);
        weir_sha256_add(&hash, &file->number, sizeof file->number);
    }
    weir_sha256_end(&hash, kept->version);
}

weir_status weir_kept_list(const char *dir, struct weir_arena *arena, struct weir_kept *out,
                           struct weir_error *err)
{
    struct listing listing = {.arena = arena, .err = err};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) {
        return weir_error_set_errno(err, errno, "cannot list %s", dir);
    }
    if (fd >= 0) {
        WEIR_TRY(list_folder(&listing, fd, "", 0));
    }
    if (listing.n > 1) {
        qsort(listing.files, listing.n, sizeof *listing.files, by_path);
    }
    *out = (struct weir_kept){.files = listing.files, .n = listing.n};
    set_version(out);
    return WEIR_OK;
}

weir_status weir_kept_open(const char *dir, const char *path, int *out_fd, struct weir_error *err)
{
    struct stat info;
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = dir_fd >= 0 ? open_beneath(dir_fd, path, O_RDONLY) : -1;
    close_fd(dir_fd);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close_fd(fd);
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no file %s", path);
    }
    *out_fd = fd;
    return WEIR_OK;
}

/* ---- changing --------------------------------------------------------------------------------- */

static bool is_part_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= WEIR_KEPT_PART_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static weir_status check_part_name(const char *name, struct weir_error *err)
{
    return is_part_name(name) ? WEIR_OK
                              : weir_error_set(err, WEIR_ERR_INVALID,
                                               "a part has a name of at most %d of a-z 0-9 and -",
                                               WEIR_KEPT_PART_MAX);
}

static char *parts_of(const char *dir, char out[4096])
{
    (void)snprintf(out, 4096, "%s" PART, dir);
    return out;
}

weir_status weir_kept_part(const char *dir, const char *name, const char *file,
                           struct weir_error *err)
{
    char parts[4096], path[4096 + WEIR_KEPT_PART_MAX + 2];
    WEIR_TRY(check_part_name(name, err));
    WEIR_TRY(weir_dir_make(parts_of(dir, parts), 0700, err));
    (void)snprintf(path, sizeof path, "%s/%s", parts, name);
    if (file == NULL) {
        return weir_file_write(path, "", 0, 0600, err);
    }
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    bool is_moved = fd >= 0 && fsync(fd) == 0 && rename(file, path) == 0;
    int errno_value = errno;
    close_fd(fd);
    return is_moved ? WEIR_OK : weir_error_set_errno(err, errno_value, "cannot store %s", path);
}

/* The folder that `path` is to lie in, made if it must be; -1 and errno. */
static int open_parent(int dir_fd, const char *path, const char **out_name)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *slash;
    while (fd >= 0 && (slash = strchr(path, '/')) != NULL) {
        char name[256];
        int len = snprintf(name, sizeof name, "%.*s", (int)(slash - path), path);
        if (len <= 0 || len >= (int)sizeof name) {
            close_fd(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        (void)mkdirat(fd, name, 0700);
        int next = open_beneath(fd, name, O_RDONLY | O_DIRECTORY);
        close_fd(fd);
        fd = next;
        path = slash + 1;
    }
    *out_name = path;
    return fd;
}

static weir_status put(int dir_fd, int parts_fd, const struct weir_kept_put *put,
                       struct weir_error *err)
{
    const char *name;
    int fd = open_parent(dir_fd, put->path, &name);
    bool is_put = fd >= 0 && renameat(parts_fd, put->part, fd, name) == 0 && fsync(fd) == 0;
    int errno_value = errno;
    close_fd(fd);
    return is_put ? WEIR_OK : weir_error_set_errno(err, errno_value, "cannot store %s", put->path);
}

/* What is gone already is as it should be. A folder that is empty then stays. */
static weir_status remove_file(int dir_fd, const char *path, struct weir_error *err)
{
    const char *name = path, *slash = strrchr(path, '/');
    char folder[4096];
    int fd = dir_fd;
    if (slash != NULL) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        fd = open_beneath(dir_fd, folder, O_RDONLY | O_DIRECTORY);
        name = slash + 1;
    }
    bool is_gone = fd >= 0 ? unlinkat(fd, name, 0) == 0 || errno == ENOENT : errno == ENOENT;
    int errno_value = errno;
    if (fd != dir_fd) {
        close_fd(fd);
    }
    return is_gone ? WEIR_OK : weir_error_set_errno(err, errno_value, "cannot remove %s", path);
}

static weir_status find_missing(int parts_fd, const struct weir_kept_change *change,
                                const char **missing, size_t *out_n, struct weir_error *err)
{
    for (size_t i = 0; i < change->n_puts; i++) {
        struct stat info;
        const char *part = change->puts[i].part;
        WEIR_TRY(check_part_name(part, err));
        if (parts_fd < 0 || fstatat(parts_fd, part, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            missing[(*out_n)++] = part;
        }
    }
    return WEIR_OK;
}

static weir_status make(int dir_fd, int parts_fd, const struct weir_kept_change *change,
                        struct weir_error *err)
{
    for (size_t i = 0; i < change->n_puts; i++) {
        WEIR_TRY(put(dir_fd, parts_fd, &change->puts[i], err));
    }
    for (size_t i = 0; i < change->n_removed; i++) {
        WEIR_TRY(remove_file(dir_fd, change->removed[i], err));
    }
    return fsync(dir_fd) == 0 ? WEIR_OK
                              : weir_error_set_errno(err, errno, "cannot store the change");
}

weir_status weir_kept_change(const char *dir, const struct weir_kept_change *change,
                             struct weir_arena *arena, const char ***out_missing,
                             size_t *out_n_missing, struct weir_error *err)
{
    char parts[4096];
    const char **missing = WEIR_ARENA_ARRAY(arena, change->n_puts + 1, const char *);
    size_t n_missing = 0;
    WEIR_AUTO(weir_fd_auto_close)
    int parts_fd = open(parts_of(dir, parts), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    WEIR_TRY(find_missing(parts_fd, change, missing, &n_missing, err));
    if (n_missing == 0) {
        WEIR_TRY(weir_dir_make(dir, 0700, err));
        WEIR_AUTO(weir_fd_auto_close)
        int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir_fd < 0) {
            return weir_error_set_errno(err, errno, "cannot open %s", dir);
        }
        WEIR_TRY(make(dir_fd, parts_fd, change, err));
    }
    (void)rmdir(parts); /* others may have parts of theirs there */
    *out_missing = missing;
    *out_n_missing = n_missing;
    return WEIR_OK;
}
