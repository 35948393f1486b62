#include "agent/node/disk_watch.h"

#include "agent/node/disk_held.h"
#include "base/clock.h"
#include "base/macros.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COST_FACTOR 50

struct measure {
    struct disk_use use;
    dev_t device;
};

static void measure_folder(struct measure *m, int fd, int depth);

static void measure_entry(struct measure *m, int dir_fd, const char *name, int depth)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_dev != m->device) {
        return; /* gone meanwhile, or another file system */
    }
    m->use.bytes += (int64_t)info.st_blocks * 512;
    m->use.is_beyond = ++m->use.files > DISK_WATCH_ENTRIES_MAX || m->use.is_beyond;
    if (S_ISDIR(info.st_mode)) {
        /* A task may have closed its own folder to everybody; root's agents open it all the same. */
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            measure_folder(m, fd, depth + 1);
        }
    }
}

/* Takes the descriptor. */
static void measure_folder(struct measure *m, int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    m->use.is_beyond = m->use.is_beyond || depth > DISK_WATCH_DEPTH_MAX || dir == NULL;
    for (struct dirent *entry = m->use.is_beyond ? NULL : readdir(dir);
         entry != NULL && !m->use.is_beyond; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            measure_entry(m, dirfd(dir), entry->d_name, depth);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    } else {
        close(fd);
    }
}

struct disk_use disk_watch_measure(const char *dir)
{
    struct stat info;
    struct measure m = {.device = 0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return m.use;
    }
    m.device = info.st_dev;
    measure_folder(&m, fd, 0);
    return m.use;
}

static void add_held(const struct disk_watch *watch, struct disk_use *sum)
{
    static struct process_id ids[DISK_WATCH_MEMBERS_MAX];
    dev_t devices[DISK_WATCH_DIRS_MAX];
    struct stat info;
    struct disk_held held;
    size_t n = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(watch->dirs); i++) {
        if (watch->dirs[i] != NULL && stat(watch->dirs[i], &info) == 0) {
            devices[n++] = info.st_dev;
        }
    }
    disk_held_measure(ids, watch->members(watch->context, ids, WEIR_ARRAY_LEN(ids)), devices, n,
                      &held);
    sum->bytes += held.bytes;
    sum->files += held.files;
    sum->is_beyond = sum->is_beyond || held.is_beyond;
}

static struct disk_use measure_all(const struct disk_watch *watch)
{
    struct disk_use sum = {.bytes = 0};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(watch->dirs); i++) {
        if (watch->dirs[i] != NULL) {
            struct disk_use one = disk_watch_measure(watch->dirs[i]);
            sum.bytes += one.bytes;
            sum.files += one.files;
            sum.is_beyond = sum.is_beyond || one.is_beyond;
        }
    }
    if (watch->members != NULL) {
        add_held(watch, &sum);
    }
    return sum;
}

bool disk_watch_is_over(struct disk_watch *watch, int64_t now_ms, char *out, size_t size)
{
    if ((watch->max_bytes <= 0 && watch->max_files <= 0) || now_ms < watch->next_ms) {
        return false;
    }
    struct disk_use use = measure_all(watch);
    int64_t end_ms = weir_mono_ms();
    bool has_many = watch->max_files > 0 && use.files > watch->max_files;
    bool is_large = watch->max_bytes > 0 && use.bytes > watch->max_bytes;
    watch->next_ms = end_ms + WEIR_MAX((int64_t)DISK_WATCH_MS, COST_FACTOR * (end_ms - now_ms));
    watch->bytes = use.bytes;
    watch->files = use.files;
    if (is_large) {
        (void)snprintf(out, size,
                       "killed: its folder and /tmp hold %lld bytes, with removed files that are "
                       "still open, over its bound of %lld (disk_max_bytes of the job, weir agent "
                       "--disk-max)",
                       (long long)use.bytes, (long long)watch->max_bytes);
    } else if (has_many) {
        (void)snprintf(out, size,
                       "killed: its folder and /tmp hold %lld files, with removed ones that are "
                       "still open, over its bound of %lld (files_max of the job, weir agent "
                       "--files-max)",
                       (long long)use.files, (long long)watch->max_files);
    } else if (use.is_beyond) {
        (void)snprintf(out, size,
                       "killed: its folder and /tmp hold more than %d files, or folders more than "
                       "%d deep, or its processes have more than %d files open",
                       DISK_WATCH_ENTRIES_MAX, DISK_WATCH_DEPTH_MAX, DISK_HELD_LOOKS_MAX);
    }
    return use.is_beyond || is_large || has_many;
}
