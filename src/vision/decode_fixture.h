/** For tests of detectors: outputs of a model that found known things, made by encoding them. Only tests include this. */
#ifndef WEIR_VISION_DECODE_FIXTURE_H
#define WEIR_VISION_DECODE_FIXTURE_H

#include "base/rng.h"
#include "vision/detector.h"
#include "vision/view.h"

#define FIXTURE_THINGS_MAX 6

/** In pixels of the input: x1, y1, x2, y2. */
struct thing {
    double box[4], score, points[10];
    int class_id;
};

struct scene {
    int width, height, n_classes;
    size_t n;
    struct thing things[FIXTURE_THINGS_MAX];
};

#define FIXTURE_OUTPUTS_MAX 16

struct fixture {
    struct weir_rng *rng;
    const struct scene *scene;
    size_t n;
    struct weir_detector_output outputs[FIXTURE_OUTPUTS_MAX];
    float *values[FIXTURE_OUTPUTS_MAX];
    int64_t dims[FIXTURE_OUTPUTS_MAX][5];
};

/** One way to encode: its outputs are to be decoded as that kind. */
struct encoder {
    const char *name, *kind;
    const char *options; /**< JSON, or NULL. */
    int width, height;   /**< 0: any multiples of 32. */
    bool has_points, has_classes;
    bool is_asked; /**< The shapes alone do not tell the kind. */
    void (*encode)(struct fixture *fixture);
};

extern const struct encoder fixture_encoders[];
extern const size_t fixture_n_encoders;

/** Things that do not touch, each surer than the next, in an input that the encoder takes. */
void fixture_scene(const struct encoder *encoder, struct weir_rng *rng, struct scene *out);
void fixture_encode(const struct encoder *encoder, struct weir_rng *rng, const struct scene *scene,
                    struct fixture *out);
void fixture_fini(struct fixture *fixture);

#endif
