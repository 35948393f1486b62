/**
 * Face: a detection made upright for a recogniser, and judged. Pure.
 *
 * With five points it is brought onto the template that recognisers are trained with (112 × 112), by the similarity that fits best
 * (Umeyama 1991, closed form in the plane). Without them, or by choice, the box is cut with a margin.
 */
#ifndef WEIR_VISION_FACE_H
#define WEIR_VISION_FACE_H

#include "vision/detection.h"
#include "vision/view.h"

/** Where the face lies in the cut, by its box: shares of the cut's width and height. */
struct weir_face_place {
    float left, top, right, bottom;
};

struct weir_face_align {
    int width, height, channels;  /**< Of the cut. */
    bool by_box;                  /**< By the box although there are points. */
    struct weir_face_place place; /**< With the box. All 0: the whole cut. */
};

struct weir_face {
    struct weir_affine map; /**< From the cut to the picture. */
    float
        residual; /**< Of the five points on the template of 112: root mean square, in its pixels; NaN: by the box. */
};

/** The similarity that brings n points (x, y) onto others, from `to` back to `from`: of the cut to the picture.
 *  @return false: the points lie in one place. out_residual in units of `to`. */
bool weir_similarity(const float *from, const float *to, size_t n, struct weir_affine *out,
                     float *out_residual);

/** Cut a face. `out` is allocated as align says (weir_image_init) and written. */
void weir_face_cut(const struct weir_view *view, const struct weir_detection *detection,
                   const struct weir_face_align *align, struct weir_image *out,
                   struct weir_face *out_face);

/** What a face looks like, as far as a recogniser minds. */
struct weir_face_quality {
    float width; /**< Of the box, in pixels of the picture. */
    float
        sharpness; /**< Variance of the Laplacian over the inner cut, over the median of sharp faces of this width; 1: as sharp. */
    float yaw, pitch,
        roll; /**< Ratios of distances between points (roll: radians); NaN without points. */
    float brightness; /**< Mean, 0 to 255. */
    float clipped;    /**< Share of pixels that are black or white. */
    float sides;      /**< Brighter half over darker half: 1 at least. */
    float residual;   /**< struct weir_face. */
};

/** What is too bad to be decided by. 0 or NaN: any will do. */
struct weir_face_limits {
    float min_width, min_sharpness, max_yaw, min_pitch, max_pitch, max_roll;
    float min_brightness, max_brightness, max_clipped, max_sides, max_residual;
};

extern const struct weir_face_limits weir_face_limits_usual;

/** @param cut  Of weir_face_cut, at least 32 × 32. */
struct weir_face_quality weir_face_judge(const struct weir_image *cut, const struct weir_face *face,
                                         const struct weir_detection *detection);

/** NULL: good enough; else why not, in words ("too small", "blurred", "turned away" …): a literal. */
const char *weir_face_refuse(const struct weir_face_quality *quality,
                             const struct weir_face_limits *limits);

#endif
