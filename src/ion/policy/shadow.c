#include "ion/ion_step.h"
#include "ion/policy/policy_blocked.h"
#include "ion/policy_refusal.h"

#include <inttypes.h>

#define STATE "SHADOW"

struct weir_policy_shadow {
    int64_t min_requests, timeout_s;
    double max_disagreement, max_latency_ratio, max_refusal_excess;
};

/** Enough requests were compared. */
static struct weir_policy_verdict judge(const struct weir_policy_shadow *shadow,
                                        const struct weir_policy_trial *trial,
                                        struct weir_arena *arena)
{
    int64_t n_compared = weir_policy_refusal_n_compared(&trial->figures);
    double n = (double)WEIR_MAX(n_compared, (int64_t)1);
    double disagreement = (double)trial->figures.n_disagreed / n;
    double ratio =
        (double)trial->figures.copies_us / (double)WEIR_MAX(trial->figures.compared_us, (int64_t)1);
    const struct weir_policy_refusal refusal = {"shadow", shadow->max_refusal_excess, 1, 0};
    const char *refuses = weir_policy_refusal_trips(&refusal, &trial->figures, arena);
    if (refuses != NULL) {
        return weir_policy_answer(WEIR_VERDICT_REJECT, refuses);
    }
    if (disagreement > shadow->max_disagreement) {
        return weir_policy_answer(
            WEIR_VERDICT_REJECT,
            weir_arena_printf(arena,
                              "shadow: %" PRId64 " of %" PRId64
                              " answers were not those of the version that serves, more "
                              "than a share of %g",
                              trial->figures.n_disagreed, n_compared, shadow->max_disagreement));
    }
    if (shadow->max_latency_ratio > 0 && ratio > shadow->max_latency_ratio) {
        return weir_policy_answer(
            WEIR_VERDICT_REJECT,
            weir_arena_printf(arena,
                              "shadow: its answers took %.3g times as long as those of "
                              "the version that serves, more than %g times",
                              ratio, shadow->max_latency_ratio));
    }
    return weir_policy_answer(WEIR_VERDICT_PASS,
                              weir_arena_printf(arena,
                                                "shadow: %" PRId64 " of %" PRId64
                                                " answers differed, in %.3g times the time",
                                                trial->figures.n_disagreed, n_compared, ratio));
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_shadow *shadow = options;
    const struct weir_policy_trial *trial = weir_policy_trial_of(inputs->trial);
    struct weir_policy_verdict told = weir_policy_trial_before("shadow", inputs, trial, arena);
    if (told.verdict != NULL) {
        return told;
    }
    if (trial->step_ms > 0 && trial->problem != NULL) {
        return weir_policy_answer(
            WEIR_VERDICT_REJECT,
            weir_arena_printf(arena, "shadow: a replica cannot serve it: %.300s", trial->problem));
    }
    if (trial->begun_ms > 0 &&
        weir_policy_refusal_n_compared(&trial->figures) >= shadow->min_requests) {
        return judge(shadow, trial, arena);
    }
    if (trial->step_ms > 0 && inputs->now_ms >= trial->step_ms + shadow->timeout_s * 1000) {
        return weir_policy_answer(WEIR_VERDICT_REJECT,
                                  weir_arena_printf(arena,
                                                    "shadow: %" PRId64 " of %" PRId64
                                                    " requests were compared within %" PRId64 " s",
                                                    weir_policy_refusal_n_compared(&trial->figures),
                                                    shadow->min_requests, shadow->timeout_s));
    }
    bool is_begun = trial->step_ms > 0 && trial->begun_ms == 0 && trial->is_ready;
    const struct weir_policy_awaited awaited = {"requests that both versions answered",
                                                weir_policy_refusal_n_compared(&trial->figures),
                                                shadow->min_requests, 0, shadow->timeout_s};
    const char *blocked =
        is_begun ? NULL : weir_policy_blocked(trial, &awaited, inputs->now_ms, arena);
    if (blocked != NULL) {
        return (struct weir_policy_verdict){
            .verdict = WEIR_VERDICT_WAIT,
            .rule = weir_arena_printf(arena,
                                      "shadow: it gets copies, until %" PRId64
                                      " answers are compared; it cannot be judged: %s",
                                      shadow->min_requests, blocked),
            .state = STATE,
            .is_mirrored = true,
            .blocked = blocked};
    }
    return (struct weir_policy_verdict){
        .verdict = WEIR_VERDICT_WAIT,
        .rule = weir_arena_printf(
            arena,
            is_begun ? "shadow: it gets copies, until %" PRId64 " answers are compared"
                     : "shadow: it is to get copies, until %" PRId64 " answers are compared",
            shadow->min_requests),
        .state = STATE,
        .is_mirrored = true,
        .is_begun = is_begun};
}

// clang-format off
static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_shadow, min_requests, "min-requests", INT, 0, "100", 1, 1e12, "How many requests must have been answered by both versions; those that neither accepted tell nothing and are left out"),
    WEIR_OPT_JSON(weir_policy_shadow, max_disagreement, "max-disagreement", F64, 0, "0.05", 0, 1, "The share of them whose answers may differ"),
    WEIR_OPT_JSON(weir_policy_shadow, max_refusal_excess, "max-refusal-excess", F64, 0, "0.01", 0, 1, "Guard: by how much the share of requests that it refuses (4xx) may be above that of the version that serves: a caller's own mistakes are refused by both. It trips when the share is surely larger, after a few requests where the other refuses none; 1: no guard"),
    WEIR_OPT_JSON(weir_policy_shadow, max_latency_ratio, "max-latency-ratio", F64, 0, NULL, 0, 1e6, "How many times as long as the others its answers may take on average; 0: any time"),
    WEIR_OPT_JSON(weir_policy_shadow, timeout_s, "timeout-s", INT, 0, "86400", 1, 31536000, "How long it may last: then the version is rejected"),
};
// clang-format on

static const struct weir_policy_ops ops = {.decide = decide, .watches = true, .trial_state = STATE};

const struct weir_kind weir_policy_shadow = {
    .name = "shadow",
    .doc = "A version gets copies of a deployment's requests. Its answers are compared with those "
           "of the version that serves, and dropped.",
    WEIR_KIND_OPTIONS(weir_policy_shadow, options_of),
    .ops = &ops,
};
