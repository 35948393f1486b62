/** What routes ask of a cluster's driver, as slow questions (api/core/slow.h): it may take seconds. */
#ifndef WEIR_API_CLUSTER_ASK_H
#define WEIR_API_CLUSTER_ASK_H

#include "base/arena.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/status.h"

#define CLUSTER_ASK_CHECK "check" /* {"missing": TEXT or null, "pools": […]} */
#define CLUSTER_ASK_GUESS "guess" /* {"driver", "options"}: with what could be found out */

/** The question, in the arena. `options` are the driver's, as they are stored. `name`: the cluster's, or NULL. */
char *cluster_ask_text(const char *what, const char *name, const char *driver,
                       const json_t *options, struct weir_arena *arena);

/** Ask it: a slow_fn; its context is the registry of drivers. A cluster that does not answer lacks something. */
weir_status cluster_ask_run(void *context, const char *question, struct weir_arena *arena,
                            char **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
