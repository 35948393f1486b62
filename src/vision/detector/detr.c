#include "vision/detector/queries.h"

static bool fit(struct detector_plan *plan)
{
    return queries_fit(plan, 1, plan->is_asked ? INT32_MAX : 200);
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    struct queries queries;
    WEIR_TRY(queries_read(answer, &queries, err));
    for (size_t i = 0; queries.n_columns > 1 && i < queries.n; i++) {
        const float *logits = queries.logits + i * queries.n_columns;
        /* The last class stands for nothing there. */
        size_t best = detector_best(logits, queries.n_columns - 1, 1);
        float sum = 0;
        for (size_t c = 0; c < queries.n_columns; c++) {
            sum += expf(logits[c] - logits[best]);
        }
        if (1 / sum >= answer->threshold) {
            queries_add(answer, &queries, i, 1 / sum, (int32_t)best, harvest);
        }
    }
    return WEIR_OK;
}

static const struct detector_ops ops = {
    .takes = "2 outputs: logits N×Q×(classes + 1), and boxes N×Q×4",
    .look = {.scale = 1 / 255.0f,
             .mean = {0.485f, 0.456f, 0.406f},
             .std = {0.229f, 0.224f, 0.225f},
             .fit = DETECTOR_STRETCH,
             .divisor = 32},
    .threshold = 0.7f,
    .overlap = NAN,
    .least = 24,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_detr_kind = {
    .name = "detr",
    .doc =
        "DETR: 100 questions, each answered by a class or by none. RGB normalised as ImageNet's, "
        "stretched. Threshold 0.7, nothing overlaps.",
    .ops = &ops,
};
