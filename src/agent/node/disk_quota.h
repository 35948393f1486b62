/**
 * Disk quota: a bound that the file system keeps on what a folder holds, where it has project
 * quotas (ext4 and XFS, mounted with prjquota) and this process is root. A task that writes more is
 * refused (EDQUOT). Elsewhere folders are measured (disk_watch.h).
 *
 * A folder's project is a number of its own, made of its inode's, above all that people give by
 * hand. What is made in the folder later belongs to it; tasks cannot change that
 * (syscall_filter.h).
 */
#ifndef WEIR_AGENT_DISK_QUOTA_H
#define WEIR_AGENT_DISK_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

/** Has the file system of this folder project quotas that are switched on, for this process? */
bool disk_quota_is_here(const char *dir);

/** Bound what is made in the (empty) folder from now on: its bytes, and (0: not) its files. false: nothing
 *  has changed. */
bool disk_quota_set(const char *dir, int64_t max_bytes, int64_t max_files);

#endif
