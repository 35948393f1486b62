/** A kind of detector fitted to a model: by its name, or recognised. */
#ifndef WEIR_VISION_DETECTOR_FIT_H
#define WEIR_VISION_DETECTOR_FIT_H

#include "vision/detector_harvest.h"

struct detector_ports {
    const struct weir_detector_port *inputs;
    size_t n_inputs;
    const struct weir_detector_port *outputs;
    size_t n_outputs;
};

struct detector_model {
    const struct detector_ops *ops;
    struct detector_plan plan;
    size_t n_outputs;
    int channels; /**< The input's: 1 or 3. */
    bool is_planar, is_u8;
    int32_t classes[DETECTOR_CLASSES_MAX];
    size_t n_classes;
    /** The kind's options as they are written; the plan's refer to it. The model's. */
    json_t *own;
    const char *why; /**< A sentence: which kind, and by what it was recognised. */
};

/** @param arena  What the model refers to is copied there. @return As weir_detector_create; out is to be ended also then. */
weir_status detector_fit_model(const struct weir_detector_options *options,
                               const struct detector_ports *ports, struct weir_arena *arena,
                               struct detector_model *out, struct weir_error *err) WEIR_MUST_CHECK;

void detector_model_fini(struct detector_model *model);

#endif
