#include "agent/sandbox/idmap.h"

#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL_IDS 4294967295LL /* 0 … 2^32 - 2 */

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int errno_value = write(fd, text, strlen(text)) < 0 ? errno : 0;
    close(fd);
    return errno_value;
}

static size_t add_extent(char *out, size_t size, size_t at, long long from, long long to,
                         long long n)
{
    return n <= 0 ? at
                  : at + (size_t)snprintf(out + at, size - at, "%lld %lld %lld\n", from, to, n);
}

/* `disk` is shown as `id` and `id` as `disk`; all others as themselves. */
static void describe(char *out, size_t size, uint32_t disk, uint32_t id)
{
    long long low = WEIR_MIN(disk, id), high = WEIR_MAX(disk, id);
    size_t at = add_extent(out, size, 0, 0, 0, low);
    at = add_extent(out, size, at, low, high, 1);
    at = add_extent(out, size, at, low + 1, low + 1, high - low - 1);
    at = low < high ? add_extent(out, size, at, high, low, 1) : at;
    (void)add_extent(out, size, at, high + 1, high + 1, ALL_IDS - high - 1);
}

/* A user namespace that is itself in one may know only some ids: then the owner alone. */
static int write_map(pid_t pid, const char *which, uint32_t disk, uint32_t id)
{
    char path[64], text[256];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, which);
    describe(text, sizeof text, disk, id);
    if (write_text(path, text) == 0) {
        return 0;
    }
    (void)snprintf(text, sizeof text, "%u %u 1\n", disk, id);
    return write_text(path, text);
}

/* In a child of `maker`: be in a new user namespace, say so, and stay until killed. It does not
 * outlive its maker, and holds nothing that the maker has open: others wait until that is closed.
 */
static _Noreturn void hold_namespace(pid_t maker, int ready_fd)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != maker || dup2(ready_fd, 0) != 0 || close_range(1, ~0U, 0) != 0) {
        _exit(1);
    }
    char byte = (char)(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
    (void)!write(0, &byte, 1);
    for (;;) {
        (void)pause();
    }
}

/* The descriptor of a user namespace with the map, or -1 and errno. */
static int make_namespace(const struct idmap *map)
{
    int ready[2];
    char byte = 0, path[64];
    if (pipe2(ready, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t maker = getpid(), pid = fork();
    if (pid == 0) {
        hold_namespace(maker, ready[1]);
    }
    int fd = -1;
    int errno_value = pid < 0 ? errno : 0;
    close(ready[1]);
    if (pid > 0) {
        errno_value = read(ready[0], &byte, 1) == 1 ? byte : EIO;
        errno_value =
            errno_value != 0 ? errno_value : write_map(pid, "uid_map", map->disk_user, map->user);
        errno_value =
            errno_value != 0 ? errno_value : write_map(pid, "gid_map", map->disk_group, map->group);
        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
        fd = errno_value == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        errno_value = errno_value == 0 && fd < 0 ? errno : errno_value;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    close(ready[0]);
    errno = errno_value;
    return fd;
}

static int find_namespace(struct idmap_cache *cache, const struct idmap *map)
{
    for (size_t i = 0; i < cache->n; i++) {
        if (memcmp(&cache->maps[i], map, sizeof *map) == 0) {
            return cache->fds[i];
        }
    }
    if (cache->n == IDMAPS_MAX) {
        errno = ENOSPC;
        return -1;
    }
    int fd = make_namespace(map);
    if (fd >= 0) {
        cache->maps[cache->n] = *map;
        cache->fds[cache->n++] = fd;
    }
    return fd;
}

int idmap_apply(struct idmap_cache *cache, int tree_fd, const struct idmap *map)
{
    int fd = find_namespace(cache, map);
    if (fd < 0) {
        return errno;
    }
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)fd};
    return mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0 ? 0 : errno;
}

typedef int (*entry_fn)(int fd, const struct stat *info, const struct idmap *map);

static int give_entry(int fd, const struct stat *info, const struct idmap *map)
{
    if (info->st_uid != map->disk_user) {
        return 0;
    }
    return fchownat(fd, "", map->user, map->group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0
               ? 0
               : errno;
}

/* The group of it is map->group, with these bits of its mode. */
static int let_entry(int fd, const struct stat *info, const struct idmap *map, mode_t wanted)
{
    char path[64];
    if (S_ISLNK(info->st_mode) ||
        (info->st_gid == map->group && (info->st_mode & wanted) == wanted)) {
        return 0;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fchownat(fd, "", (uid_t)-1, map->group, AT_EMPTY_PATH) == 0 &&
                   chmod(path, (info->st_mode | wanted) & 07777) == 0
               ? 0
               : errno;
}

static int let_read_entry(int fd, const struct stat *info, const struct idmap *map)
{
    return let_entry(fd, info, map, S_ISDIR(info->st_mode) ? 0050 : 0040);
}

static int let_write_entry(int fd, const struct stat *info, const struct idmap *map)
{
    bool is_dir = S_ISDIR(info->st_mode);
    return !is_dir && info->st_nlink > 1 ? 0
                                         : let_entry(fd, info, map, is_dir ? S_ISGID | 0070 : 0060);
}

/* `fd` is an O_PATH descriptor. */
static int walk(int fd, entry_fn fn, const struct idmap *map, dev_t device)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return errno;
    }
    if (info.st_dev != device) {
        return 0;
    }
    int errno_value = fn(fd, &info, map);
    if (!S_ISDIR(info.st_mode)) {
        return errno_value;
    }
    int list_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int child = openat(fd, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int failed = child >= 0 ? walk(child, fn, map, device) : 0; /* gone meanwhile */
        errno_value = errno_value != 0 ? errno_value : failed;
        if (child >= 0) {
            close(child);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return errno_value;
}

static int walk_tree(int dir_fd, entry_fn fn, const struct idmap *map)
{
    struct stat info;
    return fstat(dir_fd, &info) != 0 ? errno : walk(dir_fd, fn, map, info.st_dev);
}

int idmap_give(int dir_fd, const struct idmap *map)
{
    return walk_tree(dir_fd, give_entry, map);
}

int idmap_let_read(int dir_fd, const struct idmap *map)
{
    return walk_tree(dir_fd, let_read_entry, map);
}

int idmap_let_write(int dir_fd, const struct idmap *map)
{
    return walk_tree(dir_fd, let_write_entry, map);
}
