#include "endpoint/stage/track.h"

#include "predict/passage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct weir_stage_track *track = options;
    struct passage_rules rules = {.gone_ms = track->gone_ms, .evidence = weir_evidence_usual};
    rules.evidence.accept = (float)track->accept;
    rules.evidence.deny = (float)track->deny;
    rules.evidence.n = (int32_t)track->n;
    rules.evidence.m = (int32_t)track->m;
    rules.keeps_visitors = track->visitors;
    return passages_step(at->passages, &rules, at, err);
}

static weir_status wait_on(const void *options, struct stage_frame *at, struct weir_error *err)
{
    (void)options; /* Cameras keep what they are followed by. */
    (void)err;
    passages_wait(at->passages, at);
    return WEIR_OK;
}

const struct stage_ops stage_track = {.run = run, .wait = wait_on};
