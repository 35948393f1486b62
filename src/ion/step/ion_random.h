/** Tests: an outside world that knows of an ION, and events of it drawn by lot. */
#ifndef WEIR_ION_ION_RANDOM_H
#define WEIR_ION_ION_RANDOM_H

#include "base/rng.h"
#include "ion/ion_fixture.h"

#include <inttypes.h>
#include <stdlib.h>

static struct weir_arena arena; /**< Of the history that runs. */

/** Of the documents' policies, where they have them. */
#define RATE_LIMIT_S "9000"
#define MAX_AGE_S    "20000"

#define CANARY                                                                                     \
    "{kind: canary, steps: [10, 100], hold_s: 0, min_requests: 10, min_judged: 5,"                 \
    " drift_false_alarm_rate: 0.05, drift_window: 20,"                                             \
    " timeout_s: 90000, max_error_rate: 0.1, max_disagreement: 0.5}"

#define AB_RATE "{kind: ab, share: 30, min_samples: 20, timeout_s: 30000, max_error_rate: 0.5}"
#define AB_MONEY                                                                                   \
    "{kind: ab, metric: money, better: lower, min_samples: 20, confidence: 0.9,"                   \
    " timeout_s: 30000, on_timeout: promote, max_error_rate: 1}"

#define EVALUATE                                                                                   \
    "{kind: evaluate, dataset: held-out, alpha: 0.05, min_samples: 50,"                            \
    " timeout_s: 40000}"
#define EVALUATE_ALPHA 0.05

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

/** What others train predicts, and the other way round: pipelines come back as another type. */
#define TURNED                                                                                     \
    "{name: x, pipelines: [{name: p, type: training, dataset: faces, model: m, triggers:"          \
    " {new_data: true, schedule: '0 0 * * * ?'}, restart: {kind: always, backoff_s: 2000}},"       \
    " {name: t, type: prediction, source: {kind: http}, gallery: {dataset: people},"               \
    " restart: {kind: always, backoff_s: 2000}}], links: [{from: {model: free}, to: t,"            \
    " policy: always-update}]}"

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
    DOC_OF_CHAINS(EVALUATE,
                  "[{kind: rate-limit, min_interval_s: " RATE_LIMIT_S "}, {kind: evaluate,"
                  " dataset: held-out, metric: loss, margin: -0.01, least_accuracy: 0.5,"
                  " min_samples: 50, on_failure: pass}]"),
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m}],"
    " links: [{from: t, to: {deployment: d}, policy: [" EVALUATE ", manual, " CANARY "]}]}",
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
    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m}],"
    " links: [{from: {model: free}, to: {deployment: d}, policy: " AB_RATE "},"
    " {from: t, to: {deployment: e}, policy: [{kind: shadow, min_requests: 20, timeout_s: 90000},"
    " " AB_MONEY "]}]}",
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
    int64_t n_jobs, n_measurements;
    bool measures;        /**< All documents have policies that measure. */
    const char *document; /**< That was applied last; NULL: none. */
    int64_t now_ms;
};

static struct weir_ion_event free_model(int64_t version)
{
    return model_of(&arena, "free", NULL, version,
                    weir_arena_printf(&arena, "free-v%" PRId64, version));
}

/** Every third version takes another input. */
static struct weir_ion_event with_interface(struct weir_ion_event event)
{
    struct weir_ion_model *made = (struct weir_ion_model *)event.models;
    made->interface = weir_arena_printf(
        &arena,
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,%d]}],\"outputs\":[]}",
        made->version % 3 == 0 ? 8 : 16);
    return event;
}

/** Half of them where versions are measured, or tried at a deployment: the last ones. */
static const char *random_document(struct world *world)
{
    size_t n = WEIR_ARRAY_LEN(documents);
    if (world->measures) {
        return documents[n - 5 + weir_rng_below(&world->rng, 2)];
    }
    if (weir_rng_below(&world->rng, 5) == 0) {
        return weir_rng_below(&world->rng, 3) == 0 ? TURNED : GRAPH;
    }
    return documents[weir_rng_below(&world->rng, 2) == 0 ? n - 1 - weir_rng_below(&world->rng, 5)
                                                         : weir_rng_below(&world->rng, n)];
}

static struct weir_ion_event random_apply(struct world *world)
{
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    char *text;
    const char *yaml = random_document(world);
    yaml = world->document != NULL && weir_rng_below(&world->rng, 4) == 0 ? world->document : yaml;
    world->document = yaml;
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
        models[event.n_models++] = *with_interface(free_model(world->models[I_FREE])).models;
    }
    event.defaults = free_model(1).models;
    event.n_defaults = 1;
    if (world->models[0] > 0) {
        models[event.n_models++] = *with_interface(model(&arena, "t", world->models[0])).models;
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
        int64_t revision = WEIR_MAX(
            pipeline->service.deployment_revision - (int64_t)weir_rng_below(rng, 2), (int64_t)0);
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

/** A version waits for its measurement: it was begun, or cannot be. Some are told late. */
static bool random_measuring(struct world *world, const struct weir_ion_state *state,
                             struct weir_ion_event *out)
{
    struct weir_rng *rng = &world->rng;
    const struct weir_ion_candidate *candidate = NULL;
    size_t begin = weir_rng_below(rng, state->n_candidates + 1);
    for (size_t i = 0; i < state->n_candidates && candidate == NULL; i++) {
        const struct weir_ion_candidate *one =
            &state->candidates[(begin + i) % state->n_candidates];
        candidate = one->evaluation != NULL ? one : NULL;
    }
    if (candidate == NULL) {
        return false;
    }
    bool is_late = weir_rng_below(rng, 4) == 0, can_be = weir_rng_below(rng, 6) != 0;
    int64_t n = weir_policy_evaluation_of(candidate->evaluation)->n;
    *out = (struct weir_ion_event){.type = WEIR_ION_EVENT_MEASURING,
                                   .actor = "system",
                                   .candidate = candidate->id,
                                   .number = WEIR_MAX(n - is_late, (int64_t)1)};
    world->n_measurements++;
    if (can_be) {
        out->job = weir_arena_printf(&arena, "e%" PRId64, world->n_measurements);
        out->run = weir_arena_printf(&arena, "r%" PRId64, world->n_measurements);
    } else {
        out->note = "there is no dataset \"held-out\"";
    }
    return true;
}

/** What a job has found by now, or what has become of it. */
static struct weir_policy_evaluation random_figures(struct weir_rng *rng, char *job)
{
    static char *const states[] = {"QUEUED",    "RUNNING",   "SUCCEEDED",
                                   "SUCCEEDED", "SUCCEEDED", "FAILED"};
    size_t i_state = weir_rng_below(rng, WEIR_ARRAY_LEN(states));
    struct weir_policy_evaluation figures = {.job = job, .state = states[i_state]};
    if (strcmp(figures.state, "FAILED") == 0) {
        figures.problem = "its job failed: no memory";
    } else if (strcmp(figures.state, "SUCCEEDED") == 0) {
        figures.n_samples = 40 + (int64_t)weir_rng_below(rng, 100);
        figures.only_candidate = (int64_t)weir_rng_below(rng, 25);
        figures.only_live = (int64_t)weir_rng_below(rng, 10);
        figures.accuracy = weir_rng_f64(rng);
        figures.loss = weir_rng_f64(rng);
        figures.live_loss = weir_rng_f64(rng);
        figures.loss_m2 = weir_rng_f64(rng);
    }
    return figures;
}

/** How those do that are measured; of some it is another job that is told of. */
static void see_measured(struct world *world, const struct weir_ion_state *state,
                         struct weir_ion_event *tick)
{
    struct weir_ion_measured *measured =
        WEIR_ARENA_ARRAY(&arena, state->n_candidates + 1, struct weir_ion_measured);
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        char *job = weir_policy_evaluation_of(candidate->evaluation)->job;
        if (job != NULL && weir_rng_below(&world->rng, 4) != 0) {
            bool is_other = weir_rng_below(&world->rng, 8) == 0;
            measured[tick->n_measured++] = (struct weir_ion_measured){
                candidate->id, random_figures(&world->rng, is_other ? "e0" : job)};
        }
    }
    tick->measured = measured;
}

/** Does a tick come to somebody who waits for a measurement? */
static bool is_measuring(const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        if (weir_policy_evaluation_of(state->candidates[i].evaluation)->job != NULL) {
            return true;
        }
    }
    return false;
}

/** Counts of answers, of one of two forms; sometimes a text that is none. */
static char *random_outputs(struct weir_rng *rng)
{
    int n = (int)weir_rng_below(rng, 200), other = (int)weir_rng_below(rng, 2) * n;
    return weir_rng_below(rng, 20) == 0
               ? "[]"
               : weir_arena_printf(&arena, "{\"classes\":[%d,%d],\"scores\":[0,%d]}", n, other,
                                   n + other);
}

/** What came of requests: of a version that serves, or served before. */
static struct weir_policy_arms random_arms(struct weir_rng *rng, const struct weir_ion_state *state,
                                           const struct weir_ion_candidate *candidate)
{
    const struct weir_ion_candidate *live = serving(state, candidate->link);
    int64_t n = (int64_t)weir_rng_below(rng, 60), live_n = (int64_t)weir_rng_below(rng, 60);
    double mean = weir_rng_f64(rng), live_mean = weir_rng_f64(rng);
    return (struct weir_policy_arms){
        .live_version = weir_rng_below(rng, 8) == 0 || live == NULL ? 1 : live->version,
        .n = n,
        .mean = mean,
        .m2 = (double)n * mean * (1 - mean),
        .live_n = live_n,
        .live_mean = live_mean,
        .live_m2 = (double)live_n * live_mean * (1 - live_mean)};
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
                        .n_unaccepted = (int64_t)weir_rng_below(rng, 20),
                        .live_requests = (int64_t)weir_rng_below(rng, 300),
                        .live_unaccepted = (int64_t)weir_rng_below(rng, 20),
                        .n_only = (int64_t)weir_rng_below(rng, 20),
                        .live_only = (int64_t)weir_rng_below(rng, 20),
                        .n_neither = (int64_t)weir_rng_below(rng, 20),
                        .n_compared = (int64_t)weir_rng_below(rng, 300),
                        .n_disagreed = (int64_t)weir_rng_below(rng, 20),
                        .compared_us = 100,
                        .copies_us = 100,
                        .outputs = weir_rng_below(rng, 2) == 0 ? random_outputs(rng) : NULL,
                        .live_outputs = weir_rng_below(rng, 2) == 0 ? random_outputs(rng) : NULL},
            .arms = random_arms(rng, state, candidate)};
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
    see_measured(world, state, &tick);
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
        return with_interface(free_model(world->models[I_FREE]));
    }
    if (dice < 36) {
        bool is_again = weir_rng_below(rng, 4) == 0 && world->models[i_training] > 0;
        return with_interface(
            model(&arena, trainings[i_training],
                  is_again ? 1 + (int64_t)weir_rng_below(rng, (uint64_t)world->models[i_training])
                           : ++world->models[i_training]));
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
        .training =
            pipeline != NULL ? pipeline->runs.training - (int64_t)weir_rng_below(rng, 2) : 0,
    };
    if (pipeline != NULL && strcmp(pipeline->type, "preparation") == 0 &&
        weir_rng_below(rng, 2) == 0) {
        event.type = strcmp(pipeline->state, "FREEZING") == 0 ? WEIR_ION_EVENT_FROZEN
                                                              : WEIR_ION_EVENT_FINISHED;
        event.training = pipeline->runs.training;
        return event;
    }
    if (pipeline != NULL && weir_rng_below(rng, 5) == 0) {
        return random_reports(world, state, pipeline);
    }
    if (weir_rng_below(rng, 4) == 0 && random_measuring(world, state, &event)) {
        return event;
    }
    if (is_measuring(state) && weir_rng_below(rng, 3) == 0) {
        return random_tick(world, state);
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
                 : dice < 79 ? WEIR_ION_EVENT_FINISHED
                 : dice < 82 ? WEIR_ION_EVENT_FAILED
                 : dice < 84 ? WEIR_ION_EVENT_CANCELLED
                 : dice < 88 ? WEIR_ION_EVENT_TRIGGER
                 : dice < 97 ? WEIR_ION_EVENT_LISTS
                             : WEIR_ION_EVENT_DELETED;
    if (event.type == WEIR_ION_EVENT_TRIGGER) {
        event.pipeline = pipelines[weir_rng_below(rng, 5)];
    }
    if (event.type == WEIR_ION_EVENT_STARTED && event.job == NULL) {
        event.job = weir_arena_printf(&arena, "j%" PRId64, world->n_jobs);
    }
    return event;
}

#endif
