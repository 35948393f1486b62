#include "vision/detector_private.h"
#include "vision/grid.h"

#include <string.h>

/* One vector of all squares: of a free size, or of the size that the input has. */
static bool fit(struct detector_plan *plan)
{
    const struct detector_port *port = &plan->outputs[0];
    size_t n = WEIR_GRID_VALUES * weir_grid_count(plan->width, plan->height);
    bool is_free = plan->width == 0 || plan->height == 0;
    bool is_its =
        plan->n_outputs == 1 && port->rank == 2 &&
        (is_free ? port->dims[1] < 0 && (plan->is_asked || strcmp(port->name, "output") == 0)
                 : port->dims[1] == (int64_t)n);
    detector_roles_in_order(plan, 1);
    (void)snprintf(plan->why, sizeof plan->why,
                   "its one output is a vector of 15 numbers a square of 8 and of 16 pixels");
    return is_its;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    size_t n = weir_grid_count(answer->width, answer->height);
    const float *values;
    WEIR_TRY(detector_values(answer, 0, WEIR_GRID_VALUES * n, &values, err));
    for (size_t i = 0; i < n; i++) {
        struct weir_detection found;
        if (!(detector_sigmoid(values[i]) >= answer->threshold)) {
            continue;
        }
        weir_grid_read(answer->width, answer->height, values, i, &found);
        harvest_add(harvest, found.score, 0,
                    (const float[]){found.box.x, found.box.y, found.box.x + found.box.w,
                                    found.box.y + found.box.h},
                    found.points);
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "1 output of n×15c: scores of all c squares, then 14 numbers of each",
    .look = {.scale = 1 / 255.0f,
             .mean = {0.5f, 0.5f, 0.5f},
             .std = {0.25f, 0.25f, 0.25f},
             .fit = DETECTOR_CORNER,
             .divisor = 16},
    .threshold = 0.5f,
    .overlap = 0.4f,
    .least = 12,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_weir_kind = {
    .name = "weir",
    .doc = "Weir's own, face-detect: faces like those that it was trained with. Grey from -2 to 2, "
           "padded right and below.",
    .ops = &ops,
};
