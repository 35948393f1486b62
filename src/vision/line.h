/**
 * Line: what crosses a line in a camera's picture, and in which direction. For things of any kind; pure.
 *
 * A line leads from one point to another, in shares of the picture's width and height. A thing crosses it when its point (as a
 * zone's: its centre, or where it stands) comes from one side to the other between the two ends. A person on the way from the first
 * point to the second has a right hand and a left hand: to the right is one direction, to the left the other. A point within
 * WEIR_LINE_MARGIN of the line is on neither side: what stands on it does not go to and fro.
 */
#ifndef WEIR_VISION_LINE_H
#define WEIR_VISION_LINE_H

#include "base/status.h"
#include "vision/tracker.h"

#define WEIR_LINE_MARGIN 0.01f /**< Share of the picture. */

struct weir_line {
    float ax, ay, bx, by;
};

/** @return INVALID with a sentence: a point outside the picture, or two that are one. */
weir_status weir_line_check(const struct weir_line *line, struct weir_error *err) WEIR_MUST_CHECK;

/** A thing has crossed. */
struct weir_crossing {
    uint64_t track;
    bool is_right; /**< To the right. */
};

struct weir_crossings;

/** @return As weir_line_check; NOMEM. */
weir_status weir_crossings_create(const struct weir_line *line, bool is_by_foot,
                                  struct weir_crossings **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void weir_crossings_destroy(struct weir_crossings *crossings); /**< NULL is accepted. */

/**
 * One frame.
 * @param tracks  All that go on, by id, at most WEIR_TRACKS_MAX are looked at; one that is missing is forgotten.
 * @param out  Valid until the next call. @return How many have crossed, by id.
 */
size_t weir_crossings_step(struct weir_crossings *crossings, int width, int height,
                           struct weir_track *const *tracks, size_t n,
                           const struct weir_crossing **out);

#endif
