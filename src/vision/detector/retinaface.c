#include "vision/detector_private.h"

enum role { BOX, CLASS, POINTS };

#define N_STRIDES 3

static bool fit(struct detector_plan *plan)
{
    static const int64_t widths[] = {4, 2, 10};
    plan->n_roles = 0;
    for (size_t k = 0; plan->n_outputs == 3 && k < 3; k++) {
        for (size_t i = 0; i < 3; i++) {
            size_t rank = plan->outputs[i].rank;
            if ((rank == 2 || rank == 3) && plan->outputs[i].dims[rank - 1] == widths[k]) {
                plan->roles[plan->n_roles++] = i;
                break;
            }
        }
    }
    (void)snprintf(plan->why, sizeof plan->why,
                   "its 3 outputs have rows of 4, 2 and 10: boxes, classes, points");
    return plan->n_roles == 3;
}

struct prior {
    float x, y, size; /* centre and side, in pixels of the input */
};

/* Priors of a stride: two sizes at each place's centre. */
static struct prior prior_of(size_t s, size_t w, size_t i)
{
    float stride = (float)(8 << s);
    return (struct prior){
        .x = (detector_column(i / 2, w) + 0.5f) * stride,
        .y = (detector_line(i / 2, w) + 0.5f) * stride,
        .size = (float)(16 << (2 * s)) * (float)(1 + i % 2),
    };
}

static void add(const struct prior *prior, float score, const float *box, const float *kps,
                struct harvest *harvest)
{
    float points[10], scale = 0.1f * prior->size;
    const float centred[] = {prior->x + box[0] * scale, prior->y + box[1] * scale,
                             prior->size * expf(0.2f * box[2]), prior->size * expf(0.2f * box[3])};
    for (size_t k = 0; k < 10; k++) {
        points[k] = (k % 2 == 0 ? prior->x : prior->y) + kps[k] * scale;
    }
    harvest_add_centred(harvest, score, 0, centred, points);
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    size_t widths[N_STRIDES], counts[N_STRIDES], n = 0;
    const float *box, *class, *kps;
    for (size_t s = 0; s < N_STRIDES; s++) {
        widths[s] = (size_t)detector_places(answer->width, 8 << s);
        counts[s] = widths[s] * (size_t)detector_places(answer->height, 8 << s) * 2;
        n += counts[s];
    }
    WEIR_TRY(detector_values(answer, BOX, 4 * n, &box, err));
    WEIR_TRY(detector_values(answer, CLASS, 2 * n, &class, err));
    WEIR_TRY(detector_values(answer, POINTS, 10 * n, &kps, err));
    for (size_t s = 0, first = 0; s < N_STRIDES; first += counts[s], s++) {
        for (size_t i = 0; i < counts[s]; i++) {
            float score = class[2 * (first + i) + 1];
            if (score >= answer->threshold) {
                struct prior prior = prior_of(s, widths[s], i);
                add(&prior, score, box + 4 * (first + i), kps + 10 * (first + i), harvest);
            }
        }
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "3 outputs with rows of 4, 2 and 10: boxes, classes after the softmax, points",
    .look = {.is_bgr = true,
             .scale = 1,
             .mean = {104, 117, 123},
             .std = {1, 1, 1},
             .fit = DETECTOR_CORNER,
             .divisor = 32},
    .threshold = 0.6f,
    .overlap = 0.4f,
    .least = 12,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_retinaface_kind = {
    .name = "retinaface",
    .doc = "RetinaFace with priors of two sizes at strides 8, 16 and 32: faces with five points. "
           "BGR - (104, 117, 123), scaled by one factor to the upper left. Threshold 0.6, overlap "
           "0.4.",
    .ops = &ops,
};
