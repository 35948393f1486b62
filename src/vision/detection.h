/** Detections: what was found in a picture, where, and how sure that is. Pure. */
#ifndef WEIR_VISION_DETECTION_H
#define WEIR_VISION_DETECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** In pixels of the picture; x and y of its upper left corner. */
struct weir_box {
    float x, y, w, h;
};

/** Points of a face: eyes, nose, corners of the mouth; what is left in the picture comes first. x, y of each. */
#define WEIR_FACE_POINTS 5

struct weir_detection {
    struct weir_box box; /**< Not empty, inside the picture. */
    float score;         /**< 0 to 1. */
    int32_t class_id;    /**< One of the detector's classes; 0 of one that finds faces alone. */
    bool has_points;
    float points[2 * WEIR_FACE_POINTS];
};

/** Area of what both cover over the area of what either covers; 0 to 1; 0 where one is empty or has NaN. */
float weir_box_overlap(const struct weir_box *a, const struct weir_box *b);

/** Put the best first; equal ones by class, then by box and points: the order that they came in does not matter. No score is
 *  NaN. */
void weir_detections_sort(struct weir_detection *detections, size_t n);

/** Keep the best of those of one class that overlap by more than max_overlap, greedily in the order of weir_detections_sort.
 *  @return How many are left, at the front, best first. Cost: n log n, and n times what is kept. */
size_t weir_detections_suppress(struct weir_detection *detections, size_t n, float max_overlap);

/** As weir_detections_suppress, and what is kept becomes the mean of all that it stands for, by score: box and points. It keeps its
 *  own score. */
size_t weir_detections_blend(struct weir_detection *detections, size_t n, float max_overlap);

#endif
