/**
 * Tracker: which detections of successive frames are one person or thing. One tracker a camera; one thread at a time.
 *
 * By the distance of centres in widths of the box, by motion, by size, and by the embedding where there is one: boxes of a walker do not
 * overlap from frame to frame at 10 frames/s. What is known is kept in milliseconds, not in frames: cameras change their pace.
 *
 * A frame goes in rounds. Sightings with a good score are joined to tracks, then those with a low score to tracks that are left. What
 * lies where a track is expected but does not look like it (embeddings) is nobody's yet: the second such sighting in a row becomes
 * a track of its own, and the old one waits for its own to come back. Each round takes the joining with the least sum of distances
 * in place, size and look, not the nearest pair first: two people side by side would else be torn apart by one step of either.
 *
 * What was not looked at is no sign that somebody left: of the time between two frames at most half of gone_ms counts, until it is twice
 * as long as gone_ms. So a track goes on over a gap in the frames, as of a busy machine or a camera that stumbles.
 *
 * The order of sightings in a frame does not matter.
 */
#ifndef WEIR_VISION_TRACKER_H
#define WEIR_VISION_TRACKER_H

#include "base/status.h"
#include "vision/detection.h"

#define WEIR_TRACKS_MAX 256 /**< Followed at once; of more detections the best are. */
#define WEIR_TRACK_DOUBTFUL_MAX                                                                    \
    4 /**< A track with more sightings is not doubtful: it is somebody. */

struct weir_tracker_options {
    int64_t gone_ms;     /**< A track ends when it is not seen for so long that counts. 2,000. */
    int64_t interval_ms; /**< The time that gates are stated for. 100. */
    float gate;          /**< Widths that a new track may move in an interval. 1.6. */
    /** Widths that a track with three sightings may be off its expected place after an interval; half of it more with each further
     *  one, up to 2 widths. 0.8. */
    float gate_known;
    float size_ratio;   /**< From one sighting to the next: of the square roots of areas. 1.8. */
    float low_score;    /**< Detections below take part in a second round only. 0.5. */
    float min_likeness; /**< Cosine to the mean of the track, below which it is another. 0.3. */
};

extern const struct weir_tracker_options weir_tracker_usual;

/** A detection as the tracker takes it. One with a number that is none, or with an empty box, is not followed. */
struct weir_sighting {
    struct weir_detection detection;
    /** Unit vector of `dim`; NULL: none. Give it for good frames only: two that disagree split a track. */
    const float *embedding;
};

struct weir_track {
    uint64_t id;               /**< From 1, never given again by this tracker. */
    int64_t first_ms, last_ms; /**< When it was seen, by the times of the frames. */
    uint32_t n_sightings;
    struct weir_detection last;
    float vx, vy; /**< Pixels a second. */
    /** It began where another track was expected, which has come back since. It has few sightings, and no frame has shown both: it is
     *  frames of that one that looked otherwise. */
    bool is_doubtful;
    void *of_user; /**< NULL at first; the user's. */
};

struct weir_tracker;

/** @param dim  Of embeddings; 0: there are none.
 *  @return INVALID: an option that is no number or out of its range, with its name; NOMEM. */
weir_status weir_tracker_create(const struct weir_tracker_options *options, size_t dim,
                                struct weir_tracker **out, struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted; of_user is not freed: weir_tracker_end and weir_tracker_ended come first. */
void weir_tracker_destroy(struct weir_tracker *tracker);

/** From now on embeddings are of another model: those before are forgotten, the tracks go on. @return INVALID, NOMEM: nothing has changed. */
weir_status weir_tracker_change_model(struct weir_tracker *tracker, size_t dim,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Follow one frame. Only the time from frame to frame matters: a step back is taken as no time, and time goes on from there.
 * @param out_tracks  n: the track of each sighting, NULL for one that is not followed. The tracker's, until it is taken as ended.
 * Cost: n² distances; n³ where many are near one another.
 */
void weir_tracker_step(struct weir_tracker *tracker, int64_t time_ms,
                       const struct weir_sighting *sightings, size_t n,
                       struct weir_track **out_tracks);

/** What does not count of so long a time without a frame. */
int64_t weir_tracker_blind_ms(int64_t passed_ms, int64_t gone_ms);

/** Time passes without a frame. */
void weir_tracker_wait(struct weir_tracker *tracker, int64_t time_ms);

/** All tracks end now: the camera is gone. */
void weir_tracker_end(struct weir_tracker *tracker);

/** A track that has ended and was not taken yet, oldest first; NULL: none. Valid until the next call of the tracker.
 *  Take them after each step: with WEIR_TRACKS_MAX untaken ones no new track begins. */
const struct weir_track *weir_tracker_ended(struct weir_tracker *tracker);

/** All that go on now, by id: seen in the last frame or not. @return How many. The tracker's, until the next call. */
size_t weir_tracker_tracks(struct weir_tracker *tracker, struct weir_track *const **out);

#endif
