/* Candidates in the chains of links. What people ask for is in ion_review.c. */
#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

struct weir_ion_candidate *weir_ion_candidate_of(const struct weir_ion_state *state, const char *id)
{
    for (size_t i = 0; id != NULL && i < state->n_candidates; i++) {
        if (strcmp(state->candidates[i].id, id) == 0) {
            return &state->candidates[i];
        }
    }
    return NULL;
}

struct weir_ion_candidate *weir_ion_serving(const struct weir_ion_state *state, const char *link)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &state->candidates[i];
        if (strcmp(candidate->link, link) == 0 &&
            step_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
            return candidate;
        }
    }
    return NULL;
}

/** The newest version of its model that was ever a candidate on its link, but for itself; 0 if none. */
static int64_t newest_other(const struct ion_step *step, const struct weir_ion_candidate *but)
{
    int64_t newest = 0;
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (strcmp(candidate->link, but->link) == 0 && strcmp(candidate->id, but->id) != 0 &&
            strcmp(candidate->model, but->model) == 0) {
            newest = WEIR_MAX(newest, candidate->version);
        }
    }
    return newest;
}

static int64_t last_served_ms(const struct ion_step *step, const char *link)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        if (strcmp(step->state->candidates[i].link, link) == 0) {
            last_ms = WEIR_MAX(last_ms, step->state->candidates[i].served_ms);
        }
    }
    return last_ms;
}

int64_t step_serving_version(struct ion_step *step, const struct weir_ion_candidate *candidate)
{
    const struct weir_ion_candidate *serving = weir_ion_serving(step->state, candidate->link);
    bool is_same_model = serving != NULL && strcmp(serving->model, candidate->model) == 0;
    return is_same_model ? serving->version : 0;
}

struct weir_policy_inputs step_inputs(struct ion_step *step,
                                      const struct weir_ion_candidate *candidate,
                                      const struct weir_ion_doc_link *link, size_t i_policy)
{
    return (struct weir_policy_inputs){
        .policy = link != NULL ? link->policies.items[i_policy].text : NULL,
        .i_policy = (int64_t)i_policy,
        .now_ms = step->now_ms,
        .created_ms = candidate->created_ms,
        .since_ms = candidate->position_ms,
        .candidate_version = candidate->version,
        .candidate_state = candidate->state,
        .newest_other_version = newest_other(step, candidate),
        .serving_version = step_serving_version(step, candidate),
        .last_served_ms = last_served_ms(step, candidate->link),
        .made_by = candidate->made_by,
        .approvals = candidate->approvals,
        .n_approvals = candidate->n_approvals,
        .metrics = candidate->metrics,
        .trial = link != NULL ? step_trial(step, candidate, link, i_policy) : NULL,
        .evaluation = link != NULL ? step_evaluation(step, candidate, link, i_policy) : NULL,
        .arms = link != NULL ? step_arms(step, candidate, link, i_policy) : NULL};
}

/** Record a decision, before it is carried out. */
static void keep_record(struct ion_step *step, const struct weir_ion_candidate *candidate,
                        const char *policy, const struct weir_policy_inputs *inputs,
                        const struct weir_policy_verdict *told, const char *actor)
{
    struct weir_ion *ion = &step->state->ion;
    ion->n_decisions++;
    step_act(step,
             (struct weir_ion_action){
                 .type = WEIR_ION_ACTION_DECIDED,
                 .decision = {.id = step_text(step, "%s:%08" PRId64, ion->name, ion->n_decisions),
                              .ion = ion->name,
                              .link = candidate->link,
                              .candidate = candidate->id,
                              .model_version = candidate->model_version,
                              .version = candidate->version,
                              .policy = (char *)policy,
                              .position = inputs->i_policy,
                              .inputs = weir_policy_inputs_text(inputs, step->arena),
                              .rule = (char *)told->rule,
                              .verdict = (char *)told->verdict,
                              .actor = weir_arena_strdup(step->arena, actor),
                              .note = weir_arena_strdup(step->arena, step->event->note),
                              .time_ms = step->now_ms}});
}

void step_record_by_hand(struct ion_step *step, const struct weir_ion_candidate *candidate,
                         const char *verdict, const char *rule, const char *actor)
{
    struct weir_policy_inputs inputs = step_inputs(step, candidate, NULL, 0);
    keep_record(step, candidate, WEIR_POLICY_NONE, &inputs,
                &(struct weir_policy_verdict){.verdict = verdict, .rule = rule}, actor);
}

static void set_state(struct ion_step *step, struct weir_ion_candidate *candidate, char *state)
{
    candidate->state = state;
    candidate->until_ms = 0;
    candidate->waits_for = candidate->waits_why = NULL;
    step_end_trial(candidate);
    candidate->evaluation = NULL;
    candidate->updated_ms = step->now_ms;
}

void step_serve(struct ion_step *step, struct weir_ion_candidate *candidate, char *old_state,
                const char *kind)
{
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&step->state->doc, candidate->link);
    struct weir_ion_candidate *serving = weir_ion_serving(step->state, candidate->link);
    struct weir_ion_pipeline *pipeline = step_pipeline(step, link->to);
    char *instead = "";
    if (serving != NULL) {
        instead = step_text(step, " instead of version %" PRId64, serving->version);
        set_state(step, serving, old_state);
    }
    set_state(step, candidate, WEIR_CANDIDATE_SERVING);
    candidate->served_seq = ++step->state->ion.n_served;
    candidate->served_ms = step->now_ms;
    step_tell(step, kind, "%s %s is to serve model %s version %" PRId64 "%s.",
              link->deployment != NULL ? "Deployment" : "Pipeline",
              link->deployment != NULL ? link->deployment : link->to, candidate->model,
              candidate->version, instead);
    if (pipeline != NULL) {
        weir_ion_service_of(pipeline)->candidate = candidate->id;
        pipeline->updated_ms = step->now_ms;
        step_deploy(step, pipeline);
    }
}

bool step_is_standing(const struct weir_ion_candidate *candidate)
{
    return step_is(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW) ||
           step_is(candidate->state, WEIR_CANDIDATE_WAITING) ||
           step_is(candidate->state, WEIR_CANDIDATE_APPROVED) ||
           weir_policy_is_trial(candidate->state);
}

static bool is_verdict(const struct weir_policy_verdict *told, const char *verdict)
{
    return strcmp(told->verdict, verdict) == 0;
}

/** To the event log: what a policy or a person said of a candidate. */
WEIR_PRINTF(4, 5)

static void tell_of(struct ion_step *step, const char *kind,
                    const struct weir_ion_candidate *candidate, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    step_tell(step, kind, "Model %s version %" PRId64 " %s on link %s.", candidate->model,
              candidate->version, weir_arena_vprintf(step->arena, format, args), candidate->link);
    va_end(args);
}

/** It stays where it is: for a time, or for people. */
static void hold(struct ion_step *step, struct weir_ion_candidate *candidate,
                 const struct weir_policy *policy, const struct weir_policy_verdict *told,
                 char *state)
{
    const struct weir_ion_candidate before = *candidate;
    set_state(step, candidate, state);
    step_try(step, candidate, &before, told);
    if (weir_policy_ops(policy)->measures) {
        step_measure_candidate(step, candidate, &before, told);
    }
    candidate->until_ms = told->until_ms;
    candidate->waits_for = (char *)policy->kind->name;
    candidate->waits_why = (char *)told->rule;
    if (!step_is(state, WEIR_CANDIDATE_PENDING_REVIEW)) {
        tell_of(step, "promotion_waits", candidate, "waits (%s)", told->rule);
    } else if (candidate->approvals != NULL) {
        tell_of(step, "approval_counted", candidate, "waits for more (%s)", told->rule);
    } else {
        tell_of(step, "review_wanted", candidate, "%s",
                weir_policy_asks_people(policy)
                    ? "waits for approval"
                    : step_text(step, "waits for approval (%s)", told->rule));
    }
}

void step_roll_back(struct ion_step *step, struct weir_ion_candidate *candidate, const char *rule)
{
    tell_of(step, "model_rolled_back", candidate, "was rolled back (%s)", rule);
    set_state(step, candidate, WEIR_CANDIDATE_ROLLED_BACK);
}

/** Its way ends: a policy or a person refused it, or it is passed over. */
static void end(struct ion_step *step, struct weir_ion_candidate *candidate,
                const struct weir_policy_verdict *told)
{
    if (is_verdict(told, WEIR_VERDICT_ROLLBACK)) {
        step_roll_back(step, candidate, told->rule);
        return;
    }
    if (is_verdict(told, WEIR_VERDICT_REJECT)) {
        tell_of(step, "model_rejected", candidate, "was rejected (%s)", told->rule);
    } else if (candidate->waits_for != NULL) {
        tell_of(step, "model_skipped", candidate, "is passed over (%s)", told->rule);
    }
    set_state(step, candidate, WEIR_CANDIDATE_REJECTED);
}

static void promote(struct ion_step *step, struct weir_ion_candidate *candidate)
{
    set_state(step, candidate, WEIR_CANDIDATE_APPROVED);
    step_serve(step, candidate, WEIR_CANDIDATE_RETIRED, "model_promoted");
}

/** The first gate of the chain that does not pass the candidate now, but for one; n: none. */
static size_t find_gate(struct ion_step *step, const struct weir_ion_doc_link *link,
                        const struct weir_ion_candidate *candidate, size_t but,
                        struct weir_policy_inputs *inputs, struct weir_policy_verdict *told)
{
    const struct weir_policy_chain *chain = &link->policies;
    for (size_t i = 0; i < chain->n; i++) {
        if (i == but || !weir_policy_ops(&chain->items[i])->is_gate) {
            continue;
        }
        *inputs = step_inputs(step, candidate, link, i);
        *told = weir_policy_decide(&chain->items[i], inputs, step->arena);
        if (!is_verdict(told, WEIR_VERDICT_PASS)) {
            return i;
        }
    }
    return chain->n;
}

/** It has passed all policies, and a gate holds it up or passes it over: it stands there. */
static void stand_at_gate(struct ion_step *step, const struct weir_ion_doc_link *link,
                          struct weir_ion_candidate *candidate, size_t i_gate,
                          const struct weir_policy_inputs *inputs,
                          const struct weir_policy_verdict *told)
{
    const struct weir_policy *gate = &link->policies.items[i_gate];
    candidate->position = (int64_t)i_gate;
    keep_record(step, candidate, gate->kind->name, inputs, told, WEIR_ACTOR_POLICY);
    if (is_verdict(told, WEIR_VERDICT_WAIT)) {
        hold(step, candidate, gate, told, WEIR_CANDIDATE_APPROVED);
    } else {
        end(step, candidate, told);
    }
}

/** An approved candidate is asked for again: by the gates alone. */
static void ask_gates(struct ion_step *step, const struct weir_ion_doc_link *link,
                      struct weir_ion_candidate *candidate, const struct asked_by *by)
{
    size_t i_gate = (size_t)candidate->position;
    struct weir_policy_inputs inputs = step_inputs(step, candidate, link, i_gate), other;
    struct weir_policy_verdict told, other_told;
    const struct weir_policy *gate = &link->policies.items[i_gate];
    size_t i_other = find_gate(step, link, candidate, i_gate, &other, &other_told);
    inputs.rejected_by = (char *)by->rejected_by;
    inputs.is_last = i_other == link->policies.n;
    told = weir_policy_decide(gate, &inputs, step->arena);
    if (is_verdict(&told, WEIR_VERDICT_PASS) && inputs.is_last) {
        told.verdict = WEIR_VERDICT_PROMOTE;
        keep_record(step, candidate, gate->kind->name, &inputs, &told, by->actor);
        promote(step, candidate);
    } else if (is_verdict(&told, WEIR_VERDICT_PASS)) {
        keep_record(step, candidate, gate->kind->name, &inputs, &told, by->actor);
        stand_at_gate(step, link, candidate, i_other, &other, &other_told);
    } else if (is_verdict(&told, WEIR_VERDICT_WAIT)) {
        stand_at_gate(step, link, candidate, i_gate, &inputs, &told);
    } else {
        keep_record(step, candidate, gate->kind->name, &inputs, &told, by->actor);
        end(step, candidate, &told);
    }
}

/** It has come to a policy of the chain, where nobody has approved it yet. */
static void stand_at(struct ion_step *step, struct weir_ion_candidate *candidate, int64_t position)
{
    candidate->position = position;
    candidate->position_ms = step->now_ms;
    candidate->approvals = NULL;
    candidate->n_approvals = 0;
}

/** Ask the policy at which it stands; *out_goes_on: it passed, and stands at the next. */
static void ask_one(struct ion_step *step, const struct weir_ion_doc_link *link,
                    struct weir_ion_candidate *candidate, const struct asked_by *by,
                    bool *out_goes_on)
{
    const struct weir_policy_chain *chain = &link->policies;
    size_t i_policy = (size_t)candidate->position, i_gate = chain->n;
    const struct weir_policy *policy = &chain->items[i_policy];
    struct weir_policy_inputs inputs = step_asked(step, candidate, link, i_policy), at_gate;
    struct weir_policy_verdict gate_told;
    bool is_end = i_policy + 1 == chain->n;
    if (is_end) {
        i_gate = find_gate(step, link, candidate, i_policy, &at_gate, &gate_told);
    }
    inputs.rejected_by = (char *)by->rejected_by;
    inputs.is_last = is_end && i_gate == chain->n;
    struct weir_policy_verdict told = weir_policy_decide(policy, &inputs, step->arena);
    bool passes = is_verdict(&told, WEIR_VERDICT_PASS);
    if (step_is_unchanged(candidate, policy, &told)) {
        *out_goes_on = false;
        return;
    }
    if (passes && inputs.is_last) {
        told.verdict = WEIR_VERDICT_PROMOTE;
    }
    keep_record(step, candidate, policy->kind->name, &inputs, &told, by->actor);
    *out_goes_on = passes && !is_end;
    if (passes && !is_end) {
        step_end_trial(candidate);
        candidate->evaluation = NULL;
        stand_at(step, candidate, candidate->position + 1);
        candidate->updated_ms = step->now_ms;
    } else if (passes && inputs.is_last) {
        promote(step, candidate);
    } else if (passes) {
        stand_at_gate(step, link, candidate, i_gate, &at_gate, &gate_told);
    } else if (is_verdict(&told, WEIR_VERDICT_WAIT)) {
        hold(step, candidate, policy, &told,
             told.state != NULL                ? (char *)told.state
             : weir_policy_asks_people(policy) ? WEIR_CANDIDATE_PENDING_REVIEW
                                               : WEIR_CANDIDATE_WAITING);
    } else {
        end(step, candidate, &told);
    }
}

void step_advance(struct ion_step *step, const struct weir_ion_doc_link *link,
                  struct weir_ion_candidate *candidate, const struct asked_by *by)
{
    static const struct asked_by policy = {.actor = WEIR_ACTOR_POLICY};
    if (candidate->blob[0] == '\0') {
        const struct weir_policy_verdict gone = {.verdict = WEIR_VERDICT_REJECT,
                                                 .rule = "its version was deleted"};
        step_record_by_hand(step, candidate, gone.verdict, gone.rule, by->actor);
        end(step, candidate, &gone);
        return;
    }
    if (step_is(candidate->state, WEIR_CANDIDATE_APPROVED)) {
        ask_gates(step, link, candidate, by);
        return;
    }
    bool goes_on;
    ask_one(step, link, candidate, by, &goes_on);
    while (goes_on) {
        ask_one(step, link, candidate, &policy, &goes_on);
    }
}

/** Put a candidate at the head of its link's chain. */
static void begin(struct ion_step *step, const struct weir_ion_doc_link *link,
                  struct weir_ion_candidate *candidate)
{
    set_state(step, candidate, WEIR_CANDIDATE_WAITING);
    stand_at(step, candidate, 0);
    step_advance(step, link, candidate, &(struct asked_by){.actor = WEIR_ACTOR_POLICY});
}

/** Of a candidate whose chain is gone, and that is in no other yet. */
#define NOWHERE (-1)

void step_leave_chain(struct ion_step *step, const char *link)
{
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (strcmp(candidate->link, link) == 0 && step_is_standing(candidate)) {
            candidate->position = NOWHERE;
        }
    }
}

void step_enter_chain(struct ion_step *step, const struct weir_ion_doc_link *link)
{
    /* The newest first: what it leaves behind need not serve for a moment. */
    for (size_t i = step->state->n_candidates; i > 0; i--) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i - 1];
        if (strcmp(candidate->link, link->id) == 0 && candidate->position == NOWHERE) {
            begin(step, link, candidate);
        }
    }
}

struct weir_ion_candidate *step_come(struct ion_step *step, const struct weir_ion_doc_link *link,
                                     struct weir_ion_candidate offered)
{
    offered.id =
        step_text(step, "%s:%s:%s", step->state->ion.name, link->id, offered.model_version);
    if (weir_ion_candidate_of(step->state, offered.id) != NULL) {
        return NULL; /* It came before: nothing is promoted twice. */
    }
    offered.ion = step->state->ion.name;
    offered.link = weir_arena_strdup(step->arena, link->id);
    offered.state = WEIR_CANDIDATE_WAITING;
    offered.served_seq = offered.served_ms = offered.until_ms = 0;
    offered.waits_for = offered.waits_why = NULL;
    offered.evaluation = NULL;
    step_end_trial(&offered);
    stand_at(step, &offered, 0);
    offered.created_ms = offered.updated_ms = step->now_ms;
    return step_add_candidate(step, offered);
}

/** A model version comes to a link: the link's policies say what becomes of it. */
static void consider(struct ion_step *step, const struct weir_ion_doc_link *link,
                     struct weir_ion_candidate offered)
{
    struct weir_ion_candidate *candidate = step_come(step, link, offered);
    if (candidate != NULL) {
        begin(step, link, candidate);
    }
}

/** When a limit of the chain ends the candidate's way; INT64_MAX: never. */
static int64_t limit_ms(const struct weir_policy_chain *chain,
                        const struct weir_ion_candidate *candidate)
{
    int64_t least_ms = INT64_MAX;
    for (size_t i = 0; i < chain->n; i++) {
        const struct weir_policy_ops *ops = weir_policy_ops(&chain->items[i]);
        if (ops->is_limit) {
            const struct weir_policy_inputs inputs = {.created_ms = candidate->created_ms};
            least_ms = WEIR_MIN(least_ms, ops->limit_ms(&inputs, chain->items[i].options));
        }
    }
    return least_ms;
}

static int64_t due_ms(const struct weir_policy_chain *chain,
                      const struct weir_ion_candidate *candidate)
{
    return WEIR_MIN(limit_ms(chain, candidate),
                    candidate->until_ms > 0 ? candidate->until_ms : INT64_MAX);
}

/** Does a limit end the candidate's way? Then it is done and recorded. */
static bool is_over(struct ion_step *step, const struct weir_ion_doc_link *link,
                    struct weir_ion_candidate *candidate)
{
    const struct weir_policy_chain *chain = &link->policies;
    for (size_t i = 0; i < chain->n; i++) {
        if (!weir_policy_ops(&chain->items[i])->is_limit) {
            continue;
        }
        struct weir_policy_inputs inputs = step_inputs(step, candidate, link, i);
        struct weir_policy_verdict told =
            weir_policy_decide(&chain->items[i], &inputs, step->arena);
        if (!is_verdict(&told, WEIR_VERDICT_PASS)) {
            keep_record(step, candidate, chain->items[i].kind->name, &inputs, &told,
                        WEIR_ACTOR_POLICY);
            end(step, candidate, &told);
            return true;
        }
    }
    return false;
}

void step_tick_policies(struct ion_step *step)
{
    for (size_t i = step->state->n_candidates; i > 0; i--) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i - 1];
        const struct weir_ion_doc_link *link =
            weir_ion_doc_link(&step->state->doc, candidate->link);
        if (link == NULL || !step_is_standing(candidate) ||
            (due_ms(&link->policies, candidate) > step->now_ms &&
             weir_ion_watching(step->state, candidate) == NULL)) {
            continue;
        }
        if (!is_over(step, link, candidate)) {
            step_advance(step, link, candidate, &(struct asked_by){.actor = WEIR_ACTOR_POLICY});
        }
    }
}

int64_t step_policies_tick_ms(const struct weir_ion_state *state)
{
    int64_t next_ms = INT64_MAX;
    for (size_t k = 0; k < state->doc.n_links; k++) {
        const struct weir_ion_doc_link *link = &state->doc.links[k];
        for (size_t i = 0; i < state->n_candidates; i++) {
            const struct weir_ion_candidate *candidate = &state->candidates[i];
            if (strcmp(candidate->link, link->id) == 0 && step_is_standing(candidate)) {
                next_ms = WEIR_MIN(next_ms, due_ms(&link->policies, candidate));
            }
        }
    }
    return next_ms;
}

struct weir_ion_candidate step_offer(struct ion_step *step, const struct weir_ion_model *model,
                                     const char *made_by)
{
    return (struct weir_ion_candidate){
        .model = weir_arena_strdup(step->arena, model->name),
        .model_version = weir_arena_strdup(step->arena, model->model_version),
        .version = model->version,
        .blob = weir_arena_strdup(step->arena, model->blob),
        .metrics = weir_arena_strdup(step->arena, model->metrics),
        .interface = weir_arena_strdup(step->arena, model->interface),
        .made_by = weir_arena_strdup(step->arena, made_by)};
}

void step_serve_default(struct ion_step *step, const struct weir_ion_doc_link *link)
{
    for (size_t i = 0; link->default_model != NULL && i < step->event->n_defaults; i++) {
        const struct weir_ion_model *model = &step->event->defaults[i];
        if (strcmp(model->name, link->default_model) != 0 ||
            model->version != link->default_version) {
            continue;
        }
        struct weir_ion_candidate *candidate =
            step_come(step, link, step_offer(step, model, model->made_by));
        if (candidate != NULL) {
            step_record_by_hand(step, candidate, WEIR_VERDICT_SET,
                                "the link's default: it serves until a version has passed",
                                WEIR_ACTOR_POLICY);
            step_serve(step, candidate, WEIR_CANDIDATE_RETIRED, "model_promoted");
        }
        return;
    }
}

bool step_is_made_by(const struct ion_step *step, const char *training)
{
    return step->event->pipeline != NULL && strcmp(training, step->event->pipeline) == 0 &&
           strcmp(weir_ion_doc_model(&step->state->doc, training), step->event->models[0].name) ==
               0;
}

/** A program may register several models. Whoever meant another one to be served should know. */
static void tell_aside(struct ion_step *step, const struct weir_ion_pipeline *maker)
{
    const struct weir_ion_model *model = &step->event->models[0];
    const char *expected = weir_ion_doc_model(&step->state->doc, maker->name);
    if (strcmp(expected, model->name) != 0) {
        step_tell(step, "model_aside",
                  "Pipeline %s has registered version %" PRId64
                  " of model %s, which comes to no link of it: its model is "
                  "%s.",
                  maker->name, model->version, model->name, expected);
    }
}

/** Does the i-th model of the event come to this link from a registered model? A new version, or the one that
 * the link's alias names now. */
static bool comes_to(const struct ion_step *step, const struct weir_ion_doc_link *link, size_t i)
{
    const char *alias = step->event->aliases != NULL ? step->event->aliases[i] : NULL;
    bool is_its_way =
        link->alias == NULL ? alias == NULL : alias != NULL && strcmp(alias, link->alias) == 0;
    return is_its_way && strcmp(step->event->models[i].name, link->model) == 0;
}

/** A version comes to links from the training that made it, and to those from its model. */
void step_on_model(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    const struct weir_ion_doc *doc = &step->state->doc;
    const struct weir_ion_pipeline *maker = step_pipeline(step, event->pipeline);
    const char *made_by = maker != NULL ? maker->runs.cause_by : event->models[0].made_by;
    if (weir_ion_runs_of(maker) != NULL) { /* it may be a prediction by now */
        tell_aside(step, maker);
    }
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *link = &doc->links[i];
        if (link->model != NULL ? comes_to(step, link, 0)
                                : maker != NULL && step_is_made_by(step, link->from)) {
            consider(step, link, step_offer(step, &event->models[0], made_by));
        }
    }
}

void step_offer_models(struct ion_step *step, const struct weir_ion_doc_link *link)
{
    for (size_t i = 0; link->model != NULL && i < step->event->n_models; i++) {
        if (comes_to(step, link, i)) {
            const struct weir_ion_model *model = &step->event->models[i];
            consider(step, link, step_offer(step, model, model->made_by));
        }
    }
}

void step_revive_link(struct ion_step *step, const struct weir_ion_doc_link *link)
{
    struct weir_ion_candidate *last_served = NULL, *newest = NULL;
    const char *made =
        link->model != NULL ? link->model : weir_ion_doc_model(&step->state->doc, link->from);
    size_t from_len = strlen(link->from);
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (candidate->blob[0] == '\0') {
            continue; /* its version was deleted */
        }
        if (strcmp(candidate->link, link->id) == 0 &&
            step_is(candidate->state, WEIR_CANDIDATE_RETIRED) &&
            (last_served == NULL || candidate->served_seq > last_served->served_seq)) {
            last_served = candidate;
        }
        bool is_same_source = strncmp(candidate->link, link->from, from_len) == 0 &&
                              candidate->link[from_len] == ':' &&
                              strcmp(candidate->model, made) == 0; /* no default of another link */
        if (is_same_source && (newest == NULL || candidate->version > newest->version)) {
            newest = candidate;
        }
    }
    if (last_served != NULL) {
        step_record_by_hand(step, last_served, WEIR_VERDICT_PROMOTE,
                            "the link is back: what it served last", WEIR_ACTOR_POLICY);
        step_serve(step, last_served, WEIR_CANDIDATE_RETIRED, "model_promoted");
    } else if (newest != NULL) {
        consider(step, link, *newest);
    }
}
