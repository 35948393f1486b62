#include "vision/detector_private.h"

#define ROW 7 /* picture, class, score, x1, y1, x2, y2 */

static bool fit(struct detector_plan *plan)
{
    const struct detector_port *port = &plan->outputs[0];
    bool is_its = plan->n_outputs == 1 && port->rank == 4 && port->dims[1] == 1 &&
                  detector_port_is(plan, 0, 4, ROW);
    detector_roles_in_order(plan, 1);
    (void)snprintf(plan->why, sizeof plan->why, "its one output has 1×1×n rows of 7");
    return is_its;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    size_t n = detector_rows(answer, 0, ROW);
    float w = (float)answer->width, h = (float)answer->height;
    const float *rows;
    WEIR_TRY(detector_values(answer, 0, n * ROW, &rows, err));
    for (size_t i = 0; i < n; i++, rows += ROW) {
        /* A row that stands for nothing has the picture -1; class 0 is the background. */
        if (rows[0] == 0 && rows[1] >= 1 && rows[1] < 1e6f && rows[2] >= answer->threshold) {
            harvest_add(harvest, rows[2], (int32_t)rows[1] - 1,
                        (const float[]){rows[3] * w, rows[4] * h, rows[5] * w, rows[6] * h}, NULL);
        }
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "1 output of 1×1×n×7: picture, class, score, x1, y1, x2, y2",
    .look = {.is_bgr = true,
             .scale = 1,
             .mean = {104, 177, 123},
             .std = {1, 1, 1},
             .fit = DETECTOR_STRETCH,
             .divisor = 300},
    .threshold = 0.5f,
    .overlap = NAN,
    .least = 24,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_caffe_ssd_kind = {
    .name = "caffe-ssd",
    .doc =
        "SSD of Caffe with its detections in one list, as OpenCV's face detector res10 at 300 by "
        "300. BGR - (104, 177, 123), stretched. Threshold 0.5, nothing overlaps.",
    .ops = &ops,
};
