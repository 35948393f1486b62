#include "predict/serving.h"
#include "predict/stage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct serving *serving = at->serving;
    const struct finding *finding = &at->finding;
    struct decision *decision = at->decision;
    (void)options;
    (void)err;
    decision->score = finding->score;
    decision->threshold = finding->threshold;
    if (finding->is_label) {
        decision->verdict = decide_label(finding->score, finding->threshold, finding->is_rejected);
        decision->label = decision->verdict == VERDICT_LABEL ? finding->name : NULL;
        return WEIR_OK;
    }
    const struct thresholds thresholds = gallery_thresholds(serving->gallery);
    decision->verdict = decide(finding->score, finding->name, &thresholds, &serving->lists);
    decision->person = finding->score >= finding->threshold ? finding->name : NULL;
    return WEIR_OK;
}

const struct stage_ops stage_decide = {.run = run};
