/**
 * Paths: which files and folders of its node a task needs, said to the agent, which shows a task
 * little else of Weir's state folder (agent/sandbox.h).
 *
 * A task's definition gets "state", the state folder, "state_id", its identity, "paths": [{"path", "access": "read"|"write"}],
 * what its own specification names (absolute paths, no address), "manifests": {path: blob}, the lists of files of
 * datasets among them, and "folders": what of the state
 * folder beside its job's own it may see: its datasets. The server alone says which: people name
 * datasets by name, which it looks up among those that they may see.
 */
#ifndef WEIR_FRAMEWORK_PATHS_H
#define WEIR_FRAMEWORK_PATHS_H

#include "base/kind.h"
#include "base/status.h"

#include <stdbool.h>

struct weir_launch_job;

/** Whose paths they are. Text is borrowed. */
struct weir_reach {
    const char *state_dir;
    const char *project;    /**< Of the job; the demo's folder is for the project "default". */
    const json_t *datasets; /**< {"name": "path"} that the server has looked up, to be read; NULL:
                                 none, as where people name paths. */
};

/**
 * May this path be named? Not with "..", and nothing of Weir's own folder but the datasets of the
 * reach, as they stand there, and the demo's folder. Links are the agent's to look at (agent/node/reach.h).
 * @param where  "$.spec.data", for the message.
 * @return INVALID if not.
 */
weir_status weir_framework_path_check(const struct weir_reach *reach, const char *where,
                                      const char *path, bool is_writable,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** The same for every path in the specification of a job of this kind; `where` is its own place,
 *  "$.spec". */
weir_status weir_framework_paths_check(const struct weir_reach *reach, const char *kind,
                                       const char *where, const json_t *spec,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** Call `fn` for every absolute path in such a specification. */
weir_status weir_framework_paths_walk(const char *kind, const char *where, const json_t *spec,
                                      weir_option_path_fn fn, void *context,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Add "state", "paths" and "folders" to a task's definition.
 * @param spec  The task's own; not looked at further than to its paths. NULL: it has none.
 */
void paths_describe(const struct weir_kind *kind, const struct weir_launch_job *job,
                    const json_t *spec, json_t *definition);

/** Add what it writes beside, {"name": "path"}, to a definition that was described. NULL: nothing. */
void paths_describe_outputs(const json_t *outputs, json_t *definition);

#endif
