/**
 * Cameras of IONs: a view over the document, which names them, and the last reports of its replicas (ion/replica.h), which say how
 * each does. There is no row of a camera; what it decided lately is counted with each decision (migration 0084).
 *
 * A camera *sees* while its frames come, is *unwell* if they come and are dark, frozen, covered …, or its clock is wrong, and is
 * *lost* since the last frame until the next, however often it is tried. Before the first frame and before anything has failed it is
 * *connecting*. It is *unknown* if its replica does not report, or if only decisions name it (sources of files and requests have no
 * list of cameras).
 */
#ifndef WEIR_ION_CAMERA_H
#define WEIR_ION_CAMERA_H

#include "base/arena.h"
#include "base/record.h"
#include "ion/ion_step.h"
#include "store/store.h"

#include <stdint.h>

/** Decisions are counted over this time, in minutes: the present one and those before it. */
#define WEIR_CAMERA_RECENT_MIN 30

/** So many that its document does not name are listed for an ION: those with the first names. */
#define WEIR_CAMERAS_DECIDED_MAX 1000

struct weir_ion_camera {
    char *id; /**< "ION:PIPELINE:CAMERA" */
    char *project, *ion, *pipeline, *name;
    char *kind;       /**< The source's. */
    char *replica;    /**< It takes the frames; NULL: none reports the camera. */
    char *mode;       /**< The ION's. */
    char *state;      /**< "sees", "unwell", "lost", "connecting" or "unknown". */
    int64_t since_ms; /**< When that began; 0: not known. */
    char *error;      /**< Why it was lost, in its own words; NULL: it is not, or does not say. */
    char *cure;       /**< What to do; NULL: nothing. */
    char *health;     /**< JSON: what is not well, a list of names; "[]": nothing. */
    double fps;       /**< Frames a second that are taken; NaN: not known. */
    /** Frames a second that the document asks for, else that the camera sends; NaN: not known. */
    double fps_expected;
    int64_t width, height;    /**< WEIR_INT_NONE: not known; so for the next two. */
    int64_t age_ms;           /**< How old its newest frame was when it was reported. */
    int64_t clock_off_ms;     /**< Its clock is ahead by so much. */
    char *codec;              /**< NULL: not known. */
    int64_t frames;           /**< Since the replica started, as all counts. */
    int64_t dropped;          /**< The replica was behind. */
    int64_t damaged, lost;    /**< Not to be decoded; packets that did not come. */
    int64_t n_decided;        /**< In the last WEIR_CAMERA_RECENT_MIN minutes. */
    int64_t n_unknown;        /**< Among these, those that knew nobody. */
    int64_t last_decision_ms; /**< By the ION, about a camera with this name; 0: there is none. */
    int64_t reported_ms;      /**< 0: never. */
    /* For alerts (watch/cameras.h). */
    /** Since when it gives no frames; 0: it does, or is a file that is over: that has given all. */
    int64_t lost_ms;
    int64_t unwell_ms; /**< Since when it is unwell; 0: it is not. */
    /** It may be so for so long, by the source's options; 0: for ever. */
    int64_t lost_after_ms, unwell_after_ms;
};

extern const struct weir_resource weir_ion_camera_resource;

/**
 * The cameras that an ION's document names, in its order, without what is counted. Pure.
 *
 * @param since_ms  Replicas could report since then: silence before it is none (0: always).
 * @param out  Text in the arena, or the state's.
 * Cost: each source and each report is parsed once.
 */
void weir_ion_cameras(const struct weir_ion_state *state, int64_t now_ms, int64_t since_ms,
                      struct weir_arena *arena, struct weir_ion_camera **out, size_t *out_n);

/**
 * The same with those behind them that only decisions of the last WEIR_CAMERA_RECENT_MIN minutes name, and with what is counted.
 * Cost: some 32 rows a camera, by a key; never by how many decisions there are.
 */
weir_status weir_ion_cameras_load(struct weir_txn *txn, const struct weir_ion_state *state,
                                  int64_t now_ms, struct weir_arena *arena,
                                  struct weir_ion_camera **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** What to do about a camera that was lost with this error. Static; NULL: nothing is known that helps. Pure.
 *  @param cause  Name of the status that the error has; NULL: not known. */
const char *weir_camera_cure(const char *cause, const char *error);

/** What a replica calls a health (vision/condition.h), for people: "black" is "dark". Static; NULL: well, or no health. */
const char *weir_camera_health(const char *reported);

/** What to do about a health, by its name for people. Static; NULL: it is none. */
const char *weir_camera_health_cure(const char *health);

#endif
