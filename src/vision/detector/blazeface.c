#include "vision/detector_private.h"

enum role { BOX, SCORE };

#define N_ANCHORS 896 /* 2 at each of 16 × 16 places, then 6 at each of 8 × 8 */
#define N_FINE    512
#define LOGIT_MAX 100

static bool fit(struct detector_plan *plan)
{
    size_t box = plan->n_outputs, score = plan->n_outputs;
    for (size_t i = 0; plan->n_outputs == 2 && i < 2; i++) {
        const struct detector_port *port = &plan->outputs[i];
        if (port->rank < 2 || !detector_dim_is(plan, port->dims[port->rank - 2], N_ANCHORS)) {
            return false;
        }
        box = port->dims[port->rank - 1] == 16 ? i : box;
        score = port->dims[port->rank - 1] == 1 ? i : score;
    }
    plan->roles[BOX] = box;
    plan->roles[SCORE] = score;
    plan->n_roles = 2;
    (void)snprintf(plan->why, sizeof plan->why, "its 2 outputs have 896 rows of 16 and of 1");
    return box < plan->n_outputs && score < plan->n_outputs;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    const float *box, *score;
    float width = (float)answer->width, height = (float)answer->height;
    WEIR_TRY(detector_values(answer, BOX, (size_t)16 * N_ANCHORS, &box, err));
    WEIR_TRY(detector_values(answer, SCORE, N_ANCHORS, &score, err));
    for (size_t i = 0; i < N_ANCHORS; i++) {
        float sure = detector_sigmoid(fminf(fmaxf(score[i], -LOGIT_MAX), LOGIT_MAX));
        size_t side = i < N_FINE ? 16 : 8, place = i < N_FINE ? i / 2 : (i - N_FINE) / 6;
        const float *row = box + 16 * i;
        if (isnan(score[i]) || !(sure >= answer->threshold)) {
            continue;
        }
        /* Rows are in pixels of the input. Behind the box come six points, and the mouth has one of them. */
        float x = (detector_column(place, side) + 0.5f) / (float)side * width;
        float y = (detector_line(place, side) + 0.5f) / (float)side * height;
        harvest_add_centred(harvest, sure, 0,
                            (const float[]){x + row[0], y + row[1], row[2], row[3]}, NULL);
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "2 outputs with 896 rows of 16 and of 1: boxes, scores",
    .look = {.scale = 1,
             .mean = {127.5f, 127.5f, 127.5f},
             .std = {127.5f, 127.5f, 127.5f},
             .fit = DETECTOR_CENTRE,
             .divisor = 128},
    .threshold = 0.5f,
    .overlap = 0.3f,
    .least = 18,
    .blends = true,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_blazeface_kind = {
    .name = "blazeface",
    .doc =
        "BlazeFace of MediaPipe, of 128 or 256 pixels: faces near the camera; what overlaps "
        "becomes its mean. It marks the mouth by one point, so faces are aligned by their boxes. "
        "RGB from -1 to 1, padded on both sides. Threshold 0.5, overlap 0.3.",
    .ops = &ops,
};
