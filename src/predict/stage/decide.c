#include "predict/serving.h"
#include "predict/stage.h"

static void decide_object(struct stage_frame *at, const struct stage_object *object)
{
    const struct serving *serving = at->serving;
    const struct finding *finding = &object->finding;
    struct decision *decision = stage_decision_add(at)->decision;
    decision->score = finding->score;
    decision->threshold = finding->threshold;
    decision->labels = object->labels;
    decision->n_labels = object->n_labels;
    decision->brightness = object->brightness;
    if (finding->is_label) {
        decision->verdict = decide_label(finding->score, finding->threshold, finding->is_rejected);
        decision->label = decision->verdict == VERDICT_LABEL ? finding->name : NULL;
        return;
    }
    const struct thresholds thresholds = gallery_thresholds(serving->gallery);
    decision->verdict = decide(finding->score, finding->name, &thresholds, &serving->lists);
    decision->person = finding->score >= finding->threshold ? finding->name : NULL;
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    (void)options;
    (void)err;
    for (size_t i = 0; i < at->n_objects; i++) {
        decide_object(at, &at->objects[i]);
    }
    return WEIR_OK;
}

const struct stage_ops stage_decide = {.run = run};
