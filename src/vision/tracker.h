/**
 * Tracker: which detections of successive frames are one person or thing. One tracker a camera; one thread at a time.
 *
 * By the distance of centres in widths of the box, by motion, by size, and by the embedding where there is one: boxes of a walker do not
 * overlap from frame to frame at 10 frames/s. What is known is kept in milliseconds, not in frames: cameras change their pace.
 */
#ifndef WEIR_VISION_TRACKER_H
#define WEIR_VISION_TRACKER_H

#include "base/status.h"
#include "vision/detection.h"

#define WEIR_TRACKS_MAX 256 /**< Of a camera at once; of more detections the best are followed. */

struct weir_tracker_options {
    int64_t gone_ms;  /**< A track that is not seen for so long has ended. 2,000. */
    float gate;       /**< Of a new track: widths it may move in a frame interval of 100 ms. 1.6. */
    float gate_known; /**< Of one with three hits. 0.8. */
    float size_ratio; /**< From one sight to the next. 1.8. */
    float low_score;  /**< Detections below take part in a second round only. 0.5. */
    float min_likeness; /**< Cosine to the mean of the track, below which it is another. 0.3. */
};

extern const struct weir_tracker_options weir_tracker_usual;

/** A detection as the tracker takes it. */
struct weir_sight {
    struct weir_detection detection;
    const float *embedding; /**< Unit vector of `dim`; NULL: none. */
};

struct weir_track {
    uint64_t id;               /**< From 1, never given again by this tracker. */
    int64_t first_ms, last_ms; /**< When it was seen. */
    uint32_t n_sights;
    struct weir_detection last;
    float vx, vy;  /**< Pixels a second. */
    void *of_user; /**< NULL at first; the user's. */
};

struct weir_tracker;

/** @param dim  Of embeddings; 0: there are none. */
weir_status weir_tracker_create(const struct weir_tracker_options *options, size_t dim,
                                struct weir_tracker **out, struct weir_error *err) WEIR_MUST_CHECK;
void weir_tracker_destroy(
    struct weir_tracker *tracker); /**< NULL is accepted; of_user is not freed. */

/**
 * Follow one frame. time_ms never goes back; a step back is taken as the last time.
 * @param out_tracks  n: the track of each sight, NULL for one that is not followed. The tracker's, until it is taken as ended.
 */
void weir_tracker_step(struct weir_tracker *tracker, int64_t time_ms,
                       const struct weir_sight *sights, size_t n, struct weir_track **out_tracks);

/** Time passes without a frame. */
void weir_tracker_wait(struct weir_tracker *tracker, int64_t time_ms);

/** A track that has ended and was not taken yet, oldest first; NULL: none. Valid until the next call of the tracker. */
const struct weir_track *weir_tracker_ended(struct weir_tracker *tracker);

/** All that go on now. @return How many. The tracker's. */
size_t weir_tracker_tracks(struct weir_tracker *tracker, struct weir_track *const **out);

#endif
