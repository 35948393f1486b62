/**
 * The holder of a lock, and taking it over: how a server, an agent or a supervisor is ended from
 * outside.
 *
 * The lock is the identity. A pid that was written down may belong to another program by now; the
 * holder of the lock (weir_file_lock) is found in /proc by the lock itself, is held by its start
 * time, and is signalled through a pidfd.
 */
#ifndef WEIR_AGENT_LOCK_H
#define WEIR_AGENT_LOCK_H

#include "agent/process.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * The holder of each of these lock files: out[i].pid is 0 where this user may see none. Where several hold it (the
 * process that took it, and the children that it forked since) it is the eldest.
 * Files that do not exist are held by nobody. Cost: one pass over the descriptors of all processes.
 */
void weir_lock_holders(const char *const *paths, size_t n, struct process_id *out);

/** How a lock became ours. */
enum weir_lock_end {
    WEIR_LOCK_WAS_FREE,
    WEIR_LOCK_ENDED,  /**< Its holder ended after SIGTERM. */
    WEIR_LOCK_KILLED, /**< It had to be killed. */
};

/**
 * Take the lock file `path` and end its holder: SIGTERM, and SIGKILL to one that still holds
 * it patience_ms later. Close *out_fd to give it back.
 * @return DENIED if the holder cannot be seen or signalled by this user, TIMEOUT if it outlives
 *         even the kill; errors of the file.
 */
weir_status weir_lock_take_over(const char *path, int64_t patience_ms, int *out_fd,
                                enum weir_lock_end *out_how,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
