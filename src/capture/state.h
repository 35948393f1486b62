/**
 * What a snapshot shows at a moment of its span: for a page's slider. Pure: the same file and moment
 * give the same answer.
 */
#ifndef WEIR_CAPTURE_STATE_H
#define WEIR_CAPTURE_STATE_H

#include "base/json.h"
#include "capture/rows.h"

/** Of the events up to the moment, the newest are shown. */
#define WEIR_SNAPSHOT_STATE_EVENTS 200

/**
 * A new JSON object:
 *     {"time_ms", "revision", "document",
 *      "pipelines": [{"name", "type"}],
 *      "links": [{"id", "from", "to", "policy", "version", "model", "since_ms", "verdict", "rule", "actor",
 *                 "waiting": [{"version", "policy", "rule", "since_ms"}]}],
 *      "health": [the last report of each pipeline's signals],
 *      "alerts": [those that were open], "events": [newest first],
 *      "decisions": {"n", "grant", "deny", "unknown", "error", "label"}}
 * `version` is what the link had chosen by then, and null before the first choice. Times are RFC 3339.
 *
 * @return CORRUPT; INVALID if the moment is not in the span; LIMIT if what is to be shown is too much.
 */
weir_status weir_snapshot_state(const struct weir_snapshot_file *file, int64_t time_ms,
                                struct weir_arena *arena, json_t **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Parts of the span that a course has at most. */
#define WEIR_SNAPSHOT_PARTS_MAX 200

/**
 * What was decided in each of n_parts equal parts of the span, 1 to WEIR_SNAPSHOT_PARTS_MAX: a new JSON
 * list of {"time_ms": its end, "n", "grant", "deny", "unknown", "error", "label"}. The decisions are
 * read once, however many parts there are, and nothing but their numbers is kept.
 *
 * @return CORRUPT.
 */
weir_status weir_snapshot_course(const struct weir_snapshot_file *file, size_t n_parts,
                                 struct weir_arena *arena, json_t **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
