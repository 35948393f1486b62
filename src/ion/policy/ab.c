#include "ion/ab_view.h"
#include "ion/feedback.h"
#include "ion/ion_step.h"
#include "ion/outcome.h"
#include "ion/policy/policy_blocked.h"
#include "ion/policy_refusal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CONVERSION "conversion"
#define ERROR      "error"
#define STATE      "AB"

struct weir_policy_ab {
    double share, confidence, max_error_rate, max_refusal_excess;
    char *metric, *better, *on_timeout;
    int64_t min_samples, timeout_s, min_judged;
};

static bool is_rate(const struct weir_policy_ab *ab)
{
    return strcmp(ab->metric, CONVERSION) == 0 || strcmp(ab->metric, ERROR) == 0;
}

static bool is_less_better(const struct weir_policy_ab *ab)
{
    return strcmp(ab->metric, ERROR) == 0 ||
           (ab->better != NULL && strcmp(ab->better, "lower") == 0);
}

static int64_t share_ppm(const struct weir_policy_ab *ab)
{
    return llround(ab->share * 10000);
}

static weir_status check(void *options, const char *where, struct weir_arena *arena,
                         struct weir_error *err)
{
    struct weir_policy_ab *ab = options;
    (void)arena;
    if (share_ppm(ab) < 1 || share_ppm(ab) > 999999) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.share: expected a share above 0 and below 100 percent", where);
    }
    if (strcmp(ab->metric, WEIR_OUTCOME_SUCCESS) == 0 || !weir_name_is_valid(ab->metric)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.metric: expected " CONVERSION ", " ERROR " or a KPI's name",
                              where);
    }
    if (is_rate(ab) && ab->better != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.better: of the metric %s it is known; name it for a KPI", where,
                              ab->metric);
    }
    return WEIR_OK;
}

static const char *metric(const void *options)
{
    const struct weir_policy_ab *ab = options;
    return is_rate(ab) ? WEIR_OUTCOME_SUCCESS : ab->metric;
}

/** Of errors, which are counted as successes, the other way round. */
static struct weir_ab_arm arm_of(const struct weir_policy_ab *ab, int64_t n, double mean, double m2)
{
    bool is_turned = strcmp(ab->metric, ERROR) == 0 && n > 0;
    return (struct weir_ab_arm){.n = n, .mean = is_turned ? 1 - mean : mean, .m2 = m2};
}

bool weir_ab_view_of(const struct weir_policy *policy, const struct weir_policy_arms *arms,
                     struct weir_ab_view *out)
{
    const struct weir_policy_ab *ab = policy->options;
    if (policy->kind != &weir_policy_ab) {
        return false;
    }
    *out = (struct weir_ab_view){.metric = ab->metric,
                                 .is_rate = is_rate(ab),
                                 .is_less_better = is_less_better(ab),
                                 .confidence = ab->confidence,
                                 .min_samples = ab->min_samples,
                                 .timeout_ms = ab->timeout_s * 1000,
                                 .arm = arm_of(ab, arms->n, arms->mean, arms->m2),
                                 .live = arm_of(ab, arms->live_n, arms->live_mean, arms->live_m2)};
    out->found = weir_ab_compare(&out->arm, &out->live, (double)ab->min_samples, ab->confidence);
    if (out->is_less_better) {
        double worse = out->found.p_better;
        out->found.p_better = out->found.p_worse;
        out->found.p_worse = worse;
        out->found.p = 1 - out->found.p;
    }
    return true;
}

/** "error 0.05 of 400, and 0.1 of 380 of version 3: uplift -50 %, z = 2.1, p = 0.01" */
static const char *figures(const struct weir_policy_ab *ab, const struct weir_ab_view *view,
                           int64_t live_version, struct weir_arena *arena)
{
    const char *uplift =
        isfinite(view->found.uplift)
            ? weir_arena_printf(arena, "%+.3g %%", 100 * view->found.uplift)
            : weir_arena_printf(arena, "a difference of %+.3g", view->found.difference);
    return weir_arena_printf(arena,
                             "%s %.4g of %" PRId64 ", and %.4g of %" PRId64 " of version %" PRId64
                             ": %s (z = %.3g, p = %.3g)",
                             ab->metric, view->arm.mean, view->arm.n, view->live.mean, view->live.n,
                             live_version, uplift, view->found.z,
                             WEIR_MIN(view->found.p_better, view->found.p_worse));
}

/** It is in effect: what the arms say; `verdict` NULL: nothing yet. */
static struct weir_policy_verdict judge(const struct weir_policy_ab *ab,
                                        const struct weir_ab_view *view, int64_t live_version,
                                        struct weir_arena *arena)
{
    double alpha = 1 - ab->confidence;
    if (view->arm.n < ab->min_samples || view->live.n < ab->min_samples) {
        return weir_policy_answer(NULL, NULL);
    }
    bool is_better = view->found.p_better <= alpha, is_worse = view->found.p_worse <= alpha;
    if (!is_better && !is_worse) {
        return weir_policy_answer(NULL, NULL);
    }
    return weir_policy_answer(is_better ? WEIR_VERDICT_PASS : WEIR_VERDICT_ROLLBACK,
                              weir_arena_printf(arena, "ab: %s, surely %s at a confidence of %g",
                                                figures(ab, view, live_version, arena),
                                                is_better ? "better" : "worse", ab->confidence));
}

static const char *guard(const struct weir_policy_ab *ab, const struct weir_policy_trial *trial,
                         struct weir_arena *arena)
{
    const struct weir_policy_refusal refusal = {"ab", ab->max_refusal_excess, 1, share_ppm(ab)};
    const char *refuses = weir_policy_refusal_trips(&refusal, &trial->figures, arena);
    if (refuses != NULL) {
        return refuses;
    }
    bool trips = trial->figures.n_requests >= ab->min_judged && trial->figures.n_failed > 0 &&
                 weir_accuracy_of(trial->figures.n_requests, trial->figures.n_failed).low >
                     ab->max_error_rate;
    return trips ? weir_arena_printf(arena,
                                     "ab: %" PRId64 " of %" PRId64
                                     " requests failed, surely more than a share of %g",
                                     trial->figures.n_failed, trial->figures.n_requests,
                                     ab->max_error_rate)
                 : NULL;
}

static struct weir_policy_verdict time_over(const struct weir_policy_ab *ab,
                                            const struct weir_ab_view *view, int64_t live_version,
                                            struct weir_arena *arena)
{
    bool keeps = strcmp(ab->on_timeout, "keep") == 0;
    return weir_policy_answer(
        keeps ? WEIR_VERDICT_ROLLBACK : WEIR_VERDICT_PASS,
        weir_arena_printf(arena, "ab: not decided within %" PRId64 " s, and on_timeout is %s: %s",
                          ab->timeout_s, ab->on_timeout, figures(ab, view, live_version, arena)));
}

static struct weir_policy_verdict wait(const struct weir_policy_ab *ab,
                                       const struct weir_policy_trial *trial, int64_t live_version,
                                       struct weir_arena *arena)
{
    bool is_begun = trial->step_ms > 0 && trial->begun_ms == 0 && trial->live_ppm == share_ppm(ab);
    return (struct weir_policy_verdict){
        .verdict = WEIR_VERDICT_WAIT,
        .rule = weir_arena_printf(
            arena, "ab: it %s %g %% of the requests, beside version %" PRId64 ", until %s tells",
            is_begun || trial->begun_ms > 0 ? "answers" : "is to answer", ab->share, live_version,
            ab->metric),
        .state = STATE,
        .share_ppm = share_ppm(ab),
        .is_begun = is_begun};
}

/** What it waits for are outcomes, of both versions; and they come of requests. */
static const char *blocked(const struct weir_policy_ab *ab, const struct weir_policy_inputs *inputs,
                           const struct weir_policy_trial *trial, const struct weir_ab_view *view,
                           struct weir_arena *arena)
{
    const char *what = weir_arena_printf(
        arena, "outcomes (%s, told by `weir feedback` or a KPI) of both versions", ab->metric);
    int64_t n_requests = weir_policy_refusal_n_accepted(&trial->figures);
    bool has_none = view->arm.n == 0 && view->live.n == 0;
    struct weir_policy_awaited awaited = {what, WEIR_MIN(view->arm.n, view->live.n),
                                          ab->min_samples, 0, ab->timeout_s};
    if (has_none && n_requests < ab->min_samples) {
        awaited.what = "requests that it accepted";
        awaited.n = n_requests;
    }
    return weir_policy_blocked(trial, &awaited, inputs->now_ms, arena);
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_ab *ab = options;
    const struct weir_policy policy = {.kind = &weir_policy_ab, .options = options};
    const struct weir_policy_trial *trial = weir_policy_trial_of(inputs->trial);
    struct weir_policy_arms arms = *weir_policy_arms_of(inputs->arms);
    struct weir_policy_verdict told = weir_policy_trial_before("ab", inputs, trial, arena);
    struct weir_ab_view view;
    if (told.verdict != NULL) {
        return told;
    }
    if (trial->step_ms > 0 && trial->problem != NULL) {
        return weir_policy_answer(
            WEIR_VERDICT_ROLLBACK,
            weir_arena_printf(arena, "ab: a replica cannot serve it: %.300s", trial->problem));
    }
    if (arms.live_version != inputs->serving_version) {
        arms = (struct weir_policy_arms){0};
    }
    (void)weir_ab_view_of(&policy, &arms, &view);
    if (trial->begun_ms > 0) {
        const char *rule = guard(ab, trial, arena);
        if (rule != NULL) {
            return weir_policy_answer(WEIR_VERDICT_ROLLBACK, rule);
        }
        told = judge(ab, &view, inputs->serving_version, arena);
        if (told.verdict != NULL) {
            return told;
        }
    }
    if (trial->step_ms > 0 && inputs->now_ms >= trial->step_ms + ab->timeout_s * 1000) {
        return time_over(ab, &view, inputs->serving_version, arena);
    }
    told = wait(ab, trial, inputs->serving_version, arena);
    told.blocked = told.is_begun ? NULL : blocked(ab, inputs, trial, &view, arena);
    if (told.blocked != NULL) {
        told.rule =
            weir_arena_printf(arena, "%s; it cannot be judged: %s", told.rule, told.blocked);
    }
    return told;
}

// clang-format off
static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_ab, share, "share", F64, 0, "50", 0, 100, "The share of the requests that the version answers, in percent; the version that serves answers the others"),
    WEIR_OPT_JSON(weir_policy_ab, metric, "metric", TEXT, 0, "conversion", 0, 0, "What is compared: conversion, the share of outcomes that are a success; error, the share that are none; or the mean of a KPI by its name. Feedback about requests tells them, and KPIs that name the version"),
    {.name = "better", .type = WEIR_OPTION_TEXT, .offset = offsetof(struct weir_policy_ab, better), .words = WEIR_WORDS("higher", "lower"), .doc = "Of a KPI: what is better; left out: higher"},
    WEIR_OPT_JSON(weir_policy_ab, confidence, "confidence", F64, 0, "0.95", 0.5, 0.999999, "How sure it must be that it is better, or worse; 1 less this is how often a version that is no better may be promoted, however often one looks"),
    WEIR_OPT_JSON(weir_policy_ab, min_samples, "min-samples", INT, 0, "100", 10, 1e12, "How many outcomes of each version there must be before they are compared"),
    WEIR_OPT_JSON(weir_policy_ab, timeout_s, "timeout-s", INT, 0, "1209600", 1, 31536000, "How long it may last"),
    {.name = "on-timeout", .type = WEIR_OPTION_TEXT, .offset = offsetof(struct weir_policy_ab, on_timeout), .fallback = "keep", .words = WEIR_WORDS("keep", "promote"), .doc = "What becomes of it then; keep: the version that serves stays, and this one goes back"},
    WEIR_OPT_JSON(weir_policy_ab, max_error_rate, "max-error-rate", F64, 0, "0.01", 0, 1, "Guard: the share of its answers that may be failures (5xx, or none); 1: no guard"),
    WEIR_OPT_JSON(weir_policy_ab, max_refusal_excess, "max-refusal-excess", F64, 0, "0.01", 0, 1, "Guard: by how much the share of requests that it refuses (4xx) may be above that of the version that serves: a caller's own mistakes are refused by both. It trips when the share is surely larger, after a few requests where the other refuses none; 1: no guard"),
    WEIR_OPT_JSON(weir_policy_ab, min_judged, "min-judged", INT, 0, "20", 1, 1e12, "How many requests the guard must have seen before it trips; it trips when the share is surely above its limit (95 % interval)"),
};
// clang-format on

static const struct weir_policy_ops ops = {.check = check,
                                           .decide = decide,
                                           .watches = true,
                                           .trial_state = STATE,
                                           .ends_chain = true,
                                           .metric = metric};

const struct weir_kind weir_policy_ab = {
    .name = "ab",
    .doc =
        "A version and the one that serves answer a fixed share each of a deployment's requests, "
        "until what came of them says which is better: it serves, or goes back. The last of its "
        "chain.",
    WEIR_KIND_OPTIONS(weir_policy_ab, options_of),
    .ops = &ops,
};
