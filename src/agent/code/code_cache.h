/**
 * Code cache: what jobs of a project brought along and made on this node, for its next jobs.
 *
 *     AGENT_DIR/cache/PROJECT/blobs/SHA256    files of folders (base/tree.h); the agent's alone, and gone
 *                                             with the next boot
 *     AGENT_DIR/cache/PROJECT/python/KEY      environments with Python packages, made by tasks of the
 *                                             project, which see this folder in their sandboxes and may write
 *                                             into it; KEY.lock is held by those that use one
 *
 * Each project has its own, so that no task learns what another project's have fetched. Nothing in it is
 * the only copy: it is kept within its bounds by code_cache_sweep, which each user of a cache calls: once in
 * ten minutes it looks at those of all projects, and at once after much was fetched. Tasks may have put
 * anything into the folder of environments, so that is also bounded by its size: beyond it all goes that no
 * task holds. What no task has used for CODE_CACHE_KEPT_S goes with its project's folder.
 */
#ifndef WEIR_AGENT_CODE_CACHE_H
#define WEIR_AGENT_CODE_CACHE_H

#include "base/arena.h"
#include "base/status.h"
#include "client/client.h"

#include <stdint.h>

#define CODE_CACHE_BLOBS_BYTES ((int64_t)4 << 30) /* a project's bound */
#define CODE_CACHE_PYTHONS     8                  /* environments that nobody uses, of a project */
#define CODE_CACHE_PYTHON_BYTES                                                                    \
    ((int64_t)40 << 30) /* a project's bound; nor more than half of the disk's rest */
#define CODE_CACHE_KEPT_S     ((int64_t)30 * 24 * 3600)
#define CODE_CACHE_SWEEP_S    600
#define CODE_CACHE_MUCH_BYTES ((int64_t)256 << 20)

struct code_cache {
    const char *dir;        /**< AGENT_DIR/cache/PROJECT */
    const char *blobs_dir;  /**< dir/blobs */
    const char *python_dir; /**< dir/python */
    int64_t fetched_bytes;  /**< Since the last sweep by this process. */
};

/**
 * Make the folders of a project, where they are missing.
 * @param task_dir  The attempt's folder, AGENT_DIR/tasks/KEY.
 * @return INVALID for a project that is no name; IO.
 */
weir_status code_cache_open(const char *task_dir, const char *project, struct weir_arena *arena,
                            struct code_cache *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A blob's file, fetched if it is not there.
 * @param bytes   Its size, which is compared; -1: whatever it has.
 * @param out_fd  To read it; the caller's.
 * @return CORRUPT if its size is another; as weir_client_blob_get.
 */
weir_status code_cache_get(struct code_cache *cache, struct weir_client *client, const char *sha256,
                           int64_t bytes, int *out_fd, struct weir_error *err) WEIR_MUST_CHECK;

/** Keep the bounds, if it is time. `now_s`: seconds since 1970. Errors are logged. */
void code_cache_sweep(struct code_cache *cache, int64_t now_s);

#endif
