/**
 * Look: what the stages make of photos that are shown to them: how many faces, how good, and whom of the gallery they resemble.
 *
 * The stages are those of frames, up to the names; nothing is followed, decided or recorded. They run on the engine's thread
 * while no frame is at work, one photo between two frames (intake_run): a photo holds up frames for as long as one frame of its size
 * with its faces takes, and until those at work are over.
 * It is decoded on the caller's thread.
 */
#ifndef WEIR_PREDICT_LOOK_H
#define WEIR_PREDICT_LOOK_H

#include "base/json.h"
#include "predict/intake.h"
#include "predict/serving.h"

#define LOOK_NEAREST_MAX 5

/**
 * @param pictures  JSON texts: photos in base64, turned as their EXIF says.
 * @param person  Left out of the people that the photos together resemble; NULL: nobody is.
 * @param[out] out  A new reference: {pictures: [{faces, box, quality, usable, why, nearest}], nearest, threshold,
 *                  confused_from} (docs: POST /ions/{name}/look). A photo that cannot be read is one of them, which says why.
 * @return INVALID: the pipeline compares with no gallery, or what is asked is no list of texts; UNAVAILABLE: nothing is served
 *         yet; CANCELLED: the intake is closed; else as the stages.
 */
weir_status look_at(struct intake *intake, struct serving_slot *slot, const json_t *pictures,
                    const char *person, json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
