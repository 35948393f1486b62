/**
 * Farthest: of the frames whose value of a signal was compared, those whose value lies farthest from
 * training, since they were last taken. A report carries them, so that who asks which frames a drift was of
 * reads a few reports and no decisions.
 */
#ifndef WEIR_PREDICT_FARTHEST_H
#define WEIR_PREDICT_FARTHEST_H

#include "predict/intake.h"
#include "stats/histogram.h"

#include <jansson.h>

#define FARTHEST_MAX 10

struct far_frame {
    char camera[FRAME_CAMERA_BYTES];
    int64_t number, time_ms;
    double value;
    double sigmas; /**< Deviations of training from its mean. */
};

/** In caller memory; fields are private. */
struct farthest {
    double mean, stddev;
    bool is_upwards;
    size_t n;
    struct far_frame items[FARTHEST_MAX]; /**< In no order. */
};

/** @param is_upwards  Values below training's mean are not far: of distances. */
void farthest_init(struct farthest *farthest, const struct weir_histogram *baseline,
                   bool is_upwards);

/** A frame's value; one that is not finite, or of a training without deviation, has no effect. */
void farthest_add(struct farthest *farthest, const char *camera, int64_t number, int64_t time_ms,
                  double value);

/** [{"camera", "frame", "time_ms", "value", "sigmas"}], the farthest first; then it begins anew. */
json_t *farthest_take(struct farthest *farthest) WEIR_MUST_CHECK;

#endif
