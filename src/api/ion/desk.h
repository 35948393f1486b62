/**
 * Desk: what people ask replicas by the server, and what replicas answer: live pictures of cameras, and looks at photos.
 *
 * Three nouns. A *place* is a prediction pipeline of an ION: its replicas ask for what is wanted there (desk_poll). A *watch*
 * is a camera of a place that somebody looks at: it ends by itself when nobody asks any more, and has the newest picture that a
 * replica sent. A *look* is a question about photos: it is handed to a replica, and to another one if the first does not
 * answer; the first answer holds.
 *
 *     desk_watch(desk, place, "door-1", now, now + DESK_WATCHED_MS, err)     // a viewer asks
 *     desk_poll(desk, place, after, now, &text, &news)                       // a replica hears of it
 *     desk_show(desk, place, "door-1", live, now)                            // it sends a picture
 *     desk_live(desk, place, "door-1", true, now, &text)                     // the viewer has it
 *
 * Everything is in memory and ends with the server. Maximums: DESK_WATCHES_MAX cameras with DESK_PICTURE_MAX_BYTES each, and
 * DESK_LOOKS_MAX looks of DESK_LOOKS_MAX_BYTES together; beyond them the caller is told so. No ION keeps another from being watched: the
 * one with most watches gives one up. What replicas say is checked before
 * it is kept (api/ion/desk_said.h). Nobody waits here: the routes do, for the topics below.
 *
 * Any thread. Times are monotonic milliseconds.
 */
#ifndef WEIR_API_DESK_H
#define WEIR_API_DESK_H

#include "base/buf.h"
#include "base/json.h"
#include "base/status.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESK_WATCHES_MAX       256
#define DESK_WATCHED_MS        10000 /**< After a question. */
#define DESK_PICTURE_MAX_BYTES ((size_t)64 << 10)
#define DESK_PICTURE_KEPT_MS   30000
#define DESK_LOOKS_MAX         32
#define DESK_LOOKS_MAX_BYTES   ((size_t)64 << 20)
#define DESK_ION_SHARE         4 /**< An ION has at most this part of both. */
#define DESK_LOOK_MS           15000
#define DESK_AGAIN_MS          5000 /**< A look without an answer for so long is handed out again. */
#define DESK_SEEN_MS           600000
#define DESK_SEEN_MAX          4096

struct desk;

/** Borrowed for the call. */
struct desk_place {
    const char *ion, *pipeline;
    /** The ION's, of a viewer: an ION of another project that has got the name shows no picture of the one before. NULL of a replica. */
    const char *project;
    /** In a question about photos: replicas of this job alone get them. An ION that has got the name of a deleted one runs
     *  another job. NULL: any. */
    const char *job;
    const char *replica; /**< The replica that asks. NULL: any. */
};

struct desk_news {
    int64_t until_ms; /**< When a watch ends by itself, the first of them; 0: there is none. */
    bool has_look;
};

struct desk *desk_create(void);
void desk_destroy(struct desk *desk); /**< NULL is accepted. */

/** For which of the HTTP server's topics to wait: a camera's pictures, what is asked of a place, the answer to a look. A
 *  few share one. Pure. */
uint64_t desk_camera_topic(struct desk_place place, const char *camera);
uint64_t desk_place_topic(struct desk_place place);
uint64_t desk_look_topic(const char *id);

/**
 * Somebody watches a camera, until then at least.
 * @param[out] out_is_new  Nobody did: wake the place.
 * @return UNAVAILABLE: DESK_WATCHES_MAX are watched.
 */
weir_status desk_watch(struct desk *desk, struct desk_place place, const char *camera,
                       int64_t now_ms, int64_t until_ms, bool *out_is_new,
                       struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A picture from a replica, with what was found in it; it takes the place of the one before. Its number is set, `seq`, which
 * no other picture of any camera has.
 * @return Whether it is kept: false, nobody watches the camera.
 */
bool desk_show(struct desk *desk, struct desk_place place, const char *camera, json_t *live,
               int64_t now_ms);

/**
 * The newest picture as JSON, appended; if the viewer may not see people, without the picture and without names.
 * @return Its number; 0: there is none, or it is older than DESK_PICTURE_KEPT_MS. Then nothing is appended.
 */
int64_t desk_live(struct desk *desk, struct desk_place place, const char *camera, bool sees_people,
                  int64_t now_ms, struct weir_buf *out);

/** The number alone. */
int64_t desk_live_seq(struct desk *desk, struct desk_place place, const char *camera,
                      int64_t now_ms);

/** Has this viewer not looked at the camera for DESK_SEEN_MS? From now on they have. Beyond DESK_SEEN_MAX the oldest is
 *  forgotten. */
bool desk_is_first_view(struct desk *desk, const char *viewer, struct desk_place place,
                        const char *camera, int64_t now_ms);

/**
 * What is wanted of a place: {revision, watched: [camera], looks: [one at most]}, appended if there is news. A look that is in
 * it is handed out.
 * @param after  The revision that is known; another one, or a look, is news. @param is_asked  It is news in any case.
 * @return Whether there is news.
 */
bool desk_poll(struct desk *desk, struct desk_place place, int64_t after, bool is_asked,
               int64_t now_ms, struct weir_buf *out, struct desk_news *out_news);

/**
 * Ask for a look. desk_look_end, or desk_look_drop, ends it; until then it takes one of the places.
 * @param ask  JSON of {pictures, person}; an identifier is set.
 * @return UNAVAILABLE: as many as there may be are under way.
 */
weir_status desk_look_begin(struct desk *desk, struct desk_place place, json_t *ask,
                            char out_id[WEIR_UUID_BYTES], struct weir_error *err) WEIR_MUST_CHECK;

/** How many photos the look has; 0: there is no such look of this place without an answer. */
size_t desk_look_pictures(struct desk *desk, struct desk_place place, const char *id);

/** A replica's answer, as JSON; or why it has none. @return false: nobody waits for it. */
bool desk_look_answer(struct desk *desk, struct desk_place place, const char *id,
                      const json_t *answer, const struct weir_error *why);

bool desk_look_is_answered(struct desk *desk, const char *id);

/**
 * The answer, appended. The look is over.
 * @return What the replica said of why it has none; UNAVAILABLE, with whether a replica took it: it has not answered.
 */
weir_status desk_look_end(struct desk *desk, const char *id, struct weir_buf *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The look is over, if it is not. */
void desk_look_drop(struct desk *desk, const char *id);

#endif
