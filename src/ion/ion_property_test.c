/* Random histories of an ION: rules that hold after every event, and replay. */
#include "base/rng.h"
#include "ion/ion_fixture.h"

#include <inttypes.h>
#include <stdlib.h>

#define N_STEPS  80
#define N_SEEDS  WEIR_TEST_TIMES(100, 30)
#define KEYS_MAX 1024

static struct weir_arena arena;

/** Of the documents' policies, where they have them. */
#define RATE_LIMIT_S "9000"
#define MAX_AGE_S    "20000"

#define CANARY                                                                                     \
    "{kind: canary, steps: [10, 100], hold_s: 0, min_requests: 10, min_judged: 5,"                 \
    " timeout_s: 90000, max_error_rate: 0.1, max_disagreement: 0.5}"

#define DOC_OF_CHAINS(to_p, to_q)                                                                  \
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"                   \
    " {name: u, type: training, dataset: people, model: m},"                                       \
    " {name: p, type: prediction, source: {kind: http}}, {name: q, type: prediction,"              \
    " source: {kind: http}}], links: [{from: t, to: p, default: free@1, policy: " to_p "},"        \
    " {from: u, to: q, policy: " to_q "}]}"

/** All sorts of pipelines; what is prepared of "faces" is "people". */
#define GRAPH                                                                                      \
    "{name: x, pipelines: [{name: r, type: preparation, dataset: faces, output: people,"           \
    " parameters: {argv: [a]}, triggers: [new-data], restart: {kind: on-failure, times: 2,"        \
    " backoff_s: 1000}}, {name: u, type: training, dataset: people, model: m, restart: {kind:"     \
    " always, backoff_s: 5000}}, {name: t, type: training, dataset: faces, model: m,"              \
    " triggers: {new_data: true}}, {name: e, type: evaluation, dataset: people},"                  \
    " {name: c, type: comparison, dataset: faces, against: p, critical: true}, {name: p,"          \
    " type: prediction, source: {kind: http}, restart: {kind: always, backoff_s: 2000}}],"         \
    " links: [{from: r, to: u, dataset: people}, {from: r, to: e, dataset: people},"               \
    " {from: u, to: e}, {from: t, to: c}, {from: t, to: p, policy: manual}]}"

static const char *const documents[] = {
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m,"
    " triggers: {new_data: true, schedule: '0 0 * * * ?'}}, {name: p, type: prediction,"
    " source: {kind: http}, gallery: {dataset: people}}],"
    " links: [{from: t, to: p, policy: always-update}]}",
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
    " {name: u, type: training, dataset: people, model: m, triggers: {new_data: true}},"
    " {name: p, type: prediction, source: {kind: http}}, {name: q, type: prediction, replicas: 2,"
    " source: {kind: http}}], links: [{from: t, to: p, policy: manual},"
    " {from: u, to: q, policy: always-update}]}",
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
    " {name: u, type: training, dataset: people, model: m},"
    " {name: p, type: prediction, source: {kind: http}, replicas: 3}, {name: q, type: prediction,"
    " source: {kind: directory, path: /f}}], links: [{from: u, to: p, policy: manual},"
    " {from: u, to: q, policy: manual}]}",
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
    " {name: p, type: prediction, source: {kind: http}}, {name: q, type: prediction,"
    " source: {kind: http}}], links: [{from: {model: free}, to: p, policy: always-update},"
    " {from: {model: x.t}, to: q, policy: manual}]}",
    DOC_OF_CHAINS("[{kind: manual, approvals: 2, four_eyes: true}, {kind: rate-limit,"
                  " min_interval_s: " RATE_LIMIT_S "}]",
                  "[{kind: expiry, max_age_s: " MAX_AGE_S "}, {kind: manual, timeout_s: 2000,"
                  " on_timeout: approve, roles: [approver]}, always-update]"),
    DOC_OF_CHAINS("[{kind: freeze-window, start: '0 0 0/2 * * ?', duration_s: 3600},"
                  " {kind: manual, approvals: 2}]",
                  "[{kind: rate-limit, min_interval_s: " RATE_LIMIT_S "}, {kind: freeze-window,"
                  " start: '0 0 0/2 * * ?', duration_s: 3600}, {kind: expiry,"
                  " max_age_s: " MAX_AGE_S "}]"),
    DOC_OF_CHAINS("[{kind: rate-limit, min_interval_s: " RATE_LIMIT_S "}, manual]",
                  "always-reject"),
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m,"
    " triggers: [{kind: metric, of: kpi, name: k, when: above, threshold: 5,"
    " least_interval_s: 4000}]},"
    " {name: u, type: training, dataset: people, model: m, triggers: {schedule: '0 0 * * * ?'}},"
    " {name: p, type: prediction, source: {kind: http}}],"
    " links: [{from: t, to: {deployment: d},"
    " policy: [{kind: shadow, min_requests: 20, timeout_s: 90000}, " CANARY "]},"
    " {from: u, to: p, policy: always-update}]}",
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m,"
    " triggers: [{kind: manual, least_interval_s: 5000}]}],"
    " links: [{from: {model: free}, to: {deployment: d}, policy: [{kind: rate-limit,"
    " min_interval_s: " RATE_LIMIT_S "}, " CANARY "]},"
    " {from: t, to: {deployment: e}, policy: " CANARY "}]}",
};

/** A model that no training makes; its number is the last of the world's. */
#define I_FREE 2

static const struct weir_ion_member members[] = {{"x:ann", "x", "ann", "allow", "bob", 1},
                                                 {"x:eve", "x", "eve", "deny", "bob", 1}};

/** What the outside world knows: numbers that only grow. */
struct world {
    struct weir_rng rng;
    int64_t models[3]; /**< Of "t", "u" and of the registered model "free". */
    int64_t datasets[2];
    int64_t n_jobs;
    int64_t now_ms;
};

static struct weir_ion_event free_model(int64_t version)
{
    return model_of(&arena, "free", NULL, version,
                    weir_arena_printf(&arena, "free-v%" PRId64, version));
}

static struct weir_ion_event random_apply(struct world *world)
{
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    char *text;
    /* Half of them with a deployment, where versions are tried. */
    size_t i_doc = weir_rng_below(&world->rng, 2) == 0
                       ? WEIR_ARRAY_LEN(documents) - 1 - weir_rng_below(&world->rng, 2)
                       : weir_rng_below(&world->rng, WEIR_ARRAY_LEN(documents));
    const char *yaml = weir_rng_below(&world->rng, 5) == 0 ? GRAPH : documents[i_doc];
    event.mode = weir_rng_below(&world->rng, 4) == 0 ? WEIR_ION_SANDBOX : NULL;
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    struct weir_ion_dataset *datasets = WEIR_ARENA_ARRAY(&arena, 2, struct weir_ion_dataset);
    datasets[0] = (struct weir_ion_dataset){"faces", world->datasets[0], "/f", "d", "b", 0, 0, 0};
    datasets[1] = (struct weir_ion_dataset){"people", world->datasets[1], "/p", "d", "b", 0, 0, 0};
    event.datasets = datasets;
    event.n_datasets = 2;
    struct weir_ion_model *models = WEIR_ARENA_ARRAY(&arena, 2, struct weir_ion_model);
    event.models = models;
    if (world->models[I_FREE] > 0) {
        models[event.n_models++] = *free_model(world->models[I_FREE]).models;
    }
    event.defaults = free_model(1).models;
    event.n_defaults = 1;
    if (world->models[0] > 0) {
        models[event.n_models++] = *model(&arena, "t", world->models[0]).models;
    }
    return event;
}

/** Reports of up to three replicas, of the running job mostly, about deployments around the one
 *  that is wanted. The state's array is replaced, as after a load. */
static struct weir_ion_event random_reports(struct world *world, struct weir_ion_state *state,
                                            const struct weir_ion_pipeline *pipeline)
{
    static char *const states[] = {WEIR_REPLICA_STARTING, WEIR_REPLICA_APPLIED,
                                   WEIR_REPLICA_FAILED};
    struct weir_rng *rng = &world->rng;
    struct weir_ion_replica *replicas = WEIR_ARENA_ARRAY(&arena, 3, struct weir_ion_replica);
    size_t n = weir_rng_below(rng, 4);
    for (size_t i = 0; i < n; i++) {
        int64_t revision =
            WEIR_MAX(pipeline->deployment_revision - (int64_t)weir_rng_below(rng, 2), (int64_t)0);
        bool is_old = weir_rng_below(rng, 8) == 0 || pipeline->job == NULL;
        replicas[i] = (struct weir_ion_replica){
            .ion = "x",
            .pipeline = pipeline->name,
            .replica = weir_arena_printf(&arena, "%s-%zu", is_old ? "old" : pipeline->job, i),
            .state = states[weir_rng_below(rng, 3)],
            .revision = revision,
            .reason = weir_rng_below(rng, 2) == 0 ? "no memory" : "no space",
            .served_revision = (int64_t)weir_rng_below(rng, (uint64_t)revision + 1)};
    }
    state->replicas = replicas;
    state->n_replicas = n;
    return (struct weir_ion_event){.type = WEIR_ION_EVENT_REPLICA, .pipeline = pipeline->name};
}

/** How those do that are watched, and what triggers see: sometimes nothing is known. */
static struct weir_ion_event random_tick(struct world *world, const struct weir_ion_state *state)
{
    struct weir_rng *rng = &world->rng;
    struct weir_ion_event tick = {.type = WEIR_ION_EVENT_TICK, .actor = "system"};
    struct weir_ion_traffic *traffic =
        WEIR_ARENA_ARRAY(&arena, state->n_candidates + 1, struct weir_ion_traffic);
    struct weir_ion_observed *observed =
        WEIR_ARENA_ARRAY(&arena, state->n_triggers + 1, struct weir_ion_observed);
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        if (weir_ion_watching(state, candidate) == NULL || weir_rng_below(rng, 8) == 0) {
            continue;
        }
        traffic[tick.n_traffic++] = (struct weir_ion_traffic){
            .candidate = candidate->id,
            .live_ppm = weir_rng_below(rng, 4) == 0 ? 0 : candidate->share_ppm,
            .is_ready = weir_rng_below(rng, 4) != 0,
            .problem = weir_rng_below(rng, 30) == 0 ? "no such file" : NULL,
            .figures = {.server_ms = 1 + (int64_t)(weir_rng_below(rng, 10) == 0),
                        .n_requests = (int64_t)weir_rng_below(rng, 300),
                        .n_failed = (int64_t)weir_rng_below(rng, 20),
                        .n_compared = (int64_t)weir_rng_below(rng, 300),
                        .n_disagreed = (int64_t)weir_rng_below(rng, 20),
                        .compared_us = 100,
                        .copies_us = 100}};
    }
    for (size_t i = 0; i < state->n_triggers; i++) {
        const struct weir_trigger *trigger = weir_ion_trigger_of(state, &state->triggers[i]);
        if (trigger != NULL && weir_trigger_ops(trigger)->sees != WEIR_TRIGGER_SEES_OWN) {
            struct weir_ion_observed *one = &observed[tick.n_observed++];
            *one = (struct weir_ion_observed){
                state->triggers[i].id,
                weir_ion_trigger_inputs(state, &state->triggers[i], world->now_ms)};
            one->inputs.has_value = weir_rng_below(rng, 4) != 0;
            one->inputs.value = (double)weir_rng_below(rng, 10);
            one->inputs.value_ms = world->now_ms - (int64_t)weir_rng_below(rng, 3000000);
        }
    }
    tick.traffic = traffic;
    tick.observed = observed;
    return tick;
}

/* The dataset of a training, most often with a version more. */
static struct weir_ion_dataset *next_dataset(struct world *world, size_t i_training)
{
    struct weir_ion_dataset *dataset = WEIR_ARENA_NEW(&arena, struct weir_ion_dataset);
    world->datasets[i_training] += weir_rng_below(&world->rng, 3) != 0;
    dataset->name = i_training == 0 ? "faces" : "people";
    dataset->version = world->datasets[i_training];
    dataset->path = "/d";
    dataset->digest = "d";
    dataset->blob = "b";
    return dataset;
}

/** A model or data comes, or a person sets a model, as `event` says on which link. */
static struct weir_ion_event random_model(struct world *world, const struct weir_ion_event *event,
                                          uint64_t dice)
{
    static const char *const trainings[] = {"t", "u"};
    struct weir_rng *rng = &world->rng;
    size_t i_training = weir_rng_below(rng, 2);
    if (dice < 12) {
        world->models[I_FREE] += world->models[I_FREE] == 0 || weir_rng_below(rng, 3) != 0;
        return free_model(world->models[I_FREE]);
    }
    if (dice < 36) {
        bool is_again = weir_rng_below(rng, 4) == 0 && world->models[i_training] > 0;
        return model(&arena, trainings[i_training],
                     is_again
                         ? 1 + (int64_t)weir_rng_below(rng, (uint64_t)world->models[i_training])
                         : ++world->models[i_training]);
    }
    if (dice < 44) {
        return (struct weir_ion_event){.type = WEIR_ION_EVENT_DATASET,
                                       .datasets = next_dataset(world, i_training),
                                       .n_datasets = 1};
    }
    struct weir_ion_event set =
        model(&arena, trainings[i_training], 1 + (int64_t)weir_rng_below(rng, 12));
    set.type = WEIR_ION_EVENT_SET;
    set.actor = event->actor;
    set.link = event->link;
    return set;
}

static struct weir_ion_event random_event(struct world *world, struct weir_ion_state *state)
{
    struct weir_rng *rng = &world->rng;
    static const char *const pipelines[] = {"t", "u", "p", "q", "z"},
                             *const links[] = {NULL,  NULL,           "t:p",           "u:p",
                                               "u:q", "model/free:p", "t:deployment/d"};
    const struct weir_ion_pipeline *pipeline =
        state->n_pipelines > 0 ? &state->pipelines[weir_rng_below(rng, state->n_pipelines)] : NULL;
    static const char *const people[] = {"ann", "bob", "cat"}, *const roles[][2] = {
                                                                   {"approver", NULL},
                                                                   {"admin", NULL}};
    struct weir_ion_event event = {
        .actor = people[weir_rng_below(rng, 3)],
        .roles = roles[weir_rng_below(rng, 2)],
        .note = "note",
        .link = links[weir_rng_below(rng, 7)],
        .version = weir_rng_below(rng, 2) == 0 ? 0 : (int64_t)weir_rng_below(rng, 12),
        .pipeline = pipeline != NULL ? pipeline->name : "t",
        .training = pipeline != NULL ? pipeline->training - (int64_t)weir_rng_below(rng, 2) : 0,
    };
    if (pipeline != NULL && strcmp(pipeline->type, "preparation") == 0 &&
        weir_rng_below(rng, 2) == 0) {
        event.type = strcmp(pipeline->state, "FREEZING") == 0 ? WEIR_ION_EVENT_FROZEN
                                                              : WEIR_ION_EVENT_FINISHED;
        event.training = pipeline->training;
        return event;
    }
    if (pipeline != NULL && weir_rng_below(rng, 5) == 0) {
        return random_reports(world, state, pipeline);
    }
    uint64_t dice = weir_rng_below(rng, 100);
    if (dice < 6) {
        return random_apply(world);
    }
    if (dice <= 44) {
        return random_model(world, &event, dice);
    }
    event.job = weir_arena_printf(&arena, "j%" PRId64, ++world->n_jobs);
    if (pipeline != NULL && weir_rng_below(rng, 2) == 0) {
        event.job = pipeline->job;
    }
    if (dice >= 88 && dice < 96) {
        return random_tick(world, state);
    }
    if (weir_rng_below(rng, 12) == 0) {
        event.type = weir_rng_below(rng, 5) < 2 ? WEIR_ION_EVENT_PAUSE : WEIR_ION_EVENT_RESUME;
        event.pipeline = weir_rng_below(rng, 2) == 0 ? NULL : event.pipeline;
        return event;
    }
    if (weir_rng_below(rng, 20) == 0) {
        event.type = weir_rng_below(rng, 2) == 0 ? WEIR_ION_EVENT_RUN : WEIR_ION_EVENT_PROMOTED;
        event.times = weir_rng_below(rng, 5) == 0 ? (int64_t)weir_rng_below(rng, 200)
                                                  : 1 + (int64_t)weir_rng_below(rng, 3);
        return event;
    }
    event.type = dice < 54   ? WEIR_ION_EVENT_APPROVE
                 : dice < 58 ? WEIR_ION_EVENT_REJECT
                 : dice < 66 ? WEIR_ION_EVENT_ROLLBACK
                 : dice < 74 ? WEIR_ION_EVENT_STARTED
                 : dice < 80 ? WEIR_ION_EVENT_FINISHED
                 : dice < 82 ? WEIR_ION_EVENT_FAILED
                 : dice < 84 ? WEIR_ION_EVENT_CANCELLED
                 : dice < 88 ? WEIR_ION_EVENT_TRIGGER
                 : dice < 98 ? WEIR_ION_EVENT_LISTS
                             : WEIR_ION_EVENT_DELETED;
    if (event.type == WEIR_ION_EVENT_TRIGGER) {
        event.pipeline = pipelines[weir_rng_below(rng, 5)];
    }
    if (event.type == WEIR_ION_EVENT_STARTED && event.job == NULL) {
        event.job = weir_arena_printf(&arena, "j%" PRId64, world->n_jobs);
    }
    return event;
}

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
    return strcmp(state, "SHADOW") == 0 || strcmp(state, "CANARY") == 0;
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
    REQUIRE((strcmp(candidate->state, "CANARY") == 0) == (candidate->share_ppm > 0));
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

/** A shift is carried out at once, as control/rollout.c says. */
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
    REQUIRE(!is_serving || (pipeline->served_revision > 0 && pipeline->job != NULL));
    REQUIRE(pipeline->served_revision <= pipeline->deployment_revision);
    REQUIRE(has_failed == (pipeline->state_reason != NULL) ||
            strcmp(pipeline->state, "WAITING") == 0 || pipeline->paused_by != NULL);
    REQUIRE(pipeline->served_candidate == NULL || pipeline->served_revision > 0);
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const char *colon = strchr(candidate->link, ':');
        is_shown = is_shown || (strcmp(colon + 1, pipeline->name) == 0 &&
                                strcmp(weir_ion_candidate_shown(state, candidate), "SERVING") == 0);
    }
    REQUIRE(is_shown == (pipeline->served_candidate != NULL));
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
            pipeline->training == old->training);
    REQUIRE(is_paused || strcmp(pipeline->state, "IDLE") != 0 || pipeline->pending_cause != NULL ||
            pipeline->runs_left == 0);
    REQUIRE(is_paused || strcmp(pipeline->state, "WAITING") != 0 || pipeline->candidate == NULL ||
            strstr(pipeline->state_reason, "have ended") != NULL);
    for (size_t i = 0; i < actions->n; i++) {
        bool starts = actions->items[i].type == WEIR_ION_ACTION_START_TRAINING ||
                      actions->items[i].type == WEIR_ION_ACTION_START_PREDICTION;
        REQUIRE(!is_paused || !starts || strcmp(actions->items[i].pipeline, pipeline->name) != 0);
    }
}

static void check_pipelines(const struct weir_ion_state *before, const struct weir_ion_state *state,
                            const struct weir_ion_actions *actions)
{
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        bool is_removed = strcmp(pipeline->state, "REMOVED") == 0;
        REQUIRE(!is_removed || (pipeline->job == NULL && pipeline->candidate == NULL));
        REQUIRE(is_removed || weir_ion_doc_pipeline(&state->doc, pipeline->name) != NULL);
        REQUIRE(is_removed || strcmp(state->ion.state, "ACTIVE") == 0);
        check_pause(weir_ion_pipeline_of(before, pipeline->name), pipeline, actions);
        for (size_t k = 0; k < before->n_pipelines; k++) {
            const struct weir_ion_pipeline *old = &before->pipelines[k];
            if (strcmp(old->id, pipeline->id) == 0) {
                REQUIRE(pipeline->training >= old->training);
                REQUIRE(pipeline->training <= old->training + 1);
                REQUIRE(pipeline->deployment_revision >= old->deployment_revision);
            }
        }
        check_served(state, pipeline);
        if (pipeline->deployment == NULL) {
            REQUIRE(strcmp(pipeline->state, "SERVING") != 0);
            continue;
        }
        /* What replicas are told is what the state says. */
        json_t *json = json_loads(pipeline->deployment, 0, NULL);
        REQUIRE(json != NULL);
        REQUIRE(json_integer_value(json_object_get(json, "revision")) ==
                pipeline->deployment_revision);
        const char *id = json_string_value(json_object_get(json_object_get(json, "model"), "id"));
        REQUIRE(id != NULL && strstr(pipeline->candidate, id) != NULL);
        const struct weir_ion_doc_link *link = weir_ion_doc_link_into(&state->doc, pipeline->name);
        const struct weir_ion_candidate *now = link != NULL ? serving(state, link->id) : NULL;
        REQUIRE(now == NULL || strcmp(now->id, pipeline->candidate) == 0);
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
        bool has_begun = old == NULL || old->training < pipeline->training;
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
        REQUIRE(pipeline->pending_cause == NULL || is_held || pipeline->paused_by != NULL);
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
        REQUIRE(!is_running(pipeline) || !measures || pipeline->measured_version > 0);
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
           type == WEIR_ION_EVENT_REPLICA;
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
        REQUIRE(candidate->until_ms > 0 || strcmp(candidate->waits_for, "manual") == 0 ||
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
};

static weir_status play_one(struct weir_ion_state *state, const struct weir_ion_event *event,
                            int64_t now_ms, struct checks *checks, const char *text_before,
                            char **out_actions)
{
    struct keys *keys = &checks->keys;
    struct weir_ion_actions actions = {0};
    struct weir_error err = {0};
    struct weir_ion_state before = copy_state(state);
    weir_status status = weir_ion_step(state, event, now_ms, &arena, &actions, &err);
    *out_actions = dump_actions(&actions, &arena);
    if (status != WEIR_OK) {
        REQUIRE(actions.n == 0);
        REQUIRE(err.message[0] != '\0');
        REQUIRE(strcmp(text_before, dump_state(state, &arena)) == 0);
        return status;
    }
    check_candidates(&before, state, &actions);
    check_pipelines(&before, state, &actions);
    check_data_links(&before, state);
    check_runs(state, now_ms);
    check_decisions(&before, state, &actions, now_ms, &checks->history);
    if (event->type == WEIR_ION_EVENT_TICK) {
        check_nothing_is_forgotten(state, now_ms);
    }
    for (size_t i = 0; i < actions.n; i++) {
        const struct weir_ion_action *action = &actions.items[i];
        if (action->type == WEIR_ION_ACTION_START_TRAINING ||
            action->type == WEIR_ION_ACTION_START_PREDICTION ||
            action->type == WEIR_ION_ACTION_STOP_PREDICTION ||
            action->type == WEIR_ION_ACTION_SHIFT) {
            remember(keys, action->key);
        } else if (action->type == WEIR_ION_ACTION_DECIDED) {
            remember(keys, action->decision.id);
        } else if (action->type == WEIR_ION_ACTION_FIRED) {
            remember(keys, weir_arena_printf(&arena, "firing:%s", action->firing.id));
            check_firing(&action->firing);
        }
        if (action->type == WEIR_ION_ACTION_SHIFT) {
            carry_out(&checks->deployed, state, action);
        }
    }
    check_deployed(&checks->deployed, state);
    if (is_idempotent(event->type)) {
        check_told_again(state, event, now_ms);
    }
    return WEIR_OK;
}

/** How often histories came to what they are there for. */
static int n_shadows, n_canaries, n_sandboxes, n_rows, n_pauses;
static int n_freezes, n_held, n_restarts, n_measured;

static void count_states(const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        n_shadows += strcmp(state->candidates[i].state, "SHADOW") == 0;
        n_canaries += strcmp(state->candidates[i].state, "CANARY") == 0;
    }
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        n_rows += pipeline->runs_left > 0;
        n_freezes += strcmp(pipeline->state, "FREEZING") == 0;
        n_held += pipeline->pending_cause != NULL && !is_running(pipeline);
        n_restarts += pipeline->restart_ms > 0;
        n_measured += pipeline->measured_version > 0 && is_running(pipeline);
        n_pauses += pipeline->paused_by != NULL;
    }
    n_sandboxes += state->ion.mode != NULL && strcmp(state->ion.mode, "sandbox") == 0;
}

static void play(uint64_t seed)
{
    struct world world = {.now_ms = 1000000};
    weir_rng_init(&world.rng, seed, 0);
    struct weir_ion_state state, replayed;
    weir_ion_state_new("x", &arena, &state);
    weir_ion_state_new("x", &arena, &replayed);
    state.members = replayed.members = members;
    state.n_members = replayed.n_members = 2;
    struct weir_ion_event events[N_STEPS];
    struct weir_ion_state given[N_STEPS]; /**< Its reports are those that the event came with. */
    int64_t times[N_STEPS];
    char *texts[N_STEPS], *acts[N_STEPS];
    weir_status statuses[N_STEPS];
    struct checks *checks = WEIR_ARENA_NEW(&arena, struct checks);
    for (int i = 0; i < N_STEPS; i++) {
        world.now_ms += (int64_t)weir_rng_below(&world.rng, 3000000);
        events[i] = i == 0 ? random_apply(&world) : random_event(&world, &state);
        times[i] = world.now_ms;
        given[i] = state;
        statuses[i] = play_one(&state, &events[i], times[i], checks,
                               i > 0 ? texts[i - 1] : dump_state(&state, &arena), &acts[i]);
        texts[i] = dump_state(&state, &arena);
        count_states(&state);
    }
    for (int i = 0; i < N_STEPS; i++) {
        struct weir_ion_actions actions = {0};
        struct weir_error err;
        replayed.replicas = given[i].replicas;
        replayed.n_replicas = given[i].n_replicas;
        REQUIRE(weir_ion_step(&replayed, &events[i], times[i], &arena, &actions, &err) ==
                statuses[i]);
        REQUIRE(strcmp(dump_actions(&actions, &arena), acts[i]) == 0);
        REQUIRE(strcmp(dump_state(&replayed, &arena), texts[i]) == 0);
    }
}

START_TEST(random_histories_keep_the_rules_and_replay_the_same)
{
    printf("seeds 1 to %d\n", N_SEEDS);
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        weir_arena_init(&arena, 0);
        play(seed);
        weir_arena_fini(&arena);
    }
    printf("%d shadows, %d canaries, %d sandboxes, %d rows of trainings, %d pauses\n", n_shadows,
           n_canaries, n_sandboxes, n_rows, n_pauses);
    ck_assert_int_gt(n_shadows, 20);
    ck_assert_int_gt(n_canaries, 20);
    ck_assert_int_gt(n_sandboxes, 20);
    ck_assert_int_gt(n_rows, 20);
    ck_assert_int_gt(n_pauses, 20);
    printf("%d freezes, %d held, %d to start again, %d measured\n", n_freezes, n_held, n_restarts,
           n_measured);
    ck_assert_int_gt(n_freezes, 5);
    ck_assert_int_gt(n_held, 20);
    ck_assert_int_gt(n_restarts, 5);
    ck_assert_int_gt(n_measured, 20);
}

END_TEST

/** The oracle of rollback: a stack of what served, without what was rolled back. */
struct stack {
    int64_t items[256];
    size_t n;
};

static void stack_remove(struct stack *stack, int64_t version)
{
    size_t n = 0;
    for (size_t i = 0; i < stack->n; i++) {
        if (stack->items[i] != version) {
            stack->items[n++] = stack->items[i];
        }
    }
    stack->n = n;
}

START_TEST(rollbacks_go_where_a_stack_of_served_versions_says)
{
    uint64_t seed = 99;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    for (int i_trial = 0; i_trial < 200; i_trial++) {
        weir_arena_init(&arena, 0);
        struct weir_ion_state state;
        struct weir_ion_actions actions = {0};
        struct stack stack = {.n = 0};
        bool was_served[64] = {false};
        int64_t newest = 0;
        weir_ion_state_new("x", &arena, &state);
        struct weir_ion_event event = applied(&arena, "always-update", "{}", 1);
        REQUIRE(weir_ion_step(&state, &event, 1, &arena, &actions, NULL) == WEIR_OK);
        for (int64_t i = 0; i < 40; i++) {
            weir_status expected = WEIR_OK;
            if (weir_rng_below(&rng, 2) == 0) {
                event = model(&arena, "t", ++newest);
                stack.items[stack.n++] = newest;
                was_served[newest] = true;
            } else {
                int64_t version = weir_rng_below(&rng, 3) == 0
                                      ? (int64_t)weir_rng_below(&rng, (uint64_t)newest + 2)
                                      : 0;
                event =
                    (struct weir_ion_event){.type = WEIR_ION_EVENT_ROLLBACK, .version = version};
                int64_t current = stack.n > 0 ? stack.items[stack.n - 1] : 0;
                if (current == 0 || version == current || (version == 0 && stack.n < 2)) {
                    expected = WEIR_ERR_CONFLICT;
                } else if (version != 0 && !was_served[version]) {
                    expected = WEIR_ERR_NOT_FOUND;
                } else {
                    stack.n--;
                    if (version != 0) {
                        stack_remove(&stack, version);
                        stack.items[stack.n++] = version;
                    }
                }
            }
            REQUIRE(weir_ion_step(&state, &event, 2 + i, &arena, &actions, NULL) == expected);
            const struct weir_ion_candidate *now = serving(&state, "t:p");
            REQUIRE((now != NULL ? now->version : 0) ==
                    (stack.n > 0 ? stack.items[stack.n - 1] : 0));
        }
        weir_arena_fini(&arena);
    }
}

END_TEST

WEIR_TEST_MAIN("ion_property", random_histories_keep_the_rules_and_replay_the_same,
               rollbacks_go_where_a_stack_of_served_versions_says)
