/**
 * Passages: people and things that go through each camera's picture, followed over frames, and decided once.
 *
 *     passages_open(path, outbox, intake)            // people who were there when the process before ended
 *     passages_step(passages, rules, at, err)        // the stage "track": at->due are decided now
 *     passages_wait(passages, at)                    // the same while no frame comes
 *     passages_end_due(passages, at)                 // after the stage "decide"
 *     passages_close(passages)
 *
 * A passage is decided as soon as its frames name somebody for sure (vision/evidence.h), else when it is over: when nobody was seen for
 * gone_ms, in the time that counts (vision/tracker.h). A doubtful track that names nobody for sure is not decided: it
 * is a part of the passage that was expected where it was. Time goes on by the clock for a camera that has fallen silent (none of its frames waits in the intake), at each step of another camera, and at each passages_wait. It outlives
 * a change of the serving: names are kept as text, and embeddings of the model before are forgotten.
 *
 * A person is in a camera's picture once. A person is decided there, and a frame of another track names the same person within
 * gone_ms of the last frame that did: that is the same passage, and it is not decided again. This holds over a kill, too: the person
 * is written to a file before the decision is put into the outbox, and the file is at most a second old. The next process reads it, keeps
 * persons with a durable decision, and counts their time from the camera's first frame on, if the file is not older than
 * PASSAGES_AWAY_MAX_MS.
 *
 * A passage keeps a film (film.h) until it is decided: what is shipped with the decision is what was there then. The frames of somebody
 * who was known at once and went on walking are not in it.
 *
 * There are at most PASSAGES_CAMERAS_MAX cameras: a further one takes the place of the one that has been silent for longest, and the
 * passages of that one end. One thread, the engine's.
 */
#ifndef WEIR_PREDICT_PASSAGE_H
#define WEIR_PREDICT_PASSAGE_H

#include "predict/film.h"
#include "predict/outbox.h"
#include "predict/stage.h"
#include "predict/visitors.h"
#include "vision/evidence.h"
#include "vision/tracker.h"

#define PASSAGES_CAMERAS_MAX 256
#define PASSAGES_AWAY_MAX_MS 60000
#define PASSAGE_ID_BYTES     48

struct passages;

/** What the stage "track" says. */
struct passage_rules {
    int64_t gone_ms; /**< For the tracker. */
    struct weir_evidence_options evidence;
    bool keeps_visitors; /**< visitors.h */
};

/** One that is to be decided, with what its frames say. */
struct passage {
    char id[PASSAGE_ID_BYTES];
    char camera[FRAME_CAMERA_BYTES];
    int64_t first_ms, last_ms;
    int64_t n_frames, n_counted, n_named;
    bool is_known;       /**< `best` names it; else nobody is known. */
    struct finding best; /**< The best of the person, or of all; the name is the passage's. */
    struct weir_box box; /**< The best picture's. */
    int64_t n_boxes;     /**< Found in its frame. */
    struct weir_face_quality quality; /**< The best picture's; width 0: it was not judged. */
    double brightness;
    struct film film; /**< Until it is decided; the stage that decides takes the pictures. */
    float *embedding; /**< The best frame's that has one, dim floats; NULL: none has. */
    size_t dim;
    char embedder[WEIR_SHA256_TEXT_BYTES]; /**< The blob of the model that made it. */
    const struct decision_refusal *refused;
    size_t n_refused;
    struct visitor visitor;     /**< Nobody is known: did the same person come before? */
    struct passage_rules rules; /**< That its last frame was judged by. */
};

/** @param path  The file; beside it lies that of visitors, PATH.visitors. NULL: nothing is kept over the process's end.
 *  @param outbox, intake  Borrowed. */
struct passages *passages_open(const char *path, struct outbox *outbox, struct intake *intake);
void passages_close(
    struct passages *passages); /**< NULL is accepted; passages that are not decided are not. */

/** Follow the objects of a frame. at->due is filled with passages that are to be decided now, of any camera. */
weir_status passages_step(struct passages *passages, const struct passage_rules *rules,
                          struct stage_frame *at, struct weir_error *err) WEIR_MUST_CHECK;

/** No frame has come: at->due is filled with passages that are over. */
void passages_wait(struct passages *passages, struct stage_frame *at);

/** All that are followed in a camera's picture now, by id: seen in its last frame or not. @return How many. Valid until the next step. */
size_t passages_tracks(const struct passages *passages, const char *camera,
                       struct weir_track *const **out);

/** What identifies the passage of a track; "": none does yet. */
const char *passages_id(const struct weir_track *track);

/** Is somebody there, so that time must go on? */
bool passages_are_on(const struct passages *passages);

/** Has the camera a passage that is not decided? */
bool passages_are_undecided(const struct passages *passages, const char *camera);

/** The frame is over: what was due is decided. */
void passages_end_due(struct passages *passages, struct stage_frame *at);

/** "passage/CAMERA/ID", at most FRAME_KEY_BYTES with its end. Returns out. */
const char *passage_key(const struct passage *passage, char out[FRAME_KEY_BYTES]);

#endif
