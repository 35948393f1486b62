#include "ion/policy_trial.h"

#include "ion/ion_step.h"
#include "ion/policy_drift.h"

#include <inttypes.h>

// clang-format off
/* Figures, in a record of their own and in a trial. */
#define FIGURE(strct, name, path, type, doc) WEIR_FIELD_AT(strct, name, path, type, 0, "", doc)
#define FIGURES(strct, at) \
    FIGURE(strct, n_requests,      at n_requests,      INT,  "Requests that the candidate answered"), \
    FIGURE(strct, n_failed,        at n_failed,        INT,  "Of these: failed"), \
    FIGURE(strct, n_slow,          at n_slow,          INT,  "Of these: slower than the policy's limit"), \
    FIGURE(strct, n_compared,      at n_compared,      INT,  "Requests that another version answered, too"), \
    FIGURE(strct, n_disagreed,     at n_disagreed,     INT,  "Of these: with another answer"), \
    FIGURE(strct, compared_us,     at compared_us,     INT,  "Their time in all, in us"), \
    FIGURE(strct, copies_us,       at copies_us,       INT,  "Time of the copies in all, in us"), \
    FIGURE(strct, n_unaccepted,    at n_unaccepted,    INT,  "Of the requests that the version answered: with a 4xx"), \
    FIGURE(strct, live_requests,   at live_requests,   INT,  "Requests that the version that serves answered"), \
    FIGURE(strct, live_unaccepted, at live_unaccepted, INT,  "Of these: with a 4xx"), \
    FIGURE(strct, n_only,          at n_only,          INT,  "Requests that both answered: with a 4xx the candidate alone"), \
    FIGURE(strct, live_only,       at live_only,       INT,  "The same: the other version alone"), \
    FIGURE(strct, n_neither,       at n_neither,       INT,  "The same: neither accepted them"), \
    FIGURE(strct, outputs,         at outputs,         JSON, "What the candidate answered: {classes, scores}, by bin"), \
    FIGURE(strct, live_outputs,    at live_outputs,    JSON, "What the version that serves answered"), \
    FIGURE(strct, n_looks,         at n_looks,         INT,  "How often outputs were compared")

static const struct weir_field figures_fields[] = {
    WEIR_FIELD(weir_ion_figures, server_ms, INT, 0, "ms", "When the server that counted began"),
    FIGURES(weir_ion_figures, ),
    WEIR_FIELD(weir_ion_figures, n_looks_since, INT, 0, "", "Of these: in this step"),
};
static const struct weir_field trial_fields[] = {
    WEIR_FIELD(weir_policy_trial, is_sandbox,    BOOL, 0, "", "The ION is a sandbox"),
    WEIR_FIELD(weir_policy_trial, other_version, INT,  0, "", "Version that is being tried; 0: none"),
    WEIR_FIELD(weir_policy_trial, step,          INT,  0, "", "Step of the trial, from 0"),
    WEIR_FIELD(weir_policy_trial, step_ms,       INT,  0, "ms", "When it was asked for"),
    WEIR_FIELD(weir_policy_trial, begun_ms,      INT,  0, "ms", "When it came into effect; 0: it has not"),
    WEIR_FIELD(weir_policy_trial, live_ppm,      INT,  0, "", "Share in effect, in millionths"),
    WEIR_FIELD(weir_policy_trial, is_ready,      BOOL, 0, "", "A replica has the version"),
    WEIR_FIELD(weir_policy_trial, problem,       TEXT, 0, "", "Why a replica could not load it"),
    FIGURES(weir_policy_trial, figures.),
    FIGURE(weir_policy_trial, n_looks_of_step, figures.n_looks_since, INT, "Of these: in this step"),
};
// clang-format on

const struct weir_resource weir_ion_figures_resource =
    WEIR_RESOURCE("figures of a trial", "ion_figures", weir_ion_figures, figures_fields);
const struct weir_resource weir_policy_trial_resource =
    WEIR_RESOURCE("trial", "policy_trial", weir_policy_trial, trial_fields);

const struct weir_policy_trial *weir_policy_trial_of(const struct weir_policy_trial *trial)
{
    static const struct weir_policy_trial none;
    return trial != NULL ? trial : &none;
}

struct weir_policy_verdict weir_policy_trial_before(const char *policy,
                                                    const struct weir_policy_inputs *inputs,
                                                    const struct weir_policy_trial *trial,
                                                    struct weir_arena *arena)
{
    if (trial->is_sandbox) {
        return weir_policy_answer(
            WEIR_VERDICT_PASS,
            weir_arena_printf(arena, "%s: a sandbox gives no deployment any versions", policy));
    }
    if (inputs->serving_version == 0) {
        return weir_policy_answer(
            WEIR_VERDICT_PASS,
            weir_arena_printf(arena,
                              "%s: the link serves no other version of the model to compare with",
                              policy));
    }
    if (trial->other_version > 0) {
        return (struct weir_policy_verdict){
            .verdict = WEIR_VERDICT_WAIT,
            .state = WEIR_CANDIDATE_WAITING,
            .rule = weir_arena_printf(arena, "%s: version %" PRId64 " is being tried", policy,
                                      trial->other_version)};
    }
    return (struct weir_policy_verdict){0};
}

/** Counters that went back are of a version that had left the deployment, and count from 0. */
static int64_t since(int64_t base, int64_t now)
{
    return now >= base ? now - base : now;
}

struct weir_ion_figures weir_ion_figures_since(const struct weir_ion_figures *base,
                                               const struct weir_ion_figures *now,
                                               struct weir_arena *arena)
{
    if (base == NULL || base->server_ms != now->server_ms) {
        struct weir_ion_figures all = *now;
        all.n_looks = base != NULL ? base->n_looks : 0;
        all.n_looks_since = base != NULL ? base->n_looks_since : 0;
        return all;
    }
    return (struct weir_ion_figures){
        .server_ms = now->server_ms,
        .n_requests = since(base->n_requests, now->n_requests),
        .n_failed = since(base->n_failed, now->n_failed),
        .n_slow = since(base->n_slow, now->n_slow),
        .n_compared = since(base->n_compared, now->n_compared),
        .n_disagreed = since(base->n_disagreed, now->n_disagreed),
        .compared_us = since(base->compared_us, now->compared_us),
        .copies_us = since(base->copies_us, now->copies_us),
        .n_unaccepted = since(base->n_unaccepted, now->n_unaccepted),
        .live_requests = since(base->live_requests, now->live_requests),
        .live_unaccepted = since(base->live_unaccepted, now->live_unaccepted),
        .n_only = since(base->n_only, now->n_only),
        .live_only = since(base->live_only, now->live_only),
        .n_neither = since(base->n_neither, now->n_neither),
        .outputs = weir_policy_outputs_since(base->outputs, now->outputs, arena),
        .live_outputs = weir_policy_outputs_since(base->live_outputs, now->live_outputs, arena),
        .n_looks = base->n_looks,
        .n_looks_since = base->n_looks_since,
    };
}

const struct weir_ion_figures *weir_ion_figures_base(const struct weir_ion_figures *before,
                                                     const struct weir_ion_figures *now,
                                                     struct weir_arena *arena)
{
    struct weir_ion_figures *next = WEIR_ARENA_NEW(arena, struct weir_ion_figures);
    *next = *now;
    next->outputs = weir_arena_strdup(arena, now->outputs);
    next->live_outputs = weir_arena_strdup(arena, now->live_outputs);
    next->n_looks = before != NULL ? before->n_looks : 0;
    next->n_looks_since = 0;
    return next;
}

const struct weir_ion_figures *weir_ion_figures_looked(const struct weir_ion_figures *base,
                                                       struct weir_arena *arena)
{
    struct weir_ion_figures *next = WEIR_ARENA_NEW(arena, struct weir_ion_figures);
    *next = base != NULL ? *base : (struct weir_ion_figures){0};
    next->n_looks++;
    next->n_looks_since++;
    return next;
}
