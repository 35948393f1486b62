/**
 * Detectors: what they learn from, and how well they find.
 *
 * A detector's pictures are scenes (data/scenes.h), composed of the faces of the dataset and of backgrounds; its targets are what
 * vision/grid.h makes of the faces that a scene shows. With validation data the detector is measured on scenes of these faces, which
 * should be of other people, on backgrounds that none of the scenes it learns from has.
 */
#ifndef WEIR_TRAIN_DETECT_H
#define WEIR_TRAIN_DETECT_H

#include "base/json.h"
#include "data/data.h"
#include "nn/nn.h"

struct train_task;

/** A detector: make scenes of task->dataset and task->validation, in their places. @return INVALID, and what opening data gives. */
weir_status train_detect_compose(struct train_task *task, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Write the targets of image i of the net's batch, which is this sample. Nothing is written for a net with another loss.
 * @return false: what the scene shows cannot be said, and it is not to be learnt from.
 */
bool train_detect_target(struct weir_net *net, const struct weir_dataset *dataset, uint32_t i_image,
                         uint64_t sample);

/* ---- how well it finds ---------------------------------------------------------------------- */

/** Scores in so many bins, widths of faces in so many classes. */
#define TRAIN_DETECT_BINS   200
#define TRAIN_DETECT_WIDTHS 4

/** Numbers to add up over pictures and workers: pictures, faces by width, wrong detections by score, faces found by score and width. */
#define TRAIN_DETECT_COUNTS                                                                        \
    (1 + TRAIN_DETECT_WIDTHS + TRAIN_DETECT_BINS + TRAIN_DETECT_BINS * TRAIN_DETECT_WIDTHS)

/** Compare what the net said of image i with what the scene shows, and add to counts. Faces that are mostly hidden count neither
 *  way. Nothing happens for a net with another loss. @return NOMEM; what weir_scene_look gives. */
weir_status train_detect_count(struct weir_net *net, const struct weir_dataset *dataset,
                               uint32_t i_image, uint64_t sample,
                               double counts[TRAIN_DETECT_COUNTS],
                               struct weir_error *err) WEIR_MUST_CHECK;

/** How much of the faces is found where one in so many pictures has a wrong detection. */
struct train_found {
    bool is_known;                         /**< false: it is no detector. */
    double recall_1, recall_10, recall_30; /**< One wrong detection in 1, 10, 30 pictures. */
    double precision, threshold;           /**< At one in 10; threshold: of the score. */
    double by_width[TRAIN_DETECT_WIDTHS];  /**< Recall at one in 10; NaN: there was no such face. */
};

/** Pure. */
struct train_found train_detect_found(const double counts[TRAIN_DETECT_COUNTS]);

/** As metrics: "recall", "precision" … Nothing of what is no detector. */
void train_detect_write(const struct train_found *found, json_t *metrics);

#endif
