/**
 * Stages: what the engine makes of a frame, in a chain.
 *
 * What kinds there are, and their options, is in endpoint/stages.def; the code of each is
 * predict/stage/NAME.c, which defines stage_NAME. A chain belongs to one serving and is run by one
 * thread, the engine.
 */
#ifndef WEIR_PREDICT_STAGE_H
#define WEIR_PREDICT_STAGE_H

#include "data/image.h"
#include "endpoint/stage.h"
#include "predict/decision.h"
#include "predict/intake.h"
#include "predict/matcher.h"
#include "predict/model.h"

#include <stdbool.h>

struct serving;

/** What a picture was taken for. */
struct finding {
    bool is_label;           /**< A classifier's label; else a person of the gallery. */
    bool is_rejected;        /**< A label that stands for none of the others. */
    const char *name;        /**< NULL: nobody to compare with. Borrowed from the serving. */
    double score, threshold; /**< NaN: none. */
};

/** One frame on its way through the chain; each stage fills what it gives. */
struct stage_frame {
    const struct frame *frame;
    struct serving *serving;
    struct weir_image image; /**< Of decode; zeroed before. The caller frees it. */
    const float *embedding;  /**< Of embed; the model's, until the next frame. */
    struct finding finding;  /**< Of match or classify. */
    struct decision *decision;
};

struct stage_ops {
    /** Do it. On an error the frame is decided as an error, with the sentence. */
    weir_status (*run)(const void *options, struct stage_frame *frame, struct weir_error *err);
    /** Can it work with this model? NULL: with any. The sentence is about the model. */
    weir_status (*check)(const void *options, const struct model *model, struct weir_error *err);
};

#define WEIR_KIND(name) extern const struct stage_ops stage_##name;
#include "endpoint/stages.def"
#undef WEIR_KIND

struct stages;

/**
 * Make a chain and check that it can work with the model.
 *
 * @param list  As weir_stages_read takes it; NULL: that of a server which has recognisers only.
 * @return As weir_stages_read; UNSUPPORTED or INVALID if the model does not fit, naming it.
 */
weir_status stages_create(const json_t *list, const struct model *model, struct stages **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void stages_destroy(struct stages *stages);

/** Run all; the first that fails ends it. */
weir_status stages_run(const struct stages *stages, struct stage_frame *frame,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** The threshold of the chain's classify; NaN if it has none. */
double stages_threshold(const struct stages *stages);

#endif
