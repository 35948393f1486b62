#include "ion/feedback.h"
#include "ion/ion_step.h"
#include "ion/policy/policy_blocked.h"
#include "ion/policy_drift.h"
#include "ion/policy_refusal.h"
#include "ion/policy_trial.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define STEPS_MAX      16
#define DRIFT_RATE_MIN 0.003 /* of 16 steps each test has 0.00001 then, the least there is */
#define STATE          "CANARY"

struct weir_policy_canary {
    const json_t *steps_json; /**< NULL once `steps` are made of it. */
    int64_t steps[STEPS_MAX]; /**< In millionths. */
    int64_t n_steps;
    int64_t hold_s, min_requests, timeout_s;
    double max_error_rate, max_p99_ms, max_disagreement, max_refusal_excess;
    int64_t min_judged;
    double drift_false_alarm_rate;
    int64_t drift_window;
};

static const double default_steps[] = {1, 10, 50, 100};

static weir_status check_guards(const struct weir_policy_canary *canary, const char *where,
                                struct weir_error *err)
{
    double rate = canary->drift_false_alarm_rate;
    bool has_guard = canary->max_error_rate < 1 || canary->max_p99_ms > 0 ||
                     canary->max_disagreement < 1 || rate > 0;
    if (!has_guard) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected a guard: max_error_rate below 1, max_p99_ms, "
                              "max_disagreement or drift_false_alarm_rate",
                              where);
    }
    if (rate > 0 && rate < DRIFT_RATE_MIN) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.drift_false_alarm_rate: expected 0 (no guard) or %g to 0.2",
                              where, DRIFT_RATE_MIN);
    }
    return canary->timeout_s > canary->hold_s
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s.timeout_s: must be longer than hold_s",
                                where);
}

static weir_status check(void *options, const char *where, struct weir_arena *arena,
                         struct weir_error *err)
{
    struct weir_policy_canary *canary = options;
    const json_t *list = canary->steps_json;
    bool is_given = list != NULL && !json_is_null(list);
    size_t n = is_given ? json_array_size(list) : WEIR_ARRAY_LEN(default_steps);
    (void)arena;
    if (n == 0 || n > STEPS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.steps: expected 1 to %d shares in percent",
                              where, STEPS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        double percent = is_given ? json_number_value(item) : default_steps[i];
        int64_t ppm = percent > 0 && percent <= 100 ? llround(percent * 10000) : 0;
        if (ppm < 1 || (i > 0 && ppm <= canary->steps[i - 1])) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s.steps[%zu]: expected a share above 0 and at most 100 percent, "
                "larger than the one before",
                where, i);
        }
        canary->steps[i] = ppm;
    }
    canary->n_steps = (int64_t)n;
    canary->steps_json = NULL; /* It lives no longer than the document's JSON. */
    return check_guards(canary, where, err);
}

static int64_t slow_us(const void *options)
{
    const struct weir_policy_canary *canary = options;
    return (int64_t)(canary->max_p99_ms * 1000);
}

/** Is more than this share of all answers of the kind that k of the n seen were? Surely: by the lower
 *  end of Wilson's interval, so that one failure of a few says little, and one where none may be says all. */
static bool is_surely_above(int64_t k, int64_t n, double share)
{
    return k > 0 && weir_accuracy_of(n, k).low > share;
}

/** The guard that trips, in words; NULL: none does. */
static const char *tripped(const struct weir_policy_canary *canary,
                           const struct weir_policy_trial *trial, int64_t step,
                           struct weir_arena *arena)
{
    bool is_judged = trial->figures.n_requests >= canary->min_judged;
    const struct weir_policy_refusal refusal = {"canary", canary->max_refusal_excess,
                                                canary->n_steps, canary->steps[step]};
    const char *refuses = weir_policy_refusal_trips(&refusal, &trial->figures, arena);
    if (refuses != NULL) {
        return refuses;
    }
    if (is_judged && is_surely_above(trial->figures.n_failed, trial->figures.n_requests,
                                     canary->max_error_rate)) {
        return weir_arena_printf(
            arena,
            "canary: %" PRId64 " of %" PRId64 " requests failed, surely more than a share of %g",
            trial->figures.n_failed, trial->figures.n_requests, canary->max_error_rate);
    }
    if (is_judged && canary->max_p99_ms > 0 &&
        is_surely_above(trial->figures.n_slow, trial->figures.n_requests, 0.01)) {
        return weir_arena_printf(
            arena,
            "canary: %" PRId64 " of %" PRId64
            " requests took longer than %g ms: surely so does the 99th percentile",
            trial->figures.n_slow, trial->figures.n_requests, canary->max_p99_ms);
    }
    int64_t n_compared = weir_policy_refusal_n_compared(&trial->figures);
    if (n_compared >= canary->min_judged &&
        is_surely_above(trial->figures.n_disagreed, n_compared, canary->max_disagreement)) {
        return weir_arena_printf(arena,
                                 "canary: %" PRId64 " of %" PRId64
                                 " answers were not those of the version that serves, surely more "
                                 "than a share of %g",
                                 trial->figures.n_disagreed, n_compared, canary->max_disagreement);
    }
    return NULL;
}

static struct weir_policy_verdict at_step(const struct weir_policy_canary *canary, int64_t step,
                                          struct weir_arena *arena)
{
    double percent = (double)canary->steps[step] / 10000;
    return (struct weir_policy_verdict){
        .verdict = WEIR_VERDICT_WAIT,
        .rule = weir_arena_printf(
            arena, "canary: step %" PRId64 " of %" PRId64 ": it is to answer %g %% of the requests",
            step + 1, canary->n_steps, percent),
        .state = STATE,
        .share_ppm = canary->steps[step],
        .step = step,
        .is_mirrored = canary->max_disagreement < 1};
}

/** Its part of the rate, of each of the two tests of each look of each step. */
static double rate_of_test(const struct weir_policy_canary *canary)
{
    return canary->drift_false_alarm_rate / (double)(canary->n_steps * WEIR_POLICY_LOOKS_MAX * 2);
}

/** Is it time to compare outputs, and what comes of it? Is `verdict` NULL, it is not. */
static struct weir_policy_verdict look(const struct weir_policy_canary *canary,
                                       const struct weir_policy_trial *trial, int64_t step,
                                       struct weir_arena *arena)
{
    struct weir_policy_drift found;
    int64_t at = canary->drift_false_alarm_rate > 0
                     ? weir_policy_look_at(canary->drift_window, trial->figures.n_looks_since)
                     : 0;
    if (at == 0 || weir_policy_outputs_n(trial->figures.outputs) < at ||
        !weir_policy_drift_test(trial->figures.live_outputs, trial->figures.outputs,
                                rate_of_test(canary), trial->figures.n_looks, &found)) {
        return (struct weir_policy_verdict){0};
    }
    const char *sides = weir_arena_printf(
        arena, "%s of %" PRId64 " answers and of %" PRId64 " of the version that serves",
        found.what, found.n, found.live_n);
    if (found.is_drifted) {
        return weir_policy_answer(
            WEIR_VERDICT_ROLLBACK,
            weir_arena_printf(arena,
                              "canary: drift: the %s differ: p %.2g is at most %.2g, effect %.2f",
                              sides, found.p_value, rate_of_test(canary), found.effect));
    }
    struct weir_policy_verdict told = at_step(canary, step, arena);
    told.is_looked = true;
    told.rule = weir_arena_printf(arena,
                                  "canary: step %" PRId64 " of %" PRId64
                                  ": no drift between the %s (p %.2g, effect %.2f)",
                                  step + 1, canary->n_steps, sides, found.p_value, found.effect);
    return told;
}

/** With the guard on drift each step is looked at once at least. */
static bool is_looked_at(const struct weir_policy_canary *canary,
                         const struct weir_policy_trial *trial)
{
    return canary->drift_false_alarm_rate == 0 || trial->figures.n_looks_since > 0;
}

/** With the guard on disagreement each step has compared answers. */
static bool is_compared(const struct weir_policy_canary *canary,
                        const struct weir_policy_trial *trial)
{
    return canary->max_disagreement >= 1 ||
           weir_policy_refusal_n_compared(&trial->figures) >= canary->min_judged;
}

/** Why a guard sees nothing though requests come; NULL: none is blind. */
static const char *blind(const struct weir_policy_canary *canary,
                         const struct weir_policy_trial *trial)
{
    int64_t n = weir_policy_refusal_n_accepted(&trial->figures);
    int64_t live_n = trial->figures.live_requests - trial->figures.live_unaccepted;
    bool is_of_this =
        n >= WEIR_POLICY_BLOCKED_N && weir_policy_outputs_n(trial->figures.outputs) == 0;
    bool is_of_live =
        live_n >= WEIR_POLICY_BLOCKED_N && weir_policy_outputs_n(trial->figures.live_outputs) == 0;
    if (!is_looked_at(canary, trial) && (is_of_this || is_of_live)) {
        return is_of_this
                   ? "the guard on drift sees nothing: drift is seen of classifiers only, and its "
                     "answers are not known as a classifier's (`output_kind` of its signature)"
                   : "the guard on drift sees nothing: drift is seen of classifiers only, and the "
                     "answers of the version that serves are not known as a classifier's "
                     "(`output_kind` of its signature)";
    }
    if (!is_compared(canary, trial) && n >= canary->min_requests &&
        trial->figures.n_compared == 0) {
        return "the guard on disagreement sees nothing: no request has been answered by both "
               "versions";
    }
    return NULL;
}

/** What the step says of itself, with why it cannot be judged. */
static struct weir_policy_verdict with_blocked(const struct weir_policy_canary *canary,
                                               const struct weir_policy_inputs *inputs,
                                               const struct weir_policy_trial *trial,
                                               struct weir_policy_verdict told,
                                               struct weir_arena *arena)
{
    const struct weir_policy_awaited awaited = {
        "requests that it accepted", weir_policy_refusal_n_accepted(&trial->figures),
        canary->min_requests, canary->hold_s, canary->timeout_s};
    told.blocked = trial->begun_ms > 0 ? blind(canary, trial) : NULL;
    if (told.blocked == NULL) {
        told.blocked = weir_policy_blocked(trial, &awaited, inputs->now_ms, arena);
    }
    if (told.blocked != NULL) {
        told.rule =
            weir_arena_printf(arena, "%s; it cannot be judged: %s", told.rule, told.blocked);
    }
    return told;
}

/** The step is in effect, and no guard has tripped. */
static struct weir_policy_verdict go_on(const struct weir_policy_canary *canary,
                                        const struct weir_policy_inputs *inputs,
                                        const struct weir_policy_trial *trial, int64_t step,
                                        struct weir_arena *arena)
{
    bool is_held = inputs->now_ms >= trial->begun_ms + canary->hold_s * 1000 &&
                   weir_policy_refusal_n_accepted(&trial->figures) >= canary->min_requests &&
                   is_looked_at(canary, trial) && is_compared(canary, trial);
    if (is_held && step + 1 < canary->n_steps) {
        return at_step(canary, step + 1, arena);
    }
    if (is_held) {
        return (struct weir_policy_verdict){
            .verdict = WEIR_VERDICT_PASS,
            .rule = weir_arena_printf(arena, "canary: no guard tripped in %" PRId64 " steps",
                                      canary->n_steps)};
    }
    return at_step(canary, step, arena);
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_canary *canary = options;
    const struct weir_policy_trial *trial = weir_policy_trial_of(inputs->trial);
    struct weir_policy_verdict told = weir_policy_trial_before("canary", inputs, trial, arena);
    if (told.verdict != NULL) {
        return told;
    }
    int64_t step = WEIR_MIN(WEIR_MAX(trial->step, (int64_t)0), canary->n_steps - 1);
    if (trial->step_ms == 0) {
        return at_step(canary, 0, arena);
    }
    if (trial->problem != NULL) {
        return weir_policy_answer(
            WEIR_VERDICT_ROLLBACK,
            weir_arena_printf(arena, "canary: a replica cannot serve it: %.300s", trial->problem));
    }
    if (trial->begun_ms > 0) {
        const char *rule = tripped(canary, trial, step, arena);
        if (rule != NULL) {
            return weir_policy_answer(WEIR_VERDICT_ROLLBACK, rule);
        }
        told = look(canary, trial, step, arena);
        if (told.verdict == NULL) {
            told = go_on(canary, inputs, trial, step, arena);
        }
    } else {
        told = at_step(canary, step, arena);
        told.is_begun = trial->live_ppm == canary->steps[step];
        if (told.is_begun) {
            told.rule = weir_arena_printf(
                arena, "canary: step %" PRId64 " of %" PRId64 ": it answers %g %% of the requests",
                step + 1, canary->n_steps, (double)trial->live_ppm / 10000);
        }
    }
    bool is_same = strcmp(told.verdict, WEIR_VERDICT_WAIT) == 0 && told.step == step;
    if (is_same && inputs->now_ms >= trial->step_ms + canary->timeout_s * 1000) {
        return weir_policy_answer(
            WEIR_VERDICT_ROLLBACK,
            weir_arena_printf(
                arena,
                "canary: step %" PRId64 " did not end within %" PRId64 " s, with %" PRId64
                " of %" PRId64 " requests that it accepted%s",
                step + 1, canary->timeout_s, weir_policy_refusal_n_accepted(&trial->figures),
                canary->min_requests,
                !is_looked_at(canary, trial)
                    ? ", and too few outputs to compare: drift is seen of classifiers only"
                : !is_compared(canary, trial) ? ", and too few that both versions answered"
                                              : ""));
    }
    return is_same && !told.is_begun && !told.is_looked
               ? with_blocked(canary, inputs, trial, told, arena)
               : told;
}

// clang-format off
static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_canary, steps_json, "steps", JSON, 0, NULL, 0, 0, "Shares of the requests in percent, one after the other, each larger than the one before; left out: [1, 10, 50, 100]"),
    WEIR_OPT_JSON(weir_policy_canary, hold_s, "hold-s", INT, 0, "60", 0, 31536000, "How long each step lasts at least, from when its share is in effect"),
    WEIR_OPT_JSON(weir_policy_canary, min_requests, "min-requests", INT, 0, "100", 0, 1e12, "How many requests the version must have answered in a step; those that it refused (4xx) tell nothing and are left out"),
    WEIR_OPT_JSON(weir_policy_canary, timeout_s, "timeout-s", INT, 0, "86400", 1, 31536000, "How long a step may last: then the version goes back"),
    WEIR_OPT_JSON(weir_policy_canary, min_judged, "min-judged", INT, 0, "20", 1, 1e12, "How many requests of a step a guard must have seen before it trips; it trips when the share is surely above its limit (95 % interval)"),
    WEIR_OPT_JSON(weir_policy_canary, max_error_rate, "max-error-rate", F64, 0, "0.01", 0, 1, "Guard: the share of its answers that may be failures (5xx, or none); 1: no guard"),
    WEIR_OPT_JSON(weir_policy_canary, max_refusal_excess, "max-refusal-excess", F64, 0, "0.01", 0, 1, "Guard: by how much the share of requests that it refuses (4xx) may be above that of the version that serves: a caller's own mistakes are refused by both. It trips when the share is surely larger, after a few requests where the other refuses none; 1: no guard"),
    WEIR_OPT_JSON(weir_policy_canary, max_p99_ms, "max-p99-ms", F64, 0, NULL, 0, 1e9, "Guard: what 99 of 100 of its answers must not take longer than; 0: no guard"),
    WEIR_OPT_JSON(weir_policy_canary, max_disagreement, "max-disagreement", F64, 0, "1", 0, 1, "Guard: the share of requests, answered by both versions, whose answers may differ; 1: no guard"),
    WEIR_OPT_JSON(weir_policy_canary, drift_false_alarm_rate, "drift-false-alarm-rate", F64, 0, NULL, 0, 0.2, "Guard: how likely it may be, over all steps, that it trips by chance, though the version answers as the one that serves; 0.003 at least; 0: no guard"),
    WEIR_OPT_JSON(weir_policy_canary, drift_window, "drift-window", INT, 0, "200", 20, 1000000, "Of the guard on drift: at how many answers of a step classes and scores of both versions are compared; then at twice as many, and so on, 8 times"),
};
// clang-format on

static const struct weir_policy_ops ops = {.check = check,
                                           .decide = decide,
                                           .watches = true,
                                           .trial_state = STATE,
                                           .ends_chain = true,
                                           .slow_us = slow_us};

const struct weir_kind weir_policy_canary = {
    .name = "canary",
    .doc = "A version answers a growing share of a deployment's requests. A guard that trips "
           "gives all of them back to the version before at once, and the version is rolled back. "
           "The last of its chain.",
    WEIR_KIND_OPTIONS(weir_policy_canary, options_of),
    .ops = &ops,
};
