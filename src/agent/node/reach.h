/**
 * Reach: may a task use the paths that its job names, and can its user? Paths are people's: only what the
 * server has looked up leads into Weir's own folders, whatever links there are on the way.
 */
#ifndef WEIR_AGENT_REACH_H
#define WEIR_AGENT_REACH_H

#include "agent/sandbox.h"

/**
 * Ask before the program starts, so that the answer says what to do. Call it as the task's user
 * (setfsuid) in the task's namespace. A path that is not there is for the task to complain of.
 * @return DENIED with the path, the user and the agent's option that would help.
 */
weir_status reach_check(const struct sandbox *sandbox, struct weir_arena *arena,
                        struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Ask whether each path of the sandbox leads where it says, before anything is done for the task, with a sandbox
 * or without: none but the job's own and the sandbox's folders into the state folder, none into `agent_dir`.
 * Links that change afterwards are the sandbox's to refuse.
 * @return DENIED with the path.
 */
weir_status reach_check_places(const struct sandbox *sandbox, const char *job, int64_t rank,
                               const char *agent_dir, struct weir_arena *arena,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** DENIED: this path leads into Weir's own folder. */
weir_status reach_refuse_place(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/** The error for a path that is out of the task's reach. */
weir_status reach_refuse(const struct sandbox *sandbox, const struct sandbox_path *path,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
