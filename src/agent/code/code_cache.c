#include "agent/code/code_cache.h"

#include "agent/node/disk_watch.h"
#include "agent/process.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define HEX_DIGITS  64
#define LOCK_SUFFIX ".lock"
#define SWEPT       ".swept"
#define BOOT        ".boot"
#define STRANGE_S   (24 * 3600)

static weir_status make_dir(const char *path, struct weir_error *err)
{
    return weir_dir_make(path, 0700, err);
}

/* What was fetched before the machine went down may be damaged: the disk was not waited for. */
static weir_status forget_other_boots(const struct code_cache *cache, struct weir_error *err)
{
    char path[PATH_MAX], now[PROCESS_BOOT_ID_BYTES] = "", then[PROCESS_BOOT_ID_BYTES] = "";
    process_boot_id(now);
    (void)snprintf(path, sizeof path, "%s/" BOOT, cache->dir);
    WEIR_AUTO(weir_fd_auto_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        return weir_error_set_errno(err, errno, "cannot open %s", path);
    }
    (void)futimens(fd, NULL); /* its project is used */
    (void)!pread(fd, then, sizeof then - 1, 0);
    if (strcmp(now, then) != 0) {
        WEIR_TRY(weir_dir_remove(cache->blobs_dir, err));
        if (ftruncate(fd, 0) != 0 || pwrite(fd, now, strlen(now), 0) < 0) {
            return weir_error_set_errno(err, errno, "cannot write %s", path);
        }
    }
    return WEIR_OK;
}

weir_status code_cache_open(const char *task_dir, const char *project, struct weir_arena *arena,
                            struct code_cache *out, struct weir_error *err)
{
    char *agent_dir = weir_arena_strdup(arena, task_dir);
    if (project == NULL || !weir_name_is_valid(project)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.project: expected a name");
    }
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(agent_dir, '/');
        if (slash == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s is in no agent's folder", task_dir);
        }
        *slash = '\0';
    }
    *out = (struct code_cache){
        .dir = weir_arena_printf(arena, "%s/cache/%s", agent_dir, project),
        .blobs_dir = weir_arena_printf(arena, "%s/cache/%s/blobs", agent_dir, project),
        .python_dir = weir_arena_printf(arena, "%s/cache/%s/python", agent_dir, project)};
    WEIR_TRY(make_dir(out->python_dir, err));
    WEIR_TRY(forget_other_boots(out, err));
    return make_dir(out->blobs_dir, err);
}

/* As it is asked for: one that is used stays. */
static int open_one(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        (void)futimens(fd, NULL);
    }
    return fd;
}

weir_status code_cache_get(struct code_cache *cache, struct weir_client *client, const char *sha256,
                           int64_t bytes, int *out_fd, struct weir_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    int len = snprintf(path, sizeof path, "%s/%s", cache->blobs_dir, sha256);
    if (len < 0 || (size_t)len >= sizeof path) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the path of a blob is too long");
    }
    int fd = open_one(path);
    if (fd >= 0 && (fstat(fd, &info) != 0 || (bytes >= 0 && info.st_size != bytes))) {
        close(fd); /* cut off by a loss of power, say */
        fd = -1;
    }
    if (fd < 0) {
        WEIR_TRY(weir_client_blob_cache(client, sha256, path, err));
        fd = open_one(path);
        cache->fetched_bytes += bytes > 0 ? bytes : 0;
    }
    if (fd < 0 || fstat(fd, &info) != 0) {
        weir_status status = weir_error_set_errno(err, errno, "cannot open %s", path);
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    if (bytes >= 0 && info.st_size != bytes) {
        close(fd);
        return weir_error_set(err, WEIR_ERR_CORRUPT, "blob %s has %lld bytes, and not %lld", sha256,
                              (long long)info.st_size, (long long)bytes);
    }
    *out_fd = fd;
    return WEIR_OK;
}

/* ---- sweeping ---------------------------------------------------------------------------------- */

struct item {
    char name[NAME_MAX + 1];
    int64_t time_s, bytes;
};

struct items {
    struct item *list;
    size_t n, cap;
};

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct item *)a)->time_s, y = ((const struct item *)b)->time_s;
    return x < y ? 1 : x > y ? -1 : 0;
}

static bool is_hash(const char *name, size_t len)
{
    return len == HEX_DIGITS && strspn(name, "0123456789abcdef") >= HEX_DIGITS;
}

/* What lies in a folder; other tasks may change it meanwhile. */
static void list_items(int fd, struct items *out)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own >= 0 ? fdopendir(own) : NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        weir_xgrow(&out->list, sizeof *out->list, out->n, &out->cap);
        struct item *item = &out->list[out->n++];
        (void)snprintf(item->name, sizeof item->name, "%s", entry->d_name);
        item->time_s = info.st_mtime;
        item->bytes = (int64_t)info.st_blocks * 512;
    }
    if (dir != NULL) {
        closedir(dir);
    } else if (own >= 0) {
        close(own);
    }
    if (out->n > 0) {
        qsort(out->list, out->n, sizeof *out->list, newest_first);
    }
}

static bool remove_item(int fd, const char *name)
{
    struct weir_error err;
    if (weir_dir_remove_at(fd, name, &err) == WEIR_OK) {
        return true;
    }
    weir_log(WEIR_LOG_WARN, "cache_not_swept", WEIR_KV_STR("name", name),
             WEIR_KV_STR("error", err.message));
    return false;
}

static void sweep_blobs(int fd, int64_t now_s)
{
    struct items items = {0};
    int64_t sum = 0;
    list_items(fd, &items);
    for (size_t i = 0; i < items.n; i++) {
        const struct item *item = &items.list[i];
        bool is_blob = is_hash(item->name, strlen(item->name));
        sum += item->bytes;
        /* What else lies there is being fetched, or was when its supervisor was killed. */
        if (is_blob ? sum > CODE_CACHE_BLOBS_BYTES : now_s - item->time_s > STRANGE_S) {
            (void)remove_item(fd, item->name);
        }
    }
    free(items.list);
}

/* Unless a task holds its lock. Tasks may have put anything in place of it: no link is followed. */
static void remove_python(int fd, const char *lock_name)
{
    char name[HEX_DIGITS + 1];
    int lock = openat(fd, lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    (void)snprintf(name, sizeof name, "%.64s", lock_name);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        return;
    }
    if (remove_item(fd, name)) {
        (void)remove_item(fd, lock_name);
    }
    if (lock >= 0) {
        close(lock);
    }
}

static bool is_lock(const char *name)
{
    size_t suffix = sizeof LOCK_SUFFIX - 1;
    return strlen(name) == HEX_DIGITS + suffix && is_hash(name, HEX_DIGITS) &&
           strcmp(name + HEX_DIGITS, LOCK_SUFFIX) == 0;
}

/* Those of whom no task holds the lock go: all, if they are too large; else those used longest ago. */
static void sweep_locked(int fd, const struct items *items, bool is_too_large)
{
    size_t n = 0;
    for (size_t i = 0; i < items->n; i++) {
        if (is_lock(items->list[i].name) && (n++ >= CODE_CACHE_PYTHONS || is_too_large)) {
            remove_python(fd, items->list[i].name);
        }
    }
}

static void sweep_pythons(int fd, int64_t now_s)
{
    struct items items = {0};
    struct statvfs disk;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/.", fd);
    struct disk_use use = disk_watch_measure(path);
    int64_t rest = fstatvfs(fd, &disk) == 0 ? (int64_t)(disk.f_bavail * disk.f_frsize) : 0;
    bool is_too_large = use.is_beyond || use.bytes > CODE_CACHE_PYTHON_BYTES || use.bytes > rest;
    list_items(fd, &items);
    sweep_locked(fd, &items, is_too_large);
    for (size_t i = 0; i < items.n; i++) {
        const struct item *item = &items.list[i];
        char lock[HEX_DIGITS + sizeof LOCK_SUFFIX];
        (void)snprintf(lock, sizeof lock, "%.64s" LOCK_SUFFIX, item->name);
        bool has_lock = is_hash(item->name, strlen(item->name)) &&
                        faccessat(fd, lock, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (!is_lock(item->name) && !has_lock &&
            (is_too_large || now_s - item->time_s > STRANGE_S)) {
            (void)remove_item(fd, item->name);
        }
    }
    free(items.list);
}

static void with_folder(int fd, const char *path, void (*sweep)(int fd, int64_t now_s),
                        int64_t now_s)
{
    int folder = openat(fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        sweep(folder, now_s);
        close(folder);
    }
}

static void sweep_project(int fd, int64_t now_s)
{
    with_folder(fd, "blobs", sweep_blobs, now_s);
    with_folder(fd, "python", sweep_pythons, now_s);
}

static void sweep_projects(int fd, int64_t now_s)
{
    struct items items = {0};
    list_items(fd, &items);
    for (size_t i = 0; i < items.n; i++) {
        char path[NAME_MAX + sizeof "/" BOOT];
        struct stat info;
        const char *name = items.list[i].name;
        (void)snprintf(path, sizeof path, "%s/" BOOT, name);
        bool is_used = fstatat(fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
        int64_t used_s = is_used ? info.st_mtime : items.list[i].time_s;
        if (name[0] != '.' && now_s - used_s > CODE_CACHE_KEPT_S) {
            (void)remove_item(fd, name);
        } else if (name[0] != '.') {
            with_folder(fd, name, sweep_project, now_s);
        }
    }
    free(items.list);
}

void code_cache_sweep(struct code_cache *cache, int64_t now_s)
{
    char path[PATH_MAX];
    struct stat info;
    bool is_much = cache->fetched_bytes >= CODE_CACHE_MUCH_BYTES;
    (void)snprintf(path, sizeof path, "%s/../" SWEPT, cache->dir);
    if (!is_much && stat(path, &info) == 0 && now_s - info.st_mtime < CODE_CACHE_SWEEP_S &&
        now_s >= info.st_mtime) {
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) { /* else another is at it */
        (void)futimens(fd, NULL);
        cache->fetched_bytes = 0;
        (void)snprintf(path, sizeof path, "%s/..", cache->dir);
        with_folder(AT_FDCWD, path, sweep_projects, now_s);
    }
    if (fd >= 0) {
        close(fd);
    }
}
