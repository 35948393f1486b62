/** What is found in all tiles of a picture; vision/detector.c owns it. */
#ifndef WEIR_VISION_DETECTOR_HARVEST_H
#define WEIR_VISION_DETECTOR_HARVEST_H

#include "vision/detector_private.h"
#include "vision/view.h"

#define DETECTOR_CLASSES_MAX 256

/** A part of the picture: where pixels of the input come from. */
struct detector_tile {
    struct weir_affine map; /**< It does not turn. */
    bool goes_on[4];        /**< Does the picture go on to the left, above, to the right, below? */
    /** In pixels of the input: what comes so near to such a side is cut off by it. */
    float margin;
};

struct harvest {
    struct weir_detection *items; /**< WEIR_DETECTIONS_MAX; when they are all taken, a heap. */
    size_t n;
    float threshold;
    int width, height; /**< The input's. */
    const struct detector_tile *tile;
    int32_t classes[DETECTOR_CLASSES_MAX]; /**< Those that are wanted; none: all. */
    size_t n_classes;
};

#endif
