/**
 * Paths: which files and folders of its node a task needs, said to the agent, which shows a task
 * little else of Weir's state folder (agent/cell.h).
 *
 * A task's definition gets "state", the state folder, and "paths": [{"path", "access":
 * "read"|"write"}], what its own specification names: absolute paths, no address.
 */
#ifndef WEIR_FRAMEWORK_PATHS_H
#define WEIR_FRAMEWORK_PATHS_H

#include "base/kind.h"
#include "base/status.h"

#include <stdbool.h>

/**
 * May people name this path? All but Weir's own folder: there only datasets, to be read, and the
 * demo's folder.
 * @param where  "$.spec.data", for the message.
 * @return INVALID if not.
 */
weir_status weir_framework_path_check(const char *state_dir, const char *where, const char *path,
                                      bool is_writable, struct weir_error *err) WEIR_MUST_CHECK;

/** The same for every path in the specification of a job of this kind, as a user gave it; `where` is
 *  its own place, "$.spec". */
weir_status weir_framework_paths_check(const char *state_dir, const char *kind, const char *where,
                                       const json_t *spec, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Add "state" and "paths" to a task's definition.
 * @param spec      The task's own; not looked at further than to its paths. NULL: it has none.
 * @param datasets  {"name": "path"} of what it reads beside; NULL: none.
 */
void paths_describe(const struct weir_kind *kind, const char *state_dir, const json_t *spec,
                    const json_t *datasets, json_t *definition);

/** Add what it writes beside, {"name": "path"}, to a definition that was described. NULL: nothing. */
void paths_describe_outputs(const json_t *outputs, json_t *definition);

#endif
