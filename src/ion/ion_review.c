/* What people ask for: approve, reject, roll back, set a model. */
#include "base/json.h"
#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

static weir_status check_link(const struct engine *engine)
{
    const char *id = engine->event->link;
    if (id != NULL && weir_ion_doc_link(&engine->state->doc, id) == NULL) {
        return weir_error_set(engine->err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no link \"%s\"",
                              engine->state->ion.name, id);
    }
    return WEIR_OK;
}

/** Is the candidate on a link of the document, and on the one asked for? */
static bool is_meant(const struct engine *engine, const struct weir_ion_candidate *candidate)
{
    const char *id = engine->event->link;
    return weir_ion_doc_link(&engine->state->doc, candidate->link) != NULL &&
           (id == NULL || strcmp(candidate->link, id) == 0);
}

/** Does it wait for people? By its number one that waits for a time can be rejected, too. */
static bool can_review(const struct engine *engine, const struct weir_ion_candidate *candidate)
{
    bool is_any = engine->event->type == WEIR_ION_EVENT_REJECT && engine->event->version != 0;
    return is_any ? engine_is_standing(candidate)
                  : engine_is(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW);
}

/** Why nothing waits for review, in words. */
static weir_status nothing_waits(const struct engine *engine)
{
    int64_t version = engine->event->version;
    if (version == 0) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                              "nothing waits for review in ION \"%s\"", engine->state->ion.name);
    }
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (is_meant(engine, candidate) && candidate->version == version) {
            return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                                  "version %" PRId64
                                  " of model %s does not wait for review: it is %s",
                                  version, candidate->model, candidate->state);
        }
    }
    return weir_error_set(engine->err, WEIR_ERR_NOT_FOUND,
                          "no version %" PRId64 " has come to a link of ION \"%s\"", version,
                          engine->state->ion.name);
}

/** The candidate that a review means: the newest that waits, or the version asked for. */
static weir_status find_reviewed(struct engine *engine, struct weir_ion_candidate **out)
{
    struct weir_ion_candidate *found = NULL;
    int64_t version = engine->event->version;
    WEIR_TRY(check_link(engine));
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (!is_meant(engine, candidate) || !can_review(engine, candidate) ||
            (version != 0 && candidate->version != version)) {
            continue;
        }
        if (found != NULL && strcmp(found->model, candidate->model) != 0) {
            return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                                  "versions of %s and %s wait: say which link is meant (%s or %s)",
                                  found->model, candidate->model, found->link, candidate->link);
        }
        if (found == NULL || candidate->version > found->version) {
            found = candidate;
        }
    }
    if (found == NULL) {
        return nothing_waits(engine);
    }
    *out = found;
    return WEIR_OK;
}

/** One more has approved the candidate. */
static void add_approval(struct engine *engine, struct weir_ion_candidate *candidate,
                         const struct weir_policy_person *person)
{
    size_t n = candidate->n_approvals;
    struct weir_policy_approval *approvals =
        WEIR_ARENA_ARRAY(engine->arena, n + 1, struct weir_policy_approval);
    json_t *roles = json_array();
    for (const char *const *role = person->roles; role != NULL && *role != NULL; role++) {
        json_array_append_new(roles, json_string(*role));
    }
    for (size_t i = 0; i < n; i++) {
        approvals[i] = candidate->approvals[i];
    }
    approvals[n] =
        (struct weir_policy_approval){.by = weir_arena_strdup(engine->arena, person->name),
                                      .roles = weir_json_text(roles, engine->arena),
                                      .time_ms = engine->now_ms};
    json_decref(roles);
    candidate->approvals = approvals;
    candidate->n_approvals = n + 1;
}

/** Does the person's approval of the candidate count, at the policy where it stands? */
static weir_status admit(struct engine *engine, const struct weir_ion_candidate *candidate,
                         const struct weir_policy_person *person)
{
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&engine->state->doc, candidate->link);
    size_t i_policy = (size_t)candidate->position;
    struct weir_policy_inputs inputs = engine_asked(engine, candidate, link, i_policy);
    return weir_policy_admit(&link->policies.items[i_policy], &inputs, person, engine->err);
}

/** Does the review mean this candidate, too? The same model may wait on several links, and the review
 *  is about the model. */
static bool is_reviewed(const struct engine *engine, const struct weir_ion_candidate *candidate,
                        const struct weir_ion_candidate *found)
{
    return is_meant(engine, candidate) && can_review(engine, candidate) &&
           strcmp(candidate->model_version, found->model_version) == 0;
}

static void approve(struct engine *engine, struct weir_ion_candidate *candidate,
                    const struct weir_policy_person *person)
{
    add_approval(engine, candidate, person);
    engine_advance(engine, weir_ion_doc_link(&engine->state->doc, candidate->link), candidate,
                   &(struct asked_by){.actor = person->name});
}

weir_status engine_on_review(struct engine *engine)
{
    struct weir_ion_candidate *found = NULL;
    const struct weir_policy_person person = {engine_actor(engine), engine->event->roles};
    WEIR_TRY(find_reviewed(engine, &found));
    bool is_approved = engine->event->type == WEIR_ION_EVENT_APPROVE;
    for (size_t i = 0; i < engine->state->n_candidates && is_approved; i++) {
        if (is_reviewed(engine, &engine->state->candidates[i], found)) {
            WEIR_TRY(admit(engine, &engine->state->candidates[i], &person));
        }
    }
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (!is_reviewed(engine, candidate, found)) {
            continue;
        }
        if (is_approved) {
            approve(engine, candidate, &person);
        } else {
            engine_advance(engine, weir_ion_doc_link(&engine->state->doc, candidate->link),
                           candidate,
                           &(struct asked_by){.actor = person.name, .rejected_by = person.name});
        }
    }
    return WEIR_OK;
}

/** The link to roll back: the one asked for, or the only one that serves. */
static weir_status find_rolled_back(struct engine *engine, struct weir_ion_candidate **out)
{
    struct weir_ion_candidate *serving = NULL;
    const struct weir_ion_doc *doc = &engine->state->doc;
    WEIR_TRY(check_link(engine));
    for (size_t i = 0; i < doc->n_links; i++) {
        struct weir_ion_candidate *candidate = weir_ion_serving(engine->state, doc->links[i].id);
        if (candidate == NULL || !is_meant(engine, candidate)) {
            continue;
        }
        if (serving != NULL) {
            return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                                  "several links serve a model: say which one is meant (%s or %s)",
                                  serving->link, candidate->link);
        }
        serving = candidate;
    }
    if (serving == NULL) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                              "no link of ION \"%s\" serves a model", engine->state->ion.name);
    }
    *out = serving;
    return WEIR_OK;
}

/** What to go back to: the version asked for, or the last served that was not itself rolled back.
 */
static weir_status find_target(struct engine *engine, const struct weir_ion_candidate *serving,
                               struct weir_ion_candidate **out)
{
    int64_t version = engine->event->version;
    struct weir_ion_candidate *target = NULL;
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        bool has_file = candidate->blob[0] != '\0'; /* its version was not deleted */
        bool has_served = has_file && candidate->served_seq > 0 && candidate != serving &&
                          strcmp(candidate->link, serving->link) == 0;
        bool is_wanted = version != 0 ? candidate->version == version
                                      : engine_is(candidate->state, WEIR_CANDIDATE_RETIRED);
        if (has_served && is_wanted &&
            (target == NULL || candidate->served_seq > target->served_seq)) {
            target = candidate;
        }
    }
    if (target == NULL && version == serving->version) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT, "version %" PRId64 " serves already",
                              version);
    }
    if (target == NULL && version != 0) {
        return weir_error_set(engine->err, WEIR_ERR_NOT_FOUND,
                              "version %" PRId64 " has never served on link %s", version,
                              serving->link);
    }
    if (target == NULL) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                              "nothing served on link %s before version %" PRId64, serving->link,
                              serving->version);
    }
    *out = target;
    return WEIR_OK;
}

weir_status engine_on_rollback(struct engine *engine)
{
    struct weir_ion_candidate *serving = NULL, *target = NULL;
    WEIR_TRY(find_rolled_back(engine, &serving));
    WEIR_TRY(find_target(engine, serving, &target));
    engine_record_by_hand(engine, target, WEIR_VERDICT_ROLLBACK, "rolled back by a person",
                          engine_actor(engine));
    engine_serve(engine, target, WEIR_CANDIDATE_ROLLED_BACK, "model_rolled_back");
    return WEIR_OK;
}

weir_status engine_on_set(struct engine *engine)
{
    const struct weir_ion_model *model = &engine->event->models[0];
    WEIR_TRY(check_link(engine));
    const struct weir_ion_doc_link *link =
        weir_ion_doc_link(&engine->state->doc, engine->event->link);
    if (link == NULL) {
        return weir_error_set(engine->err, WEIR_ERR_INVALID, "say on which link");
    }
    struct weir_ion_candidate *candidate = weir_ion_candidate_of(
        engine->state, weir_arena_printf(engine->arena, "%s:%s:%s", engine->state->ion.name,
                                         link->id, model->model_version));
    if (candidate != NULL && engine_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
        return weir_error_set(engine->err, WEIR_ERR_CONFLICT,
                              "version %" PRId64 " of model %s serves on link %s already",
                              model->version, model->name, link->id);
    }
    if (candidate == NULL) {
        candidate = engine_come(engine, link, engine_offer(engine, model, model->made_by));
    }
    engine_record_by_hand(engine, candidate, WEIR_VERDICT_SET, "set by hand", engine_actor(engine));
    engine_serve(engine, candidate, WEIR_CANDIDATE_RETIRED, "model_promoted");
    return WEIR_OK;
}
