/**
 * Zone: a part of a camera's picture, and what is in it: how many of each class, since when, and
 * what is worth saying of it. For things of any kind; pure.
 *
 * A zone is a polygon, in shares of the picture's width and height. A thing is in the zone when its
 * point is: the centre of its box, or where it stands (the middle of the lower edge). It has entered
 * when it has been in for enter_ms, and left when it has been out or unseen for leave_ms: somebody who
 * stands on the line does not come and go.
 *
 *     weir_occupancy_create(&options, &occupancy, err)
 *     each frame:  weir_tracker_step(…); weir_tracker_tracks(…, &tracks);
 *                  n = weir_occupancy_step(occupancy, time_ms, width, height, tracks, n, &events)
 */
#ifndef WEIR_VISION_ZONE_H
#define WEIR_VISION_ZONE_H

#include "base/status.h"
#include "vision/tracker.h"

#define WEIR_ZONE_POINTS    32
#define WEIR_ZONE_CLASSES   16
#define WEIR_OCCUPANCY_ALL  (-1)
#define WEIR_OCCUPANCY_NONE (-1) /**< A limit that is not set. */

/** A polygon; its last point is joined to its first. No points: the whole picture. */
struct weir_zone {
    uint32_t n_points;
    float points[2 * WEIR_ZONE_POINTS]; /**< x, y of each, 0 to 1. */
};

/** @return INVALID with a sentence: one or two points, too many, one outside the picture, no area. */
weir_status weir_zone_check(const struct weir_zone *zone, struct weir_error *err) WEIR_MUST_CHECK;

/** By the even-odd rule, where a polygon crosses itself. A point on an edge that two zones share is in one of them. */
bool weir_zone_has(const struct weir_zone *zone, float x, float y);

/** The point that stands for a thing: x, y in shares of the picture. */
void weir_zone_point(const struct weir_detection *detection, bool is_by_foot, int width, int height,
                     float out[2]);

/** The least rectangle around it, in shares. */
struct weir_box weir_zone_bounds(const struct weir_zone *zone);

struct weir_occupancy_options {
    struct weir_zone zone;
    bool is_by_foot; /**< Where it stands decides; else its centre. */
    uint32_t n_classes;
    int32_t classes[WEIR_ZONE_CLASSES]; /**< That count; none: all. */
    int64_t enter_ms, leave_ms;         /**< 300, 1,000. */
    int32_t over, under; /**< More or fewer than this are said; WEIR_OCCUPANCY_NONE. */
    int64_t settle_ms;   /**< For so long the number must be beyond a limit, or within. 1,000. */
    int64_t long_ms;     /**< One that is in for longer is said, once; 0: never. */
};

extern const struct weir_occupancy_options
    weir_occupancy_usual; /**< The whole picture, no limits. */

enum weir_occupancy_what {
    WEIR_OCCUPANCY_ENTERED,
    WEIR_OCCUPANCY_LEFT, /**< inside_ms: how long it was in. */
    WEIR_OCCUPANCY_LONG, /**< It is in for longer than long_ms. */
    WEIR_OCCUPANCY_OVER,
    WEIR_OCCUPANCY_UNDER,
    WEIR_OCCUPANCY_WITHIN, /**< No limit is passed any more. */
};

struct weir_occupancy_event {
    enum weir_occupancy_what what;
    uint64_t track;    /**< ENTERED, LEFT, LONG: its id; else 0. */
    int32_t class_id;  /**< The track's; else WEIR_OCCUPANCY_ALL. */
    int32_t n_inside;  /**< Once the event has taken place. */
    int64_t inside_ms; /**< LEFT, LONG. */
};

struct weir_occupancy;

/** @return INVALID: weir_zone_check, or a time or limit that is out of its range; NOMEM. */
weir_status weir_occupancy_create(const struct weir_occupancy_options *options,
                                  struct weir_occupancy **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void weir_occupancy_destroy(struct weir_occupancy *occupancy); /**< NULL is accepted. */

/**
 * One frame. A step back of the time is taken as no time.
 * @param width, height  Of the picture that boxes are in pixels of.
 * @param tracks  All that go on (weir_tracker_tracks), each id once; more than WEIR_TRACKS_MAX are not looked at, nor
 *  new ones while twice as many are in or about to leave.
 * @param out  What has happened: those that left, entered or stay too long, by id, then a limit. Valid until the next call.
 * @return How many events.
 */
size_t weir_occupancy_step(struct weir_occupancy *occupancy, int64_t time_ms, int width, int height,
                           struct weir_track *const *tracks, size_t n,
                           const struct weir_occupancy_event **out);

/** How many of a class are in now; WEIR_OCCUPANCY_ALL: of all. */
int32_t weir_occupancy_count(const struct weir_occupancy *occupancy, int32_t class_id);

/** Is nobody in, or about to be, and no limit about to be said? Then time alone changes nothing. */
bool weir_occupancy_is_settled(const struct weir_occupancy *occupancy);

/** Since when a track is in, in ms before the last step; -1: it is not in. */
int64_t weir_occupancy_inside_ms(const struct weir_occupancy *occupancy, uint64_t track);

#endif
