/**
 * Maintenance window of a node: from when until when it takes nothing new.
 *
 * A window is set ahead (`weir node drain NODE --at TIME --for SPAN`). Before it begins the planner
 * places no job there whose known run time, its time limit or else what such jobs took, reaches into
 * it; a job of which no run time is known may start until the window begins. What runs there when it
 * begins goes on. When it is over the node takes tasks again by itself. A window without an end lasts
 * until it is taken away.
 *
 * Pure, but for what the caller does with the node.
 */
#ifndef WEIR_JOB_NODE_WINDOW_H
#define WEIR_JOB_NODE_WINDOW_H

#include "job/job.h"

/** No window begins or ends later from now. */
#define WEIR_NODE_WINDOW_AHEAD_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)

/**
 * Give a node a window.
 *
 * @param from_ms  0: none, and no until_ms either; one that has passed is now.
 * @param until_ms 0: until it is taken away.
 * @return INVALID: it ends before it begins, or has ended; or lies too far ahead. Then the node is as it was.
 */
weir_status weir_node_window_set(struct weir_node *node, int64_t from_ms, int64_t until_ms,
                                 int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Has it a window that is not over? */
bool weir_node_window_is_ahead(const struct weir_node *node, int64_t now_ms);

/** When the window next begins or ends after now_ms; INT64_MAX: never. */
int64_t weir_node_window_next_ms(const struct weir_node *node, int64_t now_ms);

/** "closes at 2026-01-31T10:00:00.000Z until …", "is closed until …". In the arena; NULL: it has none ahead. */
char *weir_node_window_text(const struct weir_node *node, int64_t now_ms, struct weir_arena *arena);

#endif
