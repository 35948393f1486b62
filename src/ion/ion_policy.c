#include "base/json.h"
#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

/** The document's link; NULL if it has none of that identifier. */
static const struct weir_ion_doc_link *find_link(const struct engine *engine, const char *id)
{
    const struct weir_ion_doc *doc = &engine->state->doc;
    for (size_t i = 0; id != NULL && i < doc->n_links; i++) {
        if (strcmp(doc->links[i].id, id) == 0) {
            return &doc->links[i];
        }
    }
    return NULL;
}

static struct weir_ion_candidate *find_candidate(struct engine *engine, const char *id)
{
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        if (strcmp(engine->state->candidates[i].id, id) == 0) {
            return &engine->state->candidates[i];
        }
    }
    return NULL;
}

struct weir_ion_candidate *engine_serving(struct engine *engine, const char *link)
{
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (strcmp(candidate->link, link) == 0 &&
            engine_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
            return candidate;
        }
    }
    return NULL;
}

/** The newest version that was ever a candidate on the link, but for one; 0 if none. */
static int64_t newest_version(const struct engine *engine, const char *link, const char *but)
{
    int64_t newest = 0;
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (strcmp(candidate->link, link) == 0 && strcmp(candidate->id, but) != 0) {
            newest = WEIR_MAX(newest, candidate->version);
        }
    }
    return newest;
}

/** What the rule looked at, so that the decision can be made again from its row alone. */
static char *inputs_json(struct engine *engine, const struct weir_ion_candidate *candidate)
{
    const struct weir_ion_candidate *serving = engine_serving(engine, candidate->link);
    json_t *inputs = json_object();
    json_t *metrics =
        candidate->metrics != NULL ? json_loads(candidate->metrics, JSON_DECODE_ANY, NULL) : NULL;
    json_object_set_new(inputs, "candidate_version", json_integer(candidate->version));
    json_object_set_new(inputs, "candidate_state", json_string(candidate->state));
    json_object_set_new(inputs, "newest_other_version",
                        json_integer(newest_version(engine, candidate->link, candidate->id)));
    json_object_set_new(inputs, "serving_version",
                        serving != NULL ? json_integer(serving->version) : json_null());
    json_object_set_new(inputs, "metrics", metrics != NULL ? metrics : json_null());
    char *text = weir_json_text(inputs, engine->arena);
    json_decref(inputs);
    return text;
}

/** Record a decision, before it is carried out. */
static void decide(struct engine *engine, const struct weir_ion_candidate *candidate,
                   const char *verdict, const char *rule, const char *actor)
{
    struct weir_ion *ion = &engine->state->ion;
    const struct weir_ion_doc_link *link = find_link(engine, candidate->link);
    ion->n_decisions++;
    engine_act(engine,
               (struct weir_ion_action){
                   .type = WEIR_ION_ACTION_DECIDED,
                   .decision = {.id = weir_arena_printf(engine->arena, "%s:%08" PRId64, ion->name,
                                                        ion->n_decisions),
                                .ion = ion->name,
                                .link = candidate->link,
                                .candidate = candidate->id,
                                .model_version = candidate->model_version,
                                .version = candidate->version,
                                .policy = (char *)(link != NULL ? link->policy.kind->name : "none"),
                                .inputs = inputs_json(engine, candidate),
                                .rule = (char *)rule,
                                .verdict = (char *)verdict,
                                .actor = weir_arena_strdup(engine->arena, actor),
                                .note = weir_arena_strdup(engine->arena, engine->event->note),
                                .time_ms = engine->now_ms}});
}

static void set_state(struct engine *engine, struct weir_ion_candidate *candidate, char *state)
{
    candidate->state = state;
    candidate->updated_ms = engine->now_ms;
}

/** From now on the link serves this candidate; its decision has been recorded. */
static void serve(struct engine *engine, struct weir_ion_candidate *candidate, char *old_state,
                  const char *kind)
{
    const struct weir_ion_doc_link *link = find_link(engine, candidate->link);
    struct weir_ion_candidate *serving = engine_serving(engine, candidate->link);
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, link->to);
    char *instead = "";
    if (serving != NULL) {
        instead =
            weir_arena_printf(engine->arena, " instead of version %" PRId64, serving->version);
        set_state(engine, serving, old_state);
    }
    set_state(engine, candidate, WEIR_CANDIDATE_SERVING);
    candidate->served_seq = ++engine->state->ion.n_served;
    candidate->served_ms = engine->now_ms;
    engine_tell(engine, kind,
                weir_arena_printf(engine->arena,
                                  "Pipeline %s is to serve model %s version %" PRId64 "%s.",
                                  link->to, candidate->model, candidate->version, instead));
    if (pipeline != NULL) {
        pipeline->candidate = candidate->id;
        pipeline->updated_ms = engine->now_ms;
        engine_deploy(engine, pipeline);
    }
}

/** A model version comes to a link: the link's policy says what becomes of it. */
static void consider(struct engine *engine, const struct weir_ion_doc_link *link,
                     struct weir_ion_candidate offered)
{
    offered.id = weir_arena_printf(engine->arena, "%s:%s:%s", engine->state->ion.name, link->id,
                                   offered.model_version);
    if (find_candidate(engine, offered.id) != NULL) {
        return; /* It came before: nothing is promoted twice. */
    }
    offered.ion = engine->state->ion.name;
    offered.link = weir_arena_strdup(engine->arena, link->id);
    offered.state = WEIR_CANDIDATE_PENDING_REVIEW;
    offered.served_seq = offered.served_ms = 0;
    offered.created_ms = offered.updated_ms = engine->now_ms;
    struct weir_ion_candidate *candidate = engine_add_candidate(engine, offered);
    const struct weir_ion_candidate *serving = engine_serving(engine, link->id);
    struct weir_policy_verdict told = weir_policy_decide(
        &link->policy,
        (struct weir_policy_inputs){
            .version = candidate->version,
            .newest_other_version = newest_version(engine, link->id, candidate->id),
            .serving_version = serving != NULL ? serving->version : 0,
            .metrics = candidate->metrics,
            .now_ms = engine->now_ms,
        },
        engine->arena);
    decide(engine, candidate, told.verdict, told.rule, "policy");
    if (strcmp(told.verdict, WEIR_VERDICT_PROMOTE) == 0) {
        set_state(engine, candidate, WEIR_CANDIDATE_APPROVED);
        serve(engine, candidate, WEIR_CANDIDATE_RETIRED, "model_promoted");
    } else if (strcmp(told.verdict, WEIR_VERDICT_WAIT) == 0) {
        engine_tell(engine, "review_wanted",
                    weir_arena_printf(engine->arena,
                                      "Model %s version %" PRId64 " waits for approval on link %s.",
                                      candidate->model, candidate->version, link->id));
    } else {
        set_state(engine, candidate, WEIR_CANDIDATE_REJECTED);
    }
}

static void offer(struct engine *engine, const struct weir_ion_doc_link *link,
                  const struct weir_ion_model *model)
{
    consider(engine, link,
             (struct weir_ion_candidate){
                 .model = weir_arena_strdup(engine->arena, model->name),
                 .model_version = weir_arena_strdup(engine->arena, model->model_version),
                 .version = model->version,
                 .blob = weir_arena_strdup(engine->arena, model->blob),
                 .metrics = weir_arena_strdup(engine->arena, model->metrics)});
}

/** A version comes to links from the training that made it, and to those from its model. */
void engine_on_model(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    const struct weir_ion_doc *doc = &engine->state->doc;
    bool is_trained_here = engine_pipeline(engine, event->pipeline) != NULL;
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *link = &doc->links[i];
        if (link->model != NULL ? strcmp(link->model, event->models[0].name) == 0
                                : is_trained_here && strcmp(link->from, event->pipeline) == 0) {
            offer(engine, link, &event->models[0]);
        }
    }
}

void engine_offer_models(struct engine *engine, const struct weir_ion_doc_link *link)
{
    for (size_t i = 0; link->model != NULL && i < engine->event->n_models; i++) {
        if (strcmp(engine->event->models[i].name, link->model) == 0) {
            offer(engine, link, &engine->event->models[i]);
        }
    }
}

void engine_revive_link(struct engine *engine, const struct weir_ion_doc_link *link)
{
    struct weir_ion_candidate *last_served = NULL, *newest = NULL;
    size_t from_len = strlen(link->from);
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (strcmp(candidate->link, link->id) == 0 &&
            engine_is(candidate->state, WEIR_CANDIDATE_RETIRED) &&
            (last_served == NULL || candidate->served_seq > last_served->served_seq)) {
            last_served = candidate;
        }
        bool is_same_source =
            strncmp(candidate->link, link->from, from_len) == 0 && candidate->link[from_len] == ':';
        if (is_same_source && (newest == NULL || candidate->version > newest->version)) {
            newest = candidate;
        }
    }
    if (last_served != NULL) {
        decide(engine, last_served, WEIR_VERDICT_PROMOTE, "the link is back: what it served last",
               "policy");
        serve(engine, last_served, WEIR_CANDIDATE_RETIRED, "model_promoted");
    } else if (newest != NULL) {
        consider(engine, link, *newest);
    }
}

/* What people ask for. */

static weir_status check_link(const struct engine *engine)
{
    const char *id = engine->event->link;
    if (id != NULL && find_link(engine, id) == NULL) {
        return weir_error_set(engine->err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no link \"%s\"",
                              engine->state->ion.name, id);
    }
    return WEIR_OK;
}

/** Is the candidate on a link of the document, and on the one asked for? */
static bool is_meant(const struct engine *engine, const struct weir_ion_candidate *candidate)
{
    const char *id = engine->event->link;
    return find_link(engine, candidate->link) != NULL &&
           (id == NULL || strcmp(candidate->link, id) == 0);
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
        if (!is_meant(engine, candidate) ||
            !engine_is(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW) ||
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

weir_status engine_on_review(struct engine *engine)
{
    struct weir_ion_candidate *found = NULL;
    WEIR_TRY(find_reviewed(engine, &found));
    char *model_version = found->model_version;
    bool is_approved = engine->event->type == WEIR_ION_EVENT_APPROVE;
    /* The same model may wait on several links: the review is about the model. */
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (!is_meant(engine, candidate) || strcmp(candidate->model_version, model_version) != 0 ||
            !engine_is(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW)) {
            continue;
        }
        if (is_approved) {
            decide(engine, candidate, WEIR_VERDICT_PROMOTE, "approved by a person",
                   engine_actor(engine));
            set_state(engine, candidate, WEIR_CANDIDATE_APPROVED);
            serve(engine, candidate, WEIR_CANDIDATE_RETIRED, "model_promoted");
        } else {
            decide(engine, candidate, WEIR_VERDICT_REJECT, "rejected by a person",
                   engine_actor(engine));
            set_state(engine, candidate, WEIR_CANDIDATE_REJECTED);
            engine_tell(engine, "model_rejected",
                        weir_arena_printf(engine->arena,
                                          "Model %s version %" PRId64 " was rejected on link %s.",
                                          candidate->model, candidate->version, candidate->link));
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
        struct weir_ion_candidate *candidate = engine_serving(engine, doc->links[i].id);
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
        bool has_served = candidate->served_seq > 0 && candidate != serving &&
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
    decide(engine, target, WEIR_VERDICT_ROLLBACK, "rolled back by a person", engine_actor(engine));
    serve(engine, target, WEIR_CANDIDATE_ROLLED_BACK, "model_rolled_back");
    return WEIR_OK;
}
