/**
 * Photo: where the face of a photo is, found as a camera's frame is looked at, and cut as its faces are.
 *
 * A photo that is mostly face shows it larger than a detector for cameras has learnt. Where none is found, it is looked at smaller,
 * in the middle of nothing.
 */
#ifndef WEIR_FIND_PHOTO_H
#define WEIR_FIND_PHOTO_H

#include "data/image.h"
#include "endpoint/stage/align.h"
#include "vision/face.h"

struct finder;

#define PHOTO_SURROUNDS 3

/** How much larger than the photo all is that is looked at, one after the other, until a face is found. The first is 1. */
extern const float photo_surrounds[PHOTO_SURROUNDS];

/** Where a photo lies in what is looked at. */
struct photo_place {
    float left, top, scale;
};

/** The photo in the middle of nothing. `out` is new. */
weir_status photo_surround(const struct weir_image *photo, float surround,
                           struct photo_place *out_place, struct weir_image *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** A box that was found there, in the photo. */
struct weir_box photo_place_box(const struct photo_place *place, const struct weir_box *box);

/**
 * The largest face of a photo, in the photo's pixels.
 * @param out_is_there  false: none was found; `out` says nothing then.
 * @return As finder_find; NOMEM.
 */
weir_status photo_find(struct finder *finder, const struct weir_image *photo,
                       struct weir_detection *out, bool *out_is_there,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** How "align" cuts a face for a model that takes pictures of this size. */
struct weir_face_align photo_align(const struct weir_stage_align *align, int width, int height,
                                   int channels);

#endif
