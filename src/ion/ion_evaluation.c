/* Versions that are measured on a dataset for the policy where they stand. */
#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

static const struct weir_ion_measured *find_measured(const struct engine *engine, const char *id)
{
    for (size_t i = 0; i < engine->event->n_measured; i++) {
        if (strcmp(engine->event->measured[i].candidate, id) == 0) {
            return &engine->event->measured[i];
        }
    }
    return NULL;
}

/** A copy of an evaluation. */
static struct weir_policy_evaluation *copy_of(struct engine *engine,
                                              const struct weir_policy_evaluation *evaluation)
{
    struct weir_policy_evaluation *copy =
        WEIR_ARENA_NEW(engine->arena, struct weir_policy_evaluation);
    *copy = *weir_policy_evaluation_of(evaluation);
    return copy;
}

const struct weir_policy_evaluation *engine_evaluation(struct engine *engine,
                                                       const struct weir_ion_candidate *candidate,
                                                       const struct weir_ion_doc_link *link,
                                                       size_t i_policy)
{
    if (!weir_policy_ops(&link->policies.items[i_policy])->measures) {
        return NULL;
    }
    const struct weir_policy_evaluation *row = weir_policy_evaluation_of(candidate->evaluation);
    const struct weir_ion_measured *measured = find_measured(engine, candidate->id);
    if (measured == NULL || row->job == NULL || !engine_is(measured->figures.job, row->job)) {
        return row;
    }
    struct weir_policy_evaluation *now = copy_of(engine, &measured->figures);
    now->n = row->n;
    now->asked_ms = row->asked_ms;
    now->live_version = row->live_version;
    now->run = row->run;
    return now;
}

void engine_measure_candidate(struct engine *engine, struct weir_ion_candidate *candidate,
                              const struct weir_ion_candidate *before,
                              const struct weir_policy_verdict *told)
{
    if (!told->is_to_measure) {
        candidate->evaluation = before->evaluation;
        return;
    }
    struct weir_policy_evaluation *wanted = copy_of(engine, NULL);
    wanted->n = weir_policy_evaluation_of(before->evaluation)->n + 1;
    wanted->asked_ms = engine->now_ms;
    wanted->live_version = engine_serving_version(engine, candidate);
    candidate->evaluation = wanted;
    /* That it is asked for has a decision of its own: so has the key. */
    engine_act(engine,
               (struct weir_ion_action){
                   .type = WEIR_ION_ACTION_START_EVALUATION,
                   .key = weir_arena_printf(engine->arena, "start_evaluation:%s:%s:%" PRId64,
                                            engine->state->ion.name, candidate->id,
                                            engine->state->ion.n_decisions),
                   .pipeline = candidate->id,
                   .number = wanted->n});
}

void engine_on_measuring(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    struct weir_ion_candidate *candidate = weir_ion_candidate_of(engine->state, event->candidate);
    const struct weir_ion_doc_link *link =
        candidate != NULL ? weir_ion_doc_link(&engine->state->doc, candidate->link) : NULL;
    const struct weir_policy_evaluation *before =
        weir_policy_evaluation_of(candidate != NULL ? candidate->evaluation : NULL);
    if (link == NULL || before->n != event->number || before->job != NULL ||
        before->problem != NULL) {
        return; /* it waits for another by now, or for none */
    }
    struct weir_policy_evaluation *row = copy_of(engine, before);
    row->job = weir_arena_strdup(engine->arena, event->job);
    row->run = weir_arena_strdup(engine->arena, event->run);
    row->problem = weir_arena_strdup(engine->arena, event->note);
    candidate->evaluation = row;
    candidate->updated_ms = engine->now_ms;
    if (row->problem != NULL) {
        engine_advance(engine, link, candidate, &(struct asked_by){.actor = WEIR_ACTOR_POLICY});
    }
}

void engine_drop_evaluations(struct engine *engine)
{
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (candidate->evaluation != NULL) {
            candidate->evaluation = weir_policy_evaluation_of(NULL);
        }
    }
}

/** The job that measures it, if somebody waits for that; else NULL. */
static const char *job_of(const struct engine *engine, const struct weir_ion_candidate *candidate)
{
    bool is_wanted = candidate->evaluation != NULL &&
                     engine_is(engine->state->ion.state, "ACTIVE") &&
                     weir_ion_doc_link(&engine->state->doc, candidate->link) != NULL;
    return is_wanted ? candidate->evaluation->job : NULL;
}

struct engine_jobs engine_evaluation_jobs(const struct engine *engine)
{
    const struct weir_ion_state *state = engine->state;
    struct engine_jobs jobs = {
        .items = WEIR_ARENA_ARRAY(engine->arena, state->n_candidates + 1, const char *)};
    for (size_t i = 0; i < state->n_candidates; i++) {
        const char *job = job_of(engine, &state->candidates[i]);
        if (job != NULL) {
            jobs.items[jobs.n++] = job;
        }
    }
    return jobs;
}

void engine_stop_evaluations(struct engine *engine, const struct engine_jobs *before)
{
    const struct engine_jobs now = engine_evaluation_jobs(engine);
    for (size_t i = 0; i < before->n; i++) {
        bool is_wanted = false;
        for (size_t k = 0; k < now.n && !is_wanted; k++) {
            is_wanted = strcmp(now.items[k], before->items[i]) == 0;
        }
        if (!is_wanted) {
            engine_act(engine,
                       (struct weir_ion_action){
                           .type = WEIR_ION_ACTION_STOP_EVALUATION,
                           .key = weir_arena_printf(engine->arena, "stop_evaluation:%s:%s",
                                                    engine->state->ion.name, before->items[i]),
                           .pipeline = engine->state->ion.name,
                           .job = before->items[i]});
        }
    }
}
