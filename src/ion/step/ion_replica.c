/* What the replicas say of a deployment, as the state of its pipeline. */
#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

static char *alert_key(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    return step_text(step, "deployment_failed:%s", pipeline->id);
}

void step_set_state(struct ion_step *step, struct weir_ion_pipeline *pipeline, char *state,
                    const char *reason)
{
    if (!step_is(pipeline->state, state)) {
        pipeline->state_ms = step->now_ms;
    }
    if (step_is(state, PIPELINE_SERVING)) {
        pipeline->n_failures = 0;
    }
    pipeline->state = state;
    pipeline->state_reason = weir_arena_strdup(step->arena, reason);
    pipeline->updated_ms = step->now_ms;
}

void step_forget_serving(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    step_resolve(step, alert_key(step, pipeline));
    service->served_revision = 0;
    service->served_candidate = NULL;
    pipeline->state_reason = NULL;
}

/** All that the pipeline's replicas say together. */
struct verdict {
    int64_t served_revision; /**< The newest that one of them serves. */
    bool is_applied;         /**< One serves the deployment that is wanted. */
    const char *reason;      /**< Why one cannot; NULL: none failed. */
};

static struct verdict judge(const struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    struct verdict verdict = {0};
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    for (size_t i = 0; i < step->state->n_replicas; i++) {
        const struct weir_ion_replica *replica = &step->state->replicas[i];
        if (strcmp(replica->pipeline, pipeline->name) != 0 ||
            !weir_ion_replica_is_of(replica->replica, pipeline->job)) {
            continue;
        }
        bool is_current = replica->revision == service->deployment_revision;
        bool is_applied = step_is(replica->state, WEIR_REPLICA_APPLIED);
        verdict.served_revision = WEIR_MAX(
            verdict.served_revision, is_applied ? replica->revision : replica->served_revision);
        if (is_current && step_is(replica->state, WEIR_REPLICA_FAILED) && verdict.reason == NULL) {
            verdict.reason = replica->reason != NULL ? replica->reason : "no reason is known";
        }
        verdict.is_applied = verdict.is_applied || (is_current && is_applied);
    }
    return verdict;
}

static void tell_failed(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                        const struct verdict *verdict)
{
    char *message = step_text(
        step, "Pipeline %s cannot serve deployment %" PRId64 ": %s%s", pipeline->name,
        weir_ion_service_of(pipeline)->deployment_revision, verdict->reason,
        verdict->served_revision > 0 ? "; it serves the one before" : "; it decides nothing");
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
    bool is_down = verdict->served_revision == 0 && doc != NULL && doc->is_critical;
    step_tell(step, "deployment_failed", "%s", message);
    step_act(step, (struct weir_ion_action){.type = WEIR_ION_ACTION_ALERT,
                                            .key = alert_key(step, pipeline),
                                            .kind = "deployment_failed",
                                            .severity = is_down ? "critical" : "warning",
                                            .message = message});
}

static void tell_served(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    step_tell(step, "deployment_served", "Pipeline %s serves deployment %" PRId64 ".",
              pipeline->name, weir_ion_service_of(pipeline)->deployment_revision);
    step_resolve(step, alert_key(step, pipeline));
}

/** Failed: there is something new to tell if the reason is, or if it serves nothing any more. */
static void on_failed(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                      const struct verdict *verdict, int64_t served_before)
{
    bool is_known = step_is(pipeline->state, PIPELINE_DEPLOY_FAILED) &&
                    step_is(pipeline->state_reason, verdict->reason) &&
                    (served_before > 0) == (verdict->served_revision > 0);
    if (!is_known) {
        step_set_state(step, pipeline, PIPELINE_DEPLOY_FAILED, verdict->reason);
        tell_failed(step, pipeline, verdict);
    }
}

void step_on_replica(struct ion_step *step)
{
    struct weir_ion_pipeline *pipeline = step_pipeline(step, step->event->pipeline);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (service == NULL || pipeline->job == NULL || service->deployment == NULL) {
        return;
    }
    const struct verdict verdict = judge(step, pipeline);
    int64_t served_before = service->served_revision;
    if (served_before != verdict.served_revision) {
        service->served_revision = verdict.served_revision;
        pipeline->updated_ms = step->now_ms;
    }
    if (verdict.served_revision == 0) {
        service->served_candidate = NULL;
    } else if (verdict.is_applied) {
        service->served_candidate = service->candidate;
    }
    if (verdict.reason != NULL) {
        on_failed(step, pipeline, &verdict, served_before);
        return;
    }
    bool is_news = verdict.is_applied && served_before != service->deployment_revision;
    char *state = verdict.served_revision > 0 ? PIPELINE_SERVING : PIPELINE_DEPLOYING;
    if (!step_is(pipeline->state, state)) {
        step_set_state(step, pipeline, state, NULL);
    }
    if (is_news) {
        tell_served(step, pipeline);
    }
}

const char *weir_ion_candidate_shown(const struct weir_ion_state *state,
                                     const struct weir_ion_candidate *candidate)
{
    const char *colon = strchr(candidate->link, ':');
    for (size_t i = 0; colon != NULL && i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        if (strcmp(pipeline->name, colon + 1) != 0) {
            continue;
        }
        const struct weir_ion_service *service = weir_ion_service_of(pipeline);
        if (service != NULL && step_is(service->served_candidate, candidate->id)) {
            return WEIR_CANDIDATE_SERVING;
        }
        if (step_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
            return pipeline->paused_by != NULL                        ? WEIR_CANDIDATE_PAUSED
                   : step_is(pipeline->state, PIPELINE_DEPLOY_FAILED) ? PIPELINE_DEPLOY_FAILED
                                                                      : PIPELINE_DEPLOYING;
        }
    }
    return candidate->state;
}
