/**
 * Sources: where frames come from. A source has threads of its own, puts frames into the intake,
 * and hears of each when its decision is durable.
 *
 * What kinds there are, and their options, is in endpoint/sources.def; the code of each is
 * predict/source/NAME.c, which defines source_NAME.
 *
 *   directory  <path>/<camera>/<number>.<anything>; a file is removed when its decision is durable.
 *              Cameras in turn, each from its lowest number. When the intake is full nothing is
 *              read on: back-pressure, nothing is dropped. With n replicas a camera belongs to the
 *              replica that its name hashes to.
 *   http       POST /frames/{camera}/{number} with the picture as body, or
 *              /frames/{camera}?key=KEY where there are no numbers, answered by the decision as
 *              JSON when it is durable. 503 with Retry-After when the intake is full or no model is
 *              there yet. The same frame again: the same decision. GET /health.
 *   rtsp, mjpeg, v4l2, video
 *              A process weir-camera for each camera that is ours (camera_source.h). The newest frame
 *              wins: when the engine is behind, older ones that wait are dropped and counted. A video
 *              file at the pace "fast" is not live: it waits for the engine.
 *
 * A frame has its key for ever (intake.h): within the outbox's memory (65,536 decisions) a second picture
 * with the same key is not decided.
 */
#ifndef WEIR_PREDICT_SOURCE_H
#define WEIR_PREDICT_SOURCE_H

#include "endpoint/endpoint.h"
#include "predict/contact.h"
#include "predict/intake.h"
#include "predict/outbox.h"
#include "predict/serving.h"
#include "predict/spec.h"

#define SOURCE_WHY_BYTES 400

struct source;

struct source_config {
    const struct predict_spec *spec; /**< Borrowed, like the rest. spec->source has the options. */
    struct intake *intake;
    struct outbox *outbox;
    struct serving_slot *slot; /**< For GET /health. */
};

struct source_ops {
    /** Of the intake in front of the model, for frames of this source. */
    struct intake_limits limits;
    weir_status (*start)(const struct source_config *config, struct source **out,
                         struct weir_error *err);
    /** No new frames from now on. The intake is closed. Frames in hand are still answered. */
    void (*close)(struct source *source);
    /** After the last on_durable. Frees. */
    void (*stop)(struct source *source);
    /** How many frames can be at work together; NULL: any number. */
    size_t (*at_once)(const struct predict_spec *spec);
    /** Frames that wait at the source, as far as it knows; NULL: none can. Any thread. */
    size_t (*waiting)(struct source *source);
    /** What was given to the source and is no frame: how much of it there is now, and why the first is not
     *  (SOURCE_WHY_BYTES; "" for 0). Of a folder what lies there; of requests those of the last minute.
     *  Any thread. */
    size_t (*ignored)(struct source *source, char *why);
    /** contact_to_json of where its frames come from. Any thread. */
    json_t *(*status)(struct source *source);
    /** Its replicas share the frames by means of its own: each decides what it is given. Else each
     *  decides about the cameras that are its own (source_is_ours). */
    bool shares_itself;
};

#define WEIR_KIND(name) extern const struct source_ops source_##name;
#include "endpoint/sources.def"
#undef WEIR_KIND

/** Is a camera this replica's? The others of the pipeline have the rest, by a hash of the name; of a source
 *  that shares its frames itself every camera is everybody's. Pure. */
bool source_is_ours(const struct predict_spec *spec, const char *camera);

/** "000123.jpg" → 123; false for a name that is no frame. Pure. */
bool source_frame_number(const char *file_name, int64_t *out);

#endif
