/** Transformers that answer a fixed number of questions: what detr and rt-detr have in common. */
#ifndef WEIR_VISION_DETECTOR_QUERIES_H
#define WEIR_VISION_DETECTOR_QUERIES_H

#include "vision/detector_private.h"

enum queries_role { QUERIES_LOGITS, QUERIES_BOXES };

struct queries {
    size_t n, n_columns; /**< Questions, and numbers that each has of classes. */
    const float *logits, *boxes;
};

/** Two outputs of at least `least` and at most `most` rows: logits, and boxes of 4. */
bool queries_fit(struct detector_plan *plan, int64_t least, int64_t most);

/** @return INVALID: the shapes are not those of queries. */
weir_status queries_read(const struct detector_answer *answer, struct queries *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The box of question i: centre and size, as parts of the input. */
void queries_add(const struct detector_answer *answer, const struct queries *queries, size_t i,
                 float score, int32_t class_id, struct harvest *harvest);

#endif
