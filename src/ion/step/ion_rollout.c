/* Versions that are tried among the requests of a deployment, and what a link wants of it. */
#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

#define WHOLE_PPM 1000000

static bool is_tried(const struct weir_ion_candidate *candidate)
{
    return weir_policy_is_trial(candidate->state);
}

/** The candidate of the link that is being tried, but for one; NULL: none is. */
static const struct weir_ion_candidate *find_tried(const struct weir_ion_state *state,
                                                   const char *link, const char *but)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        if (strcmp(candidate->link, link) == 0 && is_tried(candidate) &&
            (but == NULL || strcmp(candidate->id, but) != 0)) {
            return candidate;
        }
    }
    return NULL;
}

static const struct weir_ion_traffic *find_traffic(const struct ion_step *step, const char *id)
{
    for (size_t i = 0; i < step->event->n_traffic; i++) {
        if (strcmp(step->event->traffic[i].candidate, id) == 0) {
            return &step->event->traffic[i];
        }
    }
    return NULL;
}

const struct weir_policy_trial *step_trial(struct ion_step *step,
                                           const struct weir_ion_candidate *candidate,
                                           const struct weir_ion_doc_link *link, size_t i_policy)
{
    if (weir_policy_ops(&link->policies.items[i_policy])->trial_state == NULL) {
        return NULL;
    }
    const struct weir_ion_candidate *other = find_tried(step->state, link->id, candidate->id);
    const struct weir_ion_traffic *traffic = find_traffic(step, candidate->id);
    struct weir_policy_trial *trial = WEIR_ARENA_NEW(step->arena, struct weir_policy_trial);
    *trial =
        (struct weir_policy_trial){.is_sandbox = step_is(step->state->ion.mode, WEIR_ION_SANDBOX),
                                   .other_version = other != NULL ? other->version : 0,
                                   .step = candidate->step,
                                   .step_ms = candidate->step_ms,
                                   .begun_ms = candidate->begun_ms};
    if (traffic != NULL) {
        trial->live_ppm = traffic->live_ppm;
        trial->is_ready = traffic->is_ready;
        trial->problem = weir_arena_strdup(step->arena, traffic->problem);
    }
    if (traffic != NULL && candidate->begun_ms > 0) {
        trial->figures = weir_ion_figures_since(candidate->base, &traffic->figures, step->arena);
    }
    return trial;
}

const struct weir_policy_arms *step_arms(struct ion_step *step,
                                         const struct weir_ion_candidate *candidate,
                                         const struct weir_ion_doc_link *link, size_t i_policy)
{
    bool compares = weir_policy_ops(&link->policies.items[i_policy])->metric != NULL;
    const struct weir_ion_traffic *traffic = find_traffic(step, candidate->id);
    return compares && traffic != NULL ? &traffic->arms : NULL;
}

void step_end_trial(struct weir_ion_candidate *candidate)
{
    candidate->share_ppm = candidate->step = candidate->step_ms = candidate->begun_ms = 0;
    candidate->is_mirrored = false;
    candidate->base = NULL;
    candidate->blocked = NULL;
}

void step_end_trials_of(struct ion_step *step, const char *link, const char *why)
{
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (strcmp(candidate->link, link) == 0 && is_tried(candidate)) {
            step_record_by_hand(step, candidate, WEIR_VERDICT_ROLLBACK, why, step_actor(step));
            step_roll_back(step, candidate, why);
        }
    }
}

void step_try(struct ion_step *step, struct weir_ion_candidate *candidate,
              const struct weir_ion_candidate *before, const struct weir_policy_verdict *told)
{
    if (!is_tried(candidate)) {
        return;
    }
    bool is_same_step = step_is(before->state, told->state) && before->step == told->step;
    candidate->share_ppm = told->share_ppm;
    candidate->is_mirrored = told->is_mirrored;
    candidate->step = told->step;
    candidate->step_ms = is_same_step ? before->step_ms : step->now_ms;
    candidate->begun_ms = is_same_step ? before->begun_ms : 0;
    candidate->base = is_same_step ? before->base : NULL;
    candidate->blocked = weir_arena_strdup(step->arena, told->blocked);
    if (told->is_begun) {
        const struct weir_ion_traffic *traffic = find_traffic(step, candidate->id);
        candidate->begun_ms = step->now_ms;
        candidate->base = traffic != NULL
                              ? weir_ion_figures_base(before->base, &traffic->figures, step->arena)
                              : NULL;
    }
    if (told->is_looked) {
        candidate->base = weir_ion_figures_looked(before->base, step->arena);
    }
}

bool step_is_unchanged(const struct weir_ion_candidate *candidate, const struct weir_policy *policy,
                       const struct weir_policy_verdict *told)
{
    return weir_policy_ops(policy)->watches && strcmp(told->verdict, WEIR_VERDICT_WAIT) == 0 &&
           step_is(candidate->state, told->state) &&
           step_is(candidate->waits_for, policy->kind->name) && candidate->step == told->step &&
           !told->is_begun && !told->is_looked && !told->is_to_measure &&
           (told->blocked == NULL ? candidate->blocked == NULL
                                  : step_is(candidate->blocked, told->blocked));
}

const struct weir_policy *weir_ion_watching(const struct weir_ion_state *state,
                                            const struct weir_ion_candidate *candidate)
{
    bool is_held = is_tried(candidate) || step_is(candidate->state, WEIR_CANDIDATE_WAITING);
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&state->doc, candidate->link);
    size_t position = (size_t)candidate->position;
    bool watches = is_held && link != NULL && position < link->policies.n &&
                   weir_policy_ops(&link->policies.items[position])->watches;
    return watches ? &link->policies.items[position] : NULL;
}

struct weir_ion_wanted weir_ion_wanted_of(const struct weir_ion_state *state,
                                          const struct weir_ion_doc_link *link)
{
    const struct weir_ion_candidate *serving, *trial;
    if (link->deployment == NULL || step_is(state->ion.mode, WEIR_ION_SANDBOX)) {
        return (struct weir_ion_wanted){0};
    }
    serving = weir_ion_serving(state, link->id);
    if (serving == NULL) {
        return (struct weir_ion_wanted){0}; /* What it serves it goes on serving. */
    }
    struct weir_ion_wanted wanted = {.model = serving->model, .serving = serving->version};
    trial = find_tried(state, link->id, NULL);
    if (trial == NULL || strcmp(trial->model, serving->model) != 0) {
        return wanted;
    }
    bool is_whole = trial->share_ppm >= WHOLE_PPM;
    wanted.trial = trial->version;
    wanted.trial_ppm = trial->share_ppm;
    /* Copies keep the former version loaded, too, so that it is there at once if it must be. */
    wanted.mirror = is_whole ? serving->version : trial->is_mirrored ? trial->version : 0;
    return wanted;
}

struct weir_ion_wanted *step_wanted(const struct ion_step *step, const struct weir_ion_doc *doc)
{
    struct weir_ion_wanted *wanted =
        WEIR_ARENA_ARRAY(step->arena, doc->n_links + 1, struct weir_ion_wanted);
    for (size_t i = 0; i < doc->n_links; i++) {
        wanted[i] = weir_ion_wanted_of(step->state, &doc->links[i]);
    }
    return wanted;
}

static bool is_same_wanted(const struct weir_ion_wanted *a, const struct weir_ion_wanted *b)
{
    bool is_same_model =
        a->model == NULL || b->model == NULL ? a->model == b->model : step_is(a->model, b->model);
    return is_same_model && a->serving == b->serving && a->trial == b->trial &&
           a->trial_ppm == b->trial_ppm && a->mirror == b->mirror;
}

/** Every change of it has a decision, or comes with another document or mode: so has the key. */
static void shift(struct ion_step *step, struct weir_ion_action action)
{
    const struct weir_ion *ion = &step->state->ion;
    action.type = WEIR_ION_ACTION_SHIFT;
    action.key = step_text(step, "shift_deployment:%s:%s:%" PRId64 ":%" PRId64 ":%s", ion->name,
                           action.pipeline, ion->n_decisions, ion->revision, ion->mode);
    step_act(step, action);
}

/** The link is gone: what it gave to a trial goes back to what it served, and nothing is wanted. */
static void give_back(struct ion_step *step, const struct weir_ion_doc_link *link,
                      const struct weir_ion_wanted *before)
{
    if (link->deployment == NULL) {
        return;
    }
    if (before->trial != 0) {
        shift(step, (struct weir_ion_action){.pipeline = link->id,
                                             .deployment = link->deployment,
                                             .wanted = {.model = before->model,
                                                        .serving = before->serving,
                                                        .trial = before->trial}});
    }
    step_resolve(step, step_text(step, WEIR_ION_SHIFT_ALERT, step->state->ion.name, link->id));
}

void step_shift(struct ion_step *step, const struct weir_ion_doc *doc,
                const struct weir_ion_wanted *before)
{
    const struct weir_ion_doc *now = &step->state->doc;
    bool is_deleted = step_is(step->state->ion.state, "DELETED");
    for (size_t i = 0; i < doc->n_links; i++) {
        if (is_deleted || weir_ion_doc_link(now, doc->links[i].id) == NULL) {
            give_back(step, &doc->links[i], &before[i]);
        }
    }
    if (is_deleted) {
        return;
    }
    for (size_t i = 0; i < now->n_links; i++) {
        const struct weir_ion_doc_link *link = &now->links[i],
                                       *old = weir_ion_doc_link(doc, link->id);
        struct weir_ion_wanted wanted = weir_ion_wanted_of(step->state, link);
        bool is_same = old != NULL && is_same_wanted(&before[old - doc->links], &wanted);
        if (wanted.model != NULL && !is_same) {
            shift(step, (struct weir_ion_action){.pipeline = link->id});
        }
    }
}
