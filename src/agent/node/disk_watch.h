/**
 * Disk watch: how much the folders of a task hold, and its processes by files that they have removed
 * and hold on to (disk_held.h), measured at intervals.
 *
 * It counts what files and folders take on the disk, and how many they are, does not follow links and
 * does not leave the file system. A measurement reads at most DISK_WATCH_ENTRIES_MAX entries and goes
 * at most DISK_WATCH_DEPTH_MAX folders deep: what has more counts as over any bound, because it would
 * hide there. Where the file system keeps a quota (disk_quota.h) nothing gets that far. The next
 * measurement waits at least DISK_WATCH_MS, and 50 times as long as the last took, so that it costs at
 * most 2 % of a processor. What a task writes in between goes beyond its bound.
 */
#ifndef WEIR_AGENT_DISK_WATCH_H
#define WEIR_AGENT_DISK_WATCH_H

#include "agent/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_WATCH_MS          2000
#define DISK_WATCH_ENTRIES_MAX 1000000
#define DISK_WATCH_DEPTH_MAX   200
#define DISK_WATCH_DIRS_MAX    3
#define DISK_WATCH_MEMBERS_MAX 4096

struct disk_watch {
    const char *dirs[DISK_WATCH_DIRS_MAX]; /**< Borrowed; NULL: none. */
    int64_t max_bytes;                     /**< 0: no bound. */
    int64_t max_files;                     /**< 0: no bound but what is looked at. */
    /** The task's processes; NULL: there are none. */
    size_t (*members)(void *context, struct process_id *ids, size_t max);
    void *context;
    int64_t next_ms;      /**< Monotonic. */
    int64_t bytes, files; /**< What the last measurement found. */
};

/**
 * Measure if it is time.
 * @return true if the folders are over the bound: then `out` (of `size` bytes) says by what.
 */
bool disk_watch_is_over(struct disk_watch *watch, int64_t now_ms, char *out, size_t size);

/** What a folder holds: bytes on the disk, and files, folders among them. */
struct disk_use {
    int64_t bytes, files;
    bool is_beyond; /**< It has too many entries, or is too deep: the figures are of some of it. */
};

/** One that is not there holds nothing. */
struct disk_use disk_watch_measure(const char *dir);

#endif
