/* Versions that are measured on a dataset for the policy where they stand. */
#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

static const struct weir_ion_measured *find_measured(const struct ion_step *step, const char *id)
{
    for (size_t i = 0; i < step->event->n_measured; i++) {
        if (strcmp(step->event->measured[i].candidate, id) == 0) {
            return &step->event->measured[i];
        }
    }
    return NULL;
}

/** A copy of an evaluation. */
static struct weir_policy_evaluation *copy_of(struct ion_step *step,
                                              const struct weir_policy_evaluation *evaluation)
{
    struct weir_policy_evaluation *copy =
        WEIR_ARENA_NEW(step->arena, struct weir_policy_evaluation);
    *copy = *weir_policy_evaluation_of(evaluation);
    return copy;
}

const struct weir_policy_evaluation *step_evaluation(struct ion_step *step,
                                                     const struct weir_ion_candidate *candidate,
                                                     const struct weir_ion_doc_link *link,
                                                     size_t i_policy)
{
    if (!weir_policy_ops(&link->policies.items[i_policy])->measures) {
        return NULL;
    }
    const struct weir_policy_evaluation *row = weir_policy_evaluation_of(candidate->evaluation);
    const struct weir_ion_measured *measured = find_measured(step, candidate->id);
    if (measured == NULL || row->job == NULL || !step_is(measured->figures.job, row->job)) {
        return row;
    }
    struct weir_policy_evaluation *now = copy_of(step, &measured->figures);
    now->n = row->n;
    now->asked_ms = row->asked_ms;
    now->live_version = row->live_version;
    now->run = row->run;
    return now;
}

void step_measure_candidate(struct ion_step *step, struct weir_ion_candidate *candidate,
                            const struct weir_ion_candidate *before,
                            const struct weir_policy_verdict *told)
{
    if (!told->is_to_measure) {
        candidate->evaluation = before->evaluation;
        return;
    }
    struct weir_policy_evaluation *wanted = copy_of(step, NULL);
    wanted->n = weir_policy_evaluation_of(before->evaluation)->n + 1;
    wanted->asked_ms = step->now_ms;
    wanted->live_version = step_serving_version(step, candidate);
    candidate->evaluation = wanted;
    /* That it is asked for has a decision of its own: so has the key. */
    step_act(step,
             (struct weir_ion_action){.type = WEIR_ION_ACTION_START_EVALUATION,
                                      .key = step_text(step, "start_evaluation:%s:%s:%" PRId64,
                                                       step->state->ion.name, candidate->id,
                                                       step->state->ion.n_decisions),
                                      .pipeline = candidate->id,
                                      .number = wanted->n});
}

void step_on_measuring(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    struct weir_ion_candidate *candidate = weir_ion_candidate_of(step->state, event->candidate);
    const struct weir_ion_doc_link *link =
        candidate != NULL ? weir_ion_doc_link(&step->state->doc, candidate->link) : NULL;
    const struct weir_policy_evaluation *before =
        weir_policy_evaluation_of(candidate != NULL ? candidate->evaluation : NULL);
    if (link == NULL || before->n != event->number || before->job != NULL ||
        before->problem != NULL) {
        return; /* it waits for another by now, or for none */
    }
    struct weir_policy_evaluation *row = copy_of(step, before);
    row->job = weir_arena_strdup(step->arena, event->job);
    row->run = weir_arena_strdup(step->arena, event->run);
    row->problem = weir_arena_strdup(step->arena, event->note);
    candidate->evaluation = row;
    candidate->updated_ms = step->now_ms;
    if (row->problem != NULL) {
        step_advance(step, link, candidate, &(struct asked_by){.actor = WEIR_ACTOR_POLICY});
    }
}

void step_drop_evaluations(struct ion_step *step)
{
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (candidate->evaluation != NULL) {
            candidate->evaluation = weir_policy_evaluation_of(NULL);
        }
    }
}

/** The job that measures it, if somebody waits for that; else NULL. */
static const char *job_of(const struct ion_step *step, const struct weir_ion_candidate *candidate)
{
    bool is_wanted = candidate->evaluation != NULL && step_is(step->state->ion.state, "ACTIVE") &&
                     weir_ion_doc_link(&step->state->doc, candidate->link) != NULL;
    return is_wanted ? candidate->evaluation->job : NULL;
}

struct step_jobs step_evaluation_jobs(const struct ion_step *step)
{
    const struct weir_ion_state *state = step->state;
    struct step_jobs jobs = {
        .items = WEIR_ARENA_ARRAY(step->arena, state->n_candidates + 1, const char *)};
    for (size_t i = 0; i < state->n_candidates; i++) {
        const char *job = job_of(step, &state->candidates[i]);
        if (job != NULL) {
            jobs.items[jobs.n++] = job;
        }
    }
    return jobs;
}

void step_stop_evaluations(struct ion_step *step, const struct step_jobs *before)
{
    const struct step_jobs now = step_evaluation_jobs(step);
    for (size_t i = 0; i < before->n; i++) {
        bool is_wanted = false;
        for (size_t k = 0; k < now.n && !is_wanted; k++) {
            is_wanted = strcmp(now.items[k], before->items[i]) == 0;
        }
        if (!is_wanted) {
            step_act(step, (struct weir_ion_action){.type = WEIR_ION_ACTION_STOP_EVALUATION,
                                                    .key = step_text(step, "stop_evaluation:%s:%s",
                                                                     step->state->ion.name,
                                                                     before->items[i]),
                                                    .pipeline = step->state->ion.name,
                                                    .job = before->items[i]});
        }
    }
}
