/** Reach: can a task's user use the paths outside Weir's folders that its job names? */
#ifndef WEIR_AGENT_REACH_H
#define WEIR_AGENT_REACH_H

#include "agent/cell.h"

/**
 * Ask before the program starts, so that the answer says what to do. Call it as the task's user
 * (setfsuid) in the task's namespace. A path that is not there is for the task to complain of.
 * @return DENIED with the path, the user and the agent's option that would help.
 */
weir_status reach_check(const struct cell *cell, struct weir_arena *arena,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** The error for a path that is out of the task's reach. */
weir_status reach_refuse(const struct cell *cell, const struct cell_path *path,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
