/**
 * Detector: from a picture to a model's input, and from the model's outputs to detections. The model itself is run by the caller.
 *
 *     weir_detector_create(options, ports, …, &detector, err)     which kind, and do the ports fit it
 *     n = weir_detector_look(detector, &view)                     into how many inputs (tiles) does the picture go
 *     for each i < n:
 *         weir_detector_put(detector, i, input)                   the model's input for tile i
 *         … the model is run …
 *         weir_detector_take(detector, i, outputs, err)           its outputs are decoded
 *     n_found = weir_detector_found(detector, &found)             of the picture: overlaps removed, best first
 *
 * What kinds of outputs there are is in vision/detectors.def; each is one file, vision/detector/NAME.c. A kind says how outputs
 * become boxes, and what the input's defaults are (order of colours, scale, mean, fit, padding); options override these.
 * One thread at a time.
 */
#ifndef WEIR_VISION_DETECTOR_H
#define WEIR_VISION_DETECTOR_H

#include "base/status.h"
#include "vision/detection.h"
#include "vision/detectors.h"

struct weir_view;

/** More boxes than this of one picture are not looked at: the best are kept. */
#define WEIR_DETECTIONS_MAX 1000

/** Parts that a picture is looked at in, at most. */
#define WEIR_DETECTOR_TILES_MAX 64

/** Side of an input of free size, at most. */
#define WEIR_DETECTOR_SIDE_MAX 2048

/** A tensor that goes into or comes out of the model. -1: a free dimension. Texts are borrowed. */
struct weir_detector_port {
    const char *name;
    const int64_t *dims;
    size_t rank;
    bool is_u8; /**< An input takes bytes; else f32. */
};

/** An output's numbers, as f32. */
struct weir_detector_output {
    const char *name;
    const int64_t *dims;
    size_t rank;
    const float *values;
};

/** What is looked for, by whatever kind. */
struct weir_detector_options {
    const char *kind; /**< NULL: recognised by names and shapes of the outputs. */
    /** An object of the kind's options and of the registry's common ones; NULL: defaults. Borrowed by create. */
    const json_t *of_kind;
    float threshold; /**< NaN: the kind's. */
    float overlap;   /**< NaN: the kind's. */
    /** The input's, where the model leaves it free; 0: by min_size, and without it so that the picture's longer side has 640. */
    int32_t width, height;
    /** Least width of what is to be found, in pixels of the picture; 0: no wish. */
    int32_t min_size;
    /** Parts that a picture may be looked at in to find it, beside the whole; 0, 1: the whole alone. */
    int32_t tiles_max;
};

struct weir_detector;

/**
 * @param inputs   Of the model; the first takes the picture, N×C×H×W or N×H×W×C.
 * @param out_why  Which kind was taken and by what it was recognised: a sentence, the detector's.
 * @return INVALID with what does not fit; UNSUPPORTED: no kind is recognised, with the outputs' shapes, or the model takes
 *         something beside the picture; NOMEM.
 */
weir_status weir_detector_create(const struct weir_detector_options *options,
                                 const struct weir_detector_port *inputs, size_t n_inputs,
                                 const struct weir_detector_port *outputs, size_t n_outputs,
                                 struct weir_detector **out, const char **out_why,
                                 struct weir_error *err) WEIR_MUST_CHECK;
void weir_detector_destroy(struct weir_detector *detector); /**< NULL is accepted. */

/** Begin a picture, borrowed until weir_detector_found; it has pixels. @return In how many tiles it is looked at: 1 at least. The
 *  whole picture is tile 0. */
size_t weir_detector_look(struct weir_detector *detector, const struct weir_view *view);

/** Shape of the input for this picture: 1, and channels, height, width in the model's order. Valid after weir_detector_look. */
void weir_detector_shape(const struct weir_detector *detector, int64_t dims[4]);

/** Write tile i as the model's input: f32 or bytes, as the port says. */
void weir_detector_put(struct weir_detector *detector, size_t i, void *input);

/** Decode what the model said of tile i: all its outputs, in the order that create saw.
 *  @return INVALID: the shapes are not those of the kind; what other tiles gave stays. */
weir_status weir_detector_take(struct weir_detector *detector, size_t i,
                               const struct weir_detector_output *outputs, size_t n_outputs,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** End the picture: overlaps are removed, then boxes clipped. @return How many were found, best first; the detector's, until the
 *  next look. */
size_t weir_detector_found(struct weir_detector *detector, const struct weir_detection **out);

#endif
