/** Tests: rules that hold after every event of an ION's history, each worked out anew. */
#ifndef WEIR_ION_ION_RULES_H
#define WEIR_ION_ION_RULES_H

#include "ion/step/ion_rules_measured.h"

#define KEYS_MAX 1024

/** Keys of actions that start something: none may come twice in a history. */
struct keys {
    const char *items[KEYS_MAX];
    size_t n;
};

static void remember(struct keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (strcmp(keys->items[i], key) == 0) {
            ck_abort_msg("%s came twice", key);
        }
    }
    REQUIRE(keys->n < KEYS_MAX);
    keys->items[keys->n++] = weir_arena_strdup(&arena, key);
}

static const char *state_in(const struct weir_ion_state *state, const char *id)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        if (strcmp(state->candidates[i].id, id) == 0) {
            return state->candidates[i].state;
        }
    }
    return "";
}

/** Decisions by which the candidate serves, or is given up after it was tried. */
static size_t n_decided(const struct weir_ion_actions *actions, const char *candidate)
{
    size_t n = 0;
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_policy_decision *decision = &actions->items[i].decision;
        n += actions->items[i].type == WEIR_ION_ACTION_DECIDED &&
             (strcmp(decision->verdict, "promote") == 0 || strcmp(decision->verdict, "set") == 0 ||
              strcmp(decision->verdict, "rollback") == 0) &&
             strcmp(decision->candidate, candidate) == 0;
    }
    return n;
}

static bool is_tried(const char *state)
{
    return strcmp(state, "SHADOW") == 0 || strcmp(state, "CANARY") == 0 || strcmp(state, "AB") == 0;
}

/** Only what is tried is given requests; its ION is there, and its link, at the policy that tries it. */
static void check_trial(const struct weir_ion_state *state,
                        const struct weir_ion_candidate *candidate)
{
    if (!is_tried(candidate->state)) {
        REQUIRE(candidate->share_ppm == 0 && !candidate->is_mirrored && candidate->step == 0 &&
                candidate->step_ms == 0 && candidate->begun_ms == 0 && candidate->base == NULL);
        return;
    }
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&state->doc, candidate->link);
    const struct weir_policy *policy = weir_ion_watching(state, candidate);
    REQUIRE(strcmp(state->ion.state, "ACTIVE") == 0);
    REQUIRE(strcmp(state->ion.mode, "production") == 0);
    REQUIRE(link != NULL && link->deployment != NULL);
    REQUIRE(policy != NULL && strcmp(policy->kind->name, candidate->waits_for) == 0);
    REQUIRE(candidate->step_ms > 0);
    REQUIRE((strcmp(candidate->state, "SHADOW") != 0) == (candidate->share_ppm > 0));
}

static void check_candidates(const struct weir_ion_state *before,
                             const struct weir_ion_state *state,
                             const struct weir_ion_actions *actions)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const char *was = state_in(before, candidate->id);
        bool is_serving = strcmp(candidate->state, "SERVING") == 0;
        bool has_served = strcmp(was, "SERVING") == 0;
        bool is_given_up = is_tried(was) && strcmp(candidate->state, "ROLLED_BACK") == 0;
        bool is_standing = strcmp(candidate->state, "PENDING_REVIEW") == 0 ||
                           strcmp(candidate->state, "WAITING") == 0 ||
                           strcmp(candidate->state, "APPROVED") == 0 || is_tried(candidate->state);
        REQUIRE(is_standing == (candidate->waits_for != NULL && candidate->waits_why != NULL));
        REQUIRE(is_standing || candidate->until_ms == 0);
        REQUIRE(candidate->position >= 0);
        REQUIRE(!is_serving || candidate->served_seq > 0);
        check_trial(state, candidate);
        check_evaluation(candidate);
        /* Each promotion has exactly one decision, as has the end of a trial; and each such decision
           has that effect. */
        REQUIRE(n_decided(actions, candidate->id) ==
                (is_serving && !has_served ? 1u : 0u) + (is_given_up ? 1u : 0u));
        for (size_t k = i + 1; k < state->n_candidates; k++) {
            const struct weir_ion_candidate *other = &state->candidates[k];
            bool is_same_link = strcmp(candidate->link, other->link) == 0;
            REQUIRE(strcmp(candidate->id, other->id) != 0);
            REQUIRE(candidate->served_seq == 0 || candidate->served_seq != other->served_seq);
            REQUIRE(!(is_serving && strcmp(other->state, "SERVING") == 0 && is_same_link));
            REQUIRE(!(is_tried(candidate->state) && is_tried(other->state) && is_same_link));
        }
    }
}

/** What deployments d and e have, by the shifts so far. */
struct deployed {
    struct weir_ion_wanted of[2];
};

/** A shift is carried out at once, as control/deploy/rollout.c says. */
static void carry_out(struct deployed *deployed, const struct weir_ion_state *state,
                      const struct weir_ion_action *action)
{
    const struct weir_ion_doc_link *link = weir_ion_doc_link(&state->doc, action->pipeline);
    const char *name = action->deployment != NULL ? action->deployment : link->deployment;
    struct weir_ion_wanted *now = &deployed->of[name[0] == 'e'];
    if (action->deployment == NULL) {
        *now = weir_ion_wanted_of(state, link);
    } else if (now->model != NULL && strcmp(now->model, action->wanted.model) == 0 &&
               now->trial == action->wanted.trial) {
        *now = action->wanted;
        now->trial = 0;
    }
}

static bool is_same_wanted(const struct weir_ion_wanted *a, const struct weir_ion_wanted *b)
{
    return a->model != NULL && b->model != NULL && strcmp(a->model, b->model) == 0 &&
           a->serving == b->serving && a->trial == b->trial && a->trial_ppm == b->trial_ppm &&
           a->mirror == b->mirror;
}

/** A deployment has what the link into it wants; and nothing is left with a trial that nobody watches. */
static void check_deployed(const struct deployed *deployed, const struct weir_ion_state *state)
{
    static const char *const names[] = {"deployment/d", "deployment/e"};
    for (size_t i = 0; i < 2; i++) {
        const struct weir_ion_doc_link *link = weir_ion_doc_link_into(&state->doc, names[i]);
        bool is_active = strcmp(state->ion.state, "ACTIVE") == 0;
        struct weir_ion_wanted wanted = link != NULL && is_active ? weir_ion_wanted_of(state, link)
                                                                  : (struct weir_ion_wanted){0};
        REQUIRE(wanted.model == NULL || is_same_wanted(&wanted, &deployed->of[i]));
        REQUIRE(wanted.model != NULL ||
                (deployed->of[i].trial == 0 && deployed->of[i].trial_ppm == 0));
    }
}

/** Nothing is SERVING, and nobody is told that it is, but what a replica serves. */
static void check_served(const struct weir_ion_state *state,
                         const struct weir_ion_pipeline *pipeline)
{
    bool is_serving = strcmp(pipeline->state, "SERVING") == 0, is_shown = false;
    bool has_failed = strcmp(pipeline->state, "DEPLOY_FAILED") == 0;
    REQUIRE(!is_serving || (pipeline->service.served_revision > 0 && pipeline->job != NULL));
    REQUIRE(pipeline->service.served_revision <= pipeline->service.deployment_revision);
    REQUIRE(has_failed == (pipeline->state_reason != NULL) ||
            strcmp(pipeline->state, "WAITING") == 0 || pipeline->paused_by != NULL);
    REQUIRE(pipeline->service.served_candidate == NULL || pipeline->service.served_revision > 0);
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const char *colon = strchr(candidate->link, ':');
        is_shown = is_shown || (strcmp(colon + 1, pipeline->name) == 0 &&
                                strcmp(weir_ion_candidate_shown(state, candidate), "SERVING") == 0);
    }
    REQUIRE(is_shown == (pipeline->service.served_candidate != NULL));
}

/** What is paused begins nothing; what is not has begun all that was wanted of it. */
static void check_pause(const struct weir_ion_pipeline *old,
                        const struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_actions *actions)
{
    bool is_paused = pipeline->paused_by != NULL;
    bool runs_jobs = strcmp(pipeline->type, "prediction") != 0;
    REQUIRE(is_paused == (pipeline->paused_ms > 0));
    REQUIRE(!is_paused || strcmp(pipeline->state, "REMOVED") != 0);
    REQUIRE(!is_paused || runs_jobs ||
            (strcmp(pipeline->state, "WAITING") == 0 && pipeline->job == NULL &&
             strstr(pipeline->state_reason, "paused by ") != NULL));
    REQUIRE(!is_paused || strcmp(pipeline->state, "IDLE") != 0 ||
            strstr(pipeline->state_reason, "paused by ") != NULL);
    REQUIRE(!is_paused || old == NULL || old->paused_by == NULL ||
            pipeline->runs.training == old->runs.training);
    REQUIRE(is_paused || strcmp(pipeline->state, "IDLE") != 0 ||
            pipeline->runs.pending_cause != NULL || pipeline->runs.runs_left == 0);
    REQUIRE(is_paused || strcmp(pipeline->state, "WAITING") != 0 ||
            pipeline->service.candidate == NULL ||
            strstr(pipeline->state_reason, "have ended") != NULL);
    for (size_t i = 0; i < actions->n; i++) {
        bool starts = actions->items[i].type == WEIR_ION_ACTION_START_TRAINING ||
                      actions->items[i].type == WEIR_ION_ACTION_START_PREDICTION;
        REQUIRE(!is_paused || !starts || strcmp(actions->items[i].pipeline, pipeline->name) != 0);
    }
}

/** Of the two parts of a pipeline nothing lives in the one that its type does not have. */
static void check_parts(const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_runs *runs = &pipeline->runs;
    const struct weir_ion_service *service = &pipeline->service;
    bool is_prediction = strcmp(pipeline->type, "prediction") == 0;
    REQUIRE(weir_ion_runs_of(pipeline) == (is_prediction ? NULL : runs));
    REQUIRE(weir_ion_service_of(pipeline) == (is_prediction ? service : NULL));
    REQUIRE(!is_prediction ||
            (runs->run == NULL && runs->pending_cause == NULL && runs->pending_by == NULL &&
             runs->runs_left == 0 && runs->next_fire_ms == 0));
    REQUIRE(is_prediction || (service->candidate == NULL && service->deployment == NULL &&
                              service->served_revision == 0 && service->served_candidate == NULL));
}

static void check_pipelines(const struct weir_ion_state *before, const struct weir_ion_state *state,
                            const struct weir_ion_actions *actions)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        bool is_removed = strcmp(pipeline->state, "REMOVED") == 0;
        REQUIRE(!is_removed || (pipeline->job == NULL && pipeline->service.candidate == NULL));
        REQUIRE(is_removed || weir_ion_doc_pipeline(&state->doc, pipeline->name) != NULL);
        REQUIRE(is_removed || strcmp(state->ion.state, "ACTIVE") == 0);
        check_parts(pipeline);
        check_pause(weir_ion_pipeline_of(before, pipeline->name), pipeline, actions);
        for (size_t k = 0; k < before->n_pipelines; k++) {
            const struct weir_ion_pipeline *old = &before->pipelines[k];
            if (strcmp(old->id, pipeline->id) == 0) {
                REQUIRE(pipeline->runs.training >= old->runs.training);
                REQUIRE(pipeline->runs.training <= old->runs.training + 1);
                REQUIRE(pipeline->service.deployment_revision >= old->service.deployment_revision);
            }
        }
        check_served(state, pipeline);
        if (pipeline->service.deployment == NULL) {
            REQUIRE(strcmp(pipeline->state, "SERVING") != 0);
            continue;
        }
        /* What replicas are told is what the state says. */
        json_t *json = json_loads(pipeline->service.deployment, 0, NULL);
        REQUIRE(json != NULL);
        REQUIRE(json_integer_value(json_object_get(json, "revision")) ==
                pipeline->service.deployment_revision);
        const char *id = json_string_value(json_object_get(json_object_get(json, "model"), "id"));
        REQUIRE(id != NULL && strstr(pipeline->service.candidate, id) != NULL);
        const struct weir_ion_doc_link *link = weir_ion_doc_link_into(&state->doc, pipeline->name);
        const struct weir_ion_candidate *now = link != NULL ? serving(state, link->id) : NULL;
        REQUIRE(now == NULL || strcmp(now->id, pipeline->service.candidate) == 0);
        json_decref(json);
    }
}

static bool is_running(const struct weir_ion_pipeline *pipeline)
{
    return pipeline != NULL &&
           (strcmp(pipeline->state, "TRAINING") == 0 || strcmp(pipeline->state, "RUNNING") == 0 ||
            strcmp(pipeline->state, "FREEZING") == 0);
}

/** The ends of a data link do not begin to run at once; who waits, waits for one that runs. */
static void check_data_links(const struct weir_ion_state *before,
                             const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        const struct weir_ion_pipeline *old = weir_ion_pipeline_of(before, pipeline->name);
        bool has_begun = old == NULL || old->runs.training < pipeline->runs.training;
        bool is_held = is_running(pipeline);
        for (size_t k = 0; k < state->doc.n_feeds; k++) {
            const struct weir_ion_doc_feed *feed = &state->doc.feeds[k];
            bool is_from = strcmp(feed->from, pipeline->name) == 0;
            if (feed->dataset == NULL || (!is_from && strcmp(feed->to, pipeline->name) != 0)) {
                continue;
            }
            bool other_runs =
                is_running(weir_ion_pipeline_of(state, is_from ? feed->to : feed->from));
            REQUIRE(!other_runs || !is_running(pipeline) || !has_begun);
            is_held = is_held || other_runs;
        }
        REQUIRE(pipeline->runs.pending_cause == NULL || is_held || pipeline->paused_by != NULL);
    }
}

/** What a pipeline's state says of its type, and nothing that starts by itself is forgotten. */
static void check_runs(const struct weir_ion_state *state, int64_t now_ms)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        bool is_freezing = strcmp(pipeline->state, "FREEZING") == 0;
        bool measures =
            strcmp(pipeline->type, "evaluation") == 0 || strcmp(pipeline->type, "comparison") == 0;
        REQUIRE(!is_freezing ||
                (strcmp(pipeline->type, "preparation") == 0 && pipeline->job == NULL));
        REQUIRE(!is_running(pipeline) || strcmp(pipeline->type, "prediction") != 0);
        REQUIRE(!is_running(pipeline) || pipeline->restart_ms == 0);
        REQUIRE(pipeline->restart_ms == 0 ||
                weir_ion_next_tick_ms(state, now_ms) <= WEIR_MAX(pipeline->restart_ms, now_ms));
        REQUIRE(!is_running(pipeline) || !measures || pipeline->runs.measured_version > 0);
    }
}

static struct weir_ion_state copy_state(const struct weir_ion_state *state)
{
    struct weir_ion_state copy = *state;
    copy.pipelines = WEIR_ARENA_ARRAY(&arena, state->n_pipelines + 1, struct weir_ion_pipeline);
    copy.candidates = WEIR_ARENA_ARRAY(&arena, state->n_candidates + 1, struct weir_ion_candidate);
    copy.triggers = WEIR_ARENA_ARRAY(&arena, state->n_triggers + 1, struct weir_ion_trigger);
    if (state->n_triggers > 0) {
        memcpy(copy.triggers, state->triggers, state->n_triggers * sizeof(*copy.triggers));
    }
    if (state->n_pipelines > 0) {
        memcpy(copy.pipelines, state->pipelines, state->n_pipelines * sizeof(*copy.pipelines));
    }
    if (state->n_candidates > 0) {
        memcpy(copy.candidates, state->candidates, state->n_candidates * sizeof(*copy.candidates));
    }
    return copy;
}

/** Facts that are told again change nothing. */
static bool is_idempotent(enum weir_ion_event_type type)
{
    return type == WEIR_ION_EVENT_MODEL || type == WEIR_ION_EVENT_DATASET ||
           type == WEIR_ION_EVENT_TICK || type == WEIR_ION_EVENT_LISTS ||
           type == WEIR_ION_EVENT_STARTED || type == WEIR_ION_EVENT_APPLIED ||
           type == WEIR_ION_EVENT_REPLICA || type == WEIR_ION_EVENT_MEASURING;
}

/** What the policies of chains said of candidates, each from when it came to the head of the chain it
 *  is in. */
struct history {
    struct weir_policy_decision items[4 * KEYS_MAX];
    bool is_void[4 * KEYS_MAX];
    size_t n;
};

/** Where a link's chain is another one by now, what was said before counts no more. */
static void forget_old_chains(struct history *history, const struct weir_ion_state *before,
                              const struct weir_ion_state *state)
{
    for (size_t i = 0; i < history->n; i++) {
        const struct weir_ion_doc_link *old =
                                           weir_ion_doc_link(&before->doc, history->items[i].link),
                                       *now =
                                           weir_ion_doc_link(&state->doc, history->items[i].link);
        history->is_void[i] =
            history->is_void[i] ||
            (now != NULL && (old == NULL || strcmp(old->policies.text, now->policies.text) != 0));
    }
}

/** Each policy of the chain has let the candidate pass. */
static void check_all_passed(const struct history *history, const struct weir_policy_chain *chain,
                             const char *candidate)
{
    for (size_t k = 0; k < chain->n; k++) {
        bool has_passed = false;
        for (size_t i = 0; i < history->n; i++) {
            const struct weir_policy_decision *one = &history->items[i];
            has_passed =
                has_passed ||
                (!history->is_void[i] && strcmp(one->candidate, candidate) == 0 &&
                 one->position == (int64_t)k &&
                 strcmp(one->policy, chain->items[k].kind->name) == 0 &&
                 (strcmp(one->verdict, "pass") == 0 || strcmp(one->verdict, "promote") == 0));
        }
        REQUIRE(has_passed);
    }
}

/** Nothing is promoted against a rate limit or a freeze window, worked out anew. */
static void check_gates(const struct weir_ion_state *before, const struct weir_policy_chain *chain,
                        const char *link, int64_t now_ms)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < before->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &before->candidates[i];
        if (strcmp(candidate->link, link) == 0) {
            last_ms = WEIR_MAX(last_ms, candidate->served_ms);
        }
    }
    for (size_t k = 0; k < chain->n; k++) {
        if (strcmp(chain->items[k].kind->name, "rate-limit") == 0) {
            REQUIRE(last_ms == 0 || now_ms - last_ms >= 1000 * atoll(RATE_LIMIT_S));
        } else if (strcmp(chain->items[k].kind->name, "freeze-window") == 0) {
            REQUIRE(now_ms / 3600000 % 2 == 1); /* Even hours are frozen. */
        }
    }
}

/** A review that let something pass counted enough people, each once, and not who made it. */
static void check_review(const struct weir_policy_decision *decision)
{
    json_t *inputs = json_loads(decision->inputs, 0, NULL);
    const json_t *policy = json_object_get(inputs, "policy"),
                 *approvals = json_object_get(inputs, "approvals");
    const char *made_by = json_string_value(json_object_get(inputs, "made_by"));
    json_int_t n_wanted = json_is_integer(json_object_get(policy, "approvals"))
                              ? json_integer_value(json_object_get(policy, "approvals"))
                              : 1;
    REQUIRE(strstr(decision->rule, "no answer") != NULL ||
            (json_int_t)json_array_size(approvals) == n_wanted);
    for (size_t i = 0; i < json_array_size(approvals); i++) {
        const char *by = json_string_value(json_object_get(json_array_get(approvals, i), "by"));
        REQUIRE(made_by == NULL || !json_is_true(json_object_get(policy, "four_eyes")) ||
                strstr(made_by, by) == NULL);
        for (size_t k = 0; k < i; k++) {
            REQUIRE(strcmp(by, json_string_value(
                                   json_object_get(json_array_get(approvals, k), "by"))) != 0);
        }
    }
    json_decref(inputs);
}

/** Recorded inputs give the verdict and the rule again; and what is promoted has passed everything. */
static void check_decisions(const struct weir_ion_state *before, const struct weir_ion_state *state,
                            const struct weir_ion_actions *actions, int64_t now_ms,
                            struct history *history)
{
    forget_old_chains(history, before, state);
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_policy_decision *decision = &actions->items[i].decision;
        struct weir_policy_verdict again;
        struct weir_error err;
        if (actions->items[i].type != WEIR_ION_ACTION_DECIDED ||
            strcmp(decision->policy, "none") == 0) {
            continue;
        }
        if (weir_policy_replay(decision->inputs, &arena, &again, &err) != WEIR_OK) {
            ck_abort_msg("%s: %s", decision->inputs, err.message);
        }
        REQUIRE(strcmp(again.verdict, decision->verdict) == 0);
        REQUIRE(strcmp(again.rule, decision->rule) == 0);
        bool is_promoted = strcmp(decision->verdict, "promote") == 0;
        if (strcmp(decision->policy, "manual") == 0 &&
            (is_promoted || strcmp(decision->verdict, "pass") == 0)) {
            check_review(decision);
        }
        if (strcmp(decision->policy, "evaluate") == 0 &&
            (is_promoted || strcmp(decision->verdict, "pass") == 0)) {
            check_measured(decision);
        }
        REQUIRE(history->n < WEIR_ARRAY_LEN(history->items));
        history->items[history->n++] = *decision;
        if (is_promoted) {
            const struct weir_ion_doc_link *link = weir_ion_doc_link(&state->doc, decision->link);
            check_all_passed(history, &link->policies, decision->candidate);
            check_gates(before, &link->policies, decision->link, now_ms);
        }
    }
}

/** After a tick nothing is overdue, and the next one comes in time for everything. */
static void check_nothing_is_forgotten(const struct weir_ion_state *state, int64_t now_ms)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const struct weir_ion_doc_link *link = weir_ion_doc_link(&state->doc, candidate->link);
        if (candidate->waits_for == NULL || link == NULL ||
            strcmp(state->ion.state, "ACTIVE") != 0) {
            continue;
        }
        int64_t tick_ms = weir_ion_next_tick_ms(state, now_ms);
        REQUIRE(candidate->until_ms == 0 || candidate->until_ms > now_ms);
        REQUIRE(candidate->until_ms == 0 || tick_ms <= candidate->until_ms);
        REQUIRE(candidate->until_ms > 0 ||
                strcmp(candidate->state, WEIR_CANDIDATE_PENDING_REVIEW) == 0 ||
                weir_ion_watching(state, candidate) != NULL);
        if (strstr(link->policies.names, "expiry") != NULL) {
            REQUIRE(candidate->created_ms + 1000 * atoll(MAX_AGE_S) > now_ms);
            REQUIRE(tick_ms <= candidate->created_ms + 1000 * atoll(MAX_AGE_S));
        }
    }
}

/** Recorded inputs fire again, for the same reason. */
static void check_firing(const struct weir_trigger_firing *firing)
{
    struct weir_trigger_verdict again;
    REQUIRE(weir_trigger_replay(firing->inputs, &arena, &again, NULL) == WEIR_OK);
    REQUIRE(again.fires && strcmp(again.reason, firing->reason) == 0);
}

/** Told again it changes nothing; only that a trial may begin when another has ended. */
static void check_told_again(const struct weir_ion_state *state, const struct weir_ion_event *event,
                             int64_t now_ms)
{
    struct weir_error err;
    struct weir_ion_state copy = copy_state(state);
    size_t n_watched = 0, n = 0;
    for (size_t i = 0; i < state->n_candidates; i++) {
        n_watched += weir_ion_watching(state, &state->candidates[i]) != NULL;
    }
    for (;; n++) {
        struct weir_ion_actions again = {0};
        REQUIRE(weir_ion_step(&copy, event, now_ms, &arena, &again, &err) == WEIR_OK);
        if (again.n == 0) {
            return;
        }
        REQUIRE(event->type == WEIR_ION_EVENT_TICK && n < 4 * n_watched);
    }
}

/** All that a step is checked by, over a history. */
struct checks {
    struct keys keys;
    struct history history;
    struct deployed deployed;
    struct measuring measuring;
};

#endif
