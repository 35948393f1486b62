/** The versions of YOLO, which differ in what their outputs are. */
#ifndef WEIR_VISION_DETECTOR_YOLO_H
#define WEIR_VISION_DETECTOR_YOLO_H

#include "vision/detector_private.h"

#define YOLO_HEADS   3
#define YOLO_ANCHORS 3
#define YOLO_BINS    16 /* for each side of a box, in v8's raw heads */

struct weir_detector_yolo {
    char *version; /* NULL: guessed */
    int64_t points;
    const json_t *anchors; /* NULL: COCO's */
};

typedef weir_status (*yolo_decode_fn)(const struct detector_answer *answer, struct harvest *harvest,
                                      struct weir_error *err);

/** Rows: centre, size, objectness, perhaps points, classes. */
weir_status yolo_decode_v5(const struct detector_answer *answer, struct harvest *harvest,
                           struct weir_error *err);
/** As v5, with places and sizes by the places of three strides. */
weir_status yolo_decode_yolox(const struct detector_answer *answer, struct harvest *harvest,
                              struct weir_error *err);
/** Channels: centre, size, classes, perhaps points with a score each. */
weir_status yolo_decode_v8(const struct detector_answer *answer, struct harvest *harvest,
                           struct weir_error *err);
/** Three heads of anchors × places × (5 + classes), before the sigmoid. */
weir_status yolo_decode_v5_raw(const struct detector_answer *answer, struct harvest *harvest,
                               struct weir_error *err);
/** Three heads of 4 × 16 bins and classes, before softmax and sigmoid. */
weir_status yolo_decode_v8_raw(const struct detector_answer *answer, struct harvest *harvest,
                               struct weir_error *err);
/** Rows: x1, y1, x2, y2, score, class. */
weir_status yolo_decode_end2end(const struct detector_answer *answer, struct harvest *harvest,
                                struct weir_error *err);
/** Rows: picture, x1, y1, x2, y2, class, score. */
weir_status yolo_decode_v7_end2end(const struct detector_answer *answer, struct harvest *harvest,
                                   struct weir_error *err);
/** How many, boxes, scores, classes. */
weir_status yolo_decode_plugin(const struct detector_answer *answer, struct harvest *harvest,
                               struct weir_error *err);

/** The anchors as people write them: 3 heads of 6 numbers, width and height of each. @return false: they are not that. */
bool yolo_anchors(const json_t *json, float out[YOLO_HEADS][2 * YOLO_ANCHORS]);

#endif
