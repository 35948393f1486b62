#include "ion/policy_trial.h"

#include "ion/ion_step.h"
#include "ion/policy_drift.h"

#include <inttypes.h>

// clang-format off
static const struct weir_field figures_fields[] = {
    WEIR_FIELD(weir_ion_figures, server_ms,   INT, 0, "ms", "When the server that counted began"),
    WEIR_FIELD(weir_ion_figures, n_requests,  INT, 0, "", "Requests that the candidate answered"),
    WEIR_FIELD(weir_ion_figures, n_failed,    INT, 0, "", "Of these: failed"),
    WEIR_FIELD(weir_ion_figures, n_slow,      INT, 0, "", "Of these: slower than the policy's limit"),
    WEIR_FIELD(weir_ion_figures, n_compared,  INT, 0, "", "Requests that another version answered, too"),
    WEIR_FIELD(weir_ion_figures, n_disagreed, INT, 0, "", "Of these: with another answer"),
    WEIR_FIELD(weir_ion_figures, compared_us, INT, 0, "us", "Their time in all"),
    WEIR_FIELD(weir_ion_figures, copies_us,   INT, 0, "us", "Time of the copies in all"),
    WEIR_FIELD(weir_ion_figures, n_unaccepted, INT, 0, "", "Of the requests that the version answered: with a 4xx"),
    WEIR_FIELD(weir_ion_figures, live_requests, INT, 0, "", "Requests that the version that serves answered"),
    WEIR_FIELD(weir_ion_figures, live_unaccepted, INT, 0, "", "Of these: with a 4xx"),
    WEIR_FIELD(weir_ion_figures, n_only,      INT, 0, "", "Requests that both answered: with a 4xx the candidate alone"),
    WEIR_FIELD(weir_ion_figures, live_only,   INT, 0, "", "The same: the other version alone"),
    WEIR_FIELD(weir_ion_figures, n_neither,   INT, 0, "", "The same: neither accepted them"),
    WEIR_FIELD(weir_ion_figures, outputs,     JSON, 0, "", "What the candidate answered, by bin"),
    WEIR_FIELD(weir_ion_figures, live_outputs, JSON, 0, "", "What the version that serves answered"),
    WEIR_FIELD(weir_ion_figures, n_looks,     INT, 0, "", "How often outputs were compared"),
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
    WEIR_FIELD(weir_policy_trial, n_requests,    INT,  0, "", "Requests that it answered in this step"),
    WEIR_FIELD(weir_policy_trial, n_failed,      INT,  0, "", "Of these: failed"),
    WEIR_FIELD(weir_policy_trial, n_slow,        INT,  0, "", "Of these: slower than the limit"),
    WEIR_FIELD(weir_policy_trial, n_compared,    INT,  0, "", "Requests that another version answered, too"),
    WEIR_FIELD(weir_policy_trial, n_disagreed,   INT,  0, "", "Of these: with another answer"),
    WEIR_FIELD(weir_policy_trial, compared_us,   INT,  0, "us", "Their time in all"),
    WEIR_FIELD(weir_policy_trial, copies_us,     INT,  0, "us", "Time of the copies in all"),
    WEIR_FIELD(weir_policy_trial, n_unaccepted, INT, 0, "", "Of the requests that the version answered: with a 4xx"),
    WEIR_FIELD(weir_policy_trial, live_requests, INT, 0, "", "Requests that the version that serves answered"),
    WEIR_FIELD(weir_policy_trial, live_unaccepted, INT, 0, "", "Of these: with a 4xx"),
    WEIR_FIELD(weir_policy_trial, n_only,      INT, 0, "", "Requests that both answered: with a 4xx the candidate alone"),
    WEIR_FIELD(weir_policy_trial, live_only,   INT, 0, "", "The same: the other version alone"),
    WEIR_FIELD(weir_policy_trial, n_neither,   INT, 0, "", "The same: neither accepted them"),
    WEIR_FIELD(weir_policy_trial, outputs,       JSON, 0, "", "What the version answered in this step: {classes, scores}, by bin"),
    WEIR_FIELD(weir_policy_trial, live_outputs,  JSON, 0, "", "The same of the version that serves"),
    WEIR_FIELD(weir_policy_trial, n_looks,       INT,  0, "", "How often outputs were compared before"),
    WEIR_FIELD(weir_policy_trial, n_looks_of_step, INT, 0, "", "Of these: in this step"),
};
// clang-format on

const struct weir_resource weir_ion_figures_resource =
    WEIR_RESOURCE("figures of a trial", "ion_figures", weir_ion_figures, figures_fields);
const struct weir_resource weir_policy_trial_resource =
    WEIR_RESOURCE("trial", "policy_trial", weir_policy_trial, trial_fields);

char *weir_policy_trial_text(const struct weir_policy_trial *trial, struct weir_arena *arena)
{
    return weir_record_text(&weir_policy_trial_resource, trial, arena);
}

weir_status weir_policy_trial_check(const char *text, struct weir_arena *arena,
                                    struct weir_error *err)
{
    struct weir_policy_trial trial = {0};
    return weir_record_check_text(&weir_policy_trial_resource, text, arena, &trial, err);
}

struct weir_policy_trial weir_policy_trial_of(const struct weir_policy_inputs *inputs,
                                              struct weir_arena *arena)
{
    struct weir_policy_trial trial = {0};
    return weir_record_of_text(&weir_policy_trial_resource, inputs->trial, arena, &trial)
               ? trial
               : (struct weir_policy_trial){0};
}

struct weir_policy_verdict weir_policy_trial_before(const char *policy,
                                                    const struct weir_policy_inputs *inputs,
                                                    const struct weir_policy_trial *trial,
                                                    struct weir_arena *arena)
{
    if (trial->is_sandbox) {
        return (struct weir_policy_verdict){
            .verdict = WEIR_VERDICT_PASS,
            .rule =
                weir_arena_printf(arena, "%s: a sandbox gives no deployment any versions", policy)};
    }
    if (inputs->serving_version == 0) {
        return (struct weir_policy_verdict){
            .verdict = WEIR_VERDICT_PASS,
            .rule = weir_arena_printf(
                arena, "%s: the link serves no other version of the model to compare with",
                policy)};
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

static char *figures_text(const struct weir_ion_figures *figures, struct weir_arena *arena)
{
    return weir_record_text(&weir_ion_figures_resource, figures, arena);
}

/** Counters that went back are of a version that had left the deployment, and count from 0. */
static int64_t since(int64_t base, int64_t now)
{
    return now >= base ? now - base : now;
}

struct weir_ion_figures weir_ion_figures_since(const char *base_text,
                                               const struct weir_ion_figures *now,
                                               struct weir_arena *arena)
{
    struct weir_ion_figures base = {0};
    bool has_base = weir_record_of_text(&weir_ion_figures_resource, base_text, arena, &base);
    if (!has_base || base.server_ms != now->server_ms) {
        struct weir_ion_figures all = *now;
        all.n_looks = has_base ? base.n_looks : 0;
        all.n_looks_since = has_base ? base.n_looks_since : 0;
        return all;
    }
    return (struct weir_ion_figures){
        .server_ms = now->server_ms,
        .n_requests = since(base.n_requests, now->n_requests),
        .n_failed = since(base.n_failed, now->n_failed),
        .n_slow = since(base.n_slow, now->n_slow),
        .n_compared = since(base.n_compared, now->n_compared),
        .n_disagreed = since(base.n_disagreed, now->n_disagreed),
        .compared_us = since(base.compared_us, now->compared_us),
        .copies_us = since(base.copies_us, now->copies_us),
        .n_unaccepted = since(base.n_unaccepted, now->n_unaccepted),
        .live_requests = since(base.live_requests, now->live_requests),
        .live_unaccepted = since(base.live_unaccepted, now->live_unaccepted),
        .n_only = since(base.n_only, now->n_only),
        .live_only = since(base.live_only, now->live_only),
        .n_neither = since(base.n_neither, now->n_neither),
        .outputs = weir_policy_outputs_since(base.outputs, now->outputs, arena),
        .live_outputs = weir_policy_outputs_since(base.live_outputs, now->live_outputs, arena),
        .n_looks = base.n_looks,
        .n_looks_since = base.n_looks_since,
    };
}

char *weir_ion_figures_base(const char *before, const struct weir_ion_figures *now,
                            struct weir_arena *arena)
{
    struct weir_ion_figures base = {0}, next = *now;
    bool has_base = weir_record_of_text(&weir_ion_figures_resource, before, arena, &base);
    next.n_looks = has_base ? base.n_looks : 0;
    next.n_looks_since = 0;
    return figures_text(&next, arena);
}

char *weir_ion_figures_looked(const char *text, struct weir_arena *arena)
{
    struct weir_ion_figures base = {0};
    (void)weir_record_of_text(&weir_ion_figures_resource, text, arena, &base);
    base.n_looks++;
    base.n_looks_since++;
    return figures_text(&base, arena);
}
