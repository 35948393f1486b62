/**
 * What a kind of detector is (vision/detector/NAME.c), and what it makes boxes with.
 *
 * A kind fits itself to a model once: it finds which output is what, its roles. Then it decodes each answer: it looks at scores
 * first, and makes boxes of those only that reach the threshold, in pixels of the model's input. It removes no overlaps, and clips
 * nothing: that is done once, for all tiles. Numbers of a model are anything: NaN, infinite, of the wrong shape.
 */
#ifndef WEIR_VISION_DETECTOR_PRIVATE_H
#define WEIR_VISION_DETECTOR_PRIVATE_H

#include "vision/detector.h"
#include "vision/detectors.h"
#include "vision/view.h"

#include <math.h>

#define DETECTOR_RANK_MAX    8
#define DETECTOR_OUTPUTS_MAX 32
#define DETECTOR_ROLES_MAX   16

enum detector_fit {
    DETECTOR_STRETCH, /**< To the input's shape. */
    DETECTOR_CENTRE,  /**< By one factor, in the middle, padded on both sides. */
    DETECTOR_CORNER,  /**< By one factor, upper left, padded right and below. */
};

/** How the model's input is made: (pixel · scale − mean) / std, in the order of the input's channels. */
struct detector_look {
    bool is_bgr;
    float scale, mean[3], std[3];
    enum detector_fit fit;
    float pad;   /**< A pixel, 0 to 255. */
    int divisor; /**< Sides are multiples of it. */
};

/** An output of the model. */
struct detector_port {
    const char *name;
    int64_t dims[DETECTOR_RANK_MAX]; /**< -1: free. */
    size_t rank, index;              /**< index: its place among all of the model's. */
};

/** A kind that is fitted to a model. */
struct detector_plan {
    const void *options; /**< The kind's. */
    bool is_asked;       /**< The kind is named: what shapes leave open is taken as it wants it. */
    struct detector_port outputs[DETECTOR_OUTPUTS_MAX];
    size_t n_outputs;
    int width, height; /**< The input's; 0: free. */
    /* What fit finds: */
    size_t roles[DETECTOR_ROLES_MAX]; /**< Which output is which; the kind's own order. */
    size_t n_roles;
    int variant;         /**< Which of the kind's, where it has several. */
    int32_t first_class; /**< Number that the outputs give to class 0. */
    struct detector_look look;
    float threshold, overlap; /**< overlap NaN: nothing overlaps. */
    char why[192];            /**< By what it was recognised. */
};

/** One answer of the model. */
struct detector_answer {
    const struct detector_plan *plan;
    int width, height; /**< The size of the input that it answers. */
    float threshold;
    const struct weir_detector_output *roles[DETECTOR_ROLES_MAX];
};

struct harvest;

struct detector_ops {
    const char *takes; /**< Which outputs: "12 outputs: cls_8, …". */
    struct detector_look look;
    float threshold, overlap;
    float least; /**< Width in pixels of the input from which on things are found. */
    bool blends; /**< What overlaps becomes its mean. */
    /** Are these the outputs of the kind? It begins with the kind's defaults, and may change them. */
    bool (*fit)(struct detector_plan *plan);
    /** @return INVALID where a shape does not fit the input. */
    weir_status (*decode)(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err);
};

/* ---- for fit --------------------------------------------------------------------------------- */

/** Is it this number, or free and the kind is asked for? */
bool detector_dim_is(const struct detector_plan *plan, int64_t dim, int64_t wanted);

/** Does output i have this rank (0: any), and this last dimension? */
bool detector_port_is(const struct detector_plan *plan, size_t i, size_t rank, int64_t last);

/** The first output with a name that has one of the words (parted by "|", without case); n_outputs: none. */
size_t detector_port_named(const struct detector_plan *plan, const char *words);

/** Outputs in the order of roles, each by its words in its name; false: one has none, or two have one. */
bool detector_roles_named(struct detector_plan *plan, const char *const *words, size_t n);

/** The outputs as they come are the roles. */
void detector_roles_in_order(struct detector_plan *plan, size_t n);

/* ---- for decode ------------------------------------------------------------------------------ */

/** Numbers of a role, which are n of them. @return INVALID: there are not. */
weir_status detector_values(const struct detector_answer *answer, size_t role, size_t n,
                            const float **out, struct weir_error *err) WEIR_MUST_CHECK;

/** How many a role has, and in rows of so many. 0 where the shape says nothing of use. */
size_t detector_rows(const struct detector_answer *answer, size_t role, size_t columns);

/** The size of dimension i, counted from the last (0); 0 where there is none. */
size_t detector_dim(const struct detector_answer *answer, size_t role, size_t i_from_last);

/** Add what was found, in pixels of the input: x1, y1, x2, y2, and points or NULL. What is NaN, infinite or empty is dropped; when
 *  there are too many, the least sure is. */
void harvest_add(struct harvest *harvest, float score, int32_t class_id, const float box[4],
                 const float *points);

/** The same, of a box by its centre, width and height. */
void harvest_add_centred(struct harvest *harvest, float score, int32_t class_id, const float box[4],
                         const float *points);

static inline float detector_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/** The greatest of n, n at least 1. */
static inline size_t detector_best(const float *values, size_t n, size_t step)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = values[i * step] > values[best * step] || isnan(values[best * step]) ? i : best;
    }
    return best;
}

/** Column and line of place i of a map that is so wide. */
static inline float detector_column(size_t i, size_t width)
{
    return (float)(i % width);
}

static inline float detector_line(size_t i, size_t width)
{
    size_t line = i / width;
    return (float)line;
}

/** How many places a map of that stride has along a side. */
static inline int detector_places(int side, int stride)
{
    return (side + stride - 1) / stride;
}

#endif
