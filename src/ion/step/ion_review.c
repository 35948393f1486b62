/* What people ask for: approve, reject, roll back, set a model. */
#include "base/json.h"
#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

static weir_status check_link(const struct ion_step *step)
{
    const char *id = step->event->link;
    if (id != NULL && weir_ion_doc_link(&step->state->doc, id) == NULL) {
        return weir_error_set(step->err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no link \"%s\"",
                              step->state->ion.name, id);
    }
    return WEIR_OK;
}

/** Is the candidate on a link of the document, and on the one asked for? */
static bool is_meant(const struct ion_step *step, const struct weir_ion_candidate *candidate)
{
    const char *id = step->event->link;
    return weir_ion_doc_link(&step->state->doc, candidate->link) != NULL &&
           (id == NULL || strcmp(candidate->link, id) == 0);
}

/** Does it wait for people? By its number one that waits for a time can be rejected, too. */
static bool can_review(const struct ion_step *step, const struct weir_ion_candidate *candidate)
{
    bool is_any = step->event->type == WEIR_ION_EVENT_REJECT && step->event->version != 0;
    return is_any ? step_is_standing(candidate)
                  : step_is(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW);
}

/** Why nothing waits for review, in words. */
static weir_status nothing_waits(const struct ion_step *step)
{
    int64_t version = step->event->version;
    if (version == 0) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                              "nothing waits for review in ION \"%s\"", step->state->ion.name);
    }
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (is_meant(step, candidate) && candidate->version == version) {
            return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                                  "version %" PRId64
                                  " of model %s does not wait for review: it is %s",
                                  version, candidate->model, candidate->state);
        }
    }
    return weir_error_set(step->err, WEIR_ERR_NOT_FOUND,
                          "no version %" PRId64 " has come to a link of ION \"%s\"", version,
                          step->state->ion.name);
}

/** The candidate that a review means: the newest that waits, or the version asked for. */
static weir_status find_reviewed(struct ion_step *step, struct weir_ion_candidate **out)
{
    struct weir_ion_candidate *found = NULL;
    int64_t version = step->event->version;
    WEIR_TRY(check_link(step));
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (!is_meant(step, candidate) || !can_review(step, candidate) ||
            (version != 0 && candidate->version != version)) {
            continue;
        }
        if (found != NULL && strcmp(found->model, candidate->model) != 0) {
            return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                                  "versions of %s and %s wait: say which link is meant (%s or %s)",
                                  found->model, candidate->model, found->link, candidate->link);
        }
        if (found == NULL || candidate->version > found->version) {
            found = candidate;
        }
    }
    if (found == NULL) {
        return nothing_waits(step);
    }
    *out = found;
    return WEIR_OK;
}

/** One more has approved the candidate. */
static void add_approval(struct ion_step *step, struct weir_ion_candidate *candidate,
                         const struct weir_policy_person *person)
{
    size_t n = candidate->n_approvals;
    struct weir_policy_approval *approvals =
        WEIR_ARENA_ARRAY(step->arena, n + 1, struct weir_policy_approval);
    json_t *roles = json_array();
    for (const char *const *role = person->roles; role != NULL && *role != NULL; role++) {
        json_array_append_new(roles, json_string(*role));
    }
    for (size_t i = 0; i < n; i++) {
        approvals[i] = candidate->approvals[i];
    }
    approvals[n] = (struct weir_policy_approval){.by = weir_arena_strdup(step->arena, person->name),
                                                 .roles = weir_json_text(roles, step->arena),
                                                 .time_ms = step->now_ms};
    json_decref(roles);
    candidate->approvals = approvals;
    candidate->n_approvals = n + 1;
}

/** Does the person's approval of the candidate count, at the policy where it stands? */
static weir_status admit(struct ion_step *step, const struct weir_ion_candidate *candidate,
                         const struct weir_policy_person *person)
{
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&step->state->doc, candidate->link);
    size_t i_policy = (size_t)candidate->position;
    struct weir_policy_inputs inputs = step_asked(step, candidate, link, i_policy);
    return weir_policy_admit(&link->policies.items[i_policy], &inputs, person, step->err);
}

/** Does the review mean this candidate, too? The same model may wait on several links, and the review
 *  is about the model. */
static bool is_reviewed(const struct ion_step *step, const struct weir_ion_candidate *candidate,
                        const struct weir_ion_candidate *found)
{
    return is_meant(step, candidate) && can_review(step, candidate) &&
           strcmp(candidate->model_version, found->model_version) == 0;
}

static void approve(struct ion_step *step, struct weir_ion_candidate *candidate,
                    const struct weir_policy_person *person)
{
    add_approval(step, candidate, person);
    step_advance(step, weir_ion_doc_link(&step->state->doc, candidate->link), candidate,
                 &(struct asked_by){.actor = person->name});
}

weir_status step_on_review(struct ion_step *step)
{
    struct weir_ion_candidate *found = NULL;
    const struct weir_policy_person person = {step_actor(step), step->event->roles};
    WEIR_TRY(find_reviewed(step, &found));
    bool is_approved = step->event->type == WEIR_ION_EVENT_APPROVE;
    for (size_t i = 0; i < step->state->n_candidates && is_approved; i++) {
        if (is_reviewed(step, &step->state->candidates[i], found)) {
            WEIR_TRY(admit(step, &step->state->candidates[i], &person));
        }
    }
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (!is_reviewed(step, candidate, found)) {
            continue;
        }
        if (is_approved) {
            approve(step, candidate, &person);
        } else {
            step_advance(step, weir_ion_doc_link(&step->state->doc, candidate->link), candidate,
                         &(struct asked_by){.actor = person.name, .rejected_by = person.name});
        }
    }
    return WEIR_OK;
}

/** The link to roll back: the one asked for, or the only one that serves. */
static weir_status find_rolled_back(struct ion_step *step, struct weir_ion_candidate **out)
{
    struct weir_ion_candidate *serving = NULL;
    const struct weir_ion_doc *doc = &step->state->doc;
    WEIR_TRY(check_link(step));
    for (size_t i = 0; i < doc->n_links; i++) {
        struct weir_ion_candidate *candidate = weir_ion_serving(step->state, doc->links[i].id);
        if (candidate == NULL || !is_meant(step, candidate)) {
            continue;
        }
        if (serving != NULL) {
            return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                                  "several links serve a model: say which one is meant (%s or %s)",
                                  serving->link, candidate->link);
        }
        serving = candidate;
    }
    if (serving == NULL) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT, "no link of ION \"%s\" serves a model",
                              step->state->ion.name);
    }
    *out = serving;
    return WEIR_OK;
}

/** What to go back to: the version asked for, or the last served that was not itself rolled back.
 */
static weir_status find_target(struct ion_step *step, const struct weir_ion_candidate *serving,
                               struct weir_ion_candidate **out)
{
    int64_t version = step->event->version;
    struct weir_ion_candidate *target = NULL;
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        bool has_file = candidate->blob[0] != '\0'; /* its version was not deleted */
        bool has_served = has_file && candidate->served_seq > 0 && candidate != serving &&
                          strcmp(candidate->link, serving->link) == 0;
        bool is_wanted = version != 0 ? candidate->version == version
                                      : step_is(candidate->state, WEIR_CANDIDATE_RETIRED);
        if (has_served && is_wanted &&
            (target == NULL || candidate->served_seq > target->served_seq)) {
            target = candidate;
        }
    }
    if (target == NULL && version == serving->version) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT, "version %" PRId64 " serves already",
                              version);
    }
    if (target == NULL && version != 0) {
        return weir_error_set(step->err, WEIR_ERR_NOT_FOUND,
                              "version %" PRId64 " has never served on link %s", version,
                              serving->link);
    }
    if (target == NULL) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                              "nothing served on link %s before version %" PRId64, serving->link,
                              serving->version);
    }
    *out = target;
    return WEIR_OK;
}

weir_status step_on_rollback(struct ion_step *step)
{
    struct weir_ion_candidate *serving = NULL, *target = NULL;
    WEIR_TRY(find_rolled_back(step, &serving));
    WEIR_TRY(find_target(step, serving, &target));
    step_record_by_hand(step, target, WEIR_VERDICT_ROLLBACK, "rolled back by a person",
                        step_actor(step));
    step_serve(step, target, WEIR_CANDIDATE_ROLLED_BACK, "model_rolled_back");
    return WEIR_OK;
}

weir_status step_on_set(struct ion_step *step)
{
    const struct weir_ion_model *model = &step->event->models[0];
    WEIR_TRY(check_link(step));
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&step->state->doc, step->event->link);
    if (link == NULL) {
        return weir_error_set(step->err, WEIR_ERR_INVALID, "say on which link");
    }
    struct weir_ion_candidate *candidate =
        weir_ion_candidate_of(step->state, step_text(step, "%s:%s:%s", step->state->ion.name,
                                                     link->id, model->model_version));
    if (candidate != NULL && step_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
        return weir_error_set(step->err, WEIR_ERR_CONFLICT,
                              "version %" PRId64 " of model %s serves on link %s already",
                              model->version, model->name, link->id);
    }
    if (candidate == NULL) {
        candidate = step_come(step, link, step_offer(step, model, model->made_by));
    }
    step_record_by_hand(step, candidate, WEIR_VERDICT_SET, "set by hand", step_actor(step));
    step_serve(step, candidate, WEIR_CANDIDATE_RETIRED, "model_promoted");
    return WEIR_OK;
}
