/**
 * Disk watch: how much the folders of a task hold, measured at intervals.
 *
 * It counts what files and folders take on the disk, does not follow links and does not leave the
 * file system. A measurement reads at most DISK_WATCH_ENTRIES_MAX entries and goes at most
 * DISK_WATCH_DEPTH_MAX folders deep: what has more counts as over any bound, because it would hide
 * there. Where the file system keeps a quota (disk_quota.h) nothing gets that far. The next measurement waits at least DISK_WATCH_MS, and 50 times as long as the last took,
 * so that it costs at most 2 % of a processor. What a task writes in between goes beyond its bound.
 * A file that is removed and still open is not seen.
 */
#ifndef WEIR_AGENT_DISK_WATCH_H
#define WEIR_AGENT_DISK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_WATCH_MS          2000
#define DISK_WATCH_ENTRIES_MAX 1000000
#define DISK_WATCH_DEPTH_MAX   200
#define DISK_WATCH_DIRS_MAX    3

struct disk_watch {
    const char *dirs[DISK_WATCH_DIRS_MAX]; /**< Borrowed; NULL: none. */
    int64_t max_bytes;                     /**< 0: no bound, nothing is measured. */
    int64_t next_ms;                       /**< Monotonic. */
    int64_t bytes;                         /**< Of the last measurement. */
};

/**
 * Measure if it is time.
 * @return true if the folders are over the bound: then `out` (of `size` bytes) says by what.
 */
bool disk_watch_is_over(struct disk_watch *watch, int64_t now_ms, char *out, size_t size);

/**
 * What a folder holds, in bytes on the disk; one that is not there holds nothing.
 * @return -1 if it has too many entries or is too deep to be measured.
 */
int64_t disk_watch_measure(const char *dir);

#endif
