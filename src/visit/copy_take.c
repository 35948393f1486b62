#include "base/file.h"
#include "base/macros.h"
#include "base/rng.h"
#include "visit/copy_private.h"
#include "visit/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER (S_IRUSR | S_IWUSR | S_IXUSR)

/* A folder that is being filled; -1: it could not be made, and what is in it is left out. */
struct level {
    int fd;
    bool is_new; /* it was made, and gets its rights when it is full */
    mode_t mode;
    size_t path_len;
};

struct taker {
    int in_fd;
    struct weir_copy_watch *watch;
    size_t begin, end, depth;
    struct level levels[WEIR_COPY_DEPTH + 2];
    char path[PATH_MAX], name[COPY_NAME_MAX + 1], target[COPY_LINK_MAX + 1];
    char in[COPY_CHUNK_MAX];
};

/* ---- the stream ------------------------------------------------------------------------------------------------ */

static weir_status fill(struct taker *t, struct weir_error *err)
{
    ssize_t n;
    do {
        n = read(t->in_fd, t->in, sizeof t->in);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "it ended before all was there");
    }
    t->begin = 0;
    t->end = (size_t)n;
    return WEIR_OK;
}

/* Some of what comes next, at least a byte and at most `max`, borrowed until the next call. */
static weir_status take_some(struct taker *t, size_t max, const char **out, size_t *out_n,
                             struct weir_error *err)
{
    if (t->begin == t->end) {
        WEIR_TRY(fill(t, err));
    }
    *out = t->in + t->begin;
    *out_n = WEIR_MIN(max, t->end - t->begin);
    t->begin += *out_n;
    return WEIR_OK;
}

static weir_status take_all(struct taker *t, void *out, size_t len, struct weir_error *err)
{
    const char *some;
    size_t n;
    for (size_t at = 0; at < len; at += n) {
        WEIR_TRY(take_some(t, len - at, &some, &n, err));
        memcpy((char *)out + at, some, n);
    }
    return WEIR_OK;
}

/* The next entry, with its name and target. */
static weir_status take_head(struct taker *t, char *out_kind, mode_t *out_mode,
                             struct weir_error *err)
{
    char head[COPY_HEAD_BYTES];
    WEIR_TRY(take_all(t, head, sizeof head, err));
    size_t name_len = weir_frame_u16(head + 4), target_len = weir_frame_u16(head + 6);
    *out_kind = head[0];
    *out_mode = weir_frame_u16(head + 2) & 0777;
    if (name_len > COPY_NAME_MAX || target_len > COPY_LINK_MAX) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "what came is no copy");
    }
    WEIR_TRY(take_all(t, t->name, name_len, err));
    WEIR_TRY(take_all(t, t->target, target_len, err));
    t->name[name_len] = t->target[target_len] = '\0';
    return strlen(t->name) == name_len && strchr(t->name, '/') == NULL &&
                   strcmp(t->name, ".") != 0 && strcmp(t->name, "..") != 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "what came has a name that is none");
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static struct {
    volatile sig_atomic_t is_there;
    int dir;
    char name[32];
} half; /* the file that is being written */

void weir_copy_abandon(void)
{
    if (half.is_there) {
        (void)unlinkat(half.dir, half.name, 0);
    }
}

static void complain(struct taker *t, const char *why)
{
    t->watch->n_left_out++;
    t->watch->complain(t->watch->context, t->path, why);
}

static void name_half(int dir)
{
    uint64_t number;
    weir_random_bytes(&number, sizeof number);
    half.dir = dir;
    (void)snprintf(half.name, sizeof half.name, ".weir-%016llx", (unsigned long long)number);
}

static int begin_file(struct taker *t, int dir, const char *name)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISLNK(info.st_mode)) {
        complain(t, S_ISDIR(info.st_mode) ? "a folder of that name is there"
                                          : "something that is no file is there");
        return -1;
    }
    name_half(dir);
    int fd = openat(dir, half.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    half.is_there = fd >= 0;
    if (fd < 0) {
        complain(t, strerror(errno));
    }
    return fd;
}

/* Its bytes, to a descriptor, or nowhere (-1). *out_is_whole: it could be read, and written. */
static weir_status take_bytes(struct taker *t, int fd, bool *out_is_whole, struct weir_error *err)
{
    char length[4];
    const char *some;
    size_t n;
    *out_is_whole = fd >= 0;
    for (;;) {
        WEIR_TRY(take_all(t, length, sizeof length, err));
        uint32_t left = weir_frame_u32(length);
        if (left == 0 || left == COPY_BROKEN) {
            *out_is_whole = *out_is_whole && left == 0; /* who sent it has complained */
            return WEIR_OK;
        }
        if (left > COPY_CHUNK_MAX) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "what came is no copy");
        }
        for (; left > 0; left -= (uint32_t)n) {
            WEIR_TRY(take_some(t, left, &some, &n, err));
            if (*out_is_whole && weir_fd_write_all(fd, some, n, NULL) != WEIR_OK) {
                complain(t, strerror(errno));
                *out_is_whole = false;
            }
            t->watch->n_bytes += *out_is_whole ? (int64_t)n : 0;
        }
        if (t->watch->pass != NULL) {
            t->watch->pass(t->watch->context);
        }
    }
}

static weir_status take_file(struct taker *t, int dir, const char *name, mode_t mode,
                             struct weir_error *err)
{
    bool is_whole = false;
    int fd = dir >= 0 ? begin_file(t, dir, name) : -1;
    weir_status status = take_bytes(t, fd, &is_whole, err);
    if (fd >= 0) {
        bool is_kept = status == WEIR_OK && is_whole;
        bool is_good = is_kept && fchmod(fd, mode) == 0;
        is_good = close(fd) == 0 && is_good && renameat(dir, half.name, dir, name) == 0;
        if (is_good) {
            t->watch->n_files++;
        } else {
            int errno_value = errno;
            weir_copy_abandon();
            if (is_kept) {
                complain(t, strerror(errno_value));
            }
        }
        half.is_there = 0;
    }
    return status;
}

/* ---- folders and links ------------------------------------------------------------------------------------------ */

static void make_link(struct taker *t, int dir)
{
    if (dir < 0) {
        return;
    }
    if (!copy_is_within(t->target, t->depth - 1)) {
        complain(t, "a link that leads out of what is copied: left out");
        return;
    }
    name_half(dir);
    if (symlinkat(t->target, dir, half.name) != 0 || renameat(dir, half.name, dir, t->name) != 0) {
        complain(t, strerror(errno));
        (void)unlinkat(dir, half.name, 0);
    }
}

static void push(struct taker *t, int dir, const char *name, mode_t mode)
{
    struct level level = {.fd = -1, .mode = mode, .path_len = strlen(t->path)};
    if (dir >= 0) {
        level.is_new = mkdirat(dir, name, OWNER) == 0;
        if (level.is_new || errno == EEXIST) {
            level.fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (level.fd < 0) {
            complain(t, errno == ELOOP || errno == ENOTDIR
                            ? "something that is no folder is there, and links are not followed"
                            : strerror(errno));
        }
    }
    t->levels[++t->depth] = level;
}

static void pop(struct taker *t)
{
    struct level *level = &t->levels[t->depth--];
    if (level->fd >= 0) {
        if (level->is_new && fchmod(level->fd, level->mode) != 0) {
            complain(t, strerror(errno));
        }
        close(level->fd);
    }
}

/* What is in a folder, to its end; levels[0] stands for what the root is in. */
static weir_status take_folder(struct taker *t, struct weir_error *err)
{
    char kind;
    mode_t mode;
    size_t base = t->depth;
    while (t->depth >= base) {
        WEIR_TRY(take_head(t, &kind, &mode, err));
        const struct level *level = &t->levels[t->depth];
        if (kind == COPY_UP) {
            t->path[level->path_len] = '\0';
            pop(t);
            continue;
        }
        (void)snprintf(t->path + level->path_len, sizeof t->path - level->path_len, "%s%s",
                       level->path_len > 0 ? "/" : "", t->name);
        if (kind == COPY_FILE && t->name[0] != '\0') {
            WEIR_TRY(take_file(t, level->fd, t->name, mode, err));
        } else if (kind == COPY_LINK && t->name[0] != '\0') {
            make_link(t, level->fd);
        } else if (kind == COPY_FOLDER && t->name[0] != '\0' && t->depth <= WEIR_COPY_DEPTH) {
            push(t, level->fd, t->name, mode);
        } else {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "what came is no copy");
        }
    }
    return WEIR_OK;
}

/* ---- the root -------------------------------------------------------------------------------------------------- */

static weir_status take_mark(struct taker *t, struct weir_error *err)
{
    char mark[COPY_MARK_BYTES];
    WEIR_TRY(take_all(t, mark, sizeof mark, err));
    return memcmp(mark, COPY_MARK, sizeof mark) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "what came is no copy: is the other side of this version?");
}

static weir_status take_end(struct taker *t, struct weir_error *err)
{
    char kind;
    mode_t mode;
    WEIR_TRY(take_head(t, &kind, &mode, err));
    return kind == COPY_END ? WEIR_OK
                            : weir_error_set(err, WEIR_ERR_CORRUPT, "what came is no copy");
}

/* The folder that the root goes into, and what it is called there: "" is that folder itself. */
static weir_status find_place(struct taker *t, const char *path, bool is_folder, int *out_dir,
                              char out_name[COPY_NAME_MAX + 1], struct weir_error *err)
{
    struct stat info;
    size_t len = strlen(path);
    bool is_into = len == 0 || path[len - 1] == '/', is_there = stat(path, &info) == 0;
    is_into = is_into || (is_there && S_ISDIR(info.st_mode));
    const char *slash = strrchr(path, '/'), *name = is_into         ? t->name
                                                    : slash != NULL ? slash + 1
                                                                    : path;
    char parent[PATH_MAX];
    size_t parent_len = is_into ? len : slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (parent_len >= sizeof parent || strlen(name) > COPY_NAME_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%.80s…: the path is too long", path);
    }
    (void)snprintf(parent, sizeof parent, "%.*s", (int)parent_len, path);
    if (is_into && is_folder && !is_there && len > 0) {
        (void)mkdir(parent, 0777);
    }
    (void)snprintf(out_name, COPY_NAME_MAX + 1, "%s", name);
    *out_dir = open(parent_len > 0 ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out_dir >= 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot write %s", path);
}

static weir_status take_root(struct taker *t, const char *path, struct weir_error *err)
{
    char kind, name[COPY_NAME_MAX + 1];
    mode_t mode;
    int dir = -1;
    WEIR_TRY(take_mark(t, err));
    WEIR_TRY(take_head(t, &kind, &mode, err));
    if ((kind != COPY_FOLDER && kind != COPY_FILE) || (kind == COPY_FILE && t->name[0] == '\0')) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "what came is no copy");
    }
    t->watch->is_folder = kind == COPY_FOLDER;
    WEIR_TRY(find_place(t, path, t->watch->is_folder, &dir, name, err));
    weir_status status;
    if (kind == COPY_FILE) {
        status = take_file(t, dir, name, mode, err);
    } else {
        if (name[0] == '\0') {
            t->levels[++t->depth] = (struct level){.fd = dup(dir)};
        } else {
            push(t, dir, name, mode);
        }
        status = take_folder(t, err);
        while (t->depth > 0) {
            pop(t);
        }
    }
    close(dir);
    return status == WEIR_OK ? take_end(t, err) : status;
}

static struct taker *make(int in_fd, struct weir_copy_watch *watch, struct weir_error *err)
{
    struct taker *t = calloc(1, sizeof *t);
    if (t == NULL) {
        (void)weir_error_set(err, WEIR_ERR_NOMEM, "no memory");
        return NULL;
    }
    t->in_fd = in_fd;
    t->watch = watch;
    return t;
}

weir_status weir_copy_take(const char *path, int in_fd, struct weir_copy_watch *watch,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_auto_free) struct taker *t = make(in_fd, watch, err);
    return t != NULL ? take_root(t, path, err) : WEIR_ERR_NOMEM;
}

static weir_status take_one(struct taker *t, int out_fd, struct weir_error *err)
{
    char kind;
    mode_t mode;
    bool is_whole;
    WEIR_TRY(take_mark(t, err));
    WEIR_TRY(take_head(t, &kind, &mode, err));
    if (kind != COPY_FILE) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "it is a folder, which goes into a folder: name one");
    }
    WEIR_TRY(take_bytes(t, out_fd, &is_whole, err));
    t->watch->n_files += is_whole;
    return take_end(t, err);
}

weir_status weir_copy_take_bytes(int in_fd, int out_fd, struct weir_copy_watch *watch,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_auto_free) struct taker *t = make(in_fd, watch, err);
    return t != NULL ? take_one(t, out_fd, err) : WEIR_ERR_NOMEM;
}
