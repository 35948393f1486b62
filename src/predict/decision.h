/** Decision: what is recorded about one frame, and its form as JSON (docs: decision record). */
#ifndef WEIR_PREDICT_DECISION_H
#define WEIR_PREDICT_DECISION_H

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/uuid.h"
#include "predict/decide.h"
#include "predict/film.h"
#include "predict/visitors.h"
#include "vision/face.h"

#include <stdbool.h>
#include <stdint.h>

struct decision_label {
    const char *label;
    double score;
};

#define DECISION_NEAREST 5

/** Somebody whom the best frame is like. */
struct decision_near {
    const char *person;
    double score;
};

/** What the stage "track" said when it was decided. m is 0 where no rule took part: it was counted. */
struct decision_rule {
    int64_t n, m, gone_ms;
    double accept, deny;
};

/** The frames that a passage's decision rests on. */
struct decision_passage {
    const char *id; /**< Unique within the camera. */
    int64_t first_ms, last_ms;
    int64_t n_frames, n_counted, n_named; /**< Seen, compared, and those that name the person. */
    const struct decision_refusal *refused;
    size_t n_refused;
    struct visitor visitor; /**< Nobody known: did the same come before? */
    struct decision_rule rule;
    const struct decision_near *nearest; /**< Most like first. */
    size_t n_nearest;                    /**< At most DECISION_NEAREST. */
    /** Frames of it, with their pictures, which are the decision's. The best frame's is not here: it is the decision's own. */
    struct film film;
};

/** What has happened in a place (stage "count"). */
struct decision_count {
    const char *place, *what;
    const char *to; /**< NULL: it did not cross a line. */
    int64_t n;      /**< So many things are there now. */
};

/** Frames that were not compared. */
struct decision_refusal {
    const char *why;
    int64_t n;
};

struct decision {
    char id[WEIR_UUID_BYTES];
    const char *ion, *pipeline, *replica, *camera;
    int64_t frame;
    const char *key; /**< It names frame, face or passage; NULL: camera and number name it. */
    int64_t time_ms; /**< When the frame was there. */
    enum verdict verdict;
    const char *person;                  /**< Recognised; NULL if unknown. */
    const char *label;                   /**< A class, or what a number is; NULL: there is none. */
    const struct decision_label *labels; /**< The likeliest; NULL: not asked for. */
    size_t n_labels;
    double score, threshold; /**< NaN: none. */
    int64_t model_version, gallery_version, list_revision;
    int64_t
        latency_us;    /**< From the frame's last byte to the decision's hand-over to the outbox. */
    double brightness; /**< NaN: none. */
    const char *error; /**< Of a frame that cannot be decided. */
    bool has_box;      /**< It is about what was found there, in pixels of the picture. */
    struct weir_box box;
    int64_t n_boxes; /**< Found in the frame; 0: no detector looked. */
    bool has_quality;
    struct weir_face_quality quality; /**< The face's, if has_quality. */
    const char *refused; /**< Why it was not compared, or not found; a literal or NULL. */
    struct decision_passage *passage;     /**< NULL: of one frame. */
    const struct decision_count *counted; /**< NULL: it is about no place. */
    bool is_sandbox;                      /**< It is tried: the decision has no effect. */
    char image[WEIR_SHA256_TEXT_BYTES]; /**< The sum of its picture, which is kept; "": none is. */
    struct weir_arena arena;            /**< Holds texts that nothing else keeps. */
};

/** Nothing is known of it yet. */
struct decision *decision_create(void);

/** NULL is accepted. */
void decision_destroy(struct decision *decision);

/** From now on it is its own: what model and gallery call things is copied. Other texts are borrowed still. */
void decision_keep(struct decision *decision);

/** New object: {width, sharpness, yaw, pitch, roll, brightness}; null: not known. */
json_t *decision_quality_to_json(const struct weir_face_quality *quality);

/**
 * New object with every field of the record but "durable_us", which is known later, and "key" if there is none. Text
 * that is not UTF-8 becomes "?".
 */
json_t *decision_to_json(const struct decision *decision);

#endif
