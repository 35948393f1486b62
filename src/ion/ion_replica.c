/* What the replicas say of a deployment, as the state of its pipeline. */
#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

static char *alert_key(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    return weir_arena_printf(engine->arena, "deployment_failed:%s", pipeline->id);
}

void engine_set_state(struct engine *engine, struct weir_ion_pipeline *pipeline, char *state,
                      const char *reason)
{
    if (!engine_is(pipeline->state, state)) {
        pipeline->state_ms = engine->now_ms;
    }
    if (engine_is(state, PIPELINE_SERVING)) {
        pipeline->n_failures = 0;
    }
    pipeline->state = state;
    pipeline->state_reason = weir_arena_strdup(engine->arena, reason);
    pipeline->updated_ms = engine->now_ms;
}

void engine_forget_serving(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_RESOLVE,
                                                .key = alert_key(engine, pipeline)});
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

static struct verdict judge(const struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    struct verdict verdict = {0};
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    for (size_t i = 0; i < engine->state->n_replicas; i++) {
        const struct weir_ion_replica *replica = &engine->state->replicas[i];
        if (strcmp(replica->pipeline, pipeline->name) != 0 ||
            !weir_ion_replica_is_of(replica->replica, pipeline->job)) {
            continue;
        }
        bool is_current = replica->revision == service->deployment_revision;
        bool is_applied = engine_is(replica->state, WEIR_REPLICA_APPLIED);
        verdict.served_revision = WEIR_MAX(
            verdict.served_revision, is_applied ? replica->revision : replica->served_revision);
        if (is_current && engine_is(replica->state, WEIR_REPLICA_FAILED) &&
            verdict.reason == NULL) {
            verdict.reason = replica->reason != NULL ? replica->reason : "no reason is known";
        }
        verdict.is_applied = verdict.is_applied || (is_current && is_applied);
    }
    return verdict;
}

static void tell_failed(struct engine *engine, struct weir_ion_pipeline *pipeline,
                        const struct verdict *verdict)
{
    char *message = weir_arena_printf(
        engine->arena, "Pipeline %s cannot serve deployment %" PRId64 ": %s%s", pipeline->name,
        weir_ion_service_of(pipeline)->deployment_revision, verdict->reason,
        verdict->served_revision > 0 ? "; it serves the one before" : "; it decides nothing");
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&engine->state->doc, pipeline->name);
    bool is_down = verdict->served_revision == 0 && doc != NULL && doc->is_critical;
    engine_tell(engine, "deployment_failed", message);
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_ALERT,
                                                .key = alert_key(engine, pipeline),
                                                .kind = "deployment_failed",
                                                .severity = is_down ? "critical" : "warning",
                                                .message = message});
}

static void tell_served(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    engine_tell(engine, "deployment_served",
                weir_arena_printf(engine->arena, "Pipeline %s serves deployment %" PRId64 ".",
                                  pipeline->name,
                                  weir_ion_service_of(pipeline)->deployment_revision));
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_RESOLVE,
                                                .key = alert_key(engine, pipeline)});
}

/** Failed: there is something new to tell if the reason is, or if it serves nothing any more. */
static void on_failed(struct engine *engine, struct weir_ion_pipeline *pipeline,
                      const struct verdict *verdict, int64_t served_before)
{
    bool is_known = engine_is(pipeline->state, PIPELINE_DEPLOY_FAILED) &&
                    engine_is(pipeline->state_reason, verdict->reason) &&
                    (served_before > 0) == (verdict->served_revision > 0);
    if (!is_known) {
        engine_set_state(engine, pipeline, PIPELINE_DEPLOY_FAILED, verdict->reason);
        tell_failed(engine, pipeline, verdict);
    }
}

void engine_on_replica(struct engine *engine)
{
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, engine->event->pipeline);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (service == NULL || pipeline->job == NULL || service->deployment == NULL) {
        return;
    }
    const struct verdict verdict = judge(engine, pipeline);
    int64_t served_before = service->served_revision;
    if (served_before != verdict.served_revision) {
        service->served_revision = verdict.served_revision;
        pipeline->updated_ms = engine->now_ms;
    }
    if (verdict.served_revision == 0) {
        service->served_candidate = NULL;
    } else if (verdict.is_applied) {
        service->served_candidate = service->candidate;
    }
    if (verdict.reason != NULL) {
        on_failed(engine, pipeline, &verdict, served_before);
        return;
    }
    bool is_news = verdict.is_applied && served_before != service->deployment_revision;
    char *state = verdict.served_revision > 0 ? PIPELINE_SERVING : PIPELINE_DEPLOYING;
    if (!engine_is(pipeline->state, state)) {
        engine_set_state(engine, pipeline, state, NULL);
    }
    if (is_news) {
        tell_served(engine, pipeline);
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
        if (service != NULL && engine_is(service->served_candidate, candidate->id)) {
            return WEIR_CANDIDATE_SERVING;
        }
        if (engine_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
            return pipeline->paused_by != NULL                          ? WEIR_CANDIDATE_PAUSED
                   : engine_is(pipeline->state, PIPELINE_DEPLOY_FAILED) ? PIPELINE_DEPLOY_FAILED
                                                                        : PIPELINE_DEPLOYING;
        }
    }
    return candidate->state;
}
