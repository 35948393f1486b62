#include "vision/detector_private.h"

enum role { HEAT, SCALE, OFFSET, POINTS };

#define STRIDE 4

static bool fit(struct detector_plan *plan)
{
    static const int64_t channels[] = {1, 2, 2, 10};
    bool is_its = plan->n_outputs == 4;
    for (size_t i = 0; is_its && i < 4; i++) {
        is_its = plan->outputs[i].rank == 4 &&
                 detector_dim_is(plan, plan->outputs[i].dims[1], channels[i]);
    }
    if (is_its) {
        detector_roles_in_order(plan, 4);
        (void)snprintf(plan->why, sizeof plan->why,
                       "its 4 outputs have 1, 2, 2 and 10 channels: heat, scale, offset, points");
    }
    return is_its;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    int w = detector_places(answer->width, STRIDE), h = detector_places(answer->height, STRIDE);
    size_t n = (size_t)w * (size_t)h;
    const float *heat, *scale, *offset, *points;
    WEIR_TRY(detector_values(answer, HEAT, n, &heat, err));
    WEIR_TRY(detector_values(answer, SCALE, 2 * n, &scale, err));
    WEIR_TRY(detector_values(answer, OFFSET, 2 * n, &offset, err));
    WEIR_TRY(detector_values(answer, POINTS, 10 * n, &points, err));
    for (size_t i = 0; i < n; i++) {
        if (!(heat[i] >= answer->threshold)) {
            continue;
        }
        float x = detector_column(i, (size_t)w), y = detector_line(i, (size_t)w);
        float height = STRIDE * expf(scale[i]), width = STRIDE * expf(scale[n + i]);
        float top = (y + 0.5f + offset[i]) * STRIDE - height / 2;
        float left = (x + 0.5f + offset[n + i]) * STRIDE - width / 2;
        float at[10];
        for (size_t k = 0; k < 5; k++) {
            at[2 * k] = points[(2 * k + 1) * n + i] * width + left;
            at[2 * k + 1] = points[2 * k * n + i] * height + top;
        }
        harvest_add(harvest, heat[i], 0, (const float[]){left, top, left + width, top + height},
                    at);
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "4 outputs N×C×h×w, C = 1, 2, 2, 10: heat, scale, offset, points",
    .look = {.scale = 1, .std = {1, 1, 1}, .fit = DETECTOR_STRETCH, .divisor = 32},
    .threshold = 0.5f,
    .overlap = 0.3f,
    .least = 18,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_centernet_kind = {
    .name = "centernet",
    .doc = "CenterFace: faces with five points, from a map of their centres at a quarter of the "
           "input's size. RGB from 0 to 255, stretched to sides that are multiples of 32. "
           "Threshold 0.5, overlap 0.3.",
    .ops = &ops,
};
