/**
 * What a state folder must hold before the server can serve: the default project, the built-in
 * users "admin", "agent" and "worker", and a token file for each (mode 0600). A token file that is
 * missing, or whose token the database does not know, is made anew.
 */
#ifndef WEIR_SERVER_BOOTSTRAP_H
#define WEIR_SERVER_BOOTSTRAP_H

#include "base/arena.h"
#include "base/status.h"
#include "store/store.h"

/** @param out_worker_token  What tasks report with; in the arena. */
weir_status bootstrap(struct weir_store *store, const char *state_dir, struct weir_arena *arena,
                      char **out_worker_token, struct weir_error *err) WEIR_MUST_CHECK;

#endif
