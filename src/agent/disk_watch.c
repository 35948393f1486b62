#include "agent/disk_watch.h"

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
    int64_t bytes;
    int n_entries;
    dev_t device;
    bool is_beyond; /* more than is looked at */
};

static void measure_folder(struct measure *m, int fd, int depth);

static void measure_entry(struct measure *m, int dir_fd, const char *name, int depth)
{
    struct stat info;
    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_dev != m->device) {
        return; /* gone meanwhile, or another file system */
    }
    m->bytes += (int64_t)info.st_blocks * 512;
    m->is_beyond = ++m->n_entries > DISK_WATCH_ENTRIES_MAX || m->is_beyond;
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
    m->is_beyond = m->is_beyond || depth > DISK_WATCH_DEPTH_MAX || dir == NULL;
    for (struct dirent *entry = m->is_beyond ? NULL : readdir(dir); entry != NULL && !m->is_beyond;
         entry = readdir(dir)) {
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

int64_t disk_watch_measure(const char *dir)
{
    struct stat info;
    struct measure m = {.bytes = 0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    m.device = info.st_dev;
    measure_folder(&m, fd, 0);
    return m.is_beyond ? -1 : m.bytes;
}

bool disk_watch_is_over(struct disk_watch *watch, int64_t now_ms, char *out, size_t size)
{
    if (watch->max_bytes <= 0 || now_ms < watch->next_ms) {
        return false;
    }
    int64_t bytes = 0;
    bool is_beyond = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(watch->dirs); i++) {
        int64_t n = watch->dirs[i] != NULL ? disk_watch_measure(watch->dirs[i]) : 0;
        is_beyond = is_beyond || n < 0;
        bytes += WEIR_MAX(n, (int64_t)0);
    }
    int64_t end_ms = weir_mono_ms();
    watch->next_ms = end_ms + WEIR_MAX((int64_t)DISK_WATCH_MS, COST_FACTOR * (end_ms - now_ms));
    watch->bytes = bytes;
    if (is_beyond) {
        (void)snprintf(out, size,
                       "killed: its folder and /tmp hold more than %d files, or folders more than "
                       "%d deep",
                       DISK_WATCH_ENTRIES_MAX, DISK_WATCH_DEPTH_MAX);
    } else if (bytes > watch->max_bytes) {
        (void)snprintf(out, size,
                       "killed: its folder and /tmp hold %lld bytes, over its bound of %lld "
                       "(disk_max_bytes of the job, weir agent --disk-max)",
                       (long long)bytes, (long long)watch->max_bytes);
    }
    return is_beyond || bytes > watch->max_bytes;
}
