/** Tests: rules of versions that are measured for a policy. */
#ifndef WEIR_ION_ION_RULES_MEASURED_H
#define WEIR_ION_ION_RULES_MEASURED_H

#include "ion/step/ion_random.h"

/** Only what a policy has measured has figures, and it is measured a few times at most. */
static void check_evaluation(const struct weir_ion_candidate *candidate)
{
    bool is_measured =
        candidate->waits_for != NULL && strcmp(candidate->waits_for, "evaluate") == 0;
    REQUIRE(is_measured == (candidate->evaluation != NULL));
    if (is_measured) {
        struct weir_policy_evaluation row = *weir_policy_evaluation_of(candidate->evaluation);
        REQUIRE(strcmp(candidate->state, "WAITING") == 0);
        REQUIRE(row.n >= 0 && row.n <= 3 && row.state == NULL && row.problem == NULL);
        REQUIRE((row.n > 0) == (row.asked_ms > 0)); /* 0: its ION was gone. */
        REQUIRE((row.job == NULL) == (row.run == NULL) && (row.job == NULL || row.n > 0));
    }
}

/** Jobs that measure: begun, and not stopped. */
struct measuring {
    const char *jobs[64];
    size_t n;
};

static bool take_job(struct measuring *measuring, const char *job)
{
    for (size_t i = 0; i < measuring->n; i++) {
        if (strcmp(measuring->jobs[i], job) == 0) {
            measuring->jobs[i] = measuring->jobs[--measuring->n];
            return true;
        }
    }
    return false;
}

/** Does somebody wait for the job? */
static bool is_awaited(const struct weir_ion_state *state, const char *job)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        const char *its = weir_policy_evaluation_of(candidate->evaluation)->job;
        if (its != NULL && strcmp(its, job) == 0) {
            return strcmp(state->ion.state, "ACTIVE") == 0 &&
                   weir_ion_doc_link(&state->doc, candidate->link) != NULL;
        }
    }
    return false;
}

/** The version of the candidate's model that its link serves; 0: none. */
static int64_t live_beside(const struct weir_ion_state *state,
                           const struct weir_ion_candidate *candidate)
{
    const struct weir_ion_candidate *live = serving(state, candidate->link);
    return live != NULL && strcmp(live->model, candidate->model) == 0 ? live->version : 0;
}

/** After a tick each is measured beside what serves, unless that came with the same tick. */
static void check_live(const struct weir_ion_state *before, const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        int64_t live = live_beside(state, candidate);
        struct weir_policy_evaluation row = *weir_policy_evaluation_of(candidate->evaluation);
        REQUIRE(weir_ion_watching(state, candidate) == NULL || candidate->evaluation == NULL ||
                strcmp(state->ion.state, "ACTIVE") != 0 || live != live_beside(before, candidate) ||
                (row.n > 0 && row.live_version == live));
    }
}

/** A measurement that is told of is taken or not, as a job is made or not; what nobody waits for is
 *  stopped, once; and for nothing that is stopped anybody waits. */
static void check_measuring(struct measuring *measuring, const struct weir_ion_state *before,
                            const struct weir_ion_state *state, const struct weir_ion_event *event,
                            const struct weir_ion_actions *actions)
{
    size_t n_awaited = 0;
    if (event->type == WEIR_ION_EVENT_TICK) {
        check_live(before, state);
    }
    if (event->type == WEIR_ION_EVENT_MEASURING && event->job != NULL &&
        !is_awaited(before, event->job) && is_awaited(state, event->job)) {
        REQUIRE(measuring->n < WEIR_ARRAY_LEN(measuring->jobs));
        measuring->jobs[measuring->n++] = event->job;
    }
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_ion_action *action = &actions->items[i];
        REQUIRE(action->type != WEIR_ION_ACTION_STOP_EVALUATION ||
                (take_job(measuring, action->job) && !is_awaited(state, action->job)));
    }
    for (size_t i = 0; i < measuring->n; i++) {
        REQUIRE(is_awaited(state, measuring->jobs[i]));
    }
    for (size_t i = 0; i < state->n_candidates; i++) {
        const char *job = weir_policy_evaluation_of(state->candidates[i].evaluation)->job;
        n_awaited += job != NULL && is_awaited(state, job);
    }
    REQUIRE(n_awaited == measuring->n);
}

/** P(k heads or more) of n coins, coin by coin. */
static double p_of_heads(json_int_t k, json_int_t n)
{
    double p[64] = {1};
    REQUIRE(n < 64);
    for (json_int_t i_coin = 0; i_coin < n; i_coin++) {
        for (json_int_t i = i_coin + 1; i > 0; i--) {
            p[i] = (p[i] + p[i - 1]) / 2;
        }
        p[0] /= 2;
    }
    double sum = 0;
    for (json_int_t i = k; i <= n; i++) {
        sum += p[i];
    }
    return sum;
}

/** How many were let pass by a comparison, over all histories. */
static int n_surely_better;

/** What was measured beside another and let pass was surely better, on enough pictures. */
static void check_measured(const struct weir_policy_decision *decision)
{
    json_t *inputs = json_loads(decision->inputs, 0, NULL);
    const json_t *policy = json_object_get(inputs, "policy"),
                 *found = json_object_get(inputs, "evaluation");
    json_int_t serving = json_integer_value(json_object_get(inputs, "serving_version"));
    json_int_t n_candidate = json_integer_value(json_object_get(found, "only_candidate"));
    json_int_t n_live = json_integer_value(json_object_get(found, "only_live"));
    bool is_of_loss = json_object_get(policy, "metric") != NULL; /* which passes if it fails, too */
    if (serving > 0 && !is_of_loss) {
        REQUIRE(json_integer_value(json_object_get(found, "live_version")) == serving);
        REQUIRE(json_integer_value(json_object_get(found, "n_samples")) >= 50);
        REQUIRE(p_of_heads(n_candidate, n_candidate + n_live) <= EVALUATE_ALPHA);
        n_surely_better++;
    }
    json_decref(inputs);
}

#endif
