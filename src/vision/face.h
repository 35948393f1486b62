/**
 * Face: a detection made upright for a recogniser, and judged. Pure.
 *
 * With five points it is brought onto the template that recognisers are trained with (112 × 112), by the similarity that fits best
 * (Umeyama 1991, closed form in the plane). Without them, or by choice, the box is cut.
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
    int width, height, channels;  /**< The cut's. */
    bool by_box;                  /**< By the box although there are points. */
    struct weir_face_place place; /**< With the box. All 0, or not a rectangle: the whole cut. */
};

struct weir_face {
    struct weir_affine map; /**< From the cut to the picture. */
    /** From the template of 112 × 112 to the cut: weir_face_judge looks at this. */
    struct weir_affine norm;
    /** What is left between the five points and the template: root mean square, in its pixels; NaN: cut by the box. */
    float residual;
};

/** The similarity (turned, scaled, moved; never mirrored) that brings n points (x, y) onto others with the least squares.
 *  @param out  From `to` back to `from`: of the cut to the picture.
 *  @param out_residual  Root mean square of what is left, in units of `to`.
 *  @return false: the points lie in one place, or are no numbers; nothing is written. */
bool weir_similarity(const float *from, const float *to, size_t n, struct weir_affine *out,
                     float *out_residual);

/**
 * Where a face is cut. A cut of another size than 112 × 112 shows the same, scaled by its shorter side, in its middle. Pixels are as
 * OpenCV's warpAffine takes them for 112 × 112: points and template count from the centre of the first pixel.
 * Points that lie in one place are as none.
 */
struct weir_face weir_face_find(const struct weir_detection *detection,
                                const struct weir_face_align *align);

/** Around the picture a cut is black, as in what recognisers are trained with. */
#define WEIR_FACE_AROUND 0

/** weir_face_find, and cut it. `out` is allocated as align says (weir_image_init) and written; black around the picture. */
void weir_face_cut(const struct weir_view *view, const struct weir_detection *detection,
                   const struct weir_face_align *align, struct weir_image *out,
                   struct weir_face *out_face);

/** What a face looks like, as far as a recogniser minds. */
struct weir_face_quality {
    float width; /**< The box's, in pixels of the picture. */
    /** Variance of the Laplacian over the inner cut, over the median of sharp faces as wide as the cut shows it; 1: as sharp. */
    float sharpness;
    /** By distances between points; NaN without points. yaw: of the nose off the eyes' middle, over the distance of the eyes.
     *  pitch: of the nose below the eyes, over that of the mouth. */
    float yaw, pitch;
    float roll;       /**< Radians that the eyes are turned, clockwise; NaN without points. */
    float brightness; /**< Mean, 0 to 255. */
    float clipped;    /**< Share of pixels that are black or white: below 10 or above 245. */
    float sides;      /**< Brighter half over darker half: 1 at least. */
    float residual;   /**< struct weir_face. */
};

/** What is too bad to be decided by. 0 or NaN: any will do. */
struct weir_face_limits {
    float min_width, min_sharpness, max_yaw, min_pitch, max_pitch, max_roll;
    float min_brightness, max_brightness, max_clipped, max_sides, max_residual;
};

extern const struct weir_face_limits weir_face_limits_usual;

/** @param cut  Of weir_face_cut, in grey or colour, at least 32 × 32. Cost: a cut of 112 × 112. */
struct weir_face_quality weir_face_judge(const struct weir_image *cut, const struct weir_face *face,
                                         const struct weir_detection *detection);

/** NULL: good enough; else why not, in words ("too small", "blurred", "turned away" …): a literal. What is not known is no reason. */
const char *weir_face_refuse(const struct weir_face_quality *quality,
                             const struct weir_face_limits *limits);

#endif
