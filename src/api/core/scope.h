/**
 * Scope: what the token of a task's attempt, or of a node's agent, may reach of what its role may
 * call. People's tokens have no scope.
 *
 * A route says by its `owns` (route/route.h) what of the request must be the caller's own. A
 * route that says nothing is closed to tasks and agents, so that a new one is not open by
 * mistake.
 */
#ifndef WEIR_API_SCOPE_H
#define WEIR_API_SCOPE_H

#include "api/core/call.h"

/** Is the route one for the caller's kind at all? Before the body is looked at. @return DENIED. */
weir_status api_check_open(const struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** After the role was checked and the body parsed. @return DENIED; NOT_FOUND for an attempt that
 * was not placed on the agent's node. */
weir_status api_check_scope(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

#endif
