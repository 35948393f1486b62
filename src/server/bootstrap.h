/**
 * What a state folder must hold before the server can serve: the default project, the built-in
 * users "admin" and "agent" with a token file for each (mode 0600), and the key that makes the
 * tokens of tasks. A token file that is missing, or whose token the database does not know, is made
 * again; the agent's token is bound to this machine's node. A file "worker.token" of a version before migration 9 is
 * taken in (job/former.h), and away.
 */
#ifndef WEIR_SERVER_BOOTSTRAP_H
#define WEIR_SERVER_BOOTSTRAP_H

#include "base/arena.h"
#include "base/status.h"
#include "store/store.h"

#define BOOTSTRAP_TASK_KEY_BYTES 32

/** @param node          This machine's node.
 *  @param out_task_key  Kept in the database, so that tasks' tokens outlive the server. */
weir_status bootstrap(struct weir_store *store, const char *state_dir, const char *node,
                      struct weir_arena *arena,
                      unsigned char out_task_key[BOOTSTRAP_TASK_KEY_BYTES],
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
