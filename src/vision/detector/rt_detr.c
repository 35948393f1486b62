#include "vision/detector/queries.h"

static bool fit(struct detector_plan *plan)
{
    return queries_fit(plan, plan->is_asked ? 1 : 201, plan->is_asked ? INT32_MAX : 1000);
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    struct queries queries;
    WEIR_TRY(queries_read(answer, &queries, err));
    for (size_t i = 0; i < queries.n * queries.n_columns; i++) {
        float score = detector_sigmoid(queries.logits[i]);
        if (score >= answer->threshold) {
            queries_add(answer, &queries, i / queries.n_columns, score,
                        (int32_t)(i % queries.n_columns), harvest);
        }
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "2 outputs: logits N×Q×classes, and boxes N×Q×4",
    .look = {.scale = 1 / 255.0f, .std = {1, 1, 1}, .fit = DETECTOR_STRETCH, .divisor = 32},
    .threshold = 0.5f,
    .overlap = NAN,
    .least = 16,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_rt_detr_kind = {
    .name = "rt-detr",
    .doc =
        "RT-DETR and D-FINE, exported without what comes after the network: 300 questions, and of "
        "each every class that is sure enough. RGB from 0 to 1, stretched. Threshold 0.5, nothing "
        "overlaps.",
    .ops = &ops,
};
