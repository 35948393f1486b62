/**
 * Disk held: what processes hold of a file system by files that have no name any more: removed, and
 * still open or mapped. No walk of a folder finds them.
 *
 * What it cannot see: a file that is open in no process, but under way in a socket; and maps of other
 * users' processes where this one is not root (then their length counts, which may be more than the
 * file takes).
 */
#ifndef WEIR_AGENT_DISK_HELD_H
#define WEIR_AGENT_DISK_HELD_H

#include "agent/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Descriptors and maps that are looked at. A task with more counts as over any bound. */
#define DISK_HELD_LOOKS_MAX 1000000

struct disk_held {
    int64_t bytes, files; /**< Each file once. */
    bool is_beyond;       /**< There is more than is looked at. */
};

/** Counts regular files on these devices. Processes that are gone are passed over. */
void disk_held_measure(const struct process_id *ids, size_t n_ids, const dev_t *devices,
                       size_t n_devices, struct disk_held *out);

#endif
