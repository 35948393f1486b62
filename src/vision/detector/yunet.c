#include "vision/detector_private.h"

/* Roles are the kind's outputs in this order, each for strides 8, 16, 32. */
enum role { CLASS, OBJECT, BOX, POINTS };

#define N_STRIDES 3

static const int strides[N_STRIDES] = {8, 16, 32};

static bool fit(struct detector_plan *plan)
{
    static const char *const names[] = {"cls_8",   "cls_16", "cls_32", "obj_8",
                                        "obj_16",  "obj_32", "bbox_8", "bbox_16",
                                        "bbox_32", "kps_8",  "kps_16", "kps_32"};
    static const int64_t last[] = {1, 1, 1, 1, 1, 1, 4, 4, 4, 10, 10, 10};
    if (detector_roles_named(plan, names, 12)) {
        (void)snprintf(plan->why, sizeof plan->why, "its outputs are called cls_8 to kps_32");
        return true;
    }
    bool is_its = plan->n_outputs == 12;
    for (size_t i = 0; is_its && i < 12; i++) {
        is_its = detector_port_is(plan, i, 0, last[i]);
    }
    detector_roles_in_order(plan, is_its ? 12 : 0);
    (void)snprintf(plan->why, sizeof plan->why,
                   "its 12 outputs have rows of 1, 1, 4 and 10, three of each");
    return is_its;
}

static void decode_row(const float *box, const float *kps, size_t column, size_t line, float stride,
                       float out_box[4], float out_points[10])
{
    float x = (float)column, y = (float)line;
    out_box[0] = (x + box[0]) * stride;
    out_box[1] = (y + box[1]) * stride;
    out_box[2] = expf(box[2]) * stride;
    out_box[3] = expf(box[3]) * stride;
    for (size_t k = 0; k < 5; k++) {
        out_points[2 * k] = (kps[2 * k] + x) * stride;
        out_points[2 * k + 1] = (kps[2 * k + 1] + y) * stride;
    }
}

static float held(float score)
{
    return fminf(fmaxf(score, 0), 1);
}

static weir_status decode_stride(const struct detector_answer *answer, size_t s,
                                 struct harvest *harvest, struct weir_error *err)
{
    size_t w = (size_t)detector_places(answer->width, strides[s]);
    size_t n = w * (size_t)detector_places(answer->height, strides[s]);
    const float *class, *object, *box, *kps;
    WEIR_TRY(detector_values(answer, CLASS * N_STRIDES + s, n, &class, err));
    WEIR_TRY(detector_values(answer, OBJECT * N_STRIDES + s, n, &object, err));
    WEIR_TRY(detector_values(answer, BOX * N_STRIDES + s, 4 * n, &box, err));
    WEIR_TRY(detector_values(answer, POINTS * N_STRIDES + s, 10 * n, &kps, err));
    for (size_t i = 0; i < n; i++) {
        float centred[4], points[10], score = sqrtf(held(class[i]) * held(object[i]));
        if (score >= answer->threshold) {
            decode_row(box + 4 * i, kps + 10 * i, i % w, i / w, (float)strides[s], centred, points);
            harvest_add_centred(harvest, score, 0, centred, points);
        }
    }
    return WEIR_OK;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    for (size_t s = 0; s < N_STRIDES; s++) {
        WEIR_TRY(decode_stride(answer, s, harvest, err));
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "12 outputs: cls_8, cls_16, cls_32, obj_8 …, bbox_8 …, kps_8 …",
    .look = {.is_bgr = true, .scale = 1, .std = {1, 1, 1}, .fit = DETECTOR_CORNER, .divisor = 32},
    .threshold = 0.6f,
    .overlap = 0.3f,
    .least = 12,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_yunet_kind = {
    .name = "yunet",
    .doc = "YuNet of OpenCV's models, from 2023 on: faces with five points. BGR from 0 to 255, "
           "padded right and below to multiples of 32. Threshold 0.6, overlap 0.3.",
    .ops = &ops,
};
