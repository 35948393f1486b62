#include "vision/detector_private.h"

/* Roles: of each stride a score; then of each its boxes; then of each its points, where there are any. */
static const int64_t widths[] = {1, 4, 10};

struct heads {
    size_t n_strides, n_anchors;
    bool has_points;
};

static struct heads heads_of(size_t n_outputs)
{
    bool is_three = n_outputs == 6 || n_outputs == 9, is_five = n_outputs == 10 || n_outputs == 15;
    return (struct heads){
        .n_strides = is_three  ? 3
                     : is_five ? 5
                               : 0,
        .n_anchors = is_three ? 2 : 1,
        .has_points = n_outputs == 9 || n_outputs == 15,
    };
}

/* The next output from i on that has rows of so many numbers. */
static size_t next_of(const struct detector_plan *plan, size_t i, int64_t width)
{
    while (i < plan->n_outputs && (plan->outputs[i].rank == 0 ||
                                   plan->outputs[i].dims[plan->outputs[i].rank - 1] != width)) {
        i++;
    }
    return i;
}

static bool fit(struct detector_plan *plan)
{
    struct heads heads = heads_of(plan->n_outputs);
    size_t n_widths = heads.has_points ? 3 : 2;
    plan->n_roles = 0;
    for (size_t k = 0; heads.n_strides > 0 && k < n_widths; k++) {
        size_t i = 0;
        for (size_t s = 0; s < heads.n_strides; s++, i++) {
            i = next_of(plan, i, widths[k]);
            if (i == plan->n_outputs) {
                return false;
            }
            plan->roles[plan->n_roles++] = i;
        }
    }
    (void)snprintf(plan->why, sizeof plan->why,
                   "its %zu outputs have rows of 1, 4%s: %zu strides, %zu anchors a place",
                   plan->n_outputs, heads.has_points ? " and 10" : "", heads.n_strides,
                   heads.n_anchors);
    return heads.n_strides > 0;
}

static weir_status decode_stride(const struct detector_answer *answer, const struct heads *heads,
                                 size_t s, struct harvest *harvest, struct weir_error *err)
{
    int stride = 8 << s;
    size_t w = (size_t)detector_places(answer->width, stride);
    size_t n = w * (size_t)detector_places(answer->height, stride) * heads->n_anchors;
    const float *score, *box, *kps = NULL;
    WEIR_TRY(detector_values(answer, s, n, &score, err));
    WEIR_TRY(detector_values(answer, heads->n_strides + s, 4 * n, &box, err));
    if (heads->has_points) {
        WEIR_TRY(detector_values(answer, 2 * heads->n_strides + s, 10 * n, &kps, err));
    }
    for (size_t i = 0; i < n; i++) {
        if (!(score[i] >= answer->threshold)) {
            continue;
        }
        size_t place = i / heads->n_anchors;
        float f = (float)stride, points[10];
        float x = detector_column(place, w) * f, y = detector_line(place, w) * f;
        const float *side = box + 4 * i;
        for (size_t k = 0; kps != NULL && k < 10; k++) {
            points[k] = (k % 2 == 0 ? x : y) + kps[10 * i + k] * f;
        }
        harvest_add(
            harvest, score[i], 0,
            (const float[]){x - side[0] * f, y - side[1] * f, x + side[2] * f, y + side[3] * f},
            kps != NULL ? points : NULL);
    }
    return WEIR_OK;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    struct heads heads = heads_of(answer->plan->n_outputs);
    for (size_t s = 0; s < heads.n_strides; s++) {
        WEIR_TRY(decode_stride(answer, &heads, s, harvest, err));
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "6, 9, 10 or 15 outputs, of each stride rows of 1, 4 and perhaps 10: scores, boxes, "
             "points",
    .look = {.scale = 1,
             .mean = {127.5f, 127.5f, 127.5f},
             .std = {128, 128, 128},
             .fit = DETECTOR_CORNER,
             .divisor = 32},
    .threshold = 0.5f,
    .overlap = 0.4f,
    .least = 16,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_scrfd_kind = {
    .name = "scrfd",
    .doc = "SCRFD of InsightFace: faces, with five points where the model has them, from strides 8 "
           "to 32 or 128. RGB, (pixel - 127.5) / 128, scaled by one factor to the upper left. "
           "Threshold 0.5, overlap 0.4.",
    .ops = &ops,
};
